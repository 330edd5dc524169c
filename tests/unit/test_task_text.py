"""The text of a task: its query, and where its code is if the query does not say so."""

import pytest

from pytest_super.agents.asking import task_text
from pytest_super.tasks.public_task import public_part
from tests.unit.test_trial import make_task


@pytest.mark.parametrize(
    ("repository", "query", "told"),
    [
        (None, "do it", "do it"),
        (
            {"git": "https://h/r", "commit": "a" * 40},
            "do it",
            f"do it\nGit repository: https://h/r\nCommit: {'a' * 40}",
        ),
        (
            {"git": "https://h/r", "commit": "a" * 40},
            "do it\nGit repository: https://h/r",
            f"do it\nGit repository: https://h/r\nCommit: {'a' * 40}",
        ),
        (
            {"pypi": "langid", "version": "1.1.6", "sha256": "a" * 64},
            "do it",
            "do it\nSource distribution: langid 1.1.6 from the package index",
        ),
    ],
)
def test_the_question_tells_where_the_repository_is(
    repository: dict[str, object] | None, query: str, told: str
) -> None:
    assert task_text(public_part(make_task(query=query, repository=repository))) == told


def test_the_question_tells_in_which_folder_a_repository_is_provided() -> None:
    task = make_task(repository={"path": "code/mine", "provide": True})
    told = "do it\nRepository: the folder mine in the working directory"
    assert task_text(public_part(task, folder="mine")) == told
    said = make_task(query="Look into `mine/`.", repository={"path": "code/mine", "provide": True})
    assert task_text(public_part(said, folder="mine")) == "Look into `mine/`."
