"""The wheel: who has only installed it has all that a newcomer needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_holds_tasks_schemas_and_recipe(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {f"pytest_super/authoring/starter/tasks/{path.name}" for path in (ROOT / "tasks").iterdir()}
    assert names >= shipped | {
        "pytest_super/py.typed",
        "pytest_super/tasks/task.schema.json",
        "pytest_super/report/junit.xsd",
        "pytest_super/authoring/starter/conftest.py.txt",
        "pytest_super/authoring/starter/agent.yml",
        "pytest_super/kernel/providers/docker/image/Dockerfile",
        "pytest_super/kernel/providers/docker/image/requirements.txt",
        "pytest_super/kernel/providers/docker/image/super/Dockerfile",
        "pytest_super/agents/prompts/react.md",
        "pytest_super/agents/prompts/react-super.md",
        "pytest_super/agents/prompts/reflection.md",
        "pytest_super/agents/prompts/swe-agent.md",
        "pytest_super/agents/prompts/swe-agent-instance.md",
    }
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.slow
@pytest.mark.network
def test_who_only_installed_the_wheel_runs_the_starter_tasks(tmp_path: Path) -> None:
    venv, project = tmp_path / "venv", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([venv / "bin/pip", "install", "--quiet", f"{ROOT}[tasks]"], check=True)
    project.mkdir()
    subprocess.run([venv / "bin/pytest-super", "init"], cwd=project, check=True)
    command = [
        str(venv / "bin/pytest"),
        "--super-agent=gold",
        "--super-sandbox=local",
        "-k",
        "mord",
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert "4 passed" in done.stdout, done.stdout
