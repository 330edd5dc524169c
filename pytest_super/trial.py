"""The trial: one agent on one task in one kernel under one budget, leaving one trajectory."""

from __future__ import annotations

import json
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_super.editing import edit_file
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome, SandboxLostError
from pytest_super.observation import NOTHING_RUNS, STILL_RUNNING, observation_of
from pytest_super.trajectory import Action, Step, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_super.budget import Budget
    from pytest_super.kernel.client import Kernel
    from pytest_super.metrics.landmarks import LandmarkMatcher
    from pytest_super.task import Limits, Task


class TrialEnded(BaseException):
    """The trial is over; every further action of the agent raises it again.

    Not an Exception, so that an agent's `except Exception` around its own faults lets it pass.
    """

    def __init__(self, stop_reason: str) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class Agent(Protocol):
    """What chooses the actions."""

    def run(self, trial: Trial) -> None:
        """Act through `trial` until the task is done; returning ends the trial."""


@dataclass(frozen=True, kw_only=True)
class PublicTask:
    """The part of a task that an agent may know: no answer, no landmarks, no solution."""

    id: str
    set: str
    category: str | None
    query: str
    repository: dict[str, str]
    limits: Limits


def public_part(task: Task) -> PublicTask:
    repository = task.repository.model_dump(exclude_none=True, exclude={"provide"}) if task.repository else {}
    return PublicTask(
        id=task.id,
        set=task.set,
        category=task.category,
        query=task.query,
        repository=repository,
        limits=task.limits,
    )


