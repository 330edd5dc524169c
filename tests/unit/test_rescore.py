"""Stored trajectories scored again: what is found, what is told, and the published expert set re-made."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_super.authoring.rescore.scores import provided_folder
from pytest_super.cli import main
from pytest_super.store.json_lines import to_line
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Action, Step, step_to_data
from pytest_super.tasks.task import Repository
from tests.unit.test_published import REACT, SWE, Cell, step_cells, write


@dataclass
class Told:
    """What one call of the command gave."""

    status: int
    out: str
    err: str
    data: dict[str, Any]

    @property
    def rows(self) -> dict[str, dict[str, dict[str, float | None]]]:
        return {one["task"]: one["scores"] for one in self.data["trajectories"]}

    @property
    def reasons(self) -> dict[str, str]:
        """Of the only trajectory, by metric."""
        [one] = self.data["trajectories"]
        return {metric: "; ".join(reasons) for metric, reasons in one["differences"].items()}


class Scores:
    """A folder with trajectories, and what they are scored against."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, name: str, content: Any) -> Path:
        path = self.path(name)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def task(self, **fields: Any) -> None:
        data = {"id": "t", "set": "expert", "query": "do it", "answer": 1, **fields}
        self.put(f"tasks/{data['id']}.task.yaml", data)

    def published(self, cells: list[Cell], metrics: Any = None, place: str = "published/t") -> Path:
        path = write(self.path(f"{place}/history.ipynb").parent, cells)
        if metrics is not None:
            self.put(f"{place}/metrics.json", metrics)
        return path

    def ours(self, *steps: Step, place: str = "run/trials/t/1.0", **facts: Any) -> Path:
        """A trial's folder, with a result that has `facts`, of which some are metrics."""
        metrics = {name: facts.pop(name, None) for name in ("accuracy", "landmarks", "script_executed")}
        metrics["submitted"] = float(any(step.action.type == "submit" for step in steps))
        given: dict[str, Any] = {"id": "t", "set": "expert", "category": None, "epoch": 1, "rerun": 0}
        known = {"agent": "a", "stop_reason": "submitted", "metrics": metrics}
        result = TrialResult(**{**given, **known, **facts})
        self.put(f"{place}/result.json", result.to_data())
        lines = (step_to_data(replace(step, number=number)) for number, step in enumerate(steps, 1))
        return self.put(f"{place}/trajectory.jsonl", "".join(map(to_line, lines)))

    def rescore(self, *arguments: str | Path, answers: Any = None) -> Told:
        against = ["--tasks", self.folder / "tasks"] if (self.folder / "tasks").exists() else []
        if isinstance(answers, dict):
            answers = "".join(to_line({"task_id": id, "answer": answer}) for id, answer in answers.items())
        if answers is not None:
            against += ["--answers", self.put("answers.json", answers)]
        output = self.folder / "out.json"
        output.unlink(missing_ok=True)
        status = main(["rescore", *map(str, [*arguments, *against]), f"--json={output}"])
        told = self.capsys.readouterr()
        return Told(status, told.out, told.err, json.loads(output.read_text()) if output.exists() else {})


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scores:
    return Scores(tmp_path, capsys)


def submit(answer: Any) -> Step:
    return Step(number=1, origin="agent", action=Action(type="submit", content=json.dumps(answer)))


def cell(content: str, output: str = "", **facts: Any) -> Step:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    step = Step(number=1, origin="agent", action=Action(type="execute", content=content), outputs=outputs)
    return replace(step, **{"observation": output, "seconds": 20.0, **facts})


def stored(**facts: Any) -> str:
    """A result.json with these facts."""
    known = {"id": "t", "set": "expert", "category": None, "epoch": 1, "rerun": 0, "agent": "a"}
    return json.dumps({**known, "stop_reason": "submitted", **facts})


# What is found


def test_a_published_folder_is_scored_beside_its_metrics(bench: Scores) -> None:
    metrics = {"submitted": 1, "output_match": 1.0, "checkpoints": 0.5, "entrypoint": None}
    bench.published(REACT + step_cells(1, "submit", "{'acc': 0.6}"), metrics)
    told = bench.rescore(bench.folder / "published", answers={"t": {"acc": 0.6, "f1": 0.75}})
    assert told.status == 0
    assert told.rows["t"] == {
        "accuracy": {"published": 1.0, "reference": 1.0, "paper": 0.5},
        "landmarks": {"published": 0.5, "reference": None, "paper": None},
        "submitted": {"published": 1, "reference": 1, "paper": 1.0},
        "script_executed": {"published": None, "reference": None, "paper": None},
        "graded": {"published": None, "reference": None, "paper": None},
        "self_report": {"published": None, "reference": None, "paper": None},
        "suspect": {"published": None, "reference": None, "paper": None},
    }
    [row] = [line for line in told.out.splitlines() if line.startswith("t ")]
    assert row.split() == ["t", *["1.000"] * 2, *["0.500"] * 2, *["-"] * 2, *["1.000"] * 3]
    assert "differs react-super t accuracy: published 1.000, reference 1.000, paper 0.500: " in told.out


