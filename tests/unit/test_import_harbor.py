"""Folders of tasks in the form of Harbor as task files: what settings become, and what is reported."""

import base64
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_super import cli
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import Task
from tests.harbor_tasks import SETTINGS, add_task


class Import:
    """A folder of Harbor tasks, and what an import makes of it without an engine."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.source, self.output = folder / "given", folder / "made"
        self._capsys = capsys

    def run(self, *options: str) -> tuple[int, list[str]]:
        """The exit status and the printed lines."""
        status = cli.main(
            ["import", "harbor", str(self.source), "--output", str(self.output), "--no-build", *options]
        )
        printed = self._capsys.readouterr()
        return status, [*printed.out.splitlines(), *printed.err.splitlines()]

    def task(self, settings: str = SETTINGS, **options: Any) -> Task:
        add_task(self.source / "mean", settings, **options)
        assert self.run()[0] == 0
        (task,) = load_tasks(self.output / "mean.task.yaml")
        return task

    def remarks(self) -> list[str]:
        """What is said about tasks, without the folder's path and the last two lines."""
        _, lines = self.run()
        return [line.replace(f"{self.source}/", "").strip() for line in lines[:-2]]


@pytest.fixture
def harbor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Import:
    return Import(tmp_path, capsys)


def test_a_folder_becomes_a_task_file_with_a_grader(harbor: Import) -> None:
    task = harbor.task()
    assert (task.id, task.set, task.category, task.tags) == ("mean", "expert", "data-science", ["arithmetic"])
    assert task.query == "Write the mean of the numbers in `numbers.txt` into `/app/mean.txt`.\n"
    assert (task.limits.compute, task.limits.wall) == (120, 120)
    spec = task.sandbox
    assert (spec.cpus, spec.memory, spec.network, spec.disk) == (1, 512 * 2**20, False, None)
    assert str(spec.image).startswith("pytest-super-harbor:")
    assert [step.cell for step in task.pre_execute] == ["%cd /app"]
    assert task.metadata["harbor"]["metadata"]["created"] == "2026-11-01"
    grade = task.grade
    assert grade is not None
    assert (grade.where, grade.timeout, grade.files) == ("same", 60, {"/tests": ".tests/mean"})
    assert "export WANTED=2.5 && cd /app && bash /tests/test.sh" in grade.command
    assert (harbor.output / ".tests/mean/check.py").is_file()
    assert not list(harbor.output.rglob("solve.sh"))


def test_what_the_format_does_not_know_is_ignored_and_an_import_can_be_repeated(harbor: Import) -> None:
    harbor.task()
    assert harbor.remarks() == []
    assert harbor.run()[1] == [
        f"1 task in {harbor.output} (files: nothing changed)",
        "the images of the tasks were not built",
    ]


def test_old_spellings_and_defaults_are_read(harbor: Import) -> None:
    task = harbor.task('version = "1.0"\n[environment]\nmemory = "2G"\nstorage = "10GB"\n')
    assert (task.sandbox.memory, task.sandbox.disk) == (2 * 2**30, 10 * 2**30)
    assert (task.sandbox.network, task.limits.wall, task.grade and task.grade.timeout) == (True, 600, 600)


SEPARATE = SETTINGS.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')


def test_a_separate_verifier_gets_the_artifacts_in_a_fresh_sandbox(harbor: Import) -> None:
    grade = harbor.task(SEPARATE).grade
    assert grade is not None
    assert (grade.where, grade.collect) == ("fresh", ["/app/mean.txt", "/logs/artifacts"])
    assert (grade.files, grade.sandbox) == ({"/tests": ".tests/mean"}, None)


def test_a_verifiers_own_environment_means_a_separate_one(harbor: Import) -> None:
    settings = (
        f'{SETTINGS}\n[verifier.environment]\nmemory_mb = 2048\nnetwork_mode = "public"\nworkdir = "/tests"\n'
    )
    add_task(harbor.source / "mean", settings)
    (harbor.source / "mean/tests/Dockerfile").write_text("FROM x\nWORKDIR /tests\nCOPY . /tests/\n")
    task = harbor.task(settings)
    assert task.grade is not None
    assert task.grade.sandbox is not None
    spec = task.grade.sandbox
    assert (spec.memory, spec.network) == (2 * 2**30, True)
    assert str(spec.image).startswith("pytest-super-harbor:")
    assert spec.image != task.sandbox.image
    # Its image has the tests, maybe with what its build has added.
    assert (task.grade.files, list(harbor.output.glob(".tests/mean"))) == ({}, [])
    assert "cd /tests && bash /tests/test.sh" in task.grade.command


def test_the_files_of_the_solution_are_written_by_its_cells(harbor: Import) -> None:
    add_task(harbor.source / "mean")
    (harbor.source / "mean/solution/data").mkdir()
    (harbor.source / "mean/solution/data/a.bin").write_bytes(b"\xff\x00")
    solution = harbor.task(f'{SETTINGS}[solution.env]\nMODE = "a b"\n').solution
    assert solution is not None
    assert solution.cells is not None
    folder, binary, script, run = solution.cells
    assert folder == "!mkdir -p /solution"
    assert "'/solution/data/a.bin'" in binary
    assert base64.b64encode(b"\xff\x00").decode() in binary
    assert script.startswith("%%writefile /solution/solve.sh\n#!/bin/bash\nawk")
    # A server that it leaves running does not keep the cell from ending.
    assert run.startswith("%%sh\nMODE='a b' bash /solution/solve.sh > /solution/output.txt 2>&1\n")


