"""The model door: serves the trial's model to a program in each of PROTOCOLS, and charges the trial."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pytest_super.kernel.http_requests import EVENTS, Gone, Reply
from pytest_super.model.api import COUNT_TOKENS
from pytest_super.model.client import error_of
from pytest_super.model.completion import BudgetSpentError, Completion, FilteredError, ModelError
from pytest_super.model.failures import ModelCallError
from pytest_super.model.protocols.known import PROTOCOLS
from pytest_super.model.protocols.protocol import openai_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.http_requests import HttpRequest
    from pytest_super.model.client import GatewayModel
    from pytest_super.model.completion import Model, Usage
    from pytest_super.model.protocols.protocol import WireProtocol
    from pytest_super.model.unix_http import UnixConnection
    from pytest_super.trial.budget import Budget

MODELS = "/v1/models"
OFFERED = f"POST {', '.join(PROTOCOLS)}, and GET {MODELS}"
# Refused requests and removed tools shown in the trajectory: how many, and the characters of each.
MOST_NAMED, LONGEST_NAMED = 5, 100
# Errors of the request, not of the model, as codes of OpenAI's API. Agents use the first one to notice that
# their prompt is too long.
CODES = {
    "context": "context_length_exceeded",
    "filtered": "content_policy_violation",
    "refused": "invalid_request",
    "invalid_request": "invalid_request",
}


class ModelEndpoint:
    """Answers the HTTP requests of one program. `answer` is called in several threads at once.

    A failed model (`failure`) or a reached limit (`spent`) ends the trial, however the program handles the
    answer. A request that is wrong, too long or refused by a content policy does not: the program handles it.
    """

    def __init__(self, model: Model, budget: Budget) -> None:
        self.failure: ModelError | None = None
        self.spent: str | None = None
        self._model = model
        self._budget = budget
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._waited = 0.0
        self._is_closed = False
        # Ordered sets.
        self._refused: dict[str, None] = {}
        self._removed: dict[str, None] = {}

    def answer(self, request: HttpRequest) -> Reply | None:
        """The reply to one request; None if it was a stream. Raises Gone when its client has left."""
        method, path = request.method, request.path.partition("?")[0]
        if method == "GET" and (path == MODELS or path.startswith(f"{MODELS}/")):
            # The run's model answers, whatever model a request names.
            name = path.removeprefix(MODELS)[1:] or getattr(self._model, "name", "model")
            return reply(model_card(name, path))
        if (method, path) == ("POST", COUNT_TOKENS):
            return self._count_tokens(request)
        if method == "POST" and path in PROTOCOLS:
            return self._ask(request, PROTOCOLS[path])
        return self._refuse(f"{method} {path}"[:LONGEST_NAMED])

    def _refuse(self, request: str) -> Reply:
        self._name(self._refused, request)
        return refusal(404, "not_found", f"{request} is not offered here, only {OFFERED}")

    def _name(self, names: dict[str, None], name: str) -> None:
        with self._lock:
            if len(names) < MOST_NAMED:
                names[name[:LONGEST_NAMED]] = None

    @property
    def note(self) -> str:
        """What a user can see the program's troubles from: refused requests and removed tools; or ""."""
        asked = f"[The program asked for {self.refused}]" if self.refused else ""
        with self._lock:
            removed = ", ".join(self._removed)
        hosted = f"[Removed from the program's requests: {removed}, which the provider would run.]"
        return "\n".join(filter(None, (asked, hosted if removed else "")))

    @property
    def refused(self) -> str:
        """The first requests that were refused, and what is offered instead; or ""."""
        with self._lock:
            refused = ", ".join(self._refused)
        return f"{refused}: only {OFFERED} are offered here." if refused else ""

    @property
    def waiting_seconds(self) -> float:
        """Seconds during which at least one request waited for the model, until now or until `close`."""
        with self._lock:
            return self._waited + (self._budget.clock() - self._since if self._running else 0.0)

    def close(self) -> None:
        """Stop the clock and answer no more requests."""
        with self._lock:
            self._stop_clock()
            self._running, self._is_closed = 0, True

    def _stop_clock(self) -> None:
        if self._running:
            self._waited += self._budget.clock() - self._since

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise Gone
            if not self._running:
                self._since = self._budget.clock()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                # `close` has stopped the clock.
                if not self._is_closed:
                    if self._running == 1:
                        self._stop_clock()
                    self._running -= 1

    def _ask(self, request: HttpRequest, protocol: WireProtocol) -> Reply | None:
        stream = HeldStream(request)
        try:
            if limit := self.spent or self._budget.spent_besides_compute():
                raise BudgetSpentError(limit)
            with self._clocked():
                if hasattr(self._model, "forward"):
                    return self._forward(cast("GatewayModel", self._model), request, stream)
                return self._complete(self._model, request, protocol)
        except Gone:
            raise
        except BudgetSpentError as spent:
            self.spent = self.spent or spent.limit
            text = f"the trial's {spent.limit} budget is spent"
            return stream.refuse(protocol, 403, f"budget_{spent.limit}", text)
        except RefusedError as error:
            return stream.refuse(protocol, 400, error.code, str(error))
        except FilteredError as error:
            return stream.refuse(protocol, 400, CODES["filtered"], str(error))
        except Exception as error:
            self.failure = self.failure or as_model_error(error)
            # Clients do not retry a 403, as they do a 5xx.
            return stream.refuse(protocol, 403, "model_error", str(error))

    def _forward(self, model: GatewayModel, request: HttpRequest, stream: HeldStream) -> Reply | None:
        def opened(connection: UnixConnection) -> None:
            # A client that leaves cancels its call.
            request.when_gone(connection.break_off)

        path = request.path.partition("?")[0]
        forwarded = model.forward(path, request.body, opened, stream.send, request.beta)
        if forwarded.error is not None:
            if code := CODES.get(forwarded.error["code"]):
                raise RefusedError(code, forwarded.error["message"])
            raise error_of(forwarded.error)
        for tool in forwarded.facts["removed"]:
            self._name(self._removed, tool)
        self._charge(forwarded.usage, forwarded.seconds)
        return None if stream.end() else Reply(status=200, body=forwarded.body)

    def _count_tokens(self, request: HttpRequest) -> Reply:
        count = getattr(self._model, "count_tokens", None)
        if count is None:
            return reply({"input_tokens": len(request.body) // 4})
        counted = count(request.body)
        if counted is None:
            return refusal(400, "invalid_request", "the body must be a request of Messages")
        return Reply(status=200, body=counted)

    def _charge(self, usage: Usage, seconds: float) -> None:
        """Charge a request. Raises BudgetSpentError if it spent the budget: its answer is then withheld."""
        with self._lock:
            # After the end, the trial takes the totals from the model's ledger.
            if self._is_closed:
                raise Gone
            self._budget.charge_call(usage, seconds)
        if limit := self._budget.spent_besides_compute():
            raise BudgetSpentError(limit)

    def _complete(self, model: Model, request: HttpRequest, protocol: WireProtocol) -> Reply:
        """Answer by a model without `forward`, for example one from a fixture."""
        try:
            fields = json.loads(request.body)
            accepted, _ = protocol.accepted(fields, is_open=False)
            chat = protocol.to_chat(accepted)
        except ModelCallError as error:
            raise RefusedError("invalid_request", error.message) from None
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise RefusedError("invalid_request", "the body must be a JSON object") from None
        try:
            completion = model.complete(chat.pop("messages"), **chat)
        except ValueError as error:
            raise RefusedError("invalid_request", str(error)) from None
        self._charge(completion.usage, completion.seconds)
        body = protocol.from_chat(chat_completion(completion), accepted)
        if not fields.get("stream"):
            return reply(body)
        text = "".join(protocol.events(body, fields))
        return Reply(status=200, body=text.encode(), type=EVENTS)


class RefusedError(Exception):
    """The request is at fault, and the program may send another; `code` is one of OpenAI's API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class HeldStream:
    """Relays events to a client, and holds the newest until the answer is charged.

    Without its last event no client takes an answer for whole.
    """

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._held = b""

    def send(self, event: bytes) -> None:
        if self._held:
            self._request.relay(self._held)
        self._held = event

    def end(self) -> bool:
        """Send the last event. Whether there was a stream."""
        if self._held:
            self._request.relay(self._held)
        return bool(self._held)

    def refuse(self, protocol: WireProtocol, status: int, code: str, message: str) -> Reply | None:
        """End the stream by an error, or reply with it if no stream has begun."""
        if not self._held:
            return reply(protocol.error(status, code, message), status)
        self._request.relay(protocol.error_event(code, message).encode())
        return None


def chat_completion(completion: Completion) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        message["tool_calls"] = completion.tool_calls
    prompt, said = completion.usage.prompt_tokens, completion.usage.completion_tokens
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": 0,
        "model": completion.model,
        "choices": [{"index": 0, "message": message, "finish_reason": completion.finish_reason}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said},
    }


def model_card(name: str, path: str) -> dict[str, Any]:
    """The answer to GET /v1/models, or to one model of it, as clients of both providers read it."""
    both = {"object": "model", "created": 0, "owned_by": "pytest-super"}
    card = {"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z", **both}
    if path != MODELS:
        return card
    return {"object": "list", "data": [card], "has_more": False, "first_id": name, "last_id": name}


def as_model_error(error: Exception) -> ModelError:
    return error if isinstance(error, ModelError) else ModelError(f"the model failed: {error!r}")


def reply(value: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(value).encode())


def refusal(status: int, code: str, message: str) -> Reply:
    return reply(openai_error(code, message), status)
