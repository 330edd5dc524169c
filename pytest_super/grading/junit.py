"""The testcases of a JUnit XML file, parsed piece by piece, so that only these take memory."""

from __future__ import annotations

from typing import NamedTuple
from xml.parsers import expat

from pytest_super.metrics.difference import short

MOST_TESTCASES = 10_000
DEEPEST = 100
PIECE = 2**16
# Bytes of a tag with its attributes, which the parser keeps whole.
LONGEST_TAG = 2**20
PASSED, ERROR = "passed", "error"
NOT_PASSED = ("failure", ERROR, "skipped")


class NotJunitError(Exception):
    """The text says what is wrong with the file."""


class Testcase(NamedTuple):
    name: str
    """With the name of its class, clipped."""
    outcome: str
    """PASSED or one of NOT_PASSED."""


def testcases(data: bytes) -> list[Testcase]:
    """At least one. Raises NotJunitError."""
    reader = Reader()
    try:
        reader.read(data)
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two are about the encoding that the file states.
        raise NotJunitError(f"is not XML: {error}") from None
    if not reader.found:
        raise NotJunitError("has no testcases")
    return reader.found


class Reader:
    """Keeps the testcases, and for each open tag which testcase it is."""

    def __init__(self) -> None:
        self.found: list[Testcase] = []
        self._open: list[int | None] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = lambda _tag: self._open.pop()
        self._parser.StartDoctypeDeclHandler = refuse_doctype

    def read(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE):
            self._parser.Parse(data[start : start + PIECE])
            if start - self._parser.CurrentByteIndex > LONGEST_TAG:
                raise NotJunitError("has a tag of more than 1 MiB")
        self._parser.Parse(b"", True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else None
        self._open.append(None)
        if len(self._open) > DEEPEST:
            raise NotJunitError(f"is nested deeper than {DEEPEST}")
        if tag == "testcase":
            self._open[-1] = len(self.found)
            self._add(".".join(filter(None, (attributes.get("classname"), attributes.get("name")))))
        elif parent is not None and tag in NOT_PASSED and self.found[parent].outcome == PASSED:
            self.found[parent] = self.found[parent]._replace(outcome=tag)

    def _add(self, name: str) -> None:
        if len(self.found) == MOST_TESTCASES:
            raise NotJunitError(f"has more than {MOST_TESTCASES:,} testcases")
        self.found.append(Testcase(short(name), PASSED))


def refuse_doctype(*_: object) -> None:
    # Entities and default attributes multiply what a file contains.
    raise NotJunitError("declares a document type, which is refused")
