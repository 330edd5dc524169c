"""A local HTTP server that speaks Anthropic's Messages API, as a stream, with answers from a list, for tests.

An answer is a text, or a mapping with the `name` and the `input` of a tool that the model calls.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class AnthropicServer:
    """Gives each answer once, to requests with tools. To others it answers `ok`."""

    def __init__(self, *answers: str | Mapping[str, Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests that got one of the answers."""
        self._answers = iter(answers)
        self._server = HTTPServer()
        self._server.expect_request("/v1/messages").respond_with_handler(self._answer)

    def __enter__(self) -> AnthropicServer:
        self._server.start()
        self.url = self._server.url_for("")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of tools in the last request."""
        blocks = [
            block
            for message in self.requests[-1]["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [block for block in blocks if block["type"] == "tool_result"]

    def _answer(self, request: Request) -> Response:
        body = request.get_json()
        answer: str | Mapping[str, Any] = "ok"
        if body.get("tools"):
            self.requests.append(body)
            answer = next(self._answers, "done")
        events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream(answer))
        return Response(events, content_type="text/event-stream")


def stream(answer: str | Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of an answer, as https://docs.anthropic.com/en/api/messages-streaming describes them."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    ends: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, **ends, "usage": usage}}
    block: dict[str, Any]
    if isinstance(answer, str):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": answer}
        ends["stop_reason"] = "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{id(answer)}", "name": answer["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer["input"])}
        ends["stop_reason"] = "tool_use"
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": ends, "usage": usage}
    yield {"type": "message_stop"}
