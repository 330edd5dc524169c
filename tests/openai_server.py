"""A local HTTP server that speaks what providers speak and fails on demand, for tests.

It speaks OpenAI's chat completions and Responses, Anthropic's Messages, and Gemini's `streamGenerateContent`.

    def test_it(openai_server):
        openai_server.reply("first answer", openai_server.fault("429", retry_after=0), {"text": "second"})

An answer is a text, a Fault, or a mapping like those in a script of `--super-model=scripted:FILE`: `text`,
`tool_calls`, `finish_reason`, `usage`, `native_usage`, `reasoning_content`, `model`, or `error` with `status`
and the error's fields.
"""

import json
import os
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pytest_super.model.completion import Failure
from tests import native_protocols

KEY = "sk-a-key-that-no-message-may-hold"
# A handler that nobody releases must not outlive its test for ever.
LONGEST_HANG = 60.0
ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "400": (400, {"message": "Unknown parameter: 'foo'.", "code": "unknown"}),
    "401": (401, {"message": f"Incorrect API key provided: {KEY}.", "code": "invalid_api_key"}),
    "402": (402, {"message": "Insufficient balance", "type": "unknown_error"}),
    "403": (403, {"message": "Your account may not use this model.", "code": "unsupported_country"}),
    "404": (404, {"message": "The model `m` does not exist.", "code": "model_not_found"}),
    "429": (429, {"message": "Rate limit reached for requests.", "code": "rate_limit_exceeded"}),
    "500": (500, {"message": "The server had an error.", "type": "server_error"}),
    "503": (503, {"message": "The engine is overloaded.", "type": "server_error"}),
    "context": (
        400,
        {
            "message": "This model's maximum context length is 8192 tokens. However, you asked for 9000.",
            "code": "context_length_exceeded",
        },
    ),
    "filter": (
        400,
        {
            "message": "The request was rejected as a result of our safety system.",
            "code": "content_policy_violation",
        },
    ),
    "quota": (
        429,
        {
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        },
    ),
}
# What these errors mean, and the status that a message about them names.
MEANINGS = [
    ("401", Failure.FATAL, 401),
    ("402", Failure.FATAL, 402),
    ("403", Failure.FATAL, 403),
    ("404", Failure.FATAL, 404),
    ("429", Failure.RATE_LIMITED, 429),
    ("quota", Failure.FATAL, 429),
    ("500", Failure.TRANSIENT, 500),
    ("context", Failure.CONTEXT, 400),
    ("filter", Failure.FILTERED, 400),
]
UNEXPECTED = {"error": {"status": 400, "message": "the test has no answer for this request"}}
# Faults that are no answer with an error status.
BROKEN = (
    "10MB",
    "blocked",
    "damaged",
    "empty",
    "endless",
    "hang",
    "html",
    "no_usage",
    "reset",
    "trickle",
    "truncated",
    "wrong_types",
)


@dataclass(frozen=True)
class Fault:
    """A way to fail: a key of ERRORS or one of BROKEN. `retry_after` is the header's text."""

    kind: str
    retry_after: str | float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ERRORS and self.kind not in BROKEN:
            raise ValueError(f"unknown fault {self.kind!r}")


@dataclass(frozen=True)
class Received:
    """One request: its JSON body and its headers, with names in lower case."""

    body: dict[str, Any]
    headers: dict[str, str]


Answer = str | dict[str, Any] | Fault


