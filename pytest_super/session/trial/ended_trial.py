"""The trial of an item, from its run to its stored result: what it has spent, and its scores."""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, replace
from time import monotonic
from typing import Any

import pytest

from pytest_super.agents.identity import texts_of_agent
from pytest_super.errors import InfrastructureError
from pytest_super.integrity.look import Traces
from pytest_super.integrity.registry import signs_of, unseen_in
from pytest_super.kernel.client import Kernel
from pytest_super.metrics.cause import cause_of
from pytest_super.metrics.evidence import Evidence, Spent
from pytest_super.metrics.registry import scored
from pytest_super.model.completion import Model, RunCostError
from pytest_super.report.failure_line import failure_line
from pytest_super.report.notebook import write_notebook
from pytest_super.session.comparability import digests_of_trial
from pytest_super.session.run import RUN
from pytest_super.session.trial.item import RESULT, TaskItem, Unsolved
from pytest_super.session.trial.reported_outcome import stop_if_final
from pytest_super.session.trial.runner import TrialRunner
from pytest_super.session.trial.scoring import SCORING
from pytest_super.store.activity import Doing
from pytest_super.store.results import INTERRUPTED, RUN_COST, TrialResult, most_repeats
from pytest_super.tasks.task import Task
from pytest_super.trial.agent_run import Agent
from pytest_super.trial.budget import Budget
from pytest_super.words import words_of


def run_trial(
    item: TaskItem,
    task: Task,
    agent: Agent,
    budget: Budget,
    model: Model | None,
    kernel: Kernel,
    make_kernel: Callable[[], Kernel],
) -> None:
    """Run and store the trial of `item`. Raises Unsolved, or what ended the trial from outside."""
    runner = TrialRunner(item, task, budget, model, kernel)
    cause = runner.run(agent, make_kernel)
    try:
        result = result_of(runner, cause)
        if not (cause or result.solved) and (cause := runner.lack_of_memory()):
            result = result_of(runner, cause)
        store(runner, result)
        item.ihook.pytest_super_trial_finished(item=item, result=result)
    # The last two are not subclasses of Exception.
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        cause = cause or failure(error)
        result = result_of(runner, cause)
        # On a full disk the report still carries the result to the controller.
        with suppress(InfrastructureError):
            store(runner, result)
    item.stash[RESULT] = result
    stop_if_final(item, cause)
    if cause is not None:
        raise cause
    if not result.solved:
        raise Unsolved(failure_line(result))


def result_of(runner: TrialRunner, cause: BaseException | None) -> TrialResult:
    """The result, without scores if `cause` is a failure. Raises what a metric of the project raises."""
    folder, trial, graded, code = runner.folder, runner.trial, runner.graded, runner.item.paper_code
    error = error_of(cause, folder.activity.now)
    spent = spent_by(runner)
    own = [step for step in trial.all_steps if step.origin == "agent"]
    folder.activity.begin("scoring")
    result = replace(
        folder.start,
        stop_reason=stop_reason_of(cause) or runner.stop_reason,
        error=error,
        agent_error=trial.error,
        submitted=trial.submitted,
        started=runner.started,
        steps=len(own),
        repeats=most_repeats(own),
        fork_difference=fork_difference(runner),
        graded_in=graded.where,
        changed_elsewhere=graded.changed,
        grade_seconds=graded.seconds,
        masked=code.facts() if code and not error else None,
        dropped=sum(sum(step.dropped.values()) for step in trial.all_steps),
        **facts_of_sandbox(runner),
        **asdict(spent),
        # After an error nothing is scored, so a metric that raised is not called again.
        **({} if error else scores_of(runner, spent)),
    )
    why = cause_of(runner.task, result, trial.submission)
    return replace(result, cause=why, kept=kept(runner, result))


def fork_difference(runner: TrialRunner) -> str:
    settings = runner.item.config.stash[RUN].settings
    if not settings.forked_from:
        return ""
    # Not at the top: most trials are whole.
    from pytest_super.session.trial.fork_check import recorded_steps, replayed_otherwise

    return replayed_otherwise(recorded_steps(settings.answers, runner.task.id), runner.trial.all_steps)


def facts_of_sandbox(runner: TrialRunner) -> dict[str, Any]:
    # A kernel of the project's own fixture has none.
    ready = runner.item.ready
    known = ready.facts if ready else {"sandbox": "", "isolated": False, "software": "", "environment": {}}
    return {**known, **digests_of_trial(runner.task, runner.item.config.stash[RUN].subject, known)}


def kept(runner: TrialRunner, result: TrialResult) -> str | None:
    """Keep the sandbox if --super-keep asks for it. Returns how to enter it, or why it was not kept."""
    keep = runner.item.config.stash[RUN].settings.keep
    if keep == "never" or (keep == "failed" and result.solved):
        return None
    try:
        return runner.trial.kernel.keep()
    except InfrastructureError as error:
        return f"not kept: {error}"


def spent_by(runner: TrialRunner) -> Spent:
    budget = runner.budget
    return Spent(
        compute_seconds=round(budget.compute_seconds, 3),
        model_seconds=round(budget.model_seconds, 3),
        wall_seconds=round(monotonic() - runner.began, 3),
        waited_seconds=round(budget.waited_seconds, 3),
        **asdict(budget.used),
    )


def scores_of(runner: TrialRunner, spent: Spent) -> dict[str, Any]:
    """The signs and scores among the fields of the result. Raises what a metric of the project raises."""
    config, settings, graded = runner.item.config, runner.item.config.stash[RUN].settings, runner.graded
    evidence = Evidence(
        steps=runner.trial.all_steps,
        submission=runner.trial.submission,
        submitted=runner.trial.submitted,
        landmarks=runner.landmarks.landmarks,
        graded=graded.values,
        repository=runner.item.provided,
        spent=spent,
    )
    traces = Traces(
        task=runner.task,
        evidence=evidence,
        files=runner.files,
        code=graded.code,
        agent_files=texts_of_agent(settings.agent, config.invocation_params.dir, config.rootpath),
        graded_in=graded.where,
        changed_elsewhere=graded.changed,
        whole_file=graded.whole_file,
    )
    signs = signs_of(traces)
    evidence = replace(evidence, signs=signs)
    whole, splice = graded.whole_file, graded.splice
    return {
        **scored(config.stash[SCORING].metrics, runner.task, evidence, settings.scoring),
        "integrity": [asdict(sign) for sign in signs],
        "unseen": unseen_in(traces),
        "whole_file": whole and [asdict(value) for value in whole],
        **({"taken": splice.taken, "left_out": splice.left_out} if splice else {}),
    }


def store(runner: TrialRunner, result: TrialResult) -> None:
    """Raises InfrastructureError."""
    with closing(runner.folder):
        runner.folder.write_result(result)
        write_notebook(runner.folder.path, runner.task, result, runner.trial.all_steps)


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


def failure(error: BaseException) -> Exception:
    """The error of a hook that raised after the trial; `pytest.fail` and `pytest.skip` are errors there."""
    return error if isinstance(error, Exception) else InfrastructureError(words_of(error))
