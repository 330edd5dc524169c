"""What an agent with the network can fetch of an answer: a repository's history, and later releases."""

import hashlib
import io
import json
import random
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_super.authoring.verify.finding import Finding
from pytest_super.authoring.verify.network import figures_in, numbers_compared
from pytest_super.authoring.verify.papers.leaks import fetchable_code
from pytest_super.authoring.verify.texts import Text
from pytest_super.authoring.verify.verification import verify
from pytest_super.metrics.distinctive import Figure
from pytest_super.tasks.task import Task

ANSWER = {"test": {"accuracy": 0.7744, "f1": 0.8127}}
SOLUTION = """\
import matplotlib.pyplot as plt
scores = cross_validate(model, features, labels, folds=7)
best = max(scores, key=lambda score: score.mean_accuracy)
report = {"accuracy": best.mean_accuracy, "f1": best.f1}
"""
CODE = {"train.py": "print('training takes an hour')\n", "README.md": "# Code of the paper\n"}


class Repository:
    """A git repository on this machine; its first commit has only code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.pinned = self.commit(CODE, "code")

    def git(self, *arguments: str) -> str:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", *settings, *arguments]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, files: Mapping[str, str | bytes], message: str = "more") -> str:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (self.folder / name).write_bytes(data)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--date=2026-02-03T00:00:00Z", f"--message={message}")
        return self.git("rev-parse", "HEAD")

    def task(self, answer: Any = ANSWER, **fields: Any) -> Task:
        repository = {"git": self.folder.as_uri(), "commit": self.pinned}
        given = {"id": "t", "set": "expert", "query": "do it", "answer": answer, "repository": repository}
        return Task.model_validate({**given, "sandbox": {"network": True}, **fields})


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Repository(tmp_path / "code")


def found(task: Task) -> list[Finding]:
    return [one for one in verify([task], {}).findings if not one.text.startswith("t: the run has no trial")]


def test_a_later_commit_with_the_answer_is_a_leak(repository: Repository) -> None:
    later = repository.commit({"results.md": "Results\n\n| accuracy | f1 |\n|---|---|\n| 77.44 | 0.813 |\n"})
    [finding] = found(repository.task())
    assert finding.kind == "leaks"
    date = repository.git("log", "-1", "--format=%as")
    place = f"results.md since commit {later[:10]} of {date} in {repository.folder.as_uri()}, line 5"
    what = "test.accuracy (0.7744) of the answer"
    assert finding.text == f"t: with the network, the agent can fetch {what}: {place}"
    assert finding.facts == {"found": [what], "place": place}


@pytest.mark.parametrize("fields", [{"sandbox": {}}, {"sandbox": {"network": False}}])
def test_without_the_network_the_history_is_not_searched(
    repository: Repository, fields: dict[str, Any]
) -> None:
    repository.commit({"results.md": "accuracy 0.7744"})
    assert found(repository.task(**fields)) == []


def test_other_branches_tags_and_earlier_commits_are_searched(repository: Repository) -> None:
    # The newest version of a file is told.
    repository.commit({"log.txt": "accuracy: 0.7744, f1: 0.81266"})
    last = repository.commit({"log.txt": "accuracy: 0.7744, f1: 0.8127"})
    (repository.folder / "log.txt").unlink()
    repository.pinned = repository.commit({}, "clean up")
    [finding] = found(repository.task())
    assert f"log.txt since commit {last[:10]}" in finding.text

    repository.git("checkout", "--quiet", "-b", "paper")
    repository.commit({"table.csv": "accuracy,f1\n0.7744,0.8127\n"})
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.commit({"notes.json": json.dumps({"accuracy": 0.7744})})
    repository.git("tag", "v2")
    repository.git("checkout", "--quiet", "main")
    texts = [finding.text for finding in found(repository.task())]
    assert sorted(text.split(": ")[2].split()[0] for text in texts) == ["log.txt", "notes.json", "table.csv"]
    # Those with the most values come first.
    assert "notes.json" in texts[-1]


def test_a_commit_message_with_the_answer_is_a_leak(repository: Repository) -> None:
    repository.commit({}, "Tune the rate\n\nAccuracy is 0.7744 now.")
    [finding] = found(repository.task())
    assert "the message of commit" in finding.text
    assert finding.facts["place"].endswith("line 3")


@pytest.mark.parametrize(
    "files",
    [
        {"results.md": "accuracy 0.7745, f1 0.81, accuracy 77.4"},
        # What the pinned commit has is not told twice.
        {"copy.md": CODE["README.md"]},
        {"accuracy.bin": b"accuracy 0.7744\0"},
        {"setup.cfg": "version = 0.7744.1"},
    ],
)
def test_what_does_not_give_the_answer_is_no_leak(
    repository: Repository, files: dict[str, str | bytes]
) -> None:
    repository.commit(files)
    assert found(repository.task()) == []


def test_a_number_without_its_name_among_many_is_no_leak(repository: Repository) -> None:
    chance = random.Random(0)
    numbers = "\n".join(f"{chance.random():.4f}" for _ in range(5000)) + "\n0.7744"
    repository.commit({"noise.csv": numbers, "noise.md": numbers})
    assert found(repository.task()) == []
    # Named, it counts, and so do two values next to each other.
    repository.commit({"results.md": "Accuracy:\n0.7744\n", "two.txt": "seed 3: 0.7744 0.8127\n"})
    assert [finding.facts["place"].split()[0] for finding in found(repository.task())] == [
        "two.txt",
        "results.md",
    ]


def test_a_log_of_the_values_of_a_field_is_no_leak(repository: Repository) -> None:
    chance = random.Random(1)
    log = "".join(f"epoch {n}: accuracy {chance.random():.4f}\n" for n in range(3000))
    repository.commit({"train.log": f"{log}epoch 3000: accuracy 0.7744\n"})
    assert found(repository.task(answer={"accuracy": 0.7744})) == []


def test_a_text_of_the_answer_in_a_later_commit_is_a_leak(repository: Repository) -> None:
    answer = {"best": "a forest of 300 shallow trees"}
    repository.commit({"results.md": "We chose a forest of\n300 shallow trees.", "data.py": repr(answer)})
    [finding] = found(repository.task(answer=answer))
    assert "results.md" in finding.text


def test_the_solution_in_a_later_commit_is_a_leak(repository: Repository) -> None:
    repository.commit({"final.py": f"# Ours\n{SOLUTION}"})
    task = repository.task(answer=0.5, solution={"cells": [SOLUTION]})
    [finding] = found(task)
    assert "3 of 3 lines of the solution: final.py since commit" in finding.text
    assert finding.facts["place"].endswith("line 3")


def test_lines_that_the_agent_has_anyway_are_no_solution(repository: Repository) -> None:
    repository.pinned = repository.commit({"train.py": SOLUTION})
    repository.commit({"train.py": f"{SOLUTION}print('and more')\n"})
    assert found(repository.task(answer=0.5, solution={"cells": [SOLUTION]})) == []


def test_a_history_that_cannot_be_fetched_is_told(repository: Repository, tmp_path: Path) -> None:
    task = repository.task()
    assert found(task) == []
    # The pinned commit is in the cache.
    repository.folder.rename(tmp_path / "elsewhere")
    [finding] = found(task)
    assert finding.kind == "unknown"
    assert finding.text.startswith("t: other versions of its repository cannot be searched: git failed: ")


def test_a_password_in_the_address_is_not_printed(repository: Repository) -> None:
    task = repository.task(
        repository={"git": "https://me:s3cret@127.0.0.1:1/code.git", "commit": repository.pinned}
    )
    assert "s3cret" not in "".join(finding.text for finding in found(task))


@settings(max_examples=50)
@given(digits=st.integers(4, 9), count=st.integers(1, 400), seed=st.integers(0, 99))
def test_a_number_counts_where_few_are_expected_by_chance(digits: int, count: int, seed: int) -> None:
    chance = random.Random(seed)
    value = float(f"0.{chance.randrange(10 ** (digits - 1), 10**digits) | 1}")
    figure = Figure(name="the answer", value=value, digits=digits)
    numbers = [f"{chance.random():.{digits}f}" for _ in range(count)]
    text = Text(place="p", text=" ".join([*numbers, f"{value:.{digits}f}"]))
    compared = numbers_compared([text], [figure])
    is_rare = 2 * len(compared.all) / (9 * 10 ** (digits - 1)) < 0.05
    assert bool(list(figures_in(text, [figure], compared))) == is_rare


# Releases


class Releases:
    """An index in a folder with source distributions of a project."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "p"
        self.folder.mkdir(parents=True)
        self.digests: dict[str, str] = {}
        monkeypatch.setattr("pytest_super.sources.index._config_list", dict)
        monkeypatch.setenv("PIP_INDEX_URL", folder.as_uri())

    def add(self, version: str, files: dict[str, str]) -> None:
        name = f"p-{version}"
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}/{path}")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
        (self.folder / f"{name}.tar.gz").write_bytes(archive.getvalue())
        self.digests[version] = hashlib.sha256(archive.getvalue()).hexdigest()
        links = (f'<a href="p-{one}.tar.gz#sha256={digest}">x</a>' for one, digest in self.digests.items())
        (self.folder / "index.html").write_text("".join(links))

    def task(self, version: str, **fields: Any) -> Task:
        repository = {"pypi": "p", "version": version, "sha256": self.digests[version]}
        given = {"id": "t", "set": "expert", "query": "do it", "answer": ANSWER, "repository": repository}
        return Task.model_validate({**given, "sandbox": {"network": True}, **fields})


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Releases(tmp_path / "index", monkeypatch)


