"""Anthropic's Messages (https://docs.anthropic.com/en/api/messages), which Claude Code speaks."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_super.json_values import is_list_of_objects, parts_in
from pytest_super.model.protocols.messages import conversion, stream
from pytest_super.model.protocols.protocol import (
    Body,
    Request,
    Site,
    Tokens,
    WireProtocol,
    count,
    detail,
    invalid,
)
from pytest_super.model.protocols.route import Route

NAMES = """
    messages system max_tokens metadata stop_sequences temperature top_k top_p thinking tools tool_choice
    context_management output_config output_format cache_control
"""
VERSION = "2023-06-01"
# Types of tools that the client runs itself, with the date of their version. Any other type is a tool of the
# provider: `web_search_…`, `bash_code_execution_…`, `mcp_toolset`, …
CLIENT_TOOLS = re.compile(
    r"custom|(bash|text_editor|computer|memory|tool_search_tool_(regex|bm25))(_\d{8})?", re.ASCII
)
# Sources of images and documents that are in the request itself.
SOURCES = ("base64", "text", "content")
STATUS_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
# Clients notice by these words that their prompt is too long.
TOO_LONG = "prompt is too long"


class Messages(WireProtocol):
    fields = frozenset(NAMES.split())
    name = "messages"
    refused: ClassVar[Mapping[str, str]] = {"container": "is not offered: it names a sandbox of the provider"}
    file_types = ("document",)
    before = ("message_start", "ping", "message")
    routes = (Route("/v1/messages"), Route("/v1/messages/count_tokens", is_count=True))
    models = "/v1/models"
    environment: ClassVar[Mapping[str, str]] = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
    key_header = "x-api-key"
    # It chooses features of the API.
    client_headers = ("anthropic-beta",)
    provider = "anthropic"
    site = Site(
        base_url="https://api.anthropic.com",
        base_variables=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        key_variables=("ANTHROPIC_API_KEY",),
    )
    said_in = "delta"
    harmless: ClassVar[Request] = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 16}
    replay = staticmethod(stream.replay)
    to_chat = staticmethod(conversion.to_chat)
    from_chat = staticmethod(conversion.from_chat)
    whole = staticmethod(stream.whole)
    usage_of = staticmethod(stream.usage_of)

    def address(self, base: str, model: str, *, is_stream: bool) -> str:  # noqa: ARG002
        return f"{base.removesuffix('/v1')}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, "x-api-key": key}

    def accepted(self, request: Request, *, is_open: bool) -> tuple[Request, list[str]]:
        result = self.seen(request)
        if not is_list_of_objects(request.get("messages")) or not request["messages"]:
            raise invalid("messages", "must be a list of at least one object")
        check_sources([request["messages"], request.get("system")])
        if is_open and request.get("mcp_servers"):
            result["mcp_servers"] = request["mcp_servers"]
        removed = [] if is_open else remove_hosted_tools(result)
        if not is_open and request.get("mcp_servers"):
            removed.append("mcp_servers")
        return result, removed

    def with_defaults(self, request: Request, parameters: Request) -> Request:
        names = {"max_tokens", "temperature", "top_p", "top_k", "thinking", "service_tier"}
        # A length is required; this is what litellm takes when nobody states one.
        return {"max_tokens": 4096} | {name: parameters[name] for name in names & set(parameters)} | request

    def said(self, body: Body, request: Request) -> dict[str, Any]:  # noqa: ARG002
        return conversion.turn(body["content"])

    def tokens(self, usage: Any) -> Tokens:
        cached = count(usage.get("cache_read_input_tokens"))
        written = count(usage.get("cache_creation_input_tokens"))
        prompt = count(usage.get("input_tokens")) + cached + written
        for_an_hour = detail(usage, "cache_creation", "ephemeral_1h_input_tokens")
        return Tokens(prompt, count(usage.get("output_tokens")), cached, written, for_an_hour)

    def error(self, status: int, code: str, message: str) -> Body:
        kind = STATUS_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
        text = f"{TOO_LONG}: {message}" if code == "context_length_exceeded" else message
        return {"type": "error", "error": {"type": kind, "message": text, "code": code}}

    def counted(self, tokens: int) -> Body:
        return {"input_tokens": tokens}

    def card(self, name: str) -> dict[str, Any]:
        return {"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}

    def model_list(self, card: dict[str, Any]) -> Body:
        return {"data": [card], "has_more": False, "first_id": card["id"], "last_id": card["id"]}


def check_sources(value: Any) -> None:
    """Raises ModelCallError, INVALID, if a part of the prompt has to be fetched."""
    # The input of a tool is data, whatever its fields are called.
    for part in parts_in(value, ("content", "source")):
        if part.get("type") == "container_upload":
            raise invalid("a container_upload", "is not offered: it names a file of the provider")
        source = part.get("source")
        if isinstance(source, dict) and source.get("type") not in SOURCES:
            raise invalid("a source", f"must be one of {', '.join(SOURCES)}; nothing is fetched for a model")


def remove_hosted_tools(request: Request) -> list[str]:
    """Remove from a request the tools that the provider would run; returns their types."""
    tools = request.pop("tools", [])
    kept = [tool for tool in tools if is_clients(tool)]
    if kept:
        request["tools"] = kept
    names = {tool.get("name") for tool in tools if not is_clients(tool)}
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and (not kept or choice.get("name") in names - {None}):
        del request["tool_choice"]
    return [str(tool.get("type")) for tool in tools if not is_clients(tool)]


def is_clients(tool: dict[str, Any]) -> bool:
    return CLIENT_TOOLS.fullmatch(str(tool.get("type") or "custom")) is not None
