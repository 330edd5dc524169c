"""The protocols of the model door, by the paths of their requests."""

from pytest_super.model.protocols.chat import ChatCompletions
from pytest_super.model.protocols.messages import Messages
from pytest_super.model.protocols.protocol import WireProtocol
from pytest_super.model.protocols.responses import Responses

CHAT: WireProtocol = ChatCompletions()
MESSAGES: WireProtocol = Messages()
PROTOCOLS: dict[str, WireProtocol] = {each.path: each for each in (CHAT, Responses(), MESSAGES)}
