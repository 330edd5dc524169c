"""What a cell puts out: Jupyter's messages merged into bounded nbformat outputs and a text for a person."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.messages import MAKERS, as_text, display_id, leave_out, stream_output

if TYPE_CHECKING:
    from collections.abc import MutableSequence

# Characters kept from the beginning and from the end of what one result holds.
HEAD = 100_000
TAIL = 100_000
# Characters that a display or an error may have without being shortened; it is given up only whole.
WHOLE = 50_000
# Characters by which updates of displays may lengthen the head, in all.
UPDATES = 50_000
# Characters of pictures and the like, base64, that one result holds.
BINARY = 20_000_000
# What an output counts beyond its text, so that their number is bounded too.
WEIGHT = 50
# Streams in the tail are kept in pieces of about so many characters, to give up its beginning cheaply.
PIECE = 4096

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


class CellOutput:
    """The outputs since the last result: head, tail and how much between them was left out."""

    def __init__(self) -> None:
        self._head: list[dict[str, Any]] = []
        self._tail: deque[dict[str, Any]] = deque()
        self._head_size = self._tail_size = self._binary = 0
        self._clears_next = False
        # The displays that can be updated, and the names of those in the tail by their `id`.
        self._displays: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._given_up = self._shortened = 0

    @property
    def omitted(self) -> int:
        """Characters left out, between head and tail or within displays and errors."""
        return self._given_up + self._shortened

    def add(self, kind: str, content: dict[str, Any]) -> str:
        """Take in one IOPub message; gives its text as it streams by, "" where it has none."""
        if kind == "clear_output":
            self._clear(waits=bool(content.get("wait")))
            return ""
        make = MAKERS.get(kind)
        if make is None:
            return ""
        output = make(content)
        if self._clears_next:
            self._clear(waits=False)
        text = output_text(output)
        self._place(kind, output, display_id(content) if "data" in output else None)
        return text

    def _clear(self, waits: bool) -> None:
        if waits:
            self._clears_next = True
        else:
            self.__init__()  # type: ignore[misc]

    def _place(self, kind: str, output: dict[str, Any], display: str | None) -> None:
        shown = self._displays.get(display) if display and kind == "update_display_data" else None
        if shown is not None:
            self._binary -= binary_size(shown)
        self._bound_data(output)
        if shown is not None:
            self._replace(shown, output)
            return
        self._append(output)
        if display is not None:
            self._displays[display] = output
            if self._tail:
                self._names[id(output)] = display

    def _replace(self, shown: dict[str, Any], update: dict[str, Any]) -> None:
        """Put an update in the display's place, which may grow as far as there is room."""
        before = len(output_text(shown))
        if id(shown) not in self._names:
            self._bound_text(update, max(0, HEAD + UPDATES - self._head_size + before))
            self._head_size += len(output_text(update)) - before
        else:
            self._tail_size += len(output_text(update)) - before
        shown.update(data=update["data"], metadata=update["metadata"])
        self._bound_tail()

    def _bound_data(self, output: dict[str, Any]) -> None:
        """Leave out of a display what is too large to keep: pictures, tables, at last the text's middle."""
        data = output.get("data", {})
        for mime in [mime for mime in data if mime != "text/plain"]:
            size = mime_size(mime, data[mime])
            if self._binary + size > BINARY:
                leave_out(data, mime, "too large")
            else:
                self._binary += size
        if output["output_type"] != "stream":
            self._bound_text(output, WHOLE)

    def _bound_text(self, output: dict[str, Any], size: int) -> None:
        surplus = len(output_text(output)) - size
        if surplus > 0:
            self._shortened += surplus
            shorten(output, size)

    def _append(self, output: dict[str, Any]) -> None:
        """To the head as long as it has room; then to the tail, of which the beginning is given up."""
        size = len(output_text(output))
        room = HEAD - self._head_size
        if not self._tail and size <= room:
            self._head_size += size + WEIGHT * merge(self._head, output)
            return
        if not self._tail and output["output_type"] == "stream" and room > 0:
            first, output = cut(output, room)
            self._head_size += room + WEIGHT * merge(self._head, first)
            size -= room
        self._tail_size += size + WEIGHT * merge(self._tail, output, limit=PIECE)
        self._bound_tail()

    def _bound_tail(self) -> None:
        while self._tail_size > TAIL + WEIGHT:
            self._shorten_tail()

    def _shorten_tail(self) -> None:
        first = self._tail[0]
        size = len(output_text(first)) + WEIGHT
        surplus = self._tail_size - TAIL - WEIGHT
        if first["output_type"] == "stream" and size > surplus + WEIGHT:
            _, self._tail[0] = cut(first, surplus)
            size = given_up = surplus
        else:
            self._forget(self._tail.popleft())
            given_up = size - WEIGHT
        self._tail_size -= size
        self._given_up += given_up

    def _forget(self, output: dict[str, Any]) -> None:
        """It is not kept any more, and an update of it would be a new one."""
        self._binary -= binary_size(output)
        name = self._names.pop(id(output), "")
        if self._displays.get(name) is output:
            del self._displays[name]

    def outputs(self) -> list[dict[str, Any]]:
        """All that is kept as nbformat 4 outputs, with a note where something was left out."""
        outputs = [dict(output) for output in self._head]
        if self._given_up:
            merge(outputs, stream_output("stdout", f"\n[... {self._given_up} characters left out ...]\n"))
        for output in self._tail:
            merge(outputs, dict(output))
        return outputs


