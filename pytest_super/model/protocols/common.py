"""The protocol that every other one is converted to, and that our own agents speak.

Apart from the registry, so that a worker whose agents are ours loads no other protocol.
"""

from pytest_super.model.protocols.chat import ChatCompletions
from pytest_super.model.protocols.protocol import WireProtocol

COMMON: WireProtocol = ChatCompletions()
