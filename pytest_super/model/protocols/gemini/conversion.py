"""Gemini's requests and answers as chat completions, and back."""

import json
from collections.abc import Iterator
from typing import Any

from pytest_super.json_values import json_text, load_object, object_in, objects
from pytest_super.model.protocols.exchange import calls_in, refusal_in
from pytest_super.model.protocols.gemini.stream import parts_of
from pytest_super.model.protocols.openai import chat_call, chat_function
from pytest_super.model.protocols.protocol import Body, Request, Tokens, chat_tokens, text_of

# Fields of generationConfig with the same meaning, and their names in chat completions.
NAMES = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
    "candidateCount": "n",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


def to_chat(request: Request) -> Request:
    config = object_in(request, "generationConfig")
    chat = {other: config[name] for name, other in NAMES.items() if config.get(name) is not None}
    chat["messages"] = messages(request)
    declared = [each for tool in objects(request.get("tools")) for each in declarations(tool)]
    if declared:
        chat["tools"] = list(map(as_function, declared))
        chat |= choice(object_in(object_in(request, "toolConfig"), "functionCallingConfig"))
    if level := object_in(config, "thinkingConfig").get("thinkingLevel"):
        chat["reasoning_effort"] = str(level).lower()
    if config.get("responseMimeType") == "application/json":
        chat["response_format"] = response_format(config)
    return chat


def declarations(tool: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(tool.get("functionDeclarations"))


def as_function(declared: dict[str, Any]) -> dict[str, Any]:
    schema = declared.get("parametersJsonSchema") or json_schema(declared.get("parameters"))
    return chat_function(declared.get("name"), declared.get("description"), schema)


def json_schema(schema: Any) -> Any:
    """Google's own schemas have the types of JSON schemas in capitals."""
    if isinstance(schema, list):
        return list(map(json_schema, schema))
    if not isinstance(schema, dict):
        return schema
    result = {name: json_schema(item) for name, item in schema.items()}
    for name in ("enum", "default", "example", "required"):
        if name in schema:
            result[name] = schema[name]
    # A property can have this name, too.
    if isinstance(schema.get("type"), str):
        result["type"] = schema["type"].lower()
    return result


def choice(config: dict[str, Any]) -> dict[str, Any]:
    names = config.get("allowedFunctionNames") or []
    if config.get("mode") == "ANY" and len(names) == 1:
        return {"tool_choice": {"type": "function", "function": {"name": names[0]}}}
    return {"tool_choice": CHOICES[config["mode"]]} if config.get("mode") in CHOICES else {}


def response_format(config: dict[str, Any]) -> dict[str, Any]:
    schema = config.get("responseJsonSchema") or json_schema(config.get("responseSchema"))
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def with_defaults(request: Request, parameters: Request) -> Request:
    """The request; where it is silent, with the user's parameters."""
    length = parameters.get("max_completion_tokens")
    given = {**parameters} if length is None else {**parameters, "max_tokens": length}
    users = {name: given[other] for name, other in NAMES.items() if given.get(other) is not None}
    if isinstance(users.get("stopSequences"), str):
        users["stopSequences"] = [users["stopSequences"]]
    if effort := parameters.get("reasoning_effort"):
        users["thinkingConfig"] = {"thinkingLevel": effort}
    config = users | object_in(request, "generationConfig")
    return {**request, "generationConfig": config} if config else request


# The conversation


class Ids:
    """The ids of calls and of their results, by their place: Google's own answers have none."""

    def __init__(self, before: int = 0) -> None:
        """`before`: the calls before."""
        self._number = before
        # Their names, the ids that the client gives them, and ours.
        self._open: list[tuple[str, str, str]] = []

    def of_call(self, call: dict[str, Any]) -> str:
        self._number += 1
        self._open.append((text_of(call.get("name")), text_of(call.get("id")), f"call_{self._number}"))
        return self._open[-1][2]

    def of_result(self, result: dict[str, Any]) -> str:
        """The id of its call, found by the client's id, else by its name."""
        name, id = text_of(result.get("name")), text_of(result.get("id"))
        found = next((each for each in self._open if id and each[1] == id), None)
        found = found or next((each for each in self._open if each[0] == name), None)
        if found is None:
            return id or name
        self._open.remove(found)
        return found[2]


def messages(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if told := text_of(object_in(request, "systemInstruction").get("parts")):
        found.append({"role": "system", "content": told})
    ids = Ids()
    for content in request["contents"]:
        parts = objects(content.get("parts"))
        found += [turn(parts, ids)] if content.get("role") == "model" else list(answers(parts, ids))
    return found


def answers(parts: list[dict[str, Any]], ids: Ids) -> Iterator[dict[str, Any]]:
    """The messages of a user's turn: the results of tools, then what the user says."""
    results = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)]
    for result in results:
        yield {"role": "tool", "tool_call_id": ids.of_result(result), "content": result_text(result)}
    # A message of a tool has text alone.
    images = [image for each in results for image in images_in(objects(each.get("parts")))]
    images += images_in(parts)
    said = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if images:
        yield {"role": "user", "content": [*({"type": "text", "text": text} for text in said), *images]}
    elif said or not results:
        yield {"role": "user", "content": "\n".join(said)}


