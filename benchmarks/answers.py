"""Recorded answers: what it costs to keep them, how large they are, and how fast they are given again.

Usage: python benchmarks/answers.py [--small] [--calls 10000] [--tasks 40]

A client asks the gateway in the growing conversation of an agent, of 50 turns of 2.5 kB, with and without a
record, by turns.
The memory of the gateway is that after a tenth of the calls and after all. The sizes are those of recorded
sessions of two programs, without the answers. A run of pytest with recorded answers is compared with the
same run with a model that answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from model_server import REACT, serving
from process_tree import MIB, ONLY_REQUIRED_PLUGINS, measure
from rows import HEADER, print_row

from pytest_super.model.client import GatewayModel
from pytest_super.model.completion import Message
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.protocols.canonical import parts_of
from pytest_super.model.protocols.registry import ROUTES, route_of
from pytest_super.model.recorded import RecordedTrial
from pytest_super.model.settings import ModelSettings

TURNS, OUTPUT = 50, "epoch 1 loss 0.5 accuracy 0.75\n" * 40
SESSIONS = Path(__file__).parents[1] / "tests" / "recorded"
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
STEPS = 10


class Client:
    """Asks as trials do, one after the other."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.asked = 0
        self.messages: list[Message] = []

    def ask(self) -> float:
        """The seconds of the next call. After some turns another trial begins."""
        trial, turn = divmod(self.asked, TURNS)
        if not turn:
            self.model = GatewayModel(
                self.gateway, task=f"t{trial}", epoch=1, rerun=0, token_limit=lambda: 10**9, cost_limit=None
            )
            self.messages = []
        self.asked += 1
        self.messages.append({"role": "user", "content": f"{self.asked} {OUTPUT}"})
        began = time.perf_counter()
        answer = self.model.complete(self.messages)
        seconds = time.perf_counter() - began
        self.messages.append({"role": "assistant", "content": answer.text})
        return seconds


@contextmanager
def client(folder: Path, *, is_recorded: bool) -> Iterator[Client]:
    name = uuid.uuid4().hex[:8]
    record = str(folder / name / "trials") if is_recorded else None
    (folder / name).mkdir()
    calls = str(folder / name / "calls.jsonl")
    settings = ModelSettings(name="openai/gpt-4o", parameters={}, max_cost=None, calls=calls, record=record)
    with closing(Gateway(f"bench-{name}", settings, "t0ken")) as gateway:
        yield Client(gateway)


def memory_of(gateway: Gateway) -> float:
    pid = (gateway.folder / "pid").read_text()
    [kilobytes] = PSS.findall(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(kilobytes) * 1024 / MIB


def print_costs(folder: Path, calls: int) -> None:
    """What the record adds to a call, and to the gateway."""
    with client(folder, is_recorded=True) as recorded, client(folder, is_recorded=False) as bare:
        ours, peer = [], []
        for number in range(calls):
            ours.append(recorded.ask())
            if number < max(1, calls // 10):
                peer.append(bare.ask())
                before = memory_of(recorded.gateway)
        after = memory_of(recorded.gateway)
    mine, other = (statistics.median(seconds[: len(peer)]) * 1000 for seconds in (ours, peer))
    print_row(
        "a call that is recorded: its cost over one that is not",
        f"{mine - other:.1f} ms ({mine:.1f} ms)",
        peer=f"{other:.1f} ms",
        wanted="3 ms",
    )
    print_row(
        f"memory of the gateway after {calls:,} recorded calls / after {len(peer):,}",
        f"{after:.0f} MiB",
        peer=f"{before:.0f} MiB",
        ratio=after / before,
        wanted="1.1",
    )


def sizes_of(file: Path, folder: Path) -> list[int]:
    """The bytes that each request of the recorded sessions of a program adds."""
    sessions: dict[str, RecordedTrial] = {}
    sizes = []
    for line in map(json.loads, file.read_text().splitlines()):
        route = route_of(line["path"])
        if route is None or route.is_count:
            continue
        trial = sessions.setdefault(line["session"], RecordedTrial(path=folder / uuid.uuid4().hex))
        before = trial.path.stat().st_size if trial.path.exists() else 0
        request, _ = ROUTES[route].accepted(line["body"], is_open=False)
        trial.ask(list(parts_of(ROUTES[route], request)))
        sizes.append(trial.path.stat().st_size - before)
    return sizes


def print_sizes(folder: Path) -> None:
    for file in sorted(SESSIONS.glob("*.jsonl")):
        sizes = sizes_of(file, folder)
        whole = statistics.median(map(len, file.read_text().splitlines()))
        print_row(
            f"a recorded request of {file.stem}, the median of {len(sizes)} / the request",
            f"{statistics.median(sizes) / 1024:.1f} KiB (first {max(sizes) / 1024:.0f})",
            peer=f"{whole / 1024:.1f} KiB",
            ratio=statistics.median(sizes) / whole,
            wanted="4 KiB",
        )


def print_speed(folder: Path, tasks: int) -> None:
    """A run with recorded answers, and the same run with a model that answers at once."""
    for number in range(tasks):
        task: dict[str, Any] = {
            "id": f"t{number}",
            "set": "expert",
            "query": f"conversation-{number}",
            "answer": 42,
        }
        (folder / f"t{number}.task.yaml").write_text(json.dumps(task))
    cells = [REACT.format("execute", f"x = {n}") for n in range(STEPS)]
    common = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--super-agent=react-super",
        "--super-sandbox=local",
        str(folder),
    ]
    model = "--super-model=openai/gpt-4o"
    with serving([*cells, REACT.format("submit", "42")]) as environment:
        server = ONLY_REQUIRED_PLUGINS | environment
        measure([*common, model], folder=folder, environment=server)
        recorded = (folder / ".super/runs/latest").resolve().name
        again = [f"--super-answers={recorded}", "--super-answers-miss=fail"]
        ours, peer = [], []
        for _ in range(3 if tasks > 1 else 1):
            ours.append(measure([*common, *again], folder=folder, environment=ONLY_REQUIRED_PLUGINS).seconds)
            peer.append(measure([*common, model], folder=folder, environment=server).seconds)
    mine, other = statistics.median(ours), statistics.median(peer)
    print_row(
        f"{tasks} trials with recorded answers / with a model that answers at once",
        f"{mine:.1f} s",
        peer=f"{other:.1f} s",
        ratio=mine / other,
        wanted="1.0",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="a few calls and one task")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=40)
    options = parser.parse_args()
    print(HEADER)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(["On I go."]) as environment:
            os.environ.update(environment)
            print_costs(folder, 60 if options.small else options.calls)
        print_sizes(folder)
        print_speed(folder, 1 if options.small else options.tasks)


if __name__ == "__main__":
    main()
