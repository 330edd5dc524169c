"""Agents and hooks that misbehave: whose fault it is, and that nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Project

AGENT = """
import sys, time
import pytest

class Agent:
    def run(self, trial):
        trial.execute("print('begun')")
        {code}
"""


def set_agent(project: Project, code: str) -> None:
    (project.path / "agent.py").write_text(AGENT.format(code=code))
    project.add_task("t", landmarks=["begun"])


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["", "n1"])
@pytest.mark.parametrize(
    "code",
    [
        r"raise ValueError('half a pair \ud83d')",
        r"raise ValueError('\x1b]0;owned\x07\x1b[2J')",
        "sys.exit(0)",
        "pytest.skip('too hard')",
        "pytest.fail('no')",
        "raise BaseException",
    ],
)
def test_whatever_an_agent_raises_is_its_own_failure(
    project: Project, workers: tuple[str, ...], code: str
) -> None:
    set_agent(project, code)
    result = project.run(*workers)
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    row = project.results["t[1]"]
    assert (row["stop_reason"], row["error"], row["landmarks"]) == ("agent_error", None, 1.0)
    assert "\x1b" not in result.stdout.str()


@pytest.mark.parametrize(
    ("code", "outcome", "row"),
    [
        ("time.sleep(60)", {"failed": 1}, ("timeout", 0.0)),
        ("trial.submit(42); time.sleep(60)", {"passed": 1}, ("timeout", 1.0)),
    ],
)
def test_a_trial_that_pytest_timeout_ends_is_scored(
    project: Project, code: str, outcome: dict[str, int], row: tuple[str, float]
) -> None:
    set_agent(project, code)
    assert project.run("--timeout=2").parseoutcomes() == outcome
    stored = project.results["t[1]"]
    assert (stored["stop_reason"], stored["accuracy"]) == row
    assert stored["error"] is None


def test_a_time_out_under_a_gate_is_a_miss(project: Project) -> None:
    set_agent(project, "time.sleep(60)")
    result = project.run("--timeout=2", "--super-fail-under=0")
    assert (result.ret, result.parseoutcomes()) == (0, {"missed": 1})


@pytest.mark.parametrize("hook", ["score", "step"])
def test_a_hook_that_raises_is_not_the_agents_failure(project: Project, hook: str) -> None:
    set_agent(project, "trial.submit(42)")
    conftest = project.path / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}\ndef pytest_super_{hook}():\n    raise KeyError('my hook')\n"
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    row = project.results["t[1]"]
    assert (row["stop_reason"], row["error"]) == ("error", "KeyError: 'my hook'")


def test_an_agent_that_swallows_a_lost_engine_makes_no_miss_of_it(project: Project) -> None:
    set_agent(project, "\n        try: trial.execute('fail_engine()')\n        except Exception: pass")
    project.run().assert_outcomes(errors=1)
    assert project.results["t[1]"]["error"] == "the engine does not answer"


def test_a_trial_that_a_fixture_skips_leaves_nothing(project: Project) -> None:
    set_agent(project, "trial.submit(42)")
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
@pytest.fixture(autouse=True)
def choosy(request):
    request.node.open_folder()
    pytest.skip("not today")
"""
    )
    result = project.run()
    result.assert_outcomes(skipped=1)
    assert not list(project.path.glob(".super/runs/latest/trials/t/*"))


def test_a_run_without_tasks_leaves_no_folder(project: Project) -> None:
    project.add_task("t")
    project.run("-k", "nothing")
    assert not (project.path / ".super").exists()
