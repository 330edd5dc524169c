"""A model for the benchmarks: OpenAI's chat completions, answered from a list after a fixed latency.

It runs in a separate process, so that it costs both sides of a comparison the same. The k-th request that
contains the same word `conversation-...` gets the k-th answer; after the last answer the list starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

REACT = "Thought: The next one.\nAction: {}\n<content>\n{}\n</content>"
CONVERSATION = re.compile(rb"conversation-[\w-]+")
# Quotes are escaped in messages, so this matches only the field of the request.
MODEL = re.compile(rb'"model": ?"([^"\\]+)"')
HOST = "127.0.0.1"
MAX_REQUEST = 2**28


@contextlib.contextmanager
def serving(answers: Sequence[str], latency: float = 0.0) -> Iterator[dict[str, str]]:
    """Run a server; yields the environment variables that its clients need. `latency` is in seconds."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"answers": list(answers), "latency": latency}) + "\n")
        server.stdin.flush()
        url = f"http://{HOST}:{server.stdout.readline().strip()}/v1"
        try:
            yield {
                "OPENAI_BASE_URL": url,
                "OPENAI_API_BASE": url,
                "OPENAI_API_KEY": "sk-nobody-asks",
                "NO_PROXY": HOST,
                "no_proxy": HOST,
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            }
        finally:
            server.terminate()


def react_answers(cells: Sequence[str], submission: str) -> list[str]:
    """The answers of the model of a `react` agent."""
    return [*(REACT.format("execute", cell) for cell in cells), REACT.format("submit", submission)]


def completion(text: str, prompt: bytes) -> dict[str, Any]:
    """A response with the name of the requested model, because clients look up its price."""
    asked_for = MODEL.search(prompt)
    used = {"prompt_tokens": len(prompt) // 4 + 1, "completion_tokens": len(text) // 4 + 1}
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked_for[1].decode() if asked_for else "benchmark",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def application(answers: Sequence[str], latency: float) -> web.Application:
    from aiohttp import web

    asked: Counter[bytes] = Counter()

    async def answer(http: web.Request) -> web.Response:
        body = await http.read()
        found = CONVERSATION.search(body)
        conversation = found[0] if found else b""
        text = answers[asked[conversation] % len(answers)]
        asked[conversation] += 1
        await asyncio.sleep(latency)
        return web.json_response(completion(text, body))

    served = web.Application(client_max_size=MAX_REQUEST)
    served.router.add_post("/v1/chat/completions", answer)
    return served


async def serve(answers: Sequence[str], latency: float) -> None:
    """Print the port, and answer requests until the process is killed."""
    from aiohttp import web

    runner = web.AppRunner(application(answers, latency), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    asyncio.run(serve(given["answers"], given["latency"]))
