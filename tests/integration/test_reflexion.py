"""Further attempts at a task that was not submitted, with what the model learned from the one before."""

import json
from typing import Any

import pytest

from tests.integration.conftest import FAKE_KERNELS, Project, asked_in, read_lines

# Runs what the model says; `stop` ends without a submission.
AGENT = """
class Agent:
    def run(self, trial):
        while True:
            completion = trial.complete([{"role": "user", "content": trial.task.query}])
            if completion.text == "stop":
                return
            if completion.text.startswith("submit"):
                trial.submit(int(completion.text.removeprefix("submit")))
            trial.execute(completion.text)
"""


@pytest.fixture
def trying(project: Project) -> Project:
    project.pytester.makeconftest(FAKE_KERNELS)
    project.pytester.makepyfile(agent=AGENT)
    return project


def run(project: Project, script: object, *arguments: str, **task: Any) -> dict[str, Any]:
    """The result of the task `a`."""
    project.add_task("a", **task)
    (project.path / "script.json").write_text(json.dumps(script))
    project.run("--super-model=scripted:script.json", *arguments)
    row: dict[str, Any] = project.results["a[1]"]
    return row


def steps_of(project: Project) -> list[dict[str, Any]]:
    return read_lines(project.latest / project.results["a[1]"]["folder"] / "trajectory.jsonl")


def asked(project: Project, id: str = "a") -> list[Any]:
    return [request["messages"] for request in asked_in(project.latest / f"trials/{id}/1.0")]


def test_an_attempt_without_a_submission_is_followed_by_another_with_a_plan(trying: Project) -> None:
    plan = "Well. Plan: compute it. [END] Bye."
    script = ["x = 1; print('half way')", "stop", plan, "print('x' in dir(), 'done')", "submit 42"]
    task = {"landmarks": ["half", "done"], "pre_execute": ["print('ready')"]}
    row = run(trying, script, "--super-attempts=3", **task)
    assert (row["metrics"]["accuracy"], row["metrics"]["landmarks"]) == (1.0, 1.0)
    assert (row["stop_reason"], row["steps"]) == ("submitted", 3)
    steps = steps_of(trying)
    assert [step["number"] for step in steps] == [1, 2, 3, 4, 5]
    assert [step["attempt"] for step in steps] == [1, 1, 2, 2, 2]
    assert [step["origin"] for step in steps] == ["pre_execute", "agent", "pre_execute", "agent", "agent"]
    assert steps[3]["observation"] == "False done\n"
    assert [found["step"] for found in row["landmarks_found"]] == [2, 4]
    reflection, after = asked(trying)[2], asked(trying)[3]
    assert "half way" in reflection[1]["content"]
    assert after[0]["content"] == "do it\n\nPlan, from an attempt that failed:\ncompute it."


def test_a_submission_ends_all_attempts_and_no_more_are_made_than_asked_for(trying: Project) -> None:
    trying.add_task("wrong")
    plans = ["stop", "Plan: a", "stop", "Plan: b", "stop", "submit 42"]
    row = run(trying, {"a": plans, "wrong": ["submit 0", "submit 42"]}, "--super-attempts=3")
    wrong = trying.results["wrong[1]"]
    assert (wrong["metrics"]["accuracy"], wrong["stop_reason"]) == (0.0, "submitted")
    assert (row["metrics"]["accuracy"], row["stop_reason"]) == (0.0, "returned")
    assert len(asked(trying)) == 5


def test_each_attempt_has_its_share_of_the_tokens_and_all_have_the_compute_time(trying: Project) -> None:
    used = {"usage": {"prompt_tokens": 300, "completion_tokens": 1}}
    look = {"text": "sleep(40)", **used}
    script = [look, look, look, {"text": "Plan: p", **used}, look, look]
    row = run(trying, script, "--super-attempts=2", limits={"tokens": 1800, "compute": 100})
    assert [step["attempt"] for step in steps_of(trying)] == [1, 1, 2]
    assert (row["stop_reason"], row["prompt_tokens"]) == ("compute", 1500)
    assert row["compute_seconds"] == 100


def test_a_long_attempt_is_reflected_on_by_later_steps_and_a_refusal_changes_nothing(trying: Project) -> None:
    too_long = {"error": {"status": 413, "message": "too long"}}
    script = ["print('first')", "print('second')", too_long, too_long, "Plan: p [END]", "submit 42"]
    refused = {"error": {"status": 400, "code": "content_policy_violation"}}
    trying.add_task("refused")
    run(trying, {"a": script, "refused": ["stop", refused, "submit 42"]}, "--super-attempts=2")
    ends = [(row["metrics"]["accuracy"], row["stop_reason"]) for row in trying.results.values()]
    assert ends == [(1.0, "submitted")] * 2
    shown = [messages[1]["content"] for messages in asked(trying)[3:5]]
    assert [("first" in text, "second" in text) for text in shown] == [(True, True), (False, True)]
    assert asked(trying, "refused")[2][0]["content"] == "do it"
