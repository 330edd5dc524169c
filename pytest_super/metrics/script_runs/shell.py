"""Splits shell text into simple commands, to distinguish scripts that it runs from those it only mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Longer operators first, because the first alternative that matches wins.
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|<<<|<<-?|>>|&>>?|[<>]&|[;&|()<>\n]")
_PLAIN = re.compile(r"[^\s\\'\";&|()<>]+")
_COMMENT = re.compile(r"#[^\n]*")
_SINGLE = re.compile(r"'([^']*)(?:'|\Z)")
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)(?:"|\\?\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)

_HEREDOC = ("<<", "<<-")
_REDIRECTIONS = ("<", ">", ">>", "<<<", "&>", "&>>", "<&", ">&", *_HEREDOC)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """The words of a simple command, without quotes and redirections, and the operator that ends it."""

    words: tuple[str, ...]
    end: str


def commands(text: str) -> Iterator[SimpleCommand]:
    """The simple commands in order. `(` and `)` also end a command, possibly an empty one. Never raises."""
    words: list[str] = []
    heredocs: list[str] = []
    redirection = ""
    lexer = _Lexer(text)
    for token, is_operator in lexer:
        if is_operator and token in _REDIRECTIONS:
            redirection = token
        elif is_operator:
            yield SimpleCommand(tuple(words), token)
            words, redirection = [], ""
            if token == "\n":
                lexer.skip_heredocs(heredocs)
        elif redirection:
            heredocs.extend([token] if redirection in _HEREDOC else [])
            redirection = ""
        else:
            words.append(token)
    yield SimpleCommand(tuple(words), "")


class _Lexer:
    """Yields (token, whether it is an operator)."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._word: str | None = None

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        while self._at < len(self._text):
            char = self._text[self._at]
            operator = _OPERATOR.match(self._text, self._at)
            # Within a word `#` is text, as in `git+https://example.org/x#egg=x`.
            if operator or char.isspace() or (char == "#" and self._word is None):
                yield from self._take_word(before=operator[0] if operator else "")
                self._skip(char, operator)
                if operator:
                    yield operator[0], True
            else:
                self._word = (self._word or "") + self._read_part(char)
        yield from self._take_word(before="")

    def _take_word(self, *, before: str) -> Iterator[tuple[str, bool]]:
        # In `2>&1` the 2 is not a word.
        if self._word is not None and not (before in _REDIRECTIONS and self._word.isdigit()):
            yield self._word, False
        self._word = None

    def _skip(self, char: str, operator: re.Match[str] | None) -> None:
        comment = _COMMENT.match(self._text, self._at) if char == "#" else None
        found = operator or comment
        self._at = found.end() if found else self._at + 1

    def _read_part(self, char: str) -> str:
        pattern = {"'": _SINGLE, '"': _DOUBLE, "\\": _ESCAPED}.get(char, _PLAIN)
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        if pattern is _PLAIN:
            return match[0]
        if pattern is _DOUBLE:
            # Within double quotes, the shell removes the backslash only before these.
            return re.sub(r'\\(["\\$`])', r"\1", match[1])
        return match[1]

    def skip_heredocs(self, delimiters: list[str]) -> None:
        for delimiter in delimiters:
            end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(self._text, self._at)
            self._at = min(end.end() + 1, len(self._text)) if end else len(self._text)
        delimiters.clear()