def test_a_later_release_with_the_answer_is_a_leak(releases: Releases) -> None:
    releases.add("1.9", {**CODE, "old.md": "accuracy 0.7744"})
    releases.add("1.10", CODE)
    releases.add("2.0", {**CODE, "docs.md": "# Results\naccuracy: 0.7744\n"})
    releases.add("2.1", CODE)
    [finding] = found(releases.task("1.10"))
    assert finding.text == (
        "t: with the network, the agent can fetch test.accuracy (0.7744) of the answer: "
        "docs.md of the release p 2.0, line 2"
    )
    assert found(releases.task("1.10", sandbox={})) == []
    assert found(releases.task("2.1")) == []


# Papers


@pytest.mark.parametrize(
    ("repository", "place"),
    [
        ({"git": "https://me:pw@host/code.git", "commit": "0" * 40}, "https://host/code.git at commit 000"),
        ({"pypi": "p", "version": "1.0", "sha256": "0" * 64}, "the release p 1.0"),
        ({"path": "code"}, None),
    ],
)
@pytest.mark.parametrize("network", [True, None])
def test_masked_functions_that_can_be_fetched_are_a_leak(
    repository: dict[str, str], place: str | None, network: bool | None
) -> None:
    given = {"id": "t", "set": "expert", "query": "q", "answer": 1}
    sandbox = {"network": network}
    paper = Task.model_validate({**given, "repository": {**repository, "provide": True}, "sandbox": sandbox})
    texts = [finding.text for finding in fetchable_code(paper)]
    if place is None or not network:
        assert texts == []
    else:
        assert texts[0].startswith(f"t: with the network, the agent can fetch the masked functions: {place}")
        assert "pw" not in texts[0]
