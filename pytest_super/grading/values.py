"""The values that a grader's command yields, each next to what it should be.

What the agent wrote is run by the command, so nothing that is read here is known to be well-formed.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from operator import itemgetter
from typing import Any

from pytest_super.grading.junit import ERROR, PASSED, NotJunitError, testcases
from pytest_super.metrics.evidence import GradedValue
from pytest_super.metrics.graded import NoValue, compared, name_of
from pytest_super.metrics.leaves import short
from pytest_super.metrics.matching.patterns import compile_pattern
from pytest_super.tasks.grade import Check, GradedCommand, RegexValue

Read = Callable[[str], bytes]
"""Reads a file of the grader's sandbox. Raises OSError."""

# Of a JSON file, each of which takes up to 100 bytes of memory.
MOST_VALUES = 500_000
REGEX_SECONDS = 10.0
# That a message names in place of one that is missing.
MOST_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """How the grader's command ended."""

    exit_code: int | None = None
    output: str = ""
    problem: str = ""
    """Why it did not end by itself; then none of its values is right."""
    last_lines: str = ""
    """The end of its output."""


def values_of(command: GradedCommand, run: CommandRun, read: Read) -> list[GradedValue]:
    """The values of a command, at least one for each of its checks.

    The first one that only the command's end explains has its exit code and the end of its output.
    """
    values: list[GradedValue] = []
    end: dict[str, Any] = {"exit_code": run.exit_code, "printed": run.last_lines}
    for check in command.checks:
        for value in values_of_check(check, run, read):
            told = end if is_unexplained(check, value, run) else {}
            end = {} if told else end
            values.append(replace(value, command=command.label, **told))
    return values


def is_unexplained(check: Check, value: GradedValue, run: CommandRun) -> bool:
    """Whether only the end of the command explains the value: it is missing, or the command failed."""
    # A test that is wrong makes its command fail in any case.
    has_failed = bool(run.exit_code) and check.source != "junit"
    return value.score < 1 and (
        bool(value.why) or value.found == ERROR or check.source == "exit" or has_failed
    )


def values_of_check(check: Check, run: CommandRun, read: Read) -> list[GradedValue]:
    try:
        if run.problem:
            raise NoValue(run.problem)
        return list(READERS[check.source](check, run, read))
    except NoValue as error:
        return [GradedValue(name=name_of(check), score=0.0, why=str(error))]


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
        yield GradedValue(name=short(name), score=float(is_right), found=case.outcome, expected=PASSED)


def json_values(check: Check, _run: CommandRun, read: Read) -> Iterator[GradedValue]:
    assert check.json_ is not None
    path, pointer = check.json_.file, check.json_.pointer
    data = bytes_of(path, read)
    if sum(map(data.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise NoValue(f"{path} has more than {MOST_VALUES:,} values")
    try:
        yield from compared(check, resolve(json.loads(data), pointer))
    except ValueError as error:
        raise NoValue(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise NoValue(f"{path} is nested too deeply") from None


def regex_values(check: Check, run: CommandRun, read: Read) -> Iterator[GradedValue]:
    assert check.regex is not None
    path = check.regex.file
    text = run.output if path is None else bytes_of(path, read).decode("utf-8", "replace")
    found = last_match(check.regex, text, path or "what the command printed", check.name)
    yield from compared(check, found) if isinstance(check.expected, str) else compared_number(check, found)


def number_values(check: Check, _run: CommandRun, read: Read) -> Iterator[GradedValue]:
    yield from compared_number(check, bytes_of(str(check.number), read).decode("utf-8", "replace"))


def compared_number(check: Check, text: str) -> Iterator[GradedValue]:
    """The number next to the expected one, which can be in a list of its own, as reports state it."""
    expected = check.expected
    if isinstance(expected, list) and len(expected) == 1:
        check = check.expecting(expected[0])
    try:
        number = float(text.strip())
    except ValueError:
        raise NoValue(f"{short(text)!r} is not a number") from None
    yield from compared(check, number)


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


def last_match(wanted: RegexValue, text: str, where: str, name: str | None = None) -> str:
    """The group of the last match, or its value if the pattern names values: `name`. Raises NoValue."""
    try:
        if wanted.has_names:
            return last_named(wanted, text, where, str(name))
        found = next(iter(deque(matches(wanted.pattern, text), maxlen=1)), None)
    except TimeoutError:
        raise NoValue(f"the search in {where} took more than {REGEX_SECONDS:.0f} s") from None
    if found is None or found[wanted.group] is None:
        raise NoValue(f"{where} has no match for `{short(wanted.pattern)}`")
    return str(found[wanted.group])


def last_named(wanted: RegexValue, text: str, where: str, name: str) -> str:
    """Raises NoValue and TimeoutError."""
    found, others = None, dict[str, None]()
    for one, value in named_values(wanted, text):
        if one == name:
            found = value
        elif len(others) < MOST_NAMES:
            others[one] = None
    if found is None:
        there = f", but {', '.join(others)}" if others else f": no match for `{short(wanted.pattern)}`"
        raise NoValue(f"{where} has no value `{name}`{there}")
    return found


def named_values(wanted: RegexValue, text: str) -> Iterator[tuple[str, str | None]]:
    """Each value with its name, after that of its block, in the order of the text. Raises TimeoutError."""
    values = ((one.start(), 1, one) for one in matches(wanted.pattern, text))
    heads = ((one.start(), 0, one) for one in matches(wanted.block, text)) if wanted.block else ()
    block = ""
    for _, is_value, one in merge(heads, values, key=itemgetter(0, 1)):
        if is_value:
            yield f"{block} {one['name'] or ''}".strip(), one["value"]
        else:
            block = (one.groups("") or one)[0]


def matches(pattern: str, text: str) -> Iterator[re.Match[str]]:
    """Yield matches, where `^` and `$` match at the ends of lines. Raises TimeoutError."""
    compiled, is_limited = compile_pattern(f"(?m){pattern}")
    found: Iterator[re.Match[str]] = compiled.finditer(
        text, **({"timeout": REGEX_SECONDS} if is_limited else {})
    )
    return found
