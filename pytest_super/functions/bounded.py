"""Reads Python files that an agent or a model wrote, in a process with limits of memory and time: `main`.

Python's parser takes up to a thousand times the memory of a file, and a codec of the file's choice any time.
"""

import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest_super
from pytest_super.errors import InfrastructureError
from pytest_super.functions.acts import Act, Acts, acts
from pytest_super.functions.source import PythonSource, SourceError, definitions, find
from pytest_super.functions.splicing import Spliced, spliced

MEBIBYTE = 2**20
MEMORY = 512 * MEBIBYTE
# Of an original, which has to be read as well: files of Python's library take a third of it.
MEMORY_OF_A_BYTE = 1024
PROCESSOR_SECONDS = 10
# Twelve processes on a processor that all take their time.
WALL_SECONDS = 120
# Beyond twice the size of the original.
ROOM = 64 * 1024
# Last, so that nothing of ours or of our neighbours takes the place of a module of Python.
PROGRAM = """\
import sys
sys.path.append(sys.argv[1])
from pytest_super.functions.bounded import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""
READY = b"ready\n"
# The key of bytes in JSON.
LATIN = "latin-1"


def splice(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> Spliced:
    """Do as `splicing.spliced`, for an untrusted changed file. Raises SourceError and InfrastructureError."""
    refuse_too_large(name, len(original), len(changed))
    files = {"original": original, "changed": changed}
    return Spliced(**done(len(original), job="splice", name=name, targets=[*targets], **files))


def refuse_too_large(name: str, original: int, changed: int) -> None:
    """Raises SourceError for a size that no file is read with whose original has the other one."""
    if changed > (most := 2 * original + ROOM):
        bound = f"{most:,}, twice the original's and 64 KiB"
        raise SourceError(f"{name}: it has {changed:,} bytes, more than {bound}")


def function_texts(name: str, data: bytes, targets: Iterable[str]) -> list[str]:
    """The lines of functions. Raises SourceError and InfrastructureError."""
    found = done(len(data), job="functions", name=name, data=data, targets=[*targets])
    return [str(one) for one in found["texts"]]


def acts_of(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> Acts:
    """What a file does that its original does not. Raises SourceError and InfrastructureError."""
    files = {"original": original, "changed": changed}
    found = done(len(original), job="acts", name=name, targets=[*targets], **files)
    return Acts(*([Act(*one) for one in found[field]] for field in Acts._fields))


def compile_error(name: str, data: bytes) -> SyntaxError | None:
    """The error of this Python's compiler. Raises SourceError if it gives up, and InfrastructureError."""
    error = done(0, job="compile", name=name, data=data)["error"]
    if error is None:
        return None
    kind, message, line, text = error
    types = {"IndentationError": IndentationError, "TabError": TabError}
    return types.get(kind, SyntaxError)(message, (name, line, None, text))


def to_text(job: dict[str, Any]) -> str:
    """A job or its result as JSON."""
    return json.dumps(job, default=lambda data: {LATIN: data.decode("latin-1")})


def from_text(text: bytes) -> dict[str, Any]:
    """Raises ValueError."""
    found: dict[str, Any] = json.loads(
        text, object_hook=lambda one: one[LATIN].encode("latin-1") if LATIN in one else one
    )
    return found


def done(size: int, *, name: str, **job: Any) -> dict[str, Any]:
    """What a process makes of a job; `size` is what is trusted. Raises SourceError, InfrastructureError."""
    memory = MEMORY + size * MEMORY_OF_A_BYTE
    folder = str(Path(pytest_super.__file__).parent.parent)
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, folder, str(memory), str(PROCESSOR_SECONDS)]
    try:
        ran = subprocess.run(
            command,
            input=to_text({"name": name, **job}).encode(),
            capture_output=True,
            timeout=WALL_SECONDS,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{name}: it takes more than {WALL_SECONDS} s to read") from None
    except OSError as error:
        raise InfrastructureError(f"the process that reads {name} cannot start: {error}") from error
    if not ran.stdout.startswith(READY):
        last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InfrastructureError(f"the process that reads {name} did not start: {last or ran.returncode}")
    try:
        found = from_text(ran.stdout.removeprefix(READY))
    except ValueError:
        raise SourceError(
            f"{name}: it takes more than {PROCESSOR_SECONDS} s or {memory // MEBIBYTE} MiB to read"
        ) from None
    if "refused" in found:
        raise SourceError(str(found["refused"]))
    return found


def main(memory: int, seconds: int) -> None:
    """Do the job of one JSON object on standard input; its result is one on standard output, after READY."""
    job = from_text(sys.stdin.buffer.read())
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
    sys.stdout.write(to_text(result))


def limit(memory: int, seconds: int) -> None:
    bounds = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    for what, bound in bounds.items():
        hard = resource.getrlimit(what)[1]
        # The system can have lower limits, and macOS refuses one of memory.
        try:
            resource.setrlimit(what, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))
        except ValueError:
            continue


def functions_job(name: str, data: bytes, targets: Sequence[str]) -> dict[str, Any]:
    source = PythonSource.read(name, data)
    known = definitions(source)
    nodes = [find(source, one, known).node for one in targets]
    return {"texts": ["".join(source.lines[node.lineno - 1 : node.end_lineno]) for node in nodes]}


def compile_job(name: str, data: bytes) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    try:
        compile(data, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"error": [type(error).__name__, error.msg, error.lineno, error.text]}
    except ValueError as error:
        return {"error": ["SyntaxError", str(error), None, None]}
    return {"error": None}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "splice": lambda **job: spliced(**job)._asdict(),
    "functions": functions_job,
    "acts": lambda **job: acts(**job)._asdict(),
    "compile": compile_job,
}
