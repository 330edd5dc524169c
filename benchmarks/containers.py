"""How long until a kernel in a fresh container is ready, compared with a bare kernel.

Usage: python benchmarks/containers.py [--small] [--rounds 9] [--many 16] [--many-rounds 3] [--image NAME]

Bare: `docker run` of the image with `python3 -m ipykernel_launcher`, ipc sockets in a mounted folder, and
jupyter_client's own `wait_for_ready`. Ours: `Kernel.start()` on a DockerSandbox, which returns once a message
of the kernel has arrived on IOPub. Both are measured in turn, without the removal of the containers; the
figures are medians of all rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupyter_client.blocking.client import BlockingKernelClient
from rows import print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from jupyter_client.connect import KernelConnectionInfo

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def connection_of(folder: str) -> dict[str, Any]:
    return {
        "transport": "ipc",
        "ip": f"{folder}/k",
        "key": secrets.token_hex(16),
        "signature_scheme": "hmac-sha256",
        "kernel_name": "python3",
        **{port: number for number, port in enumerate(PORTS, 1)},
    }


@contextlib.contextmanager
def bare_kernel(image: str) -> Iterator[None]:
    """A bare kernel, ready when entered."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        name = f"bare-{secrets.token_hex(6)}"
        connection = connection_of(folder)
        Path(folder, "c.json").write_text(json.dumps(connection))
        kernel = ["python3", "-m", "ipykernel_launcher", "-f", f"{folder}/c.json"]
        command = ["docker", "run", "--rm", "--name", name, "-v", f"{folder}:{folder}", image, *kernel]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(subprocess.run, ["docker", "kill", name], capture_output=True)
        client = BlockingKernelClient()
        client.load_connection_info(cast("KernelConnectionInfo", connection))
        # Without the heartbeat, which considers a kernel dead if its start takes more than a second.
        client.start_channels(hb=False)
        stack.callback(client.stop_channels)
        client.wait_for_ready(timeout=120)
        yield


@contextlib.contextmanager
def our_kernel(image: str) -> Iterator[None]:
    """Our kernel, ready when entered."""
    kernel = Kernel(DockerSandbox(SandboxSpec(), SandboxSettings(image=image)))
    with contextlib.closing(kernel):
        kernel.start()
        yield


WAYS = {"ours": our_kernel, "bare": bare_kernel}


def seconds_for_one(way: Callable[[str], contextlib.AbstractContextManager[None]], image: str) -> float:
    began = time.perf_counter()
    with way(image):
        return time.perf_counter() - began


def seconds_for_many(
    way: Callable[[str], contextlib.AbstractContextManager[None]], image: str, count: int
) -> float:
    """Seconds until all of `count` kernels are ready, which start at the same time."""
    managers = [way(image) for _ in range(count)]
    began = time.perf_counter()
    with ThreadPoolExecutor(count) as pool, contextlib.ExitStack() as stack:
        stack.callback(lambda: list(pool.map(lambda manager: manager.__exit__(None, None, None), managers)))
        list(pool.map(lambda manager: manager.__enter__(), managers))
        return time.perf_counter() - began


def compare(what: str, rounds: int, measure: Callable[[str], float]) -> None:
    """Measure both ways in turn and print the medians."""
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for number in range(rounds):
        for name in list(WAYS)[:: 1 if number % 2 else -1]:
            times[name].append(measure(name))
    medians = {name: statistics.median(found) for name, found in times.items()}
    shown = ", ".join(
        f"{name} {medians[name]:.3f} s ({min(found):.3f} to {max(found):.3f})"
        for name, found in times.items()
    )
    print(shown)
    ours, bare = medians["ours"], medians["bare"]
    print_row(what, f"{ours:.2f} s", peer=f"{bare:.2f} s", ratio=ours / bare, wanted="1.0")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="one round of each, 2 kernels at once")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--many", type=int, default=16)
    parser.add_argument("--many-rounds", type=int, default=3)
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    given = parser.parse_args()
    if given.small:
        given.rounds, given.many, given.many_rounds = 1, 2, 1
    connect().inspect_image(given.image)  # type: ignore[no-untyped-call]
    for way in WAYS.values():
        seconds_for_one(way, given.image)
    compare(
        "kernel ready in a fresh container / bare `docker run` with ipykernel (`containers.py`)",
        given.rounds,
        lambda name: seconds_for_one(WAYS[name], given.image),
    )
    compare(
        f"{given.many} fresh container kernels at once / {given.many} bare ones (`containers.py`)",
        given.many_rounds,
        lambda name: seconds_for_many(WAYS[name], given.image, given.many),
    )


if __name__ == "__main__":
    main()
