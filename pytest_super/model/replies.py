"""What the gateway answers over HTTP, and how it reads what it is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pytest_super.model.answer import ModelCallError, Trouble
from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.launch import FACTS
from pytest_super.model.ledger import RunCostError
from pytest_super.model.streaming import events, wants_usage

if TYPE_CHECKING:
    from pytest_super.model.answer import Request

# HTTP clients repeat what is answered by 408, 409, 429 or 5xx, which would repeat what was done here.
STATUS = {
    Trouble.TRANSIENT: 424,
    Trouble.RATE_LIMITED: 424,
    Trouble.FATAL: 403,
    Trouble.CONTEXT: 400,
    Trouble.FILTERED: 400,
    Trouble.REFUSED: 400,
    Trouble.INVALID: 400,
}


class Refusal(Exception):
    """What is answered instead of a completion."""

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
        return Refusal(403, Trouble.FATAL, f"{error}: raise --super-max-cost to go on")
    return Refusal(STATUS[error.trouble], error.trouble, error.message)


def response_to(asked: Request, body: dict[str, Any], facts: dict[str, Any]) -> web.Response:
    headers = {FACTS: json.dumps(facts)}
    if not asked.get("stream"):
        return web.json_response(body, headers=headers)
    text = "".join(events(body, usage=wants_usage(asked)))
    return web.Response(text=text, content_type="text/event-stream", headers=headers)


async def read_request(http: web.Request) -> Request:
    try:
        asked = await http.json()
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
        raise Refusal(400, Trouble.INVALID, "the body must be a JSON object with a list of messages")
    return asked
