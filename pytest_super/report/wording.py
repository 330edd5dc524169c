"""Words for how a trial went."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.results import TrialResult

# C0 and C1 but for tab and newline, changes of direction, and what no encoding takes.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Text that cannot move the cursor or break an encoding, whatever a sandbox or a model wrote into it."""
    return CONTROL.sub("?", text)


def describe(result: TrialResult) -> str:
    """Why a trial is not solved, in one line, and where its trajectory lies."""
    parts = [
        f"accuracy {result.accuracy:.3g}" if result.accuracy is not None else "",
        f"landmarks {result.landmarks:.3g}" if result.landmarks is not None else "",
        f"script_executed {result.script_executed:g}" if result.script_executed is not None else "",
    ]
    figures = ", ".join(part for part in parts if part)
    text = "; ".join(filter(None, (figures, STOPS.get(result.stop_reason, result.stop_reason))))
    if result.agent_error:
        text += f" ({result.agent_error.strip().splitlines()[-1]})"
    return printable(f"{text}; {result.folder}/trajectory.jsonl")


STOPS = {
    "submitted": "submitted",
    "returned": "the agent ended without a submission",
    "agent_error": "the agent raised",
    "sandbox_lost": "the sandbox was lost",
    "timeout": "stopped by pytest-timeout",
    "context": "the prompt was longer than the model's window",
} | {name: f"the {name} budget was spent" for name in ("compute", "wall", "tokens", "cost", "steps")}
