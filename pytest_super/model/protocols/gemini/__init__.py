"""Gemini's generateContent (https://ai.google.dev/api/generate-content), which Gemini CLI speaks."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_super.json_values import is_list_of_objects, objects, parts_in
from pytest_super.model.protocols.gemini import conversion, stream
from pytest_super.model.protocols.protocol import (
    Body,
    Request,
    Site,
    WireProtocol,
    count,
    data_event,
    invalid,
)
from pytest_super.model.protocols.route import Route

MODEL = "/v1beta/models/{model}"
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
}
# Google reads `system_instruction` and `systemInstruction` alike. The values of these are the client's own.
SCHEMAS = ("parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema")
FREE = frozenset(("args", "response", *SCHEMAS))
UNDERSCORE = re.compile(r"(?<=[a-z])_([a-z])")
# Tools that the client runs itself. Any other is the provider's: `googleSearch`, `codeExecution`, …
CLIENT_TOOLS = ("functionDeclarations", "computerUse")
# Types of data whose tokens can be measured.
MEASURED = ("image/", "text/")


class Gemini(WireProtocol):
    name = "generateContent"
    conversation = "contents"
    fields = frozenset(
        ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings")
    )
    refused: ClassVar[Mapping[str, str]] = {
        "cachedContent": "is not offered, because nothing is stored: send the whole prompt"
    }
    routes = (
        Route(f"{MODEL}:generateContent", is_stream=False),
        # Without it a stream is a JSON array, which hardly a client asks for.
        Route(f"{MODEL}:streamGenerateContent", query="alt=sse", is_stream=True),
        Route(f"{MODEL}:countTokens", is_count=True),
    )
    models = "/v1beta/models"
    environment: ClassVar[Mapping[str, str]] = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}
    key_header = "x-goog-api-key"
    model_field, usage_field = "modelVersion", "usageMetadata"
    provider = "gemini"
    site = Site(
        base_url="https://generativelanguage.googleapis.com",
        base_variables=("GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"),
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    )
    said_in = "candidates"
    harmless: ClassVar[Request] = {
        "contents": [{"role": "user", "parts": [{"text": "Say yes."}]}],
        "generationConfig": {"maxOutputTokens": 16},
    }
    with_defaults = staticmethod(conversion.with_defaults)
    to_chat = staticmethod(conversion.to_chat)
    from_chat = staticmethod(conversion.from_chat)
    said = staticmethod(conversion.said)
    has_part = staticmethod(stream.has_part)
    replay = staticmethod(stream.replay)
    written = staticmethod(data_event)
    whole = staticmethod(stream.whole)
    tokens = staticmethod(stream.tokens)

    def address(self, base: str, model: str, *, is_stream: bool) -> str:
        method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
        return f"{base.removesuffix('/v1beta')}{MODEL.format(model=model)}:{method}"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def content(self, request: Request, model: str, *, is_stream: bool) -> Request:  # noqa: ARG002
        return request

    def accepted(self, request: Request, *, is_open: bool) -> tuple[Request, list[str]]:
        given = canonical(request)
        # Clients that count state the whole request there.
        given = given.get("generateContentRequest") or given
        result = self.seen(given)
        if not is_list_of_objects(given.get("contents")) or not given["contents"]:
            raise invalid("contents", "must be a list of at least one object")
        prompt = [given["contents"], given.get("systemInstruction")]
        for part in parts_in(prompt, ("parts", "functionResponse")):
            if part.get("fileData"):
                raise invalid("fileData", "is not offered: send inlineData; nothing is fetched for a model")
        return result, [] if is_open else remove_hosted_tools(result)

    def has_files(self, request: Request) -> bool:
        parts = parts_in(request["contents"], ("parts", "functionResponse"))
        data = [found for part in parts for found in objects([part.get("inlineData")])]
        return not all(str(each.get("mimeType")).startswith(MEASURED) for each in data)

    def error(self, status: int, code: str, message: str) -> Body:
        kind = STATUSES.get(status, "INTERNAL")
        reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
        return {"error": {"code": status, "message": message, "status": kind, "details": [reason]}}

    def counted(self, tokens: int) -> Body:
        return {"totalTokens": count(tokens)}

    def card(self, name: str) -> dict[str, Any]:
        methods = ["generateContent", "countTokens"]
        return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}

    def model_list(self, card: dict[str, Any]) -> Body:
        return {"models": [card]}


def canonical(value: Any) -> Any:
    """The same with all names as `systemInstruction`."""
    if isinstance(value, list):
        return list(map(canonical, value))
    if not isinstance(value, dict):
        return value
    named = {UNDERSCORE.sub(lambda found: found[1].upper(), name): item for name, item in value.items()}
    return {name: item if name in FREE else canonical(item) for name, item in named.items()}


def remove_hosted_tools(request: Request) -> list[str]:
    """Remove from a request the tools that the provider would run; returns their names."""
    tools = request.pop("tools", [])
    kept = [{name: tool[name] for name in CLIENT_TOOLS if tool.get(name)} for tool in tools]
    if any(kept):
        request["tools"] = list(filter(None, kept))
    else:
        request.pop("toolConfig", None)
    return [name for tool in tools for name in tool if name not in CLIENT_TOOLS]
