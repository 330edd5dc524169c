"""What a kernel is, as far as it can be told without changing it: the same in two kernels that are alike."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel

State = dict[str, Any]
EXIT_CODE, MODULES, PROCESSES, ELSEWHERE = "exit code", "modules", "processes", "elsewhere"
# They say nothing of another kernel.
OF_ONE_KERNEL = (MODULES, ELSEWHERE)


@cache
def source() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def call(kernel: Kernel, expression: str) -> str:
    """Its value, where the functions of `inside` have their names; nothing stays in the kernel."""
    scope = "{'shell': get_ipython(), '__name__': 'inside'}"
    return kernel.evaluate(
        f"(lambda scope: (exec({source()!r}, scope), eval({expression!r}, scope))[1])({scope})"
    )


def skip_cell(kernel: Kernel, source: str) -> None:
    """Raises InfrastructureError."""
    call(kernel, f"skip(shell, {source!r})")


def set_exit_code(kernel: Kernel, state: dict[str, str]) -> None:
    """That of the last shell line, as a cell sees it. Raises InfrastructureError."""
    call(kernel, f"set_exit_code(shell, {json.loads(state[EXIT_CODE])!r})")


def state_of(kernel: Kernel) -> State:
    """Raises InfrastructureError: code inside can have broken what tells it."""
    try:
        state = json.loads(ast.literal_eval(call(kernel, "state(shell.user_ns)")))
    except (ValueError, SyntaxError, TypeError, RecursionError) as error:
        raise InfrastructureError(f"the kernel does not tell its state: {error}") from None
    if not isinstance(state, dict):
        raise InfrastructureError("the kernel does not tell its state")
    return state


def digests(state: State) -> dict[str, str]:
    """Of all that must be the same in another kernel; the exit code is told whole."""
    parts = {part: json.dumps(state[part], sort_keys=True) for part in state if part not in OF_ONE_KERNEL}
    short = {part: hashlib.sha256(text.encode()).hexdigest()[:16] for part, text in parts.items()}
    return short | {EXIT_CODE: parts[EXIT_CODE]}


def difference(some: dict[str, str], others: dict[str, str]) -> str:
    """The parts in which digests differ; empty when there are none."""
    parts = sorted(some.keys() | others.keys())
    return ", ".join(part for part in parts if some.get(part) != others.get(part))


def trouble(before: State, after: State) -> str:
    """Why no new kernel would be like one in which steps were run; empty when nothing speaks against it.

    Processes end with their sandbox; and of a module whose file was overwritten, what is loaded here is not
    what would be loaded there.
    """
    if before.get(PROCESSES) != after.get(PROCESSES):
        return "it leaves processes running"
    if before.get(ELSEWHERE) != after.get(ELSEWHERE):
        return "it writes where no files are saved: /dev/shm, /etc/hosts, /etc/resolv.conf"
    later = after.get(MODULES, {})
    stamps = before.get(MODULES, {}).items()
    overwritten = sorted(name for name, stamp in stamps if later.get(name, stamp) != stamp)
    return f"it overwrites modules that are loaded: {', '.join(overwritten[:5])}" if overwritten else ""