@pytest.mark.parametrize(
    ("written", "reward"),
    [
        ({"txt": ".75\n"}, 0.75),
        ({"txt": "1", "json": '{"reward": 0.25, "speed": 1}'}, 0.25),
        ({"json": '{"fast": 0.5, "right": true}'}, 0.75),
        ({"json": '{"reward": 1, "note": "ok"}'}, "reward.json does not have finite numbers alone: "),
        ({"txt": "1", "json": ""}, "reward.json does not have finite numbers alone: ''"),
        ({"txt": "nan"}, "reward.txt does not have finite numbers alone: 'nan'"),
        ({"txt": "20"}, "the reward 20.0 is over 1: let test.sh divide it by the largest that there is"),
        ({}, "there is no reward"),
    ],
)
def test_rewards_are_read_as_harbor_reads_them(
    harbor: Import, tmp_path: Path, written: dict[str, str], reward: float | str
) -> None:
    test = "".join(f"printf %s {shlex.quote(text)} > $LOGS/reward.{name}\n" for name, text in written.items())
    grade = harbor.task(test=test).grade
    assert grade is not None
    places = {
        "/logs/verifier": f"{tmp_path}/logs",
        "/tests": f"{harbor.source}/mean/tests",
        "/app": f"{tmp_path}",
    }
    command = grade.command
    for given, place in places.items():
        command = command.replace(given, place)
    ran = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "LOGS": f"{tmp_path}/logs"}, capture_output=True, text=True
    )
    if isinstance(reward, str):
        assert reward in ran.stderr.splitlines()[-1]
        assert not (tmp_path / "logs/reward.json").exists()
    else:
        assert json.loads((tmp_path / "logs/reward.json").read_text())["reward"] == reward


def test_what_changes_the_meaning_is_reported_with_file_and_key(harbor: Import) -> None:
    settings = """\
artifacts = ["/a", { source = "/b", exclude = ["c"] }]
[agent]
user = "someone"
[verifier]
environment_mode = "separate"
user = "root"
env = { KEY = "${HOST_KEY}", PLAIN = "1" }
[[verifier.collect]]
command = "true"
[environment]
network_mode = "allowlist"
healthcheck = { command = "true" }
[solution.env]
TOKEN = "${TOKEN}"
"""
    add_task(harbor.source / "mean", settings)
    assert harbor.remarks() == [
        "mean: without its image, its WORKDIR is not known: cells and test.sh start in /workspace",
        "mean/task.toml: `verifier.collect` is not used",
        "mean/task.toml: `verifier.env.KEY` is not set, because its value comes from the machine",
        "mean/task.toml: `artifacts` of /b: exclude is not used",
        "mean/task.toml: `environment.healthcheck` is not used: sandboxes do not have it",
        "mean/task.toml: `environment.network_mode` is allowlist, which is not offered: "
        "the whole network is there",
        "mean/task.toml: `solution.env.TOKEN` is not set, because its value comes from the machine",
        "mean/task.toml: `agent.user` is not used",
    ]


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("environment/docker-compose.yaml", "", "{}/environment/docker-compose.yaml: several containers"),
        ("task.toml", '\n[[steps]]\nname = "a"\n', "{}/task.toml: `steps` divides the task"),
        (
            "task.toml",
            '[[environment.mcp_servers]]\nname = "a"\n',
            "{}/task.toml: `environment.mcp_servers` names hosted tools",
        ),
        ("task.toml", '[environment]\nos = "windows"\n', "{}/task.toml: `environment.os` is windows"),
        ("task.toml", "[agent]\ntimeout_sec = 'x'\n", "{}/task.toml: `agent.timeout_sec` has a value of"),
        ("task.toml", "= 1", "{}/task.toml: cannot be read: "),
        ("task.toml", "[environment]\ncpus = -1\n", "sandbox.cpus"),
        ("instruction.md", None, "{}: there is no instruction.md"),
        ("tests/test.sh", None, "{}: there is no tests/test.sh"),
        ("environment/Dockerfile", None, "{}: there is neither environment/Dockerfile nor a docker_image"),
    ],
)
def test_a_task_that_cannot_be_used_is_left_out_by_name(
    harbor: Import, file: str, text: str | None, reason: str
) -> None:
    add_task(harbor.source / "good")
    bad = add_task(harbor.source / "sub" / "bad")
    (bad / file).unlink(missing_ok=True)
    if text is not None:
        (bad / file).write_text(text)
    status, lines = harbor.run()
    assert (status, lines[0]) == (1, f"{bad}: left out")
    assert reason.format(bad) in lines[1]
    assert lines[-2] == f"1 task in {harbor.output} (files: 4 new); 1 left out"
    assert [path.name for path in harbor.output.glob("*.yaml")] == ["good.task.yaml"]


def test_a_folder_without_a_task_that_can_be_used_is_an_error(harbor: Import) -> None:
    harbor.source.mkdir()
    assert harbor.run() == (1, [f"pytest-super: {harbor.source}: there is no task.toml in it"])
