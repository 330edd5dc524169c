"""The trial: what an agent can do in it, what is recorded, and how every budget ends it."""

import contextlib
import json
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pytest_super.errors import EngineError, InfrastructureError, TrialEnded
from pytest_super.kernel.cell import CellResult
from pytest_super.kernel.files import SandboxFiles
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.model.completion import BudgetSpentError, Completion, Model, ModelError, Usage
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.public_task import public_part
from pytest_super.tasks.task import Limits, Task
from pytest_super.testing import FakeClock, FakeKernel, FakeModel
from pytest_super.trial.agent_run import run_agent
from pytest_super.trial.budget import Budget
from pytest_super.trial.observation import ONLY_SUBMIT
from pytest_super.trial.prefix import pre_execute
from pytest_super.trial.trial import Trial

ASK = [{"role": "user", "content": "go on"}]


class TrialBench:
    """A trial on a fake kernel, with the steps it recorded. Without a clock, its time is the kernel's."""

    def __init__(
        self,
        tokens: int = 1000,
        landmarks: tuple[str, ...] = (),
        model: Model | None = None,
        *,
        kernel: FakeKernel | None = None,
        clock: Callable[[], float] | None = None,
        task: dict[str, Any] | None = None,
        **limits: Any,
    ) -> None:
        self.kernel = kernel or FakeKernel(FakeClock())
        self.budget = Budget(Limits(**limits), tokens=tokens, clock=clock or self.kernel.clock)
        self.recorded: list[Step] = []
        self.landmarks = LandmarkMatcher(landmarks)
        self.trial = Trial(
            public_part(make_task(**(task or {}))),
            kernel=self.kernel,  # type: ignore[arg-type]
            budget=self.budget,
            landmarks=self.landmarks,
            record=self.recorded.append,
            model=model,
        )
        self.trial.compute_limit.start()

    def run(self, act: Callable[[Trial], object]) -> str:
        class OneShot:
            def run(self, trial: Trial) -> Any:
                return act(trial)

        return run_agent(
            OneShot(), self.trial, lambda error: isinstance(error, AssertionError | KeyboardInterrupt)
        )