def result_text(result: dict[str, Any]) -> str:
    response = result.get("response")
    if isinstance(response, dict) and len(response) == 1:
        ((name, value),) = response.items()
        if name in ("output", "result"):
            return json_text(value)
        if name == "error":
            return f"[error] {json_text(value)}"
    return json_text(response)


def images_in(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    data = [found for part in parts for found in objects([part.get("inlineData")])]
    urls = [f"data:{each.get('mimeType')};base64,{each.get('data')}" for each in data]
    return [{"type": "image_url", "image_url": {"url": url}} for url in urls if url.startswith("data:image/")]


def turn(parts: list[dict[str, Any]], ids: Ids) -> dict[str, Any]:
    """The message of a turn of the model. Its text comes in pieces."""
    texts = [part for part in parts if isinstance(part.get("text"), str)]
    text = "".join(part["text"] for part in texts if not part.get("thought"))
    thoughts = [part for part in texts if part.get("thought")]
    calls = [tool_call(call, ids) for part in parts if isinstance(call := part.get("functionCall"), dict)]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thoughts:
        message["reasoning_content"] = "".join(part["text"] for part in thoughts)
    if signed := [part for part in thoughts if isinstance(part.get("thoughtSignature"), str)]:
        message["thinking_blocks"] = [
            {"type": "thinking", "thinking": part["text"], "signature": part["thoughtSignature"]}
            for part in signed
        ]
    return message | ({"tool_calls": calls} if calls else {})


def tool_call(call: dict[str, Any], ids: Ids) -> dict[str, Any]:
    return chat_call(ids.of_call(call), text_of(call.get("name")), json.dumps(call.get("args") or {}))


def said(body: Body, request: Request) -> dict[str, Any]:
    before = [part for content in request["contents"] for part in parts_of({"content": content})]
    ids = Ids(sum("functionCall" in part for part in before))
    parts = [part for candidate in objects(body.get("candidates"))[:1] for part in parts_of(candidate)]
    return turn(parts, ids)


# The answer


def from_chat(body: Body, request: Request) -> Body:  # noqa: ARG001
    return {
        "candidates": [candidate(choice, index) for index, choice in enumerate(body["choices"])],
        "usageMetadata": usage(chat_tokens(object_in(body, "usage"))),
        "modelVersion": body.get("model"),
        "responseId": body.get("id"),
    }


def candidate(choice: dict[str, Any], index: int) -> dict[str, Any]:
    content = {"role": "model", "parts": answer_parts(choice["message"])}
    reason = REASONS.get(str(choice.get("finish_reason")), "STOP")
    return {"content": content, "finishReason": reason, "index": index}


def answer_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    parts = list(thought_parts(message))
    for text in filter(None, (text_of(message.get("content")), refusal_in(message))):
        parts.append({"text": text})
    for call in calls_in(message):
        called = {"id": text_of(call["id"]), "name": call["name"], "args": load_object(call["arguments"])}
        parts.append({"functionCall": called})
    return parts


def thought_parts(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    blocks = [each for each in objects(message.get("thinking_blocks")) if each.get("type") == "thinking"]
    for block in blocks:
        part = {"text": text_of(block.get("thinking")), "thought": True}
        signature = text_of(block.get("signature"))
        yield part | ({"thoughtSignature": signature} if signature else {})
    if not blocks and (thought := text_of(message.get("reasoning_content"))):
        yield {"text": thought, "thought": True}


def usage(used: Tokens) -> dict[str, Any]:
    thought = min(used.completion, used.thought)
    return {
        "promptTokenCount": used.prompt,
        "cachedContentTokenCount": used.cached,
        "candidatesTokenCount": used.completion - thought,
        "thoughtsTokenCount": thought,
        "totalTokenCount": used.prompt + used.completion,
    }
