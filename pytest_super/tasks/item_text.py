"""What an agent is told about an item of a paper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.tasks.paper import files_of, paper_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_super.tasks.paper import Experiment
    from pytest_super.tasks.task import Task


def item_query(task: Task, folder: str | None) -> str:
    """The paper's query, what is missing, and how it is graded.

    `folder` is that of the repository in the working directory.
    """
    return "\n".join([task.query.rstrip(), "", *lines_of(task, folder)])


def lines_of(task: Task, folder: str | None) -> Iterator[str]:
    where = f"the folder `{folder}`" if folder else "the repository"
    yield f"In {where}, functions are missing: their bodies are replaced by stubs. Write these bodies:"
    for one in task.functions:
        name, _, region = one.name.partition("@")
        what = f"the lines of the region `{region}` in `{name}`" if region else f"`{name}`"
        about = f": {one.description.strip()}" if one.description else ""
        yield f"- {what} in `{one.file}`{about}"
    if task.paper:
        yield f"The paper is in the file `{paper_name(task.paper)}` in the working directory."
    yield ""
    yield f"These experiments need them. Their commands are run in {where}:"
    for experiment in task.experiments:
        about = f" {experiment.description.strip()}" if experiment.description else ""
        yield f"- {experiment.name}: `{experiment.command}`{about}"
    yield ""
    files = ", ".join(f"`{file}`" for file in files_of(task.functions))
    yield f"Your work is graded by running them again in a fresh copy, with only {files} from yours."
    if report := report_form(task.experiments):
        yield "Submit the results that you get as JSON, each … replaced by a value:"
        yield json.dumps(report, ensure_ascii=False)


def report_form(experiments: Iterable[Experiment]) -> dict[str, object]:
    """The shape of the agent's report: `{"experiment": "…"}`, or `{"experiment": {"value": "…"}}`."""
    reported = {one.name: list(one.reported) for one in experiments if one.reported}
    return {name: "…" if values == [""] else dict.fromkeys(values, "…") for name, values in reported.items()}
