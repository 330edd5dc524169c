"""A stored run has the same names wherever one is named."""

import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from pytest_super.cli import main
from tests.integration.conftest import FAKE_KERNELS, Project
from tests.stored import a_result, a_run, add_trial

ID = "20261123-101500-ab12"
NAMES = [ID, "latest", f".super/runs/{ID}/results.jsonl"]
AGENT = """
class Agent:
    def run(self, trial):
        trial.submit(42)
"""


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run."""
    monkeypatch.chdir(tmp_path)
    run = a_run(tmp_path / ".super", ID)
    add_trial(run, a_result("mean"))
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("stored")
def test_commands_know_a_run_by_each_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", name, name]) == 0
    assert main(["baseline", "update", name, "--file=b.json"]) == 0
    assert main(["compare", "b.json", name]) == 0
    assert main(["why", name]) == 0
    assert main(["export", name, "--format=csv"]) == 0
    assert f"{ID} has no unsolved trial" in capsys.readouterr().out
    assert main(["fork", name, "mean", "--step=1"]) == 1
    assert main(["rescore", name, "--write"]) == 1
    assert "there is no run" not in capsys.readouterr().err


@pytest.mark.usefixtures("stored")
def test_what_names_no_run_has_one_message_wherever_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    told = "there is no run other: name the id of a run in .super/runs, latest, or the path of a run"
    for command in (["compare", "latest"], ["baseline", "update"], ["why"], ["view"]):
        assert main([*command, "other"]) == 1
        assert capsys.readouterr().err == f"pytest-super: {told}\n"


def test_a_run_is_compared_with_the_one_that_was_the_latest_before_it(pytester: pytest.Pytester) -> None:
    # A fixture of the project, such as that of fake kernels, would keep trials from being reused.
    project = Project(pytester, conftest="", agent=AGENT)
    project.add_task("a")
    project.run("--super-epochs=2")
    first = project.latest.resolve().name
    # The controller says which run is the latest, and its workers know no other.
    options = ("--super-epochs=2", "-n1")
    again = project.run(*options, "--super-baseline=latest", "--super-resume=latest")
    again.stdout.fnmatch_lines([f"*against {first}: *", f"resume: 2 *reused from {first}*"])
    # Nothing here needs a real kernel.
    project.write("conftest.py", FAKE_KERNELS)
    project.run(*options, f"--super-trajectory={first}", agent="replay").assert_outcomes(passed=2)


# Finds nothing that an installation without extras lacks.
BARE = """
import sys

EXTRAS = {"huggingface_hub", "mcp", "numpy", "pandas", "pypdf", "scipy"}

class Bare:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in EXTRAS else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Bare, sys.meta_path)
from pytest_super.cli import main
sys.exit(main(sys.argv[1:]))
"""
TELLS = {
    ("compare", ID, ID): "pytest-super[gate]",
    ("baseline", "update", ID): "pytest-super[gate]",
    ("import", "super", "--set=expert"): "pytest-super[super]",
}
WORKS = [
    ("runs",),
    ("why", ID),
    ("rescore", ID),
    ("export", ID, "--format=csv"),
    ("export", ID, "--format=inspect"),
    ("init", "new"),
    ("validate", "new/tasks"),
    ("stats", "new/tasks"),
    ("schema",),
]


def bare(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BARE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.usefixtures("stored")
def test_without_extras_commands_work_or_say_what_to_install() -> None:
    for words in WORKS:
        _, told = (ran := bare(*words)).communicate()
        assert "Traceback" not in told
        assert ran.returncode == (1 if words[0] == "rescore" else 0), told
    for words, extra in TELLS.items():
        _, told = (ran := bare(*words)).communicate()
        assert (ran.returncode, told.count("\n")) == (1, 1), told
        assert extra in told
    with bare("view") as viewing:
        assert viewing.stdout is not None
        address = viewing.stdout.readline().partition(" ")[0]
        assert f"{ID}" in urlopen(address).read().decode()
        viewing.terminate()
