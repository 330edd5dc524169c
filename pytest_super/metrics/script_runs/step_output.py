"""The text that a step printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.metrics.matching.plain_text import without_escapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.store.trajectory import Step


def output_of(step: Step) -> str:
    # Published steps have no outputs, only the text that the agent was shown.
    texts = "".join(text for output in step.outputs for text in _texts(output)) or step.observation
    return without_escapes(texts).replace("\r\n", "\n").replace("\r", "\n") + "\n"


def _texts(output: dict[str, Any]) -> Iterator[str]:
    """The texts of one nbformat output. A stream continues the line on which the last one ended."""
    if "text" in output:
        yield "".join(output["text"])
    elif "traceback" in output:
        yield "\n".join(["", *output["traceback"], ""])
    elif "text/plain" in output.get("data", {}):
        yield "\n".join(["", "".join(output["data"]["text/plain"]), ""])
