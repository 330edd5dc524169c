"""A model for the benchmarks: answers from a list after a fixed latency.

It speaks OpenAI's chat completions, and streams Responses and Messages with an event for each word.

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
                "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
                "ANTHROPIC_API_KEY": "sk-nobody-asks",
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


def response_events(text: str) -> Iterator[dict[str, Any]]:
    """The stream of a response."""
    response = {"id": "resp_1", "object": "response", "model": "benchmark", "output": []}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    for word in text.split(" "):
        yield {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": word}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    usage = {"input_tokens": 100, "output_tokens": 100, "total_tokens": 200}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def message_events(text: str) -> Iterator[dict[str, Any]]:
    """The stream of a message."""
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "benchmark", "content": []}
    used = {"input_tokens": 100, "output_tokens": 1}
    yield {"type": "message_start", "message": {**begun, "usage": used}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for word in text.split(" "):
        delta = {"type": "text_delta", "text": word}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 100}}
    yield {"type": "message_stop"}


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
        if http.path in STREAMS:
            lines = (
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in STREAMS[http.path](text)
            )
            return web.Response(text="".join(lines), content_type="text/event-stream")
        return web.json_response(completion(text, body))

    served = web.Application(client_max_size=MAX_REQUEST)
    for path in ("/v1/chat/completions", *STREAMS):
        served.router.add_post(path, answer)
    return served


STREAMS = {"/v1/responses": response_events, "/v1/messages": message_events}


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
