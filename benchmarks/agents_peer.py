"""Many short trials of our agent compared with as many of mini-swe-agent: wall time and memory, in one run.

Usage: python benchmarks/agents_peer.py [--small] [--rounds 3, 1 if small] [--venv FOLDER]

45 tasks of 20 steps, with a model behind HTTP that answers at once, trivial actions, no containers, and a
trajectory on disk. Theirs: 16 threads of one process, and a new shell for each action. Ours: `pytest -n 16`
and `react-super`, first with a fresh directory, virtual environment and Jupyter kernel for each task, whose
memory is included, then with cells that run in the workers, so that only the harness is measured. The floor:
as many kernels of jupyter_client alone, in 16 threads, that run the same cells. All are measured in turn,
including start and end of their processes. Where the processor time goes is printed by kind of process.

mini-swe-agent is installed from the package index into its own environment, in a temporary folder or in
FOLDER, which the next run can use again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernel import plain_kernel, run_plain
from model_server import react_answers, serving
from process_tree import MIB, ONLY_REQUIRED_PLUGINS, Measured, measure
from rows import print_row

PEER = "mini-swe-agent"
LOOP = Path(__file__).with_name("mini_swe_agent_loop.py")
WITHOUT_KERNELS = """\
import pytest
from pytest_super.testing import FakeKernel

@pytest.fixture
def super_kernel():
    kernel = FakeKernel()
    yield kernel
    kernel.close()
