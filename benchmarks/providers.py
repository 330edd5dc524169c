"""Each sandbox provider compared with the last one: the start of a kernel, the round trip of a cell.

Usage: python benchmarks/providers.py [--starts 9] [--cells 300] [--small] [NAME ...]

Start: from a new sandbox to a ready kernel. Round trip: a cell without output. The providers are measured in
turn, so that the load of the machine affects all of them. Without a NAME, all shipped providers that are
available here are measured.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rows import print_row

from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.registry import SHIPPED, find_provider
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.sandbox import Sandbox

SETTINGS = SandboxSettings()


def make(name: str) -> Sandbox:
    return find_provider(name).make(SandboxSpec(), SETTINGS)


def seconds_to_start(name: str) -> float:
    began = time.perf_counter()
    with started(make(name)):
        return time.perf_counter() - began


def seconds_of_cell(kernel: Kernel) -> float:
    began = time.perf_counter()
    kernel.execute("x = 1")
    return time.perf_counter() - began


def measure_starts(names: list[str], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            times[name].append(seconds_to_start(name))
    return times


def measure_cells(names: list[str], rounds: int) -> dict[str, list[float]]:
    with ExitStack() as stack:
        kernels = {name: stack.enter_context(started(make(name))) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name, kernel in kernels.items():
                times[name].append(seconds_of_cell(kernel))
    return times


def usable() -> list[str]:
    names = [entry.name for entry in SHIPPED]
    reasons = {name: find_provider(name).why_unavailable(SETTINGS) for name in names}
    for name, reason in reasons.items():
        if reason:
            print(f"{name}: not measured: {reason}")
    return [name for name in names if not reasons[name]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--starts", type=int, default=9)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--small", action="store_true", help="two starts and ten cells")
    given = parser.parse_args()
    starts, cells = (2, 10) if given.small else (given.starts, given.cells)
    names = given.names or usable()
    ready, trips = measure_starts(names, starts), measure_cells(names, cells)
    for name in names:
        print_median(f"kernel ready in {name}", ready[name], ready[names[-1]], names[-1])
    for name in names:
        print_median(f"round trip of a cell in {name}", trips[name], trips[names[-1]], names[-1])


def print_median(what: str, ours: list[float], other: list[float], name: str) -> None:
    """Print one row: the median in milliseconds, compared with that of the provider `name`."""
    median, peer = statistics.median(ours), statistics.median(other)
    print_row(what, f"{median * 1000:.1f} ms", peer=f"{name} {peer * 1000:.1f} ms", ratio=median / peer)


if __name__ == "__main__":
    main()
