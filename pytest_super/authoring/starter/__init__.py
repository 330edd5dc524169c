"""What `pytest-super init` writes: starter tasks, a conftest with every fixture, a CI file.

Where a run in the folder would take a parent's configuration, there is a pytest.ini, too.
"""

from __future__ import annotations

from pathlib import Path

from pytest_super.errors import SuperError

HERE = Path(__file__).parent
# A source checkout has the tasks at its top, a built wheel in this folder.
TASKS = next(path for path in (HERE / "tasks", HERE.parents[2] / "tasks") if path.is_dir())


# Of pytest's configuration in a file of that name, which makes its folder the root of a run.
CONFIGURATIONS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
# Without any configuration the nearest pyproject.toml marks the root, and without that the nearest setup.py.
ROOTS = ("pyproject.toml", "setup.py")
OWN_ROOT = """\
# Makes this folder the root of its runs, where pytest would else take the configuration of a parent folder.
[pytest]
"""


def write_starter(folder: Path) -> list[Path]:
    """Write the starter project into `folder`; returns what was written.

    Raises SuperError, before anything is written, when a file is there already.
    """
    content = {
        folder / "conftest.py": (HERE / "conftest.py.txt").read_text(encoding="utf-8"),
        folder / ".github/workflows/agent.yml": (HERE / "agent.yml").read_text(encoding="utf-8"),
    }
    if not is_root(folder):
        content[folder / "pytest.ini"] = OWN_ROOT
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


def is_root(folder: Path) -> bool:
    """Whether pytest, run in `folder`, takes no parent of it for the root."""
    own, *parents = (folder.absolute(), *folder.absolute().parents)
    if is_configured(own):
        return True
    if any(is_configured(parent) for parent in parents):
        return False
    for name in ROOTS:
        if nearest := next((path for path in (own, *parents) if (path / name).is_file()), None):
            return nearest == own
    return True


def is_configured(folder: Path) -> bool:
    return any(holds(folder / name, section) for name, section in CONFIGURATIONS.items())


def holds(path: Path, section: str) -> bool:
    return path.is_file() and section in path.read_text(encoding="utf-8", errors="replace")
