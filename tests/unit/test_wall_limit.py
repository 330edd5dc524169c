"""How the wall limit ends an agent: at once in its own code, and after the step in an action."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_super.errors import TrialEnded
from pytest_super.kernel.files import SandboxFiles
from pytest_super.model.completion import BudgetSpentError
from pytest_super.store.trajectory import Action
from pytest_super.trial import wall_limit
from pytest_super.trial.trial import Trial
from pytest_super.trial.wall_limit import SIGNAL
from tests.unit.test_trial import TrialBench

WALL = 0.2
SHOW = Action(type="show")


class Timed(TrialBench):
    """A trial with a wall limit in real time."""

    def __init__(self, act: Callable[[Trial], Any], model: Any = None, wall: float = WALL) -> None:
        super().__init__(model=model, clock=time.monotonic, wall=wall)
        self.act = act

    def end(self) -> str:
        """Run the trial to its end. Returns its stop reason."""
        return self.run(self.act)


def outlast_the_limit(_files: SandboxFiles) -> tuple[str, str]:
    """A tool that returns after the signal of the limit has arrived."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    with reader, writer:
        signal.set_wakeup_fd(writer.fileno())
        try:
            reader.recv(1)
        finally:
            signal.set_wakeup_fd(-1)
    return "shown", "ok"


@pytest.fixture(autouse=True)
def _signal_handler_is_restored() -> Iterator[None]:
    assert SIGNAL is not None
    before = signal.getsignal(SIGNAL)
    yield
    assert signal.getsignal(SIGNAL) is before


def sleep(_trial: Trial) -> None:
    time.sleep(600)


def wait_for_another_thread(_trial: Trial) -> None:
    threading.Event().wait()


async def await_forever(_trial: Trial) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("hang", [sleep, wait_for_another_thread, await_forever])
def test_an_agent_that_hangs_in_its_own_code_is_ended(hang: Callable[[Trial], Any]) -> None:
    def act(trial: Trial) -> Any:
        trial.execute("print('begun')")
        return hang(trial)

    bench = Timed(act)
    assert bench.end() == "wall"
    assert [step.observation for step in bench.recorded] == ["begun\n"]


def test_an_action_that_is_under_way_at_the_limit_keeps_its_step() -> None:
    def act(trial: Trial) -> None:
        trial.use(SHOW, outlast_the_limit)
        pytest.fail("the action did not raise")

    bench = Timed(act)
    assert bench.end() == "wall"
    assert [step.observation for step in bench.recorded] == ["shown"]


def test_an_action_inside_another_does_not_end_the_outer_one() -> None:
    def use_another(_files: SandboxFiles) -> tuple[str, str]:
        bench.trial.use(SHOW, outlast_the_limit)
        with pytest.raises(TrialEnded, match="wall"):
            bench.trial.execute("1")
        return "outer", "ok"

    bench = Timed(lambda trial: trial.use(SHOW, use_another))
    assert bench.end() == "wall"
    assert [step.observation for step in bench.recorded] == ["shown", "outer"]


def test_a_call_of_the_model_is_interrupted() -> None:
    class Silent:
        def complete(self, *_: object, **__: object) -> Any:
            time.sleep(600)

    def ask(trial: Trial) -> None:
        trial.complete([{"role": "user", "content": "go on"}])

    bench = Timed(ask, model=Silent())
    assert bench.end() == "wall"
    assert bench.budget.model_seconds > 0


def test_a_call_that_ends_at_the_limit_by_itself_is_not_interrupted() -> None:
    ended: list[bool] = []

    class Punctual:
        ends_at_wall_limit = True

        def complete(self, *_: object, **__: object) -> Any:
            while bench.budget.wall_left() > 0:
                time.sleep(0.01)
            time.sleep(0.1)
            ended.append(True)
            raise BudgetSpentError("wall")

    def ask(trial: Trial) -> None:
        trial.complete([{"role": "user", "content": "go on"}])

    bench = Timed(ask, model=Punctual())
    assert (bench.end(), ended) == ("wall", [True])


def test_an_agent_that_swallows_the_end_and_takes_no_action_gets_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wall_limit, "AGAIN_SECONDS", 0.1)

    def act(trial: Trial) -> None:
        try:
            sleep(trial)
        except BaseException:
            sleep(trial)

    assert Timed(act).end() == "wall"


def test_a_submission_before_the_limit_stays_the_stop_reason() -> None:
    def act(trial: Trial) -> None:
        trial.submit(42)
        sleep(trial)

    bench = Timed(act)
    assert (bench.end(), bench.trial.submission) == ("submitted", 42)


def test_an_agent_that_ends_in_time_hears_nothing_of_the_limit() -> None:
    assert Timed(lambda trial: trial.execute("1"), wall=60).end() == "returned"


def test_an_interrupt_ends_more_than_the_trial() -> None:
    def interrupt(_trial: Trial) -> None:
        signal.raise_signal(signal.SIGINT)

    bench = Timed(interrupt, wall=60)
    with pytest.raises(KeyboardInterrupt):
        bench.end()
    assert bench.trial.stop_reason == "interrupted"


def test_outside_the_main_thread_the_limit_is_seen_by_the_next_action() -> None:
    def act(trial: Trial) -> None:
        while bench.budget.wall_left() > 0:
            pass
        trial.execute("1")

    bench, reasons = Timed(act), []
    thread = threading.Thread(target=lambda: reasons.append(bench.end()))
    thread.start()
    thread.join()
    assert (reasons, bench.recorded) == (["wall"], [])
