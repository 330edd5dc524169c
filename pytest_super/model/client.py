"""A trial's model: asks the gateway. Workers import nothing else of models, which keeps them light."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import inf
from time import monotonic
from typing import Any

from pytest_super.model.completion import (
    BudgetSpentError,
    Completion,
    Failure,
    FilteredError,
    Message,
    ModelError,
    RunCostError,
    Usage,
)
from pytest_super.model.gateway_process import EVENTS, WAITS, Left, Line, Opened
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.route import Route
from pytest_super.model.relay import AnyGateway
from pytest_super.model.settings import CallingTrial


class Waiting:
    """The calls of one trial, made from any thread."""

    def __init__(self, seconds_left: Callable[[], float]) -> None:
        """`seconds_left` until the trial's limit of time, negative after it."""
        self.longest = 0.0
        """Seconds of the longest call that was answered, without its pauses."""
        self.paused = 0.0
        """Seconds for which the calls had paused until the last answer, by the gateway's clock."""
        self._seconds_left = seconds_left
        self._under_way: dict[object, float] = {}
        self._cut = 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Marks one call. An exception in the block means that no answer came."""
        key, began, paused = object(), monotonic(), self.paused
        self._under_way[key] = began
        try:
            yield
            self.longest = max(self.longest, monotonic() - began - (self.paused - paused))
        except BaseException:
            # A call that ended before the limit, because its client left, says nothing about the limit.
            if round(self._seconds_left(), 3) <= 0:
                self._cut = max(self._cut, self._waited(began))
            raise
        finally:
            del self._under_way[key]

    def at_limit(self) -> float:
        """Seconds for which the longest unanswered call had waited when the limit was reached; 0 for none."""
        return max([self._cut, *map(self._waited, list(self._under_way.values()))])

    def _waited(self, began: float) -> float:
        return max(0.0, monotonic() - began + min(0.0, self._seconds_left()))


# Seconds. All retries of a call take less; one that waits longer for the rate limit of others is given up.
LONGEST_CALL = 3600.0
# The time that the gateway can take to report a usage, beyond its own time-out.
REPORT_SECONDS = 10.0
# A call that has taken this many times as long as the trial's longest answer will probably get none.
PATIENCE = 2.0


def ignore(_: Any) -> None:
    """For what is told to nobody."""


class GatewayModel:
    """The run's model under one trial's limits, which the gateway enforces."""

    def __init__(
        self,
        gateway: AnyGateway,
        *,
        task: str,
        epoch: int,
        rerun: int,
        token_limit: Callable[[], int],
        cost_limit: float | None,
        is_open: bool = False,
        seconds_left: Callable[[], float] = lambda: inf,
        waits_for: Callable[[str], None] = ignore,
    ) -> None:
        """`token_limit` returns the prompt tokens allowed in total, `seconds_left` a call's time limit.

        `waits_for` is told what keeps an answer, and "" when one has arrived.
        """
        self._gateway = gateway
        self._seconds_left = seconds_left
        self._waiting = Waiting(seconds_left)
        self._waits_for = waits_for
        self._token_limit = token_limit
        self.trial = CallingTrial(
            name=f"{task}/{epoch}.{rerun}",
            task=task,
            epoch=epoch,
            token_limit=token_limit(),
            cost_limit=cost_limit,
            is_open=is_open,
        )
        self._has_asked = False
        self._downtime_before = gateway.downtime
        self.ends_at_wall_limit = True
        """Whether `complete` ends when no seconds are left."""

    @property
    def name(self) -> str:
        """The name is that of --super-model."""
        return self._gateway.settings.name

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """Raises BudgetSpentError, FilteredError, ModelError, and ValueError for a malformed request."""
        # A Completion is a whole answer, never a stream.
        parameters.pop("stream", None)
        request = {"messages": [dict(message) for message in messages], **parameters}
        answer = self.forward(COMMON.routes[0], json.dumps(request).encode(), is_program=False)
        if "error" in answer:
            raise error_of(answer["error"])
        return completion_from(answer)

    def forward(
        self,
        route: Route,
        body: bytes,
        opened: Opened = ignore,
        relay: Callable[[bytes], None] = ignore,
        headers: Mapping[str, str] | None = None,
        *,
        is_program: bool = True,
    ) -> dict[str, Any]:
        """Pass a program's request on as it is, from any thread, with those of its headers that matter.

        An exception that `opened` or `relay` raises ends the call. `relay` gets the events of a stream.

        Returns the `error`, or what a provider.Answer says of itself, with its `body` if it was no stream.
        Raises BudgetSpentError at the wall limit, and ModelError if the gateway gives no answer.
        """
        began = monotonic()
        call_left = countdown(LONGEST_CALL)

        def left() -> float:
            if (seconds := self._seconds_left()) <= 0:
                raise BudgetSpentError("wall")
            return min(seconds, call_left())

        def hear(line: Line) -> None:
            nonlocal call_left
            if EVENTS in line:
                call_left = countdown(LONGEST_CALL)
                relay(line[EVENTS].encode())
            else:
                self._waits_for(line[WAITS])

        request = {"route": asdict(route), "headers": dict(headers or {})}
        with self._waiting.call():
            answer = self._send(request, body, left, hear, opened, is_program=is_program)
            if "waited_seconds" in answer:
                self._waiting.paused = self._paused(answer["waited_seconds"])
        self._waits_for("")
        # A recorded answer took its time when it was recorded.
        return {**answer, "seconds": answer["seconds"] if answer.get("recorded") else monotonic() - began}

    def booked_usage(self, timeout: float) -> Usage | None:
        """What the ledger has booked for the trial once its calls have ended; None if nothing is known."""
        account = self._account(timeout)
        return None if account is None else Usage.from_data(account)

    def waited_seconds(self) -> float:
        """How long the trial's calls have waited until now, without the time of answers."""
        account = self._account(0.0)
        return self._paused(account["waited_seconds"] if account else 0.0)

    def _paused(self, by_the_gateway: float) -> float:
        return by_the_gateway + self._gateway.downtime - self._downtime_before

    def outage(self) -> str | None:
        """Why the provider, and not the agent, is to blame for the end of the trial at its wall limit.

        It is if a call was waiting then, and the provider had failed since its last answer or had taken much
        longer than for any answer. Pauses count in neither. None if it is not.
        """
        waited = self._waiting.at_limit()
        if not waited or (account := self._account(0.0)) is None:
            return None
        if account["failure"]:
            return str(account["failure"])
        waited -= self._paused(account["waited_seconds"]) - self._waiting.paused
        return f"{self.name}: no answer" if waited > PATIENCE * self._waiting.longest else None

    def _account(self, timeout: float) -> dict[str, Any] | None:
        # The question alone would start a gateway.
        if not self._has_asked:
            return None
        request: Line = {"route": None, "headers": {}, "timeout": timeout}
        try:
            account = self._send(request, b"", countdown(timeout + REPORT_SECONDS), ignore, ignore)
        except ModelError:
            return None
        return None if "error" in account else account

    def _send(self, request: Line, body: bytes, *how: Any, is_program: bool = False) -> dict[str, Any]:
        """The gateway's answer; `how` are parameters of Gateway.ask, whose exceptions are raised."""
        self._has_asked = True
        trial = replace(self.trial, token_limit=self._token_limit(), is_program=is_program)
        return self._gateway.ask({**request, "trial": asdict(trial)}, body, *how)


