"""A Python file as a syntax tree and as text that is written back byte for byte."""

from __future__ import annotations

import ast
import codecs
import io
import re
import sys
import threading
import tokenize
import warnings
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from pytest_super.errors import SuperError

# Python ends lines at these only; `str.splitlines` also does at form feeds and other separators.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# What Python 3 says of code that only Python 2 accepts.
_PYTHON_2 = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized"
    r"|leading zeros in decimal integer literals|invalid (decimal|octal) literal|<>"
)

# Python counts the depth of the trees that all threads make together, and then fails with a SystemError. The
# kernel of the next trial starts in a thread of its own, which masks functions.
_PARSING = threading.RLock()


class SourceError(SuperError):
    """A file cannot be masked, or a target is not in it."""


@dataclass(frozen=True)
class PythonSource:
    """A file that Python can parse. `name` is its path in messages."""

    name: str
    text: str
    encoding: str
    tree: ast.Module

    @classmethod
    def read(cls, name: str, data: bytes, encodings: Container[str] | None = None) -> PythonSource:
        """Raises SourceError, also if `encodings` lacks the codec of the encoding that the file declares."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            if encodings is not None and codec(encoding) not in encodings:
                raise SourceError(
                    f"{name}: its encoding, {encoding}, is neither UTF-8 nor that of the original"
                )
            text = data.decode(encoding)
            restored = text.encode(encoding)
            # Not the bytes: Python looks for the encoding in other lines than `tokenize` does.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = parsed(text, name)
        except SyntaxError as error:
            raise SourceError(f"{name}{why_unreadable(error)}") from None
        # LookupError: a codec that is not one of texts, such as rot13.
        except (ValueError, LookupError) as error:
            raise SourceError(f"{name}: it cannot be parsed: {error}") from None
        except (RecursionError, MemoryError):
            raise SourceError(f"{name}: it cannot be parsed: it is nested too deeply or too large") from None
        if restored != data:
            raise SourceError(f"{name}: its encoding, {encoding}, does not restore the same bytes")
        return cls(name, text, encoding, tree)

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends."""
        return _LINE.findall(self.text)

    def encode(self, text: str) -> bytes:
        """Another text in the file's encoding."""
        return text.encode(self.encoding)

    def column(self, line: int, offset: int) -> int:
        """A column in characters. Syntax trees count lines from 1 and columns in bytes of UTF-8."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode())

    def line_end(self, line: int) -> str:
        """The characters that end a line; those of the first line for a last line without any."""
        for text in (self.lines[line - 1], self.lines[0]):
            if end := text[len(text.rstrip("\r\n")) :]:
                return end
        return "\n"


def parsed(code: str | bytes, name: str = "<unknown>") -> ast.Module:
    """`ast.parse`, in one thread at a time."""
    with _PARSING:
        return ast.parse(code, name)


def codec(encoding: str) -> str:
    """The name of the codec, which is one for all names of an encoding."""
    return codecs.lookup(encoding).name


def why_unreadable(error: SyntaxError) -> str:
    """`:LINE: message`, which says so if the file seems to be Python 2."""
    place = f":{error.lineno}" if error.lineno else ""
    if _PYTHON_2.search(error.msg):
        return f"{place}: it is written in Python 2, which cannot be masked ({error.msg})"
    return f"{place}: it cannot be parsed: {error.msg} (Python {sys.version_info[0]}.{sys.version_info[1]})"
