"""The wheel: who has only installed it has all that a newcomer needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.conftest import Project

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--quiet", f"--wheel-dir={folder}")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_shipped_tasks(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in (ROOT / "pytest_super").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    tasks = [path for path in (ROOT / "tasks").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    folder = "pytest_super/authoring/starter"
    shipped = {f"{folder}/{path.relative_to(ROOT).as_posix()}" for path in tasks}
    assert names >= shipped | {path.relative_to(ROOT).as_posix() for path in files}
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


@pytest.mark.slow
def test_forked_workers_of_an_installed_wheel_give_no_warning(
    wheel: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = project.path / "installed"
    options = ("--no-deps", "--quiet", f"--target={installed}")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    project.add_task("right")
    done = project.run_in_subprocess("-n4", "-W", "error")
    assert done.ret == pytest.ExitCode.OK
    done.assert_outcomes(passed=1)


@pytest.mark.long
def test_who_only_installed_the_wheel_runs_the_starter_tasks(wheel: Path, tmp_path: Path) -> None:
    programs, project = tmp_path / "venv/bin", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([programs / "pip", "install", "--quiet", f"{wheel}[tasks]"], check=True)
    project.mkdir()
    subprocess.run([programs / "pytest-super", "init", "--tasks"], cwd=project, check=True)
    command = [
        str(programs / "pytest"),
        "--super-agent=gold",
        "--super-sandbox=local",
        "-k",
        "mord or percolation",
    ]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert "5 passed" in done.stdout, done.stdout