"""


# By words of their command lines. Forks have that of their server.
PARTS = {
    "forks/client.py": "clients of the workers",
    "read process; read status": "clients of the workers",
    "inside/warm.py": "kernels and their bridges",
    "forks/server.py": "workers",
    "sys.stdin.readline": "workers",
    "pytest_super.model.gateway": "gateway",
    "kernel.py": "kernels",
    "ipykernel_launcher": "kernels",
    "sys.path[:]": "bridges of the sandboxes",
    "-m pytest": "controller",
}


@dataclass(frozen=True, kw_only=True)
class Size:
    tasks: int
    at_once: int
    steps: int
    """Of each task, including the submission."""


FULL = Size(tasks=45, at_once=16, steps=20)
SMALL = Size(tasks=2, at_once=2, steps=3)


def our_answers(steps: int) -> list[str]:
    return react_answers([f"print('step', {step})" for step in range(1, steps)], "42")


def their_answers(steps: int) -> list[str]:
    form = "THOUGHT: The next one.\n\n```mswea_bash_command\n{}\n```"
    commands = [form.format(f"echo step {step}") for step in range(1, steps)]
    return [*commands, form.format("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo 42")]


@contextlib.contextmanager
def peer_python(venv: Path | None, *, borrows: bool) -> Iterator[str]:
    """The interpreter of an environment with mini-swe-agent, whose version is printed.

    With `borrows` it also imports the packages of this environment, so that litellm is not installed again.
    Raises SystemExit with pip's output if mini-swe-agent cannot be installed.
    """
    with contextlib.ExitStack() as stack:
        folder = venv or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if borrows:
            own = sysconfig.get_path("purelib", vars={"base": str(folder)})
            Path(own, "borrowed.pth").write_text(sysconfig.get_path("purelib"))
        installed = subprocess.run(
            [python, "-m", "pip", "install", "-q", PEER], capture_output=True, text=True, check=False
        )
        if installed.returncode:
            raise SystemExit(f"{PEER} cannot be installed:\n{installed.stderr[-3000:]}")
        versions = "import importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in %r), sep=', ')"
        subprocess.run([python, "-c", versions % ([PEER, "litellm", "openai"],)], check=True)
        yield str(python)


def measure_theirs(python: str, size: Size) -> Measured:
    with tempfile.TemporaryDirectory() as name, serving(their_answers(size.steps)) as server:
        command = [python, str(LOOP), str(size.tasks), str(size.at_once), name]
        own = {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": f"{name}/config"}
        return measure(command, folder=Path(name), environment=server | own)


def measure_ours(size: Size, conftest: str = "") -> Measured:
    options = ["--super-agent=react-super", "--super-model=openai/benchmark", "--super-sandbox=local"]
    command = [sys.executable, "-m", "pytest", "-q", f"-n{size.at_once}", *options]
    with tempfile.TemporaryDirectory() as name, serving(our_answers(size.steps)) as server:
        folder = Path(name)
        write_project(folder, size, conftest)
        measured = measure(command, folder=folder, environment=ONLY_REQUIRED_PLUGINS | server)
        lines = (folder / ".super/runs/latest/results.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [size.steps] * size.tasks
    return measured


def write_project(folder: Path, size: Size, conftest: str) -> None:
    (folder / "tasks").mkdir()
    (folder / "conftest.py").write_text(conftest)
    tasks = [
        {"id": name, "set": "expert", "query": f"This is {name}.", "answer": 42}
        for name in (f"conversation-{number}" for number in range(size.tasks))
    ]
    text = "---\n".join(json.dumps(task) + "\n" for task in tasks)
    (folder / "tasks" / "peer.task.yaml").write_text(text)


def bare_kernels(tasks: int, at_once: int, steps: int) -> None:
    def work(number: int) -> None:
        with plain_kernel(f"{os.getcwd()}/kernel-{number}") as client:
            for step in range(1, steps):
                run_plain(client, f"print('step', {step})")

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, range(tasks)))


def measure_floor(size: Size) -> Measured:
    given = [str(number) for number in (size.tasks, size.at_once, size.steps)]
    with tempfile.TemporaryDirectory() as name:
        return measure([sys.executable, __file__, "--bare", *given], folder=Path(name), environment={})


def compare(python: str, size: Size, rounds: int) -> None:
    ways: dict[str, Callable[[], Measured]] = {
        f"{PEER}, a shell for each action": lambda: measure_theirs(python, size),
        "ours, a kernel for each task": lambda: measure_ours(size),
        "ours, cells in the worker": lambda: measure_ours(size, WITHOUT_KERNELS),
        "kernels alone, fed by a bare loop": lambda: measure_floor(size),
    }
    runs: dict[str, list[Measured]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            runs[name].append(way())
    print(f"{size.tasks} tasks x {size.steps} steps, {size.at_once} at once:")
    for name, measured in runs.items():
        print(f"  {name}: {figures(measured)}")
    theirs, with_kernels, harness, floor = (
        statistics.median(run.seconds for run in found) for found in runs.values()
    )
    trials = f"{size.tasks} trials of {size.steps} steps, {size.at_once} at once"
    rows = {
        f"{trials} / mini-swe-agent's loop without kernels (`agents_peer.py`)": (with_kernels, theirs, "1.2"),
        "the same / the kernels of a bare loop, which asks no model": (with_kernels, floor, ""),
        "the same with cells in the workers / mini-swe-agent's loop": (harness, theirs, "0.7"),
    }
    for title, (ours, peer, wanted) in rows.items():
        print_row(title, f"{ours:.1f} s", peer=f"{peer:.1f} s", ratio=ours / peer, wanted=wanted)


def figures(runs: Sequence[Measured]) -> str:
    seconds = statistics.median(run.seconds for run in runs)
    memory = max(run.peak.total for run in runs) / MIB
    last = runs[-1].output.strip().rpartition("\n")[2]
    parts = json.loads(last) if last.startswith("{") else {}
    shown = "".join(f", {name.replace('_', ' ')} {value:.1f}" for name, value in parts.items())
    used = ", ".join(f"{name} {one:.1f}" for name, one in runs[-1].processor.by_part(PARTS).items())
    return f"{seconds:.1f} s, {memory:.0f} MiB at the peak{shown}; processor seconds: {used}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="2 tasks x 3 steps, 2 at once")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--venv", type=Path)
    parser.add_argument("--bare", type=int, nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        bare_kernels(*given.bare)
        return
    with peer_python(given.venv, borrows=given.small) as python:
        rounds = given.rounds or (1 if given.small else 3)
        compare(python, SMALL if given.small else FULL, rounds)


if __name__ == "__main__":
    main()
