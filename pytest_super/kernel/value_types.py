"""The types of values that a sandbox sends: each returns a value within its bounds, or raises Misfit."""

import json
import math
from collections.abc import Callable
from typing import Any

from pytest_super.kernel.inside.message_size import has_more_values
from pytest_super.words import printable_line

Type = Callable[[Any], Any]

# Values of one JSON text. The worst, empty objects, take 24 times as much memory as text.
MOST_VALUES = 2**19
# Nesting levels of displayed data. Readers of the results, such as `json`, recurse once per level.
DEPTH = 100
# Characters of a display's id, a type name or a MIME type. IPython's own display ids have 32.
LONGEST_NAME = 200
MOST_MIME_TYPES = 50
LONGEST_METADATA = 4096
# Times of files and processes are seconds since 1970. Some file systems have times before that.
LATEST = 2.0**33


class Misfit(ValueError):
    """A value is not of the expected type or exceeds its bounds. The text contains nothing of it."""


def read_json(data: bytes, most: int = MOST_VALUES) -> Any:
    """The JSON value. NaN, which is not JSON but which some kernels send, becomes null. Raises Misfit."""
    if len(data) > most and has_more_values(data, most):
        raise Misfit("too many values")
    try:
        # As jupyter_client: file names that are not UTF-8 arrive as such bytes.
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise Misfit("not JSON") from None


# Texts


def text(most: int, *, is_clipped: bool = False) -> Type:
    """A text that UTF-8 can encode. A longer one does not fit, or is clipped."""

    def fit(value: Any) -> str:
        return replace_surrogates(bounded(value, most, is_clipped))

    return fit


def line(most: int) -> Type:
    """A text for messages: clipped, on one line, without control characters."""
    return lambda value: printable_line(bounded(value, most, is_clipped=True))


def name(most: int) -> Type:
    """The name of a file. Surrogates represent bytes that are not UTF-8, as Python's own functions do it."""
    return lambda value: bounded(value, most)


def inner_path(most: int) -> Type:
    """The path of a file below a folder, relative to the folder; "" for the folder itself."""

    def fit(value: Any) -> str:
        path = bounded(value, most)
        if path.startswith("/") or "\0" in path or ".." in path.split("/"):
            raise Misfit("not a path below its folder")
        return path

    return fit


def bounded(value: Any, most: int, is_clipped: bool = False) -> str:
    if not isinstance(value, str):
        raise Misfit("not text")
    if len(value) > most and not is_clipped:
        raise Misfit("too long")
    return value[:most]


def replace_surrogates(value: str) -> str:
    try:
        if not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return value


# Numbers and choices


def fitting(is_fitting: Callable[[Any], bool], otherwise: str) -> Type:
    """A value as it is, if it fits. `otherwise` says what it is not."""

    def fit(value: Any) -> Any:
        if not is_fitting(value):
            raise Misfit(otherwise)
        return value

    return fit


def whole(most: int = 2**63, least: int = 0) -> Type:
    """A whole number."""
    why = "not a whole number in its bounds"
    return fitting(lambda value: type(value) is int and least <= value <= most, why)


def number(most: float, least: float = 0.0) -> Type:
    """A finite number."""

    def fit(value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
            raise Misfit("not a number in its bounds")
        return float(value)

    return fit


flag = fitting(lambda value: isinstance(value, bool), "neither true nor false")


def one_of(*known: str) -> Type:
    """One of these texts."""
    return fitting(lambda value: isinstance(value, str) and value in known, f"none of {', '.join(known)}")


# Compounds


def optional(inner: Type) -> Type:
    return lambda value: None if value is None else inner(value)


def listed(inner: Type, most: int) -> Type:
    def fit(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise Misfit("not a list in its bounds")
        return [inner(item) for item in value]

    return fit


def pair(first: Type, second: Type) -> Type:
    def fit(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise Misfit("not a pair")
        return first(value[0]), second(value[1])

    return fit


def mapping(key: Type, inner: Type, most: int) -> Type:
    def fit(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > most:
            raise Misfit("not an object in its bounds")
        return {key(each): inner(item) for each, item in value.items()}

    return fit


def record(**fields: Type) -> Type:
    """An object with these fields. A missing one is None; unknown ones are left out."""

    def fit(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit("not an object")
        return {field: fit_field(field, inner, value.get(field)) for field, inner in fields.items()}

    return fit


def variant(field: str, kinds: dict[str, Type]) -> Type:
    """An object of a kind that this field names."""
    kind_of = record(**{field: one_of(*kinds)})
    return lambda value: kinds[kind_of(value)[field]](value)


def fit_field(field: str, inner: Type, value: Any) -> Any:
    try:
        return inner(value)
    except Misfit as misfit:
        raise Misfit(f"its {field} is {misfit}") from None


# Displays


def json_value(value: Any, depth: int = DEPTH) -> Any:
    """Any JSON value: numbers that are not finite become null, as JSON has none."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (dict, list)) and not depth:
        raise Misfit("nested too deeply")
    if isinstance(value, dict):
        return {replace_surrogates(key): json_value(child, depth - 1) for key, child in value.items()}
    if isinstance(value, list):
        return [json_value(child, depth - 1) for child in value]
    return value


def bundle(value: Any) -> dict[str, Any]:
    """The data of a display, by MIME type: texts, or lists of lines; of JSON types, any value."""
    if (
        not isinstance(value, dict)
        or len(value) > MOST_MIME_TYPES
        or max(map(len, value), default=0) > LONGEST_NAME
    ):
        raise Misfit("not a bundle of MIME types in its bounds")
    return {
        replace_surrogates(mime): fit_field(
            printable_line(mime), json_value if mime.endswith("json") else lines, data
        )
        for mime, data in value.items()
    }


def lines(value: Any) -> str:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise Misfit("not text")
    return replace_surrogates("".join(parts))


def metadata(value: Any) -> dict[str, Any]:
    """An object whose JSON text has at most LONGEST_METADATA characters."""
    if not isinstance(value, dict):
        raise Misfit("not an object")
    fitting: dict[str, Any] = json_value(value)
    if len(json.dumps(fitting)) > LONGEST_METADATA:
        raise Misfit("too long")
    return fitting
