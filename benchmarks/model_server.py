"""A model for the benchmarks: answers from a list after a fixed latency.

It speaks OpenAI's chat completions, and streams Responses and Messages with an event for each word. An answer
is a text; that of a stream can also call a tool: `{"text": TEXT, "tool": NAME, "arguments": {...}}`.

It runs in a separate process, so that it costs both sides of a comparison the same. The k-th chat completion
that is asked for with the same word `conversation-...` is the k-th answer. A stream is chosen by its request:
if that has the outputs of k tools, it is answer k + 1. After the last answer the list starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web

REACT = "Thought: The next one.\nAction: {}\n<content>\n{}\n</content>"
CONVERSATION = re.compile(rb"conversation-[\w-]+")
# Quotes are escaped in messages, so this matches only the field of the request.
MODEL = re.compile(rb'"model": ?"([^"\\]+)"')
TOOL_OUTPUT = re.compile(rb'"type": ?"(function_call_output|tool_result)"')
Answer = str | dict[str, Any]
HOST = "127.0.0.1"
MAX_REQUEST = 2**28


@contextlib.contextmanager
def serving(answers: Sequence[Answer], latency: float = 0.0, pause: float = 0.0) -> Iterator[dict[str, str]]:
    """Run a server; yields the environment variables that its clients need.

    In seconds: `latency` before an answer begins, `pause` between two events of a stream.
    """
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"answers": list(answers), "latency": latency, "pause": pause}) + "\n")
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


def name_in(request: bytes) -> str:
    asked_for = MODEL.search(request)
    return asked_for[1].decode() if asked_for else "benchmark"


def completion(text: str, prompt: bytes) -> dict[str, Any]:
    """A response with the name of the requested model, because clients look up its price."""
    used = {"prompt_tokens": len(prompt) // 4 + 1, "completion_tokens": len(text) // 4 + 1}
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": name_in(prompt),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def response_events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The stream of a response."""
    response = {"id": f"resp_{answer['id']}", "object": "response", "model": answer["model"], "output": []}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    output = list(output_items(answer))
    for index, item in enumerate(output):
        place = {"item_id": item["id"], "output_index": index}
        is_call = item["type"] == "function_call"
        began = {**item, "arguments": ""} if is_call else {**item, "content": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": began}
        kind = "function_call_arguments" if is_call else "output_text"
        for word in words(item["arguments"] if is_call else answer["text"]):
            yield {"type": f"response.{kind}.delta", **place, "delta": word}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 100, "output_tokens": 100, "total_tokens": 200}
    done = {**response, "status": "completed", "output": output, "usage": usage}
    yield {"type": "response.completed", "response": done}


def output_items(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    number, part = answer["id"], {"type": "output_text", "text": answer["text"], "annotations": []}
    yield {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]}
    if "tool" in answer:
        call = {"name": answer["tool"], "arguments": json.dumps(answer["arguments"])}
        yield {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", **call}


def message_events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The stream of a message."""
    usage = {"input_tokens": 100, "output_tokens": 1}
    begun = {"id": f"msg_{answer['id']}", "type": "message", "role": "assistant", "model": answer["model"]}
    yield {"type": "message_start", "message": {**begun, "content": [], "usage": usage}}
    yield from block_events(0, {"type": "text", "text": ""}, "text_delta", "text", answer["text"])
    if "tool" in answer:
        call = {"type": "tool_use", "id": f"call_{answer['id']}", "name": answer["tool"], "input": {}}
        arguments = json.dumps(answer["arguments"])
        yield from block_events(1, call, "input_json_delta", "partial_json", arguments)
    ended = {"stop_reason": "tool_use" if "tool" in answer else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 100}}
    yield {"type": "message_stop"}


def block_events(
    index: int, block: dict[str, Any], kind: str, field: str, text: str
) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for word in words(text):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: word}}
    yield {"type": "content_block_stop", "index": index}


def words(text: str) -> list[str]:
    """The text in pieces that add up to it."""
    return re.findall(r"\S+\s*", text)


def application(answers: Sequence[Answer], latency: float, pause: float) -> web.Application:
    from aiohttp import web

    asked: Counter[bytes] = Counter()

    async def complete(http: web.Request) -> web.Response:
        body = await http.read()
        found = CONVERSATION.search(body)
        conversation = found[0] if found else b""
        text = answers[asked[conversation] % len(answers)]
        asked[conversation] += 1
        await asyncio.sleep(latency)
        return web.json_response(completion(str(text), body))

    async def stream(http: web.Request) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        body = await http.read()
        turn = len(TOOL_OUTPUT.findall(body))
        answer = answers[turn % len(answers)]
        await asyncio.sleep(latency)
        given = {"text": answer} if isinstance(answer, str) else answer
        # Programs take two calls of the same id for one.
        events = STREAMS[http.path]({**given, "id": turn, "model": name_in(body)})
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        if not pause:
            return web.Response(text="".join(lines), content_type="text/event-stream")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        due = loop.time()
        for line in lines:
            await response.write(line.encode())
            # By the clock, because a provider elsewhere is not slowed down by the load of this machine.
            due += pause
            await asyncio.sleep(due - loop.time())
        return response

    served = web.Application(client_max_size=MAX_REQUEST)
    served.router.add_post("/v1/chat/completions", complete)
    for path in STREAMS:
        served.router.add_post(path, stream)
    return served


STREAMS = {"/v1/responses": response_events, "/v1/messages": message_events}


async def serve(answers: Sequence[Answer], latency: float, pause: float) -> None:
    """Print the port, and answer requests until the process is killed."""
    from aiohttp import web

    runner = web.AppRunner(application(answers, latency, pause), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    asyncio.run(serve(given["answers"], given["latency"], given["pause"]))
