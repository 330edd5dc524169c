"""Which of several engines a sandbox starts on: the one with the fewest of ours for each processor.

They are counted by slots and not by the engines, because many workers choose in the same moment. So only
sandboxes of this user's processes on this machine count.
"""

from __future__ import annotations

import heapq
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_super.digests import digest
from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker.engine import connect, engine_errors, gone
from pytest_super.kernel.providers.docker.start_slots import open_slot, take

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_super.tasks.sandbox_spec import SandboxSpec


@contextmanager
def place_on(engines: Sequence[str], spec: SandboxSpec) -> Iterator[str]:
    """The engine for a sandbox, which counts there until the context ends. Raises EngineError and OSError."""
    if not engines:
        yield ""
        return
    for engine, number in places(processors(answering(engines), spec)):
        with open_slot(f"on-{digest(engine)[:12]}", number) as file:
            if take(file):
                yield engine
                return


def places(processors: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The places on all engines without end, the one with the most room first."""
    for _, engine, number in heapq.merge(*(fillings(*one) for one in processors.items())):
        yield engine, number


def fillings(engine: str, size: int) -> Iterator[tuple[float, str, int]]:
    """How full the engine is, by processor, when a place there is taken."""
    for number in count():
        yield (number + 1) / size, engine, number


def processors(found: Mapping[str, dict[str, Any]], spec: SandboxSpec) -> dict[str, int]:
    """The processors of the engines that have what the task needs, or of all if none has."""
    fitting = {
        engine: info
        for engine, info in found.items()
        if info["NCPU"] >= (spec.cpus or 0) and (has_gpus(info) or not spec.gpus)
    }
    return {engine: info["NCPU"] for engine, info in (fitting or found).items()}


def answering(engines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each engine says about itself, without those that do not answer. EngineError if none does."""
    found = {}
    for engine in engines:
        try:
            found[engine] = info_of(engine)
        except EngineError as error:
            gone[engine] = error
    if not found:
        raise EngineError("; ".join(str(gone[engine]) for engine in engines), is_final=True)
    return found


def info_of(engine: str) -> dict[str, Any]:
    with engine_errors("say what it has", engine):
        info: dict[str, Any] = connect(engine).info()
        return info


def one_has_gpus(engines: Sequence[str]) -> bool:
    return any(map(has_gpus, answering(engines).values() if engines else [info_of("")]))


def has_gpus(info: Mapping[str, Any]) -> bool:
    """Whether the engine has the runtime for GPUs in containers."""
    return "nvidia" in (info.get("Runtimes") or {})
