"""The prompts: the built-in files, or files of the same names in a folder of the user."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from importlib.resources import files
from pathlib import Path

from pytest_super.digests import digest
from pytest_super.errors import SuperError

NAMES = ("questions", "task", "repair")
PROBLEM = "{problem}"


@dataclass(frozen=True)
class Prompts:
    questions: str
    task: str
    repair: str
    """Contains PROBLEM, which is replaced by the reason for the refusal."""

    @property
    def digest(self) -> str:
        return digest(astuple(self))


def read_prompts(folder: Path | None) -> Prompts:
    """The prompts, built-in ones for those that the folder lacks. Raises SuperError if it has none at all."""
    if folder is not None and not any((folder / f"{name}.md").is_file() for name in NAMES):
        wanted = ", ".join(f"{name}.md" for name in NAMES)
        raise SuperError(f"--prompts: {folder} has none of {wanted}")
    prompts = Prompts(*(read(folder, f"{name}.md") for name in NAMES))
    if PROBLEM not in prompts.repair:
        raise SuperError(
            f"--prompts: {folder}/repair.md does not contain {PROBLEM}, the place for the reason"
        )
    return prompts


def read(folder: Path | None, name: str) -> str:
    path = files(__package__) / name if folder is None or not (folder / name).is_file() else folder / name
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SuperError(f"--prompts: {path} cannot be read: {error}") from None
