"""Many trials at once: wall time compared with a bare loop over the same kernels and server, and memory.

Usage: python benchmarks/load.py [--small] [--rounds 1] [--image NAME]    (needs a container engine)

Ours: `pytest -n 16` with `react-super` and 4 tasks for each worker. Each trial has 20 steps and a container.
The model is behind HTTP and takes 300 ms for an answer. Bare: one process with 16 threads, each of which
starts 4 such kernels one after the other, asks the same server and runs the same cells. It counts, scores and
stores nothing. The bare loop runs once with plain HTTP and once with litellm, which shows what litellm costs
without any harness. All are measured in turn, including start and end of the processes. Memory is that of
pytest, its workers and the gateway, without the containers.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from model_server import react_answers, serving
from process_tree import MIB, ONLY_REQUIRED_PLUGINS, Measured, measure
from rows import print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.model.known_model import import_litellm
from pytest_super.tasks.sandbox_spec import SandboxSpec

Asker = Callable[[list[dict[str, str]]], str]

LATENCY = 0.3
# A name that litellm knows, as most users' models are. For an unknown name, looking for its price takes about
# half a millisecond more for each call, on both sides.
MODEL = "openai/gpt-4o"
GATEWAY, WORKER = "pytest_super.model.gateway", "exec(eval(sys.stdin.readline()))"
CELL = "for n in range(40): print({step}, n, 'a line of output, as a training loop would print it')"
SUBMISSION = '{"steps": 20}'
CONTENT = re.compile(r"<content>\n(.*)\n</content>", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Size:
    workers: int
    trials: int
    """Of each worker."""
    steps: int
    """Of each trial, including the submission."""

    @property
    def conversations(self) -> list[list[str]]:
        """The trials of each worker."""
        return [[f"conversation-{w}-{n}" for n in range(self.trials)] for w in range(self.workers)]


FULL = Size(workers=16, trials=4, steps=20)
SMALL = Size(workers=2, trials=1, steps=3)


def answers(steps: int) -> list[str]:
    return react_answers([CELL.format(step=step) for step in range(1, steps)], SUBMISSION)


def bare_loop(size: Size, image: str, client: str) -> None:
    make_asker = {"http": plain_http, "litellm": by_litellm}[client]

    def work(conversations: list[str]) -> None:
        for conversation in conversations:
            bare_trial(conversation, size.steps, image, make_asker())

    with ThreadPoolExecutor(size.workers) as pool:
        list(pool.map(work, size.conversations))


def bare_trial(conversation: str, steps: int, image: str, ask: Asker) -> None:
    kernel = Kernel(DockerSandbox(SandboxSpec(), SandboxSettings(image=image)))
    with contextlib.closing(kernel):
        kernel.start()
        messages = [{"role": "user", "content": conversation}]
        for _ in range(steps - 1):
            answer = ask(messages)
            observation = kernel.execute(cell_in(answer)).text
            messages.append({"role": "assistant", "content": answer})
            messages.append({"role": "user", "content": observation})
        assert cell_in(ask(messages)) == SUBMISSION


def plain_http() -> Asker:
    server = http.client.HTTPConnection(urlsplit(os.environ["OPENAI_BASE_URL"]).netloc)

    def ask(messages: list[dict[str, str]]) -> str:
        body = json.dumps({"model": "benchmark", "messages": messages})
        server.request("POST", "/v1/chat/completions", body)
        answer: str = json.loads(server.getresponse().read())["choices"][0]["message"]["content"]
        return answer

    return ask


def by_litellm() -> Asker:
    litellm = import_litellm()

    def ask(messages: list[dict[str, str]]) -> str:
        response = litellm.completion(MODEL, messages=messages, temperature=0.2, max_tokens=1500)
        answer: str = response.choices[0].message.content
        return answer

    return ask


def cell_in(answer: str) -> str:
    found = CONTENT.search(answer)
    assert found is not None
    return found[1]


def write_project(folder: Path, size: Size) -> None:
    (folder / "tasks").mkdir()
    tasks = [
        {"id": name, "set": "expert", "query": f"This is {name}.", "answer": json.loads(SUBMISSION)}
        for names in size.conversations
        for name in names
    ]
    text = "---\n".join(json.dumps(task) + "\n" for task in tasks)
    (folder / "tasks" / "load.task.yaml").write_text(text)


def measure_ours(size: Size, image: str) -> Measured:
    options = ["--super-agent=react-super", f"--super-model={MODEL}", "--super-sandbox=docker"]
    command = [sys.executable, "-m", "pytest", "-q", f"-n{size.workers}", *options, f"--super-image={image}"]
    with tempfile.TemporaryDirectory() as name, serving(answers(size.steps), LATENCY) as server:
        write_project(Path(name), size)
        measured = measure(command, folder=Path(name), environment=ONLY_REQUIRED_PLUGINS | server)
        results = Path(name, ".super/runs/latest/results.jsonl").read_text().splitlines()
    steps = [json.loads(line)["steps"] for line in results]
    # If a task is unsolved, pytest has failed before this.
    assert steps == [size.steps] * size.workers * size.trials, steps
    return measured


def measure_bare(size: Size, image: str, client: str) -> Measured:
    numbers = [str(size.workers), str(size.trials), str(size.steps)]
    command = [sys.executable, __file__, "--bare", *numbers, f"--client={client}", f"--image={image}"]
    with serving(answers(size.steps), LATENCY) as server:
        return measure(command, folder=Path.cwd(), environment=server)


def compare(size: Size, image: str, rounds: int) -> None:
    measure_bare(Size(workers=1, trials=1, steps=2), image, "http")
    runs = [
        (measure_ours(size, image), *(measure_bare(size, image, client) for client in ("http", "litellm")))
        for _ in range(rounds)
    ]
    ours, bare, asking = (
        statistics.median(run.seconds for run in column) for column in zip(*runs, strict=True)
    )
    trials = size.workers * size.trials
    what = f"{size.workers} workers, {trials} trials of {size.steps} steps, a model that takes 300 ms"
    our_time = f"{ours:.1f} s"
    print_row(
        f"{what} / a bare loop over the same containers (`load.py`)",
        our_time,
        peer=f"{bare:.1f} s",
        ratio=ours / bare,
        wanted="1.25",
    )
    print_row(
        "the same / a bare loop that asks by litellm", our_time, peer=f"{asking:.1f} s", ratio=ours / asking
    )
    report_memory(runs, size.workers)


def report_memory(runs: Sequence[tuple[Measured, ...]], workers: int) -> None:
    peaks = [run.peak for run, *_ in runs]
    highest = max(peaks, key=lambda peak: peak.total)
    worker, gateway = highest.of(WORKER), highest.of(GATEWAY)
    # A small run can end before the first sample of a process.
    each = f"{statistics.median(worker) / MIB:.0f}" if worker else "?"
    server = f"{gateway[-1] / MIB:.0f}" if gateway else "?"
    print(
        f"memory of the bare loop: {max(run.peak.total for _, run, _ in runs) / MIB:.0f} MiB by HTTP, "
        f"{max(run.peak.total for *_, run in runs) / MIB:.0f} MiB by litellm"
    )
    print_row(
        f"memory of all processes at `-n {workers}`, of which {each} MiB a worker and {server} MiB the "
        "gateway (`load.py`)",
        f"{highest.total / MIB:.0f} MiB",
        wanted="1,024 MiB",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="2 workers x 1 trial x 3 steps")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    parser.add_argument("--bare", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        workers, trials, steps = given.bare
        bare_loop(Size(workers=workers, trials=trials, steps=steps), given.image, given.client)
    else:
        compare(SMALL if given.small else FULL, given.image, given.rounds)


if __name__ == "__main__":
    main()
