"""Tasks generated from folders by a model that is played: what is kept, what is dropped, what is asked."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import threading
import unicodedata
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.authoring.generate import answers
from pytest_super.authoring.generate.answers import json_object
from pytest_super.authoring.generate.command import report_lines
from pytest_super.authoring.generate.generation import Generation, GenerationSettings
from pytest_super.authoring.generate.pinning import pin
from pytest_super.authoring.generate.prompts import read_prompts
from pytest_super.authoring.generate.record import RepositoryOutcome
from pytest_super.authoring.generate.refusal import REASONS, RepositoryRefused
from pytest_super.authoring.generate.repositories import Named, ids_of, parse, read_all
from pytest_super.cli import main
from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.model.completion import BudgetSpentError, Completion, FilteredError, ModelError
from pytest_super.sources.tree import LONGEST_FILE, Tree, legible
from pytest_super.tasks.loading import load_tasks
from tests.pages import page_path

YES = {
    "q_supported_dataset": "MRPC",
    "q_cpu": True,
    "q_cpu_reason": "plain PyTorch",
    "q_model_families": True,
    "q_execute_example": True,
}
TASK = "Fit the pairwise matcher on MRPC with bert-base by running train.py."
PROPOSAL = {"thought": "it is shown", "output": {"task": TASK, "entrypoint": "train.py"}}
FILES = {"README.md": "# A matcher\n\n    python train.py --data mrpc\n", "train.py": "print('trained')\n"}

Reply = str | Exception


class Player:
    """A model: `questions` and `task` are what it says to each, one after the other, the last for ever."""

    def __init__(self) -> None:
        self.questions: list[Reply] = [json.dumps(YES)]
        self.task: list[Reply] = [json.dumps(PROPOSAL)]
        self.asked: list[list[dict[str, Any]]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.finish_reason = "stop"

    @property
    def name(self) -> str:
        return "played"

    def complete(self, messages: Any, **_parameters: Any) -> Completion:
        self.asked.append(list(messages))
        self.meanwhile()
        replies = self.questions if "q_cpu" in messages[0]["content"] else self.task
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Completion(text=reply, finish_reason=self.finish_reason)


class Workplace:
    """A folder of tasks with repositories in it, and runs of the generation."""

    def __init__(self, path: Path) -> None:
        self.output = path / "auto"
        self.model = Player()
        self.told: list[str] = []
        self.settings = GenerationSettings(
            output=self.output,
            model="played",
            parameters={},
            prompts=read_prompts(None),
            jobs=1,
            open_model=lambda _task: self.model,
            print_line=self.told.append,
            activity=lambda _task, _what: nullcontext(),
        )

    def repository(self, name: str = "matcher", **files: str | bytes) -> Path:
        """With FILES beside the given ones; an empty text takes one away, `__` stands for a dot."""
        folder = self.output / name
        for key, content in {**FILES, **files}.items():
            path = folder / key.replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            if not content:
                path.unlink()
        return folder

    def run(self, *named: str | Path, **settings: Any) -> Generation:
        sources = read_all([str(each) for each in named], [])
        generation = Generation(sources, replace(self.settings, **settings))
        try:
            generation.run(interrupted=lambda: None)
        finally:
            generation.close()
        return generation

    def outcome(self, *named: str | Path) -> RepositoryOutcome:
        (outcome,) = self.run(*named or [self.output / "matcher"]).outcomes.values()
        return outcome


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """With the repository `matcher` in it."""
    place = Workplace(tmp_path)
    place.repository()
    return place


# From a repository to a task


def test_a_suitable_repository_becomes_a_valid_task(
    place: Workplace, is_synced: Callable[[Path], bool]
) -> None:
    outcome = place.outcome()
    assert is_synced(place.output / "answers.jsonl")
    assert is_synced(place.output / "repositories.jsonl")
    assert (outcome.outcome, outcome.reason) == ("kept", "")
    (task,) = load_tasks(place.output / "matcher.task.yaml")
    assert (task.id, task.set, task.sandbox.network) == ("matcher", "auto", True)
    assert task.query.startswith(TASK)
    assert "`matcher/`" in task.query
    assert task.repository is not None
    assert (task.repository.path, task.repository.provide) == ("matcher", True)
    assert task.entrypoint is not None
    assert task.entrypoint.path == "train.py"
    assert YES.items() <= outcome.questions.items()


def test_the_model_is_shown_readme_scripts_and_telling_lines(place: Workplace) -> None:
    place.repository(**{"src/fit__py": "x = 1\nload_dataset('glue', 'mrpc')\n"})
    place.outcome()
    questions, task = place.model.asked
    assert [message["role"] for message in questions] == ["system", "user"]
    assert "python train.py --data mrpc" in questions[1]["content"]
    assert "src/fit.py: load_dataset('glue', 'mrpc')" in questions[1]["content"]
    assert "train.py\nsrc/fit.py" in task[1]["content"]
    assert "x = 1" not in questions[1]["content"]


@pytest.mark.parametrize(
    "text",
    [
        "```json\n{}\n```",
        "Here it is:\n```\n{}\n```\nI hope it helps.",
        "{}\n",
        "My answer: {} as you asked.",
        "1. Here is what I found:\n```json\n{}\n```\n",
        '"Sure", this is it: {}',
        "4 answers: {}",
        "[1] says so.\n{}",
    ],
)
def test_json_may_stand_in_a_fence_or_in_prose(text: str) -> None:
    assert json_object(text.replace("{}", json.dumps(YES, indent=1))) == YES


def test_an_entrypoint_may_be_shell_lie_deep_or_have_a_first_line_only(place: Workplace) -> None:
    place.repository(**{"bin/run": "#!/usr/bin/env python3\n", "bin/go__sh": "ls"})
    for path, clean in (("bin/run", "bin/run"), ("./bin//go.sh", "bin/go.sh")):
        output = {"task": f"Fit the matcher on MRPC by running {clean}.", "entrypoint": path}
        place.model.task = [json.dumps({"output": output})]
        outcome = place.run(place.output / "matcher", model=path).outcomes.popitem()[1]
        assert outcome.task["entrypoint"] == {"path": clean}


# What is dropped before a model is asked


@pytest.mark.parametrize(
    ("file", "text", "package"),
    [
        ("a__py", "import openai\n", "openai"),
        ("a__py", "x = 1\n\timport  openai , os\n", "openai"),
        ("a__py", "import os,a.b,openai as o, x\n", "openai"),
        ("a__py", "import\topenai.types as t\n", "openai"),
        ("a__py", "if x:\n    from anthropic import Anthropic\n", "anthropic"),
        ("a__py", "from google import genai\n", "genai"),
        ("a__py", b"# \xff\xfe\nimport google.generativeai as g\n", "google.generativeai"),
        (
            "deep/er/a__ipynb",
            json.dumps({"cells": [{"source": ["import os\n", "import litellm\n"]}]}),
            "litellm",
        ),
        ("a__ipynb", json.dumps({"cells": [{"source": "import os\nimport groq"}]}, indent=1), "groq"),
    ],
)
def test_a_repository_that_imports_a_providers_package_is_dropped(
    place: Workplace, file: str, text: Any, package: str
) -> None:
    place.repository(**{file: text})
    outcome = place.outcome()
    assert outcome.reason == "llm_api"
    assert outcome.detail == f"{file.replace('__', '.')} imports {package}"
    assert place.model.asked == []


@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        ("import openai_utils\n", ""),
        ("from .openai import x\n", ""),
        ("# import openai\n", ""),
        ("x = 'import openai'\n", ""),
        ("from together we stand\n", ""),
        ("import torch.openai\n", ""),
        # A pattern that tries each length of such a run anew takes hours.
        ("", " "),
        ("import", " "),
        ("import a,", " "),
        ("import ", "a "),
        ("import ", "a, "),
        ("import ", "openaix,"),
        ("from", " "),
        ("from openai", " "),
        ("from openai", ".a"),
        ("from google", " "),
        ("from google import", " "),
    ],
)
def test_what_only_looks_like_such_an_import_is_none(place: Workplace, start: str, repeated: str) -> None:
    text = start + repeated * 500_000
    place.repository(a__py=text, a__ipynb=json.dumps(text))
    assert place.outcome().outcome == "kept"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"README__md": ""}, "no_readme"),
        ({"README__md": " \n\t\n"}, "no_readme"),
        ({"README__md": "", "docs/README__md": "text"}, "no_readme"),
        ({"README__md": "", "readme": "text"}, ""),
        ({"README__md": "", "ReadMe__RST": "text"}, ""),
        ({"README__md": "", "README__markdown": "text"}, ""),
        ({"README__md": "", "PKG-INFO": "Name: m\nDescription-Content-Type: text/markdown\n\n# M\n"}, ""),
        ({"README__md": "", "PKG-INFO": "Name: m\nDescription: UNKNOWN\n"}, "no_readme"),
        ({"README__md": "", "PKG-INFO": "Name: m\n"}, "no_readme"),
        ({"README__md": "", "PKG-INFO": "\x00\xff"}, "no_readme"),
        ({"train__py": "", "train__R": "x"}, "no_script"),
    ],
)
def test_a_repository_without_readme_or_scripts_is_dropped(
    place: Workplace, files: dict[str, Any], reason: str
) -> None:
    place.repository(**files)
    assert place.outcome().reason == reason
    assert bool(place.model.asked) == (not reason)


def test_the_description_of_a_source_distribution_is_shown_as_it_is(place: Workplace) -> None:
    metadata = "Name: m\nDescription: A matcher\n        \n            python train.py\nPlatform: x\n"
    place.repository(README__md="", **{"PKG-INFO": metadata})
    place.outcome()
    assert "    python train.py" in place.model.asked[0][1]["content"]


def test_a_repository_that_is_not_there_is_dropped_and_looked_for_again(
    place: Workplace, tmp_path: Path
) -> None:
    origin = (tmp_path / "gone").as_uri()
    assert place.outcome(origin).reason == "fetch_failed"
    make_origin(tmp_path / "gone")
    assert place.outcome(origin).outcome == "kept"


# What the model's answers drop


@pytest.mark.parametrize(
    ("question", "no", "reason"),
    [
        ("q_supported_dataset", None, "no_supported_dataset"),
        ("q_supported_dataset", False, "no_supported_dataset"),
        ("q_supported_dataset", " ", "no_supported_dataset"),
        ("q_supported_dataset", "None", "no_supported_dataset"),
        ("q_supported_dataset", " No.", "no_supported_dataset"),
        ("q_supported_dataset", "FALSE", "no_supported_dataset"),
        ("q_cpu", False, "needs_gpu"),
        ("q_model_families", False, "no_model_family"),
        ("q_execute_example", False, "no_execute_example"),
    ],
)
def test_each_question_answered_by_no_has_its_own_reason(
    place: Workplace, question: str, no: object, reason: str
) -> None:
    place.model.questions = [json.dumps({**YES, question: no, f"{question}_reason": "I saw\nnone"})]
    outcome = place.outcome()
    assert (outcome.reason, outcome.detail) == (reason, "I saw none")
    assert outcome.questions["q_cpu_reason"]
    assert len(place.model.asked) == 1


@pytest.mark.parametrize("text", ["{}", '{"thought": "no data", "output": {}}', '{"output": null}'])
def test_a_model_that_finds_no_task_is_not_asked_again(place: Workplace, text: str) -> None:
    place.model.task = [text]
    assert place.outcome().reason == "skipped"
    assert len(place.model.asked) == 2


def output(**fields: object) -> str:
    return json.dumps({"output": {"task": TASK, "entrypoint": "train.py", **fields}})


BAD_TASKS = [
    ("", "bad_answer", "it is empty"),
    ('{"output": {"task": ', "bad_answer", "no JSON object"),
    ("[{}]", "bad_answer", "not an object"),
    ("[" * 100_000, "bad_answer", "no JSON object"),
    ('{"thought": "x"}', "bad_answer", "`output`"),
    ('{"output": {"task": "x"}}', "bad_answer", "`output.entrypoint` is missing"),
    (output(task=7), "bad_answer", "`output.task`"),
    (output(task="run train.py"), "bad_answer", "at least 20"),
    (output(task="train.py " * 1000), "bad_answer", "at most 1500"),
    (output(task="Fit the matcher on MRPC with bert-base."), "bad_answer", "does not name train.py"),
    (output(task=f"{TASK} See https://evil.example/x."), "bad_answer", "web address"),
    (output(task=f"{TASK}\x1b[2J"), "bad_answer", "not text"),
    (output(task=f"{TASK}\ud800"), "bad_answer", "`output.task`"),
    (output(entrypoint="run_glue.py"), "entrypoint_missing", "no file 'run_glue.py'"),
    (output(entrypoint="python train.py"), "entrypoint_missing", "no file"),
    (output(entrypoint="/etc/passwd"), "entrypoint_missing", "no file"),
    (output(entrypoint="../beside.py"), "entrypoint_missing", "no file"),
    (output(entrypoint="src"), "entrypoint_missing", "no file"),
    (output(entrypoint="train.py\x00"), "entrypoint_missing", "no file"),
    (output(entrypoint="README.md"), "entrypoint_type", "README.md is neither"),
    (output(entrypoint="LICENSE"), "entrypoint_type", "LICENSE is neither"),
]


@pytest.mark.parametrize(("text", "reason", "words"), BAD_TASKS, ids=range(len(BAD_TASKS)))
def test_an_answer_that_makes_no_task_is_refused_when_it_is_repeated(
    place: Workplace, text: str, reason: str, words: str
) -> None:
    place.repository(LICENSE="MIT", **{"src/x__py": "1"})
    (place.output / "beside.py").write_text("1")
    place.model.task = [text]
    outcome = place.outcome()
    assert outcome.reason == reason
    assert words in outcome.detail
    assert len(place.model.asked) == 3
    assert words in place.model.asked[2][-1]["content"]
    assert not list(place.output.glob("*.task.yaml"))


def test_an_answer_that_is_mended_is_taken(place: Workplace) -> None:
    place.model.task = ["", json.dumps(PROPOSAL)]
    assert place.outcome().outcome == "kept"
    *_, said, told = place.model.asked[2]
    assert (said["role"], told["role"]) == ("assistant", "user")
    assert said["content"]
    assert "it is empty" in told["content"]


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "[]",
        "{}",
        json.dumps({**YES, "q_cpu": "true"}),
        json.dumps({**YES, "q_supported_dataset": True}),
    ],
)
def test_answers_of_wrong_types_to_the_questions_are_refused_and_the_run_goes_on(
    place: Workplace, text: str
) -> None:
    place.repository("other")
    place.model.questions = [text, text, json.dumps(YES)]
    outcomes = place.run(place.output / "matcher", place.output / "other").outcomes.values()
    assert [outcome.reason for outcome in outcomes] == ["bad_answer", ""]


@pytest.mark.parametrize("name", ["NoReC", "Nonesuch", "no-robots"])
def test_a_dataset_whose_name_begins_like_a_no_is_one(place: Workplace, name: str) -> None:
    place.model.questions = [json.dumps({**YES, "q_supported_dataset": name})]
    assert place.outcome().outcome == "kept"


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("Fit the matcher on MRPC:\r\nrun train.py.", "Fit the matcher on MRPC:\nrun train.py."),
        ("Fit the matcher on MRPC:\n\trun train.py.\t", "Fit the matcher on MRPC:\n run train.py."),
    ],
)
def test_line_ends_and_tabs_of_a_task_are_made_plain(place: Workplace, written: str, query: str) -> None:
    place.model.task = [output(task=written)]
    outcome = place.outcome()
    assert outcome.outcome == "kept", outcome.detail
    assert outcome.task["query"].startswith(f"{query}\n")


def test_an_answer_that_was_cut_off_is_refused(place: Workplace) -> None:
    place.model.finish_reason = "length"
    assert place.outcome().detail == "it was cut off, being too long"
    assert len(place.model.asked) == 2


@pytest.mark.parametrize("error", [FilteredError("policy"), BudgetSpentError("context")])
def test_what_a_provider_will_not_read_is_dropped(place: Workplace, error: Exception) -> None:
    place.model.questions = [error]
    assert place.outcome().reason == "model_refused"


def test_a_model_that_fails_is_asked_again_by_the_next_run(place: Workplace) -> None:
    place.model.task = [ModelError("overloaded"), json.dumps(PROPOSAL)]
    assert place.outcome().reason == "model_failed"
    assert place.outcome().outcome == "kept"
    assert len(place.model.asked) == 3


# Hostile repositories


def test_links_pipes_and_huge_or_odd_files_do_no_harm(place: Workplace, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("import openai\n")
    folder = place.repository(
        README__md=b"\xff\xfe\x00caf\xe9 \x1b[31m python train.py\x00", **{"l\nx__py": "import openai"}
    )
    (folder / "out.py").symlink_to(tmp_path / "secret.py")
    (folder / "outside").symlink_to(tmp_path, target_is_directory=True)
    (folder / "README").symlink_to("/etc/passwd")
    (folder / "self").symlink_to(".", target_is_directory=True)
    os.mkfifo(folder / "pipe.py")
    with (folder / "huge.py").open("wb") as file:
        file.truncate(2**30)
    assert Tree(folder).files == ["README.md", "huge.py", "train.py"]
    for entrypoint in ("out.py", "outside/secret.py", "self/train.py", "pipe.py"):
        place.model.task = [output(entrypoint=entrypoint)]
        (outcome,) = place.run(folder, model=entrypoint).outcomes.values()
        assert outcome.reason == "entrypoint_missing"
    assert all("secret" not in message["content"] for message in place.model.asked[0])


MARKS = ["</readme>", "<readme>", "< / ReadMe >", "<scripts>", "</code>", "<repository>"]
PIECES = [*MARKS, "<", "</", "/", ">", " ", "\n", "readme", "code", "rea", "dme", "x"]


@given(
    st.text() | st.lists(st.sampled_from(PIECES)).map("".join),
    st.sampled_from(MARKS),
    st.sampled_from(MARKS),
    st.integers(min_value=0, max_value=100),
)
def test_a_part_is_bounded_and_holds_no_mark_even_where_taking_one_away_would_make_one(
    text: str, mark: str, within: str, most: int
) -> None:
    part = answers.part("readme", f"{text}{mark[:4]}{within}{mark[4:]}{text}", most)
    inner = part.removeprefix("<readme>\n").removesuffix("\n</readme>")
    assert len(part) - len(inner) == len("<readme>\n\n</readme>")
    assert len(inner) <= most + len(f"\n{answers.CUT}")
    assert not re.search(r"<\s*/?\s*(repository|readme|scripts|code)\s*>", inner, re.IGNORECASE)


def test_a_mark_in_a_readme_stays_legible() -> None:
    part = answers.part("readme", "wrap it in <code> and </code>, as in </rea</readme>dme>", 1000)
    assert part == "<readme>\nwrap it in [code] and [/code], as in </rea[/readme]dme>\n</readme>"


@given(st.binary())
def test_any_bytes_are_legible(data: bytes) -> None:
    text = legible(data)
    assert text.encode().decode() == text
    assert not any(unicodedata.category(c) == "Cc" for c in text if c not in "\n\t")


@given(st.text() | st.recursive(st.none() | st.text() | st.floats(), lambda v: st.lists(v)).map(json.dumps))
def test_any_answer_is_an_object_or_refused(text: str) -> None:
    try:
        value = json_object(text)
    except RepositoryRefused as refused:
        reason = refused.reason
    else:
        reason = type(value).__name__
    assert reason in ("bad_answer", "dict")


def test_what_is_shown_of_a_huge_repository_is_bounded(place: Workplace) -> None:
    many = {f"package/module_{n}__py": "load_dataset('mrpc')\n" * 50 for n in range(400)}
    folder = place.repository(README__md="python train.py\n" * 100_000, **many)
    most = answers.LONGEST_README + answers.LONGEST_LIST + answers.LONGEST_CODE + 1000
    assert 40_000 < len(answers.for_questions("x", Tree(folder))) < most
    assert len(Tree(folder).read("README.md")) == LONGEST_FILE


# Runs one after the other, and at once


def test_other_prompts_models_or_files_are_other_questions(place: Workplace) -> None:
    folder = place.output / "matcher"
    prompts = read_prompts(None)
    for settings in (
        {},
        {"prompts": replace(prompts, task=f"{prompts.task} Be brief.")},
        {"model": "another"},
        {"parameters": {"temperature": 1}},
    ):
        place.model.asked.clear()
        place.run(folder, **settings)
        # The questions are the same where only the other prompt has changed.
        assert len(place.model.asked) == (1 if "prompts" in settings else 2)
    place.repository(README__md="python train.py --fast")
    place.model.asked.clear()
    place.run(folder)
    assert len(place.model.asked) == 2


def test_a_run_that_ended_between_the_questions_and_the_task_pays_the_questions_once(
    place: Workplace,
) -> None:
    place.model.task = [ModelError("gone", is_final=True), json.dumps(PROPOSAL)]
    run = place.run(place.output / "matcher")
    assert str(run.error) == "gone"
    assert any(line.split() == ["not", "looked", "at", "1"] for line in report_lines(run))
    assert not (place.output / "repositories.jsonl").read_text()
    with (place.output / "answers.jsonl").open("a") as file:
        file.write('{"key": "half a li')
    assert place.outcome().outcome == "kept"
    assert len(place.model.asked) == 3
    assert place.outcome().outcome == "kept"
    assert len(place.model.asked) == 3


def test_a_task_file_that_is_gone_is_written_again_and_a_changed_one_stays(place: Workplace) -> None:
    place.outcome()
    path = place.output / "matcher.task.yaml"
    text = path.read_text()
    path.unlink()
    place.outcome()
    assert path.read_text() == text
    path.write_text(f"{text}# mine\n")
    place.outcome()
    assert path.read_text().endswith("# mine\n")
    assert any("changed by hand" in line for line in place.told)
    assert len(place.model.asked) == 2


def test_a_task_file_that_was_there_is_not_taken_for_ours(place: Workplace) -> None:
    mine = place.output / "matcher.task.yaml"
    mine.write_text("id: matcher\nset: expert\nquery: x\nanswer: 1\n")
    outcome = place.outcome()
    assert outcome.id.startswith("matcher-")
    assert mine.read_text().endswith("answer: 1\n")
    assert (place.output / f"{outcome.id}.task.yaml").is_file()


def test_repositories_are_taken_at_once(place: Workplace) -> None:
    names = ["a", "b", "c"]
    for name in names:
        place.repository(name)
    # Broken unless three calls are made at the same time, twice.
    place.model.meanwhile = threading.Barrier(3, timeout=30).wait
    run = place.run(*(place.output / name for name in names), jobs=3)
    assert sorted(outcome.id for outcome in run.outcomes.values() if outcome.outcome == "kept") == names
    assert any(line.startswith("6 answers of played") for line in report_lines(run))


def test_two_runs_into_one_folder_at_once_are_refused(place: Workplace) -> None:
    folder = place.output / "matcher"
    refused: list[str] = []

    def again() -> None:
        with pytest.raises(SuperError) as caught:
            place.run(folder)
        refused.append(str(caught.value))

    place.model.meanwhile = again
    assert place.outcome().outcome == "kept"
    assert len(refused) == 2
    assert "another `pytest-super generate` runs into" in refused[0]


def test_a_report_with_a_foreign_line_is_refused(place: Workplace) -> None:
    folder = place.output / "matcher"
    (place.output / "repositories.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(SuperError, match="not ours"):
        place.run(folder)


# Names of repositories


@pytest.mark.parametrize(
    ("text", "kind", "where", "version"),
    [
        ("https://github.com/o/r", "git", "https://github.com/o/r", None),
        ("https://github.com/o/r.git@v1.0", "git", "https://github.com/o/r.git", "v1.0"),
        ("https://h.org/o/r@feature/x", "git", "https://h.org/o/r", "feature/x"),
        ("ssh://git@h.org/o/r", "git", "ssh://git@h.org/o/r", None),
        ("git@h.org:o/r.git", "git", "git@h.org:o/r.git", None),
        ("git@h.org:o/r.git@main", "git", "git@h.org:o/r.git", "main"),
        ("file:///srv/r@abc", "git", "file:///srv/r", "abc"),
        ("Boruta", "index", "Boruta", None),
        ("scikit_learn-extra==0.3.0rc1", "index", "scikit_learn-extra", "0.3.0rc1"),
    ],
)
def test_a_repository_is_named_by_url_project_or_folder(
    text: str, kind: str, where: str, version: str | None
) -> None:
    named = parse(text)
    assert (named.kind, named.place, named.version) == (kind, where, version)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a git URL"),
        ("-rf", "is not a git URL"),
        ("a==", "is not a git URL"),
        ("owner/name", "no such folder"),
        ("ext::sh -c id", "is not a git URL"),
        ("ext::sh://x", "the scheme of a git URL is one of"),
        ("ftp://h/r", "the scheme of a git URL is one of"),
        ("https://h.org/r@", "names no repository"),
        ("https://me:secret@h.org/r", "leave the password out"),
        ("https://token@h.org/r", "leave the password out"),
        ("a\nb", "cannot be in the name of a repository"),
    ],
)
def test_what_names_no_repository_is_refused(text: str, words: str) -> None:
    with pytest.raises(SuperError, match=words) as caught:
        parse(text)
    assert "secret" not in str(caught.value)
    assert "token" not in str(caught.value)


def test_a_list_has_one_a_line_and_tells_its_wrong_lines(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# mine\n\n  boruta \r\nhttps://h.org/o/r\nboruta\n", encoding="utf-8-sig")
    assert [named.text for named in read_all(["first"], [path])] == ["first", "boruta", "https://h.org/o/r"]
    path.write_text("boruta\nftp://x/y\na b\n")
    with pytest.raises(SuperError, match=r"(?s)list\.txt:2: ftp.*list\.txt:3: 'a b'"):
        read_all([], [path])
    with pytest.raises(SuperError, match="cannot be read"):
        read_all([], [tmp_path / "none"])
    with pytest.raises(SuperError, match="name a repository"):
        read_all([], [])


def test_ids_say_the_repository_differ_and_stay(tmp_path: Path) -> None:
    texts = [
        "https://h.org/O/R.git",
        "https://other.org/o/r",
        "git@h.org:o/q.git",
        "file:///srv/x/R",
        "Boruta",
    ]
    named = [parse(text) for text in texts]
    ids = ids_of(named, {}, tmp_path)
    assert ids[texts[0]] == "o-r"
    assert ids[texts[1]].startswith("o-r-")
    assert [ids[text] for text in texts[2:]] == ["o-q", "r", "boruta"]
    assert ids_of(named[::-1], {texts[1]: "kept"}, tmp_path)[texts[1]] == "kept"


@given(st.lists(st.text(min_size=1), unique=True, max_size=8))
def test_ids_are_legal_and_differ_whatever_the_names(texts: list[str]) -> None:
    ids = ids_of([Named(text=text, kind="git", place=text) for text in texts], {}, Path("nowhere"))
    assert len(set(ids.values())) == len(texts)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_.,-]*", id) for id in ids.values())


# Pinning


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_origin(folder: Path) -> Path:
    """A git repository with FILES in one commit."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    git("init", "--quiet", "-b", "main", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "--quiet", "-m", "1", cwd=folder)
    return folder


