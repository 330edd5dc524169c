"""Runs in the process that `bounded` starts: reads files that an agent or a model wrote, within limits."""

from __future__ import annotations

import json
import resource
import sys
import warnings
from typing import TYPE_CHECKING, Any

from pytest_super.functions.definitions import definitions, find
from pytest_super.functions.source import PythonSource, SourceError
from pytest_super.functions.splicing import spliced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

READY = b"ready\n"


def main(memory: int, seconds: int) -> None:
    """Do the job of one JSON object on standard input; its result is one on standard output, after READY."""
    job = json.load(sys.stdin)
    limit(memory, seconds)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    try:
        result = JOBS[job.pop("job")](**job)
    except SourceError as error:
        result = {"refused": str(error)}
    # Whatever is wrong with a file is the doing of who wrote it.
    except Exception as error:
        result = {"refused": f"{job['name']}: it cannot be read: {type(error).__name__}: {error}"[:500]}
    sys.stdout.write(json.dumps(result))


def limit(memory: int, seconds: int) -> None:
    bounds = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    for what, bound in bounds.items():
        hard = resource.getrlimit(what)[1]
        # The system can have lower limits, and macOS refuses one of memory.
        try:
            resource.setrlimit(what, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))
        except ValueError:
            continue


def splice(name: str, original: str, changed: str, targets: Sequence[str]) -> dict[str, Any]:
    found = spliced(name, original.encode("latin-1"), changed.encode("latin-1"), targets)
    return {**found._asdict(), "data": found.data.decode("latin-1")}


def functions(name: str, data: str, targets: Sequence[str]) -> dict[str, Any]:
    source = PythonSource.read(name, data.encode("latin-1"))
    known = definitions(source)
    nodes = [find(source, one, known).node for one in targets]
    return {"texts": ["".join(source.lines[node.lineno - 1 : node.end_lineno]) for node in nodes]}


def compile_error(name: str, data: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    try:
        compile(data.encode("latin-1"), name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"error": [type(error).__name__, error.msg, error.lineno, error.text]}
    except ValueError as error:
        return {"error": ["SyntaxError", str(error), None, None]}
    return {"error": None}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "splice": splice,
    "functions": functions,
    "compile": compile_error,
}
