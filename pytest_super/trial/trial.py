"""The trial: one agent on one task in one kernel under one budget, leaving one trajectory."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome, SandboxLostError
from pytest_super.model.completion import BudgetSpentError
from pytest_super.store.trajectory import PROGRAM, Action, Step, now
from pytest_super.trial.editing import edit_file
from pytest_super.trial.observation import NOTHING_RUNS, STILL_RUNNING, observation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from pytest_super.kernel.client import Kernel
    from pytest_super.metrics.landmarks import LandmarkMatcher
    from pytest_super.model.completion import Completion, Message, Model
    from pytest_super.tasks.public_task import PublicTask
    from pytest_super.trial.budget import Budget

    Tool = Callable[[Kernel], tuple[str, str]]
    """Works on the kernel's files; gives the observation, and `ok` or `error`."""


class TrialEnded(BaseException):
    """The trial is over; every further action of the agent raises it again.

    Not an Exception, so that an agent's `except Exception` around its own faults lets it pass.
    """

    def __init__(self, stop_reason: str) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason


class Agent(Protocol):
    """What chooses the actions."""

    def run(self, trial: Trial) -> Coroutine[Any, Any, None] | None:
        """Act through `trial` until the task is done; returning ends the trial. May be `async def`."""


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
        model: Model | None = None,
        before: Sequence[Step] = (),
    ) -> None:
        """`before` holds the steps of earlier attempts, which the agent does not see."""
        self.task = task
        self.kernel = kernel
        self.budget = budget
        self.model = model
        self.history: list[Step] = []
        self.submission: Any = None
        self.submitted = False
        self.error: str | None = None
        """Traceback of an agent that raised."""
        self.failure: Exception | None = None
        """What failed under the trial."""
        self._landmarks = landmarks
        self._record = record
        self._before = before
        self._ended: str | None = None
        self._recording = threading.Lock()
        self._is_closed = False

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Ask the model and charge what it used; no step. `parameters` are OpenAI's of chat completions.

        Raises FilteredError when the provider's content policy refuses, ValueError for what is no
        conversation, and ends the trial when the call would pass, or has passed, a limit, or when its prompt
        is longer than the model's window.
        """
        try:
            return self.try_to_complete(messages, **parameters)
        except BudgetSpentError as spent:
            self.end(spent.limit)
            raise TrialEnded(spent.limit) from None

    def try_to_complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """As `complete`, but BudgetSpentError tells of a call that would pass a limit; the trial goes on."""
        self._raise_if_over()
        began = time.monotonic()
        with self._failures():
            if self.model is None:
                raise InfrastructureError("the agent asks for a model: name one by --super-model")
            try:
                completion = self.model.complete(messages, **parameters)
            except BaseException:
                self.budget.model_seconds += time.monotonic() - began
                raise
        with self._recording:
            # What comes later is in the model's books, which have been read.
            if self._is_closed:
                raise TrialEnded(self._ended or "returned")
            self.budget.charge_call(**asdict(completion.usage), seconds=completion.seconds)
        self._raise_if_over()
        return completion

    def execute(self, code: str, thought: str = "") -> Step:
        """Run one notebook cell; at the cell's time limit it is left running."""
        action = Action(type="execute", content=code)
        started = self._begin()
        if self.kernel.is_running:
            return self._refuse(action, thought, started, STILL_RUNNING)
        self._landmarks.begin_cell(code, step=self._next_number)
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
        return self.use(
            Action(type="edit", content=content),
            lambda kernel: edit_file(kernel, path, before, after),
            thought,
        )

    def use(self, action: Action, tool: Tool, thought: str = "") -> Step:
        """Let `tool` do `action` on the kernel's files, as agents with an interface of their own do."""
        started = self._begin()
        if self.kernel.is_running:
            return self._refuse(action, thought, started, STILL_RUNNING)
        try:
            with self._failures():
                observation, outcome = tool(self.kernel)
        except SandboxLostError as lost:
            result = CellResult(outcome=Outcome.SANDBOX_LOST, detail=lost.detail)
            return self._finish(action, thought, started, result)
        return self._add(action, thought, started, observation=observation, outcome=outcome)

    def run_program(
        self,
        command: str,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        thought: str = "",
    ) -> Step:
        """Run a program in the sandbox until it ends: `command` is a line for the sandbox's `sh`.

        `files`, path to text, are written before. The program finds the trial's model at OPENAI_BASE_URL. The
        cell limit does not count; any spent budget ends it. What it waits for the model is no compute time.
        """
        from pytest_super.trial.program import Program

        action, started = Action(type=PROGRAM, content=command), self._begin()
        if self.kernel.is_running:
            return self._refuse(action, thought, started, STILL_RUNNING)
        # A program may print its task, which is no more an achievement than its own source.
        self._landmarks.begin_cell(f"{command}\n{self.task.query}", step=self._next_number)
        program = Program(self.kernel, self.budget, self.model)
        try:
            with self._failures():
                ran = program.run(command, environment or {}, files or {}, self._landmarks.feed)
        except SandboxLostError as lost:
            result = CellResult(outcome=Outcome.SANDBOX_LOST, detail=lost.detail)
            return self._finish(action, thought, started, result)
        self._ended = ran.spent
        return self._finish(action, thought, started, ran.result, ran.observation)

    def reject(self, why: str, action: Action | None = None, thought: str = "") -> Step:
        """A step in which nothing was done, since what the model answered was no action: `why` says so."""
        return self._refuse(action or Action(type=""), thought, self._begin(), why)

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
        step = replace(step, number=self._next_number, attempt=self._attempt)
        self.history.append(step)
        self._record(step)

    @property
    def all_steps(self) -> list[Step]:
        """Those of earlier attempts too."""
        return [*self._before, *self.history]

    def end(self, stop_reason: str) -> None:
        """The trial is over, by this reason unless it had ended already."""
        self._ended = self._ended or stop_reason

    def close(self) -> None:
        """Nothing is recorded any more, of what a thread of the agent's had begun either."""
        with self._recording:
            self._is_closed = True

    @property
    def stop_reason(self) -> str | None:
        """Why the trial is over; None while it goes on."""
        return self._ended

    @property
    def _next_number(self) -> int:
        return len(self._before) + len(self.history) + 1

    @property
    def _attempt(self) -> int:
        return self._before[-1].attempt + 1 if self._before else 1

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

    def _finish(
        self, action: Action, thought: str, started: str, result: CellResult, observation: str | None = None
    ) -> Step:
        if not result.is_running:
            self._landmarks.end_cell()
        step = self._add(
            action,
            thought,
            started,
            observation=observation_of(result) if observation is None else observation,
            outcome=result.outcome.value,
            outputs=result.outputs,
            omitted_characters=result.omitted,
            seconds=result.seconds,
        )
        if result.outcome is Outcome.SANDBOX_LOST:
            self._ended = "sandbox_lost"
        elif result.outcome is Outcome.KERNEL_DIED:
            with self._failures():
                self.kernel.restart(timeout=self._patience())
        self._raise_if_over()
        return step

    def _take_new_hits(self, steps: Sequence[Step]) -> list[int]:
        """Landmarks that no step has told of yet; a cell that timed out may hit more in a later step."""
        told = {index for step in steps for index in step.landmarks}
        return [index for index, hit in enumerate(self._landmarks.hits) if hit and index not in told]

    def _add(self, action: Action, thought: str, started: str, **facts: Any) -> Step:
        budget, told = self.budget, self.all_steps
        budget.steps += 1
        step = Step(
            number=self._next_number,
            origin="agent",
            action=action,
            attempt=self._attempt,
            thought=thought,
            started=started,
            ended=now(),
            landmarks=self._take_new_hits(told),
            prompt_tokens=budget.prompt_tokens - sum(step.prompt_tokens for step in told),
            completion_tokens=budget.completion_tokens - sum(step.completion_tokens for step in told),
            **facts,
        )
        with self._recording:
            if self._is_closed:
                raise TrialEnded(self._ended or "returned")
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
