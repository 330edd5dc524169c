"""A trial that has ended: what it has spent, its scores, and the result made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_super.agents.identity import texts_of_agent
from pytest_super.errors import InfrastructureError
from pytest_super.integrity.deciding import DecidingFiles
from pytest_super.integrity.look import Traces
from pytest_super.integrity.registry import signs_of, unseen_in
from pytest_super.metrics.cause import cause_of
from pytest_super.metrics.evidence import Evidence, Landmark, Spent
from pytest_super.metrics.registry import scored
from pytest_super.model.completion import RunCostError
from pytest_super.session.comparability import digests_of_trial
from pytest_super.session.run import RUN
from pytest_super.session.trial.item import TaskItem
from pytest_super.session.trial.scoring import SCORING
from pytest_super.store.activity import Doing
from pytest_super.store.results import INTERRUPTED, RUN_COST, TrialResult, most_repeats
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial
from pytest_super.words import words_of

if TYPE_CHECKING:
    from pytest_super.session.trial.grading import TrialGrade


@dataclass(frozen=True, kw_only=True)
class EndedTrial:
    """A trial with everything that its result is made of."""

    item: TaskItem
    task: Task
    trial: Trial
    landmarks: Sequence[Landmark]
    graded: TrialGrade
    files: DecidingFiles | None
    stop_reason: str
    started: str
    wall_seconds: float

    def result(self, cause: BaseException | None) -> TrialResult:
        """The result, without scores if `cause` is a failure. Raises what a metric of the project raises."""
        folder = self.item.open_folder()
        error = error_of(cause, folder.activity.now)
        spent = self.spent()
        code = self.item.paper_code
        own = [step for step in self.trial.all_steps if step.origin == "agent"]
        folder.activity.begin("scoring")
        result = replace(
            folder.start,
            stop_reason=stop_reason_of(cause) or self.stop_reason,
            error=error,
            agent_error=self.trial.error,
            submitted=self.trial.submitted,
            started=self.started,
            steps=len(own),
            repeats=most_repeats(own),
            fork_difference=self.fork_difference(),
            graded_in=self.graded.where,
            changed_elsewhere=self.graded.changed,
            grade_seconds=self.graded.seconds,
            masked=code.facts() if code and not error else None,
            dropped=sum(sum(step.dropped.values()) for step in self.trial.all_steps),
            **self.facts_of_sandbox(),
            **asdict(spent),
            # After an error nothing is scored, so a metric that raised is not called again.
            **({} if error else self.scored(spent)),
        )
        why = cause_of(self.task, result, self.trial.submission)
        return replace(result, cause=why, kept=self.kept(result))

    def fork_difference(self) -> str:
        settings = self.item.config.stash[RUN].settings
        if not settings.forked_from:
            return ""
        # Not at the top: most trials are whole.
        from pytest_super.session.trial.fork_check import recorded_steps, replayed_otherwise

        return replayed_otherwise(recorded_steps(settings.answers, self.task.id), self.trial.all_steps)

    def facts_of_sandbox(self) -> dict[str, Any]:
        # A kernel of the project's own fixture has none.
        ready = self.item.ready
        known = (
            ready.facts if ready else {"sandbox": "", "isolated": False, "software": "", "environment": {}}
        )
        return {**known, **digests_of_trial(self.task, self.item.config.stash[RUN].subject, known)}

    def kept(self, result: TrialResult) -> str | None:
        """Keep the sandbox if --super-keep asks for it. Returns how to enter it, or why it was not kept."""
        keep = self.item.config.stash[RUN].settings.keep
        if keep == "never" or (keep == "failed" and result.solved):
            return None
        try:
            return self.trial.kernel.keep()
        except InfrastructureError as error:
            return f"not kept: {error}"

    def spent(self) -> Spent:
        budget = self.trial.budget
        return Spent(
            compute_seconds=round(budget.compute_seconds, 3),
            model_seconds=round(budget.model_seconds, 3),
            wall_seconds=self.wall_seconds,
            waited_seconds=round(budget.waited_seconds, 3),
            prompt_tokens=budget.prompt_tokens,
            cached_tokens=budget.used.cached_tokens,
            recorded=budget.used.recorded,
            recorded_usd=budget.used.recorded_usd,
            asked=budget.used.asked,
            completion_tokens=budget.completion_tokens,
            cost_usd=budget.cost_usd,
        )

    def scored(self, spent: Spent) -> dict[str, Any]:
        """The signs and scores among the fields of the result. Raises what a metric of the project raises."""
        evidence = Evidence(
            steps=self.trial.all_steps,
            submission=self.trial.submission,
            submitted=self.trial.submitted,
            landmarks=self.landmarks,
            graded=self.graded.values,
            repository=self.item.provided,
            spent=spent,
        )
        traces = self.traces(evidence)
        signs = signs_of(traces)
        evidence = replace(evidence, signs=signs)
        metrics = self.item.config.stash[SCORING].metrics
        whole, splice = self.graded.whole_file, self.graded.splice
        return {
            **scored(metrics, self.task, evidence, self.item.config.stash[RUN].settings.scoring),
            "integrity": [asdict(sign) for sign in signs],
            "unseen": unseen_in(traces),
            "whole_file": whole and [asdict(value) for value in whole],
            **({"taken": splice.taken, "left_out": splice.left_out} if splice else {}),
        }

    def traces(self, evidence: Evidence) -> Traces:
        config, run = self.item.config, self.item.config.stash[RUN]
        return Traces(
            task=self.task,
            evidence=evidence,
            files=self.files,
            code=self.graded.code,
            agent_files=texts_of_agent(run.settings.agent, config.invocation_params.dir, config.rootpath),
            graded_in=self.graded.where,
            changed_elsewhere=self.graded.changed,
            whole_file=self.graded.whole_file,
        )


def error_of(cause: BaseException | None, doing: Doing) -> str | None:
    """Why the trial is not valid; None if it is. `doing` is what the cause ended."""
    if cause is None:
        return None
    if isinstance(cause, KeyboardInterrupt):
        return f"interrupted: {str(cause) or 'Ctrl-C'}, at {doing}"
    words = words_of(cause)
    return words if isinstance(cause, Exception) else f"interrupted: {words}"


def stop_reason_of(cause: BaseException | None) -> str:
    """The stop reason of a failure; "" if nothing failed. A submission that was not scored yet is none."""
    if isinstance(cause, RunCostError):
        return RUN_COST
    if isinstance(cause, KeyboardInterrupt):
        return INTERRUPTED
    return "error" if isinstance(cause, Exception) else ""
