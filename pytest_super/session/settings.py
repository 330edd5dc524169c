"""The values of options and ini values, checked once before anything runs."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.registry import AgentSettings, installed_agent
from pytest_super.errors import SuperError
from pytest_super.kernel.providers.host_environment import trusted_certificates
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.model.settings import SCRIPTED
from pytest_super.option_types import Epochs, Retrieval
from pytest_super.option_values import value_of
from pytest_super.options import OPTIONS, SETS, SPLITS
from pytest_super.programs.installed.agent import Additions
from pytest_super.redaction import may_hold_secret
from pytest_super.store.stored_runs import find_path, find_side
from pytest_super.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.sandbox import ProgramInImage
    from pytest_super.option_types import Sample

# The value of --super-answers that keeps no record.
NO_ANSWERS = "none"


@dataclass(frozen=True, kw_only=True)
class Settings:
    agent: str
    sandbox: str
    sets: tuple[str, ...]
    categories: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: tuple[int, ...] | None
    """How many functions of a paper are masked together; None leaves that to its file."""
    sample: Sample | None
    epochs: Epochs
    fail_under: tuple[str, ...]
    """The gates as they were written."""
    must_solve: Path | None
    """A file with the tasks that must be solved."""
    baseline: Path | None
    """A file or a run's folder to compare with."""
    max_regression: float
    """In points: the drop to rule out."""
    drift: float
    """In points: the standard deviation of what changes a whole run."""
    cannot_tell: str
    """What a run does that decides nothing: `pass` or `fail`."""
    all_tasks: bool
    """Whether tasks run that the baseline never solved."""
    min_compared: float
    """The share of the tasks that the baseline must have under equal conditions."""
    resume: str
    """The run whose trials are taken over; "" for none."""
    max_errors: float | None
    """The share of the trials that can be errors; None if any error fails the run."""
    scoring: str
    keep: str
    machines: int | None
    """How many workers a Slurm cluster runs; None for workers of this machine."""
    srun: tuple[str, ...]
    """The user's options for the jobs of these workers."""
    no_cache: bool
    directory: Path
    html: Path | None
    """Where the run's page is written."""
    for_agent: AgentSettings
    for_sandboxes: SandboxSettings
    attempts: int
    select: str
    model: str | None
    model_parameters: tuple[tuple[str, Any], ...]
    """The user's parameters for every call."""
    max_cost: float | None
    answers: str
    """The run whose answers are given again, as it is named, then its folder or archive; "" for none."""
    answers_of: str
    """The id of that run."""
    forked_from: str
    """The run, the trial and the step from which all trials go on; "" for whole trials."""
    is_recorded: bool
    """Whether the model's answers are kept."""
    needs_answers: bool
    """Whether a request without a recorded answer ends its trial."""

    @property
    def is_gated(self) -> bool:
        return bool(self.fail_under or self.must_solve or self.baseline)


