"""Checks that a restored snapshot leaves the kernel as its steps did, as far as shell steps change it."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel

State = dict[str, Any]
KERNEL, PROCESSES, UNSAVED = "kernel", "processes", "unsaved files"


@cache
def source() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def state_of(kernel: Kernel) -> State:
    """Facts that are the same in equivalent kernels. InfrastructureError if code inside has broken Python."""
    # The functions of `inside` get a scope of their own, so that nothing stays in the kernel.
    expression = f"(lambda scope: (exec({source()!r}, scope), scope['state']())[1])({{'__name__': 'inside'}})"
    try:
        state = json.loads(ast.literal_eval(kernel.evaluate(expression)))
    except (ValueError, SyntaxError, TypeError, RecursionError) as error:
        raise InfrastructureError(f"the kernel does not report its state: {error}") from None
    if not isinstance(state, dict):
        raise InfrastructureError("the kernel does not report its state")
    return state


def unsaved_change(before: State, after: State) -> str:
    """What the steps have left that a snapshot cannot contain; "" if nothing."""
    if before.get(PROCESSES) != after.get(PROCESSES):
        return "it leaves processes running"
    if before.get(UNSAVED) != after.get(UNSAVED):
        return "it writes where no files are saved: /dev/shm, /etc/hosts, /etc/resolv.conf"
    return ""
