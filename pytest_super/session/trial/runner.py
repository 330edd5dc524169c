"""Runs the trial of an item in one or several attempts, and grades it."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import pytest

from pytest_super.agents.reflexion import Reflecting
from pytest_super.errors import InfrastructureError
from pytest_super.integrity.deciding import DecidingFiles, deciding_files, time_inside
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.sandbox import DEFAULT_MEMORY, default_exceeded
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.model.completion import Model, ModelError
from pytest_super.session.run import RUN
from pytest_super.session.trial.grading import TrialGrade, grade_trial
from pytest_super.session.trial.item import TaskItem
from pytest_super.snapshots.prefix import Prefix
from pytest_super.store.trajectory import Step, now
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.public_task import public_part
from pytest_super.tasks.task import Task
from pytest_super.trial.agent_run import Agent, run_agent
from pytest_super.trial.budget import Budget
from pytest_super.trial.entrypoint import EntrypointScript
from pytest_super.trial.trial import Trial

# How long the end of a trial waits for model calls that the agent has abandoned.
UNDER_WAY_SECONDS = 30.0


class TrialRunner:
    """Runs one trial, and has what its result is made of."""

    def __init__(
        self, item: TaskItem, task: Task, budget: Budget, model: Model | None, kernel: Kernel
    ) -> None:
        self.item = item
        self.folder = item.open_folder()
        self.task = task
        self.budget = budget
        self.landmarks = LandmarkMatcher(task.landmarks)
        self.stop_reason = "interrupted"
        self.graded = TrialGrade()
        self.since: float | None = None
        """When the agent began, by the sandbox's clock."""
        self.files: DecidingFiles | None = None
        self.started, self.began = now(), monotonic()
        self.trial = self.new_trial(model, kernel)

    def run(self, agent: Agent, make_kernel: Callable[[], Kernel]) -> BaseException | None:
        """Run all attempts, and grade the last. Returns the exception that ended the trial from outside."""
        try:
            self.run_until_timeout(agent, make_kernel)
            # Before the grader, whose own files are not the agent's.
            if self.since is not None:
                self.files = deciding_files(self.trial.kernel, self.since)
            self.grade()
        except BaseException as error:
            return error
        return None

    def run_until_timeout(self, agent: Agent, make_kernel: Callable[[], Kernel]) -> None:
        try:
            self.run_attempts(agent, make_kernel)
        except BaseException as error:
            if not is_timeout(error):
                raise
            self.stop_reason = "timeout"

    def run_attempts(self, agent: Agent, make_kernel: Callable[[], Kernel]) -> None:
        """Run attempts, up to --super-attempts, until the agent submits or a budget is spent.

        Each attempt can use its share of the tokens and those that earlier ones left.
        """
        attempts = self.item.config.stash[RUN].settings.attempts
        failed: list[Step] = []
        self.run_attempt(agent, 1 / attempts)
        for number in range(2, attempts + 1):
            # Otherwise the spent share of the last attempt would count as a spent budget.
            self.budget.allow(1.0)
            if self.trial.submitted or self.budget.spent() is not None:
                break
            # Saves the compute time of the kernel that `make_kernel` closes.
            self.budget.stop_metering()
            # An attempt can end before its first step; then the plan is made from the one before it.
            failed = self.trial.history or failed
            self.trial = self.new_trial(self.trial.model, make_kernel(), self.trial.all_steps)
            self.run_attempt(Reflecting(agent, failed), number / attempts)

    def new_trial(self, model: Model | None, kernel: Kernel, before: Sequence[Step] = ()) -> Trial:
        """The trial of one attempt. `before` contains the steps of earlier attempts."""
        trial = Trial(
            public_part(self.task, self.item.provided),
            kernel=kernel,
            budget=self.budget,
            landmarks=self.landmarks,
            record=self.record,
            model=model,
            before=before,
        )
        trial.doing = self.folder.activity.doing
        return trial

    def record(self, step: Step) -> None:
        self.folder.write_step(step)
        self.folder.activity.change()
        self.item.ihook.pytest_super_step(item=self.item, step=step)

    def run_attempt(self, agent: Agent, portion: float) -> None:
        """Run one attempt. By its end, `portion` of the tokens can be used. Raises what ends the trial."""
        kernel = self.trial.kernel
        self.budget.allow(portion)
        self.run_prefix(kernel)
        self.since = time_inside(kernel)
        if self.task.entrypoint is not None:
            self.trial.script = EntrypointScript(kernel, self.task.entrypoint.path, self.item.provided)
        self.trial.compute_limit.start()
        self.folder.activity.begin("agent", self.used)
        try:
            self.stop_reason = run_agent(agent, self.trial, is_from_outside)
        except BaseException as error:
            self.charge_usage(0.0 if is_from_outside(error) else UNDER_WAY_SECONDS)
            raise
        # A call during which the wall limit was reached can take much longer than that.
        self.charge_usage(0.0 if self.budget.spent() == "wall" else UNDER_WAY_SECONDS)
        outage = getattr(self.trial.model, "outage", None)
        if outage is not None and self.stop_reason == "wall" and (why := outage()):
            raise ModelError(f"the model did not answer until the wall limit: {why}")

    def grade(self) -> None:
        """What the grader takes is not the agent's. Raises InfrastructureError."""
        if self.task.grade is not None:
            self.trial.compute_limit.end()
            self.graded = grade_trial(self.item, self.task, self.task.grade, self.trial.kernel)

    def charge_usage(self, timeout: float) -> None:
        """Charge by the model's ledger, which includes calls whose answer the agent did not get."""
        booked_usage = getattr(self.trial.model, "booked_usage", None)
        if booked_usage is not None and (usage := booked_usage(timeout)) is not None:
            self.budget.charge_usage(usage)
        self.budget.update_waited()

    def run_prefix(self, kernel: Kernel) -> None:
        """Run the pre-executed steps. A timeout raises InfrastructureError: it is not the agent's fault."""
        try:
            self.begin_pre_executed(1)
            # A kernel from a project's own fixture has run none of its steps.
            prefix = self.item.ready.prefix if self.item.ready else Prefix(self.task)
            for step in prefix.steps(kernel):
                self.trial.add_pre_executed(step)
                self.begin_pre_executed(step.number + (not step.is_running))
            if (code := self.item.paper_code) is not None:
                code.put(kernel)
            elif isinstance(self.task, PaperItem):
                raise InfrastructureError("an item of a paper needs the kernel that this plugin makes")
        except pytest.fail.Exception as error:
            raise InfrastructureError(f"the pre-executed steps did not end in time: {error}") from error

    def begin_pre_executed(self, number: int) -> None:
        if number <= (all_steps := len(self.task.pre_execute)):
            self.folder.activity.begin(f"pre-executed step {number} of {all_steps}")

    def used(self) -> dict[str, Any]:
        """What is shown of the trial while it runs."""
        budget, steps = self.budget, self.trial.history
        return {
            "step": budget.steps + 1,
            "repeats": steps[-1].repeats if steps else 0,
            "tokens": budget.prompt_tokens + budget.completion_tokens,
            "cost_usd": budget.cost_usd,
        }

    def lack_of_memory(self) -> InfrastructureError | None:
        """Why a miss is not the agent's: a process needed more memory than our default."""
        if self.task.sandbox.memory is None and self.trial.kernel.memory_kills:
            return default_exceeded("memory", DEFAULT_MEMORY)
        return None


def is_timeout(error: BaseException) -> bool:
    """Whether pytest-timeout raised the error: its signal method fails the test with this message."""
    return isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout")


def is_from_outside(error: BaseException) -> bool:
    """Whether the error is an interrupt or a timeout, which end more than the agent's code."""
    return isinstance(error, KeyboardInterrupt) or is_timeout(error)
