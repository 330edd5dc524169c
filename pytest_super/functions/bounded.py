"""Reads Python files that an agent or a model wrote, in a process with limits of memory and time: `main`.

Python's parser takes up to a thousand times the memory of a file, and a codec of the file's choice any time.
"""

import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
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
# For each of these: twelve processes on a processor that all take their time.
WALL_SECONDS = 12
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
    return Spliced(**done(job="splice", name=name, original=original, changed=changed, targets=[*targets]))


def refuse_too_large(name: str, original: int, changed: int) -> None:
    """Raises SourceError for a size that no file is read with whose original has the other one."""
    if changed > (most := 2 * original + ROOM):
        bound = f"{most:,}, twice the original's and 64 KiB"
        raise SourceError(f"{name}: it has {changed:,} bytes, more than {bound}")


def function_texts(name: str, data: bytes, targets: Iterable[str]) -> list[str]:
    """The lines of functions. Raises SourceError and InfrastructureError."""
    found = done(job="functions", name=name, original=data, targets=[*targets])
    return [str(one) for one in found["texts"]]


def acts_of(files: Iterable[Mapping[str, Any]]) -> list[Acts | SourceError]:
    """What `acts.acts` finds by its arguments, or why it cannot. Raises InfrastructureError."""
    read = each_done([{"job": "acts", **one} for one in files])
    return [one if isinstance(one, SourceError) else to_acts(one) for one in read]


def to_acts(found: dict[str, Any]) -> Acts:
    return Acts(*([Act(*one) for one in found[kind]] for kind in Acts._fields))


def compile_error(name: str, data: bytes) -> SyntaxError | None:
    """The error of this Python's compiler. Raises SourceError if it gives up, and InfrastructureError."""
    error = done(job="compile", name=name, data=data)["error"]
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


def done(**job: Any) -> dict[str, Any]:
    """What a process makes of a job. Raises SourceError and InfrastructureError."""
    [found] = each_done([job])
    if isinstance(found, SourceError):
        raise found
    return found


def each_done(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any] | SourceError]:
    """What a process makes of each job, whose `original` is trusted, until one ends it.

    Raises InfrastructureError.
    """
    if not jobs:
        return []
    memory = MEMORY + max(len(job.get("original", b"")) for job in jobs) * MEMORY_OF_A_BYTE
    seconds = PROCESSOR_SECONDS + len(jobs) // 10
    # What follows the last end of a line is not whole.
    lines = printed(jobs, memory, seconds).removeprefix(READY).split(b"\n")[:-1]
    found = [SourceError(one["refused"]) if "refused" in one else one for one in map(from_text, lines)]
    why = f"it takes more than {seconds} s or {memory // MEBIBYTE} MiB to read"
    return found + [SourceError(f"{job['name']}: {why}") for job in jobs[len(found) :]]


def printed(jobs: Sequence[dict[str, Any]], memory: int, seconds: int) -> bytes:
    """Raises InfrastructureError."""
    folder = str(Path(pytest_super.__file__).parent.parent)
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, folder, str(memory), str(seconds)]
    lines = "".join(f"{to_text(job)}\n" for job in jobs).encode()
    try:
        ran = subprocess.run(
            command, input=lines, capture_output=True, timeout=WALL_SECONDS * seconds, cwd="/"
        )
    except subprocess.TimeoutExpired as error:
        return error.stdout or b""
    except OSError as error:
        raise InfrastructureError(f"the process that reads code cannot start: {error}") from error
    if not ran.stdout.startswith(READY):
        last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InfrastructureError(f"the process that reads code did not start: {last or ran.returncode}")
    return ran.stdout


def main(memory: int, seconds: int) -> None:
    """Do the jobs on the lines of standard input; each result is a line on standard output, after READY."""
    limit(memory, seconds)
    sys.stdout.write(READY.decode())
    for line in sys.stdin.buffer:
        sys.stdout.flush()
        job = from_text(line)
        try:
            result = JOBS[job.pop("job")](**job)
        except SourceError as error:
            result = {"refused": str(error)}
        # Whatever is wrong with a file is the doing of who wrote it.
        except Exception as error:
            result = {"refused": f"{job['name']}: it cannot be read: {type(error).__name__}: {error}"[:500]}
        print(to_text(result))


def limit(memory: int, seconds: int) -> None:
    bounds = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    for what, bound in bounds.items():
        hard = resource.getrlimit(what)[1]
        # The system can have lower limits, and macOS refuses one of memory.
        try:
            resource.setrlimit(what, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))
        except ValueError:
            continue


def functions_job(name: str, original: bytes, targets: Sequence[str]) -> dict[str, Any]:
    source = PythonSource.read(name, original)
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
