"""What is told of a call, in the books and in a header of its answer, whose body is the provider's alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_super.store.trajectory import now

if TYPE_CHECKING:
    from pytest_super.model.answer import Answer
    from pytest_super.model.completion import Used

# Of what a provider calls itself. A header's line must stay far below 64 KiB, escapes included.
LONGEST_NAME = 200


def facts_of_nothing(used: Used) -> dict[str, Any]:
    """Of an answer that could not be taken."""
    return {"started": now(), **asdict(used)}


def call_facts(answer: Answer, started: str, seconds: float) -> dict[str, Any]:
    return {
        "started": started,
        "seconds": round(seconds, 3),
        **asdict(answer.used),
        "is_counted": answer.is_counted,
        "model": answer.model[:LONGEST_NAME],
        "fingerprint": answer.fingerprint and str(answer.fingerprint)[:LONGEST_NAME],
        "attempts": answer.attempts,
    }
