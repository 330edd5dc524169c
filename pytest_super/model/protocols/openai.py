"""What OpenAI's protocols have in common, and the tools of its chat completions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_super.model.protocols.protocol import Body, Site, WireProtocol, plain_error


class OpenAI(WireProtocol):
    models = "/v1/models"
    environment: ClassVar[Mapping[str, str]] = {
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_BASE": "{url}/v1",
        "OPENAI_API_KEY": "{key}",
    }
    provider = "openai"
    site = Site(
        base_url="https://api.openai.com/v1",
        base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        key_variables=("OPENAI_API_KEY",),
        # Who pays, for keys of several organizations.
        headers={
            "openai-organization": ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION"),
            "openai-project": ("OPENAI_PROJECT_ID",),
        },
        takes_parts=True,
    )

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"}

    def error(self, status: int, code: str, message: str) -> Body:  # noqa: ARG002
        return plain_error(code, message)

    def card(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": "pytest-super"}

    def model_list(self, card: dict[str, Any]) -> Body:
        return {"object": "list", "data": [card]}


def chat_function(name: Any, description: Any, parameters: Any, strict: Any = None) -> dict[str, Any]:
    """A tool of chat completions."""
    schema = parameters or {"type": "object", "properties": {}}
    function = {"name": name, "description": description or "", "parameters": schema}
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def chat_call(id: Any, name: Any, arguments: str) -> dict[str, Any]:
    """A call of a tool in a message of chat completions."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