def test_of_a_run_the_last_rerun_of_each_epoch_is_scored(bench: Scores) -> None:
    bench.task()
    bench.ours(submit(0), place="run/trials/t/1.9", rerun=9)
    bench.ours(submit(1), place="run/trials/t/1.10", rerun=10, accuracy=1.0)
    bench.ours(submit(0), place="run/trials/t/2.1", epoch=2, accuracy=0.0)
    for folder in ("run", "run/trials", "run/trials/t"):
        told = bench.rescore(bench.folder / folder)
        found = [(one["epoch"], one["scores"]["accuracy"]["paper"]) for one in told.data["trajectories"]]
        assert found == [(1, 1.0), (2, 0.0)]
    assert "t[2] " in told.out


@pytest.mark.parametrize("depth", [0, 2])
def test_a_trial_that_was_copied_anywhere_is_scored(bench: Scores, depth: int) -> None:
    bench.task()
    with TemporaryDirectory() as folder:
        place = Path(folder, *"abcd"[:depth])
        bench.ours(submit(1), place=str(place), accuracy=1.0)
        told = bench.rescore(place)
    assert (told.status, told.rows["t"]["accuracy"]["paper"]) == (0, 1.0), told.out


@pytest.mark.parametrize(
    ("facts", "why"),
    [({"error": "no engine"}, "no engine"), ({"stop_reason": "running"}, "the trial did not end")],
)
def test_a_trial_without_a_score_is_told_and_not_scored(bench: Scores, facts: Any, why: str) -> None:
    bench.task()
    path = bench.ours(submit(1), **facts)
    told = bench.rescore(path)
    assert told.status == 0
    assert told.rows["t"]["accuracy"]["paper"] is None
    assert f"error   {path}: not scored: {why}" in told.out


# What cannot be read


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("published/t/history.ipynb", "[]", "is not a notebook"),
        ("published/t/metrics.json", "{", "does not contain the metrics of a trial"),
        ("published/t/metrics.json", '{"output_match": "high"}', "does not contain the metrics of a trial"),
        ("run/trials/t/1.0/trajectory.jsonl", '{"number": 1}\n', "is not a trajectory"),
        (
            "run/trials/t/1.0/trajectory.jsonl",
            to_line({**step_to_data(cell("1")), "outputs": 7, "seconds": "long"}),
            "cannot be scored",
        ),
        ("run/trials/t/1.0/result.json", '{"id": 1}', "has no valid result.json"),
        ("run/trials/t/1.0/result.json", stored(set={"a": 1}), "result.json next to it: the field set has"),
        (
            "run/trials/t/1.0/result.json",
            stored(metrics={"accuracy": 10**400}),
            "the metric accuracy of t is not a",
        ),
        ("elsewhere/trajectory.jsonl", "text", "has no valid result.json"),
    ],
)
def test_a_broken_trajectory_is_one_line_and_the_others_are_scored(
    bench: Scores, name: str, text: str, why: str
) -> None:
    bench.task(landmarks=["x"])
    bench.ours(submit(1))
    bench.published(REACT + step_cells(1, "submit", "1"))
    good = bench.published(REACT + step_cells(1, "submit", "1"), place="good/t")
    folder = bench.put(name, text).parent
    told = bench.rescore(folder, good)
    assert told.status == 1
    assert len(told.rows) == 1
    [line] = [line for line in told.out.splitlines() if line.startswith("broken ")]
    assert line.startswith(f"broken  {folder}/")
    assert why in line
    assert told.data["broken"] == [line.removeprefix("broken  ")]


def test_what_others_wrote_cannot_move_the_cursor(bench: Scores) -> None:
    bench.task()
    bench.ours(submit("\x1b[2J\u202e"), error="\x1b[2Jgone\nreally")
    told = bench.rescore(bench.folder / "run")
    assert "\x1b" not in told.out
    assert "?[2Jgone | really" in told.out


# What to score against


