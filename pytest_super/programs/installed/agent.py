"""Agents that are programs in an image: what installs each, its command line, where its answer comes from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from pytest_super.errors import SuperError
from pytest_super.kernel.sandbox import AGENTS, ProgramInImage
from pytest_super.programs.answer import preparing, take_answer
from pytest_super.programs.command import ENVIRONMENT, fill, model_name
from pytest_super.store.trajectory import Action

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles
    from pytest_super.programs.installed.packages import NodePackage, NpmPackage, PipPackages
    from pytest_super.trial.trial import Trial

HOME = "/opt/super/home"
PROMPT = """\
{query}

When you are done, write your answer as JSON, and nothing else, into the file {answer_file}. \
End with a message that contains the same JSON.
"""


@dataclass(frozen=True, kw_only=True)
class InstalledAgent:
    """What there is to say about a program. A package offers one as an entry point of `pytest_super.agents`.

    `command`, the values of `environment` and `files`, and the arguments of the user can have placeholders:
    `{place}`, the folder in which the program is installed; `{home}`, a folder for its settings and state;
    `{prompt_file}`; `{answer_file}`, into which it is to write its answer; `{message_file}`; `{workdir}`;
    `{model}`. In `command` they are quoted for the shell.
    """

    name: str
    """As the entry point."""
    package: NpmPackage | NodePackage | PipPackages
    version: str
    """The one that `pytest-super image build` installs unless another is named."""
    oldest: str
    """The oldest that works with `command`."""
    version_command: str
    """A line for `sh` that prints the version of the installed program."""
    command: str
    """A line for the sandbox's `sh`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of files in its home, by their relative path. Folders are made."""

    def at(self, version: str) -> InstalledAgent:
        """The agent at another version. Raises SuperError for one that is too old or is not a version."""
        try:
            is_old = Version(version) < Version(self.oldest)
        except InvalidVersion:
            raise SuperError(f"the agent `{self.name}=={version}`: {version!r} is not a version") from None
        if is_old:
            raise SuperError(f"{self.name} {version} is too old: {self.oldest} is the oldest that works here")
        return replace(self, version=version)

    def program(self, *, is_exact: bool) -> ProgramInImage:
        return ProgramInImage(name=self.name, version=self.version, oldest=self.oldest, is_exact=is_exact)

    @property
    def place(self) -> str:
        return f"{AGENTS}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Additions:
    """What the user adds to an agent's program."""

    arguments: tuple[str, ...] = ()
    """Words at the end of its command line."""
    files: Path | None = None
    """A folder whose content goes into the program's home."""
    environment: tuple[tuple[str, str], ...] = ()


class InstalledProgram:
    """Runs the program of an agent in the kernel's current directory."""

    def __init__(self, agent: InstalledAgent, additions: Additions) -> None:
        self._agent = agent
        self._added = additions

    def run(self, trial: Trial) -> None:
        with preparing(trial):
            values = self.values(trial)
            if self._added.files is not None:
                self._copy_files(trial, self._added.files)
            given = self.line(values), self.environment(values), self.files(values, trial.task.query)
        trial.run_program(*given)
        take_answer(trial, values["answer_file"], values["message_file"])

    def values(self, trial: Trial) -> dict[str, str]:
        """The values of the placeholders."""
        workdir = trial.kernel.workdir
        return {
            "place": self._agent.place,
            "home": HOME,
            "prompt_file": f"{HOME}/prompt.md",
            "answer_file": f"{workdir}/.super-answer.json",
            "message_file": f"{HOME}/last-message.md",
            "workdir": workdir,
            "model": model_name(trial),
        }

    def line(self, values: dict[str, str]) -> str:
        added = [shlex.quote(filled(word, values)) for word in self._added.arguments]
        return " ".join([fill(self._agent.command.strip(), values), *added])

    def environment(self, values: dict[str, str]) -> dict[str, str]:
        given = {**ENVIRONMENT, **self._agent.environment, **dict(self._added.environment)}
        return {name: filled(value, values) for name, value in given.items()}

    def files(self, values: dict[str, str], query: str) -> dict[str, str]:
        prompt = PROMPT.format(query=query, answer_file=values["answer_file"])
        own = {f"{HOME}/{name}": filled(text, values) for name, text in self._agent.files.items()}
        return {**own, values["prompt_file"]: prompt}

    def _copy_files(self, trial: Trial, folder: Path) -> None:
        def copy(files: SandboxFiles) -> tuple[str, str]:
            files.upload(folder, HOME)
            return "", "ok"

        trial.use(Action(type="copy_agent_files", content=HOME), copy)


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the placeholders replaced, not quoted."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
