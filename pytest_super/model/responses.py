"""The gateway's HTTP responses, and how it reads requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_super.model.api import FACTS
from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.ledger import RunCostError
from pytest_super.model.streaming import events, wants_usage

if TYPE_CHECKING:
    from pytest_super.model.answer import Answer, Request

# HTTP clients retry 408, 409, 429 and 5xx, which would multiply the gateway's own retries.
STATUS = {Failure.TRANSIENT: 424, Failure.RATE_LIMITED: 424, Failure.UNCLEAR: 424, Failure.FATAL: 403}


class Refusal(Exception):
    """The gateway's answer instead of a completion."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def response(self) -> web.Response:
        error = {"message": str(self), "type": "pytest_super", "code": self.code}
        return web.json_response({"error": error}, status=self.status)


def refusal_of(error: BudgetSpentError | RunCostError | ModelCallError) -> Refusal:
    if isinstance(error, BudgetSpentError):
        return Refusal(403, f"budget_{error.limit}", f"the trial's {error.limit} budget is spent")
    if isinstance(error, RunCostError):
        return Refusal(403, Failure.FATAL, f"{error}: raise --super-max-cost to go on")
    return Refusal(STATUS.get(error.failure, 400), error.failure, error.message)


def response_to(asked: Request, answer: Answer) -> web.Response:
    """The answer in the form that the request wants: one JSON object, or a stream of events."""
    headers = {FACTS: json.dumps(answer.facts())}
    if not asked.get("stream"):
        return web.json_response(answer.body, headers=headers)
    text = "".join(events(answer.body, usage=wants_usage(asked)))
    return web.Response(text=text, content_type="text/event-stream", headers=headers)


async def read_request(http: web.Request) -> Request:
    """Raises Refusal."""
    try:
        asked = await http.json()
    except (ValueError, RecursionError):
        # RecursionError: a sandbox can send JSON that is nested without end.
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
        raise Refusal(400, Failure.INVALID, "the body must be a JSON object with a list of messages")
    return asked
