"""How many containers should start at the same time, by which the default of `start_slots` was chosen.

Usage: python benchmarks/start_slots.py [--slots 2 4 8 16] [--many 16] [--rounds 3] [--image NAME]

For each number of slots, in turn: seconds until all kernels are ready that start at the same time, and the
longest time that the engine took for one container. The figures are medians of all rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker import start_slots
from pytest_super.kernel.providers.docker.attach import AttachedStream
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from docker import APIClient


class TimedSandbox(DockerSandbox):
    """Measures how long the engine takes, without the wait for a slot."""

    def _create(self, api: APIClient) -> None:
        self._began = time.perf_counter()
        super()._create(api)

    def _start(self, api: APIClient) -> AttachedStream:
        stream = super()._start(api)
        self.seconds = time.perf_counter() - self._began
        return stream


def measure(slots: int, many: int, image: str) -> tuple[float, float]:
    """Seconds until all are ready, and the longest that the engine took for one."""
    start_slots.SLOTS = slots
    sandboxes = [TimedSandbox(SandboxSpec(), SandboxSettings(image=image)) for _ in range(many)]
    kernels = [Kernel(sandbox) for sandbox in sandboxes]
    with ThreadPoolExecutor(many) as pool:
        began = time.perf_counter()
        try:
            list(pool.map(Kernel.start, kernels))
            return time.perf_counter() - began, max(sandbox.seconds for sandbox in sandboxes)
        finally:
            list(pool.map(Kernel.close, kernels))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--many", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    given = parser.parse_args()
    found: dict[int, list[tuple[float, float]]] = {slots: [] for slots in given.slots}
    for number in range(given.rounds):
        for slots in given.slots[:: 1 if number % 2 else -1]:
            found[slots].append(measure(slots, given.many, given.image))
    for slots, pairs in found.items():
        ready, longest = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(
            f"{slots:3} slots: {given.many} ready after {ready:.2f} s, the engine took up to {longest:.2f} s"
        )


if __name__ == "__main__":
    main()
