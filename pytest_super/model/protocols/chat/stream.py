"""A chat completion as the chunks of its stream, and back.

Servers differ from OpenAI's in what they leave out, repeat and add, so the rules know few fields by name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_super.json_values import is_list_of_objects, object_in, objects
from pytest_super.model.protocols.protocol import END_MARK, Body, Event, Request, StreamError, pieces

# The fields of a message that arrive in pieces, which the client joins.
TEXTS = ("reasoning_content", "content", "refusal")
# The texts that come whole; some servers repeat them in every chunk.
WHOLE = frozenset(("id", "type", "name", "role", "signature", "finish_reason"))
# How models without a parser for their thoughts begin.
THOUGHT = re.compile(r"<(think|thinking)>(.*?)</\1>(.*)", re.DOTALL)
NO_CALL = {"name": "", "arguments": ""}


def replay(body: Body, request: Request) -> Iterator[Event]:
    """The chunks of a `chat.completion` object."""
    common = {"object": "chat.completion.chunk"}
    common |= {key: body[key] for key in ("id", "created", "model", "system_fingerprint") if key in body}
    for choice in body["choices"]:
        index = choice.get("index", 0)
        for delta in deltas(choice["message"]):
            yield {**common, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        last = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
        if choice.get("logprobs"):
            last["logprobs"] = choice["logprobs"]
        yield {**common, "choices": [last]}
    if wants_usage(request):
        yield {**common, "choices": [], "usage": body.get("usage")}
    yield END_MARK


def deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The pieces that a client adds up to the message."""
    rest = {key: value for key, value in message.items() if key not in (*TEXTS, "tool_calls") and value}
    yield {"role": "assistant", **rest, "content": None if message.get("content") is None else ""}
    for name in TEXTS:
        for piece in pieces(message.get(name) or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call.get("function") or {}
        # The first piece has the name and no arguments, as OpenAI sends it.
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function.get("arguments") or ""):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def wants_usage(request: Request) -> bool:
    return bool(object_in(request, "stream_options").get("include_usage"))


@dataclass(slots=True)
class Pieces:
    """A text that comes in pieces."""

    texts: list[str] = field(default_factory=list)


class Indexed(dict[int, dict[str, Any]]):
    """A list whose items come in pieces."""


def whole(events: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError, and TypeError for a wrong type."""
    body: Body = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in (chunk for chunk in events if chunk != END_MARK):
        if chunk.get("error"):
            raise StreamError(chunk)
        # Azure sends chunks of a content filter, without an id and a model.
        body |= {name: value for name, value in chunk.items() if value not in (None, "")}
        for choice in objects(chunk.get("choices")):
            add(choices.setdefault(choice.get("index") or 0, {}), renamed(choice))
    has_reasons = all(choice.get("finish_reason") for choice in choices.values())
    # The end of a stream without an answer still states what it cost.
    is_ended = has_reasons or END_MARK in events if choices else "usage" in body
    if not is_ended:
        return None
    finished = [{"index": index, **with_defaults(joined(choices[index]))} for index in sorted(choices)]
    for message in (choice["message"] for choice in finished if "message" in choice):
        if not isinstance(message["content"], str | None):
            raise TypeError("the content is not text")
        if not is_list_of_objects(message.get("tool_calls") or []):
            raise TypeError("the tool calls are not a list")
    return {**body, "object": "chat.completion", "choices": finished}


def has_part(event: Event) -> bool:
    """Whether an event has a part of the answer; a whole message is none, as no client expects it."""
    return any(
        (isinstance(choice.get("delta"), dict) and choice.get("finish_reason"))
        or any(value for name, value in (choice.get("delta") or {}).items() if name != "role")
        for choice in objects(event.get("choices"))
    )


def renamed(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice with its `delta`, or the whole message of a server that cannot stream, as `message`."""
    rest = {name: value for name, value in choice.items() if name not in ("delta", "index")}
    message: Any = choice.get("delta") if choice.get("message") is None else choice["message"]
    parts: Any = message.get("content") if isinstance(message, dict) else None
    if is_list_of_objects(parts) and all(part.get("type") == "text" for part in parts):
        message = {**message, "content": "".join(part["text"] for part in parts)}
    return {**rest, "message": message}


def add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    """Add a part's fields: texts and lists get longer, anything else is replaced."""
    for name, value in part.items():
        if isinstance(value, str) and name not in WHOLE:
            whole.setdefault(name, Pieces()).texts.append(value)
        elif isinstance(value, dict):
            add(whole.setdefault(name, {}), value)
        elif isinstance(value, list):
            add_items(whole, name, value)
        elif value is not None and value != "":
            whole[name] = value


def add_items(whole: dict[str, Any], name: str, items: list[Any]) -> None:
    is_call = name == "tool_calls"
    if not all(isinstance(item, dict) and (is_call or item.get("index") is not None) for item in items):
        whole.setdefault(name, []).extend(items)
        return
    indexed = whole.setdefault(name, Indexed())
    for item in items:
        add(indexed.setdefault(place_of(indexed, item), {}), item)


def place_of(indexed: Indexed, item: dict[str, Any]) -> int:
    """Where a piece belongs: to the last item begun with its index, or without one to the last of all."""
    index = item.get("index")
    # Gemini's calls all have the same index.
    begun = (place for place, call in reversed(indexed.items()) if index in (None, call.get("index")))
    last = next(begun, None)
    if last is not None and not is_another(indexed[last], item):
        return last
    return max(indexed, default=-1) + 1 if index is None or index in indexed else int(index)


def is_another(call: dict[str, Any], item: dict[str, Any]) -> bool:
    """Whether the item begins another call: some servers state an id, or a name, in every piece of one."""
    is_named = bool(object_in(item, "function").get("name"))
    before, now = call.get("id"), item.get("id")
    # Without an index, a name begins a call unless the id says otherwise.
    return is_named and (before != now if before and now else item.get("index") is None)


def joined(value: Any) -> Any:
    if isinstance(value, Pieces):
        return "".join(value.texts)
    if isinstance(value, Indexed):
        return [joined(value[index]) for index in sorted(value)]
    if isinstance(value, dict):
        return {name: joined(item) for name, item in value.items()}
    return value


def with_defaults(choice: dict[str, Any]) -> dict[str, Any]:
    if "message" not in choice:
        return choice
    message = {"role": "assistant", "content": None, **choice["message"]}
    message |= thought_of(message)
    if isinstance(message.get("tool_calls"), list):
        message["tool_calls"] = list(map(whole_call, objects(message["tool_calls"])))
    # For servers that give none.
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {"finish_reason": reason, **choice, "message": message}


def thought_of(message: dict[str, Any]) -> dict[str, Any]:
    """The fields that set a thought apart from the text, where the server has not done so."""
    if message.get("reasoning_content"):
        return {}
    # OpenRouter's name, and Groq's.
    if isinstance(thought := message.get("reasoning"), str):
        return {"reasoning_content": thought}
    text = message["content"]
    found = THOUGHT.match(text) if isinstance(text, str) else None
    return {"reasoning_content": found[2], "content": found[3]} if found else {}


def whole_call(call: dict[str, Any]) -> dict[str, Any]:
    rest = {"type": "function", **call}
    # It says where a piece belongs, and a whole answer's calls have none.
    rest.pop("index", None)
    if rest["type"] == "function":
        rest["function"] = {**NO_CALL, **call.get("function", {})}
    return rest
