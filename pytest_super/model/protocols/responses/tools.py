"""The tools of Responses as functions of chat completions, and their calls in both."""

import json
from typing import Any

from pytest_super.json_values import is_list_of_objects, json_text, load_object, object_in, objects
from pytest_super.model.protocols.openai import chat_call, chat_function
from pytest_super.model.protocols.protocol import Request

Tools = dict[str, dict[str, Any]]

# A tool with free text as its input becomes a function with this one parameter.
FREE_TEXT = "input"
# The type of the tool by which a model finds more tools of its client, and the name of its function.
SEARCH = "tool_search"
# Items of the conversation that add tools: those that a client offers there, and those that it found.
HOLDERS = ("additional_tools", "tool_search_output")


def tools_by_name(request: Request) -> Tools:
    """All tools of a request, under the names of their functions."""
    found = named(request.get("tools"))
    for item in objects(request.get("input")):
        if item.get("type") in HOLDERS:
            found |= named(item.get("tools"))
    return found


def named(tools: Any) -> Tools:
    """The tools of a list; those of a namespace are named after both."""
    found: Tools = {}
    for tool in tools if is_list_of_objects(tools) else []:
        if tool.get("type") == "namespace":
            space, inner = tool.get("name"), objects(tool.get("tools"))
            found |= {f"{space}__{each.get('name')}": {**each, "namespace": space} for each in inner}
        else:
            found[str(tool.get("name") or tool.get("type"))] = tool
    return found


def found_names(item: dict[str, Any]) -> str:
    """What a model is told that its search has found: the functions are offered with the next request."""
    names = ", ".join(named(item.get("tools")))
    return f"Functions that you can call now: {names}" if names else "No tools were found."


def as_function(tool: dict[str, Any], name: str) -> dict[str, Any]:
    parameters, description = tool.get("parameters"), str(tool.get("description") or "")
    if tool.get("type") == "custom":
        properties = {FREE_TEXT: {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": [FREE_TEXT]}
        if grammar := object_in(tool, "format").get("definition"):
            description = f"{description}\n\nThe input follows this grammar:\n{grammar}"
    return chat_function(name, description, parameters, tool.get("strict"))


def tool_call(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "tool_search_call":
        return chat_call(item.get("call_id"), SEARCH, json_text(item.get("arguments") or {}))
    name = str(item.get("name"))
    name = f"{item['namespace']}__{name}" if item.get("namespace") else name
    is_free = item["type"] == "custom_tool_call"
    arguments = json.dumps({FREE_TEXT: item.get("input")}) if is_free else item.get("arguments")
    return chat_call(item.get("call_id"), name, arguments or "{}")


def call_item(call: dict[str, Any], name: str, tools: Tools) -> dict[str, Any]:
    tool, arguments = tools.get(call["name"], {}), call["arguments"]
    if tool.get("type") == SEARCH:
        item = {"id": name, "call_id": call["id"], "execution": "client"}
        return {"type": "tool_search_call", **item, "arguments": load_object(arguments)}
    item = {"id": name, "call_id": call["id"], "name": tool.get("name") or call["name"]}
    if tool.get("namespace"):
        item["namespace"] = tool["namespace"]
    if tool.get("type") == "custom":
        given = load_object(arguments).get(FREE_TEXT, arguments)
        return {"type": "custom_tool_call", **item, "input": json_text(given)}
    return {"type": "function_call", **item, "arguments": arguments}
