"""The text of a task file that we make, checked as the loader checks it."""

from pathlib import Path
from typing import Any

from pytest_super.errors import TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.yaml_writer import to_yaml


def task_text(fields: dict[str, Any], path: Path) -> str:
    """The text of a file with one task, to be written to `path`. Raises ValueError for an invalid task."""
    try:
        text = to_yaml(fields)
        load_tasks(path, shown="task", text=text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except TaskFileError as error:
        # Without line and column, which refer to a file that is not written.
        raise ValueError("; ".join(line.split(": ", 1)[1] for line in str(error).splitlines())) from None
    return text
