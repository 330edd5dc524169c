"""`pytest-super import super`: rows of the published form as task files that validate, nothing dropped."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.clipped_history import content_text
from pytest_super.cli import main
from pytest_super.store.trajectory import Action
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import Task
from pytest_super.trial.editing import edit as edit_bytes

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"

EXPERT: dict[str, Any] = {
    "task_id": "galore",
    "github_repo": "https://github.com/jiaweizzhao/galore",
    "git_commit": COMMIT,
    "query": 'Fine-tune it for 1 epoch.\nReport {"accuracy": 0.0}.\n\nAdditional instructions:\n1. Seed 42.',
    "query_components": {"instructions": "Seed 42.", "sources": None},
    "answer": '{"accuracy": 0.6, "f1": 1e-05}',
    "landmarks": [r"\*\*\* training completed \*\*\*", "Loading data.*100%"],
    "entrypoint": "scripts/run_glue.py",
    "environment": "python3.10",
    "pre_execute_cells": [],
    "solution_dependencies": ["torch==2.2.1", {"until": 1.50}],
}

EDIT = "run.py\ndef main():\n<<<BEFORE_EDIT>>>\n    x = 1\n\n<<<AFTER_EDIT>>>\n    x = 2\n    y = 3\n"
MASKED: dict[str, Any] = EXPERT | {
    "task_id": "conv_graph_data",
    "answer": '["race", "gender"]',
    "pre_execute_cells": [
        json.dumps({"type": "execute", "content": "!git clone https://github.com/jiaweizzhao/galore"}),
        json.dumps({"type": "execute", "content": "%cd galore\nimport os\n\n\nprint(os.getcwd())\n"}),
        json.dumps({"type": "edit", "content": EDIT}),
    ],
}

AUTO: dict[str, Any] = {
    "task_id": "1234-some.repo",
    "github_repo": "https://github.com/someone/some.repo",
    "git_commit": COMMIT,
    "query": "Run the training script for one epoch.",
    "answer": None,
    "landmarks": [],
    "entrypoint": "src/train.py",
    "environment": None,
    "pre_execute_cells": None,
}

FILES = {"expert": "expert.jsonl", "masked": "masked.jsonl", "auto": "auto_gen.jsonl"}
RESOLVE = "/datasets/allenai/super/resolve"
ROWS = {"expert": EXPERT, "masked": MASKED, "auto": AUTO}


class Data:
    """A data set on this machine, and what an import of it makes."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder / "data" / "tasks"
        self.folder.mkdir(parents=True)
        self.output = folder / "out"
        self.capsys = capsys
        self.out = self.err = ""

    def write(self, set_name: str, *rows: dict[str, Any]) -> Path:
        return self.write_text(set_name, "".join(json.dumps(row) + "\n" for row in rows))

    def write_text(self, set_name: str, text: str) -> Path:
        path = self.folder / FILES[set_name]
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return path

    def run(self, set_name: str, *options: str) -> int:
        source = [] if "--from" in options else ["--from", str(self.folder / FILES[set_name])]
        return self.download(set_name, *source, "--output", str(self.output), *options)

    def download(self, set_name: str, *options: str) -> int:
        status = main(["import", "super", "--set", set_name, *options])
        self.out, self.err = self.capsys.readouterr()
        return status

    def tasks(self) -> dict[str, Task]:
        loaded = [task for path in sorted(self.output.glob("*.task.yaml")) for task in load_tasks(path)]
        return {task.id: task for task in loaded}

    def task(self, set_name: str, row: dict[str, Any]) -> Task:
        self.write(set_name, row)
        assert self.run(set_name) == 0, self.err
        (task,) = self.tasks().values()
        return task

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.output.iterdir()}


@pytest.fixture
def data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Data:
    return Data(tmp_path, capsys)


# What a row becomes


