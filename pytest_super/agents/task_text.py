"""The text of a task in the prompts of SUPER's agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.tasks.public_task import PublicTask


def task_text(task: PublicTask) -> str:
    """The query, followed by lines that say where the code is, without facts that the query contains."""
    lines = [line for line, fact in repository_facts(task) if fact not in task.query]
    return "\n".join([task.query, *lines])


def repository_facts(task: PublicTask) -> list[tuple[str, str]]:
    """Lines, each with the text by which a query can already state its fact."""
    if task.folder is not None:
        return [(f"Repository: the folder {task.folder} in the working directory", task.folder)]
    match task.repository:
        case {"git": url, "commit": commit}:
            return [(f"Git repository: {url}", url), (f"Commit: {commit}", commit)]
        case {"pypi": project, "version": version}:
            return [(f"Source distribution: {project} {version} from the package index", project)]
    return []
