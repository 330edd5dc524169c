"""A trial's model: asks the gateway. Workers import nothing else of models, which keeps them light."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.model.answer import completion_from
from pytest_super.model.api import CHAT, FACTS, UNKNOWN_TRIAL, USAGE
from pytest_super.model.completion import BudgetSpentError, FilteredError, ModelError, Usage
from pytest_super.model.gateway_process import MAX_STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_super.model.completion import Completion, Message
    from pytest_super.model.gateway_process import Gateway
    from pytest_super.model.unix_http import HttpResponse, UnixConnection

# Seconds. All retries of the gateway together take less than an hour.
LONGEST_CALL = 3600.0
# The time that the gateway can take to report a usage, beyond its own time-out.
REPORT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The outcome of a request that was passed on unread."""

    response: HttpResponse
    seconds: float
    usage: Usage | None = None
    """None if the request was not a call of the model, or failed."""
    code: str = ""
    """The gateway's code for a failure."""
    message: str = ""
    error: Exception | None = None
    """The exception that `complete` raises for this failure."""


class GatewayModel:
    """The run's model under one trial's limits, which the gateway enforces."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        task: str,
        epoch: int,
        rerun: int,
        token_limit: Callable[[], int],
        cost_limit: float | None,
        seconds_left: Callable[[], float] = lambda: inf,
    ) -> None:
        """`token_limit` returns the prompt tokens allowed in total, `seconds_left` a call's time limit."""
        self._gateway = gateway
        self._seconds_left = seconds_left
        self.trial = {
            "name": f"{task}/{epoch}.{rerun}",
            "task": task,
            "epoch": epoch,
            "token_limit": token_limit(),
            "cost_limit": cost_limit,
        }
        self._token_limit = token_limit
        self._token = ""
        # A program's requests come from several threads at once.
        self._opening = threading.Lock()
        self._has_asked = False

    @property
    def name(self) -> str:
        """As in --super-model."""
        return self._gateway.settings.name

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Raises BudgetSpentError, FilteredError, ModelError, and ValueError for a malformed request."""
        began = monotonic()
        # A Completion is a whole answer, never a stream.
        parameters.pop("stream", None)
        request = {"messages": [dict(message) for message in messages], **parameters}
        response = self._send(json.dumps(request).encode())
        body = json.loads(response.body)
        if response.status != 200:
            raise error_of(body["error"])
        return completion_from(body, json.loads(response.headers[FACTS]), seconds=monotonic() - began)

    def forward(
        self, method: str, path: str, body: bytes, opened: Callable[[UnixConnection], None]
    ) -> Forwarded:
        """Pass a request on as it is, from any thread. An exception that `opened` raises ends it.

        Raises ModelError if the gateway does not work; other failures are in the result.
        """
        began = monotonic()

        def send(token: str) -> HttpResponse:
            return self._gateway.send(method, path, body, token, opened=opened)

        return forwarded(self._with_token(send), seconds=monotonic() - began)

    def booked_usage(self, timeout: float) -> Usage | None:
        """What the trial has used by the gateway's ledger, which includes calls whose client has left.

        Waits up to `timeout` seconds for calls under way. None if no call was made or the gateway is dead.
        """
        # The question alone would start a gateway.
        if not self._has_asked:
            return None
        body, limit = json.dumps({"timeout": timeout}).encode(), timeout + REPORT_SECONDS

        def send(token: str) -> HttpResponse:
            return self._gateway.send("POST", USAGE, body, token, timeout=limit)

        try:
            response = self._with_token(send)
        except (ModelError, TimeoutError):
            return None
        return Usage.from_data(json.loads(response.body)) if response.status == 200 else None

    def _with_token(self, send: Callable[[str], HttpResponse]) -> HttpResponse:
        """The response to a request with the trial's token. A new gateway needs a new token."""
        for _ in range(MAX_STARTS):
            token = self._current_token()
            response = send(token)
            if response.status != UNKNOWN_TRIAL:
                return response
            self._forget(token)
        raise ModelError("the model gateway keeps dying")

    def _current_token(self) -> str:
        """The trial's token. Opens the trial first if the gateway does not know its present limit."""
        with self._opening:
            limit = self._token_limit()
            if not self._token or limit != self.trial["token_limit"]:
                self.trial["token_limit"] = limit
                self._token = self._gateway.open_trial(self.trial)
                self._has_asked = True
            return self._token

    def _forget(self, token: str) -> None:
        with self._opening:
            # Another thread can have got a new one already.
            if self._token == token:
                self._token = ""

    def _send(self, data: bytes) -> HttpResponse:
        return self._with_token(lambda token: self._send_in_time(data, token))

    def _send_in_time(self, data: bytes, token: str) -> HttpResponse:
        # Read only now, because the start of the gateway takes seconds.
        left = self._seconds_left()
        if left <= 0:
            raise BudgetSpentError("wall")
        try:
            return self._gateway.send("POST", CHAT, data, token, timeout=min(left, LONGEST_CALL))
        except TimeoutError:
            # Then the time-out was the trial's own limit.
            if left <= LONGEST_CALL:
                raise BudgetSpentError("wall") from None
            raise ModelError(f"the model gateway gave no answer in {LONGEST_CALL:.0f} s") from None


def forwarded(response: HttpResponse, seconds: float) -> Forwarded:
    if response.status != 200:
        error = json.loads(response.body)["error"]
        return Forwarded(
            response, seconds, code=error["code"], message=error["message"], error=error_of(error)
        )
    facts = response.headers.get(FACTS)
    return Forwarded(response, seconds, usage=Usage.from_data(json.loads(facts)) if facts else None)


def error_of(error: dict[str, Any]) -> Exception:
    """The exception for an error in the gateway's JSON."""
    code, message = error["code"], error["message"]
    if code.startswith("budget_"):
        return BudgetSpentError(code.removeprefix("budget_"))
    if code == "context":
        return BudgetSpentError("context")
    if code == "invalid_request":
        return ValueError(message)
    if code == "filtered":
        return FilteredError(message)
    return ModelError(message, is_final=code == "fatal")
