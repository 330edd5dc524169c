"""The testcases of a JUnit XML file, parsed piece by piece, so that only these take memory."""

from typing import NamedTuple
from xml.parsers import expat

from pytest_super.metrics.leaves import short

MOST_TESTCASES = 10_000
DEEPEST = 100
PIECE = 2**16
# Bytes of a tag with its attributes, which the parser keeps whole.
LONGEST_TAG = 2**20
PASSED, FAILURE, ERROR, SKIPPED = "passed", "failure", "error", "skipped"
NOT_PASSED = (FAILURE, ERROR, SKIPPED)
# What googletest, CTest, behave and others write as `status` or `result`, in small letters.
STATED = {name: name for name in NOT_PASSED} | {"fail": FAILURE, "failed": FAILURE}
STATED |= dict.fromkeys(("notrun", "suppressed", "disabled", "ignored", "pending", "untested"), SKIPPED)
IDENTITY = ("name", "classname", "file", "line")
Place = tuple[object, ...]
"""Which testcase: its suite and IDENTITY."""


class NotJunitError(Exception):
    """The text says what is wrong with the file."""


class Testcase(NamedTuple):
    name: str
    """With the name of its class, clipped."""
    outcome: str
    """PASSED or one of NOT_PASSED."""


def testcases(data: bytes) -> list[Testcase]:
    """Read at least one testcase. Raises NotJunitError.

    Those of one suite with the same name are one, which passed if all of them did: pytest writes two if a
    test and its teardown fail, and one for each rerun.
    """
    reader = Reader()
    try:
        reader.read(data)
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two are about the encoding that the file states.
        raise NotJunitError(f"is not XML: {error}") from None
    if not reader.found:
        raise NotJunitError("has no testcases")
    return list(reader.found.values())


class Reader:
    """Keeps the testcases by their places, and for each open tag the place of its testcase."""

    def __init__(self) -> None:
        self.found: dict[Place, Testcase] = {}
        self._suite = 0
        self._open: list[Place | None] = []
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
        place = self._open[-1] if self._open else None
        self._open.append(None)
        if len(self._open) > DEEPEST:
            raise NotJunitError(f"is nested deeper than {DEEPEST}")
        self._suite += tag == "testsuite"
        if tag == "testcase":
            self._open[-1] = place = self._place(attributes)
            tag = stated_outcome(attributes)
        if place is not None and tag in NOT_PASSED and self.found[place].outcome == PASSED:
            self.found[place] = self.found[place]._replace(outcome=tag)

    def _place(self, attributes: dict[str, str]) -> Place:
        own = [attributes.get(name) for name in IDENTITY]
        # One without a name is not the same as another.
        place = (self._suite, *own) if own[0] else (len(self.found),)
        if place not in self.found:
            if len(self.found) == MOST_TESTCASES:
                raise NotJunitError(f"has more than {MOST_TESTCASES:,} testcases")
            self.found[place] = Testcase(short(".".join(filter(None, own[1::-1]))), PASSED)
        return place


def stated_outcome(attributes: dict[str, str]) -> str:
    """PASSED unless the attributes of a testcase say otherwise, such as `skipped="true"`."""
    flags = (name for name, value in attributes.items() if value.lower() == "true")
    said = (attributes.get("status", ""), attributes.get("result", ""), *flags)
    words = ("".join(filter(str.isalpha, one)).lower() for one in said)
    return next((STATED[word] for word in words if word in STATED), PASSED)


def refuse_doctype(*_: object) -> None:
    # Entities and default attributes multiply what a file contains.
    raise NotJunitError("declares a document type, which is refused")
