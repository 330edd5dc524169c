"""Another attempt after one that ended without a submission (Shinn et al., 2023; SUPER, section 4.1)."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from pytest_super.agents.asking import DECODING
from pytest_super.agents.clipped_history import history_text
from pytest_super.agents.prompts import read_prompt
from pytest_super.model.completion import BudgetSpentError, FilteredError, Message
from pytest_super.store.trajectory import Step
from pytest_super.tasks.public_task import PublicTask
from pytest_super.trial.agent_run import Agent
from pytest_super.trial.trial import Trial


class Reflecting:
    """Runs an agent whose query ends with the model's plan, made from the steps of the failed attempt."""

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
    """The model's plan, or "" if it makes none, from as many of the last steps as fit into its window."""
    while True:
        try:
            answer = trial.try_to_complete(messages(trial.task, failed), **DECODING).text
            # The text after `Plan:`, if there is one, up to `[END]`, if there is one.
            _, mark, plan = answer.partition("Plan:")
            return (plan if mark else answer).partition("[END]")[0].strip()
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
    # Without demonstrations, as in the paper.
    return [
        {"role": "system", "content": read_prompt("reflection")},
        {"role": "user", "content": f"Task: {task.query}\n\nThe attempt:\n\n{history_text(failed)}"},
    ]
