"""What one call of a program says about its agent, whatever the protocol: steps are made of it."""

import hashlib
import json
from typing import Any

from pytest_super.json_values import json_text, object_in, objects
from pytest_super.model.protocols.protocol import text_of
from pytest_super.words import clipped

# Characters of a text that are kept, as of an observation.
LONGEST = 50_000


def exchange(messages: list[dict[str, Any]], said: dict[str, Any]) -> dict[str, Any]:
    """What the model `said` to the messages of a chat completion, in plain JSON values.

    `thread` names the conversation by its beginning. `results` are what tools have printed since the model's
    last turn, by the ids of their calls.
    """
    return {
        "thread": thread_of(messages),
        "results": results_in(messages),
        "thought": clipped(text_of(said.get("reasoning_content")), LONGEST),
        "text": clipped(text_of(said.get("content")) or refusal_in(said), LONGEST),
        "tool_calls": [
            {name: clipped(str(value), LONGEST) for name, value in call.items()} for call in calls_in(said)
        ],
    }


def thread_of(messages: list[dict[str, Any]]) -> str:
    """A digest of all that comes before the model's first turn: it stays while a conversation grows."""
    begin = next((n for n, each in enumerate(messages) if each.get("role") == "assistant"), len(messages))
    said = json.dumps([text_of(each.get("content")) for each in messages[:begin]])
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def results_in(messages: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for message in reversed(messages):
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            found[str(message.get("tool_call_id"))] = clipped(text_of(message.get("content")), LONGEST)
    return dict(reversed(found.items()))


# The message of a model: providers differ in what its fields are


def refusal_in(message: dict[str, Any]) -> str:
    return text_of(message.get("refusal"))


def calls_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The `id`, `name` and `arguments` of each call; the arguments are JSON text."""
    return [call_of(call) for call in objects(message.get("tool_calls"))]


def call_of(call: dict[str, Any]) -> dict[str, Any]:
    function = object_in(call, "function")
    arguments = function.get("arguments")
    arguments = "{}" if arguments in (None, "") else json_text(arguments)
    return {"id": call.get("id"), "name": text_of(function.get("name")), "arguments": arguments}