class Failing:
    """A model whose calls raise `error`."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def complete(self, *_: object, **__: object) -> Completion:
        raise self.error


def swallowing(act: Callable[[Trial], object]) -> Callable[[Trial], None]:
    """Does `act`, catches whatever it raises, and returns."""

    def swallow(trial: Trial) -> None:
        with contextlib.suppress(BaseException):
            act(trial)

    return swallow


def make_task(**fields: Any) -> Task:
    return Task.model_validate({"id": "t", "set": "expert", "query": "do it", "answer": 42, **fields})


def test_each_action_is_recorded_before_it_returns() -> None:
    bench = TrialBench()
    step = bench.trial.execute("print(6 * 7)", thought="multiply")
    assert bench.recorded == [step]
    assert (step.number, step.origin, step.thought) == (1, "agent", "multiply")
    assert (step.outcome, step.observation) == ("ok", "42\n")


def test_what_an_agent_does_to_its_history_does_not_change_the_log() -> None:
    bench = TrialBench()
    bench.trial.execute("1", thought=None)  # type: ignore[arg-type]
    bench.trial.history.clear()
    bench.trial.history.append("mine")  # type: ignore[arg-type]
    assert [(step.number, step.thought) for step in bench.trial.all_steps] == [(1, "")]
    assert bench.trial.execute("2").number == 2


@pytest.mark.parametrize(
    "act",
    [
        lambda trial: trial.reject(["no action"]),
        lambda trial: trial.use(Action(type="count"), lambda _: (3, "ok")),
        lambda trial: trial.use(Action(type="count", content=json.loads("[]")), lambda _: ("3", "ok")),
    ],
)
def test_a_step_that_is_no_text_is_the_agents_own_mistake(act: Callable[[Trial], object]) -> None:
    bench = TrialBench()
    assert bench.run(act) == "agent_error"
    assert bench.trial.failure is None
    assert "must be text, not" in str(bench.trial.error)


def test_an_agent_sees_nothing_gold() -> None:
    task = make_task(landmarks=["secret"], solution={"cells": ["42"]}, answer="secret")
    assert "secret" not in repr(public_part(task))


@pytest.mark.parametrize("answer", [{"a": 1}, 0, 0.0, False, "", {}, [], None])
def test_a_submission_ends_the_trial_whatever_its_value_and_while_a_cell_runs(answer: object) -> None:
    bench = TrialBench(cell=10)
    bench.trial.execute("sleep(100)")
    assert bench.run(lambda trial: trial.submit(answer)) == "submitted"
    assert (bench.trial.submitted, bench.trial.submission) == (True, answer)
    with pytest.raises(TrialEnded, match="submitted"):
        bench.trial.execute("1")


def test_values_of_numpy_and_pandas_are_submitted_as_numbers_and_lists() -> None:
    import pandas as pd  # type: ignore[import-untyped]  # a second that not every worker has to spend

    trial = TrialBench().trial
    with pytest.raises(ValueError, match=r"must be a JSON value: .*type DataFrame is not.*: convert it"):
        trial.submit({"a": pd.DataFrame()})
    trial.submit({np.int64(1): np.float32(0.5), "all": (pd.Series([1.5]), np.array([[True]]), math.inf)})
    assert trial.submission == {"1": 0.5, "all": [[1.5], [[True]], math.inf]}


def test_what_is_no_json_is_refused_and_the_trial_goes_on() -> None:
    trial = TrialBench().trial
    for answer, why in (({"a": object()}, "type object is not"), ({(1, 2): 3}, "not tuple")):
        with pytest.raises(ValueError, match=f"must be a JSON value: .*{why}.*: convert it"):
            trial.submit(answer)
    assert trial.execute("1").outcome == "ok"


def test_a_cell_at_its_limit_is_left_running_and_nothing_kills_it_silently() -> None:
    bench = TrialBench(cell=300)
    step = bench.trial.execute("sleep(500); print('trained')")
    assert step.outcome == "timed_out"
    assert "continue_wait" in step.observation
    for refused in (bench.trial.execute("1"), bench.trial.edit("f", "a", "b")):
        assert refused.outcome == "error"
        assert "still running" in refused.observation
    assert bench.trial.continue_wait().observation == "trained\n"


def test_waiting_for_nothing_is_told_at_once() -> None:
    bench = TrialBench()
    assert bench.trial.continue_wait().observation == "No cell is running."
    assert bench.trial.interrupt().observation == "No cell is running."
    assert bench.kernel.clock.now == 0


def test_the_compute_budget_ends_a_cell_in_its_middle() -> None:
    bench = TrialBench(compute=100, cell=300)
    assert bench.run(lambda trial: trial.execute("print('seen'); sleep(10_000)")) == "compute"
    assert bench.kernel.clock.now == 100
    assert bench.recorded[-1].outcome == "timed_out"


@pytest.mark.parametrize("processor", [0, 200])
def test_compute_runs_on_while_the_agent_thinks_about_a_running_cell(processor: int) -> None:
    bench = TrialBench(compute=100, cell=30)
    bench.trial.execute("sleep(1000)")
    bench.kernel.work(60, processor)
    assert (bench.budget.compute_seconds, bench.kernel.is_killed) == (90, False)
    bench.kernel.work(10, processor)
    assert bench.kernel.is_killed


def test_what_a_cell_left_behind_is_charged_while_the_agent_thinks() -> None:
    bench = TrialBench()
    bench.trial.execute("sleep(3)")
    bench.kernel.work(0, 3)
    bench.kernel.work(10, 4)
    bench.kernel.work(10, 400)
    assert bench.budget.compute_seconds == 3 + 4 + 10


ACTIONS: list[Callable[[Trial], Step]] = [
    lambda trial: trial.execute("1"),
    lambda trial: trial.continue_wait(),
    lambda trial: trial.interrupt(),
    lambda trial: trial.edit("f", "a", "b"),
    lambda trial: trial.run_program("true"),
]


@pytest.mark.parametrize("cell", ["sleep(1)", "sleep(1000)"], ids=["ended", "running"])
def test_only_a_submission_is_left_when_compute_runs_out_between_actions(cell: str) -> None:
    bench = TrialBench(compute=100, cell=30, model=FakeModel("I must submit"))
    bench.trial.execute(cell)
    bench.kernel.work(100, 100)
    assert bench.kernel.is_killed
    for act in ACTIONS:
        step = act(bench.trial)
        assert (step.outcome, step.observation) == ("error", ONLY_SUBMIT)
    assert bench.trial.complete(ASK).text == "I must submit"
    assert bench.run(lambda trial: trial.submit(42)) == "submitted"
    assert (bench.trial.submitted, bench.trial.submission) == (True, 42)


def test_a_sample_does_not_stop_a_cell_that_is_waited_for() -> None:
    bench = TrialBench(compute=100)
    with bench.trial.compute_limit.put_off():
        bench.kernel.work(100, 100)
        assert not bench.kernel.is_killed
    bench.kernel.work(1, 0)
    assert bench.kernel.is_killed


class Printing(FakeKernel):
    """The last cell can `print` later."""

    def execute(self, code: str, *, listener: Any = None, **options: Any) -> CellResult:
        self.print = listener
        return super().execute(code, listener=listener, **options)


def test_what_a_cell_prints_after_the_compute_limit_is_not_credited() -> None:
    kernel = Printing(FakeClock())
    bench = TrialBench(compute=5, cell=1, landmarks=("epoch 1", "epoch 9"), kernel=kernel)
    bench.trial.execute("sleep(1000)")
    kernel.work(2, 0)
    kernel.print("epoch 1\n")
    kernel.work(4, 0)
    kernel.print("epoch 9\n")
    bench.trial.close()
    assert bench.landmarks.hits == [True, False]


def test_the_step_and_token_and_cost_and_wall_budgets_end_the_trial() -> None:
    def forever(trial: Trial) -> None:
        while True:
            trial.execute("sleep(1)")
            trial.budget.charge_model(prompt_tokens=10, completion_tokens=1, cost_usd=0.1, seconds=1)

    assert TrialBench(steps=3).run(forever) == "steps"
    assert TrialBench(tokens=35).run(forever) == "tokens"
    assert TrialBench(cost=0.35).run(forever) == "cost"
    assert TrialBench(wall=7).run(forever) == "wall"


def test_an_agent_that_repeats_one_action_ends_and_its_steps_say_how_often_it_did() -> None:
    def forever(trial: Trial) -> None:
        while True:
            trial.execute("1")

    bench = TrialBench()
    assert bench.run(forever) == "steps"
    assert [step.repeats for step in bench.recorded] == list(range(1, 501))


def test_only_the_same_action_with_the_same_observation_is_a_repeat() -> None:
    bench = TrialBench()
    for step in pre_execute(make_task(pre_execute=["n = 0"]), bench.kernel):  # type: ignore[arg-type]
        bench.trial.add_pre_executed(step)

    def act(trial: Trial) -> None:
        trial.execute("n = 0")
        for code in ("1", "1", "2", "1", "n = n + 1; n", "n = n + 1; n"):
            trial.execute(code, thought=f"{len(trial.history)}")
        trial.reject("not an action")
        trial.reject("not an action")

    bench.run(act)
    assert [step.repeats for step in bench.recorded] == [1, 1, 1, 2, 1, 1, 1, 1, 1, 2]


def test_an_agent_that_raises_ends_only_its_own_trial() -> None:
    bench = TrialBench()
    assert bench.run(lambda trial: trial.task.nonsense) == "agent_error"  # type: ignore[attr-defined]
    assert "nonsense" in (bench.trial.error or "")


def test_an_agent_that_exits_or_swallows_the_end_does_not_change_the_reason() -> None:
    assert TrialBench().run(lambda _: sys.exit(3)) == "agent_error"
    assert TrialBench(compute=100).run(swallowing(lambda trial: trial.execute("sleep(1000)"))) == "compute"


def test_a_dead_kernel_is_told_and_replaced() -> None:
    bench = TrialBench()
    step = bench.trial.execute("die()")
    assert step.outcome == "kernel_died"
    assert "exit code 3" in step.observation
    assert "variables are lost" in step.observation
    assert bench.kernel.restarts == 1
    assert bench.trial.execute("1").outcome == "ok"


def test_a_lost_sandbox_ends_the_trial_as_the_agents_doing() -> None:
    assert TrialBench().run(lambda trial: trial.execute("lose()")) == "sandbox_lost"


def test_a_lost_engine_is_not_the_agents_doing_whatever_the_agent_catches() -> None:
    def act(trial: Trial) -> object:
        return trial.execute("fail_engine()")

    for agent in (act, swallowing(act)):
        with pytest.raises(EngineError):
            TrialBench().run(agent)


def test_of_several_failures_the_first_is_reported() -> None:
    class FailsLater:
        """Its call fails after the sandbox has failed meanwhile."""

        def complete(self, *_: object, **__: object) -> Completion:
            with contextlib.suppress(TrialEnded):
                bench.trial.execute("fail_engine()")
            raise InfrastructureError("the second failure")

    bench = TrialBench(model=FailsLater())
    with pytest.raises(EngineError):
        bench.run(lambda trial: trial.complete(ASK))


def test_a_landmark_is_credited_to_the_step_that_first_shows_it() -> None:
    bench = TrialBench(landmarks=("epoch 1", "done$"))
    assert bench.trial.execute("print('epoch 1')").landmarks == [0]
    assert bench.trial.execute("print('epoch 1'); print('done')").landmarks == []
    assert bench.trial.execute("print('done', end='')").landmarks == [1]


def test_pre_executed_cells_run_to_their_end_uncharged_and_uncredited() -> None:
    bench = TrialBench(compute=100, landmarks=("ready",))
    bench.budget.stop_metering()
    task = make_task(pre_execute=["x = 5", "sleep(1000); print('ready')", "raise ValueError('so')"])
    for step in pre_execute(task, bench.kernel):  # type: ignore[arg-type]
        bench.trial.add_pre_executed(step)
    bench.budget.start_metering(lambda: bench.kernel.busy_seconds)
    assert {step.origin for step in bench.trial.history} == {"pre_execute"}
    assert [step.outcome for step in bench.trial.history] == ["ok", "timed_out", "ok", "error"]
    assert bench.budget.compute_seconds == 0
    assert bench.landmarks.hits == [False]
    assert bench.trial.execute("x").observation == "5"
    assert bench.budget.steps == 1


def test_an_edit_of_the_prefix_that_is_not_of_whole_lines_writes_all_its_line_ends() -> None:
    kernel = FakeKernel()
    kernel.files.write("f", b"a\nb\n")
    task = make_task(pre_execute=[{"edit": {"path": "f", "before": "a", "after": "c\n\n"}}])
    list(pre_execute(task, kernel))  # type: ignore[arg-type]
    assert kernel.files.read("f") == b"c\n\n\nb\n"


def test_an_edit_of_the_prefix_that_does_not_fit_is_no_fault_of_the_agent() -> None:
    task = make_task(pre_execute=[{"edit": {"path": "f", "before": "a", "after": "b"}}])
    with pytest.raises(InfrastructureError, match="pre-executed edit 1 of f"):
        list(pre_execute(task, FakeKernel()))  # type: ignore[arg-type]


def test_a_model_call_is_charged_and_told_by_the_step_that_follows_it() -> None:
    usage = Usage(prompt_tokens=70, completion_tokens=5, cost_usd=0.5)
    answer = Completion(text="ls", usage=usage, seconds=2.0)
    bench = TrialBench(model=FakeModel(answer))
    assert bench.trial.complete(ASK, temperature=0.2) is answer
    steps = [bench.trial.execute("1"), bench.trial.execute("2")]
    assert [(step.prompt_tokens, step.completion_tokens) for step in steps] == [(70, 5), (0, 0)]
    budget = bench.budget
    assert (budget.cost_usd, budget.model_seconds, budget.compute_seconds) == (0.5, 2.0, 0.0)


def test_a_call_that_passes_the_token_limit_ends_the_trial_and_is_the_last() -> None:
    model = FakeModel(Completion(text="a", usage=Usage(prompt_tokens=1001)), "b")

    def ask_on(trial: Trial) -> None:
        while True:
            with contextlib.suppress(Exception):
                trial.complete(ASK)

    bench = TrialBench(tokens=1000, model=model)
    assert bench.run(ask_on) == "tokens"
    assert len(model.requests) == 1
    with pytest.raises(TrialEnded, match="tokens"):
        bench.trial.submit(42)


@pytest.mark.parametrize("limit", ["tokens", "cost", "context"])
def test_a_call_that_would_pass_a_limit_ends_the_trial(limit: str) -> None:
    model = Failing(BudgetSpentError(limit))
    assert TrialBench(model=model).run(lambda trial: trial.complete(ASK)) == limit


def test_a_model_that_fails_is_no_fault_of_the_agent_whatever_it_catches() -> None:
    with pytest.raises(ModelError, match="no answer"):
        TrialBench(model=Failing(ModelError("no answer"))).run(swallowing(lambda trial: trial.complete(ASK)))


def test_an_agent_that_needs_a_model_where_none_is_named_is_told_the_option() -> None:
    with pytest.raises(InfrastructureError, match="--super-model"):
        TrialBench().run(lambda trial: trial.complete(ASK))


def test_an_answer_that_is_no_action_is_a_step_in_which_nothing_was_done() -> None:
    bench = TrialBench(steps=2)
    step = bench.trial.reject("no action found", thought="hm")
    assert (step.action, step.outcome, step.observation) == (Action(type=""), "error", "no action found")
    bench.trial.reject("again")
    with pytest.raises(TrialEnded, match="steps"):
        bench.trial.reject("and again")


def test_a_tool_of_the_agents_own_works_on_the_files_and_is_recorded() -> None:
    def count(files: SandboxFiles) -> tuple[str, str]:
        return str(len(files.read("a.txt"))), "ok"

    bench = TrialBench()
    bench.kernel.files.write("a.txt", b"four")
    step = bench.trial.use(Action(type="count", content="a.txt"), count, thought="how long?")
    assert (step.action.type, step.observation, step.thought) == ("count", "4", "how long?")
    bench.trial.execute("sleep(1000)")
    assert "still running" in bench.trial.use(Action(type="count"), count).observation


def test_what_an_agent_leaves_behind_can_neither_act_nor_ask() -> None:
    model = FakeModel("a", "b")
    bench = TrialBench(model=model)
    assert bench.run(lambda trial: trial.complete(ASK)) == "returned"
    for act in (lambda: bench.trial.complete(ASK), lambda: bench.trial.execute("1")):
        with pytest.raises(TrialEnded, match="returned"):
            act()
    assert len(model.requests) == 1
    assert bench.recorded == []


def test_an_agent_whose_run_is_a_generator_is_told_so() -> None:
    class Lazy:
        def run(self, trial: Trial) -> Any:
            yield trial.execute("1")

    bench = TrialBench()
    assert run_agent(Lazy(), bench.trial, lambda _: False) == "agent_error"
    assert "yield" in (bench.trial.error or "")


def test_a_step_that_a_thread_finishes_after_the_end_of_its_trial_is_not_recorded() -> None:
    bench = TrialBench()
    running, finish, threads = threading.Event(), threading.Event(), []

    def tool(_files: SandboxFiles) -> tuple[str, str]:
        running.set()
        finish.wait()
        return "late", "ok"

    def leave(trial: Trial) -> None:
        def act() -> None:
            with contextlib.suppress(TrialEnded):
                trial.use(Action(type="late"), tool)

        threads.append(threading.Thread(target=act))
        threads[0].start()
        running.wait()

    assert bench.run(leave) == "returned"
    finish.set()
    threads[0].join()
    assert bench.recorded == bench.trial.history == []
