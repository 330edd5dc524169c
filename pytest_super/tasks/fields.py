"""The types of a task file's fields: sizes, regexes, relative paths and task ids, each with its check."""

import re
import warnings
from math import prod
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

TASK_ID = r"^[A-Za-z0-9][A-Za-z0-9_.,-]*$"
CATEGORY = r"^[a-z][a-z0-9_-]*$"
COMMIT = r"^[0-9a-f]{40}$"
SHA256 = r"^[0-9a-f]{64}$"
NOT_BLANK = r"\S"
SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# Pieces of a pattern, each of which takes up to a kilobyte of memory when it is compiled.
MOST_WRITTEN_OUT = 100_000
# Most landmarks have none of these. Compiling them would take a large part of the time to load a task.
SPECIAL = frozenset(".^$*+?{}[]|()\\")
PIECE = re.compile(
    r"\\N\{[^}]*\}|\\x..|\\u.{4}|\\U.{8}|\\\d{1,3}|\\."  # an escape
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set
    r"|\(\?#[^)]*\)|\{\d*,?\d*\}|.",  # a comment, a quantifier, or one character
    re.DOTALL,
)
COMMENT = "(?#"
_LEAST = re.compile(r"\{\s*(\d+)")
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")


def legal_id(text: str) -> str:
    """The text as a valid task id, with `-` for other characters; "" if nothing is left."""
    if re.fullmatch(TASK_ID, text):
        return text
    return re.sub(r"[^A-Za-z0-9_.,-]+", "-", text).lstrip("_.,-")


def parse_size(value: object) -> int:
    """Bytes of a size such as `512m`, `4g` or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    # No more digits than any size has, because a number of hundreds of digits is infinite as a float.
    if isinstance(value, str) and (
        match := re.fullmatch(r"(\d{1,99}(?:\.\d+)?)([kmgt]?)b?", value.strip().lower())
    ):
        return int(float(match[1]) * SIZE_UNITS[match[2]])
    raise ValueError("is not a size: write it as 512m or 4g")


def check_regex(pattern: str) -> str:
    if SPECIAL.isdisjoint(pattern):
        return pattern
    try:
        with warnings.catch_warnings():
            # A project can turn the warning about a set such as `[[:x:]]` into an error.
            warnings.simplefilter("ignore")
            re.compile(pattern)
    # `re` raises the last two for a repetition number that is too large, and for nesting that is too deep.
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    if "{" in pattern and written_out(pattern) > max(MOST_WRITTEN_OUT, len(pattern)):
        raise ValueError(f"repeats more than {MOST_WRITTEN_OUT:,} characters by its counts, which multiply")
    return pattern


def written_out(pattern: str) -> int:
    """Count the least pieces of a pattern with repetitions written out, as `regex` compiles it."""
    if _VERBOSE.search(pattern):
        # Blanks and comments hide what belongs together: all counts multiply.
        return len(pattern) * prod(max(int(count), 1) for count in _LEAST.findall(pattern))
    last, groups = 0, [0]
    for piece in PIECE.findall(pattern):
        if piece == "(":
            groups.append(0)
        elif count := _LEAST.match(piece):
            more = last * max(int(count[1]) - 1, 0)
            last += more
            groups[-1] += more
        elif not piece.startswith(COMMENT):
            last = groups.pop() if piece == ")" else 1
            groups[-1] += last
    return groups[0]


def check_variables(variables: dict[str, str]) -> dict[str, str]:
    """Environment variables that a system can pass to a program."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"has the variable {name!r}, which no program can be given")
    return variables


def check_package(text: str) -> str:
    # Not at the top: most tasks name no package.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement:
        raise ValueError("is not a package as pip names it, such as numpy or numpy==2.2.6") from None
    return text


def check_relative(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise ValueError("must be a relative path that stays in its folder")
    return path


Size = Annotated[int, BeforeValidator(parse_size, json_schema_input_type=int | str)]
Regex = Annotated[str, AfterValidator(check_regex)]
Variables = Annotated[dict[str, str], AfterValidator(check_variables)]
Package = Annotated[str, AfterValidator(check_package)]
RelativePath = Annotated[str, AfterValidator(check_relative)]
Text = Annotated[str, Field(min_length=1, pattern=NOT_BLANK)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FieldModel(BaseModel):
    """The base of a task file's mappings: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @staticmethod
    def one_of(*names: str) -> Any:
        """A validator: exactly one of these fields is given."""

        def check(model: Any) -> Any:
            if sum(getattr(model, name) is not None for name in names) != 1:
                raise ValueError(f"needs exactly one of {', '.join(names)}")
            return model

        return model_validator(mode="after")(check)
