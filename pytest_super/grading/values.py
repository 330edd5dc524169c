"""The values that a grader's command yields, each next to what it should be.

What the agent wrote is run by the command, so nothing that is read here is known to be well-formed.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_super.grading.junit import PASSED, NotJunitError, testcases
from pytest_super.metrics.difference import brief, clipped, value_at
from pytest_super.metrics.evidence import GradedValue
from pytest_super.metrics.leaves import leaves, shown
from pytest_super.metrics.matching.patterns import compile_pattern
from pytest_super.metrics.numbers import exact, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_super.tasks.grade import Check, RegexValue

    Read = Callable[[str], bytes]
    """Reads a file of the grader's sandbox. Raises OSError."""

# Of a JSON file, each of which takes up to 100 bytes of memory.
MOST_VALUES = 500_000
# Values beyond the expected ones, each of which is wrong.
MOST_EXTRA = 10
REGEX_SECONDS = 10.0


class NoValue(Exception):
    """There is no value to compare; the text says why."""


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """How the grader's command ended."""

    exit_code: int | None = None
    output: str = ""
    problem: str = ""
    """Why it did not end by itself; then none of its values is right."""


def values_of(check: Check, run: CommandRun, read: Read) -> list[GradedValue]:
    """The values of one check, at least one."""
    try:
        if run.problem:
            raise NoValue(run.problem)
        return list(READERS[check.source](check, run, read))
    except NoValue as error:
        return [GradedValue(name=name_of(check), score=0.0, why=str(error))]


def name_of(check: Check) -> str:
    if check.name:
        return check.name
    if check.json_ is not None:
        return f"{check.json_.file}{check.json_.pointer}"
    if check.regex is not None:
        return clipped(check.regex.pattern)
    return "exit code" if check.source == "exit" else str(getattr(check, check.source))


def exit_value(check: Check, run: CommandRun, _read: Read) -> Iterator[GradedValue]:
    is_right = run.exit_code == check.exit
    yield GradedValue(
        name=name_of(check), score=float(is_right), found=str(run.exit_code), expected=str(check.exit)
    )


def junit_values(check: Check, _run: CommandRun, read: Read) -> Iterator[GradedValue]:
    """One for each testcase. A skipped test is not right: the code under test can skip it."""
    path = str(check.junit)
    try:
        cases = testcases(bytes_of(path, read))
    except NotJunitError as error:
        raise NoValue(f"{path} {error}") from None
    for case in cases:
        name = ".".join(filter(None, (check.name, case.name)))
        is_right = case.outcome == PASSED
        yield GradedValue(name=clipped(name), score=float(is_right), found=case.outcome, expected=PASSED)


def json_values(check: Check, _run: CommandRun, read: Read) -> Iterator[GradedValue]:
    assert check.json_ is not None
    path, pointer = check.json_.file, check.json_.pointer
    data = bytes_of(path, read)
    if sum(map(data.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise NoValue(f"{path} has more than {MOST_VALUES:,} values")
    try:
        value = json.loads(data)
        yield from compared(check, resolve(value, pointer))
    except ValueError as error:
        raise NoValue(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise NoValue(f"{path} is nested too deeply") from None


def regex_values(check: Check, run: CommandRun, read: Read) -> Iterator[GradedValue]:
    assert check.regex is not None
    path = check.regex.file
    text = run.output if path is None else bytes_of(path, read).decode("utf-8", "replace")
    found = last_match(check.regex, text, path or "what the command printed")
    yield from compared(check, found if isinstance(check.expected, str) else number_in(found))


def number_values(check: Check, _run: CommandRun, read: Read) -> Iterator[GradedValue]:
    yield from compared(check, number_in(bytes_of(str(check.number), read).decode("utf-8", "replace")))


READERS: dict[str, Callable[[Check, CommandRun, Read], Iterator[GradedValue]]] = {
    "exit": exit_value,
    "junit": junit_values,
    "json": json_values,
    "regex": regex_values,
    "number": number_values,
}


def bytes_of(path: str, read: Read) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise NoValue(f"{path} cannot be read: {error.strerror or error}") from None


def resolve(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901). Raises NoValue."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NoValue(f"there is nothing at {pointer}")
    return value


def last_match(wanted: RegexValue, text: str, where: str) -> str:
    """The group of the last match. Raises NoValue."""
    pattern, is_limited = compile_pattern(wanted.pattern)
    limit = {"timeout": REGEX_SECONDS} if is_limited else {}
    try:
        found = next(iter(deque(pattern.finditer(text, **limit), maxlen=1)), None)
    except TimeoutError:
        raise NoValue(f"the search in {where} took more than {REGEX_SECONDS:.0f} s") from None
    if found is None or found[wanted.group] is None:
        raise NoValue(f"{where} has no match")
    return str(found[wanted.group])


def number_in(text: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise NoValue(f"{clipped(text)!r} is not a number") from None


def compared(check: Check, found: Any) -> Iterator[GradedValue]:
    """The value next to what it should be; for an expected list or mapping, each value in it."""
    name = name_of(check)
    if check.has_expected:
        yield from against_expected(check, name, found)
    elif check.interval is not None:
        low, high = check.interval
        is_inside = is_number(found) and low <= found <= high
        yield graded(name, is_inside, found, f"{low:g} to {high:g}")
    elif not (is_number(found) and 0 <= found <= 1):
        raise NoValue(f"{brief(found)} is not a number from 0 to 1")
    else:
        yield GradedValue(name=name, score=float(found), found=brief(found))


def against_expected(check: Check, name: str, found: Any) -> Iterator[GradedValue]:
    places = set()
    for place, wanted in leaves(check.expected):
        places.add(place)
        value = value_at(found, place)
        yield graded(place_name(name, place), is_right(value, wanted, check), value, brief(wanted))
    extra = ((place, value) for place, value in leaves(found) if place not in places)
    for place, value in islice(extra, MOST_EXTRA):
        yield graded(place_name(name, place), False, value, "nothing")


def graded(name: str, is_right: bool, found: Any, expected: str) -> GradedValue:
    return GradedValue(name=name, score=float(is_right), found=brief(found), expected=expected)


def place_name(name: str, place: tuple[str | int, ...]) -> str:
    return clipped(f"{name} {shown(place)}" if place else name)


def is_right(found: Any, wanted: Any, check: Check) -> bool:
    """Numbers within `max(rel * |wanted|, abs)`, texts without surrounding blanks, others only if equal."""
    if is_number(wanted):
        return is_number(found) and is_near(found, wanted, check)
    if isinstance(wanted, str):
        return isinstance(found, str) and found.strip() == wanted.strip()
    return type(found) is type(wanted) and bool(found == wanted)


def is_near(found: float, wanted: float, check: Check) -> bool:
    allowed = max(exact(check.rel) * abs(exact(wanted)), exact(check.abs))
    return abs(exact(found) - exact(wanted)) <= allowed
