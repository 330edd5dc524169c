"""Serves the trial's model to a program by OpenAI's API and charges the trial for it."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pytest_super.kernel.http_requests import Gone, Reply
from pytest_super.model.api import CHAT
from pytest_super.model.client import error_of
from pytest_super.model.completion import BudgetSpentError, Completion, FilteredError, ModelError
from pytest_super.model.streaming import events, wants_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.http_requests import HttpRequest
    from pytest_super.model.client import GatewayModel
    from pytest_super.model.completion import Model, Usage
    from pytest_super.model.unix_http import UnixConnection
    from pytest_super.trial.budget import Budget

MODELS = "/v1/models"
OFFERED = f"POST {CHAT} and GET {MODELS}"
# Refused requests shown in the trajectory: how many, and the characters of each.
MOST_REFUSED, LONGEST_REFUSED = 5, 100
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
        # An ordered set.
        self._refused: dict[str, None] = {}

    def answer(self, request: HttpRequest) -> Reply:
        """The reply to one request. Raises Gone when its client has left."""
        method, path = request.method, request.path.partition("?")[0]
        if (method, path) == ("GET", MODELS):
            # The run's model answers, whatever model a request names.
            model = {"id": getattr(self._model, "name", "model"), "object": "model", "created": 0}
            return reply({"object": "list", "data": [{**model, "owned_by": "pytest-super"}]})
        if (method, path) == ("POST", CHAT):
            return self._ask(request)
        return self._refuse(f"{method} {path}"[:LONGEST_REFUSED])

    def _refuse(self, request: str) -> Reply:
        with self._lock:
            if len(self._refused) < MOST_REFUSED:
                self._refused[request] = None
        return refusal(404, "not_found", f"{request} is not offered here, only {OFFERED}: chat completions")

    @property
    def note(self) -> str:
        """The requests that were refused, from which a user can see why the program failed; or ""."""
        return f"[The program asked for {self.refused}]" if self.refused else ""

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

    def _ask(self, request: HttpRequest) -> Reply:
        try:
            if limit := self.spent or self._budget.spent_besides_compute():
                raise BudgetSpentError(limit)
            with self._clocked():
                if hasattr(self._model, "forward"):
                    return self._forward(cast("GatewayModel", self._model), request)
                return self._complete(self._model, request)
        except Gone:
            raise
        except BudgetSpentError as spent:
            return self._end(spent.limit)
        except FilteredError as error:
            return refusal(400, CODES["filtered"], str(error))
        except Exception as error:
            self.failure = self.failure or as_model_error(error)
            # Clients do not retry a 403, as they do a 5xx.
            return refusal(403, "model_error", str(error))

    def _forward(self, model: GatewayModel, request: HttpRequest) -> Reply:
        def opened(connection: UnixConnection) -> None:
            # A client that leaves cancels its call.
            request.when_gone(connection.break_off)

        forwarded = model.forward(request.body, opened)
        if forwarded.error is not None:
            if code := CODES.get(forwarded.error["code"]):
                return refusal(400, code, forwarded.error["message"])
            raise error_of(forwarded.error)
        self._charge(forwarded.usage, forwarded.seconds)
        response = forwarded.response
        return Reply(status=200, body=response.body, type=response.headers.get_content_type())

    def _charge(self, usage: Usage, seconds: float) -> None:
        """Charge a request. Raises BudgetSpentError if it spent the budget: its answer is then withheld."""
        with self._lock:
            # After the end, the trial takes the totals from the model's ledger.
            if self._is_closed:
                raise Gone
            self._budget.charge_call(usage, seconds)
        if limit := self._budget.spent_besides_compute():
            raise BudgetSpentError(limit)

    def _end(self, limit: str) -> Reply:
        self.spent = self.spent or limit
        return refusal(403, f"budget_{limit}", f"the trial's {limit} budget is spent")

    def _complete(self, model: Model, request: HttpRequest) -> Reply:
        """Answer by a model without `forward`, for example one from a fixture."""
        try:
            fields = json.loads(request.body)
            messages = fields["messages"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return refusal(400, "invalid_request", "the body must be a JSON object with a list of messages")
        others = {name: fields[name] for name in fields if name not in ("messages", "model", "stream")}
        try:
            completion = model.complete(messages, **others)
        except ValueError as error:
            return refusal(400, "invalid_request", str(error))
        self._charge(completion.usage, completion.seconds)
        body = chat_completion(completion)
        if not fields.get("stream"):
            return reply(body)
        text = "".join(events(body, usage=wants_usage(fields)))
        return Reply(status=200, body=text.encode(), type="text/event-stream")


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


def as_model_error(error: Exception) -> ModelError:
    return error if isinstance(error, ModelError) else ModelError(f"the model failed: {error!r}")


def reply(value: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(value).encode())


def refusal(status: int, code: str, message: str) -> Reply:
    error = {"message": message, "type": "pytest_super", "param": None, "code": code}
    return reply({"error": error}, status)