def test_branches_and_tags_are_pinned_to_their_commits(tmp_path: Path) -> None:
    origin = make_origin(tmp_path / "origin")
    commits = []
    for number, tag in enumerate(["light", "annotated", "last"]):
        (origin / "README.md").write_text(str(number))
        git("commit", "--quiet", "-a", "-m", "x", cwd=origin)
        git("tag", *(["-a", "-m", "x"] if tag == "annotated" else []), tag, cwd=origin)
        commits.append(git("rev-parse", "HEAD", cwd=origin))
    url = origin.as_uri()

    def pinned(version: str) -> dict[str, str]:
        return pin(parse(f"{url}{version}"), tmp_path)

    assert pinned("") == pinned("@main") == pinned("@last") == {"git": url, "commit": commits[2]}
    assert [pinned("@light")["commit"], pinned("@annotated")["commit"]] == commits[:2]
    assert pinned(f"@{commits[0].upper()}")["commit"] == commits[0]
    for version in ("@none", "@abc123", "@--upload-pack=x", "@refs/heads"):
        with pytest.raises(InfrastructureError, match="has no branch or tag"):
            pinned(version)


def test_a_branch_that_moves_stays_where_the_first_run_found_it(place: Workplace, tmp_path: Path) -> None:
    origin = make_origin(tmp_path / "origin")
    first = place.outcome(origin.as_uri())
    (origin / "README.md").write_text("python train.py --more")
    git("commit", "--quiet", "-am", "2", cwd=origin)
    assert place.outcome(origin.as_uri()) == first
    assert first.repository["commit"] == git("rev-parse", "HEAD~", cwd=origin)
    assert f"at commit {first.repository['commit']}, in the folder `origin/`" in first.task["query"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one package index that pip is configured for, a folder."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    # Asking pip takes a third of a second.
    monkeypatch.setattr("pytest_super.sources.index._config_list", dict)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "simple" / "my-matcher"
    folder.mkdir(parents=True)
    names = ["my_matcher-1.9.tar.gz", "My.Matcher-1.10.tar.gz", "my_matcher-2.0rc1.tar.gz"]
    others = ["my_matcher-3.0-py3-none-any.whl", "other-9.tar.gz", "my_matcher-x.tar.gz", "notes.txt"]
    for name in names + others:
        (folder / name).write_bytes(sdist(name.removesuffix(".tar.gz")))
    (folder / "index.html").write_text("".join(f'<a href="{name}">x</a>' for name in names + others))
    return folder


def sdist(top: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def test_a_project_is_pinned_to_its_newest_source_distribution(index: Path, tmp_path: Path) -> None:
    found = pin(parse("My-Matcher"), tmp_path)
    content = (index / "My.Matcher-1.10.tar.gz").read_bytes()
    assert found == {
        "pypi": "My-Matcher",
        "version": "1.10",
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert pin(parse("my-matcher==2.0rc1"), tmp_path)["version"] == "2.0rc1"
    for text, words in (
        ("my-matcher==3.0", "the newest that have one are 1.9, 1.10, 2.0rc1"),
        ("my-matcher==2.0.x", "is not a version"),
        ("nothing", "no source distribution"),
    ):
        with pytest.raises(InfrastructureError, match=words):
            pin(parse(text), tmp_path)


def test_a_release_that_was_yanked_is_taken_only_where_it_is_named(index: Path, tmp_path: Path) -> None:
    page = index / "index.html"
    html = page.read_text().replace('-1.10.tar.gz"', '-1.10.tar.gz" data-yanked="a bad build"')
    page.write_text(html)
    assert pin(parse("my-matcher"), tmp_path)["version"] == "1.9"
    assert pin(parse("my-matcher==1.10"), tmp_path)["version"] == "1.10"
    page.write_text(html.replace('.tar.gz">', '.tar.gz" data-yanked>'))
    assert pin(parse("my-matcher==1.9"), tmp_path)["version"] == "1.9"
    with pytest.raises(InfrastructureError, match="yanked; name one as my-matcher==VERSION"):
        pin(parse("my-matcher"), tmp_path)
    # Of two files of a release, the one that was not yanked is taken.
    (index / "my_matcher-4.0.zip").write_bytes(b"zip")
    page.write_text('<a href="my_matcher-4.0.tar.gz" data-yanked="">x</a><a href="my_matcher-4.0.zip">x</a>')
    assert pin(parse("my-matcher"), tmp_path)["sha256"] == hashlib.sha256(b"zip").hexdigest()


@pytest.mark.usefixtures("index")
def test_a_project_of_the_index_becomes_a_task_with_its_digest(place: Workplace) -> None:
    outcome = place.outcome("My-Matcher==1.9")
    (task,) = load_tasks(place.output / f"{outcome.id}.task.yaml")
    assert task.id == "my-matcher"
    assert task.repository is not None
    assert (task.repository.pypi, task.repository.version) == ("My-Matcher", "1.9")
    assert "My-Matcher 1.9, whose source distribution is in the folder `my_matcher-1.9/`" in task.query


def test_a_folder_must_lie_inside_that_of_the_output(place: Workplace, tmp_path: Path) -> None:
    for folder in (tmp_path, place.output):
        outcome = place.outcome(f"{folder}/")
        assert outcome.reason == "fetch_failed"
        assert "is not inside" in outcome.detail


# The command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a repository"),
        (["boruta", "--prompts=."], "has none of questions.md, task.md, repair.md"),
        (["boruta", "--model=scripted:none.yaml"], "none.yaml"),
        (["boruta", "--output=file"], "file cannot be used"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_told_before_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    has_model = any(word.startswith("--model=") for word in arguments)
    assert main(["generate", *([] if has_model else ["--model=openai/gpt-4o"]), *arguments]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "auto").exists()


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--max-cost=0", "'0': must be more than 0"),
        ("--max-cost=x", "'x': "),
        ("--max-cost=inf", "'inf': must be a number"),
        ("--jobs=0", "'0': must be a whole number of at least 1"),
        ("--jobs=x", "'x': "),
        ("--set=expert", "--set=expert"),
        ("--model-arg=x", "'x': write it as KEY=VALUE"),
        ("--model-arg=api_key=sk-1", "'api_key': keys come from the environment"),
    ],
)
def test_values_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], argument: str, words: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--model=m", "boruta", argument])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_every_reason_is_described() -> None:
    text = page_path("generating.md").read_text(encoding="utf-8")
    described = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert [name for name in described if name in REASONS] == list(REASONS)


def test_prompts_of_ones_own_stand_in_for_ours(tmp_path: Path) -> None:
    ours = read_prompts(None)
    (tmp_path / "task.md").write_text("Write a task.\n")
    own = read_prompts(tmp_path)
    assert (own.questions, own.task, own.repair) == (ours.questions, "Write a task.", ours.repair)
    assert own.digest != ours.digest
    (tmp_path / "repair.md").write_text("Again.")
    with pytest.raises(SuperError, match=r"does not contain \{problem\}"):
        read_prompts(tmp_path)
