"""What is found wrong with tasks: that they fail, are flaky, or give their answer away."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.authoring.verify.finding import Finding
from pytest_super.authoring.verify.gold_run import GoldTrial
from pytest_super.authoring.verify.verification import verify
from pytest_super.cli import main
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Task

METRICS = {"accuracy": 1.0, "landmarks": None, "submitted": 1.0, "script_executed": None}
ANSWER = {"test": {"accuracy": 0.7744, "f1": 0.8127}, "n": 1337}


def task(answer: Any = ANSWER, **fields: Any) -> Task:
    given = {"id": "t", "set": "expert", "query": "do it", "answer": answer, "solution": {"cells": ["1"]}}
    return Task.model_validate({**given, **fields})


def trial(submission: Any = ANSWER, *, prefix: tuple[str, ...] = (), **facts: Any) -> GoldTrial:
    fields = {"id": "t", "set": "expert", "category": None, "epoch": 1, "rerun": 0, "agent": "gold"}
    metrics = {name: facts.pop(name, value) for name, value in METRICS.items()}
    known = {"submitted": True, "stop_reason": "submitted", "folder": "trials/t/1.0", "metrics": metrics}
    steps = [
        Step(number=number, origin="pre_execute", action=Action(type="execute"), observation=output)
        for number, output in enumerate(prefix, 1)
    ]
    return GoldTrial(result=TrialResult(**{**fields, **known, **facts}), prefix=steps, submission=submission)


def found(task: Task, *trials: GoldTrial) -> list[Finding]:
    return verify([task], {"t": list(trials or [trial()])}).findings


def texts(findings: list[Finding]) -> list[str]:
    return [f"{finding.kind} {finding.text}" for finding in findings]


# Failures


def test_a_metric_below_1_fails_with_the_values_and_landmarks_that_are_missing() -> None:
    missed = [{"pattern": "done", "step": None}, {"pattern": "half", "step": 1}]
    bad = trial({"test": {"accuracy": 0.7}, "n": 1337}, accuracy=1 / 3, landmarks=0.5, landmarks_found=missed)
    assert texts(found(task(), bad)) == [
        "fails t: accuracy 0.333, landmarks 0.5; submitted; trials/t/1.0/trajectory.jsonl; "
        "test.accuracy is 0.7, not 0.7744; test.f1 is missing, not 0.8127; "
        "no output matches the landmark 'done'"
    ]


def test_an_error_of_the_infrastructure_fails_and_says_so() -> None:
    error = trial(None, epoch=2, accuracy=None, submitted=False, error="no engine", stop_reason="error")
    assert texts(found(task(), trial(), error)) == ["fails t[2]: error: no engine (trials/t/1.0)"]


def test_a_task_with_a_solution_that_was_not_run_is_not_passed_over() -> None:
    (finding,) = verify([task()], {}).findings
    assert (finding.kind, finding.text) == ("unknown", "t: the run has no trial of it")
    # Without a solution it is named, and only searched for leaks.
    verification = verify([task(solution=None, query="we got 0.7744")], {})
    assert verification.without_solution == ["t"]
    assert [finding.kind for finding in verification.findings] == ["leaks"]


# Flaky


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ([0.77, 0.78, 0.7744], "0.77..0.78 over 3 epochs, within"),
        ([0.7744, 0.8], "0.7744..0.8 over 2 epochs, beyond"),
    ],
)
def test_values_that_differ_between_epochs_are_told_with_their_spread(
    values: list[float], spread: str
) -> None:
    others = [trial({"test": {"accuracy": value, "f1": 0.8127}, "n": 1337}) for value in values]
    (finding,) = found(task(), *others)
    assert texts([finding]) == [f"flaky t: test.accuracy is {spread} the tolerance 0.01"]
    assert finding.facts["values"] == values
    assert finding.facts["within_tolerance"] == ("within" in spread)
    (finding,) = found(task({"best": "dog"}), trial({"best": "dog"}), trial({"best": None}))
    assert finding.text.startswith('t: best is "dog" or null over 2 epochs')


def test_a_landmark_that_is_hit_in_some_epochs_only_is_flaky() -> None:
    kinds = [finding.kind for finding in found(task(), trial(landmarks=1.0), trial(landmarks=0.5))]
    assert kinds == ["fails", "flaky"]


@pytest.mark.parametrize(
    "answer", [ANSWER, 0.1, float("nan"), 10**400, "", {"a": [1, {"b": "x"}, None, True], "": []}]
)
def test_nothing_is_found_in_a_task_whose_epochs_are_alike(answer: Any) -> None:
    trials = [trial(json.loads(json.dumps(answer))) for _ in range(3)]
    assert found(task(answer), *trials) == []


@given(st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-3), st.floats(-1e-13, 1e-13))
def test_noise_in_the_last_bits_is_not_flaky(value: float, noise: float) -> None:
    assert found(task(0.5), trial(value), trial(value * (1 + noise))) == []
    assert found(task(0.0), trial(noise * 1e-4), trial(0)) == []


# Leaks


@pytest.mark.parametrize(
    ("value", "query", "is_leak"),
    [
        (0.7744, "we got 0.7744", True),
        (0.7744, "about 0.774 of them", True),
        (0.7744, "exactly 0.774436090", True),
        (77.44, "about 0.774 of them", True),
        (0.7744, "about 0.77", False),
        (0.7744, "0.77449999", False),
        (0.7744, "10.7744, 2.0.7744, 0.77441.5", False),
        (0.7744, "a0.7744, 0.7744a, _0.7744, 0.7744_0", False),
        (1337, "all 1,337 lines", True),
        (1337, "0,1337,12", True),
        (1337, "all 21,337 lines", False),
        (1337, "1,337,000 lines", False),
        (1337, "commit 4f1337aa", False),
        (12345678901234567, "the sum is 12,345,678,901,234,567", True),
        (10**400 + 1, "the sum is 1337", False),
        (345, "12,345, then 678", False),
        (567, "1234,567,891", True),
        (0.95, "at least 0.95", False),
        (100, "all 100 of them", False),
        (True, "true", False),
        ("a film of rare beauty", "say: a  film of\nrare beauty!", True),
        ("a film of rare beauty", "say: a film of rare beautys", False),
        ("sha1:20231106aa97", "it ends in sha1:20231106aa97", True),
        ("pt", "da, de, pt", False),
    ],
)
def test_a_value_leaks_as_a_whole_and_when_it_is_no_mere_name_or_small_number(
    value: Any, query: str, is_leak: bool
) -> None:
    assert finds(value, query) == is_leak


def finds(value: Any, query: str) -> bool:
    kinds = [finding.kind for finding in found(task({"a": value}, query=query), trial({"a": value}))]
    assert kinds in ([], ["leaks"])
    return bool(kinds)


FIGURES = st.integers(100, 10**6 - 1).filter(lambda number: len(str(number).rstrip("0")) >= 3)


@given(number=FIGURES, digits=st.integers(3, 8), before=st.sampled_from(["", "(", "acc=", "-"]))
def test_a_number_is_found_however_it_is_rounded_to_three_digits_or_more(
    number: int, digits: int, before: str
) -> None:
    value = number / 10**6
    for written in (f"{value:.{digits - 1}e}", f"{value:#.{digits}g}", f"{value * 100:#.{digits}g}%"):
        assert finds(value, f"it is {before}{written}, they say"), written


def test_what_stands_in_the_query_is_told_at_once_with_its_line() -> None:
    (finding,) = found(task(query="Train it.\nIt reaches 0.774 and an F1 of 81.27 %."))
    what = "test.accuracy (0.7744), test.f1 (0.8127) of the answer"
    assert finding.text == f"t: {what}: the query, line 2, `0.774`, `81.27 %`"


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (0.7744, ["the answer"]),
        ({"test": {"scores": [1, 0.7744]}, "a.b": 0.7744}, ["test.scores[1]", "a.b"]),
        ({"F1, macro": 0.7744, "[0]": 0.7744, " ": 0.7744}, ["F1, macro", "[0]", " "]),
    ],
)
def test_a_value_is_named_by_its_place_in_the_answer(answer: Any, names: list[str]) -> None:
    (finding,) = found(task(answer, query="0.7744"), trial(answer))
    assert finding.facts["values"] == names


def test_the_answer_in_what_is_pre_executed_leaks() -> None:
    one = task(set="masked", category="data", pre_execute=["accuracy = 0.7744", "print(accuracy)"])
    prefix = ("", "loaded\naccuracy 0.77443")
    assert [finding.facts["place"] for finding in found(one, trial(prefix=prefix))] == [
        "the pre-executed step 1, line 1",
        "the output of the pre-executed step 2, line 2",
    ]


def test_a_landmark_leaks_that_the_query_or_the_output_of_the_prefix_has() -> None:
    one = task(
        set="masked", category="data", query="until epoch 3", landmarks=[r"epoch \d", "loaded", "print"],
        pre_execute=["print('loaded')"],
    )  # fmt: skip
    assert [finding.facts for finding in found(one, trial(prefix=("loaded",)))] == [
        {"landmark": r"epoch \d", "place": "the query"},
        {"landmark": "loaded", "place": "the output of the pre-executed step 1"},
    ]


class Repository:
    """The folder `code`, which a task has as its repository."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "code"
        self.path.mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write_notebook(self, name: str, *cells: dict[str, Any]) -> None:
        self.write(name, json.dumps({"nbformat": 4, "cells": cells}))

    def task(self, answer: Any) -> Task:
        one = task(answer, repository={"path": "code"})
        one._path = str(self.path.parent / "t.task.yaml")
        return one

    def leaks(self, answer: Any = ANSWER) -> list[str]:
        """The places in which the answer is found."""
        findings = found(self.task(answer), trial(answer))
        assert {finding.kind for finding in findings} <= {"leaks"}
        return [finding.facts["place"].removeprefix("code/") for finding in findings]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_answer_in_the_output_of_a_notebook_leaks(repository: Repository) -> None:
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["loss 1\n", "accuracy 0.7744\n"]}]
    picture = [{"output_type": "display_data", "data": {"image/png": "0.7744 0.8127"}}]
    repository.write_notebook(
        "docs/demo.ipynb",
        {"cell_type": "code", "source": "train()", "outputs": picture},
        {"cell_type": "code", "source": "test()", "outputs": outputs},
    )
    assert repository.leaks() == ["docs/demo.ipynb, output of cell 2, line 2"]


