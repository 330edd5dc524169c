"""Further attempts after one without a submission (Reflexion: Shinn et al., 2023; SUPER, section 4.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_super.agents.history import history_text
from pytest_super.agents.prompts import read_prompt
from pytest_super.model.completion import BudgetSpentError, FilteredError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from pytest_super.model.completion import Message
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.public_task import PublicTask
    from pytest_super.trial.trial import Agent, Trial

# Without demonstrations, as in the paper.
DECODING = {"temperature": 0.2, "max_tokens": 1500}


class Reflecting:
    """An agent that starts from a plan, made by the model from the steps of the attempt that failed.

    The plan is added to the query, so that any agent takes it up. The attempt to come pays the call.
    """

    def __init__(self, agent: Agent, failed: Sequence[Step]) -> None:
        self.agent = agent
        self.failed = failed

    def run(self, trial: Trial) -> Coroutine[Any, Any, None] | None:
        plan = make_plan(trial, self.failed)
        if plan:
            query = f"{trial.task.query}\n\nPlan, from an attempt that failed:\n{plan}"
            trial.task = replace(trial.task, query=query)
        return self.agent.run(trial)


def make_plan(trial: Trial, failed: Sequence[Step]) -> str:
    """The model's plan, "" where it gives none. Ends the trial as `Trial.complete` does.

    An attempt that was too long for the model's window is shown by its later steps.
    """
    while True:
        try:
            return plan_in(trial.try_to_complete(messages(trial.task, failed), **DECODING).text)
        except FilteredError:
            return ""
        except BudgetSpentError as spent:
            if spent.limit != "context":
                trial.end(spent.limit)
                return ""
            if len(failed) < 2:
                return ""
            failed = failed[-(len(failed) // 2) :]


def messages(task: PublicTask, failed: Sequence[Step]) -> list[Message]:
    return [
        {"role": "system", "content": read_prompt("reflection")},
        {"role": "user", "content": f"Task: {task.query}\n\nThe attempt:\n\n{history_text(failed)}"},
    ]


def plan_in(answer: str) -> str:
    """The part between `Plan:` and `[END]`, as far as they are there."""
    _, mark, plan = answer.partition("Plan:")
    return (plan if mark else answer).partition("[END]")[0].strip()
