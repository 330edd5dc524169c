"""What `pytest-super init` writes: starter tasks, a conftest with every fixture, a CI file."""

from __future__ import annotations

from pathlib import Path

from pytest_super.errors import SuperError

HERE = Path(__file__).parent
# A source checkout keeps the tasks at its top; a built wheel holds them here.
TASKS = next(path for path in (HERE / "tasks", HERE.parent.parent / "tasks") if path.is_dir())


def write_starter(folder: Path) -> list[Path]:
    """Write the starter project into `folder`; returns what was written.

    Raises SuperError, before anything is written, when a file is there already.
    """
    content = {
        folder / "conftest.py": (HERE / "conftest.py.txt").read_text(encoding="utf-8"),
        folder / ".github/workflows/agent.yml": (HERE / "agent.yml").read_text(encoding="utf-8"),
    }
    for path in sorted(TASKS.iterdir()):
        if path.suffix in (".yaml", ".ipynb"):
            content[folder / "tasks" / path.name] = path.read_text(encoding="utf-8")
    taken = [str(path) for path in content if path.exists()]
    if taken:
        raise SuperError(f"these files are there already, nothing was written: {', '.join(taken)}")
    for path, text in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(content)
