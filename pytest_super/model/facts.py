"""What is told of a call, in the books and in a header of its answer, whose body is the provider's alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.answer import texts
from pytest_super.trajectory import now

if TYPE_CHECKING:
    from pytest_super.model.answer import Answer, Request

# Of what a provider calls itself. A header's line must stay far below 64 KiB, escapes included.
LONGEST_NAME = 200


def count_characters(request: Request) -> int:
    """Of what is text; an image in a data: URL is none."""
    said = texts([request["messages"], request.get("tools")])
    return sum(len(text) for text in said if not text.startswith("data:"))


def facts_of_nothing(wasted: list[int]) -> dict[str, Any]:
    """What was used by answers that could not be taken."""
    prompt, completion = wasted
    return {"started": now(), "prompt_tokens": prompt, "completion_tokens": completion, "cost_usd": None}


def call_facts(answer: Answer, started: str, seconds: float) -> dict[str, Any]:
    return {
        "started": started,
        "seconds": round(seconds, 3),
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "is_counted": answer.is_counted,
        "cost_usd": answer.cost_usd,
        "model": answer.model[:LONGEST_NAME],
        "fingerprint": answer.fingerprint and str(answer.fingerprint)[:LONGEST_NAME],
        "attempts": answer.attempts,
    }
