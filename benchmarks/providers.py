"""The start of a kernel in each sandbox provider, compared with its floor, and the round trip of a cell.

Usage: python benchmarks/providers.py [--starts 9] [--many 16] [--cells 300] [--small] [NAME ...]

Start: from a new sandbox to a ready kernel, one and many at once. The floor is an empty sandbox of that kind
(a container that writes a line, `bwrap … true`), and then a kernel of jupyter_client that is ready; at once,
each of the many does both. Round trip: a cell without output. Ours and the floor are measured in turn, so
that the load of the machine affects both. Without a NAME, all providers that are available are measured.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import docker
from kernel import plain_kernel
from rows import print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.docker.attach import attach
from pytest_super.kernel.providers.docker.engine import OLDEST_API, engine_url
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.registry import SHIPPED, find_provider
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

SETTINGS = SandboxSettings()


def make(name: str) -> Sandbox:
    return find_provider(name).make(SandboxSpec(), SETTINGS)


def start(name: str) -> float:
    began = time.perf_counter()
    with started(make(name)):
        return time.perf_counter() - began


def start_floor(name: str) -> float:
    """What neither of both can do without: an empty sandbox, and then a kernel of jupyter_client."""
    return EMPTY[name]() + start_plain()


def start_plain() -> float:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, plain_kernel(f"{folder}/kernel"):
        return time.perf_counter() - began


def empty_container() -> float:
    """A container without anything, until its program has written a line."""
    # docker-py has a pool of connections for each address, and closes the oldest of 25 even if it is used.
    api = docker.APIClient(engine_url(), version=OLDEST_API, num_pools=1000)
    began = time.perf_counter()
    made = api.create_container(
        DEFAULT_IMAGE,
        ["echo", "ready"],
        network_disabled=True,
        host_config=api.create_host_config(network_mode="none"),
    )["Id"]
    try:
        stream = attach(api, made)
        api.start(made)
        assert stream.read(100)
        return time.perf_counter() - began
    finally:
        api.remove_container(made, force=True)


def empty_bubblewrap() -> float:
    began = time.perf_counter()
    subprocess.run(
        [
            "bwrap",
            "--unshare-all",
            *("--ro-bind", "/", "/"),
            *("--proc", "/proc"),
            *("--dev", "/dev"),
            "true",
        ],
        check=True,
    )
    return time.perf_counter() - began


EMPTY: dict[str, Callable[[], float]] = {
    "docker": empty_container,
    "bubblewrap": empty_bubblewrap,
    "local": lambda: 0.0,
}


def seconds_of_cell(kernel: Kernel) -> float:
    began = time.perf_counter()
    kernel.execute("x = 1")
    return time.perf_counter() - began


def at_once(measure: Callable[[str], float], name: str, count: int) -> float:
    """Seconds until the last of `count` was ready, without their removal."""
    if count == 1:
        return measure(name)
    with ThreadPoolExecutor(count) as pool:
        return max(pool.map(measure, [name] * count))


def compare_starts(name: str, rounds: int, count: int) -> None:
    ours, floor = [], []
    for _ in range(rounds):
        ours.append(at_once(start, name, count))
        floor.append(at_once(start_floor, name, count))
    which = f"{count} kernels at once ready" if count > 1 else "kernel ready"
    print_median(f"{which} in {name} / an empty one, and a bare kernel", ours, floor)


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
    reasons = {name: find_provider(name).why_unavailable() for name in names}
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
    parser.add_argument("--many", type=int, default=16)
    parser.add_argument("--small", action="store_true", help="two starts and ten cells")
    given = parser.parse_args()
    starts, cells = (2, 10) if given.small else (given.starts, given.cells)
    names = given.names or usable()
    for name in names:
        compare_starts(name, starts, 1)
        compare_starts(name, max(1, starts // 3), given.many if not given.small else 2)
    trips = measure_cells(names, cells)
    for name in names:
        print_median(f"round trip of a cell in {name} / in {names[-1]}", trips[name], trips[names[-1]])


def print_median(what: str, ours: list[float], other: list[float]) -> None:
    """Print one row: the medians in milliseconds, and their ratio."""
    median, peer = statistics.median(ours), statistics.median(other)
    print_row(what, f"{median * 1000:.1f} ms", peer=f"{peer * 1000:.1f} ms", ratio=median / peer)


if __name__ == "__main__":
    main()
