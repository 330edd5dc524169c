"""A trial's model: how long a call may last."""

from __future__ import annotations

import json
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.model.api import FACTS
from pytest_super.model.client import GatewayModel
from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.unix_http import HttpResponse
from pytest_super.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

ASK = [{"role": "user", "content": "go on"}]
USED = {"prompt_tokens": 1, "completion_tokens": 1, "is_counted": True, "cost_usd": None, "model": "m"}


class SlowGateway:
    """Takes `start` seconds to let a trial in, and `starts` times forgets that it has."""

    def __init__(self, clock: FakeClock, *, start: float, starts: int = 1) -> None:
        self.clock, self.start, self.starts = clock, start, starts
        self.timeouts: list[float | None] = []

    def open_trial(self, _trial: dict[str, Any]) -> str:
        self.clock.sleep(self.start)
        self.starts -= 1
        return "token"

    def send(self, *_: Any, timeout: float | None = None) -> HttpResponse:
        self.timeouts.append(timeout)
        return response(200 if self.starts == 0 else 401)


def response(status: int) -> HttpResponse:
    headers = HTTPMessage()
    headers[FACTS] = json.dumps({**USED, "fingerprint": None})
    body = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    return HttpResponse(status=status, headers=headers, body=json.dumps(body).encode())


def model_of(gateway: SlowGateway, seconds_left: Callable[[], float]) -> GatewayModel:
    return GatewayModel(
        gateway,  # type: ignore[arg-type]
        task="t",
        epoch=1,
        rerun=0,
        token_limit=lambda: 100,
        cost_limit=None,
        seconds_left=seconds_left,
    )


@pytest.mark.parametrize(("starts", "timeouts"), [(1, [7.0]), (2, [7.0, 4.0])])
def test_a_call_may_last_as_long_as_is_left_when_it_is_sent(starts: int, timeouts: list[float]) -> None:
    clock = FakeClock()
    gateway = SlowGateway(clock, start=3.0, starts=starts)
    assert model_of(gateway, lambda: 10.0 - clock()).complete(ASK).text == "yes"
    assert gateway.timeouts == timeouts


def test_a_call_for_which_nothing_is_left_is_not_sent() -> None:
    clock = FakeClock()
    gateway = SlowGateway(clock, start=3.0)
    with pytest.raises(BudgetSpentError, match="wall"):
        model_of(gateway, lambda: 2.0 - clock()).complete(ASK)
    assert gateway.timeouts == []
