"""The action of this repository, next to the page that shows it."""

import os
import re
import shlex
import subprocess
from pathlib import Path

from tests.docker.github import ACTION, OURS, ROOT, jobs


def test_no_script_of_the_action_has_a_value_pasted_into_it() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_page_lists_the_inputs_of_the_action_with_their_defaults() -> None:
    page = (ROOT / "docs/ci.md").read_text()
    listed = dict(re.findall(r"^\| `([\w-]+)` \|(?: `([^`]*)`)? \|", page, re.MULTILINE))
    assert listed == {name: one.get("default", "") for name, one in ACTION["inputs"].items()}


def test_gitlab_runs_the_commands_of_the_action() -> None:
    github, gitlab, _ = jobs()
    (ours,) = [step for step in github["steps"] if step["uses"] == OURS]
    install, build, run = map(shlex.split, gitlab["script"])
    assert install == ["pip", "install", ours["with"]["install"], "pytest-super[gate]"]
    assert build == ["pytest-super", "image", "build"]
    fixed = ["--super-sandbox=docker", "--super-baseline=baseline.json", "--junitxml=report.xml"]
    assert sorted(run) == sorted(["pytest", *fixed, *shlex.split(ours["with"]["options"])])


def test_the_run_ends_with_the_exit_status_of_pytest(tmp_path: Path) -> None:
    (step,) = [one for one in ACTION["runs"]["steps"] if one.get("id") == "run"]
    program = tmp_path / "pytest"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 4\n")
    program.chmod(0o755)
    inputs = {"OPTIONS": "-n 2\n-k 'a or b'", "SANDBOX": "docker", "BASELINE": "none"}
    given = {**inputs, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stdout.splitlines()[3:] == ["-n", "2", "-k", "a or b"]


def test_each_input_is_used_and_nothing_else_is_looked_up() -> None:
    text = (ROOT / "action.yml").read_text()
    steps = ACTION["runs"]["steps"]
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == ACTION["inputs"].keys()
    assert set(re.findall(r"steps\.([\w-]+)", text)) == {step["id"] for step in steps if "id" in step}
