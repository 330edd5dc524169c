"""Agents by name: their versions, where their programs come from, and answers in their last messages."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.agents.identity import own_files
from pytest_super.agents.registry import installed_agent, installed_names
from pytest_super.cli import main
from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.image.agent import name_with
from pytest_super.kernel.sandbox import ProgramInImage
from pytest_super.programs.answer import answers_in
from pytest_super.programs.installed.agent import Additions, InstalledAgent, InstalledProgram
from pytest_super.programs.installed.packages import NodePackage, NpmPackage
from tests.pages import example

NAMES = ("aider", "claude-code", "codex", "gemini-cli", "mini-swe-agent", "smolagents")
PACKAGE = NpmPackage(name="@a/tool-linux-{cpu}@{version}", program="tool")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=9), VALUES, max_size=4)
# Words around an answer, without brackets of JSON and without a fence.
WORDS = st.text(alphabet=st.characters(exclude_characters="{}[]`"))


def best(message: str) -> Any:
    return next(answers_in(message), None)


@given(value=VALUES, before=WORDS, after=WORDS)
def test_an_answer_is_found_alone_and_in_a_fenced_block(value: Any, before: str, after: str) -> None:
    text = json.dumps(value)
    assert best(f" {text}\n") == value
    assert best(f"{before}\n```json\n{text}\n```\n{after}") == value


@given(value=OBJECTS, earlier=VALUES, before=WORDS, after=WORDS)
def test_the_last_object_among_words_is_the_answer(
    value: dict[str, Any], earlier: Any, before: str, after: str
) -> None:
    message = f"x {json.dumps(earlier)} {before} {json.dumps(value, indent=1)} {after} x, see [1]"
    assert best(message) == value


@pytest.mark.parametrize("message", ["", "no answer", "{broken", "[" * 50_000, '{"a":' * 10_000])
def test_a_message_without_json_has_no_answer(message: str) -> None:
    assert list(answers_in(message)) == []


def test_ours_are_found_by_their_entry_points() -> None:
    assert set(NAMES) <= set(installed_names())
    for name in NAMES:
        agent = installed_agent(name)
        assert agent is not None
        assert agent.name == name
        assert agent == installed_agent(f"{name}=={agent.version}")
    assert installed_agent("gold") is None


def test_the_page_shows_a_whole_agent() -> None:
    made: dict[str, Any] = {}
    exec(example("own.md", "mine_agents.py"), made)
    tool = made["TOOL"]
    assert isinstance(tool, InstalledAgent)
    line = InstalledProgram(tool, Additions(arguments=("a b", "{model}"))).line({
        "place": tool.place, "model": "m n", "message_file": "/m", "prompt_file": "/p",
    })  # fmt: skip
    assert line == "/opt/super/agents/tool/bin/tool run --model 'm n' --out /m - < /p 'a b' 'm n'"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("codex==0.1.0", "codex 0.1.0 is too old: 0."),
        ("codex==new", "'new' is not a version"),
        ("codx", "choose from aider, claude-code, codex"),
        ("codx", "did you mean `codex`?"),
        ("gold", "choose from"),
    ],
)
def test_a_name_that_cannot_be_built_is_told_in_one_line(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["image", "build", "--agent", name]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_options_of_the_kernel_image_are_refused_for_an_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "build", "--agent", "codex", "--packages", "git"]) == 1
    assert "--packages and --requirements are for the kernel image" in capsys.readouterr().err
    assert main(["image", "build", "--agent", "codex", "--unpack", "folder"]) != 0
    assert "--unpack is for kernel images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("a:1", "a:1-codex-0.169.0"),
        ("a", "a:latest-codex-0.169.0"),
        ("host:5000/a", "host:5000/a:latest-codex-0.169.0"),
        ("host:5000/a:b", "host:5000/a:b-codex-0.169.0"),
        ("a@sha256:0123456789abcdef", "a:0123456789ab-codex-0.169.0"),
    ],
)
def test_an_image_with_a_program_is_named_after_its_base(image: str, name: str) -> None:
    program = ProgramInImage(name="codex", version="0.169.0", oldest="0.1", is_exact=False)
    assert name_with(image, program) == name


@pytest.mark.parametrize(
    ("arguments", "name"),
    [([], DEFAULT_IMAGE), (["--agent", "codex==0.169.0"], f"{DEFAULT_IMAGE}-codex-0.169.0")],
)
def test_the_name_of_an_image_is_printed(
    arguments: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["image", "name", *arguments]) == 0
    assert capsys.readouterr().out == f"{name}\n"


class FakeNpm:
    """A program `npm` in a PATH of its own, with a text as its script."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin, self.downloads = folder / "bin", folder / "downloads"
        self.bin.mkdir()
        self.downloads.mkdir()
        monkeypatch.setenv("PATH", f"{self.bin}:/bin:/usr/bin")

    def write(self, script: str) -> None:
        (self.bin / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / "npm").chmod(0o755)

    def fetch(self, architecture: str = "amd64") -> dict[str, Path]:
        return PACKAGE.fetch("1.2.3", architecture, self.downloads)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    return FakeNpm(tmp_path, monkeypatch)


@pytest.mark.parametrize(("architecture", "cpu"), [("amd64", "x64"), ("arm64", "arm64")])
def test_npm_is_asked_for_the_archive_of_the_images_platform(
    npm: FakeNpm, architecture: str, cpu: str
) -> None:
    npm.write('echo "$@" > asked; touch tool.tgz')
    assert npm.fetch(architecture) == {"package.tgz": npm.downloads / "tool.tgz"}
    asked = (npm.downloads / "asked").read_text()
    assert asked == f"pack --loglevel=error --ignore-scripts @a/tool-linux-{cpu}@1.2.3\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo 'npm error code ETARGET' >&2; echo 'npm error notarget No such version.' >&2; exit 1",
            "npm cannot download @a/tool-linux-x64@1.2.3: code ETARGET: notarget No such version.",
        ),
        ("exit 1", "it printed nothing"),
        ("exit 0", "it made no archive"),
    ],
)
def test_what_npm_says_of_its_failure_is_told(npm: FakeNpm, script: str, told: str) -> None:
    npm.write(script)
    with pytest.raises(InfrastructureError, match=told.replace(".", r"\.")):
        npm.fetch()


def test_a_command_that_a_package_of_node_lacks_is_named(npm: FakeNpm) -> None:
    npm.write("exit 0")
    with pytest.raises(InfrastructureError, match=r"the package tool@1.2.3 has no command 'other'"):
        NodePackage(name="tool@{version}", command="other").fetch("1.2.3", "amd64", npm.downloads)


def test_a_machine_without_npm_is_told_what_to_install(npm: FakeNpm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(npm.bin))
    with pytest.raises(
        InfrastructureError, match=r"the program npm, which downloads the agent, is missing: install it"
    ):
        npm.fetch()


def test_a_processor_without_packages_is_named(npm: FakeNpm) -> None:
    with pytest.raises(SuperError, match="for the processor riscv64"):
        npm.fetch("riscv64")


@pytest.mark.parametrize("name", ["codex", "claude-code==2.1.330", "react-super"])
def test_our_own_code_is_not_read_as_an_agents(name: str, tmp_path: Path) -> None:
    assert own_files(name, tmp_path, tmp_path) is None