def test_an_expert_row_becomes_a_task_with_all_that_it_holds(data: Data) -> None:
    task = data.task("expert", EXPERT)
    assert data.err == ""
    assert (task.id, task.set, task.category) == ("galore", "expert", None)
    assert task.query == EXPERT["query"]
    assert task.answer == {"accuracy": 0.6, "f1": 1e-05}
    assert task.landmarks == EXPERT["landmarks"]
    assert task.entrypoint is not None
    assert task.entrypoint.path == "scripts/run_glue.py"
    assert task.repository is not None
    assert (task.repository.git, task.repository.commit) == (EXPERT["github_repo"], COMMIT)
    assert not task.repository.provide
    # As in the paper.
    assert (task.limits.compute, task.limits.cell, task.limits.tokens) == (1800, 300, 600_000)
    assert (task.sandbox.network, task.sandbox.image) == (True, "pytest-super-kernel:super")
    left = {name: EXPERT[name] for name in ("query_components", "environment", "solution_dependencies")}
    assert task.metadata == left


def test_a_masked_rows_prefix_becomes_cells_and_edits(data: Data) -> None:
    task = data.task("masked", MASKED)
    assert data.err == ""
    assert (task.category, task.limits.tokens) == ("data", 400_000)
    assert task.answer == ["race", "gender"]
    *cells, edit = task.pre_execute
    assert [cell.cell for cell in cells] == [
        json.loads(text)["content"] for text in MASKED["pre_execute_cells"][:2]
    ]
    assert edit.edit is not None
    assert edit.edit.path == "run.py"
    before = b"def main():\n    x = 1\n  \n    end()\n"
    after = b"def main():\n    x = 2\n    y = 3\n    end()\n"
    assert edit_bytes(before, edit.edit.before, edit.edit.after)[0] == after


def test_a_published_edit_of_a_prefix_is_shown_to_agents_as_it_is_published(data: Data) -> None:
    content = "run.py\n<<<BEFORE_EDIT>>>\n\n    x = 1\n<<<AFTER_EDIT>>>\n\n    x = 2\n\n    y = 3\n"
    cells = [json.dumps({"type": "edit", "content": content})]
    (step,) = data.task("masked", MASKED | {"pre_execute_cells": cells}).pre_execute
    assert step.edit is not None
    stored = Action(type="edit", content=json.dumps(step.edit.model_dump()))
    assert content_text(stored) == content


def test_a_row_with_the_id_of_an_earlier_one_gets_an_id_from_its_content(data: Data) -> None:
    data.write("expert", EXPERT, EXPERT | {"query": "Another."}, EXPERT | {"task_id": "amos"})
    assert data.run("expert") == 0
    (line,) = data.err.splitlines()
    assert "row 2 (galore): an earlier row has the id galore: the id becomes galore-" in line
    (other,) = (task for task in data.tasks().values() if task.query == "Another.")
    assert other.metadata["task_id"] == "galore"
    # Whatever the order of the other rows.
    data.write("expert", EXPERT | {"task_id": "amos"}, EXPERT, EXPERT | {"query": "Another."})
    assert data.run("expert") == 0
    assert set(data.tasks()) == {"amos", "galore", other.id}


def test_an_auto_row_becomes_a_task_without_a_gold(data: Data) -> None:
    task = data.task("auto", AUTO)
    assert data.err == ""
    assert not task.has_answer
    assert not task.answer_unknown
    assert task.entrypoint is not None
    assert task.metadata == {"environment": None}


def test_memory_and_disk_suffice_for_the_published_tasks_or_are_what_the_user_says(data: Data) -> None:
    data.write("expert", EXPERT)
    assert data.run("expert") == 0
    sandbox = data.tasks()["galore"].sandbox
    assert (sandbox.memory, sandbox.disk) == (16 * 2**30, 40 * 2**30)
    assert data.run("expert", "--memory", "24g", "--disk", "none") == 0
    sandbox = data.tasks()["galore"].sandbox
    assert (sandbox.memory, sandbox.disk) == (24 * 2**30, None)
    with pytest.raises(SystemExit):
        data.run("expert", "--memory", "much")
    assert "--memory: 'much': " in data.capsys.readouterr().err


