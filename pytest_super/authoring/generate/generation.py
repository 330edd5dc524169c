"""From a repository to its task, or to the reason why it yields none."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from pytest_super.authoring.generate import answers, prompts
from pytest_super.authoring.generate.repositories import Named, pin
from pytest_super.authoring.generate.screening import RepositoryRefused, screen
from pytest_super.authoring.task_text import task_text
from pytest_super.errors import InfrastructureError, SuperError, TaskFileError
from pytest_super.model.completion import BudgetSpentError, FilteredError, Model, ModelError
from pytest_super.model.settings import SCRIPTED
from pytest_super.sources import fetch
from pytest_super.sources.tree import Tree
from pytest_super.store.atomic_write import write_atomically
from pytest_super.tasks.task import TASK_SUFFIX, Repository

# An answer has some hundred tokens; models that think in their answer need more.
DECODING: dict[str, Any] = {"temperature": 0.0, "max_tokens": 4000}
LONGEST_DETAIL = 500
DONE = "There is nothing to report: submit null when the script has run without an error."


@dataclass(kw_only=True)
class RepositoryReport:
    """The report for one repository, filled in step by step; plain JSON values only."""

    named: str
    """As the user wrote it."""
    id: str
    model: str
    reason: str = ""
    """Why it was dropped: a key of REASONS, or "" if it was kept."""
    detail: str = ""
    """The facts behind the reason."""
    repository: dict[str, str] = field(default_factory=dict)
    """The fields by which the task file pins it."""
    questions: dict[str, Any] = field(default_factory=dict)
    """The model's answers to the questions, with its reasons."""
    task: dict[str, Any] = field(default_factory=dict)
    """The fields of the task file."""

    def __str__(self) -> str:
        if self.reason:
            return f"dropped  {self.id}  {self.reason}: {self.detail or 'no reason given'}"
        return f"kept     {self.id}  {self.task['entrypoint']['path']}"


def generate_task(
    named: Named, report: RepositoryReport, output: Path, open_model: Callable[[], Model]
) -> None:
    """Write a task file and fill in its report. Raises SuperError for what every repository would meet."""
    try:
        report.repository = pin(named, output)
        tree = Tree(fetch(Repository.model_validate(report.repository), base=output))
        screen(tree)
        model = open_model()
        found = answers.suitability(ask(model, "questions", answers.for_questions(named.short, tree)))
        report.questions = found.model_dump()
        answers.refuse_unsuitable(found)
        proposal = answers.proposal(ask(model, "task", answers.for_task(named.short, tree)), tree)
        report.task = task_fields(report, tree.root.name, proposal)
        write_task(report.task, output / f"{report.id}{TASK_SUFFIX}")
    except RepositoryRefused as refused:
        report.reason, report.detail = refused.reason, shown(refused)
    except (InfrastructureError, TaskFileError) as error:
        if getattr(error, "is_final", False):
            raise
        report.reason = "model_failed" if isinstance(error, ModelError) else "fetch_failed"
        report.detail = shown(error)


def ask(model: Model, prompt: str, material: str) -> str:
    """Raises RepositoryRefused if the model cannot answer, and ModelError."""
    system = (files(prompts) / f"{prompt}.md").read_text(encoding="utf-8").strip()
    messages = [{"role": "system", "content": system}, {"role": "user", "content": material}]
    try:
        completion = model.complete(messages, **DECODING)
    except FilteredError as error:
        raise RepositoryRefused("bad_answer", f"content policy: {error}") from None
    except BudgetSpentError as error:
        raise RepositoryRefused("bad_answer", f"no room in the model's {error.limit}") from None
    except ValueError as error:
        raise ModelError(f"the request cannot be sent: {error}") from None
    if completion.finish_reason == "length":
        raise RepositoryRefused("bad_answer", "it was cut off, being too long")
    return completion.text


def shown(error: Exception) -> str:
    """The beginning of its text, on one line."""
    return "".join(c if c.isprintable() else " " for c in str(error)[:LONGEST_DETAIL]).strip()


def task_fields(report: RepositoryReport, folder: str, proposal: answers.Proposal) -> dict[str, Any]:
    """`folder` is the name of the repository's folder in the working directory."""
    # The path of a script belongs to this machine.
    model = "scripted" if report.model.startswith(SCRIPTED) else report.model
    return {
        "id": report.id,
        "set": "auto",
        "query": f"{proposal.task}\n\n{where(report.repository, folder)}\n{DONE}\n",
        # Provided, so that the pinned state is what runs.
        "repository": {**report.repository, "provide": True},
        "entrypoint": {"path": proposal.entrypoint},
        # Packages, data and models are downloaded.
        "sandbox": {"network": True},
        "metadata": {"model": model, "dataset": report.questions["q_supported_dataset"]},
    }


def where(repository: dict[str, str], folder: str) -> str:
    """Name and place of the repository, worded as in the paper."""
    here = f"in the folder `{folder}/` of the working directory"
    if "git" in repository:
        return f"Git repository: {repository['git']}, at commit {repository['commit']}, {here}."
    if "pypi" in repository:
        return f"Package: {repository['pypi']} {repository['version']}, whose source distribution is {here}."
    return f"The repository is {here}."


def write_task(fields: dict[str, Any], path: Path) -> None:
    """Raises RepositoryRefused when the loader refuses the task, SuperError when it cannot be written."""
    try:
        write_atomically(path, task_text(fields, path))
    except ValueError as error:
        raise RepositoryRefused("bad_answer", f"the task is not valid: {error}") from None
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
