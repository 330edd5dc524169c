"""A trial's model: asks the gateway. Workers import nothing else of models, which keeps them light."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.model.api import TRIAL, USAGE, CallingTrial
from pytest_super.model.completion import (
    BudgetSpentError,
    Completion,
    FilteredError,
    ModelError,
    RunCostError,
    Usage,
)
from pytest_super.model.failures import Failure
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.stream_reader import StreamReader, body_and_facts
from pytest_super.model.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_super.model.completion import Message
    from pytest_super.model.gateway_process import Gateway
    from pytest_super.model.protocols.route import Route
    from pytest_super.model.unix_http import HttpResponse, UnixConnection

# Seconds. All retries of a call take less; one that waits longer for the rate limit of others is given up.
LONGEST_CALL = 3600.0
# The time that the gateway can take to report a usage, beyond its own time-out.
REPORT_SECONDS = 10.0
# A call that has taken this many times as long as the trial's longest answer will probably get none.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The gateway's answer to a request that was passed on unread."""

    body: bytes
    """Of a stream: empty."""
    facts: dict[str, Any]
    """The `error`, or what a provider.Answer says of itself."""
    seconds: float

    @property
    def error(self) -> dict[str, str] | None:
        """Its `code` and its `message`; None if the model answered."""
        return self.facts.get("error")

    @property
    def usage(self) -> Usage:
        """Of an answer."""
        return Usage.from_data(self.facts)


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
        is_open: bool = False,
        seconds_left: Callable[[], float] = lambda: inf,
        waits_for: Callable[[str], None] = lambda _: None,
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
        self._downtime_before = gateway.downtime.seconds
        self.ends_at_wall_limit = True
        """`complete` ends when no `seconds_left`."""

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
        with self._waiting.call():
            response = self._send_in_time(COMMON.routes[0].path, json.dumps(request).encode())
            answer, facts = self._read(response)
        if "error" in facts:
            raise error_of(facts["error"])
        return completion_from(json.loads(answer), facts, seconds=monotonic() - began)

    def forward(
        self,
        route: Route,
        body: bytes,
        opened: Callable[[UnixConnection], None],
        relay: Callable[[bytes], None],
        headers: Mapping[str, str] | None = None,
    ) -> Forwarded:
        """Pass a program's request on as it is, from any thread, with those of its headers that matter.

        An exception that `opened` or `relay` raises ends the call. `relay` gets the events of a stream.

        Raises BudgetSpentError at the wall limit, and ModelError if the gateway gives no answer; other
        failures are in the result.
        """
        began = monotonic()
        reader = StreamReader(relay, self._seconds_left)
        with self._waiting.call():
            response = self._send_in_time(
                place_of(route), body, headers=headers, is_program=True, opened=opened, read=reader.read
            )
            answer, facts = self._read(response)
        return Forwarded(answer, facts, monotonic() - began)

    def count_tokens(self, route: Route, body: bytes, headers: Mapping[str, str]) -> bytes | None:
        """The gateway's answer to a request for a number of tokens; None if it is wrong."""
        response = self._send_in_time(place_of(route), body, headers=headers)
        return response.body if response.status == 200 else None

    def _read(self, response: HttpResponse) -> tuple[bytes, dict[str, Any]]:
        """The body of an answer and its facts, or its `error`. Called in the call whose pauses they state."""
        answer, facts = body_and_facts(response)
        if "waited_seconds" in facts:
            self._waiting.paused = self._paused(facts["waited_seconds"])
        return answer, facts

    def booked_usage(self, timeout: float) -> Usage | None:
        """What the trial has used by the gateway's ledger, which includes calls whose client has left.

        Waits up to `timeout` seconds for calls under way. None if no call was made or the gateway is dead.
        """
        account = self._account(timeout)
        return None if account is None else Usage.from_data(account)

    def waited_seconds(self) -> float:
        """How long the trial's calls have waited until now, without the time of answers."""
        account = self._account(0.0)
        return self._paused(account["waited_seconds"] if account else 0.0)

    def _paused(self, by_the_gateway: float) -> float:
        return by_the_gateway + self._gateway.downtime.seconds - self._downtime_before

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
        body = json.dumps({"timeout": timeout}).encode()
        try:
            response = self._send("POST", USAGE, body, seconds_left=countdown(timeout + REPORT_SECONDS))
        except (ModelError, TimeoutError):
            return None
        return json.loads(response.body) if response.status == 200 else None

    def _send(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        is_program: bool = False,
        **how: Any,
    ) -> HttpResponse:
        """The gateway's answer; `how` are parameters of Gateway.send. Raises ModelError, TimeoutError."""
        self._has_asked = True
        trial = replace(self.trial, token_limit=self._token_limit(), is_program=is_program)
        given = {**(headers or {}), TRIAL: json.dumps(asdict(trial))}
        return self._gateway.send(method, path, body, given, **how)

    def _send_in_time(self, path: str, body: bytes, **how: Any) -> HttpResponse:
        call_left = countdown(LONGEST_CALL)
        how["seconds_left"] = lambda: min(self._seconds_left(), call_left())
        try:
            response = self._send("POST", path, body, waits_for=self._waits_for, **how)
        except TimeoutError:
            # Then the time-out was the trial's own limit.
            if call_left() > 0:
                raise BudgetSpentError("wall") from None
            raise ModelError(f"the model gateway gave no answer in {LONGEST_CALL:.0f} s") from None
        self._waits_for("")
        return response


def place_of(route: Route) -> str:
    # No request chooses its model.
    return route.path.format(model="-")


def countdown(seconds: float) -> Callable[[], float]:
    """A function that returns the seconds left of these."""
    deadline = monotonic() + seconds
    return lambda: deadline - monotonic()


def completion_from(body: dict[str, Any], facts: dict[str, Any], *, seconds: float) -> Completion:
    """The answer as an agent gets it, from the body and the facts of a provider.Answer."""
    choice = body["choices"][0]
    return Completion(
        # The content is null in an answer that consists of tool calls.
        text=choice["message"].get("content") or "",
        tool_calls=choice["message"].get("tool_calls") or [],
        finish_reason=choice.get("finish_reason") or "stop",
        # Not the body's own usage, which is that of the last attempt alone.
        usage=Usage.from_data(facts),
        model=facts["model"],
        seconds=seconds,
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
