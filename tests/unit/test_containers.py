"""The parts of a container's life that need no engine: its stream, its end, its owner, its watchdog."""

import io
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from pytest_super import platform
from pytest_super.errors import EngineError
from pytest_super.kernel.inside.supervision import KILLED
from pytest_super.kernel.providers.docker.attach import AttachedStream
from pytest_super.kernel.providers.docker.death import EndReport, Event, describe
from pytest_super.kernel.providers.docker.disk_use import watch
from pytest_super.kernel.providers.docker.sweep import LEASE, container_name, is_abandoned
from pytest_super.kernel.providers.sandbox_folder import lives, owner_label

SECOND = 1_000_000_000
GIB = 2**30


def frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">BxxxI", kind, len(data)) + data


def stream_of(data: bytes) -> AttachedStream:
    ours, theirs = socket.socketpair()
    theirs.sendall(data)
    theirs.close()
    return AttachedStream(ours, io.BytesIO())


def read_all(stream: AttachedStream, size: int) -> bytes:
    output = b""
    while data := stream.read(size):
        assert len(data) <= size
        output += data
    return output


@pytest.mark.parametrize("size", [1, 3, 65536])
def test_outputs_are_told_apart_whatever_the_pieces(size: int) -> None:
    stream = stream_of(frame(1, b"one") + frame(2, b"error") + frame(1, b"") + frame(1, b"two"))
    assert read_all(stream, size) == b"onetwo"
    assert stream.stderr == b"error"
    stream.close()


def test_a_frame_cut_short_ends_the_stream_and_only_the_end_of_stderr_is_kept() -> None:
    stream = stream_of(frame(2, b"x" * 20_000 + b"end") + frame(1, b"whole") + frame(1, b"half")[:9])
    assert read_all(stream, 100) == b"wholeh"
    assert len(stream.stderr) < 10_000
    assert stream.stderr.endswith(b"end")
    stream.close()


def test_closing_ends_a_blocked_read_and_later_writes() -> None:
    ours, theirs = socket.socketpair()
    stream = AttachedStream(ours, io.BytesIO())
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(stream.read(10)))
    reader.start()
    stream.close()
    stream.close()
    reader.join(10)
    assert received == [b""]
    assert stream.read(10) == b""
    with pytest.raises(OSError, match="Bad file descriptor"):
        stream.write(b"x")
    theirs.close()


DIES = ("die", 60)


@pytest.mark.parametrize(
    ("code", "events", "expected"),
    [
        (137, [DIES], "killed (exit code 137)"),
        (137, [("oom", 59), DIES], "out of memory"),
        (KILLED, [("oom", 59), DIES], "out of memory"),
        (KILLED, [DIES], "ended (exit code 3): ValueError: bad"),
        (137, [("oom", 0), DIES], "killed (exit code 137)"),
        (1, [("oom", 60), DIES], "ended (exit code 1): ValueError: bad"),
        (None, [], "its main process closed the stream"),
    ],
)
def test_causes_of_death(code: int | None, events: list[tuple[str, int]], expected: str) -> None:
    told = [Event(action, seconds * SECOND) for action, seconds in events]
    assert describe(code, told, "Traceback\nValueError: bad\n") == expected


class Engine:
    """An engine's words about itself."""

    def __init__(self, name: str, groups: str) -> None:
        self._name, self._groups = name, groups

    def version(self) -> dict[str, Any]:
        return {"Components": [{"Name": self._name}]}

    def info(self) -> dict[str, Any]:
        return {"CgroupVersion": self._groups}


@pytest.mark.parametrize(
    ("engine", "events", "expected"),
    [
        (Engine("Engine", "1"), [DIES], "killed from outside, on its host"),
        (Engine("Engine", "1"), [("oom", 59), DIES], "out of memory"),
        (Engine("Engine", "2"), [DIES], "killed (exit code 137)"),
        (Engine("Podman Engine", "1"), [DIES], "killed (exit code 137)"),
    ],
)
def test_only_an_engine_that_reports_memory_kills_shows_one_of_its_host(
    engine: Any, events: list[tuple[str, int]], expected: str
) -> None:
    report = EndReport.__new__(EndReport)
    report._api, report.exit_code = engine, 137
    report.events = [Event(action, seconds * SECOND) for action, seconds in events]
    try:
        told = report.cause("")
    except EngineError as error:
        told = str(error)
    assert expected in told