def test_the_image_is_one_that_the_user_names_or_none(data: Data) -> None:
    data.write("expert", EXPERT)
    assert data.run("expert", "--image", "mine:1") == 0
    assert data.tasks()["galore"].sandbox.image == "mine:1"
    assert data.run("expert", "--no-image") == 0
    assert data.tasks()["galore"].sandbox.image is None


@pytest.mark.parametrize(
    ("task_id", "category", "warnings"),
    [
        ("colbert_cpu", "cpu", 0),
        ("robust_prompt_classifier_configuration", "configuration", 0),
        ("safetybench_configuration,cpu", "configuration", 0),
        ("mixup-amp_custom", "other", 0),
        ("nobody_data", "other", 1),
        ("colbert_magic", "other", 1),
    ],
)
def test_a_category_is_what_follows_the_expert_tasks_id_or_other_with_a_warning(
    data: Data, task_id: str, category: str, warnings: int
) -> None:
    task = data.task("masked", MASKED | {"task_id": task_id})
    assert (task.id, task.category) == (task_id, category)
    place = f"{data.folder}/masked.jsonl:row 1 ({task_id}): "
    assert [line.startswith(place) for line in data.err.splitlines()] == [True] * warnings


# Odd rows


@pytest.mark.parametrize("answer", [None, "", "null", "{}", "[]"])
def test_a_row_without_a_gold_value_is_a_task_whose_accuracy_is_null(data: Data, answer: str | None) -> None:
    task = data.task("expert", EXPERT | {"answer": answer})
    assert task.answer_unknown
    assert not task.has_answer
    assert "accuracy is null" in data.err
    assert task.metadata.get("answer") == (answer or None)


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("[1.10, 2]", [1.1, 2]),
        ('{"012": "1:30", "on": "5e-05"}', {"012": "1:30", "on": "5e-05"}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_answers_are_read_as_json(data: Data, raw: object, answer: object) -> None:
    found = data.task("expert", EXPERT | {"answer": raw}).answer
    assert (found, type(found)) == (answer, type(answer))
    assert data.err == ""


def test_an_answer_that_is_not_json_is_kept_as_text_with_a_warning(data: Data) -> None:
    assert data.task("expert", EXPERT | {"answer": "{accuracy: 0.6}"}).answer == "{accuracy: 0.6}"
    assert data.err.endswith("row 1 (galore): `answer` is not JSON: it is kept as text\n")


def test_a_landmark_that_is_no_pattern_is_imported_as_its_text(data: Data) -> None:
    task = data.task("expert", EXPERT | {"landmarks": ["done (", r"ok \d"]})
    assert task.landmarks == [r"done\ \(", r"ok \d"]
    assert task.metadata["landmarks"] == ["done (", r"ok \d"]
    assert "(galore): the landmark 'done (' is not a regular expression" in data.err


@pytest.mark.parametrize(
    ("url", "git"),
    [
        (
            "https://github.com/huawei-noah/noah-research/tree/master/conv_graph",
            "https://github.com/huawei-noah/noah-research",
        ),
        ("someone/code", "https://github.com/someone/code"),
    ],
)
def test_a_repository_is_named_by_what_can_be_cloned(data: Data, url: str, git: str) -> None:
    task = data.task("expert", EXPERT | {"github_repo": url})
    assert task.repository is not None
    assert task.repository.git == git
    assert task.metadata["github_repo"] == url


@pytest.mark.parametrize("commit", [None, "", "main", "0123abc"])
def test_without_a_full_commit_the_repository_stays_in_the_metadata(data: Data, commit: str | None) -> None:
    task = data.task("expert", EXPERT | {"git_commit": commit})
    assert task.repository is None
    assert (task.metadata["github_repo"], task.metadata["git_commit"]) == (EXPERT["github_repo"], commit)
    assert "no full commit hash" in data.err


def test_an_id_that_no_task_may_have_becomes_one_with_a_warning_of_one_line(data: Data) -> None:
    task = data.task("auto", AUTO | {"task_id": "_some one/\n\x1b[2Jé"})
    assert task.id == "some-one-2J-"
    assert task.metadata["task_id"] == "_some one/\n\x1b[2Jé"
    (line,) = data.err.splitlines()
    assert "the id becomes some-one-2J-" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("raw", "path"),
    [("./run.sh", "./run.sh"), ("/content/a/run.py", "content/a/run.py"), ("../run.py", "run.py")],
)
def test_an_entrypoint_stays_in_its_folder(data: Data, raw: str, path: str) -> None:
    task = data.task("auto", AUTO | {"entrypoint": raw})
    assert task.entrypoint is not None
    assert task.entrypoint.path == path
    assert task.metadata.get("entrypoint", path) == raw or raw == path


