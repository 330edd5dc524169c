"""Texts for people that all parts use: numbers with their noun, errors in words, lines for a terminal."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_super.errors import SuperError

# C0 and C1 except tab and newline, changes of direction, and characters that cannot be encoded.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
LINE_LIMIT = 300


def dollars(amount: float) -> str:
    """An amount that is not exact."""
    return f"${amount:,.0f}" if amount >= 10 else f"${amount:.2f}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(names: Sequence[str], most: int) -> str:
    """The first names; the others are counted."""
    return f"{', '.join(names[:most])}{f' and {len(names) - most} more' if len(names) > most else ''}"


def words_of(error: BaseException) -> str:
    """The text of an exception, with its type unless it is one of ours."""
    if isinstance(error, SuperError):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def printable(text: str) -> str:
    """A text of others for a terminal: without characters that move the cursor or cannot be encoded."""
    return CONTROL.sub("?", text)


def printable_line(text: str) -> str:
    """The same on one line, so that no part of it looks like another message."""
    return printable(text.replace("\n", " | "))


def exit_code(status: int) -> int:
    """The exit code in a wait status, as `subprocess` has it: -N for the signal N."""
    # Not by `os.waitstatus_to_exitcode`, which raises for statuses that no system reports.
    return status >> 8 if status % 256 == 0 else -(status % 128)


def exit_words(code: int) -> str:
    """How a program ended, by its exit code as `subprocess` has it."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """The end of a message about an unknown name: the `most` known names closest to it, or "" without one."""
    # Not at the top: only a message needs it.
    import difflib

    by_lower = {one.lower(): one for one in known}
    close = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=most)]
    return f"; did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""


def one_line(text: str, most: int = LINE_LIMIT) -> str:
    return shortened(printable_line(text), most)


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and a mark: at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def clipped(text: str, most: int) -> str:
    """The text, or `most` characters of its beginning and its end, with a line that counts the others."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n{gap(len(text) - 2 * half)}\n{text[-half:]}"


def gap(characters: int) -> str:
    """The line in place of so many characters; "" for none."""
    return f"[… {characters:,} characters …]" if characters else ""


def command_with(option: str, arguments: Sequence[str]) -> str:
    """The command line with another value of an option; without a command line only the option.

    It resumes an earlier run only if that is the option.
    """
    if not arguments:
        return option
    kept = without(arguments, {option.partition("=")[0], "--super-resume"})
    # In front, because paths can follow after `--`.
    return shlex.join(["pytest", option, *kept])


def without(arguments: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """The arguments without these options and their values."""
    rest = iter(arguments)
    for one in rest:
        name, equals, _ = one.partition("=")
        if name not in names:
            yield one
        elif not equals:
            next(rest, None)
