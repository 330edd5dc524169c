"""Agents and hooks that misbehave: whose failure it is, and that the trial is stored."""

import pytest

from tests.integration.conftest import Project

AGENT = """
import sys, time
import pytest

class Agent:
    def run(self, trial):
        trial.execute("print('begun')")
        globals()[trial.task.id](trial)
"""


def set_agent(project: Project, codes: dict[str, str], **limits: float) -> None:
    """An agent that runs the code of a task's name, and a task for each."""
    functions = [f"\ndef {name}(trial):\n    {code}\n" for name, code in codes.items()]
    (project.path / "agent.py").write_text(AGENT + "".join(functions))
    for name in codes:
        project.add_task(name, landmarks=["begun"], limits=limits)


RAISES = {
    "surrogate": r"raise ValueError('half a pair \ud83d')",
    "escapes": r"raise ValueError('\x1b]0;owned\x07\x1b[2J')",
    "exits": "sys.exit(0)",
    "skips": "pytest.skip('too hard')",
    "fails": "pytest.fail('no')",
    "base": "raise BaseException",
}


def test_every_exception_of_an_agent_is_its_own_failure(project: Project) -> None:
    set_agent(project, RAISES)
    result = project.run()
    result.assert_outcomes(failed=len(RAISES))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    rows = project.results.values()
    assert [(row["stop_reason"], row["error"], row["metrics"]["landmarks"]) for row in rows] == [
        ("agent_error", None, 1.0)
    ] * len(RAISES)
    assert "\x1b" not in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["return", "raise ValueError", "trial.execute('1')"])
def test_a_fork_that_leaves_run_does_not_go_on_with_the_session(project: Project, ends: str) -> None:
    fork = f"import os\n    child = os.fork()\n    if not child:\n        {ends}\n        return"
    set_agent(
        project, {"a": f"{fork}\n    os.waitpid(child, 0)\n    trial.submit(42)", "b": "trial.submit(42)"}
    )
    result = project.run_in_subprocess()
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("results: ") == 1
    assert [row["solved"] for row in project.results.values()] == [True, True]


@pytest.mark.parametrize("code", ["raise ValueError('no map')", "sys.exit(3)"])
def test_an_agent_that_cannot_be_made_has_failed(project: Project, code: str) -> None:
    set_agent(project, {"t": "pass"})
    with (project.path / "agent.py").open("a") as file:
        file.write(f"def make(agent):\n    {code}\n\nAgent.__init__ = make\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    (row,) = project.results.values()
    assert (row["stop_reason"], row["error"], row["steps"]) == ("agent_error", None, 0)
    result.stdout.fnmatch_lines(["missed  t: *agent.py:*"])


@pytest.mark.slow
def test_a_trial_that_pytest_timeout_ends_is_scored_and_no_error_under_a_gate(project: Project) -> None:
    set_agent(project, {"hangs": "time.sleep(60)", "submits": "trial.submit(42); time.sleep(60)"})
    result = project.run("--timeout=2", "--super-fail-under=0")
    assert (result.ret, result.parseoutcomes()) == (0, {"missed": 1, "passed": 1})
    rows = project.results.values()
    assert {row["id"]: (row["stop_reason"], row["metrics"]["accuracy"], row["error"]) for row in rows} == {
        "hangs": ("timeout", 0.0, None),
        "submits": ("timeout", 1.0, None),
    }


def test_a_trial_that_ends_at_its_wall_limit_is_scored_and_the_next_one_begins(project: Project) -> None:
    set_agent(project, {"hangs": "time.sleep(600)", "submits": "trial.submit(42)"}, wall=1)
    project.run("-n1").assert_outcomes(failed=1, passed=1)
    row = project.results["hangs[1]"]
    told = (row["stop_reason"], row["error"], row["metrics"]["landmarks"], row["steps"])
    assert told == ("wall", None, 1.0, 1)


def test_the_output_that_an_agent_prints_is_captured_by_pytest(project: Project) -> None:
    set_agent(project, {"t": "print('a word of the agent')"})
    project.run().stdout.fnmatch_lines(["*Captured stdout call*", "a word of the agent"])


def test_a_hook_that_raises_is_not_the_agents_failure(project: Project) -> None:
    set_agent(project, {"t": "trial.submit(42)"})
    project.add_to_conftest("def pytest_super_step():\n    raise KeyError('my hook')\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    row = project.results["t[1]"]
    assert (row["stop_reason"], row["error"]) == ("error", "KeyError: 'my hook'")


def test_a_trial_that_a_fixture_skips_leaves_no_folder(project: Project) -> None:
    set_agent(project, {"t": "trial.submit(42)"})
    skip = """
@pytest.fixture(autouse=True)
def choosy(request):
    request.node.open_folder()
    pytest.skip("not today")
"""
    project.add_to_conftest(skip)
    result = project.run()
    result.assert_outcomes(skipped=1)
    assert not list(project.path.glob(".super/runs/latest/trials/t/*"))
