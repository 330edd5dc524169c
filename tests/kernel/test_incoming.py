"""The door for what a sandbox sends: what fits, what is dropped, and how much memory all of it takes."""

import gc
import json
import random
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.session import Session

from pytest_super.kernel.incoming import Incoming, Message, file_answer
from pytest_super.kernel.inside import frames
from pytest_super.kernel.link import Link
from pytest_super.kernel.output import CellOutput, output_text, readable
from pytest_super.kernel.running_cell import OUTPUT_KINDS
from pytest_super.kernel.schema import LONGEST_MESSAGE
from pytest_super.kernel.value_types import Misfit, read_json
from tests.kernel.scripted import KEY

SESSION = Session(key=KEY.encode())
REQUEST = SESSION.msg("execute_request", {})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def signed(kind: Any, content: bytes, header: dict[str, Any] | None = None) -> list[bytes]:
    """A message as code in the kernel can send it: it knows the key, and writes any bytes."""
    head = {"msg_type": kind, "msg_id": "1"} if header is None else header
    parent = json.dumps(REQUEST["header"], default=str)
    body = [json.dumps(head).encode(), parent.encode(), b"{}", content]
    return [b"topic", b"<IDS|MSG>", SESSION.sign(body), *body]


def received(
    kind: Any, content: Any, channel: int = frames.IOPUB, incoming: Incoming | None = None
) -> Message | None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return (incoming or Incoming()).message(channel, signed(kind, data), SESSION.sign)


def outputs(*messages: Message | None) -> list[dict[str, Any]]:
    output = CellOutput()
    for message in messages:
        if message is not None:
            output.add(message.kind, message.content)
    return output.outputs()


# What is shown of messages that do not fit


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        ("display_data", {"data": {"text/plain": 5}}, "its data is its text/plain is not text"),
        ("display_data", {"data": {"a\n\x1b[31m": 5}}, "its data is its a | ?[31m is not text"),
        ("display_data", {"data": []}, "its data is not a bundle of MIME types in its bounds"),
        ("display_data", {"data": {"x" * 201: ""}}, "its data is not a bundle of MIME types in its bounds"),
        ("display_data", {"data": {}, "metadata": {"a": "x" * 5000}}, "its metadata is too long"),
        ("execute_result", {"data": {}, "execution_count": "1"}, "its execution_count is not a whole number"),
        ("stream", {"name": "other", "text": "x"}, "its name is none of stdout, stderr"),
        ("stream", b'{"name": "stdout", "text": "x"', "not JSON"),
        ("stream", b"[" * 10**5, "not JSON"),
        ("stream", b"[" + b"{}," * 10**6 + b"{}]", "too many values"),
        ("stream", b'"' + b"x" * LONGEST_MESSAGE, "too long"),
        ("error", {"ename": "E", "evalue": "v", "traceback": "line"}, "its traceback is not a list"),
    ],
)  # fmt: skip
def test_a_note_is_shown_in_place_of_an_output_that_does_not_fit(kind: str, content: Any, why: str) -> None:
    incoming = Incoming()
    message = received(kind, content, incoming=incoming)
    assert readable(outputs(message)).startswith(f"[{kind} left out: {why}")
    assert incoming.take_dropped() == {kind: 1}
    assert incoming.take_dropped() == {}


def test_data_that_is_nested_too_deeply_is_left_out() -> None:
    deep: Any = {}
    for _ in range(150):
        deep = [deep]
    content = {"data": {"application/json": deep}}
    assert readable(outputs(received("display_data", content))) == (
        "[display_data left out: its data is its application/json is nested too deeply]\n"
    )


def test_lines_of_a_display_are_one_text() -> None:
    message = received("display_data", {"data": {"text/plain": ["one\n", "two"], "text/html": ["<b>"]}})
    assert outputs(message)[0]["data"] == {"text/plain": "one\ntwo", "text/html": "<b>"}


