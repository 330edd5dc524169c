"""What a snapshot saves: the files that a container has written, to be put into new containers.

A snapshot is an archive and not an image: a container cannot rename a folder of its image, an image cuts
times to seconds, and the files of an image do not count for the disk limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.attach import start_program
from pytest_super.kernel.providers.docker.engine import connect, engine_errors, tar_of

if TYPE_CHECKING:
    from docker import APIClient

# Files in the root of the container: the paths to save, and the paths that the steps have removed.
LISTED, REMOVED = ".pytest-super-listed", ".pytest-super-removed"
# The engine's number for a removed path.
DELETED = 2
PIECE = 2**20
# How long a program can run after its output has ended.
END_SECONDS = 5.0
# The list names every path, some with newlines or a leading dash. Only `posix` keeps fractions of a second.
PACK = ("tar", "--create", "--format=posix", "--no-recursion", "--null", "--verbatim-files-from")
# Runs before the bridge. Python and not a shell, which would add variables to the environment.
UNPACK = """
import os, sys
from shutil import rmtree
listed, command = sys.argv[1], sys.argv[2:]
if os.path.exists(listed):
    with open(listed, "rb") as file:
        paths = [path for path in file.read().split(b"\\0") if path]
    for path in [*paths, os.fsencode(listed)]:
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)
os.execvp(command[0], command)
"""


def save_changes(container: str, archive: Path, but: str, most: int) -> None:
    """Save the written files in `archive`, without the folder `but`. No cell can run meanwhile.

    Raises OSError, and InfrastructureError also if they have more than `most` bytes: a hole in a file takes
    no room in the container, but would in the archive.
    """
    api = connect()
    with engine_errors("list what a container has written"):
        if any(mount.get("RW") for mount in api.inspect_container(container)["Mounts"]):
            raise InfrastructureError("the image has volumes, and the engine does not list their files")
        changes = api.diff(container) or []
    paths = {change["Path"]: change["Kind"] for change in changes}
    kept = [path for path in paths if path != "/" and not f"{path}/".startswith(f"/{but}/")]
    written = [path[1:] for path in kept if paths[path] != DELETED]
    removed = [path for path in kept if paths[path] == DELETED]
    # REMOVED is itself saved: the container that starts from the archive removes these paths.
    lists = {LISTED: zeroed([*written, REMOVED]), REMOVED: zeroed(removed)}
    with engine_errors("put files into a container"):
        api.put_archive(container, "/", tar_of(lists))
    try:
        with archive.open("wb") as file:
            run(container, [*PACK, "--directory=/", f"--files-from=/{LISTED}"], bounded(file.write, most))
    finally:
        run(container, ["rm", "-f", f"/{LISTED}", f"/{REMOVED}"])


def bounded(write: Callable[[bytes], object], most: int) -> Callable[[bytes], object]:
    """Like `write`, which gets at most `most` bytes in total. Raises InfrastructureError before more."""
    left = most

    def take(data: bytes) -> None:
        nonlocal left
        left -= len(data)
        if left < 0:
            raise InfrastructureError(f"the files have more than {most} bytes")
        write(data)

    return take


def zeroed(paths: Sequence[str]) -> bytes:
    return b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)


def run(container: str, command: Sequence[str], take: Callable[[bytes], object] = len) -> None:
    """Run a program in the container and pass its output to `take`. InfrastructureError if it fails."""
    api = connect()
    with engine_errors("run a program in a container"):
        program = api.exec_create(container, list(command), user="0:0")["Id"]
        with closing(start_program(api, program)) as stream:
            while output := stream.read(PIECE):
                take(output)
        code = exit_code(api, program)
    if code != 0:
        words = stream.stderr.decode(errors="replace").strip()[-500:]
        raise InfrastructureError(f"{command[0]} ended with {code}: {words}")


def exit_code(api: APIClient, program: str) -> int | None:
    """The exit code of a program whose output has ended; None if the program still runs."""
    deadline = time.monotonic() + END_SECONDS
    while (found := api.exec_inspect(program))["Running"] and time.monotonic() < deadline:
        time.sleep(0.02)
    return None if found["Running"] else found["ExitCode"]


def put_changes(container: str, archive: Path) -> None:
    """Put saved files into a container that has not started. Raises InfrastructureError and OSError."""
    with archive.open("rb") as file, engine_errors("put files into a container"):
        connect().put_archive(container, "/", file)


def command_after(command: Sequence[str]) -> list[str]:
    """The command of a container with saved files: first remove the paths that the steps removed."""
    # Isolated and without `site`, so that nothing that the steps have installed runs here.
    return ["python3", "-I", "-S", "-c", UNPACK, f"/{REMOVED}", *command]