def merge(outputs: MutableSequence[dict[str, Any]], output: dict[str, Any], limit: int | None = None) -> bool:
    """Append `output`, or only its text to a stream of the same name that is last and shorter than `limit`.

    Whether it was appended as a new one.
    """
    last = outputs[-1] if outputs else {}
    same = output["output_type"] == "stream" == last.get("output_type") and last["name"] == output["name"]
    if same and (limit is None or len(last["text"]) < limit):
        last["text"] += output["text"]
        return False
    outputs.append(output)
    return True


def cut(output: dict[str, Any], size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A stream output in two, the first with `size` characters."""
    name, text = output["name"], output["text"]
    return stream_output(name, text[:size]), stream_output(name, text[size:])


def shorten(output: dict[str, Any], size: int) -> None:
    """Keep of a display or an error the beginning and end of its text, `size` characters in all."""
    text = output_text(output)
    half = size // 2
    note = f"\n[... {len(text) - size} characters left out ...]\n"
    text = f"{text[:half]}{note}{text[len(text) - half :]}"
    if output["output_type"] == "error":
        output["traceback"] = [text]
    else:
        output["data"]["text/plain"] = text


def mime_size(mime: str, value: object) -> int:
    return len(mime) + len(str(value)) + WEIGHT


def binary_size(output: dict[str, Any]) -> int:
    """What a display counts beside its text."""
    data = output.get("data", {})
    return sum(mime_size(mime, value) for mime, value in data.items() if mime != "text/plain")


def output_text(output: dict[str, Any]) -> str:
    """The text of one output as the kernel sent it; what is no text is named by its type."""
    kind = output["output_type"]
    if kind == "stream":
        return str(output["text"])
    if kind == "error":
        return "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    if "text/plain" in data:
        return as_text(data["text/plain"])
    return "".join(f"[{mime}]" for mime in list(data)[:1])


def readable(outputs: list[dict[str, Any]]) -> str:
    """All outputs as a terminal without colours would show them, each display on lines of its own."""
    text = ""
    for output in outputs:
        if output["output_type"] == "stream":
            text += output["text"]
            continue
        if text and not text.endswith("\n"):
            text += "\n"
        text += output_text(output) + "\n"
    return "\n".join(map(last_state, ANSI.sub("", text).replace("\r\n", "\n").split("\n")))


def last_state(line: str) -> str:
    """What stays of a line that was written over, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]