def read_settings(config: pytest.Config) -> Settings:
    """The settings of a session with an agent. Raises pytest.UsageError."""
    values = {option.key: value_of(config, option) for option in OPTIONS}
    for name, known in (("set", SETS), ("split", SPLITS)):
        if unknown := [value for value in values[f"super_{name}"] if value not in known]:
            hint = did_you_mean(unknown[0], known)
            raise pytest.UsageError(f"--super-{name}={unknown[0]}: choose from {', '.join(known)}{hint}")
    program = program_of(values["super_agent"])
    return Settings(
        agent=values["super_agent"],
        sandbox=values["super_sandbox"],
        sets=tuple(values["super_set"]),
        categories=tuple(values["super_category"]),
        splits=tuple(values["super_split"]),
        sizes=values["super_n"],
        sample=values["super_sample"],
        epochs=epochs_of(values),
        fail_under=tuple(values["super_fail_under"]),
        must_solve=existing(config, "super_must_solve", values),
        baseline=named_by(find_side, config, "super_baseline", values),
        max_regression=values["super_max_regression"],
        drift=values["super_drift"],
        resume=values["super_resume"] or "",
        cannot_tell=values["super_cannot_tell"],
        all_tasks=bool(values["super_all_tasks"]),
        min_compared=values["super_min_compared"],
        max_errors=values["super_max_errors"],
        scoring=values["super_scoring"],
        keep=values["super_keep"],
        machines=values["super_machines"],
        srun=values["super_srun"] or (),
        no_cache=bool(values["super_no_cache"]),
        # As documented, relative to the rootdir even as an option, unlike the other paths.
        directory=(config.rootpath / values["super_dir"]).absolute(),
        html=absolute(config, "super_html", values),
        attempts=values["super_attempts"],
        select=values["super_select"],
        for_agent=AgentSettings(
            prompt=prompt_text(config, values),
            trajectory=named_by(find_path, config, "super_trajectory", values),
            retrieval=values["super_retrieval"] or Retrieval(),
            additions=additions(config, values),
        ),
        for_sandboxes=sandbox_settings(config, values, program),
        model=model_name(config, values),
        model_parameters=model_parameters(values),
        max_cost=values["super_max_cost"],
        answers="" if values["super_answers"] == NO_ANSWERS else values["super_answers"] or "",
        answers_of="",
        forked_from="",
        is_recorded=values["super_answers"] != NO_ANSWERS,
        needs_answers=values["super_answers_miss"] == "fail",
    )


def epochs_of(values: dict[str, Any]) -> Epochs:
    """How often each task is tried. Raises pytest.UsageError if no gate could end a range of epochs early."""
    epochs: Epochs = values["super_epochs"]
    gates = [values[key] for key in ("super_baseline", "super_fail_under", "super_must_solve")]
    if epochs.is_adaptive and not any(gates):
        raise pytest.UsageError(
            f"--super-epochs={epochs} runs until the gates are decided: "
            "it needs --super-baseline, --super-fail-under or --super-must-solve"
        )
    return epochs


def absolute(config: pytest.Config, key: str, values: dict[str, Any]) -> Path | None:
    return resolved(config, key, values[key]) if values[key] else None


def named_by(
    find: Callable[[Path, str], Path], config: pytest.Config, key: str, values: dict[str, Any]
) -> Path | None:
    """What a path or a run's name means now, with links resolved: this run will be `latest`."""
    if not (name := values[key]):
        return None
    path = resolved(config, key, name)
    try:
        return find(config.rootpath / values["super_dir"], str(path) if path.exists() else name).resolve()
    except SuperError as error:
        raise pytest.UsageError(f"--{key.replace('_', '-')}={name}: {error}") from None


def resolved(config: pytest.Config, key: str, text: str) -> Path:
    """The absolute path: an option is relative to the working directory, an ini value to the rootdir."""
    base = config.rootpath if config.getoption(key) is None else config.invocation_params.dir
    return (base / Path(text).expanduser()).absolute()


