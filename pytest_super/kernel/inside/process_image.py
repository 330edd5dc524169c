"""What /proc tells about one process: its arguments, the files that they name, its exit status.

Delivered into the sandbox.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

from pytest_super.kernel.inside import processes

# How much is read.
MOST_ARGUMENTS = 64
LONGEST_ARGUMENTS = 4096
LONGEST_ENVIRONMENT = 2**20
LONGEST_EXECUTABLE = 2**28
LONGEST_TABLE = 2**16
LARGEST_FILE = 2**40
CHUNK = 2**20
# Rscript names the file to R so.
FILE = "--file="
# How a program for 64 bits begins, with the lowest byte of a number first; the types of its segments that are
# loaded, and that describe its links; among the latter the entries for the place and the size of their names.
ELF64, LOADED, LINKS = b"\x7fELF\x02\x01", 1, 2
NAMES_AT, NAMES_SIZE = 5, 10
# Linux 6.13 has this request; the exit status comes with it since 6.15, after the process is reaped.
PIDFD_GET_INFO = (3 << 30) | (72 << 16) | (0xFF << 8) | 11
INFO_EXIT = 1 << 3
# The position of the wait status of a dead process among the fields of `processes.stat_of`.
STATUS = 49
# Where code and stack begin in memory.
CODE, STACK = 23, 25
# The system calls read, select and pselect6, and by how much their first argument exceeds the descriptor.
READS = {"x86_64": {"0": 0, "23": 1, "270": 1}, "aarch64": {"63": 0, "72": 1}}
# How often the arguments are read of a process that calls exec each time.
MOST_READS = 3


class Image:
    """What a process runs between two calls of exec."""

    def __init__(self, pid: int, layout: tuple[bytes, bytes]) -> None:
        self.pid = pid
        for _ in range(MOST_READS):
            self.layout = layout
            self.arguments, self.is_cut = arguments_of(pid)
            # If it has called exec since its layout was read, these are the arguments of the new program.
            layout = layout_of(processes.stat_of(pid)) or layout
            if layout == self.layout:
                break
        self.folder = link(f"/proc/{pid}/cwd")
        self.is_fork = False
        """It was seen before it called exec."""
        self.number: int | None = None
        """None if the image is not reported."""
        self.report: dict[str, Any] = {}

    def is_fork_of(self, parent: Image | None) -> bool:
        """A fork has its parent's arguments, until it calls exec."""
        return parent is not None and (parent.layout, parent.arguments) == (self.layout, self.arguments)


def layout_of(stat: list[bytes] | None) -> tuple[bytes, bytes] | None:
    """The places of code and stack in memory, which change by exec, but not when a process renames itself.

    None for a process that has given up its memory: it ends, or is in the middle of an exec.
    """
    return None if stat is None or stat[CODE] == b"0" else (stat[CODE], stat[STACK])


