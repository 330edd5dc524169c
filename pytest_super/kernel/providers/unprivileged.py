"""An unprivileged user for each sandbox where pytest runs as root.

For the host's kernel, the user in a user namespace is still the one who made it. If that is root, code
inside can do what root's user id permits without a capability. So root becomes another user first.
"""

import os
import secrets
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from pytest_super.kernel.providers import PREFIX
from pytest_super.kernel.providers.host_environment import python_parts
from pytest_super.kernel.providers.sandbox_folder import OPEN_FOLDER

# User ids without accounts: a range that distributions and directory services leave out, and where a user
# namespace has only 65,536 ids, those that systemd gives to services while they run.
RANGES = (range(0x78000000, 0x7FFE0000), range(61184, 65520))
MAPS = ("/proc/self/uid_map", "/proc/self/gid_map")
BINDS = ("--bind", "--ro-bind", "--ro-bind-try")
PROGRAMS = ("setpriv", "unshare", "mount")


@cache
def why_root_stays() -> str:
    """Why root cannot become a user who can run this Python, for a person; "" if it can, or is not root."""
    if os.geteuid() != 0:
        return ""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"the program {missing[0]} (of util-linux) is missing"
    if usable_ids() is None:
        return "its user namespace has no other user ids"
    if (folder := tempfile.gettempdir()) and closed_parents(Path(folder, PREFIX).resolve()):
        return f"other users cannot reach {folder}"
    closed = [part for part in python_parts() if not is_open(part)]
    return f"other users cannot read {closed[0]}" if closed else ""


def usable_ids() -> range | None:
    return next((ids for ids in RANGES if all(has_ids(Path(name), ids) for name in MAPS)), None)


def has_ids(table: Path, ids: range) -> bool:
    """Whether a row of the map of a user namespace contains all these ids."""
    rows = (map(int, line.split()) for line in table.read_text().splitlines())
    return any(first <= ids[0] and ids[-1] < first + count for first, _, count in rows)


def unused_id() -> int:
    """The id of a user, and of a group, that no process and no sandbox has. Root only."""
    ids = usable_ids()
    assert ids is not None
    folders = Path(tempfile.gettempdir()).glob(f"{PREFIX}*/work")
    taken = owners([*Path("/proc").glob("[0-9]*"), *folders])
    while (number := secrets.choice(ids)) in taken:
        pass
    return number


def owners(paths: Iterable[Path]) -> set[int]:
    found = set()
    for path in paths:
        # Processes and other sandboxes end.
        with suppress(OSError):
            found.add(path.stat().st_uid)
    return found


def is_open(path: Path) -> bool:
    """Whether other users can read the file, or list the folder and use what it contains."""
    mode = path.stat().st_mode
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & needed == needed


def closed_parents(path: Path) -> list[Path]:
    """The folders on the way to a resolved path that other users cannot pass, the nearest first."""
    return [parent for parent in path.parents if not parent.stat().st_mode & stat.S_IXOTH]


# Sandboxes have most of their sources in common.
@lru_cache(1024)
def first_closed(source: str) -> tuple[Path, Path] | None:
    """The resolved path of a source, and the nearest folder on the way that other users cannot pass."""
    path = Path(source).resolve()
    closed = closed_parents(path)
    return (path, closed[0]) if closed else None


def within_reach(options: Sequence[str], folder: Path) -> tuple[list[str], dict[Path, Path]]:
    """Options of bwrap with sources that others reach, and the mounts for it by mount point in `folder`."""
    changed, mounts = list(options), dict[Path, Path]()
    for place, option in enumerate(options, 1):
        if option not in BINDS or not os.path.exists(options[place]):
            continue
        if (found := first_closed(options[place])) is None:
            continue
        source, closed = found
        # From here on, all is open to others.
        start = closed / source.relative_to(closed).parts[0]
        point = next((one for one, of in mounts.items() if of == start), folder / str(len(mounts)))
        mounts[point] = start
        changed[place] = str(point / source.relative_to(start))
    if mounts:
        folder.mkdir(exist_ok=True)
        # Whatever the umask is.
        folder.chmod(OPEN_FOLDER)
    for point, start in mounts.items():
        point.mkdir(parents=True, exist_ok=True) if start.is_dir() else point.touch()
    return changed, mounts


def mounting(mounts: dict[Path, Path]) -> str:
    """The beginning of a shell script: it mounts what `within_reach` returned, read-only."""
    steps = (["mount", "-o", "bind,ro", str(start), str(point)] for point, start in mounts.items())
    return "".join(f"{shlex.join(step)} && " for step in steps)


def becoming(number: int) -> list[str]:
    """The beginning of a command that root starts, and that runs as this user, in this group only."""
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--"]


# In the script of `mounting`. Without a share of the host's mounts, nothing is seen and nothing stays there.
PRIVATE = ("unshare", "--mount", "--propagation", "private", "--")
