"""Further attempts after one without a submission (Reflexion: Shinn et al., 2023; SUPER, section 4.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_super.agents.history import history_text
from pytest_super.agents.prompts import read_prompt

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from pytest_super.model.completion import Message
    from pytest_super.public_task import PublicTask
    from pytest_super.trajectory import Step
    from pytest_super.trial import Agent, Trial

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
        plan = plan_in(trial.complete(messages(trial.task, self.failed), **DECODING).text)
        query = f"{trial.task.query}\n\nPlan, from an attempt that failed:\n{plan}"
        trial.task = replace(trial.task, query=query)
        return self.agent.run(trial)


def messages(task: PublicTask, failed: Sequence[Step]) -> list[Message]:
    return [
        {"role": "system", "content": read_prompt("reflection")},
        {"role": "user", "content": f"Task: {task.query}\n\nThe attempt:\n\n{history_text(failed)}"},
    ]


def plan_in(answer: str) -> str:
    """The part between `Plan:` and `[END]`, as far as they are there."""
    _, mark, plan = answer.partition("Plan:")
    return (plan if mark else answer).partition("[END]")[0].strip()
