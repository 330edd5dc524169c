"""What our way to a kernel costs beside plain jupyter_client, in one run: `python benchmarks/kernel.py`.

Ready: from nothing to the first cell's printed output, for us with a fresh directory and virtual environment.
Round trip: a cell without output. A gigabyte: printed by one cell in lines of 1 kB.
"""

from __future__ import annotations

import statistics
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_client.manager import KernelManager

from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STARTS = 9
CELLS = 300
GIGABYTE = "line = 'x' * 999\nfor i in range(1_000_000): print(line)"


@contextmanager
def plain_kernel() -> Iterator[Any]:
    """ipykernel over ipc, ready by jupyter_client's own measure."""
    manager = KernelManager(transport="ipc")
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
    """The least that a client must do: it ends with its reply and its idle message."""
    request = client.execute(code, allow_stdin=False)
    while client.get_shell_msg(timeout=60)["parent_header"]["msg_id"] != request:
        pass
    while not is_idle(client.get_iopub_msg(timeout=60), request):
        pass


def is_idle(message: dict[str, Any], request: str) -> bool:
    is_ours = message["parent_header"].get("msg_id") == request
    return bool(is_ours and message["content"].get("execution_state") == "idle")


def seconds_of(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def start_ours() -> float:
    started = time.perf_counter()
    with started(LocalSandbox()):
        return time.perf_counter() - started


def start_plain() -> float:
    started = time.perf_counter()
    with plain_kernel():
        return time.perf_counter() - started


def peak_megabytes() -> float:
    """The most memory this process has held."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


def report(what: str, ours: float, plain: float, unit: str, target: float) -> None:
    print(f"{what}: {ours:.1f} {unit} / {plain:.1f} {unit} = {ours / plain:.2f} (target at most {target})")


def measure_start() -> None:
    # In turn, so that whatever else the machine does weighs on both.
    pairs = [(start_ours(), start_plain()) for _ in range(STARTS)]
    ours, plain = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    report("ready, local / plain ipykernel", ours, plain, "ms", 1.0)


def measure_round_trip() -> None:
    with started(LocalSandbox()) as kernel, plain_kernel() as client:
        pairs = [
            (seconds_of(lambda: kernel.execute("x = 1")), seconds_of(lambda: run_plain(client, "x = 1")))
            for _ in range(CELLS)
        ]
    ours, plain = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    report("cell round trip / jupyter_client", ours, plain, "ms", 1.2)


def measure_flood() -> None:
    received = 0

    def count(text: str) -> None:
        nonlocal received
        received += len(text)

    with started(LocalSandbox()) as kernel:
        kernel.execute("print('warm')")
        before = peak_megabytes()
        seconds = seconds_of(lambda: kernel.execute(GIGABYTE, listener=count))
        growth = peak_megabytes() - before
    print(
        f"1 GB printed: {received} characters in {seconds:.1f} s, host memory + {growth:.1f} MB (target 64)"
    )


if __name__ == "__main__":
    measure_start()
    measure_round_trip()
    measure_flood()
