"""The trial: one agent on one task, with one kernel and one budget. It leaves one trajectory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, TrialEnded
from pytest_super.kernel.cell import CellResult, Outcome, SandboxLostError
from pytest_super.kernel.inside.values import to_json
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.model.completion import BudgetSpentError, Completion, Message, Model
from pytest_super.store.trajectory import PROGRAM, Action, Step, now
from pytest_super.trial.compute_limit import ComputeLimit
from pytest_super.trial.editing import edit_action, edit_file, read_text
from pytest_super.trial.entrypoint import FileWatch
from pytest_super.trial.observation import NOTHING_RUNS, ONLY_SUBMIT, STILL_RUNNING, observation_of
from pytest_super.trial.program import ProgramResult
from pytest_super.trial.step_log import StepLog, cell_fields, check_texts
from pytest_super.trial.wall_limit import WallLimit, whole_step

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.files import SandboxFiles
    from pytest_super.tasks.public_task import PublicTask
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.entrypoint import EntrypointScript


Tool = Callable[["SandboxFiles"], tuple[str, str]]
"""Works on the sandbox's files. Returns the observation, and `ok` or `error`."""


class Trial:
    """The methods by which an agent acts. Each action is one step, written before the method returns.

    `history` contains the steps so far, pre-executed ones included. Every method raises TrialEnded once the
    trial is over, also if the system around the agent failed.
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
        """`before` contains the steps of earlier attempts, which the agent does not see."""
        self.task, self.model, self.kernel, self.budget = task, model, kernel, budget
        self.submission: Any = None
        self.submitted = False
        self.stop_reason: str | None = None
        """Why the trial is over; None while it is not."""
        self.error: str | None = None
        """The traceback of an agent that raised."""
        self.ran: ProgramResult | None = None
        """The last program, also if we could not start it."""
        self.failure: Exception | None = None
        """The failure of the system around the agent."""
        self.wall_limit = WallLimit(budget.wall_left, lambda: self._raise_ended("wall"))
        self.compute_limit = ComputeLimit(budget, lambda: self.kernel)
        self._landmarks = landmarks
        self._listener = self.compute_limit.counted(landmarks.feed)
        self.script: EntrypointScript | None = None
        """What the sandbox expects of the entrypoint; None if the task has none."""
        self._files = FileWatch(kernel)
        self.doing: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
        """Told of each action, and of each question to the model, while it is under way."""
        self._log = StepLog(record, budget, landmarks, before)
        self.history = self._log.shown
        self.add_pre_executed = self._log.add_pre_executed

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Ask the model and charge the call. A call is not a step.

        `parameters` are those of OpenAI's chat completions. Raises FilteredError if the provider's content
        policy refuses, and ValueError if `messages` are not a conversation. The trial ends if the call would
        exceed or has exceeded a limit, or if the prompt is longer than the model's window.
        """
        try:
            return self.try_to_complete(messages, **parameters)
        except BudgetSpentError as spent:
            self.end(spent.limit, spent.why)
            raise TrialEnded(spent.limit) from None

    def try_to_complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Like `complete`, but a call that would exceed a limit only raises BudgetSpentError."""
        self._raise_if_over()
        began = self.budget.clock()
        with self.wall_limit.during_call(self.model), self._failures(), self.doing("model"):
            if self.model is None:
                raise InfrastructureError("the agent needs a model: name one by --super-model")
            try:
                completion = self.model.complete(messages, **parameters)
            except BaseException:
                self.budget.model_seconds += self.budget.clock() - began
                raise
        # Once the log is closed, the trial has been charged from the model's ledger, which has this call.
        with self.wall_limit.put_off(), self._log.open():
            self.budget.charge_call(completion.usage, completion.seconds, began)
        self._raise_if_over()
        return completion

    def execute(self, code: str, thought: str = "") -> Step:
        """Run one notebook cell. At the cell's time limit it is left running."""

        def run() -> CellResult:
            self._landmarks.begin_cell(code, step=self._log.next_number)
            return self.kernel.execute(code, timeout=self._timeout(), listener=self._listener)

        return self._act_on_cell(Action(type="execute", content=code), thought, run, is_running=False)

    def continue_wait(self, thought: str = "") -> Step:
        """Wait once more, up to the cell limit, for the cell that is running."""
        action = Action(type="continue_wait")
        return self._act_on_cell(action, thought, lambda: self.kernel.wait(timeout=self._timeout()))

    def interrupt(self, thought: str = "") -> Step:
        """Stop the cell that is running."""
        return self._act_on_cell(Action(type="interrupt"), thought, self.kernel.interrupt)

    def edit(self, path: str, before: str, after: str, thought: str = "") -> Step:
        """Replace `before`, which must occur exactly once in the file, by `after`."""
        action = edit_action(path, before, after)
        return self.use(action, lambda files: edit_file(files, path, before, after), thought)

    def read(self, path: str, thought: str = "") -> Step:
        """Show the text of a file, which can have at most `editing.LARGEST_SHOWN` bytes."""
        return self.use(Action(type="read", content=path), lambda files: read_text(files, path), thought)

    @whole_step
    def use(self, action: Action, tool: Tool, thought: str = "") -> Step:
        """Do `action` by calling `tool`, which works on files: for agents with an interface of their own."""
        started = self._begin()
        if why := self._hindrance():
            return self._refuse(action, thought, started, why)
        try:
            editing = self.script.editing() if self.script else nullcontext()
            with self._failures(), editing, self.doing(action.type):
                observation, outcome = tool(self.kernel.files)
        except SandboxLostError as lost:
            return self._finish(action, thought, started, lost.result)
        changed = self._files.changes()
        return self._add(action, thought, started, observation=observation, outcome=outcome, files=changed)

    @whole_step
    def run_program(
        self,
        command: str,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        thought: str = "",
    ) -> Step:
        """Run a program in the sandbox until it ends. `command` is a line for the sandbox's `sh`.

        `files` maps paths to texts that are written first. OPENAI_BASE_URL is the address of the trial's
        model: its calls are steps before this one, and not compute time. The cell limit does not apply.
        """
        from pytest_super.trial.program import Program
        from pytest_super.trial.program_steps import ProgramSteps

        action, started = Action(type=PROGRAM, content=command), self._begin()
        if why := self._hindrance():
            return self._refuse(action, thought, started, why)
        steps = ProgramSteps(self._log, self._landmarks, self.task.query)
        program = Program(self.kernel, self.budget, self.model, steps.take)
        try:
            with self._failures(), self.compute_limit.put_off(), self.doing("program"), steps.of(command):
                ran = program.run(command, environment or {}, files or {}, self._listener)
        except SandboxLostError as lost:
            return self._finish(action, thought, started, lost.result)
        self.stop_reason, self.error = ran.spent, ran.why_spent or None
        self.ran = ran
        return self._finish(action, thought, started, ran.result, ran.observation)

    @whole_step
    def reject(self, why: str, action: Action | None = None, thought: str = "") -> Step:
        """Record a step for an answer that is not an action. Nothing is done; `why` is the observation."""
        return self._refuse(action or Action(type=""), thought, self._begin(), why)

    @whole_step
    def submit(self, answer: object, thought: str = "") -> Step:
        """Submit the final answer, also while a cell runs. Ends the trial.

        Numbers, arrays and series of numpy and pandas become numbers and lists. Raises ValueError if
        `answer` is not a JSON value then.
        """
        self._raise_if_over()
        try:
            text = to_json(answer, ensure_ascii=False)
        except ValueError as error:
            raise ValueError(f"a submission must be a JSON value: {error}") from None
        self.submission, self.submitted = json.loads(text), True
        self.stop_reason = "submitted"
        return self._add(Action(type="submit", content=text), thought, now(), observation="")

    @property
    def all_steps(self) -> list[Step]:
        """The steps of earlier attempts and of this one."""
        return self._log.all_steps

    def end(self, stop_reason: str, why: str = "") -> None:
        """End the trial with this reason, unless it has ended. `why` is more about it, for a person."""
        self.stop_reason, self.error = self.stop_reason or stop_reason, self.error or why or None

    def close(self) -> None:
        """Refuse all further actions, and the step of an action that another thread has not finished.

        A cell that the agent has left running can hit no more landmarks.
        """
        self._landmarks.end_cell()
        self._log.close(self.stop_reason or "returned")

    def _raise_ended(self, stop_reason: str) -> None:
        self.end(stop_reason)
        raise TrialEnded(self.stop_reason or stop_reason)

    def _raise_if_over(self) -> None:
        # Without compute time an agent can still submit.
        reason = self.stop_reason or self.budget.spent_besides_compute()
        if reason is not None:
            self._raise_ended(reason)

    def _hindrance(self, *, is_running: bool = False) -> str | None:
        """Why no action is possible that needs a running cell (`is_running`) or none; None if it is."""
        if self.compute_limit.stop_if_reached():
            return ONLY_SUBMIT
        if self.kernel.is_running is is_running:
            return None
        return NOTHING_RUNS if is_running else STILL_RUNNING

    def _begin(self) -> str:
        self._raise_if_over()
        self._files.begin()
        return now()

    def _timeout(self) -> float:
        return min(self.budget.limits.cell, self.budget.seconds_left())

    @whole_step
    def _act_on_cell(
        self, action: Action, thought: str, act: Callable[[], CellResult], *, is_running: bool = True
    ) -> Step:
        started = self._begin()
        if why := self._hindrance(is_running=is_running):
            return self._refuse(action, thought, started, why)
        with self._failures(), self.compute_limit.put_off(), self.doing("cell"):
            result = act()
        return self._finish(action, thought, started, result)

    def _refuse(self, action: Action, thought: str, started: str, why: str) -> Step:
        return self._add(action, thought, started, observation=why, outcome="error")

    def _finish(
        self, action: Action, thought: str, started: str, result: CellResult, shown: str = ""
    ) -> Step:
        if not result.is_running:
            self._landmarks.end_cell()
        # Before the budget is checked: an action that spends it is a step, and the last one.
        shown = shown or observation_of(result)
        fields = {**cell_fields(result), "files": self._files.changes()}
        step = self._add(action, thought, started, observation=shown, **fields)
        if result.outcome is Outcome.SANDBOX_LOST:
            self.stop_reason = "sandbox_lost"
        elif result.outcome is Outcome.KERNEL_DIED:
            with self._failures(), self.compute_limit.put_off():
                self.kernel.restart(timeout=self._timeout())
        if self.budget.is_compute_spent:
            self.end("compute")
        self._raise_if_over()
        return step

    def _add(self, action: Action, thought: str, started: str, **fields: Any) -> Step:
        check_texts(action, fields)
        self.budget.steps += 1
        # Any exception, because writing a step calls a hook of the project.
        with self._failures(Exception):
            return self._log.add(action, thought, started, **fields)

    @contextmanager
    def _failures(self, kind: type[Exception] = InfrastructureError) -> Iterator[None]:
        """A failure in this block is not the agent's. It ends the trial, even if the agent catches it."""
        try:
            yield
        except kind as error:
            self.failure = self.failure or error
            self.stop_reason = "error"
            raise TrialEnded("error") from error
