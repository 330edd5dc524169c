"""The project that `pytest-super init` writes: starter tasks, a conftest with every fixture, a CI file.

It has a pytest.ini, too, unless the folder has a configuration of pytest.
"""

from __future__ import annotations

from pathlib import Path

from pytest_super.errors import SuperError

HERE = Path(__file__).parent
# A source checkout has the tasks at its top, a built wheel in this folder.
TASKS = next(path for path in (HERE / "tasks", HERE.parents[2] / "tasks") if path.is_dir())

# The files that make their folder the root of a run, each with the section that must be in it.
CONFIGURATIONS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
OWN_ROOT = """\
# Makes this folder the root of its runs; otherwise pytest could use the configuration of a parent folder.
[pytest]
"""


def write_starter(folder: Path) -> list[Path]:
    """Write the starter project into `folder` and return the files that were written.

    Raises SuperError, before anything is written, if one of the files exists.
    """
    content = {
        folder / "conftest.py": (HERE / "conftest.py.txt").read_text(encoding="utf-8"),
        folder / ".github/workflows/agent.yml": (HERE / "agent.yml").read_text(encoding="utf-8"),
    }
    if not is_configured(folder):
        content[folder / "pytest.ini"] = OWN_ROOT
    for path in sorted(TASKS.iterdir()):
        if path.suffix in (".yaml", ".ipynb"):
            content[folder / "tasks" / path.name] = path.read_text(encoding="utf-8")
    taken = [str(path) for path in content if path.exists()]
    if taken:
        raise SuperError(f"these files exist, so nothing was written: {', '.join(taken)}")
    for path, text in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(content)


def is_configured(folder: Path) -> bool:
    return any(has_section(folder / name, section) for name, section in CONFIGURATIONS.items())


def has_section(path: Path, section: str) -> bool:
    return path.is_file() and section in path.read_text(encoding="utf-8", errors="replace")
