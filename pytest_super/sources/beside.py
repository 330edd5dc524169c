"""A repository in a folder next to its task file."""

from pathlib import Path

from pytest_super.errors import TaskFileError
from pytest_super.tasks.task import TASK_SUFFIX

TASK_FILES = f"*{TASK_SUFFIX}"


def check_folder(base: Path, path: str) -> Path:
    """The folder. Raises TaskFileError if it contains files that an agent must not see."""
    folder = base / path
    if not folder.is_dir():
        raise TaskFileError(f"{folder}: repository.path is not a folder")
    if not folder.resolve().is_relative_to(base.resolve()):
        raise TaskFileError(f"{folder}: repository.path is outside of the task file's folder")
    for task_file in folder.rglob(TASK_FILES):
        raise TaskFileError(f"{task_file}: a repository must not contain task files: they have the answer")
    for notebook in _solutions(base, folder):
        raise TaskFileError(f"{notebook}: a repository must not contain a task's solution: move it out")
    return folder


def _solutions(base: Path, folder: Path) -> list[Path]:
    """Notebooks in the folder that a task file in `base` mentions."""
    notebooks = [path for path in folder.rglob("*") if path.suffix == ".ipynb"]
    if not notebooks:
        return []
    tasks = "\n".join(path.read_text("utf-8", "replace") for path in base.glob(TASK_FILES) if path.is_file())
    return [path for path in notebooks if path.relative_to(base).as_posix() in tasks]