class QuickServer(HTTPServer):
    """Stops within 20 ms, where the library's own takes half a second."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.02)


@dataclass
class OpenAIServer:
    """Answers come from the queue first, then from the function or the answer that stays."""

    http: HTTPServer
    latency: float = 0.0
    """Seconds before each answer."""
    requests: list[Received] = field(default_factory=list)
    """All that came to it, in order."""
    speaks: frozenset[str] = frozenset(native_protocols.PATHS)
    """The paths besides chat completions; others are unknown to it, as to many local servers."""
    unknown: Any = field(default_factory=lambda: {"detail": "Not Found"})
    """What it says of them."""
    pause: float = 0.0
    """Seconds between two events of a stream."""
    _queue: deque[Answer] = field(default_factory=deque)
    _function: Callable[[dict[str, Any]], Answer] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        chat = re.compile(r"(/v1)*/(chat/completions|messages|responses)$")
        self.http.expect_request(chat, method="POST").respond_with_handler(self._respond)
        # Old versions of litellm want the model in `api_base`, and others put it after that.
        gemini = re.compile(r"(/v1beta)?(/models/[^/]+)+:(streamGenerateContent|generateContent)$")
        self.http.expect_request(gemini, method="POST").respond_with_handler(self._respond)

    @property
    def base_url(self) -> str:
        return self.http.url_for("/v1")

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs in its environment to come here."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_BASE": self.base_url,
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.http.url_for(""),
            "ANTHROPIC_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": self.http.url_for("").rstrip("/"),
            "GEMINI_API_KEY": KEY,
            "NO_PROXY": self.http.host,
        }

    def reply(self, *answers: Answer) -> None:
        """Queue answers, one a request."""
        with self._lock:
            self._queue.extend(answers)

    def always(self, answer: Answer) -> None:
        """The answer when the queue is empty."""
        self.by(lambda _request: answer)

    def by(self, function: Callable[[dict[str, Any]], Answer]) -> None:
        """Ask the function when the queue is empty; requests that come at once call it at once."""
        self._function = function

    def fault(self, kind: str, *, retry_after: str | float | None = None) -> Fault:
        return Fault(kind, retry_after)

    def release(self) -> None:
        """Let hanging requests end."""
        self._closing.set()

    def _respond(self, http: Request) -> Response:
        body = json.loads(http.get_data())
        headers = {name.lower(): value for name, value in http.headers.items()}
        with self._lock:
            self.requests.append(Received(body, headers))
            answer = self._queue.popleft() if self._queue else None
        if self.latency:
            self._closing.wait(self.latency)
        if answer is None:
            answer = self._function(body) if self._function else UNEXPECTED
        if isinstance(answer, Fault):
            return self._fail(answer, http, body)
        if isinstance(answer, dict) and "error" in answer:
            return failed(answer)
        given = said(answer)
        if "/models/" in http.path:
            return self._gemini(http.path, given)
        path = "/v1" + http.path.rpartition("/v1")[2]
        if path in native_protocols.PATHS and path not in self.speaks:
            return json_response(self.unknown, 404)
        whole = self._whole(path, given, body)
        if not body.get("stream") or given.get("cannot_stream"):
            return json_response(whole)
        if path in native_protocols.PATHS:
            events = native_protocols.events(path, given, str(body["model"]))
        else:
            events = native_protocols.chat_events(whole, body)
        return Response(self._stream(events, given), content_type="text/event-stream")

    def _gemini(self, path: str, given: dict[str, Any]) -> Response:
        model, _, method = path.rpartition("/")[2].partition(":")
        if method == "generateContent" or given.get("cannot_stream"):
            return json_response(native_protocols.whole_of_gemini(given, model))
        events = native_protocols.gemini_events(given, model)
        return Response(self._stream(events, given), content_type="text/event-stream")

    def _whole(self, path: str, given: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        if path in native_protocols.PATHS:
            return native_protocols.whole(path, given, str(body["model"]))
        return chat_completion(given, body)

    def _stream(self, events: Iterator[dict[str, Any]], given: dict[str, Any]) -> Iterator[str]:
        """The events, up to the one that a key of `given` names: `breaks_at`, `stops_at` (goes silent), or
        `fails_at`, which sends the event `with` in its place; `leaves_out` names one that is not sent.
        `cannot_stream` sends the answer as one JSON.
        """
        for event in events:
            kind = native_protocols.kind_of(event)
            if kind == given.get("breaks_at"):
                return
            if kind == given.get("stops_at"):
                self._closing.wait(LONGEST_HANG)
                return
            if kind == given.get("fails_at"):
                yield native_protocols.as_text(given["with"])
                return
            if kind == given.get("leaves_out"):
                continue
            yield native_protocols.as_text(event, is_raw="is_raw" in given)
            self._closing.wait(self.pause)
        if "choices" in event:
            yield native_protocols.DONE

    def _fail(self, fault: Fault, http: Request, body: dict[str, Any]) -> Response:
        if fault.kind == "reset":
            reset(http)
        if fault.kind == "hang":
            self._closing.wait(LONGEST_HANG)
            reset(http)
        if fault.kind == "endless":
            return Response(self._flood(), content_type="application/json")
        if fault.kind == "trickle":
            return Response(self._trickle(), content_type="application/json")
        response = broken(fault.kind, body) if fault.kind in BROKEN else error_response(*ERRORS[fault.kind])
        if fault.retry_after is not None:
            response.headers["Retry-After"] = str(fault.retry_after)
        return response

    def _trickle(self) -> Iterator[bytes]:
        """An answer that goes on and never comes to an end."""
        while not self._closing.wait(0.02):
            yield b" "

    def _flood(self) -> Iterator[bytes]:
        """The same as fast as the client reads."""
        while not self._closing.is_set():
            yield b" " * 2**20


def error_response(status: int, error: dict[str, Any]) -> Response:
    return json_response({"error": {"type": "invalid_request_error", "param": None, **error}}, status)


def json_response(data: Any, status: int = 200) -> Response:
    return Response(json.dumps(data), status=status, content_type="application/json")


def broken(kind: str, body: dict[str, Any]) -> Response:
    """A response that is not of a provider, or not what it should be."""
    good = chat_completion("an answer", body)
    if kind == "blocked":
        return Response("<html><body>Blocked</body></html>", status=403, content_type="text/html")
    if kind == "html":
        return Response("<html><body>Bad gateway</body></html>", content_type="text/html")
    if kind == "damaged":
        data = json.dumps(good).replace("an answer", "an \udcff").encode(errors="surrogateescape")
        return Response(data, content_type="application/json")
    if kind == "truncated":
        return Response(json.dumps(good)[:60], content_type="application/json")
    if kind == "wrong_types":
        return json_response({**good, "choices": "none", "usage": ["many"]})
    if kind == "empty":
        return json_response({**good, "choices": []})
    if kind == "no_usage":
        del good["usage"]
        return json_response(good)
    return json_response(chat_completion("x" * 10_000_000, body))


def reset(http: Request) -> NoReturn:
    """Break the connection, so that the client gets a reset and no end of file."""
    connection: socket.socket = http.environ["werkzeug.socket"]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # The server would shut it down in order: it is given one that has ended instead.
    ended, other = socket.socketpair()
    other.close()
    with ended:
        os.dup2(ended.fileno(), connection.fileno())
    raise ConnectionResetError


def failed(answer: dict[str, Any]) -> Response:
    error = dict(answer["error"])
    return error_response(error.pop("status"), error)


def said(answer: str | dict[str, Any]) -> dict[str, Any]:
    return {"text": answer} if isinstance(answer, str) else answer


def chat_completion(answer: str | dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The JSON of an answer. Usage that it does not state is the number of words."""
    given = said(answer)
    message = {"role": "assistant", "content": given.get("text")}
    message |= {key: given[key] for key in ("tool_calls", "reasoning_content") if key in given}
    finish_reason = given.get("finish_reason", "tool_calls" if given.get("tool_calls") else "stop")
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": given.get("model", f"{body.get('model')}-2024-08-06"),
        "system_fingerprint": given.get("fingerprint", "fp_test"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}],
        "usage": {**count_words(given.get("text"), body), **given.get("usage", {})},
    }


def count_words(text: Any, body: dict[str, Any]) -> dict[str, int]:
    prompt = len(json.dumps(body.get("messages")).split())
    completion = len(str(text).split())
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


@contextmanager
def running_server() -> Iterator[OpenAIServer]:
    """A server; nothing that hangs in it holds up its end."""
    with QuickServer(host="127.0.0.1", threaded=True) as http:
        server = OpenAIServer(http)
        yield server
        server.release()
