"""Checks that a restored snapshot leaves the kernel as its steps did, as far as shell steps change it."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel


class State(NamedTuple):
    """What `inside` reports. Code inside can have changed it: it is only compared."""

    kernel: str
    """A digest of what shell steps can change for Python."""
    processes: list[str]
    unsaved: list[Any]


@cache
def source() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def state_of(kernel: Kernel) -> State:
    """Facts that are the same in equivalent kernels. InfrastructureError if code inside has broken Python."""
    # The functions of `inside` get a scope of their own, so that nothing stays in the kernel.
    expression = f"(lambda scope: (exec({source()!r}, scope), scope['state']())[1])({{'__name__': 'inside'}})"
    try:
        return State(**json.loads(ast.literal_eval(kernel.evaluate(expression))))
    except (ValueError, SyntaxError, TypeError, RecursionError) as error:
        raise InfrastructureError(f"the kernel does not report its state: {error}") from None


def unsaved_change(before: State, after: State) -> str:
    """What the steps have left that a snapshot cannot contain; "" if nothing."""
    if before.processes != after.processes:
        return "it leaves processes running"
    if before.unsaved != after.unsaved:
        return "it writes where no files are saved: /dev/shm, /etc/hosts, /etc/resolv.conf"
    return ""
