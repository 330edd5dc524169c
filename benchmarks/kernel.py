"""What our kernel costs compared with plain jupyter_client, in one run.

Usage: python benchmarks/kernel.py [--small]

Ready: from nothing to a ready kernel; ours includes a fresh directory and virtual environment. Round trip: a
cell without output. Flood: a gigabyte that one cell prints in lines of 1 kB.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from rows import print_row

from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox

FLOOD = "line = 'x' * 999\nfor i in range({lines}): print(line)"


@dataclass(frozen=True, kw_only=True)
class Size:
    starts: int
    cells: int
    lines: int


FULL = Size(starts=9, cells=300, lines=1_000_000)
SMALL = Size(starts=1, cells=5, lines=10_000)


@contextmanager
def plain_kernel(sockets: str = "kernel") -> Iterator[Any]:
    """An ipykernel over ipc that is ready according to jupyter_client. Its sockets' names begin like this."""
    manager = KernelManager(transport="ipc", ip=sockets)
    manager.start_kernel()
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_plain(client: Any, code: str) -> None:
    """The least that a client must do: wait for the reply and for the idle message."""
    request = client.execute(code, allow_stdin=False)
    while client.get_shell_msg(timeout=60)["parent_header"]["msg_id"] != request:
        pass
    while not is_idle(client.get_iopub_msg(timeout=60), request):
        pass


def is_idle(message: dict[str, Any], request: str) -> bool:
    is_ours = message["parent_header"].get("msg_id") == request
    return bool(is_ours and message["content"].get("execution_state") == "idle")


def seconds_of(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def start_ours() -> float:
    began = time.perf_counter()
    with started(LocalSandbox()):
        return time.perf_counter() - began


def start_plain() -> float:
    began = time.perf_counter()
    with plain_kernel():
        return time.perf_counter() - began


def peak_megabytes() -> float:
    """The peak of this process's memory."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


def report(what: str, pairs: list[tuple[float, float]], wanted: float) -> None:
    """Print the medians of our kernel and of the plain one."""
    ours, plain = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    print_row(what, f"{ours:.1f} ms", peer=f"{plain:.1f} ms", ratio=ours / plain, wanted=f"{wanted}")


def measure_start(count: int) -> None:
    # In turn, so that other load on the machine slows both.
    pairs = [(start_ours(), start_plain()) for _ in range(count)]
    report("kernel ready in the local sandbox / plain ipykernel (`kernel.py`)", pairs, 1.0)


def measure_round_trip(count: int) -> None:
    with started(LocalSandbox()) as kernel, plain_kernel() as client:
        pairs = [
            (seconds_of(lambda: kernel.execute("x = 1")), seconds_of(lambda: run_plain(client, "x = 1")))
            for _ in range(count)
        ]
    report("round trip of a cell / jupyter_client alone (`kernel.py`)", pairs, 1.2)


def measure_flood(lines: int) -> None:
    received = 0

    def count(text: str) -> None:
        nonlocal received
        received += len(text)

    with started(LocalSandbox()) as kernel:
        kernel.execute("print('warm')")
        before = peak_megabytes()
        seconds = seconds_of(lambda: kernel.execute(FLOOD.format(lines=lines), listener=count))
        growth = peak_megabytes() - before
    print(f"{received:,} characters in {seconds:.1f} s")
    what = f"{received / 1e9:g} GB printed by one cell: growth of host memory (`kernel.py`)"
    print_row(what, f"{growth:.1f} MB", wanted="64 MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="one start, 5 cells, 10 MB")
    size = SMALL if parser.parse_args().small else FULL
    measure_start(size.starts)
    measure_round_trip(size.cells)
    measure_flood(size.lines)


if __name__ == "__main__":
    main()
