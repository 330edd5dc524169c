"""Tasks as folders in the form of Harbor: what is in them, and that their reward is our grade."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super import cli
from pytest_super.grading.values import CommandRun, values_of
from pytest_super.metrics.accuracy import accuracy
from pytest_super.metrics.graded import AGGREGATIONS
from pytest_super.tasks.loading import load_tasks

if TYPE_CHECKING:
    from pathlib import Path

GRADE: dict[str, Any] = {
    "collect": ["in.txt"],
    "command": "cat hidden.txt; cp hidden.txt out.txt; "
    'printf \'{"mean": [1.0, 2.02], "more": 1}\' > values.json; exit 3',
    "files": {"hidden.txt": "hidden.txt", "deep/checks": "checks"},
    "timeout": 30,
    "result": [
        {"exit": 0},
        {"exit": 3},
        {"json": {"file": "values.json", "pointer": "/mean"}, "expected": [1, 2], "rel": 0.02},
        {"json": {"file": "values.json", "pointer": "/none"}, "interval": [0, 1]},
        {"regex": {"pattern": r"loss (\d+\.\d+)"}, "interval": [0.4, 0.6]},
        {"regex": {"pattern": r"name (\w+)", "file": "out.txt"}, "expected": "abc"},
        {
            "regex": {"pattern": r"^(?P<name>\w+) (?P<value>.*)", "file": "out.txt"},
            "expected": {"loss": 0.5, "name": "abc", "none": 1},
        },
        {"number": "share.txt"},
    ],
}
# Calls the reward without any installed package, on files in a folder of the test.
REWARD = """
import json, sys
from pathlib import Path
tests, function = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(tests))
import reward
rules = json.loads((tests / "rules.json").read_text().replace("/workspace", sys.argv[3]))
print("reward", getattr(reward, function)(rules, *([tests] if function == "graded" else [])))
"""


class Export:
    """One task, and its folder in the form of Harbor."""

    def __init__(self, folder: Path) -> None:
        self.source, self.output = folder / "tasks", folder / "harbor"
        self.source.mkdir()
        (self.source / "hidden.txt").write_text("loss 9.9\nloss 0.5\nname abc\n")
        (self.source / "checks").mkdir()
        (self.source / "checks/a.py").write_text("1\n")
        (self.source / "code").mkdir()
        (self.source / "code/run.py").write_text("print(1)\n")
        self.sandbox = folder / "sandbox"
        self.sandbox.mkdir()

    def add(self, id: str = "a", **fields: Any) -> None:
        task = {"id": id, "set": "expert", "query": "What is it?", **fields}
        (self.source / f"{id}.task.yaml").write_text(json.dumps(task))

    def run(self, *options: str) -> int:
        command = ["export", str(self.source), "--format", "harbor", "--output", str(self.output)]
        return cli.main([*command, *options])

    def settings(self, id: str = "a") -> dict[str, Any]:
        return tomllib.loads((self.output / id / "task.toml").read_text())

    def reward(self, function: str) -> float:
        """What the reward of the task `a` is in a sandbox, by a Python without packages."""
        ran = subprocess.run(
            [sys.executable, "-I", "-S", "-c", REWARD, self.output / "a/tests", function, self.sandbox],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return float(ran.stdout.rpartition("reward ")[2])


@pytest.fixture
def harbor(tmp_path: Path) -> Export:
    return Export(tmp_path)


def test_a_task_with_an_answer_asks_for_a_file_with_it(harbor: Export) -> None:
    limits = {"wall": 100}
    sandbox = {"memory": "1g", "cpus": 2, "network": True, "env": {"A": 'b"c'}, "packages": ["numpy==2.2.6"]}
    harbor.add(
        answer={"mean": 1.5}, limits=limits, sandbox=sandbox, repository={"path": "code", "provide": True}
    )
    assert harbor.run("--base", "python:3") == 0
    settings = harbor.settings()
    assert settings["artifacts"] == ["/workspace/answer.json"]
    assert settings["agent"]["timeout_sec"] == 100
    assert settings["verifier"]["environment_mode"] == "separate"
    environment = settings["environment"]
    assert environment.pop("env") == {"A": 'b"c'}
    assert environment == {"memory_mb": 1024, "cpus": 2, "network_mode": "public"}
    folder = harbor.output / "a"
    asked = "What is it?\n\nWrite the answer, as JSON, into the file `/workspace/answer.json`.\n"
    assert (folder / "instruction.md").read_text() == asked
    assert (folder / "environment/Dockerfile").read_text().splitlines() == [
        "FROM python:3",
        "WORKDIR /workspace",
        "RUN python3 -m pip install --no-cache-dir numpy==2.2.6",
        'COPY ["code", "/workspace/code"]',
    ]
    assert (folder / "environment/code/run.py").read_text() == "print(1)\n"
    # Harbor makes the image of a separate verifier of the folder `tests`.
    assert (folder / "tests/Dockerfile").read_text().splitlines()[-2:] == [
        'COPY ["repository/code", "/workspace/code"]',
        "COPY . /tests/",
    ]
    assert (folder / "tests/repository/code/run.py").is_file()


@pytest.mark.parametrize(
    "answer", ['{"mean": 1.51, "n": [1]}', '{"mean": 1.6, "n": [1, "x"]}', "null", "{", ""]
)
def test_the_reward_of_an_answer_is_its_accuracy(harbor: Export, answer: str) -> None:
    gold = {"mean": 1.5, "n": [1, "x "]}
    harbor.add(answer=gold)
    harbor.run()
    if answer:
        (harbor.sandbox / "answer.json").write_text(answer)
    wanted = 0.0 if answer in ("", "{") else accuracy(gold, json.loads(answer))
    assert harbor.reward("answered") == pytest.approx(wanted)


@pytest.mark.parametrize("aggregate", ["fraction", "all"])
def test_the_reward_of_a_graded_task_is_its_grade(harbor: Export, aggregate: str) -> None:
    harbor.add(grade={**GRADE, "aggregate": aggregate})
    assert harbor.run() == 0
    (harbor.sandbox / "share.txt").write_text("0.5")
    (harbor.sandbox / "deep").mkdir()
    (harbor.sandbox / "deep/checks").write_text("of the agent")
    reward = harbor.reward("graded")
    (task,) = load_tasks(harbor.source / "a.task.yaml")
    assert task.grade is not None
    # The number's file is removed before the command runs, because it is a result.
    files = {"values.json": b'{"mean": [1.0, 2.02], "more": 1}', "out.txt": b"loss 0.5\nname abc"}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    run = CommandRun(exit_code=3, output=(harbor.source / "hidden.txt").read_text())
    values = values_of(task.grade, run, read)
    assert [value.score for value in values] == [0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0]
    assert reward == pytest.approx(AGGREGATIONS[aggregate](values))
    assert (harbor.sandbox / "deep/checks/a.py").is_file()


def test_a_grader_that_does_not_end_gets_nothing(harbor: Export) -> None:
    harbor.add(grade={**GRADE, "command": "sleep 60", "timeout": 0.2})
    harbor.run()
    assert harbor.reward("graded") == 0


@pytest.mark.parametrize(("where", "mode"), [("same", "shared"), ("fresh", "separate")])
def test_the_place_of_the_grader_is_the_mode_of_the_verifier(harbor: Export, where: str, mode: str) -> None:
    collect = {"collect": ["in.txt", "/logs/x"], "sandbox": {"memory": "2g"}} if where == "fresh" else {}
    grade = {key: value for key, value in GRADE.items() if key != "collect"}
    harbor.add(grade={**grade, **collect, "where": where}, sandbox={"cpus": 1})
    harbor.run()
    settings = harbor.settings()
    assert (settings["verifier"]["environment_mode"], settings["verifier"]["timeout_sec"]) == (mode, 90)
    assert settings["artifacts"] == (["/workspace/in.txt", "/logs/x"] if collect else [])
    assert (harbor.output / "a/tests/Dockerfile").exists() == (where == "fresh")
    own = settings["verifier"].get("environment")
    assert own == ({"cpus": 1, "memory_mb": 2048, "network_mode": "no-network"} if collect else None)
    assert (harbor.output / "a/instruction.md").read_text() == "What is it?"


def test_what_has_no_form_is_left_out_by_name(harbor: Export, capsys: pytest.CaptureFixture[str]) -> None:
    harbor.add("good", answer=1, landmarks=["x"], entrypoint={"path": "run.py"})
    harbor.add("masked", answer=1, pre_execute=["x = 1"])
    harbor.add("unknown", answer_unknown=True)
    assert harbor.run() == 1
    lines = [line.replace(f"{harbor.source}/", "") for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "good.task.yaml:1: good: Harbor has no landmarks and no entrypoint",
        "masked.task.yaml:1: masked: left out: it has pre-executed steps",
        "unknown.task.yaml:1: unknown: left out: it has neither an answer nor a grader",
        lines[-1],
    ]
    assert lines[-1].startswith(f"1 task in {harbor.output} (files: ")
    assert lines[-1].endswith("; 2 left out")
    assert sorted(path.name for path in harbor.output.iterdir()) == ["good", "harbor.export.json"]
