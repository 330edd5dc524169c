"""The runs of a folder, newest first, and which of them are old enough to remove."""

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.store.json_lines import read_object

# A run that has written something in this time can still be under way.
RECENT_SECONDS = 3600.0


def run_folders(directory: Path) -> list[Path]:
    """List the runs without the link `latest`. Their ids begin with the time."""
    found = (path for path in (directory / "runs").glob("*") if path.is_dir() and not path.is_symlink())
    return sorted(found, reverse=True)


def find_run(directory: Path, name: str) -> Path:
    """A stored run's folder: by id, as `latest`, by its path or that of a file in it. Raises SuperError."""
    path = Path(name)
    for folder in (directory / "runs" / name, path, path.parent):
        # Unlike the method of Path, it raises nothing for a name of any length.
        if os.path.isfile(folder / "run.json") and (folder != path.parent or os.path.isfile(path)):
            return folder.resolve()
    raise SuperError(
        f"there is no run {name}: name the id of a run in {directory / 'runs'}, latest, or the path of a run"
    )


def find_path(directory: Path, name: str) -> Path:
    """The path, if there is something; else the folder of the run of this name. Raises SuperError."""
    return Path(name) if os.path.exists(name) else find_run(directory, name)


def find_side(directory: Path, name: str) -> Path:
    """The file of a baseline, or the folder of a stored run, named as for `find_run`. Raises SuperError."""
    path = Path(name)
    if os.path.isfile(path) and not os.path.isfile(path.parent / "run.json"):
        return path
    try:
        return find_run(directory, name)
    except SuperError as error:
        if path.suffix:
            raise SuperError(
                f"there is no baseline {name}: make it with `pytest-super baseline update`"
            ) from None
        raise error from None


def scored_again(run: Path) -> list[Path]:
    """The runs that a run was scored again as, also by way of others, from the oldest to the newest."""
    found = [run]
    for path in sorted(run.parent.glob("*/run.json")):
        origin = read_object(path).get("rescored")
        if origin in [one.name for one in found] and not path.parent.is_symlink():
            found.append(path.parent)
    return found[1:]


def remove_runs(directory: Path, *, keep: int, but: Collection[str]) -> list[str]:
    """Remove all but the newest `keep` runs, those in `but`, and recent ones. Returns their ids."""
    old = [path for path in run_folders(directory)[keep:] if path.name not in but and not is_recent(path)]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return [path.name for path in old if not path.exists()]


def is_recent(folder: Path) -> bool:
    times = [path.stat().st_mtime for path in (folder, *folder.glob("*"), *folder.glob("trials/*/*"))]
    return time.time() - max(times) < RECENT_SECONDS
