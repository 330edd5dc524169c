"""The output of a cell: Jupyter messages merged into nbformat outputs of bounded size, and as plain text."""

import re
from collections import deque
from collections.abc import MutableSequence
from typing import Any

from pytest_super.kernel.terminal_text import as_shown, is_plain

# Characters kept from the beginning and from the end of one result's output.
HEAD = 100_000
TAIL = 100_000
# A display or an error with more characters is shortened. In the tail it is kept or dropped as a whole.
WHOLE = 50_000
# Characters by which all updates of displays together can lengthen the head.
UPDATES = 50_000
# Base64 characters of pictures and other binary data in one result.
BINARY = 20_000_000
# Added to the size of each output, so that the number of outputs is bounded too.
WEIGHT = 50
# Streams in the tail are kept in pieces of about this many characters, so that dropping the first is cheap.
PIECE = 4096
# The note where something was left out.
GAP = re.compile(r"(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)")


class CellOutput:
    """The outputs since the last result: head, tail and the amount left out between them."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._head: list[dict[str, Any]] = []
        self._tail: deque[dict[str, Any]] = deque()
        self._head_size = self._tail_size = self._binary = 0
        self._clears_next = False
        # Displays that can be updated, by their name; and the names of those in the tail, by `id(output)`.
        self._displays: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._dropped = self._shortened = 0

    @property
    def omitted(self) -> int:
        """Characters left out between head and tail and within displays and errors."""
        return self._dropped + self._shortened

    def add(self, kind: str, content: dict[str, Any]) -> str:
        """Add one IOPub message. Returns its text, or "" if it has none."""
        if kind == "clear_output":
            if content["wait"]:
                self._clears_next = True
            else:
                self._clear()
            return ""
        output = output_of(kind, content)
        if self._clears_next:
            self._clear()
        text = output_text(output)
        self._place(kind, output, (content.get("transient") or {}).get("display_id"))
        return text

    def _place(self, kind: str, output: dict[str, Any], display: str | None) -> None:
        shown = self._displays.get(display) if display and kind == "update_display_data" else None
        if shown is not None:
            # The update takes this room, so that a picture can be updated for ever.
            self._binary -= binary_size(shown)
        self._bound_data(output)
        if shown is not None:
            self._replace(shown, output)
            return
        self._append(output)
        if display is not None:
            self._displays[display] = output
            if self._tail:
                # The tail holds the output until `_forget`, so no other one can have this id meanwhile.
                self._names[id(output)] = display

    def _replace(self, shown: dict[str, Any], update: dict[str, Any]) -> None:
        """Replace a display by its update, shortened to the room that is left."""
        before = len(output_text(shown))
        if id(shown) not in self._names:
            self._bound_text(update, max(0, HEAD + UPDATES - self._head_size + before))
            self._head_size += len(output_text(update)) - before
        else:
            self._tail_size += len(output_text(update)) - before
        shown.update(data=update["data"], metadata=update["metadata"])
        self._bound_tail()

    def _bound_data(self, output: dict[str, Any]) -> None:
        """Remove data that is too large from a display: pictures and tables whole, text in its middle."""
        data = output.get("data", {})
        for mime in [mime for mime in data if mime != "text/plain"]:
            size = mime_size(mime, data[mime])
            if self._binary + size > BINARY:
                del data[mime]
                data.setdefault("text/plain", f"[{mime} left out: too large]")
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
        """Append to the head while it has room, then to the tail; a full tail drops its beginning."""
        size = len(output_text(output))
        room = HEAD - self._head_size
        # Once the tail has begun, the head gets nothing more, or outputs would change their order.
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
            size = dropped = surplus
        else:
            self._forget(self._tail.popleft())
            dropped = size - WEIGHT
        self._tail_size -= size
        self._dropped += dropped

    def _forget(self, output: dict[str, Any]) -> None:
        """Forget a dropped output; a later update of it becomes a new output."""
        self._binary -= binary_size(output)
        name = self._names.pop(id(output), "")
        if self._displays.get(name) is output:
            del self._displays[name]

    def outputs(self) -> list[dict[str, Any]]:
        """The kept output as nbformat 4, with a note where something was left out."""
        # Copies, because `merge` lengthens the last output in place.
        outputs = [dict(output) for output in self._head]
        if self._dropped:
            merge(outputs, stream_output("stdout", f"\n[... {self._dropped} characters left out ...]\n"))
        for output in self._tail:
            merge(outputs, dict(output))
        return outputs


def output_of(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """The nbformat output of a message."""
    if kind in ("stream", "error"):
        return {"output_type": kind, **content}
    shown = {"data": dict(content["data"]), "metadata": content["metadata"] or {}}
    if kind == "execute_result":
        return {"output_type": kind, **shown, "execution_count": content["execution_count"]}
    return {"output_type": "display_data", **shown}


def stream_output(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def merge(outputs: MutableSequence[dict[str, Any]], output: dict[str, Any], limit: int | None = None) -> bool:
    """Append `output`, or add its text to the same stream below `limit`. Whether it was appended."""
    last = outputs[-1] if outputs else {}
    same = output["output_type"] == "stream" == last.get("output_type") and last["name"] == output["name"]
    if same and (limit is None or len(last["text"]) < limit):
        last["text"] += output["text"]
        return False
    outputs.append(output)
    return True


def cut(output: dict[str, Any], size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a stream output in two, the first with `size` characters."""
    name, text = output["name"], output["text"]
    return stream_output(name, text[:size]), stream_output(name, text[size:])


def shorten(output: dict[str, Any], size: int) -> None:
    """Shorten a display or an error to the beginning and end of its text, `size` characters in total."""
    text = output_text(output)
    half = size // 2
    note = f"\n[... {len(text) - size} characters left out ...]\n"
    text = f"{text[:half]}{note}{text[len(text) - half :]}"
    if output["output_type"] == "error":
        output["traceback"] = [text]
    else:
        output["data"]["text/plain"] = text


def mime_size(mime: str, value: object) -> int:
    # The type counts too, because code inside chooses it.
    return len(mime) + len(str(value)) + WEIGHT


def binary_size(output: dict[str, Any]) -> int:
    """The size of a display's data other than its text."""
    data = output.get("data", {})
    return sum(mime_size(mime, value) for mime, value in data.items() if mime != "text/plain")


def output_text(output: dict[str, Any]) -> str:
    """The text of one output as the kernel sent it; output without text becomes its MIME type in brackets."""
    kind = output["output_type"]
    if kind == "stream":
        return str(output["text"])
    if kind == "error":
        return "\n".join(output["traceback"]) or f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    if "text/plain" in data:
        return str(data["text/plain"])
    return "".join(f"[{mime}]" for mime in list(data)[:1])


def readable(outputs: list[dict[str, Any]]) -> str:
    """All outputs as a terminal without colours shows them.

    Displays, and streams with control characters, are on lines of their own.
    """
    text, was_apart = "", False
    for output in outputs:
        raw = output_text(output)
        if output["output_type"] == "stream":
            # One after the other, so that nothing after a gap is written over what stood before it.
            shown, is_apart = "".join(map(as_shown, GAP.split(raw))), not is_plain(raw)
        else:
            shown, is_apart = f"{as_shown(raw)}\n", True
        if (is_apart or was_apart) and text and not text.endswith("\n"):
            text += "\n"
        text, was_apart = text + shown, is_apart
    return text
