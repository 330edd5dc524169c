"""Agents by name, by one whose program is a shell script in an image: what it is given, how it ends."""

import io
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.image import BUILT, BUILT_AS, DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.image.agent import LABEL
from tests.conftest import read_lines

pytestmark = pytest.mark.docker

MODULE = """
from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import NodePackage, PipPackages

# It reads YAML with another package, on which it depends, and prints JSON.
NODED = InstalledAgent(
    name="noded",
    package=NodePackage(name="js-yaml@{version}", command="js-yaml"),
    version="4.1.0",
    oldest="4.0.0",
    version_command="{place}/bin/noded --version",
    command="! command -v node && {place}/bin/noded {home}/.noded/answer.yaml > {answer_file}",
    files={".noded/answer.yaml": "0x2A"},
)
TOOL = InstalledAgent(
    name="tool",
    package=PipPackages(requirements=()),
    version="2.0",
    oldest="1.5",
    version_command="true",
    command="sh {home}/script.sh {message_file} {answer_file} {prompt_file} {model}",
    environment={"KIND": "of the agent", "PLACE": "{place}"},
    files={"own.txt": "its own file", ".tool/deep/settings.json": '{"at": "{home}", "name": "{model}"}'},
)
"""
ENTRY_POINTS = "[pytest_super.agents]\ntool = tools:TOOL\nnoded = tools:NODED\n"
VERSION = "2.1"


@pytest.fixture(scope="module")
def images(image: str) -> Iterator[dict[str, str]]:  # noqa: ARG001
    """Images by the version of the program in them; that of no version has none."""
    api: Any = connect()
    token = uuid.uuid4().hex[:8]
    tags = {version: f"pytest-super-tool:{token}-{version}" for version in ("none", "1.0", VERSION)}
    for version, tag in tags.items():
        recipe = f"FROM {DEFAULT_IMAGE}\nRUN mkdir -p /opt/super/home\n"
        labels = {} if version == "none" else {LABEL + "tool": version, BUILT: "base", BUILT_AS: tag}
        list(api.build(fileobj=io.BytesIO(recipe.encode()), tag=tag, labels=labels, rm=True, decode=True))
    yield tags
    for tag in tags.values():
        api.remove_image(tag, force=True)


class ToolProject:
    """A project with a task whose answer is 42, and a package that offers the agent `tool`."""

    def __init__(self, pytester: pytest.Pytester, images: dict[str, str]) -> None:
        self.pytester, self.images = pytester, images
        self.path = pytester.path
        pytester.makeini("[pytest]\nsuper_sandbox = docker\n")
        (self.path / "tools.py").write_text(MODULE)
        metadata = self.path / "tools-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tools\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
        (self.path / "setup").mkdir()
        self.answers()

    def answers(self, *answers: Any) -> None:
        """Those of the model."""
        (self.path / "script.yaml").write_text(json.dumps(answers or ("unused",)))

    def add_task(self, id: str, query: str) -> None:
        task = {"id": id, "set": "expert", "query": query, "answer": 42, "limits": {"compute": 30}}
        (self.path / f"{id}.task.yaml").write_text(json.dumps(task))

    def run(
        self, script: str, *arguments: str, version: str = VERSION, agent: str = "tool"
    ) -> pytest.RunResult:
        """The script is the program: with the message file as $1, the answer file as $2, the prompt as $3."""
        if not list(self.path.glob("*.task.yaml")):
            self.add_task("t", "What is it?")
        (self.path / "setup/script.sh").write_text(script)
        return self.pytester.runpytest(
            f"--super-agent={agent}",
            "--super-agent-files=setup",
            f"--super-image={self.images[version]}",
            "--super-model=scripted:script.yaml",
            ".",
            *arguments,
        )

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in read_lines(self.path / ".super/runs/latest/results.jsonl")}

    @property
    def result(self) -> dict[str, Any]:
        (result,) = self.results.values()
        return result

    def steps(self, id: str = "t") -> list[dict[str, Any]]:
        (path,) = self.path.glob(f".super/runs/latest/trials/{id}/*/trajectory.jsonl")
        return read_lines(path)


