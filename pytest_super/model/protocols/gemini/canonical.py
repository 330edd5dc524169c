"""A request of Gemini in one spelling, and what of it a provider may see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.protocol import invalid, objects, parts_in

if TYPE_CHECKING:
    from pytest_super.model.protocols.protocol import Request

# Google reads `system_instruction` and `systemInstruction` alike. The values of these are the client's own.
SCHEMAS = ("parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema")
FREE = frozenset(("args", "response", *SCHEMAS))
UNDERSCORE = re.compile(r"(?<=[a-z])_([a-z])")
# Tools that the client runs itself. Any other is the provider's: `googleSearch`, `codeExecution`, …
CLIENT_TOOLS = ("functionDeclarations", "computerUse")
# Types of data whose tokens can be measured.
MEASURED = ("image/", "text/")


def canonical(value: Any) -> Any:
    """The same with all names as `systemInstruction`."""
    if isinstance(value, list):
        return list(map(canonical, value))
    if not isinstance(value, dict):
        return value
    named = {UNDERSCORE.sub(lambda found: found[1].upper(), name): item for name, item in value.items()}
    return {name: item if name in FREE else canonical(item) for name, item in named.items()}


def check_parts(contents: Any) -> None:
    """Raises ModelCallError, INVALID, if a part of the prompt has to be fetched."""
    for part in parts_in(contents, ("parts", "functionResponse")):
        if part.get("fileData"):
            raise invalid("fileData", "is not offered: send inlineData; nothing is fetched for a model")


def remove_hosted_tools(request: Request) -> list[str]:
    """Remove from a request the tools that the provider would run; returns their names."""
    tools = request.pop("tools", [])
    kept = [{name: tool[name] for name in CLIENT_TOOLS if tool.get(name)} for tool in tools]
    if any(kept):
        request["tools"] = list(filter(None, kept))
    else:
        request.pop("toolConfig", None)
    return [name for tool in tools for name in tool if name not in CLIENT_TOOLS]


def has_files(request: Request) -> bool:
    """Whether the prompt has data whose tokens nothing bounds, such as a video."""
    parts = parts_in(request["contents"], ("parts", "functionResponse"))
    data = [found for part in parts for found in objects([part.get("inlineData")])]
    return not all(str(each.get("mimeType")).startswith(MEASURED) for each in data)
