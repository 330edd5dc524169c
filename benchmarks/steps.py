"""The harness's own time per step, early and late in a trial, with observations of 50,000 characters.

Usage: python benchmarks/steps.py [--small] [--trials 7] [--gateway-trials 2]

A step is timed from one answer of the model to the next, under pytest, with the agent's parsing and history,
landmarks, the budget and the trajectory on disk. The kernel answers at once with a prepared output.

First, only the model's client is real, and its answers are prepared. This measures the harness's own process,
in processor time, which other load on the machine affects less. Then the gateway's process with litellm is
real too, with a server that answers at once. The time of the same requests by plain HTTP is subtracted.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from model_server import completion, serving
from process_tree import ENVIRONMENT, ONLY_REQUIRED_PLUGINS
from rows import print_row

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.model.client import GatewayModel
from pytest_super.model.completion import Completion, Message
from pytest_super.model.gateway_process import Gateway
from pytest_super.session.trial.models import GATEWAY
from pytest_super.testing import FakeKernel

EARLY, LATE = 10, 200
# A figure is the median of the step and of this many steps before and after it.
AROUND = 3
# One more, because a measured step ends with the next answer.
STEPS = LATE + AROUND + 1
CHARACTERS = 50_000
LINES = {
    "plain lines": "epoch {n:5d}  loss 0.{n:05d}  accuracy 0.{n:05d}\n",
    "lines with colours": "\033[32mepoch {n:5d}\033[0m  loss \033[1m0.{n:05d}\033[0m\n",
    "a progress bar": "\repoch {n:5d} |#####     | 50% [00:10<00:10]",
}

CELL = "for epoch in range(1000):\n    train(model, epoch, rate=1e-3)\n    report(model)"
THOUGHT = "The last run has ended without an error, so that the next one can be started with these values."
SUBMISSION = "42"
ANSWERS = {
    "react-super": (
        f"Thought: {THOUGHT}\nAction: execute\n<content>\n{CELL}\n</content>",
        f"Thought: {THOUGHT}\nAction: submit\n<content>\n{SUBMISSION}\n</content>",
    ),
    "swe-agent": (
        f"DISCUSSION\n{THOUGHT}\n```\n{CELL}\n```",
        f"DISCUSSION\n{THOUGHT}\n```\nsubmit {SUBMISSION}\n```",
    ),
}
TASK = {
    "id": "conversation-steps",
    "set": "expert",
    "query": "Of conversation-steps: train the model as its paper says and report the accuracy. " * 20,
    "answer": 42,
    "landmarks": ["training completed", r"accuracy\s*[:=]\s*\d+\.\d+", "^epoch +9999 "],
    "limits": {"tokens": 10**12},
}


def answers(agent: str) -> list[str]:
    cell, submission = ANSWERS[agent]
    return [cell] * (STEPS - 1) + [submission]


class PreparedKernel(FakeKernel):
    """Returns the same prepared output for every cell."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        text = "".join(LINES[kind].format(n=n) for n in range(CHARACTERS // 20))[:CHARACTERS]
        outputs = [{"output_type": "stream", "name": "stdout", "text": text}]
        self.result = CellResult(outcome=Outcome.OK, text=text, outputs=outputs)

    def execute(
        self,
        code: str,  # noqa: ARG002
        *,
        timeout: float | None = None,  # noqa: ARG002
        listener: Callable[[str], None] | None = None,
    ) -> CellResult:
        if listener is not None:
            listener(self.result.text)
        return self.result


class ReadyGateway:
    """Replaces the gateway's process behind the model's client. All answers are prepared."""

    downtime = 0.0

    def __init__(self, texts: Sequence[str]) -> None:
        known = {"prompt_tokens": 1, "completion_tokens": 1, "is_counted": False, "cost_usd": None}
        facts = {**known, "model": "ready", "fingerprint": None, "waited_seconds": 0.0}
        self.lines = [json.dumps({**facts, "body": completion(text, b"")}) for text in texts]

    def ask(self, request: dict[str, Any], *_: Any) -> dict[str, Any]:
        line = '{"error": {}}' if request["route"] is None else self.lines.pop(0)
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass
class Watched:
    """A model that notes when each answer arrived."""

    model: GatewayModel
    clock: Callable[[], float]
    times: list[float] = field(default_factory=list)
    asked: dict[int, bytes] = field(default_factory=dict)
    """The requests after which the early and the late step begin."""

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        given = self.model.complete(messages, **parameters)
        self.times.append(self.clock())
        if len(self.times) in (EARLY, LATE):
            # The clock starts again, so that building `body` is not measured.
            body = json.dumps({"messages": messages, "model": "benchmark"})
            self.asked[len(self.times)] = body.replace("conversation-steps", "conversation-anew").encode()
            self.times[-1] = self.clock()
        return given

    def facts(self, *, is_real: bool) -> dict[str, Any]:
        # The n-th step begins with the n-th answer and ends with the next one.
        steps = [1000 * (after - before) for before, after in zip(self.times, self.times[1:], strict=False)]
        sizes = {number: len(body) for number, body in self.asked.items()}
        direct = {number: milliseconds_direct(body) for number, body in self.asked.items()} if is_real else {}
        return {"steps": steps, "sizes": sizes, "direct": direct}