def test_outputs_are_valid_json_in_utf_8() -> None:
    raw = b'{"data": {"application/json": [NaN, 1e999, -Infinity, "\\ud800"], "text/plain": "\\ud800\xff"},'
    (output,) = outputs(received("display_data", raw + b' "metadata": {"a": NaN}}'))
    assert output["data"] == {
        "application/json": [None, None, None, "?"],
        "text/plain": "?\N{REPLACEMENT CHARACTER}",
    }
    assert output["metadata"] == {"a": None}
    json.dumps(output, allow_nan=False, ensure_ascii=False).encode()


# What is dropped without being shown


@pytest.mark.parametrize("kind", [["stream"], None, "x" * 201])
def test_a_message_whose_type_is_no_name_is_dropped(kind: Any) -> None:
    incoming = Incoming()
    assert received(kind, {"name": "stdout", "text": "x"}, incoming=incoming) is None
    assert incoming.take_dropped() == {"unreadable": 1}


def test_a_message_with_another_signature_is_dropped() -> None:
    incoming, parts = Incoming(), signed("stream", b"{}")
    parts[2] = b"\xff"
    assert incoming.message(frames.IOPUB, parts, SESSION.sign) is None
    assert incoming.take_dropped() == {"unreadable": 1}


def test_kinds_and_fields_that_we_do_not_use_are_left_out_and_not_counted() -> None:
    incoming = Incoming()
    message = received("status", {"execution_state": "idle", "other": [1]}, incoming=incoming)
    assert message is not None
    assert message.content == {"execution_state": "idle"}
    assert received("comm_open", {"comm_id": "1"}, incoming=incoming) is None
    assert received("execute_reply", {"status": "ok"}, incoming=incoming) is None
    assert incoming.take_dropped() == {}


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("unreadable", [b"{}"]),
        ("unreadable", [b"\xff", b""]),
        ("unreadable", [b"[" * 10**5, b""]),
        ("unreadable", [b" " * 2**18 + b"{}", b""]),
        ("unknown", [b'{"op": ["data"]}', b""]),
        ("unknown", [b'{"op": "shutdown"}', b""]),
        ("data", [b'{"op": "data", "id": true}', b"x"]),
        ("data", [b'{"op": "data", "id": 1}', b"x" * (2**20 + 1)]),
        ("more", [b'{"op": "more", "id": 1}', b"x"]),
        ("died", [b'{"op": "died", "why": 5}', b""]),
        ("failed", [b'{"op": "failed", "id": 1, "message": "no", "errno": -1}', b""]),
        ("call", [b'{"op": "call", "id": 1, "what": "ask", "method": "GET", "path": "/", "size": 1e9}', b""]),
        ("process", [b'{"op": "process", "number": 1, "pid": 1, "arguments": [], "started": NaN}', b""]),
    ],
)  # fmt: skip
def test_a_control_frame_that_does_not_fit_is_dropped(kind: str, parts: list[bytes]) -> None:
    incoming = Incoming()
    assert incoming.control(parts) is None
    assert incoming.take_dropped() == {kind: 1}


def test_a_cause_of_death_is_one_line_that_a_terminal_can_show() -> None:
    control = Incoming().control(
        [json.dumps({"op": "died", "why": "a\nE  b\x1b[2J" + "c" * 999}).encode(), b""]
    )
    assert control is not None
    assert control.fields["why"].startswith("a | E  b?[2Jcc")
    assert len(control.fields["why"]) < 510


# Answers about files


@pytest.mark.parametrize(
    ("op", "data"),
    [
        ("list", b'[{"name": "a", "kind": "file", "size": -1, "modified": 0}]'),
        ("list", b'[{"name": "a", "kind": "door", "size": 1, "modified": 0}]'),
        ("list", b'[{"name": "a", "kind": "file", "size": 1, "modified": 1e999}]'),
        ("list", b"[" + b"{}," * 2**20 + b"{}]"),
        ("changes", b'{"../a": ""}'),
        ("search", b'{"folder": "/", "found": [["a"]], "files": 1, "lines": 1, "is_complete": true}'),
    ],
)
def test_an_answer_about_files_that_does_not_fit_is_refused(op: str, data: bytes) -> None:
    with pytest.raises(Misfit):
        file_answer(op, data)


