"""A trial from its fixtures to its result: run, score, store, and fail the item if it is not solved."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.reflexion import Reflecting
from pytest_super.errors import InfrastructureError
from pytest_super.metrics.landmarks import LandmarkMatcher
from pytest_super.report.notebook import write_notebook
from pytest_super.report.text import describe, words_of
from pytest_super.session.item import ISOLATED, PREFIX, PROVIDED, RESULT, Unsolved
from pytest_super.session.outcome import stop_if_final
from pytest_super.session.run import RUN
from pytest_super.snapshots.prefix import Prefix
from pytest_super.store.trajectory import now
from pytest_super.tasks.public_task import public_part
from pytest_super.trial.agent_run import run_agent
from pytest_super.trial.score import SCORERS, Evidence
from pytest_super.trial.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_super.kernel.client import Kernel
    from pytest_super.model.completion import Model
    from pytest_super.session.item import TaskItem
    from pytest_super.store.results import TrialResult
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.trial import Agent


def conduct(
    item: TaskItem,
    task: Task,
    agent: Agent,
    budget: Budget,
    model: Model | None,
    kernel: Kernel,
    make_kernel: Callable[[], Kernel],
) -> None:
    """Run the trial of `item`; when this returns or raises, its result is stored as far as the disk allows.

    Raises Unsolved, or what ended the trial from outside.
    """
    conductor = Conductor(item, task, budget, model, kernel)
    cause = conductor.run(agent, make_kernel)
    try:
        result = conductor.result(cause)
        conductor.store(result)
        item.ihook.pytest_super_trial_finished(item=item, result=result)
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        cause = cause or failure(error)
        result = conductor.result(cause)
        with suppress(InfrastructureError):
            conductor.store(result)
    item.stash[RESULT] = result
    stop_if_final(item, cause)
    if cause is not None:
        raise cause
    if not result.solved:
        raise Unsolved(describe(result))


# How long a trial's end waits for calls of its model whose client has left.
UNDER_WAY_SECONDS = 30.0


class Conductor:
    """Runs one trial and turns what it left into the result, on disk when it is returned."""

    def __init__(
        self, item: TaskItem, task: Task, budget: Budget, model: Model | None, kernel: Kernel
    ) -> None:
        self.item = item
        self.folder = item.folder
        self.task = task
        self.budget = budget
        self.landmarks = LandmarkMatcher(task.landmarks)
        self.stop_reason = "interrupted"
        self.started, self.began = now(), monotonic()
        self.trial = self.new_trial(model, kernel)

    def record(self, step: Any) -> None:
        self.folder.write_step(step)
        self.item.ihook.pytest_super_step(item=self.item, step=step)

    def new_trial(self, model: Model | None, kernel: Kernel, before: Sequence[Step] = ()) -> Trial:
        return Trial(
            public_part(self.task, self.item.stash.get(PROVIDED, None)),
            kernel=kernel,
            budget=self.budget,
            landmarks=self.landmarks,
            record=self.record,
            model=model,
            before=before,
        )

    def run(self, agent: Agent, make_kernel: Callable[[], Kernel]) -> BaseException | None:
        """Run the trial to its end; returns what ended it from outside, to be raised when all is stored."""
        attempts = self.item.config.stash[RUN].settings.attempts
        failed: list[Step] = []
        try:
            self.attempt(agent, 1 / attempts)
            for number in range(2, attempts + 1):
                if not self.may_try_again():
                    break
                self.budget.stop_metering()
                failed = self.trial.history or failed
                self.trial = self.new_trial(self.trial.model, make_kernel(), self.trial.all_steps)
                self.attempt(Reflecting(agent, failed), number / attempts)
        except BaseException as error:
            if not is_timeout(error):
                return error
            self.stop_reason = "timeout"
        return None

    def attempt(self, agent: Agent, portion: float) -> None:
        """One attempt at the task, with what it may have used of the tokens when it ends."""
        kernel = self.trial.kernel
        self.budget.allow(portion)
        self.run_prefix(kernel)
        self.budget.start_metering(lambda: kernel.busy_seconds)
        try:
            self.stop_reason = run_agent(agent, self.trial, is_from_outside)
        except BaseException as error:
            self.take_books(0.0 if is_from_outside(error) else UNDER_WAY_SECONDS)
            raise
        # The call that took the last of the wall time may go on for long.
        self.take_books(0.0 if self.budget.spent() == "wall" else UNDER_WAY_SECONDS)

    def take_books(self, timeout: float) -> None:
        """Charge what the trial was not told of: calls whose client has left, answers that were broken."""
        booked_usage = getattr(self.trial.model, "booked_usage", None)
        if booked_usage is not None and (usage := booked_usage(timeout)) is not None:
            self.budget.take_books(usage)

    def may_try_again(self) -> bool:
        self.budget.allow(1.0)
        return not self.trial.submitted and self.budget.spent() is None

    def run_prefix(self, kernel: Kernel) -> None:
        """Raises InfrastructureError: the agent has done nothing yet."""
        try:
            for step in self.prefix().steps(kernel):
                self.trial.add_pre_executed(step)
        except pytest.fail.Exception as error:
            raise InfrastructureError(f"the pre-executed steps did not end in time: {error}") from error

    def prefix(self) -> Prefix:
        """That of the kernel; the whole task's where a project's own fixture has made it."""
        return self.item.stash.get(PREFIX, None) or Prefix(self.task)

    def result(self, cause: BaseException | None) -> TrialResult:
        """The score of what the trial left; none when the infrastructure failed."""
        self.landmarks.end_cell()
        error = error_of(cause)
        facts = self.spent() if error else self.spent() | self.scored()
        result = replace(
            self.folder.start,
            isolated=self.item.stash.get(ISOLATED, False),
            stop_reason="error" if isinstance(cause, Exception) else self.stop_reason,
            error=error,
            agent_error=self.trial.error,
            submitted=self.trial.submitted,
            started=self.started,
            **facts,
        )
        return replace(result, kept=self.kept(result))

    def store(self, result: TrialResult) -> None:
        """Raises InfrastructureError."""
        self.folder.write_result(result)
        write_notebook(self.folder.path, self.task, self.trial.all_steps)
        self.folder.close()

    def kept(self, result: TrialResult) -> str | None:
        """Keep the sandbox where --super-keep asks for it: what to type to enter it, or why it is lost."""
        keep = self.item.config.stash[RUN].settings.keep
        if keep == "never" or (keep == "failed" and result.solved):
            return None
        try:
            return self.trial.kernel.keep()
        except InfrastructureError as error:
            return f"not kept: {error}"

    def spent(self) -> dict[str, Any]:
        budget = self.budget
        return {
            "compute_seconds": round(budget.compute_seconds, 3),
            "model_seconds": round(budget.model_seconds, 3),
            "wall_seconds": round(monotonic() - self.began, 3),
            "prompt_tokens": budget.prompt_tokens,
            "completion_tokens": budget.completion_tokens,
            "cost_usd": budget.cost_usd,
            "steps": sum(step.origin == "agent" for step in self.trial.all_steps),
        }

    def scored(self) -> dict[str, Any]:
        evidence = Evidence(
            steps=self.trial.all_steps,
            submission=self.trial.submission,
            submitted=self.trial.submitted,
            landmarks=self.landmarks,
            repository=self.item.stash.get(PROVIDED, None),
        )
        score = SCORERS[self.item.config.stash[RUN].settings.scoring](self.task, evidence)
        added = self.item.ihook.pytest_super_score(item=self.item, task=self.task, evidence=evidence)
        return {
            "accuracy": score.accuracy,
            "landmarks": score.landmarks,
            "landmarks_found": [asdict(landmark) for landmark in self.landmarks.landmarks],
            "script_executed": score.script_executed,
            "solved": score.solves(self.task),
            "metrics": merged(added),
        }


def is_timeout(error: BaseException) -> bool:
    """Whether it comes from pytest-timeout's signal method, which fails the test in its words."""
    return isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout")


def is_from_outside(error: BaseException) -> bool:
    """Whether it ends more than the agent that it came through."""
    return isinstance(error, KeyboardInterrupt) or is_timeout(error)


def failure(error: BaseException) -> Exception:
    """What failed when the trial was over; a verdict on it is not a hook's to give."""
    return error if isinstance(error, Exception) else InfrastructureError(words_of(error))


def error_of(cause: BaseException | None) -> str | None:
    """Why the trial is not valid."""
    if cause is None:
        return None
    words = words_of(cause)
    return words if isinstance(cause, Exception) else f"interrupted by {words}"


def merged(added: Iterable[Mapping[str, float | None] | None]) -> dict[str, float | None]:
    return {name: value for metrics in added if metrics for name, value in metrics.items()}
