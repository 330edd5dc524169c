"""The kernel of the next trial, started while this one runs."""

import threading
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from pytest_super.errors import EngineError
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.session.trial.start_ahead import StartAhead
from pytest_super.snapshots.prefix import Prefix
from pytest_super.tasks.task import Task

SECONDS = 10.0


@dataclass
class Kernel:
    is_alive: bool = True
    is_closed: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        self.is_closed.set()


@dataclass(eq=False)
class Item:
    task: Task


def item(id: str) -> Any:
    return Item(Task.model_validate({"id": id, "set": "expert", "query": "do it", "answer": 42}))


class Starts:
    """Starts kernels. `begun` has the tasks of those it began; `gate` is what they wait for."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.kernel = Kernel()
        self.begun: list[str] = []

    def start(self, _sandbox: Any, task: Task) -> ReadyKernel:
        self.begun.append(task.id)
        assert self.gate.wait(SECONDS)
        return ReadyKernel(cast("Any", self.kernel), f"repository of {task.id}", Prefix(task), {})


def choose(*_: Any) -> Any:
    """The tests' starts need no sandbox."""


@pytest.fixture
def starts() -> Starts:
    return Starts()


@pytest.fixture
def prefetch(starts: Starts) -> StartAhead:
    return StartAhead(choose, starts.start)


def begin(prefetch: StartAhead, next: Any) -> None:
    prefetch.next = next
    prefetch.begin()


def test_the_trial_that_it_was_started_for_waits_and_takes_it_once(
    prefetch: StartAhead, starts: Starts
) -> None:
    starts.gate.clear()
    one = item("one")
    begin(prefetch, one)
    threading.Timer(0.05, starts.gate.set).start()
    ready = prefetch.take(one, one.task)
    assert ready is not None
    assert ready.repository == "repository of one"
    assert prefetch.take(one, one.task) is None
    prefetch.end()
    assert not starts.kernel.is_closed.is_set()
    # One that nobody took is closed at the end, which waits for its start.
    starts.gate.clear()
    begin(prefetch, item("two"))
    threading.Timer(0.05, starts.gate.set).start()
    prefetch.end()
    assert starts.kernel.is_closed.is_set()


def test_another_trial_does_not_take_it_and_one_that_nobody_took_is_closed(
    prefetch: StartAhead, starts: Starts
) -> None:
    one, two = item("one"), item("two")
    begin(prefetch, item("skipped"))
    begin(prefetch, two)
    assert starts.kernel.is_closed.wait(SECONDS)
    assert prefetch.take(one, one.task) is None
    assert prefetch.take(two, two.task)


def test_a_project_whose_fixture_changes_tasks_gets_none_that_it_cannot_use(
    prefetch: StartAhead, starts: Starts
) -> None:
    one = item("one")
    begin(prefetch, one)
    assert prefetch.take(one, one.task.model_copy(update={"query": "another"})) is None
    assert starts.kernel.is_closed.wait(SECONDS)
    for next in (item("two"), None):
        begin(prefetch, next)
    prefetch.end()
    assert starts.begun == ["one"]


def test_one_that_has_died_meanwhile_is_not_given(prefetch: StartAhead, starts: Starts) -> None:
    one = item("one")
    begin(prefetch, one)
    starts.kernel.is_alive = False
    assert prefetch.take(one, one.task) is None
    assert starts.kernel.is_closed.is_set()


@pytest.mark.parametrize("error", [EngineError("it does not answer"), pytest.exit.Exception("enough")])
@pytest.mark.parametrize("where", ["choose", "start"])
def test_what_fails_is_left_to_the_trial_to_meet(where: str, error: BaseException) -> None:
    def fail(*_: Any) -> Any:
        raise error

    prefetch = StartAhead(fail if where == "choose" else choose, fail)
    one = item("one")
    begin(prefetch, one)
    assert prefetch.take(one, one.task) is None
    prefetch.end()


def test_where_no_thread_can_be_started_none_is_waited_for(
    prefetch: StartAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one = item("one")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        begin(prefetch, one)
    assert prefetch.take(one, one.task) is None