def milliseconds_direct(body: bytes) -> float:
    """The median round trip of a request to the server itself."""
    connection = http.client.HTTPConnection(urlsplit(os.environ["OPENAI_BASE_URL"]).netloc)
    times = []
    for _ in range(21):
        began = perf_counter()
        connection.request("POST", "/v1/chat/completions", body)
        json.loads(connection.getresponse().read())
        times.append(1000 * (perf_counter() - began))
    connection.close()
    return statistics.median(times)


@pytest.fixture
def super_kernel() -> Iterator[FakeKernel]:
    """The kernel of the timed runs, whose conftest imports this fixture."""
    kernel = PreparedKernel(os.environ["STEPS_OUTPUT"])
    yield kernel
    kernel.close()


@pytest.fixture
def ready_gateway(request: pytest.FixtureRequest) -> None:
    """The gateway of the timed runs. Without a server, no process is started."""
    if "OPENAI_BASE_URL" not in os.environ:
        gateway = ReadyGateway(answers(os.environ["STEPS_AGENT"]))
        request.config.stash[GATEWAY] = cast("Gateway", gateway)


@pytest.fixture
def super_model(
    request: pytest.FixtureRequest,
    ready_gateway: None,  # noqa: ARG001
    super_model: GatewayModel,
) -> Iterator[Watched]:
    """The model of the timed runs: the run's own model, watched. Writes the times to a file."""
    is_real = "OPENAI_BASE_URL" in os.environ
    watched = Watched(super_model, perf_counter if is_real else process_time)
    yield watched
    target = Path(os.environ["STEPS_TIMES"], f"{request.node.name}.json")
    target.write_text(json.dumps(watched.facts(is_real=is_real)))


def trials_of(agent: str, kind: str, trials: int, server: dict[str, str]) -> list[dict[str, Any]]:
    """The facts of each trial. One pytest runs all trials; `server` is empty to measure only the harness."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder)
        settings = {"STEPS_AGENT": agent, "STEPS_OUTPUT": kind, "STEPS_TIMES": str(folder / "times")}
        here = {"PYTHONPATH": str(Path(__file__).parent)}
        options = [f"--super-agent={agent}", "--super-model=openai/benchmark", f"--super-epochs={trials}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--super-sandbox=local", *options],
            cwd=folder,
            env=ENVIRONMENT | ONLY_REQUIRED_PLUGINS | server | settings | here,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return [json.loads(path.read_text()) for path in sorted((folder / "times").iterdir())]


def write_project(folder: Path) -> None:
    (folder / "tasks").mkdir()
    (folder / "times").mkdir()
    (folder / "conftest.py").write_text("from steps import ready_gateway, super_kernel, super_model\n")
    (folder / "tasks" / "steps.task.yaml").write_text(json.dumps(TASK))


def milliseconds_at(number: int, trials: list[dict[str, Any]]) -> float:
    """The median of the steps around this one, without the server's time."""
    middle = slice(number - 1 - AROUND, number + AROUND)
    times: list[float] = []
    for trial in trials:
        direct = trial["direct"].get(str(number), 0.0)
        times += [step - direct for step in trial["steps"][middle]]
    return statistics.median(times)


def report(what: str, trials: list[dict[str, Any]], wanted: str = "") -> None:
    early, late = milliseconds_at(EARLY, trials), milliseconds_at(LATE, trials)
    small, large = (trials[0]["sizes"][str(number)] / 1000 for number in (EARLY, LATE))
    print(
        f"{1000 * (late - early) / (LATE - EARLY):.1f} us more each step; "
        f"requests {small:.0f} and {large:.0f} kB"
    )
    title = (
        f"a step of `{what}`, 50,000 characters of output, at step {EARLY} and at step {LATE} (`steps.py`)"
    )
    print_row(title, f"{early:.1f} ms, {late:.1f} ms", wanted=wanted)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--small", action="store_true", help="one trial of one agent with and without gateway"
    )
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--gateway-trials", type=int, default=2)
    given = parser.parse_args()
    agents, kinds = list(ANSWERS), list(LINES)
    if given.small:
        agents, kinds, given.trials, given.gateway_trials = agents[:1], kinds[:1], 1, 1
    for kind in kinds:
        for agent in agents:
            report(f"{agent}`, `{kind}", trials_of(agent, kind, given.trials, {}), wanted="5 ms")
    for agent in agents:
        with serving(answers(agent)) as server:
            trials = trials_of(agent, "plain lines", given.gateway_trials, server)
        report(f"{agent}` with the gateway, `plain lines", trials)


if __name__ == "__main__":
    main()