def test_names_of_files_keep_bytes_that_are_not_utf_8() -> None:
    assert file_answer("resolve", json.dumps("caf\udce9").encode()) == "caf\udce9"


# Bounds


def test_many_values_are_refused_before_they_take_memory() -> None:
    hidden = b'["\\\\", ' + b"[]," * 10**6 + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(Misfit, match="too many"):
            read_json(hidden)
        assert tracemalloc.get_traced_memory()[1] < 6 * len(hidden)
    finally:
        tracemalloc.stop()


def test_separators_in_texts_are_not_values() -> None:
    table = '<td>1,2,[3],{4}</td>\\"' * 10**5
    assert read_json(json.dumps([table]).encode()) == [table]


@given(
    st.text(),
    st.dictionaries(st.sampled_from(["data", "metadata", "text", "name", "traceback", "wait"]), JSON),
)
def test_any_content_becomes_outputs_of_the_right_types(text: str, content: dict[str, Any]) -> None:
    for kind in OUTPUT_KINDS:
        for fields in (content, {"name": "stdout", "text": text, "data": {"text/plain": text, **content}}):
            for output in outputs(received(kind, fields)):
                assert isinstance(output_text(output), str)
                json.dumps(output, allow_nan=False, ensure_ascii=False).encode()


# Mutations of everything that a sandbox sends