def refuse_unwritable_page(page: Path) -> None:
    """Raises pytest.UsageError if `page` is not a regular file, or cannot become one.

    Folders are only made with the page: `latest` in its path will be this run.
    """
    try:
        if not stat.S_ISREG(page.stat().st_mode):
            raise pytest.UsageError(f"--super-html: {page} is not a regular file: name another path")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise pytest.UsageError(f"--super-html: {page} cannot be written: {error.strerror}") from None
    target = Path(os.path.realpath(page))
    folder = next(one for one in target.parents if one.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise pytest.UsageError(f"--super-html: {page} cannot be written: no permission to write in {folder}")


def existing(config: pytest.Config, key: str, values: dict[str, Any]) -> Path | None:
    path = absolute(config, key, values)
    if path is not None and not path.is_file():
        raise pytest.UsageError(f"--{key.replace('_', '-')}: there is no file {path}")
    return path


def program_of(agent: str) -> ProgramInImage | None:
    """The program that the agent needs in its sandbox's image, if any. Raises pytest.UsageError."""
    try:
        installed = installed_agent(agent)
    except SuperError as error:
        raise pytest.UsageError(str(error)) from None
    return None if installed is None else installed.program(is_exact="==" in agent)


def additions(config: pytest.Config, values: dict[str, Any]) -> Additions:
    """What the user adds to the agent's program. Raises pytest.UsageError."""
    files = absolute(config, "super_agent_files", values)
    if files is not None and not files.is_dir():
        raise pytest.UsageError(f"--super-agent-files: there is no folder {files}")
    for text in (*values["super_agent_arg"], *values["super_agent_env"]):
        # Command lines and variables are written to disk, and code in the sandbox can read them.
        if may_hold_secret(text):
            name = text.partition("=")[0]
            raise pytest.UsageError(f"{name}: no key goes into a sandbox; the gateway has that of the model")
    return Additions(
        arguments=tuple(values["super_agent_arg"]),
        files=files,
        environment=tuple(map(parse_variable, values["super_agent_env"])),
    )


def parse_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise pytest.UsageError(f"--super-agent-env={text}: write it as NAME=VALUE")
    return name, value


def sandbox_settings(
    config: pytest.Config, values: dict[str, Any], program: ProgramInImage | None
) -> SandboxSettings:
    return SandboxSettings(
        image=image_named(config, values["super_image"]),
        engines=tuple(" ".join(values["super_engine"]).replace(",", " ").split()),
        program=program,
        # By default the certificates that this machine trusts, as in local sandboxes.
        ca_bundle=existing(config, "super_ca_bundle", values) or trusted_certificates(os.environ),
        pip_config=existing(config, "super_pip_config", values),
        mounts=dict(parse_mount(text) for text in values["super_mount"]),
    )


def image_named(config: pytest.Config, name: str | None) -> str | None:
    """An image of the engine by its name, one in a folder by the absolute path."""
    if name and name[0] in "./~":
        return str(resolved(config, "super_image", name))
    return name or None


def prompt_text(config: pytest.Config, values: dict[str, Any]) -> str | None:
    path = existing(config, "super_prompt", values)
    try:
        return None if path is None else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise pytest.UsageError(f"--super-prompt: {path} is not UTF-8: {error.reason}") from None


def model_name(config: pytest.Config, values: dict[str, Any]) -> str | None:
    """The model's name. A script is read, so that an error in it is reported before anything runs."""
    name: str | None = values["super_model"]
    if name is None or not name.startswith(SCRIPTED):
        return name
    from pytest_super.model.scripted import ScriptedProvider

    path = resolved(config, "super_model", name.removeprefix(SCRIPTED))
    try:
        ScriptedProvider(path)
    except SuperError as error:
        raise pytest.UsageError(str(error)) from None
    return f"{SCRIPTED}{path}"


def model_parameters(values: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    pairs = [parse_parameter(text) for text in values["super_model_arg"]]
    if values["super_temperature"] is not None:
        pairs.append(("temperature", values["super_temperature"]))
    return tuple(pairs)


def parse_parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise pytest.UsageError(f"--super-model-arg={text}: write it as KEY=VALUE")
    # Parameters are written to disk.
    if may_hold_secret(text):
        raise pytest.UsageError(f"--super-model-arg={name}: keys come from the environment, as for litellm")
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    # The gateway applies it; everything else is checked by litellm or the provider.
    if name == "timeout" and not (isinstance(parsed, int | float) and 0 < parsed < inf):
        raise pytest.UsageError(f"--super-model-arg={text}: must be a number of seconds above 0")
    return name, parsed


def parse_mount(text: str) -> tuple[str, str]:
    # The last colon, because a name on the host can contain others.
    host, _, inside = text.rpartition(":")
    if not (host.startswith("/") and inside.startswith("/")):
        raise pytest.UsageError(f"--super-mount={text}: write it as /folder/of/host:/folder/inside")
    return host, inside
