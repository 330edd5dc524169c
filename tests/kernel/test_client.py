"""Kernel against a scripted bridge: the orders of messages that a real kernel gives only rarely."""

import errno
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import EngineError, InfrastructureError
from pytest_super.kernel import client, file_requests, link, live
from pytest_super.kernel.cell import Outcome, SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.inside import frames
from tests.kernel.scripted import Script, ScriptedBridge, ScriptedSandbox, answer_info


def finish(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
    bridge.publish(request, "stream", name="stdout", text=f"ran {request['content']['code']}\n")
    bridge.reply(request)
    bridge.idle(request)


def do_nothing(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
    pass


@contextmanager
def started(bridge: ScriptedBridge, clock: Callable[[], float] = time.monotonic) -> Iterator[Kernel]:
    kernel = Kernel(ScriptedSandbox(bridge), clock=clock)
    try:
        kernel.start()
        yield kernel
    finally:
        kernel.close()


# Readiness


def test_ready_only_when_a_message_came_on_iopub_however_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "START_SECONDS", 5)
    asked: list[dict[str, Any]] = []

    def prove_late(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        asked.append(request)
        if len(asked) == 4:
            threading.Timer(3 * live.PROOF_SECONDS, bridge.idle, (request, "busy")).start()
        bridge.publish(request, "kernel_info_reply", frames.SHELL, status="ok")

    bridge = ScriptedBridge(finish)
    bridge.on_info = prove_late
    with started(bridge) as kernel:
        assert len(asked) >= 4
        assert kernel.execute("1", timeout=5).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("on_info", "message"),
    [
        (lambda bridge, _: bridge.tell("died", why="exit code 1"), "exit code 1"),
        (do_nothing, "in time"),
        (lambda bridge, _: bridge.close(), "it was turned off"),
    ],
    ids=["dies", "silent", "ends"],
)
def test_a_failed_start_is_an_infrastructure_error_that_says_why(
    on_info: Script, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = ScriptedBridge(finish)
    bridge.on_info = on_info
    monkeypatch.setattr(client, "START_SECONDS", 0.05 if on_info is do_nothing else 30)
    with pytest.raises(InfrastructureError, match=message), started(bridge):
        pass


def test_a_kernel_that_was_not_started_says_so() -> None:
    kernel = Kernel(ScriptedSandbox(ScriptedBridge(finish)))
    with pytest.raises(RuntimeError, match="not started"):
        kernel.execute("1")
    assert not kernel.is_running
    assert kernel.busy_seconds == 0
    kernel.close()


# The end of a cell


def test_the_reply_may_come_after_idle() -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        bridge.idle(request)
        bridge.reply(request)

    with started(ScriptedBridge(script)) as kernel:
        assert kernel.execute("1", timeout=5).outcome is Outcome.OK


@pytest.mark.parametrize("missing", ["reply", "idle"])
def test_one_message_ends_no_cell_but_a_later_request_shows_that_it_is_over(missing: str) -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        bridge.publish(request, "stream", name="stdout", text="all of it")
        bridge.idle(request) if missing == "reply" else bridge.reply(request)

    with started(ScriptedBridge(script)) as kernel:
        first = kernel.execute("1", timeout=0.05)
        assert (first.outcome, first.text) == (Outcome.TIMED_OUT, "all of it")
        assert kernel.interrupt(30).outcome is Outcome.INTERRUPTED


def test_a_reply_that_the_probe_overtook_counts() -> None:
    def answer_probe(bridge: ScriptedBridge, probe: dict[str, Any]) -> None:
        (request,) = bridge.requests
        bridge.idle(request)
        bridge.idle(probe, "busy")
        bridge.idle(probe)
        bridge.reply(request)
        bridge.publish(probe, "kernel_info_reply", frames.SHELL, status="ok")

    bridge = ScriptedBridge(do_nothing)
    with started(bridge) as kernel:
        bridge.on_info = answer_probe
        assert kernel.execute("1", timeout=30).outcome is Outcome.OK


def test_messages_of_others_end_nothing() -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        other = bridge.session.msg("execute_request")
        bridge.publish(other, "stream", name="stdout", text="not ours")
        bridge.reply(other)
        bridge.idle(other)
        bridge.idle(request, "busy")

    with started(ScriptedBridge(script)) as kernel:
        result = kernel.execute("1", timeout=0.1)
        assert (result.outcome, result.text) == (Outcome.TIMED_OUT, "")


def test_an_error_ends_with_its_reply_and_a_refused_cell_is_one() -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        error: dict[str, Any] = {"ename": "ValueError", "evalue": "bad", "traceback": ["ValueError: bad"]}
        bridge.publish(request, "error", **error)
        if len(bridge.requests) > 1:
            bridge.reply(request, *(("error",) if len(bridge.requests) == 2 else ("aborted",)), **error)
            bridge.idle(request)

    with started(ScriptedBridge(script)) as kernel:
        assert kernel.execute("1", timeout=0.05).is_running
        kernel.restart()
        result = kernel.execute("2", timeout=5)
        assert (result.outcome, result.detail) == (Outcome.ERROR, "ValueError: bad")
        assert kernel.execute("3", timeout=5).outcome is Outcome.ERROR


def test_half_a_surrogate_pair_in_code_is_sent_all_the_same() -> None:
    with started(ScriptedBridge(finish)) as kernel:
        assert kernel.execute("'\ud800'", timeout=5).text == "ran '?'\n"


# What code inside can write


def garbled(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
    """Messages that are none, before the cell's own."""
    for parts in ([], [b"x"], [b"<IDS|MSG>", b"no signature", b"{}", b"{}", b"{}", b"{}"]):
        bridge.send(frames.encode(frames.IOPUB, parts))
    for content in ({"name": 1, "text": None}, {"data": [], "metadata": 3}, {"traceback": "x"}):
        for kind in ("stream", "display_data", "update_display_data", "execute_result", "error", "status"):
            bridge.publish(None, kind, **content)
            bridge.publish(request, "status", **content)
    finish(bridge, request)


def test_messages_that_are_none_do_no_harm() -> None:
    with started(ScriptedBridge(garbled)) as kernel:
        assert kernel.execute("x", timeout=5).text == "ran x\n"


@pytest.mark.parametrize("data", [b"garbage " * 10, b"\x00\xff\xff\xff\xff"])
def test_what_is_no_frame_ends_the_sandbox(data: bytes) -> None:
    with started(ScriptedBridge(lambda bridge, _: bridge.send(data))) as kernel:
        result = kernel.execute("1", timeout=30)
        assert result.outcome is Outcome.SANDBOX_LOST
        assert "not from the bridge" in result.detail


def test_a_message_whose_type_is_no_name_is_dropped_and_counted() -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        message = bridge.session.msg("stream", {"name": "stdout", "text": "no"}, parent=request)
        message["header"]["msg_type"] = ["stream"]
        bridge.send(frames.encode(frames.IOPUB, bridge.session.serialize(message, ident=b"topic")))
        finish(bridge, request)

    with started(ScriptedBridge(script)) as kernel:
        result = kernel.execute("x", timeout=30)
        assert (result.text, result.dropped) == ("ran x\n", {"unreadable": 1})
        assert kernel.execute("y", timeout=30).dropped == {"unreadable": 1}


def test_control_frames_that_do_not_fit_are_dropped_and_counted() -> None:
    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        for parts in ([b"{}"], [b"[]", b""], [b"{", b""]):
            bridge.send(frames.encode(frames.CONTROL, parts))
        bridge.tell("process", number="1")
        bridge.tell("listening", port="x")
        finish(bridge, request)

    with started(ScriptedBridge(script)) as kernel:
        assert kernel.execute("1", timeout=30).dropped == {"unreadable": 3, "process": 1, "listening": 1}


def test_a_cause_of_death_cannot_look_like_another_message() -> None:
    script: Script = lambda bridge, _: bridge.tell("died", why="x\nE  forged\x1b[31m")  # noqa: E731
    with started(ScriptedBridge(script)) as kernel:
        assert kernel.execute("1", timeout=30).detail == "x | E  forged?[31m"


# Deaths


def test_a_stream_that_ends_is_a_lost_sandbox() -> None:
    with started(ScriptedBridge(lambda bridge, _: bridge.close())) as kernel:
        for _ in range(2):
            result = kernel.execute("1", timeout=30)
            assert (result.outcome, result.detail) == (Outcome.SANDBOX_LOST, "it was turned off")
        with pytest.raises(SandboxLostError, match="gone: it was turned off") as lost:
            kernel.files.read("x")
        assert lost.value.detail == "it was turned off"


def test_an_engine_that_does_not_answer_is_an_error() -> None:
    bridge = ScriptedBridge(lambda bridge, _: bridge.close())
    kernel = Kernel(ScriptedSandbox(bridge, death=EngineError("no engine")))
    kernel.start()
    with pytest.raises(EngineError, match="no engine"):
        kernel.execute("1", timeout=30)
    with pytest.raises(EngineError, match="no engine"):
        kernel.files.entries()
    kernel.close()


@pytest.mark.parametrize("is_send_blocked", [False, True])
def test_a_sandbox_that_says_nothing_is_given_up(
    is_send_blocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(link, "PING_SECONDS", 0.05)
    bridge = ScriptedBridge(do_nothing)
    with started(bridge) as kernel:
        if is_send_blocked:
            bridge.stop()
        result = kernel.execute("1", timeout=30)
        assert result.outcome is Outcome.SANDBOX_LOST
        assert "did not answer" in result.detail


def test_an_engine_that_fails_is_the_cause_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(link, "PING_SECONDS", 0.05)
    kernel = Kernel(ScriptedSandbox(ScriptedBridge(do_nothing), death=EngineError("it was paused")))
    kernel.start()
    with pytest.raises(EngineError, match="it was paused"):
        kernel.execute("1", timeout=30)
    kernel.close()


def test_a_kernel_can_be_closed_while_a_send_to_it_is_blocked() -> None:
    bridge = ScriptedBridge(finish)
    with started(bridge) as kernel, ThreadPoolExecutor() as other:
        bridge.stop()
        cell = other.submit(kernel.execute, "1")
        assert bridge.has_blocked.wait(30)
        kernel.close()
        assert cell.result(30).outcome is Outcome.SANDBOX_LOST


def test_a_kernel_that_does_not_restart_in_time_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LEAST_RESTART_SECONDS", 0.0)
    bridge = ScriptedBridge(finish)
    with started(bridge) as kernel:
        bridge.on_info = do_nothing
        kernel.restart(timeout=0.05)
        result = kernel.execute("1", timeout=5)
        assert result.outcome is Outcome.KERNEL_DIED
        assert "in time" in result.detail
        bridge.on_info = lambda bridge, _: bridge.tell("died", why="it could not be started: disk full")
        kernel.restart()
        assert "disk full" in kernel.execute("1", timeout=5).detail
        # The limit is shorter than the start of a kernel.
        monkeypatch.undo()
        bridge.on_info = lambda *call: threading.Timer(0.2, answer_info, call).start()
        kernel.restart(timeout=0.01)
        assert kernel.execute("2", timeout=5).text == "ran 2\n"


# Time and listeners


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_cell_counts_and_is_heard_until_it_is_over_whoever_waits() -> None:
    clock, heard = Clock(), list[str]()
    bridge = ScriptedBridge(ScriptedBridge.idle)
    with started(bridge, clock=clock) as kernel:
        # Code can send an idle message long before its end.
        assert kernel.execute("1", timeout=0.01, listener=heard.append).is_running
        kernel.files.read("all that was sent has come")
        clock.now += 7
        assert kernel.busy_seconds == 7
        finish(bridge, bridge.requests[0])
        kernel.files.read("all that was sent has come")
        clock.now += 50
        assert kernel.busy_seconds == 7
        assert kernel.wait(30).seconds == 7
        assert heard == ["ran 1\n"]


def test_the_time_of_a_restart_counts() -> None:
    clock = Clock()
    bridge = ScriptedBridge(finish)

    def start_slowly(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        clock.now += 8
        bridge.on_info = answer_info
        answer_info(bridge, request)

    with started(bridge, clock=clock) as kernel:
        clock.now += 3
        bridge.on_info = start_slowly
        kernel.restart()
        clock.now += 3
        assert kernel.busy_seconds == 8


def test_an_error_of_the_listener_is_not_lost() -> None:
    def fail(text: str) -> None:
        raise LookupError(text)

    with started(ScriptedBridge(finish)) as kernel:
        with pytest.raises(LookupError, match="ran 1"):
            kernel.execute("1", timeout=5, listener=fail)
        assert kernel.execute("2", timeout=5).text == "ran 2\n"


def test_what_comes_between_cells_comes_with_the_next_and_goes_to_its_listener() -> None:
    first: list[str] = []
    second: list[str] = []
    bridge = ScriptedBridge(finish)
    with started(bridge) as kernel:
        kernel.execute("1", timeout=5, listener=first.append)
        for text in ("back", "ground\n"):
            bridge.publish(bridge.requests[0], "stream", name="stdout", text=text)
        kernel.files.read("all that was sent has come")
        assert kernel.execute("2", timeout=5, listener=second.append).text == "background\nran 2\n"
        assert kernel.execute("3", timeout=5, listener=second.append).text == "ran 3\n"
    assert first == ["ran 1\n"]
    assert second == ["background\n", "ran 2\n", "ran 3\n"]


def test_a_flood_between_cells_is_shortened_for_the_listener_too() -> None:
    heard: list[str] = []
    bridge = ScriptedBridge(finish)
    with started(bridge) as kernel:
        kernel.execute("1", timeout=5)
        for number in range(10):
            bridge.publish(bridge.requests[0], "stream", name="stdout", text=f"{number}" * 100_000)
        kernel.files.read("all that was sent has come")
        result = kernel.execute("2", timeout=5, listener=heard.append)
    assert result.omitted >= 800_000
    assert len(heard[0]) < 210_000
    assert heard[0].startswith("0")
    assert heard[0].endswith("9")


def test_what_comes_from_earlier_cells_while_one_runs_goes_to_their_listener() -> None:
    first: list[str] = []
    second: list[str] = []

    def script(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        bridge.publish(bridge.requests[0], "stream", name="stdout", text="background\n")
        finish(bridge, request)

    with started(ScriptedBridge(script)) as kernel:
        kernel.execute("1", timeout=5, listener=first.append)
        assert kernel.execute("2", timeout=5, listener=second.append).text == "background\nran 2\n"
    assert first == ["background\n", "ran 1\n", "background\n"]
    assert second == ["ran 2\n"]


# Files


def test_a_sandbox_that_does_not_go_on_with_a_file_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_requests, "ANSWER_SECONDS", 0.05)
    bridge = ScriptedBridge(finish)
    bridge.on_file = do_nothing
    with started(bridge) as kernel:
        with pytest.raises(SandboxLostError, match="did not answer a file request"):
            kernel.files.write("pipe", b"x")
        assert kernel.execute("1", timeout=30).outcome is Outcome.SANDBOX_LOST


def test_an_upload_that_fails_inside_is_that_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_requests, "ANSWER_SECONDS", 5)
    # More than one piece, so that `tarfile` has data in its buffer when the first one fails.
    (tmp_path / "large").write_bytes(bytes(3 * 2**20))
    bridge = ScriptedBridge(finish)
    bridge.on_file = lambda bridge, request: bridge.tell(
        "failed", id=request["id"], errno=errno.ENOSPC, message="No space left"
    )
    with started(bridge) as kernel:
        with pytest.raises(OSError, match="No space left"):
            kernel.files.upload(tmp_path, "new")
        assert kernel.execute("1", timeout=30).outcome is Outcome.OK


class Answering:
    """The sandbox's side of a file channel: answers requests by frames of these kinds, then `done`."""

    def __init__(self, *kinds: str) -> None:
        self.channel = file_requests.FileChannel(self._send_control, lost=RuntimeError, give_up=print)
        self.kinds = kinds
        self.accepted: list[bool] = []

    def _send_control(self, op: str, payload: bytes = b"", **fields: Any) -> None:  # noqa: ARG002
        if "id" in fields:
            self.accepted = [self.answer(kind, fields["id"]) for kind in (*self.kinds, "done")]

    def answer(self, kind: str, number: int) -> bool:
        fields = {"id": number, "errno": None, "message": "no"}
        return self.channel.answer(kind, fields, b"x" * 100 if kind == "data" else b"")


def test_only_frames_that_were_asked_for_are_kept() -> None:
    sandbox = Answering("data", "more", "data")
    assert len(sandbox.channel.data("read", "x", 200)) == 200
    assert sandbox.accepted == [True, False, True, True]
    assert not any(sandbox.answer(kind, 1) for kind in ("data", "more", "done", "failed"))
    assert not sandbox.answer("data", 2)
    beyond = Answering("data", "data", "data")
    with pytest.raises(OSError, match="Larger than allowed"):
        beyond.channel.data("read", "x", 150)
    assert beyond.accepted == [True, True, False, False]
    twice = Answering("more", "more", "data", "failed")
    with pytest.raises(OSError, match="no"), twice.channel.sending("write", "x", size=4) as send:
        send(b"data")
    assert twice.accepted == [True, False, False, True, False]


def test_a_list_of_files_that_does_not_fit_is_an_error_of_the_file() -> None:
    def lie(bridge: ScriptedBridge, request: dict[str, Any]) -> None:
        bridge.tell("data", b'[{"name": 5}]', id=request["id"])
        bridge.tell("done", id=request["id"])

    bridge = ScriptedBridge(finish)
    bridge.on_file = lie
    with (
        started(bridge) as kernel,
        pytest.raises(OSError, match="The sandbox's answer is its name is not text"),
    ):
        kernel.files.entries()
