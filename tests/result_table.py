"""The table of a result's fields in docs/reference/results.md, made of their declarations.

`python -m tests.result_table` writes it anew.
"""

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path

from pytest_super.store.field_declarations import Field
from pytest_super.store.results import TrialResult, stored_fields

PAGE = Path(__file__).parents[1] / "docs/reference/results.md"
HEAD = "| field | type | meaning | shown in |\n|---|---|---|---|\n"
KINDS = {
    str: "text", int: "integer", float: "number", bool: "boolean", list: "list", dict: "object",
}  # fmt: skip


def table() -> str:
    texts = texts_of(inspect.getsource(TrialResult))
    return HEAD + "".join(f"| {' | '.join(row_of(one, texts[one.name]))} |\n" for one in stored_fields())


def texts_of(source: str) -> dict[str, str]:
    """The docstring of each field of a class."""
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    return {
        ast.unparse(field.target): " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
    }


def row_of(field: Field, text: str) -> list[str]:
    unit = f", {field.unit.name}" if field.unit else ""
    null = " or `null`" if field.is_optional else ""
    places = {"page": field.page, "notebook": field.notebook, "JUnit XML": field.junit}
    shown = [] if all(places.values()) else [place for place, is_shown in places.items() if is_shown] or ["-"]
    if field.column:
        shown.insert(0, f"column `{field.column}`")
    if field.total:
        shown.insert(0, "totals")
    return [f"`{field.name}`", f"{KINDS[field.kind]}{unit}{null}", text, ", ".join(shown)]


def with_table(page: str) -> str:
    """The page with the table as it should be."""
    return re.sub(rf"{re.escape(HEAD)}(\|.*\n)*", lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