def countdown(seconds: float) -> Left:
    """A function that returns the seconds left of these, and then raises ModelError."""
    deadline = monotonic() + seconds

    def left() -> float:
        if (remaining := deadline - monotonic()) <= 0:
            raise ModelError(f"the model gateway gave no answer in {seconds:.0f} s")
        return remaining

    return left


def completion_from(answer: dict[str, Any]) -> Completion:
    """The answer as an agent gets it."""
    choice = answer["body"]["choices"][0]
    return Completion(
        # The content is null in an answer that consists of tool calls.
        text=choice["message"].get("content") or "",
        tool_calls=choice["message"].get("tool_calls") or [],
        finish_reason=choice.get("finish_reason") or "stop",
        # Not the body's own usage, which is that of the last attempt alone.
        usage=Usage.from_data(answer),
        model=answer["model"],
        seconds=answer["seconds"],
    )


def error_of(error: dict[str, str]) -> Exception:
    """The exception for an error in the gateway's JSON."""
    code, message = error["code"], error["message"]
    if code.startswith("budget_"):
        return BudgetSpentError(code.removeprefix("budget_"), error.get("why", ""))
    if code == "context":
        return BudgetSpentError("context")
    if code == "invalid_request":
        return ValueError(message)
    if code == "filtered":
        return FilteredError(message)
    if code == Failure.RUN_COST:
        return RunCostError(message)
    return ModelError(message, is_final=code == Failure.FATAL)