@pytest.fixture
def project(
    pytester: pytest.Pytester, images: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> ToolProject:
    monkeypatch.syspath_prepend(pytester.path)
    return ToolProject(pytester, images)


def test_a_program_gets_its_prompt_files_words_and_variables(project: ToolProject) -> None:
    (project.path / "setup/skills").mkdir()
    (project.path / "setup/skills/one.md").write_bytes(b"a skill \xff")
    project.run(
        "cat $3; cd /opt/super/home; cat own.txt .tool/deep/settings.json; tr -d '\\377' < skills/one.md; "
        'echo "; $5; $4; $KIND; $MINE; $HOME"; echo 42 > $2; ls -A /workspace',
        "--super-agent-arg=a word of {home}",
        "--super-agent-env=MINE={place}",
    )
    copied, command, _, _ = project.steps()
    assert (copied["action"]["type"], command["action"]["type"]) == ("copy_agent_files", "command")
    said = command["observation"]
    assert said.startswith("What is it?\n\nWhen you are done, write your answer as JSON")
    assert "into the file /workspace/.super-answer.json" in said
    told = "a word of /opt/super/home; scripted; of the agent; /opt/super/agents/tool; /root\n"
    settings = '{"at": "/opt/super/home", "name": "scripted"}'
    assert f"its own file{settings}a skill ; {told}.super-answer.json\n[The program" in said
    result = project.result
    assert (result["solved"], result["agent_version"]) == (True, VERSION)


# A task whose query is the program, and what its last step but one says.
ENDS = {
    "file": ("echo 42 > $2; echo 7 > $1", "42"),
    "broken": ("echo broken > $2; echo 42 > $1", "[The answer is that of the last message.]"),
    "json": ("printf 'It is\\n```json\\n42\\n```\\n' > $1", "[The answer is that of the last message.]"),
    "failed": ("echo 42 > $1; echo no model here; exit 3", ""),
}


def test_the_answer_is_that_of_the_file_or_the_last_message_of_a_program_that_worked(
    project: ToolProject,
) -> None:
    for id, (script, _) in ENDS.items():
        project.add_task(id, script)
    project.run('eval "$(head -n 1 $3)"')
    for id, (_, read) in ENDS.items():
        assert read in project.steps(id)[-2]["observation"], id
    failed = (results := project.results).pop("failed")
    assert {id: row["solved"] for id, row in results.items()} == dict.fromkeys(results, True)
    assert (failed["agent_error"], failed["submitted"]) == ("exit code 3: no model here", False)
    assert {row["prompt_tokens"] for row in (failed, *results.values())} == {0}


@pytest.mark.parametrize(("answer", "is_submitted"), [("42", True), ("NONE", False)])
def test_a_message_without_json_is_repaired_by_one_question(
    project: ToolProject, answer: str, is_submitted: bool
) -> None:
    project.answers(answer, "not asked")
    project.run("echo It is forty-two. > $1")
    question = next(step for step in project.steps() if step["action"]["type"] == "ask_for_answer")
    assert "What is it?" in question["action"]["content"]
    assert "It is forty-two." in question["action"]["content"]
    result = project.result
    assert (result["submitted"], result["solved"]) == (is_submitted, is_submitted)
    assert result["completion_tokens"] > 0
    assert result["error"] is None
    assert (result["agent_error"] is None) == is_submitted


def test_the_version_is_part_of_what_is_tried_and_the_base_of_the_conditions(project: ToolProject) -> None:
    project.run("echo 42 > $2")
    one = project.result
    project.run("echo 42 > $2", "--super-agent-env=A=b")
    other = project.result
    assert one["software"] == other["software"] == "base"
    assert one["conditions"] == other["conditions"]
    assert one["subject"] != other["subject"]


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("none", "neither the image * nor *-none-tool-2.0 has the agent tool: build *"),
        ("1.0", "* has tool 1.0, and 1.5 is the oldest that works here: build one with *tool --base *"),
    ],
)
def test_an_image_without_the_right_program_stops_the_run_with_one_message(
    project: ToolProject, version: str, told: str
) -> None:
    ran = project.run("echo 42 > $2", version=version)
    ran.stdout.fnmatch_lines([f"*{told}*"])
    assert ran.ret != 0
    assert "build one with" in project.result["error"]


@pytest.mark.long
@pytest.mark.network
def test_a_program_that_needs_node_runs_in_an_image_without_node(
    project: ToolProject, images: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    base = images["none"]
    assert main(["image", "build", "--agent", "noded", "--base", base]) == 0
    built = f"{base}-noded-4.1.0"
    try:
        assert built in capsys.readouterr().out
        project.run("", version="none", agent="noded")
    finally:
        connect().remove_image(built, force=True)
    result = project.result
    assert (result["solved"], result["agent_version"], result["error"]) == (True, "4.1.0", None)