@pytest.mark.parametrize(
    ("cell", "warning"),
    [
        ("!ls -la", "is not an action"),
        (json.dumps({"type": "continue_wait", "content": ""}), "is a continue_wait"),
        (json.dumps({"type": "execute", "content": " \n"}), "is empty"),
    ],
)
def test_cells_that_are_none_are_told_and_kept(data: Data, cell: str, warning: str) -> None:
    cells = [json.dumps({"type": "execute", "content": "1"}), cell]
    task = data.task("masked", MASKED | {"pre_execute_cells": cells})
    assert warning in data.err
    assert cell in task.metadata.get("pre_execute_cells", [part.cell for part in task.pre_execute])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"query": ""}, "`query` has no text"),
        ({"task_id": None}, "`task_id` has no text"),
        ({"entrypoint": ".."}, "names no file"),
        ({"pre_execute_cells": ['{"type": "submit", "content": "1"}']}, "type 'submit'"),
        ({"pre_execute_cells": [json.dumps({"type": "edit", "content": "a.py\nx"})]}, "is not an edit"),
        ({"query": "a\ud800b"}, "half of a surrogate pair"),
    ],
)
def test_a_row_that_makes_no_task_is_told_and_the_others_are_written(
    data: Data, change: dict[str, Any], why: str
) -> None:
    data.write("expert", EXPERT, EXPERT | {"task_id": "amos"} | change)
    assert data.run("expert") == 1
    assert list(data.tasks()) == ["galore"]
    (line,) = data.err.splitlines()
    assert line.startswith(f"{data.folder}/expert.jsonl:row 2 (")
    assert "left out" in line
    assert why in line
    assert "1 rows left out" in data.out


def test_nothing_changes_by_being_imported(data: Data) -> None:
    """What YAML or JSON could read as something else; test_yaml_writer tries what nobody thought of."""
    hostile = "\n - a: b # c\t\n\n  ? 'x' \"y\" |>&*!%@`{}[]~\\\r\x00\x85\u2028\ufeff\U0001f600 0e.no \n"
    values: list[Any] = [hostile, "no", "1e-3", "", None, 10**20, 1e-05, {hostile: [{"~": []}]}]
    row = MASKED | {
        "query": hostile,
        "answer": json.dumps({"a": values}),
        "pre_execute_cells": [json.dumps({"type": "execute", "content": hostile})],
        "extra": values,
    }
    task = data.task("masked", row)
    assert task.query == hostile
    assert json.dumps(task.answer) == row["answer"]
    assert [part.cell for part in task.pre_execute] == [hostile]
    assert json.dumps(task.metadata["extra"]) == json.dumps(values)


# What is written


def test_a_second_import_changes_no_byte_and_the_record_names_both_sides(data: Data) -> None:
    path = data.write("expert", EXPERT, EXPERT | {"task_id": "amos"})
    assert data.run("expert") == 0
    files = data.files()
    assert data.run("expert") == 0
    assert data.files() == files
    assert "nothing changed" in data.out
    record = json.loads(files.pop("super-expert.import.json"))
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["revision"] is None
    assert record["files"] == {name: hashlib.sha256(text).hexdigest() for name, text in files.items()}
    assert set(files) == {"galore.task.yaml", "amos.task.yaml"}