@pytest.mark.parametrize(
    "answers",
    [
        '{"task_id": "t", "answer": {"a": 1}}\n\n{"task_id": "u", "answer": null}\n',
        '{"task_id": "t", "answer": "{\\"a\\": 1}"}',
        '{"task_id": "t", "answer": "0", "inferred_answer": {"a": 1}, "other": []}',
        '\ufeff{"task_id": "u"}\r\n{"task_id": "t", "answer": {"a": 1}}\r\n',
    ],
)
def test_answers_are_given_as_json_lines(bench: Scores, answers: Any) -> None:
    bench.published(REACT + step_cells(1, "submit", "{'a': 1}"))
    assert bench.rescore(bench.folder, answers=answers).rows["t"]["accuracy"]["paper"] == 1.0


def test_answers_and_entrypoints_of_the_file_go_before_those_of_the_tasks(bench: Scores) -> None:
    bench.task(answer=1, landmarks=["done"], entrypoint={"path": "a.py"})
    path = bench.ours(cell("!python b.py", "done"), submit(2))
    told = bench.rescore(path, answers='{"task_id": "t", "answer": 2, "entrypoint": "b.py"}')
    assert [figures["paper"] for figures in told.rows["t"].values()] == [*[1.0] * 4, None, None, None]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ('{"task_id": "t", "answer": 1}\n\n {"task_id": ', ":3: not JSON: Expecting value at column 14"),
        ('[{"task_id": "t", "answer": 1}]', ":1: not a row: it should be a JSON object"),
        ('{"task_id": "t", "answer": 1}\n7', ":2: not a row: it should be a JSON object"),
        ('{"task_id": "t"}\n{"answer": 7}', ":2: it has no `task_id`"),
        ("[" * 10**5, ":1: not JSON that can be read"),
        ('{"task_id": "t", "answer": 1}\n{"task_id": "t"}', ":2: there are two answers for t"),
        ('{"task_id": "t", "entrypoint": "/a.py"}', ":1: `entrypoint` must be a relative path"),
        ('{"task_id": ["t"]}', ":1: "),
    ],
)
def test_broken_answers_are_told_with_their_line(bench: Scores, answers: Any, why: str) -> None:
    bench.published(REACT + step_cells(1, "submit", "1"))
    told = bench.rescore(bench.folder, answers=answers)
    assert told.status == 1
    assert f"answers.json{why}" in told.err


def test_what_is_missing_on_the_command_line_is_told(bench: Scores) -> None:
    path = bench.published(REACT + step_cells(1, "submit", "1"))
    assert "name what to score against: --tasks=PATH, --answers=FILE" in bench.rescore(path).err
    empty = bench.path("empty/x").parent
    assert f"{empty} has no trajectory" in bench.rescore(empty, answers={"t": 1}).err
    assert "contains any of these tasks: t, …" in bench.rescore(path, answers={"u": 1}).err
    assert "x.json: cannot be read: No such file" in bench.rescore(path, "--answers=/nowhere/x.json").err


MINUTE = "10:00:00, End time: 10:01:00 (duration: 60 seconds)"


def ran(number: int, content: str, observation: str = "done\n", type: str = "execute") -> list[Cell]:
    return step_cells(number, type, content, observation=observation, times=MINUTE)


def of_entrypoint(bench: Scores, *steps: list[Cell], agent: list[Cell] = REACT) -> Told:
    """What is told of a published trajectory that cloned `repo` and then did these steps."""
    clone = ran(1, "!git clone https://example.org/a/repo")
    bench.published([*agent, *clone, *(cell for step in steps for cell in step)], {"entrypoint": 1.0})
    return bench.rescore(bench.folder / "published", answers='{"task_id": "t", "entrypoint": "train.py"}')


def test_a_published_run_of_the_entrypoint_counts_in_any_folder(bench: Scores) -> None:
    told = of_entrypoint(bench, ran(2, "%cd repo"), ran(3, "!python sub/train.py"))
    assert told.rows["t"]["script_executed"] == {"published": 1.0, "reference": 1.0, "paper": 1.0}


def test_a_published_run_that_fails_or_is_none_of_the_entrypoint_does_not_count(bench: Scores) -> None:
    new = ran(3, "create mine/train.py", "File 'mine/train.py' created.\n", "create")
    runs = [ran(2, "%cd repo", "/content/repo\n", "None"), new, ran(4, "!python mine/train.py", "", "None")]
    told = of_entrypoint(bench, *runs, ran(5, "!python a/train.py", "Killed\n", "None"), agent=SWE)
    assert told.rows["t"]["script_executed"]["paper"] == 0.0
    way = "the paper's way for a run of it; step 4 ran another file of that name; step 5 shows a failure"
    assert told.reasons["script_executed"].endswith(way)


def test_tasks_without_an_answer_are_listed(bench: Scores) -> None:
    for name in ("t", "u", "v"):
        bench.published(
            REACT + step_cells(1, "submit", "1"), {"output_match": 1.0}, place=f"published/{name}"
        )
    told = bench.rescore(bench.folder, answers={"t": 1})
    assert told.status == 0
    assert "unknown no answer is given for 2 tasks: u, v" in told.out


