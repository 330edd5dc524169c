"""The gateway as a worker on another machine has it, over a connection of execnet within this process."""

import os
from typing import Any

from execnet.gateway_base import BaseGateway, Popen2IO, get_execmodel

from pytest_super.model.gateway_process import Gateway
from pytest_super.model.relay import Relay, RelayedGateway


def relayed(gateway: Gateway) -> RelayedGateway:
    """The connection lasts as long as this process."""
    controller, worker = connected()
    channel = Relay(controller, lambda: gateway).channel
    return RelayedGateway(gateway.settings, worker._channelfactory.new(channel.id))


def connected() -> tuple[Any, Any]:
    """Both ends."""
    (first_in, second_out), (second_in, first_out) = os.pipe(), os.pipe()
    ends = []
    for number, (reader, writer) in enumerate([(first_in, first_out), (second_in, second_out)], 1):
        io: Any = Popen2IO(open(writer, "wb"), open(reader, "rb"), get_execmodel("thread"))  # noqa: SIM115
        ends.append(BaseGateway(io, f"end-{number}", _startcount=number))
        ends[-1]._initreceive()
    return ends[0], ends[1]
