"""The cost of a call at the model door, over one that goes straight to the provider.

Usage: python benchmarks/door.py [--small] [--calls 200] [--words 100] [--turns 40]

A program in a sandbox asks a local provider in each protocol, with the conversation of an agent after some
turns: directly and through the door, by turns. The door is all that is between: the sandbox's endpoint, the
stream to the host, the trial's budget, and the gateway with its ledger. The client is the same for both.

The last row is of a worker that reaches the gateway through its controller, as on another machine, over one
that uses the gateway's socket. The network between machines is not in it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import statistics
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import execnet
from model_server import serving
from rows import HEADER, print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.model.client import GatewayModel
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.relay import AnyGateway, Relay
from pytest_super.model.settings import ModelSettings
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget
from pytest_super.trial.model_endpoint import ModelEndpoint

if TYPE_CHECKING:
    from execnet import Channel

WANTED_MS, WANTED_RELAYED_MS = 15.0, 5.0
MODELS = {
    "/v1/chat/completions": "openai/gpt-4o",
    "/v1/responses": "openai/gpt-4o",
    "/v1/messages": "anthropic/claude-sonnet-4-5",
}
# Runs in the sandbox. Prints the seconds of each call.
CLIENT = """
import http.client, json, time
from urllib.parse import urlsplit

given = json.loads({given!r})
body = json.dumps(given["body"])
place = urlsplit(given["url"])
connection = http.client.HTTPConnection(place.hostname, place.port)
seconds = []
for _ in range(given["calls"]):
    began = time.perf_counter()
    connection.request("POST", place.path + given["path"], body, {{"Content-Type": "application/json"}})
    answer = connection.getresponse()
    text = answer.read()
    seconds.append(time.perf_counter() - began)
    assert answer.status == 200 and given["last"] in text.decode(), text
print(json.dumps(seconds))
"""


def request_of(path: str, turns: int) -> dict[str, Any]:
    """The conversation of an agent, with the output of a tool in each turn."""
    output = "epoch 1 loss 0.5 accuracy 0.75\n" * 40
    said = [{"role": role, "content": output} for _ in range(turns) for role in ("user", "assistant")]
    asked = [*said, {"role": "user", "content": "Go on."}]
    if path == "/v1/responses":
        return {"model": "m", "input": asked, "stream": True}
    more = {"max_tokens": 500, "stream": True} if path == "/v1/messages" else {}
    return {"model": "m", "messages": asked, **more}


@contextmanager
def door(path: str, kernel: Kernel, folder: Path) -> Iterator[str]:
    """The address of a door with a gateway of its own."""
    calls = str(folder / f"{uuid.uuid4().hex}.jsonl")
    settings = ModelSettings(name=MODELS[path], parameters={}, max_cost=None, calls=calls, record=str(folder))
    with closing(Gateway(f"bench-{uuid.uuid4().hex[:8]}", settings, "t0ken")) as gateway:
        budget = Budget(Limits(), tokens=10**9)
        budget.start_metering(float)
        model = GatewayModel(
            gateway,
            task="t",
            epoch=1,
            rerun=0,
            token_limit=lambda: budget.tokens_allowed,
            cost_limit=None,
            seconds_left=budget.wall_left,
        )
        yield kernel.serve(ModelEndpoint(model, budget).answer)
        kernel.stop_serving()


def measure(kernel: Kernel, url: str, path: str, calls: int, turns: int) -> list[float]:
    last = {"/v1/responses": "response.completed", "/v1/messages": "message_stop"}.get(path, "choices")
    given = {"url": url, "path": path, "calls": calls, "body": request_of(path, turns), "last": last}
    result = kernel.execute(CLIENT.format(given=json.dumps(given)), timeout=600)
    seconds: list[float] = json.loads(result.text)
    return seconds


def worker(channel: Channel) -> None:
    """Runs in a worker: sends the seconds of calls by the gateway's socket, and through the controller."""
    import time

    from pytest_super.model.client import GatewayModel
    from pytest_super.model.gateway_process import Gateway
    from pytest_super.model.relay import RelayedGateway
    from pytest_super.model.settings import ModelSettings

    given, run_id, controller, messages, calls = channel.receive()
    settings = ModelSettings(**given)
    own = Gateway(run_id, settings, "t0ken")
    ways: tuple[AnyGateway, ...] = (own, RelayedGateway(settings, controller))
    seconds: list[list[float]] = [[], []]
    for _ in range(calls):
        for gateway, took in zip(ways, seconds, strict=True):
            model = GatewayModel(
                gateway, task="t", epoch=1, rerun=0, token_limit=lambda: 10**9, cost_limit=None
            )
            began = time.perf_counter()
            model.complete(messages)
            took.append(time.perf_counter() - began)
    own.close()
    channel.send(seconds)


def measure_relayed(folder: Path, calls: int, turns: int) -> tuple[float, float]:
    """The median milliseconds of a call by the socket, and through the controller."""
    settings = ModelSettings(
        name="openai/gpt-4o", parameters={}, max_cost=None, calls=str(folder / "calls.jsonl"), record=None
    )
    node = execnet.makegateway("popen//execmodel=main_thread_only")
    code = f"from __future__ import annotations\n{inspect.getsource(worker)}\nworker(channel)"
    with closing(Gateway(f"bench-{uuid.uuid4().hex[:8]}", settings, "t0ken")) as gateway:
        gateway.connect().close()
        channel = node.remote_exec(code)
        controller = Relay(node, lambda: gateway).channel
        messages = request_of("/v1/chat/completions", turns)["messages"]
        channel.send((asdict(settings), gateway.run_id, controller, messages, calls))
        by_socket, relayed = channel.receive()
        channel.waitclose()
    node.exit()
    return statistics.median(by_socket) * 1000, statistics.median(relayed) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="a few calls")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--words", type=int, default=100, help="events of an answer")
    parser.add_argument("--turns", type=int, default=40, help="of the conversation, of 2.5 kB each")
    options = parser.parse_args()
    calls = 5 if options.small else options.calls
    print(HEADER)
    answer = " ".join(f"word{number}" for number in range(options.words))
    with (
        serving([answer]) as environment,
        tempfile.TemporaryDirectory() as name,
        started(LocalSandbox()) as kernel,
    ):
        os.environ.update(environment)
        for path in MODELS:
            with door(path, kernel, Path(name)) as url:
                # The first call starts the gateway.
                measure(kernel, url, path, 2, options.turns)
                direct, through = [], []
                for _ in range(5):
                    direct += measure(
                        kernel, environment["ANTHROPIC_BASE_URL"], path, -(-calls // 5), options.turns
                    )
                    through += measure(kernel, url, path, -(-calls // 5), options.turns)
            ours, peer = statistics.median(through) * 1000, statistics.median(direct) * 1000
            print_row(
                f"a call at the model door, `{path}`: its cost over a direct one",
                f"{ours - peer:.1f} ms ({ours:.1f} ms)",
                peer=f"{peer:.1f} ms",
                wanted=f"{WANTED_MS:.0f} ms",
            )
        by_socket, relayed = measure_relayed(Path(name), calls, options.turns)
        print_row(
            "a call through the controller: its cost over one by the gateway's socket",
            f"{relayed - by_socket:.1f} ms ({relayed:.1f} ms)",
            peer=f"{by_socket:.1f} ms",
            wanted=f"{WANTED_RELAYED_MS:.0f} ms",
        )


if __name__ == "__main__":
    main()