def test_an_end_through_the_engine_is_not_the_agents_failure() -> None:
    with pytest.raises(EngineError, match=r"killed from outside, through the engine \(exit code 143\)"):
        describe(143, [Event("oom", 59 * SECOND), Event("kill", 60 * SECOND), Event("die", 60 * SECOND)])


def container(owner: str, name: str) -> dict[str, Any]:
    return {"Names": [f"/{name}"], "Labels": {"pytest-super": "1", "pytest-super.owner": owner}}


def test_only_an_owner_that_has_ended_is_dead() -> None:
    assert lives(owner_label())
    # The same side as here: the two name a host differently.
    side = "platform.use_portable()" if platform.is_portable() else ""
    code = f"""
from pytest_super import platform
from pytest_super.kernel.providers.sandbox_folder import owner_label
{side}
print(owner_label())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert lives(ended.stdout.strip()) is False


@pytest.mark.skipif(platform.is_portable(), reason="only Linux says when a process started")
def test_a_process_that_took_over_the_number_is_not_the_owner() -> None:
    host, pid, started = owner_label().split(":")
    assert lives(f"{host}:{pid}:{int(started) - 1}") is False


def test_a_container_of_another_host_is_abandoned_after_its_deadline() -> None:
    # Of owners on other hosts nothing is known.
    assert {lives(owner) for owner in ("", "elsewhere:1:1", "nonsense", ":::")} == {None}
    found, now = container("elsewhere:1:1", container_name("ab12")), time.time()
    assert not is_abandoned(found, now + LEASE - 60)
    assert is_abandoned(found, now + LEASE + 60)


def test_a_container_of_a_living_owner_is_never_abandoned() -> None:
    """Not even when the clock has jumped, or a renewal of its deadline has failed."""
    assert not is_abandoned(container(owner_label(), container_name("ab12")), time.time() + 2 * LEASE)
    # Without any deadline it is left alone.
    for name in ("somebodys", "somebodys-2", "pytest-super-2"):
        assert not is_abandoned(container("elsewhere:1:1", name), now=1e12)
    assert not is_abandoned({"Names": None, "Labels": {}}, now=1e12)


class Ticks(threading.Event):
    """Stands in for the watchdog's event: lets it look so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        self.looks -= 1
        return self.is_set() or self.looks < 0


def look(sizes: list[int | Exception], limit: int = 100) -> tuple[list[int], list[float | None]]:
    """What was killed, and how long the watchdog waited before each look and after the last."""
    killed: list[int] = []

    def measure() -> int:
        size = sizes.pop(0)
        if isinstance(size, Exception):
            raise size
        return size

    ticks = Ticks(len(sizes))
    watch(ticks, limit, measure, killed.append, lambda: None)
    return killed, ticks.pauses


def test_the_watchdog_kills_once_when_the_disk_limit_is_passed() -> None:
    assert look([10, 100, 101, 500])[0] == [101]
    # It outlives an engine that does not answer.
    assert look([EngineError("mute"), 10, 200])[0] == [200]


def test_the_watchdog_looks_before_the_fastest_writer_can_be_far_over_the_limit() -> None:
    sizes: list[int | Exception] = [0, 6 * GIB, 9 * GIB]
    assert look(sizes, 10 * GIB)[1] == [5.0, 5.0, 3.0, 3.0]
    assert look([0], 1000 * GIB)[1] == [30.0, 30.0]


def test_the_watchdog_renews_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[bool] = []
    for seconds, count in ((3600.0, 0), (-1.0, 2)):
        monkeypatch.setattr("pytest_super.kernel.providers.docker.disk_use.RENEW_SECONDS", seconds)
        watch(Ticks(2), 100, lambda: 0, print, lambda: renewed.append(True))
        assert len(renewed) == count