@pytest.mark.parametrize("output", [{"text": [1, None]}, {"data": None}, None])
def test_an_odd_output_hides_no_other(repository: Repository, output: Any) -> None:
    repository.write_notebook(
        "a.ipynb",
        {"cell_type": "code", "source": "x", "outputs": [output]},
        {"cell_type": "markdown", "source": ["accuracy ", "0.7744"]},
    )
    assert repository.leaks() == ["a.ipynb, cell 2, line 1"]


@pytest.mark.parametrize(
    "text",
    [
        "{0.7744 0.8127 1337",
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": null, "text": "0.8127"}]}',
        '{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": "f1 = 0.8127"}]}]}',
    ],
)
def test_what_is_named_a_notebook_and_is_none_is_searched_as_a_whole(
    repository: Repository, text: str
) -> None:
    repository.write("a.ipynb", text)
    assert repository.leaks() == ["a.ipynb, line 1"]


def test_of_a_large_repository_prose_is_searched_first_and_up_to_a_bound(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_super.authoring.verify.texts.MOST_READ", 4000)
    for name in ("a.py", "y.md", "z/README.md"):
        repository.write(name, "0.77443\n" + "so it goes on\n" * 280)
    assert repository.leaks(0.77443) == ["z/README.md, line 1"]


@pytest.mark.parametrize(
    ("name", "answer", "text", "is_leak"),
    [
        ("README", 0.77443, "0.774", True),
        ("notes.md", 0.77443, "0.774", False),
        ("data.csv", 0.77443, "0.7744", False),
        ("data.csv", 0.77443, "0.77443", True),
        ("README", "a film of rare beauty", "It says: a film of rare beauty.", True),
        ("reviews.csv", "a film of rare beauty", "1,a film of rare beauty", False),
    ],
)
def test_what_chance_or_a_quotation_puts_into_data_is_no_leak(
    repository: Repository, name: str, answer: Any, text: str, is_leak: bool
) -> None:
    repository.write(name, text)
    assert repository.leaks(answer) == [f"{name}, line 1"] * is_leak


def test_of_many_texts_those_with_the_most_values_are_reported(repository: Repository) -> None:
    for name in ("a", "b", "c", "d"):
        repository.write(f"{name}.md", "0.7744 0.8127 1337" if name == "d" else "0.7744")
    assert repository.leaks() == ["d.md, line 1", "a.md, line 1", "b.md, line 1"]


def test_what_is_no_text_is_passed_over(repository: Repository) -> None:
    repository.write("model.out", "\0 0.7744 0.8127 1337")
    repository.write(".git/notes.md", "0.7744 0.8127 1337")
    (repository.path / "link.md").symlink_to(repository.path / ".git/notes.md")
    (repository.path / "latin.md").write_bytes(b"caf\xe9")
    assert repository.leaks() == []


def test_a_repository_that_cannot_be_had_is_not_passed_over(repository: Repository) -> None:
    repository.path.rmdir()
    (finding,) = found(repository.task(ANSWER))
    assert finding.kind == "unknown"
    assert finding.text.startswith("t: its repository cannot be searched: ")


# The command


def stored_run(folder: Path, *results: TrialResult) -> Path:
    run = folder / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    (run / "results.jsonl").write_text("".join(json.dumps(one.to_data()) + "\n" for one in results))
    return run


def task_file(folder: Path) -> str:
    path = folder / "t.task.yaml"
    path.write_text(
        json.dumps({"id": "t", "set": "expert", "query": "q", "answer": 1, "solution": {"cells": ["1"]}})
    )
    return str(path)


def test_one_epoch_is_said_to_show_nothing_flaky(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored_run(tmp_path, trial().result)
    assert main(["verify", task_file(tmp_path), "--run", str(run)]) == 0
    assert "one epoch alone cannot show whether tasks are flaky" in capsys.readouterr().out


def test_only_a_run_of_gold_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored_run(tmp_path, trial(agent="react").result)
    assert main(["verify", task_file(tmp_path), "--run", str(run)]) == 1
    assert "is a run of the agent react" in capsys.readouterr().err
    assert main(["verify", task_file(tmp_path), "--run", str(tmp_path)]) == 1
    assert f"there is no run {tmp_path}: " in capsys.readouterr().err


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e300, float("inf"), float("nan"), 5e-324])
def test_any_number_can_be_looked_for_and_compared(value: float) -> None:
    assert found(task(value, query=f"{value} 1.23e999"), trial(value), trial(value)) == []
    assert [one.kind for one in found(task(value), trial(value), trial(7))] == ["flaky"]
