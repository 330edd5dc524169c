"""A trial's model: asks the gateway, which is all that a worker needs of models."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.model.completion import BudgetSpentError, Completion, FilteredError, ModelError
from pytest_super.model.launch import FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_super.model.completion import Message
    from pytest_super.model.launch import Gateway, Response, UnixConnection

UNKNOWN_TRIAL = 401


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What came of a request that was passed on, in how many seconds."""

    response: Response
    seconds: float
    used: dict[str, Any] | None = None
    """The value of `super` in the answer of a model."""
    trouble: str = ""
    """The gateway's code for why there is none, and its words."""
    message: str = ""
    error: Exception | None = None
    """What `complete` raises for that."""


class GatewayModel:
    """The run's model under one trial's limits, which the gateway keeps too."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        task: str,
        epoch: int,
        attempt: int,
        token_limit: int,
        cost_limit: float | None,
        seconds_left: Callable[[], float] = lambda: inf,
    ) -> None:
        """`seconds_left` tells how long a call may last."""
        self._gateway = gateway
        self._seconds_left = seconds_left
        self.trial = {
            "name": f"{task}/{epoch}.{attempt}",
            "task": task,
            "epoch": epoch,
            "token_limit": token_limit,
            "cost_limit": cost_limit,
        }
        self._token = ""
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        """As --super-model has it."""
        return self._gateway.settings.name

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Raises BudgetSpentError, FilteredError, ModelError."""
        began = monotonic()
        status, data = self._post({"messages": [dict(message) for message in messages], **parameters})
        if status != 200:
            raise error_of(data["error"])
        return completion_of(data, seconds=monotonic() - began)

    def forward(
        self, method: str, path: str, body: bytes, opened: Callable[[UnixConnection], None]
    ) -> Forwarded:
        """Pass a request on as it is, from any thread. What `opened` raises before a try ends it.

        Raises ModelError when the gateway does not work; other trouble is in what is returned.
        """
        began, token = monotonic(), self._token
        response = self._gateway.send(method, path, body, token, opened=opened)
        if response.status == UNKNOWN_TRIAL:
            with self._opening:
                if self._token == token:
                    self._open()
            response = self._gateway.send(method, path, body, self._token, opened=opened)
        return forwarded(response, seconds=monotonic() - began)

    def _open(self) -> None:
        self._token = self._gateway.post("/super/trials", self.trial)[1]["token"]

    def _post(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """A gateway that was started anew does not know the trial's token any more."""
        status, data = self._ask(body)
        if status == UNKNOWN_TRIAL:
            self._open()
            status, data = self._ask(body)
        return status, data

    def _ask(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        left = self._seconds_left()
        try:
            return self._gateway.post(
                "/v1/chat/completions", body, self._token, timeout=None if left == inf else max(left, 0.001)
            )
        except TimeoutError:
            raise BudgetSpentError("wall") from None


def forwarded(response: Response, seconds: float) -> Forwarded:
    if response.status != 200:
        error = json.loads(response.body)["error"]
        code, message = error["code"], error["message"]
        return Forwarded(response, seconds, trouble=code, message=message, error=error_of(error))
    return Forwarded(response, seconds, used=json.loads(response.headers.get(FACTS, "null")))


def completion_of(data: dict[str, Any], seconds: float) -> Completion:
    choice, facts = data["choices"][0], data["super"]
    return Completion(
        text=choice["message"].get("content") or "",
        tool_calls=choice["message"].get("tool_calls") or [],
        finish_reason=choice.get("finish_reason") or "stop",
        prompt_tokens=facts["prompt_tokens"],
        completion_tokens=facts["completion_tokens"],
        is_counted=facts["is_counted"],
        cost_usd=facts["cost_usd"],
        model=facts["model"],
        fingerprint=facts["fingerprint"],
        seconds=seconds,
    )


def error_of(error: dict[str, Any]) -> Exception:
    code, message = error["code"], error["message"]
    if code.startswith("budget_"):
        return BudgetSpentError(code.removeprefix("budget_"))
    if code == "context":
        return BudgetSpentError("context")
    if code == "filtered":
        return FilteredError(message)
    return ModelError(message, is_final=code == "fatal")