def test_totals_are_means_over_what_can_be_compared(bench: Scores) -> None:
    for name, match, answer in (("a", 1.0, "1"), ("b", 0.0, "2"), ("c", 0.0, "3")):
        cells = REACT + step_cells(1, "submit", answer)
        bench.published(cells, {"output_match": match}, place=f"m_react-super_expert/{name}")
    told = bench.rescore(bench.folder, answers={"a": 1, "b": 1})
    [total] = [total for total in told.data["totals"] if total["metric"] == "accuracy"]
    assert (total["agent"], total["set"], total["trials"]) == ("react-super m", "expert", 3)
    assert total["all_published"] == pytest.approx(1 / 3)
    assert [total[name] for name in ("compared", "published", "reference", "paper")] == [2, 0.5, 0.5, 0.5]
    assert total["different"] == 0


def test_what_a_programs_calls_say_is_no_landmark_when_it_is_scored_again(bench: Scores) -> None:
    bench.task(landmarks=["acc 0", "done", "loss 1", "do it"])
    arguments = json.dumps({"command": "echo acc 0; python train.py"})
    call = cell(json.dumps({"name": "shell", "arguments": arguments}))
    call = replace(call, action=replace(call.action, type="tool_call"), observation="acc 0\ndone")
    program = cell("agent", output="do it\n$ echo acc 0; python train.py\nacc 0\nloss 1\n")
    program = replace(program, action=replace(program.action, type="command"))
    path = bench.ours(call, program, submit(1))
    assert bench.rescore(path).rows["t"]["landmarks"]["paper"] == 0.5


@pytest.mark.parametrize("cells", [REACT + step_cells(1, "submit", "{22896: 9}"), None])
def test_a_submission_that_is_not_json_is_not_made_json(bench: Scores, cells: list[Cell] | None) -> None:
    path = bench.published(cells or SWE + step_cells(1, "submit", "submit {22896: 9}"))
    figures = bench.rescore(path, answers={"t": {"22896": 9}}).rows["t"]["accuracy"]
    assert (figures["reference"], figures["paper"]) == (0.0, 0.0)


# Why figures differ


@pytest.mark.parametrize(
    ("gold", "submission", "reference", "paper", "why"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0.5, 1.0, "the published code divides"),
        ({"a": 1}, {"a": 1, "b": None}, None, 1.0, "the published code raises an error on this trial"),
        (0.005, 0, 0.0, 1.0, "the published code divides"),
        # A gold answer of 0 is none to the published code.
        (0, 0, None, 1.0, "the published code divides"),
    ],
)
def test_why_accuracies_differ(
    bench: Scores, gold: Any, submission: Any, reference: float | None, paper: float, why: str
) -> None:
    told = bench.rescore(bench.ours(submit(submission), accuracy=paper), answers={"t": gold})
    figures = told.rows["t"]["accuracy"]
    assert (figures["reference"], figures["paper"]) == (reference, paper)
    assert told.reasons["accuracy"].startswith(why)


def test_a_landmark_that_was_seen_in_output_that_is_not_stored_stays_hit(bench: Scores) -> None:
    bench.task(landmarks=["done", "never"])
    found = [{"pattern": "done", "step": 1}, {"pattern": "never", "step": None}]
    path = bench.ours(cell("1"), submit(1), accuracy=1.0, landmarks=0.5, landmarks_found=found)
    assert bench.rescore(path).rows["t"]["landmarks"] == {"published": 0.5, "reference": 0.0, "paper": 0.5}


@pytest.mark.parametrize(
    ("metric", "figure"), [("accuracy", 0.5), ("landmarks", 0.5), ("script_executed", 1.0)]
)
def test_a_stored_figure_that_is_not_re_made_is_reported(bench: Scores, metric: str, figure: float) -> None:
    bench.task(answer="right", landmarks=["done"], entrypoint={"path": "train.py"})
    stored: dict[str, Any] = {"accuracy": 1.0, "landmarks": 0.0, "script_executed": 0.0, metric: figure}
    assert bench.rescore(bench.ours(submit("right"), **stored)).reasons == {
        metric: "the stored figure does not follow from the stored steps and this task"
    }


def test_the_folder_of_a_git_repository_is_known_without_fetching_it() -> None:
    repository = Repository(git="https://example.org/group/My.Repo.git", commit="a" * 40)
    assert provided_folder(repository.model_copy(update={"provide": True})) == "My.Repo"
    assert provided_folder(repository) is None
