"""The `task.toml` of a Harbor task: values by name, with their lines, and remarks on what is not used."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_TABLE = re.compile(r"\s*\[{1,2}\s*([\w.\" -]+?)\s*\]{1,2}")
_KEY = re.compile(r"\s*([\w.\"-]+)\s*=")
# A value of this machine's environment, which nobody else has.
_HOST_VALUE = re.compile(r"\$\{\w+")


class Unusable(Exception):
    """A task that cannot be used; one reason a line, each with its place."""


class TaskSettings:
    """The values of a `task.toml`. Keys that nobody asks for are ignored, as the format says."""

    def __init__(self, path: Path, shown: str) -> None:
        """Raises Unusable for a file that cannot be read."""
        self._shown = shown
        self.remarks: list[str] = []
        """What the file says that the imported task does not do, each with its place."""
        self.reasons: list[str] = []
        """Why the task cannot be used, each with its place."""
        try:
            text = path.read_text(encoding="utf-8")
            self.data = tomllib.loads(text)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise Unusable(f"{shown}: cannot be read: {error}") from None
        self._lines = key_lines(text)

    def get(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """The value at a dotted name; None if there is none, or if it has another type, which is a reason."""
        value: Any = self.data
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        # A TOML boolean is an `int` in Python.
        if isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool)):
            return value
        self.refuse(name, f"has a value of another type than the format says: {value!r}")
        return None

    def number(self, name: str) -> float | None:
        value: float | None = self.get(name, (int, float))
        return value

    def text(self, name: str) -> str | None:
        value: str | None = self.get(name, str)
        return value

    def variables(self, name: str) -> dict[str, str]:
        """Variables of an environment, without those whose value comes from the machine, with a remark."""
        given = {key: str(value) for key, value in (self.get(name, dict) or {}).items()}
        for key, value in given.items():
            if _HOST_VALUE.search(value):
                self.remark(f"{name}.{key}", "is not set, because its value comes from the machine")
        return {key: value for key, value in given.items() if not _HOST_VALUE.search(value)}

    def remark(self, name: str, what: str) -> None:
        self.remarks.append(f"{self.place(name)}: `{name}` {what}")

    def refuse(self, name: str, why: str) -> None:
        self.reasons.append(f"{self.place(name)}: `{name}` {why}")

    def place(self, name: str) -> str:
        """The file and the line of a key, or of the nearest table around it."""
        while name and name not in self._lines:
            name = name.rpartition(".")[0]
        return f"{self._shown}:{self._lines[name]}" if name else self._shown


def key_lines(text: str) -> dict[str, int]:
    """The line of each table and each key of a TOML file, by dotted name; not those in inline tables."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = header[1].replace('"', "")
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(".".join(filter(None, (table, key[1].replace('"', "")))), number)
    return found
