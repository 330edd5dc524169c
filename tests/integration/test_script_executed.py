"""Whether an agent ran the entrypoint: what the sandbox saw, in results and trajectories."""

import re
import sys
from typing import Any

import pytest

from tests.integration.conftest import Project, read_lines

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")

WORK = "import time\n\ntime.sleep(0.8)\nprint('trained')\n"
AGENT = """
class Agent:
    def run(self, trial):
        {actions}
        trial.execute("!cd repo/{place} && python train.py")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester, conftest="")


def run(
    project: Project, actions: str, place: str = ".", others: tuple[str, ...] = ()
) -> tuple[float | None, dict[str, Any]]:
    """The score of an agent that runs the script after these actions, and the process in its result.

    The script is in the folder `place` of the repository, and the same is in the folders `others`.
    """
    for subfolder in (place, *others):
        project.write(f"tasks/repo/{subfolder}/train.py", WORK)
    project.write("agent.py", AGENT.format(actions=actions, place=place))
    entrypoint = {"path": "train.py", "min_seconds": 0.5}
    repository = {"path": "repo", "provide": True}
    project.add_task("a", set="auto", answer=None, entrypoint=entrypoint, repository=repository)
    project.run("tasks")
    [result] = project.rows
    assert result["error"] is None, result["error"]
    steps = read_lines(project.latest / result["folder"] / "trajectory.jsonl")
    if result["entrypoint_process"] is None:
        return result["metrics"]["script_executed"], {}
    process: dict[str, Any] = result["entrypoint_process"]
    observed = [one for step in steps for one in step["processes"] or ()]
    assert process["number"] in [one["number"] for one in observed]
    return result["metrics"]["script_executed"], process


def test_run_is_stored_with_its_process(project: Project) -> None:
    score, process = run(project, "pass")
    assert score == 1.0
    assert process["arguments"][1:] == ["train.py"]
    assert process["files"] == {"1": "repo/train.py"}
    assert (process["status"], process["changed"], process["kept_lines"]) == (0, False, 1.0)
    assert 0.8 <= process["seconds"] < 5


def test_edits_of_the_agent_do_not_make_another_script(project: Project) -> None:
    score, process = run(project, "trial.edit('repo/train.py', '0.8', '0.9')")
    assert (score, process["changed"]) == (1.0, False)


def test_script_that_cells_have_changed_is_marked(project: Project) -> None:
    score, process = run(project, "trial.execute('!echo pass >> repo/train.py')")
    assert (score, process["changed"], process["kept_lines"]) == (1.0, True, 1.0)


def test_arguments_of_any_bytes_are_stored(project: Project) -> None:
    project.write(
        "tasks/repo/run.py", "import subprocess\nsubprocess.run(['python', 'train.py', b'\\xff'])\n"
    )
    score, process = run(project, "trial.execute('!cd repo && python run.py'); return")
    assert (score, process["arguments"][2:]) == (1.0, [r"\udcff"])


@pytest.mark.parametrize(
    "after", ["pass", "trial.edit('repo/train.py', '0.7', '0.8')"], ids=["cell", "edit too"]
)
def test_script_of_which_little_is_left_does_not_count(project: Project, after: str) -> None:
    overwrite = "trial.execute('!echo \\'__import__(\"time\").sleep(0.7)\\' > repo/train.py')"
    score, process = run(project, f"{overwrite}; {after}")
    assert (score, process["changed"], process["kept_lines"]) == (0.0, True, 0.0)


def test_a_bare_name_is_the_only_file_of_that_name_in_a_provided_repository(project: Project) -> None:
    # A copy that the agent makes does not matter.
    score, process = run(project, "trial.execute('!mkdir repo/b && cp repo/a/train.py repo/b/')", place="a")
    assert (score, process["script"], process["changed"]) == (1.0, "repo/a/train.py", False)


def test_a_bare_name_of_several_files_is_none_of_them_but_that_at_the_root(project: Project) -> None:
    assert run(project, "pass", place="a", others=("b",)) == (0.0, {})


def test_the_line_of_a_trial_says_which_file_the_script_was(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = "trial.edit('repo/a/train.py', 'print(', 'raise SystemExit(3) or (')"
    assert run(project, edit, place="a")[0] == 0.0
    assert re.search(r"train\.py ran as repo/a/train\.py for \d\.\d s, exit code 3", capsys.readouterr().out)
