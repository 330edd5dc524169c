"""What an agent is told about an item of a paper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.tasks.paper import Combination


def item_query(query: str, combination: Combination, folder: str | None, paper: str | None) -> str:
    """The paper's query, what is missing, and how it is graded.

    `folder` is that of the repository and `paper` the file with the paper's text, in the working directory.
    """
    return "\n".join([query.rstrip(), "", *lines_of(combination, folder, paper)])


def lines_of(combination: Combination, folder: str | None, paper: str | None) -> Iterator[str]:
    where = f"the folder `{folder}`" if folder else "the repository"
    yield f"In {where}, functions are missing: their bodies are replaced by stubs. Write these bodies:"
    for one in combination.functions:
        name, _, region = one.name.partition("@")
        what = f"the lines of the region `{region}` in `{name}`" if region else f"`{name}`"
        about = f": {one.description.strip()}" if one.description else ""
        yield f"- {what} in `{one.file}`{about}"
    if paper:
        yield f"The paper is in the file `{paper}` in the working directory."
    yield ""
    yield f"These experiments need them. Their commands are run in {where}:"
    for experiment in combination.experiments:
        about = f" {experiment.description.strip()}" if experiment.description else ""
        yield f"- {experiment.name}: `{experiment.command}`{about}"
    yield ""
    files = ", ".join(f"`{file}`" for file in combination.files)
    yield f"Your work is graded by running them again in a fresh copy, with only {files} from yours."
    if report := report_form(combination):
        yield "Submit the results that you get as JSON, each … replaced by a value:"
        yield json.dumps(report, ensure_ascii=False)


def report_form(combination: Combination) -> dict[str, object]:
    """The shape of the agent's report: `{"experiment": "…"}`, or `{"experiment": {"value": "…"}}`."""
    reported = {one.name: list(one.reported) for one in combination.experiments if one.reported}
    return {name: "…" if values == [""] else dict.fromkeys(values, "…") for name, values in reported.items()}
