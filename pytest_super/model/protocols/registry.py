"""The protocols of the model door, and what they offer together."""

from typing import Any

from pytest_super.model.protocols.common import COMMON
from pytest_super.model.protocols.gemini import Gemini
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.protocols.protocol import Body, WireProtocol
from pytest_super.model.protocols.responses import Responses
from pytest_super.model.protocols.route import Route

PROTOCOLS: tuple[WireProtocol, ...] = (COMMON, Responses(), Messages(), Gemini())
ROUTES: dict[Route, WireProtocol] = {route: each for each in PROTOCOLS for route in each.routes}
FOLDERS = tuple(sorted({f"/{route.path.split('/')[1]}/" for route in ROUTES}))
"""The beginnings of all paths."""
CLIENT_HEADERS = tuple(name for each in PROTOCOLS for name in each.client_headers)
KEY_HEADERS = tuple(each.key_header for each in PROTOCOLS if each.key_header)
OFFERED = f"POST {', '.join(str(route) for route in ROUTES if not route.is_count)}, and GET {COMMON.models}"


def route_of(path: str) -> Route | None:
    """The route of a POST to this path, which has its query."""
    return next((route for route in ROUTES if route.leads(path)), None)


def environment(url: str, key: str) -> dict[str, str]:
    """The variables by which clients of any protocol find the model door at this address."""
    given = {name: value for each in PROTOCOLS for name, value in each.environment.items()}
    return {name: value.format(url=url, key=key) for name, value in given.items()}


def models_at(path: str, name: str) -> Body | None:
    """The answer to GET for the list of models or any of them; None if the path is another."""
    card: dict[str, Any] = {}
    listed: Body = {}
    for each in PROTOCOLS:
        if f"{path}/".startswith(f"{each.models}/"):
            card |= each.card(path.removeprefix(each.models)[1:] or name)
    for each in PROTOCOLS:
        if path == each.models:
            listed |= each.model_list(card)
    return listed or card or None