class Trial:
    """An agent's hands: each method is one step, recorded before it returns.

    `history` holds the steps until now, pre-executed ones included. A method raises TrialEnded when
    the trial is over, and InfrastructureError when the system under it failed.
    """

    def __init__(
        self,
        task: PublicTask,
        *,
        kernel: Kernel,
        budget: Budget,
        landmarks: LandmarkMatcher,
        record: Callable[[Step], None],
    ) -> None:
        self.task = task
        self.kernel = kernel
        self.budget = budget
        self.history: list[Step] = []
        self.submission: Any = None
        self.submitted = False
        self.error: str | None = None
        """Traceback of an agent that raised."""
        self.failure: Exception | None = None
        """What failed under the trial."""
        self._landmarks = landmarks
        self._record = record
        self._ended: str | None = None

    def execute(self, code: str, thought: str = "") -> Step:
        """Run one notebook cell; at the cell's time limit it is left running."""
        action = Action(type="execute", content=code)
        started = self._begin()
        if self.kernel.is_running:
            return self._refuse(action, thought, started, STILL_RUNNING)
        self._landmarks.begin_cell(code, step=len(self.history) + 1)
        with self._failures():
            result = self.kernel.execute(code, timeout=self._patience(), listener=self._landmarks.feed)
        return self._finish(action, thought, started, result)

    def continue_wait(self, thought: str = "") -> Step:
        """Wait once more, up to the cell limit, for the cell that is running."""
        action = Action(type="continue_wait")
        started = self._begin()
        if not self.kernel.is_running:
            return self._refuse(action, thought, started, NOTHING_RUNS)
        with self._failures():
            result = self.kernel.wait(timeout=self._patience())
        return self._finish(action, thought, started, result)

    def interrupt(self, thought: str = "") -> Step:
        """Stop the cell that is running."""
        action = Action(type="interrupt")
        started = self._begin()
        if not self.kernel.is_running:
            return self._refuse(action, thought, started, NOTHING_RUNS)
        with self._failures():
            result = self.kernel.interrupt()
        return self._finish(action, thought, started, result)

    def edit(self, path: str, before: str, after: str, thought: str = "") -> Step:
        """Replace `before`, which must stand exactly once in the file, by `after`."""
        content = json.dumps({"path": path, "before": before, "after": after}, ensure_ascii=False)
        action = Action(type="edit", content=content)
        started = self._begin()
        if self.kernel.is_running:
            return self._refuse(action, thought, started, STILL_RUNNING)
        try:
            with self._failures():
                observation, outcome = edit_file(self.kernel, path, before, after)
        except SandboxLostError as lost:
            result = CellResult(outcome=Outcome.SANDBOX_LOST, detail=lost.detail)
            return self._finish(action, thought, started, result)
        return self._add(action, thought, started, observation=observation, outcome=outcome)

    def submit(self, answer: object, thought: str = "") -> Step:
        """Hand in the final answer, any JSON value; accepted also while a cell runs. Ends the trial.

        Raises ValueError when `answer` is no JSON value.
        """
        self._raise_if_over()
        try:
            text = json.dumps(answer, ensure_ascii=False)
        except (TypeError, RecursionError) as error:
            raise ValueError(f"a submission must be a JSON value: {error}") from None
        self.submission, self.submitted = json.loads(text), True
        self._ended = "submitted"
        return self._add(Action(type="submit", content=text), thought, now())

    def add_pre_executed(self, step: Step) -> None:
        self.history.append(step)
        self._record(step)

    @property
    def stop_reason(self) -> str | None:
        """Why the trial is over; None while it goes on."""
        return self._ended

    def _raise_if_over(self) -> None:
        if self._ended is None and (reason := self.budget.spent()):
            self._ended = reason
        if self._ended is not None:
            raise TrialEnded(self._ended)

    def _begin(self) -> str:
        self._raise_if_over()
        return now()

    def _patience(self) -> float:
        return min(self.budget.limits.cell, self.budget.seconds_left())

    def _refuse(self, action: Action, thought: str, started: str, why: str) -> Step:
        return self._add(action, thought, started, observation=why, outcome="error")

    def _finish(self, action: Action, thought: str, started: str, result: CellResult) -> Step:
        if not result.is_running:
            self._landmarks.end_cell()
        step = self._add(
            action,
            thought,
            started,
            observation=observation_of(result),
            outcome=result.outcome.value,
            outputs=result.outputs,
            seconds=result.seconds,
        )
        if result.outcome is Outcome.SANDBOX_LOST:
            self._ended = "sandbox_lost"
        elif result.outcome is Outcome.KERNEL_DIED:
            with self._failures():
                self.kernel.restart(timeout=self._patience())
        self._raise_if_over()
        return step

    def _take_new_hits(self) -> list[int]:
        """Landmarks that no step has told of yet; a cell that timed out may hit more in a later step."""
        told = {index for step in self.history for index in step.landmarks}
        return [index for index, hit in enumerate(self._landmarks.hits) if hit and index not in told]

    def _add(self, action: Action, thought: str, started: str, **facts: Any) -> Step:
        budget = self.budget
        budget.steps += 1
        step = Step(
            number=len(self.history) + 1,
            origin="agent",
            action=action,
            thought=thought,
            started=started,
            ended=now(),
            landmarks=self._take_new_hits(),
            prompt_tokens=budget.prompt_tokens - sum(step.prompt_tokens for step in self.history),
            completion_tokens=budget.completion_tokens - sum(step.completion_tokens for step in self.history),
            **facts,
        )
        self.history.append(step)
        with self._failures(Exception):
            self._record(step)
        return step

    @contextmanager
    def _failures(self, kind: type[Exception] = InfrastructureError) -> Iterator[None]:
        """What fails here is not the agent's: remember it and end the trial, whatever the agent catches."""
        try:
            yield
        except kind as error:
            self.failure = self.failure or error
            self._ended = "error"
            raise TrialEnded("error") from error


def run_agent(agent: Agent, trial: Trial, is_from_outside: Callable[[BaseException], bool]) -> str:
    """Let the agent act until the trial ends; returns the stop reason.

    Raises what failed under the trial, whatever the agent made of it, and what `is_from_outside` (an
    interrupt, a time-out). All else that comes out of an agent is its own: `agent_error`.
    """
    reason = "returned"
    try:
        agent.run(trial)
    except TrialEnded:
        pass
    except BaseException as error:
        if is_from_outside(error):
            raise
        trial.error = "".join(traceback.format_exception(error))
        reason = "agent_error"
    if trial.failure is not None:
        raise trial.failure
    return trial.stop_reason or reason