class Stream:
    """Leads nowhere."""

    def read(self, _: int) -> bytes:
        return b""

    def write(self, _: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class Shown:
    """Shows outputs as a cell does, and keeps nothing else."""

    def __init__(self) -> None:
        self.output = CellOutput()

    def on_start(self) -> None:
        pass

    def on_message(self, message: Message) -> None:
        if message.channel == frames.IOPUB and message.kind in OUTPUT_KINDS:
            self.output.add(message.kind, message.content)

    def on_death(self, why: str) -> None:
        assert len(why) < 600

    def on_end(self) -> None:
        pass


REPORT = {"number": 1, "pid": 7, "arguments": ["python", "a.py"], "files": {"1": "a.py"}, "started": 1.7e9}
CONTROL_FRAMES: list[dict[str, Any]] = [
    {"op": "hello", "key": KEY, "observes": True},
    {"op": "started", "key": KEY},
    {"op": "printed", "id": 1},
    {"op": "ended", "id": 1, "status": 256},
    {"op": "ended", "id": 1, "error": "OSError: Permission denied"},
    {"op": "died", "why": "out of memory"},
    {"op": "process", **REPORT, "ended": 1.8e9, "status": 0},
    {"op": "observed", "hung_up": "7 python a.py", "reading": ""},
    {"op": "data", "id": 1},
    {"op": "more", "id": 1},
    {"op": "done", "id": 1},
    {"op": "failed", "id": 1, "errno": 2, "message": "No such file"},
    {"op": "listening", "port": 8080},
    {"op": "call", "id": 1, "what": "ask", "method": "POST", "path": "/v1", "size": 10},
    {"op": "call", "id": 1, "what": "body"},
]
CONTENTS: list[tuple[str, dict[str, Any]]] = [
    ("stream", {"name": "stdout", "text": "text\n"}),
    ("display_data", {"data": {"text/plain": "x", "image/png": "AAAA"}, "transient": {"display_id": "1"}}),
    ("update_display_data", {"data": {"text/plain": "y"}, "transient": {"display_id": "1"}}),
    ("execute_result", {"data": {"application/json": [1.5, {"a": None}]}, "execution_count": 1}),
    ("error", {"ename": "E", "evalue": "v", "traceback": ["line"]}),
    ("clear_output", {"wait": False}),
    ("status", {"execution_state": "idle"}),
    ("execute_reply", {"status": "ok", "user_expressions": {"value": {"data": {"text/plain": "1"}}}}),
]  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", "\0\x1b[2J\n",
    "x" * 10**4, [], {}, [[]], {"": {}}, ["stream"], [0] * 1000, {"text/plain": 5}, {"op": "data"},
]  # fmt: skip


def mutated(value: Any, chance: random.Random) -> Any:
    """The JSON value with some parts replaced, removed or added."""
    if chance.random() < 0.15:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {key: mutated(child, chance) for key, child in value.items() if chance.random() < 0.95}
        return kept if chance.random() < 0.9 else {**kept, str(chance.choice(ODD)): chance.choice(ODD)}
    if isinstance(value, list):
        return [mutated(child, chance) for child in value]
    return value


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one changed, or cut, or twice, mostly as they are."""
    at = chance.randrange(len(data) + 1)
    ways = [data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :], data[:at], data + data[:at]]
    return data if chance.random() < 0.8 else chance.choice(ways)


def mutated_frame(chance: random.Random) -> tuple[int, list[bytes]]:
    if chance.random() < 0.5:
        fields = json.dumps(mutated(chance.choice(CONTROL_FRAMES), chance)).encode()
        parts = [damaged(fields, chance), chance.choice([b"", b"x" * 10, b"x" * 1000])]
        return frames.CONTROL, parts if chance.random() < 0.95 else parts[: chance.randrange(2)]
    kind, content = chance.choice(CONTENTS)
    data = damaged(json.dumps(mutated(content, chance)).encode(), chance)
    header = mutated({"msg_type": kind, "msg_id": "1"}, chance)
    parts = signed(kind, data, header)
    if chance.random() < 0.05:
        parts[chance.randrange(len(parts))] = b""
    return chance.choice([frames.IOPUB, frames.IOPUB, frames.SHELL]), parts


def arrive(count: int) -> dict[str, int]:
    """Let mutated frames arrive at a link; returns what was dropped."""
    shown, chance = Shown(), random.Random(1)
    link = Link(Stream(), shown, clock=float, cause_of_death=str)
    link._on_frame(frames.CONTROL, [json.dumps(CONTROL_FRAMES[0]).encode(), b""])
    link.programs.run("train", {}, {}, None)
    for _ in range(count):
        data = damaged(frames.encode(*mutated_frame(chance)), chance)
        with suppress(frames.BrokenFrame):
            for channel, parts in frames.Decoder().feed(data):
                link._on_frame(channel, parts)
    for output in shown.output.outputs():
        json.dumps(output, allow_nan=False, ensure_ascii=False).encode()
    link.processes.take(look=False)
    return link.incoming.take_dropped()


def growth(count: int) -> int:
    """Bytes that are kept while mutated frames arrive, and after that only what was reported."""
    arrive(100)
    gc.collect()
    tracemalloc.start()
    try:
        dropped = arrive(count)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(dropped.values()) > count / 4
    assert {"unreadable", "unknown", "stream", "data", "process"} <= dropped.keys()
    return peak


def test_mutated_frames_raise_nothing_and_take_little_memory() -> None:
    assert growth(500) < 16 * 2**20


@pytest.mark.long
def test_a_hundred_thousand_mutated_frames_raise_nothing_and_take_little_memory() -> None:
    assert growth(100_000) < 48 * 2**20


@pytest.mark.parametrize("fields", [{"op": "data", "id": 1}, {"op": "more", "id": 1}])
def test_800_megabytes_that_nobody_asked_for_take_no_memory(fields: dict[str, Any]) -> None:
    link = Link(Stream(), Shown(), clock=float, cause_of_death=str)
    frame = frames.encode(frames.CONTROL, [json.dumps(fields).encode(), bytes(2**20)])
    tracemalloc.start()
    try:
        for _ in range(800):
            for channel, parts in frames.Decoder().feed(frame):
                link._on_frame(channel, parts)
        assert tracemalloc.get_traced_memory()[0] < 2**21
    finally:
        tracemalloc.stop()
    assert link.incoming.take_dropped() == {fields["op"]: 800}
