"""Converts the kernel's messages to nbformat outputs of the right types, whatever code inside has sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Metadata of a display with more characters is dropped.
LONGEST_METADATA = 4096
# Nesting levels of displayed data. Readers of the results, such as `json`, recurse once per level.
DEPTH = 100
# Characters of a display's id, a type name or a MIME type. IPython's own display ids have 32.
LONGEST_NAME = 200


def stream_output(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def stream_of(content: dict[str, Any]) -> dict[str, Any]:
    # Code inside can send any name, but nbformat has only these two.
    name = "stderr" if content.get("name") == "stderr" else "stdout"
    return stream_output(name, as_text(content.get("text")))


def display_of(content: dict[str, Any]) -> dict[str, Any]:
    data, metadata = content.get("data"), content.get("metadata")
    data = dict(data) if isinstance(data, dict) else {}
    for mime in [mime for mime, value in data.items() if is_deep(value)]:
        leave_out(data, mime, "nested too deeply")
    # nbformat also permits a list of lines.
    if isinstance(plain := data.get("text/plain", ""), list):
        data["text/plain"] = "".join(map(as_text, plain))
    is_kept = isinstance(metadata, dict) and not is_deep(metadata) and len(str(metadata)) < LONGEST_METADATA
    return {"output_type": "display_data", "data": data, "metadata": metadata if is_kept else {}}


def result_of(content: dict[str, Any]) -> dict[str, Any]:
    count = content.get("execution_count")
    count = count if isinstance(count, int) else None
    return {**display_of(content), "output_type": "execute_result", "execution_count": count}


def error_of(content: dict[str, Any]) -> dict[str, Any]:
    traceback = content.get("traceback")
    lines = traceback if isinstance(traceback, list) else []
    return {
        "output_type": "error",
        "ename": as_text(content.get("ename"))[:LONGEST_NAME],
        "evalue": as_text(content.get("evalue"))[:1000],
        "traceback": [as_text(line) for line in lines],
    }


MAKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "stream": stream_of,
    "display_data": display_of,
    "update_display_data": display_of,
    "execute_result": result_of,
    "error": error_of,
}


def as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else "[nested too deeply]" if is_deep(value) else str(value)


def display_id(content: dict[str, Any]) -> str | None:
    transient = content.get("transient")
    found = transient.get("display_id") if isinstance(transient, dict) else None
    return found if isinstance(found, str) and len(found) <= LONGEST_NAME else None


def leave_out(data: dict[str, Any], mime: str, why: str) -> None:
    del data[mime]
    data.setdefault("text/plain", f"[{mime[:LONGEST_NAME]} left out: {why}]")


def is_deep(value: object) -> bool:
    """Whether the value nests lists and objects more than DEPTH levels deep."""
    level = [value]
    for _ in range(DEPTH):
        if not level:
            return False
        level = [child for parent in level for child in children(parent)]
    return bool(level)


def children(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