# What cannot be imported


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"task_id": 1}\n{"a": \n\n[1]\n', ["expert.jsonl:2: not JSON: ", "expert.jsonl:4: not a row"]),
        ("", ["the file has no row"]),
        (
            '{"task_id": "a", "query": "x", "landmarks": []}\n',
            ["no row has `answer`: ", "landmarks, query, task_id"],
        ),
        ('{"task_id": "\udcff"}\n', ["expert.jsonl:1: not UTF-8 (byte 0xff at column 14)"]),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused_by_line(data: Data, text: str, error: list[str]) -> None:
    data.write_text("expert", text)
    assert data.run("expert") == 1
    assert all(part in data.err for part in error)
    assert not data.output.exists()


# The hub


@pytest.fixture
def hub(httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HTTPServer:
    """As much of the Hugging Face hub as a download asks for."""
    # huggingface_hub reads its environment when it is imported, which is too early for one server a test.
    constants = pytest.importorskip("huggingface_hub.constants")
    url = httpserver.url_for("")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.chdir(tmp_path)
    for set_name, row in ROWS.items():
        text = json.dumps(row) + "\n"
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(text.encode()).hexdigest()}"'}
        httpserver.expect_request(re.compile(f"{RESOLVE}/.*/tasks/{FILES[set_name]}")).respond_with_data(
            text, headers=headers
        )
    httpserver.expect_request(re.compile("/api/.*")).respond_with_data("", status=404)
    return httpserver


def asked(hub: HTTPServer) -> list[str]:
    """The files that were asked for, each after its revision."""
    paths = [request.path for request, _ in hub.log]
    return [path.removeprefix(f"{RESOLVE}/") for path in paths if path.startswith(RESOLVE)]


@pytest.mark.parametrize("set_name", FILES)
def test_a_set_is_downloaded_and_its_commit_recorded(
    hub: HTTPServer, data: Data, tmp_path: Path, set_name: str
) -> None:
    assert (data.download(set_name), data.err) == (0, "")
    (path,) = (tmp_path / "super" / set_name).glob("*.task.yaml")
    assert load_tasks(path)[0].id == ROWS[set_name]["task_id"]
    assert COMMIT in data.out
    record = json.loads((path.parent / f"super-{set_name}.import.json").read_bytes())
    assert record["revision"] == COMMIT
    assert asked(hub)[0] == f"main/tasks/{FILES[set_name]}"


def test_a_revision_is_asked_for_and_once_there_needs_no_hub(hub: HTTPServer, data: Data) -> None:
    assert data.download("expert", "--revision", "v1.0") == 0
    assert asked(hub)[0] == "v1.0/tasks/expert.jsonl"
    hub.clear()
    assert (data.download("expert", "--revision", COMMIT), data.err) == (0, "")
    assert "nothing changed" in data.out
    assert asked(hub) == []


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(404, "RevisionNotFound", "no such revision"), (403, "GatedRepo", "set HF_TOKEN")],
)
def test_what_the_hub_refuses_is_told_in_one_line(
    hub: HTTPServer, data: Data, tmp_path: Path, status: int, code: str, words: str
) -> None:
    hub.clear()
    hub.expect_request(re.compile(".*")).respond_with_data("", status, headers={"X-Error-Code": code})
    assert data.download("expert", "--revision", "v9") == 1
    (line,) = data.err.splitlines()
    assert line.startswith("pytest-super: allenai/super: tasks/expert.jsonl at 'v9' was not downloaded: ")
    assert words in line
    assert not (tmp_path / "super").exists()


@pytest.mark.usefixtures("hub")
def test_a_hub_that_cannot_be_reached_is_told_in_one_line(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert data.download("expert") == 1
    (line,) = data.err.splitlines()
    assert "it cannot be downloaded and is not in the cache" in line


def test_without_huggingface_hub_only_files_that_are_there_can_be_imported(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert data.download("expert") == 1
    (line,) = data.err.splitlines()
    assert "pip install 'pytest-super[super]'" in line
    assert "--from" in line
    assert data.task("expert", EXPERT).id == "galore"
