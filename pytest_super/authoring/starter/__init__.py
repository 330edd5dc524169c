"""The project that `init` writes: a task of two seconds, an agent that solves it, a CI file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_super.errors import SuperError

HERE = Path(__file__).parent
# A source checkout has the shipped tasks at its top, a built wheel in this folder.
TASKS = next(path for path in (HERE / "tasks", HERE.parents[2] / "tasks") if path.is_dir())
# At the end of the names of Python files, so that no tool takes them for modules of this package.
SUFFIX = ".txt"

INI = "pytest.ini"
# The files that make their folder the root of a run, each with the section that must be in it.
CONFIGURATIONS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    INI: "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}


class Written(NamedTuple):
    new: list[Path]
    kept: list[Path]
    """Files that existed, so they are unchanged."""


def write_starter(folder: Path, *, with_shipped_tasks: bool = False) -> Written:
    """Write what is missing in `folder`, and the CI file of its git repository. Raises SuperError."""
    is_configured = any(has_section(folder / name, section) for name, section in CONFIGURATIONS.items())
    written = Written([], [])
    for path, text in content(folder, with_shipped_tasks=with_shipped_tasks):
        if path.exists():
            written.kept.append(path)
        elif path.name != INI or not is_configured:
            write(path, text)
            written.new.append(path)
    return written


def content(folder: Path, *, with_shipped_tasks: bool) -> Iterator[tuple[Path, str]]:
    """Each file of the project, with its text."""
    project = HERE / "project"
    for source in sorted(path for path in project.rglob("*") if path.is_file()):
        name = source.relative_to(project).as_posix().removesuffix(SUFFIX)
        yield folder / name, source.read_text(encoding="utf-8")
    # GitHub looks for CI files at the root of the git repository.
    here = folder.resolve()
    repository = next((place for place in (here, *here.parents) if (place / ".git").exists()), here)
    ci_file = (HERE / "agent.yml").read_text(encoding="utf-8")
    inside = here.relative_to(repository).as_posix()
    yield repository / ".github/workflows/agent.yml", ci_file.replace("FOLDER", inside)
    # Graders take their files from `hidden`, papers their texts from `papers`.
    folders = (TASKS, TASKS / "hidden", TASKS / "papers") if with_shipped_tasks else ()
    for path in sorted(path for each in folders for path in each.iterdir()):
        if path.suffix in (".yaml", ".ipynb", ".py", ".md"):
            yield folder / "tasks" / path.relative_to(TASKS), path.read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    """Raises SuperError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from error


def has_section(path: Path, section: str) -> bool:
    return path.is_file() and section in path.read_text(encoding="utf-8", errors="replace")