def link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def told(path: str, most: int = -1) -> bytes:
    """At most so many bytes of a file of /proc; b"" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def arguments_of(pid: int) -> tuple[list[str], bool]:
    """The arguments, and whether there are more than are read."""
    data = told(f"/proc/{pid}/cmdline", LONGEST_ARGUMENTS + 1)
    arguments = data[:LONGEST_ARGUMENTS].split(b"\0")[:-1]
    return [os.fsdecode(argument) for argument in arguments], len(data) > LONGEST_ARGUMENTS


def reads_terminal(pid: int) -> bool:
    """Whether it waits for input from a terminal."""
    try:
        call, first = told(f"/proc/{pid}/syscall").split()[:2]
        descriptor = int(first, 16) - READS[os.uname().machine][call.decode()]
    except (ValueError, KeyError):
        return False
    # Not the other end, /dev/pts/ptmx.
    return (link(f"/proc/{pid}/fd/{descriptor}") or "").rstrip("0123456789") in ("/dev/pts/", "/dev/tty")


def environment_of(pid: int) -> dict[str, str]:
    entries = os.fsdecode(told(f"/proc/{pid}/environ", LONGEST_ENVIRONMENT)).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def named_files(pid: int, image: Image, above: str | None) -> dict[str, str]:
    """The real paths of the files that the arguments name, by position; also `stdin`, and a shell's `script`.

    The process can have changed its folder since its start, so PWD and the folder of its parent count too.
    """
    environment = environment_of(pid)
    folders = list(dict.fromkeys(filter(None, (image.folder, environment.get("PWD"), above))))
    modules = [*folders, *filter(None, environment.get("PYTHONPATH", "").split(":"))]
    found = {}
    previous = ""
    for position, argument in enumerate(image.arguments[1:MOST_ARGUMENTS], 1):
        if previous == "-m" or argument.startswith("-m"):
            name = argument if previous == "-m" else argument[2:]
            paths = module_paths(name, modules)
        else:
            # Only the first that exists, even a folder: Python runs its `__main__.py`.
            name = argument[len(FILE) :] if argument.startswith(FILE) else argument
            places = (os.path.join(folder, name) for folder in folders)
            paths = islice(filter(os.path.exists, places), 1)
        path = next(filter(os.path.isfile, paths), None)
        if path is not None:
            found[str(position)] = os.path.realpath(path)
        previous = argument
    # An argument that is cut off can be the code that is run in place of the standard input.
    descriptors = {} if image.is_cut else {"stdin": 0}
    # Where bash has the script that it reads: its arguments do not name a script without an interpreter line.
    # Bash closes it on exec, so what a process has inherited there is something else.
    if is_closed_on_exec(pid, 255):
        descriptors["script"] = 255
    for name, descriptor in descriptors.items():
        target = link(f"/proc/{pid}/fd/{descriptor}")
        # That of a pipe, `pipe:[1]`, is not a path, but a file in our folder can have that name.
        if target is not None and target.startswith("/") and os.path.isfile(target):
            found[name] = target
    return found


def is_closed_on_exec(pid: int, descriptor: int) -> bool:
    lines = told(f"/proc/{pid}/fdinfo/{descriptor}").splitlines()
    flags = [int(line.split()[1], 8) for line in lines if line.startswith(b"flags:")]
    return any(one & os.O_CLOEXEC for one in flags)


def repositories_of(files: Iterable[str]) -> set[str]:
    """For each file the nearest folder above it that is a git repository, if there is one."""
    found = set()
    for path in files:
        folder = os.path.dirname(path)
        while folder != "/" and not os.path.exists(folder + "/.git"):
            folder = os.path.dirname(folder)
        found.add(folder)
    return found - {"/"}


def module_paths(name: str, folders: list[str]) -> Iterator[str]:
    for folder in folders:
        for end in (".py", "/__main__.py"):
            yield os.path.join(folder, name.replace(".", "/") + end)


def has_symbol(file: BinaryIO, symbols: Iterable[bytes]) -> bool:
    """Whether one of the names is among those that a program shares with its libraries.

    Other names can be anywhere in a program without such a table, so all of it is searched.
    """
    # Not mapped into memory: whoever truncates the file would end us by a signal.
    start, left = shared_names(file) or (0, LONGEST_EXECUTABLE)
    file.seek(start)
    end = b""
    while left > 0 and (chunk := file.read(min(left, CHUNK))):
        text = end + chunk
        if any(symbol in text for symbol in symbols):
            return True
        end, left = chunk[-64:], left - CHUNK
    return False


def shared_names(file: BinaryIO) -> tuple[int, int] | None:
    """The position and the size of these names in a program; None if it has none, or another form.

    The whole program is not read, because those of agents have hundreds of megabytes.
    """
    try:
        head = file.read(64)
        table, size, count = (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
        if not head.startswith(ELF64) or size * count > LONGEST_TABLE:
            return None
        file.seek(table)
        segments = list(struct.iter_unpack("<IIQQQQQQ", file.read(size * count)))
        ((at, links),) = ((one[2], one[5]) for one in segments if one[0] == LINKS)
        file.seek(at)
        entries = dict(struct.iter_unpack("<qQ", file.read(min(links, LONGEST_TABLE))))
        address, length = entries[NAMES_AT], min(entries[NAMES_SIZE], LONGEST_EXECUTABLE)
        ((begin, loaded_at),) = (
            (one[2], one[3]) for one in segments if one[0] == LOADED and one[3] <= address < one[3] + one[5]
        )
    # Code inside can have written the file.
    except (struct.error, ValueError, KeyError, OverflowError, OSError):
        return None
    position: int = begin + address - loaded_at
    return (position, length) if position < LARGEST_FILE else None


def kept_lines(before: bytes, after: bytes) -> float:
    """The portion of the lines of `before` that `after` has too, without white space and blank lines."""
    old, new = (Counter(filter(None, map(bytes.strip, text.splitlines()))) for text in (before, after))
    return sum((old & new).values()) / max(1, sum(old.values()))


def zombie_status(pid: int) -> int | None:
    stat = processes.stat_of(pid)
    return int(stat[STATUS]) if stat is not None and stat[processes.STATE] == b"Z" else None


def exit_status(descriptor: int, otherwise: int | None) -> int | None:
    """The wait status of a process that was reaped, where the kernel tells it."""
    info = bytearray(72)
    struct.pack_into("Q", info, 0, INFO_EXIT)
    try:
        fcntl.ioctl(descriptor, PIDFD_GET_INFO, info, True)
    except OSError:
        return otherwise
    has_status = struct.unpack_from("Q", info)[0] & INFO_EXIT
    return struct.unpack_from("i", info, 60)[0] if has_status else otherwise
