"""Why pydantic refuses a value, in the words of YAML and JSON instead of those of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.tasks.fields import CATEGORY, COMMIT, NOT_BLANK, SHA256, TASK_ID
from pytest_super.words import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PATTERNS = {
    TASK_ID: "should have only letters, digits and . _ , - and begin with a letter or a digit",
    CATEGORY: "should have only small letters, digits and - _ and begin with a letter",
    COMMIT: "should be a full commit hash: 40 digits and small letters from a to f",
    SHA256: "should be a SHA-256 digest: 64 digits and small letters from a to f",
    NOT_BLANK: "should not be blank",
}

# What a value should be, by pydantic's type of error.
KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of fields",
    "finite_number": "a finite number",
}
# What is wrong with it otherwise, with the names of the error's context, and the `length` of the value.
SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "greater_than": "should be more than {gt:g}",
    "greater_than_equal": "should be at least {ge:g}",
    "less_than_equal": "should be at most {le:g}",
    "string_unicode": "has characters that are not text",
    "string_too_short": "should have at least {min_length} characters, not {length}",
    "string_too_long": "should have at most {max_length} characters, not {length}",
    "too_short": "should have at least {min_length} values, not {length}",
    "value_error": "{error}",
}


def reason(detail: ErrorDetails) -> str:
    """The predicate of a sentence about the value: `should be a number, not text`."""
    kind, value = detail["type"], detail["input"]
    if kind in KINDS:
        found = kind_of(value)
        # A number that should be another number, such as a whole one, is better shown.
        found = f"{value}" if found == "a number" and "number" in KINDS[kind] else found
        quote = ": quote it" if kind == "string_type" and not isinstance(value, dict | list | None) else ""
        return f"should be {KINDS[kind]}, not {found}{quote}"
    context = detail.get("ctx", {})
    if context.get("min_length") == 1:
        return "should not be empty"
    if kind in SENTENCES:
        return SENTENCES[kind].format(**context, length=len(value) if isinstance(value, str | list) else 0)
    if kind == "string_pattern_mismatch":
        form = PATTERNS.get(context["pattern"], "does not have the right form")
        return form if value else "should not be empty"
    if kind == "literal_error":
        # pydantic's list of the choices: 'a', 'b' or 'c'.
        names: str = context["expected"].replace("'", "")
        known = names.replace(" or ", ", ").split(", ")
        return f"should be {names}" + (did_you_mean(value, known) if isinstance(value, str) else "")
    # A kind of error that no field has today.
    return detail["msg"].removeprefix("Input ")


def kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "another kind of value")
