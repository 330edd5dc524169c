"""The steps of a stored trajectory as far as they can be read, and what of them is not text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_super.report.page.stored import lines_of
from pytest_super.store.json_lines import UNREADABLE, escape_surrogates
from pytest_super.store.trajectory import Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import TypeAdapter


def readable_steps(run: Path, name: str, trouble: list[str]) -> list[Step]:
    """The steps in a file of the run, of the lines that can be read.

    `trouble` gets a text for each of the others.
    """
    found = []
    for number, line in enumerate(lines_of(run, name, trouble), 1):
        try:
            found.append(adapter().validate_python(escape_surrogates(json.loads(line))))
        except UNREADABLE:
            trouble.append(f"line {number} of {PurePath(name).name} is damaged or not complete")
    return found


@cache
def adapter() -> TypeAdapter[Step]:
    from pydantic import TypeAdapter

    return TypeAdapter(Step)


def other_outputs(step: Step) -> Iterator[tuple[str, str]]:
    """The outputs of a cell besides plain text: the kind of each, and its source if that is text.

    They are not rendered: pictures are only named, and HTML, SVG and JavaScript are shown as text.
    """
    for output in step.outputs:
        data = output.get("data")
        for kind, value in data.items() if isinstance(data, dict) else ():
            if kind == "text/plain":
                continue
            text = source_of(value)
            if kind.startswith("image/") and kind != "image/svg+xml":
                yield f"{kind}, {len(text):,} characters of Base64", ""
            else:
                yield kind, text


def source_of(value: Any) -> str:
    """The text of an entry of nbformat, which can be a list of lines or a JSON value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "".join(value)
    return json.dumps(value)
