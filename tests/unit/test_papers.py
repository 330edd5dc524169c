"""Papers of the set functions: their files, and the items that are made of them."""

import hashlib
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import SuperError, TaskFileError
from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.registry import BUILT_IN, is_solved, score
from pytest_super.metrics.self_report import expected_report, scores
from pytest_super.metrics.self_report import parsed as parsed_report
from pytest_super.session.comparability import scoring_of
from pytest_super.tasks.combinations import Items, all_places, item_id, places_in, sampled_places
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.paper import graded_by
from pytest_super.tasks.public_task import public_part
from pytest_super.tasks.task import Task

DIGEST = hashlib.sha256(b"").hexdigest()


def experiment(name: str = "e", functions: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    made = {"name": name, "command": "python run.py", "result": [{"exit": 0}], **fields}
    return {**made, "functions": functions} if functions else made


NUMBER = {"number": "n", "expected": 1, "rel": 0.1}
LOSS = {"name": "loss", **NUMBER}


def varied(expected: dict[str, Any], **fields: Any) -> dict[str, Any]:
    vary = [{"command": "python run.py 7", "expected": expected}]
    return experiment(result=[LOSS], vary=vary, **fields)


def paper_data(count: int = 3, **fields: Any) -> dict[str, Any]:
    return {
        "id": "2205.00048",
        "set": "functions",
        "query": "A query.",
        "repository": {"path": "repo", "provide": True},
        "functions": [{"target": f"a.py::f{place}", "sha256": DIGEST} for place in range(count)],
        "experiments": [experiment()],
        **fields,
    }


def paper(count: int = 3, **fields: Any) -> Task:
    return Task.model_validate(paper_data(count, **fields))


def load(folder: Path, data: dict[str, Any]) -> list[Task]:
    (folder / "repo").mkdir(exist_ok=True)
    file = folder / "paper.task.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    return load_tasks(file)


def errors(folder: Path, data: dict[str, Any]) -> str:
    with pytest.raises(TaskFileError) as caught:
        load(folder, data)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"functions": []}, "`functions` is missing: a task of the set functions needs it"),
        ({"experiments": []}, "`experiments` is missing"),
        ({"answer": 3}, "a task of the set functions takes no `answer`: its experiments decide"),
        ({"repository": {"path": "repo"}}, "needs a repository with `provide: true`"),
        ({"n": [1, 4]}, "4 functions cannot be masked together: there are 3"),
        ({"paper": {"file": "p.md"}}, "there is no file"),
        (
            {"experiments": [experiment(functions=[0, 1, 2, 7])]},
            "there is no function `7`; known are 0, 1, 2",
        ),
        ({"experiments": [experiment(), experiment()]}, "`experiments[0]` has the same name: e"),
        (
            {"experiments": [varied({"los": 3})]},
            "`experiments[0]` has no value `los` with `expected`; did you mean `loss`?",
        ),
        (
            {"experiments": [experiment(result=[NUMBER, {"number": "m"}], paper={"number": 3})]},
            "`experiments[0]` has several values `number`: give each a `name`",
        ),
        (
            {"experiments": [experiment(result=[LOSS], graded_by="paper")]},
            "needs `paper`, the values that the paper states, with `graded_by: paper`",
        ),
        ({"experiments": [varied({"loss": 1})]}, "expects the same values with `python run.py 7`"),
        ({"experiments": [experiment(files={"t.py": "gone.py"})]}, "there is no file "),
        (
            {"experiments": [experiment(files={"a.py": "t.py"})]},
            "a.py would replace a.py, which is collected",
        ),
        ({"functions": [{"target": "../a.py::f", "sha256": DIGEST}]}, "inside it"),
        ({"functions": [{"target": "a.py::f", "sha256": DIGEST, "id": "a_b"}]}, "`functions[0].id`"),
        (
            {"functions": [{"target": f"a.py::{name}", "sha256": DIGEST, "id": "x"} for name in "fg"]},
            "`functions[0]` has the same id: x",
        ),
        (
            {"functions": [{"target": "a.py::f", "sha256": DIGEST}] * 2},
            "`functions[0]` has the same target: a.py::f",
        ),
    ],
)
def test_a_wrong_field_has_one_clear_message(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    (tmp_path / "repo").mkdir()
    for name in ("t.py", "repo/t.py"):
        (tmp_path / name).touch()
    said = errors(tmp_path, paper_data(**change))
    assert message in said
    assert "paper.task.yaml:" in said


def test_a_variation_is_graded_as_a_command_of_its_own_and_told_to_nobody(tmp_path: Path) -> None:
    (task,) = load(tmp_path, paper_data(experiments=[varied({"loss": 3})]))
    item = Items(task).item((0,))
    assert item.grade is not None
    own, other = item.grade.commands
    assert (own.label, other.label, other.command) == ("e", "e varied", "python run.py 7")
    (check,) = other.result
    assert (check.expected, check.rel, check.number) == (3, 0.1, "n")
    assert "run.py 7" not in str(public_part(item))
    assert expected_report(item.experiments) == {"e": {"loss": 1}}


def test_values_of_one_pattern_are_varied_and_reported_by_their_names(tmp_path: Path) -> None:
    many = {"regex": {"pattern": "(?P<name>.*)=(?P<value>.*)"}, "expected": {"a": 1, "b": 2}, "rel": 0.1}
    vary = [{"command": "python run.py 7", "expected": {"b": 3}}]
    one = experiment(result=[{"exit": 0}, many], vary=vary)
    item = Items(paper(experiments=[one])).item((0,))
    assert expected_report(item.experiments) == {"e": {"a": 1, "b": 2}}
    assert item.grade is not None
    (check,) = item.grade.commands[1].checks
    assert (check.name, check.expected, check.rel) == ("b", 3, 0.1)
    vary[0]["expected"] = {"c": 3}
    assert "has no value `c` with `expected`; known are a, b" in errors(
        tmp_path, paper_data(experiments=[one])
    )
    stated = experiment(result=[many], paper={"b": 5}, graded_by="paper")
    (made,) = paper(experiments=[stated]).experiments
    assert expected_report([made]) == {"e": {"a": 1, "b": 5}}


@pytest.mark.parametrize(("by", "expected"), [("gold-run", 1), ("paper", 5)])
def test_an_item_is_graded_by_the_gold_run_or_by_the_paper(tmp_path: Path, by: str, expected: int) -> None:
    stated = varied({"loss": 3}, paper={"loss": 5}, graded_by=by)
    (task,) = load(tmp_path, paper_data(experiments=[stated]))
    item = Items(task).item((0,))
    assert item.grade is not None
    (own,), (other,) = (command.result for command in item.grade.commands)
    assert (own.expected, own.rel, own.number) == (expected, 0.1, "n")
    assert other.expected == 3
    assert expected_report(item.experiments) == {"e": {"loss": expected}}
    assert graded_by(item.experiments) == [by]


def test_what_the_paper_states_changes_the_scoring_only_if_it_decides() -> None:
    def digest_of(**fields: Any) -> str:
        return scoring_of(paper(experiments=[experiment(result=[LOSS], **fields)]), BUILT_IN, "paper")

    assert digest_of(paper={"loss": 5}) == digest_of()
    assert digest_of(paper={"loss": 5}, graded_by="paper") != digest_of()


def test_hidden_files_are_scoring_and_told_to_nobody(tmp_path: Path) -> None:
    hidden = tmp_path / "secret.py"
    hidden.write_text("1")
    (task,) = load(tmp_path, paper_data(experiments=[experiment(files={"test_it.py": "secret.py"})]))
    item = Items(task).item((0,))
    before = scoring_of(item, BUILT_IN, "paper")
    hidden.write_text("22")
    assert scoring_of(item, BUILT_IN, "paper") != before
    assert "test_it" not in str(public_part(item))
    assert "secret" not in str(public_part(item))


def test_other_sets_take_no_functions(tmp_path: Path) -> None:
    said = errors(tmp_path, paper_data(set="expert", answer=1))
    assert "`functions` is for tasks of the set functions only" in said


@given(count=st.integers(1, 8), n=st.integers(1, 9))
def test_every_combination_is_an_item_once(count: int, n: int) -> None:
    made = paper(count)
    places = list(all_places(made, n))
    assert places == list(combinations(range(count), n))
    assert len({item_id(made, one) for one in places}) == comb(count, n)


def test_combinations_that_no_experiment_needs_are_no_items() -> None:
    made = paper(experiments=[experiment(functions=[0, 1])])
    assert list(all_places(made, 1)) == [(0,), (1,)]
    assert list(all_places(made, 2)) == [(0, 1), (0, 2), (1, 2)]
    with pytest.raises(SuperError, match="no experiment needs these functions"):
        places_in(made, "2205.00048_2")


def test_experiments_without_a_name_are_numbered_by_their_place_in_the_item() -> None:
    fields = [experiment(functions=[0]), experiment("named", [1]), experiment(functions=[1])]
    made = paper(experiments=[{k: v for k, v in one.items() if (k, v) != ("name", "e")} for one in fields])
    assert [one.name for one in made.experiments] == ["Experiment 1", "named", "Experiment 3"]
    assert [one.name for one in Items(made).item((1,)).experiments] == ["named", "Experiment 2"]


def test_functions_of_which_one_contains_the_other_are_not_masked_together() -> None:
    targets = ["a.py::f", "a.py::f.inner", "a.py::f@part", "a.py::g", "a.py::f@part.inner"]
    made = paper(functions=[{"target": one, "sha256": DIGEST} for one in targets])
    assert list(all_places(made, 2)) == [(0, 3), (1, 2), (1, 3), (1, 4), (2, 3), (3, 4)]
    with pytest.raises(SuperError, match="overlap"):
        places_in(made, "2205.00048_0,1")


@pytest.mark.parametrize("n", [2, 3])
@given(sizes=st.tuples(st.integers(1, 60), st.integers(1, 60)), seed=st.integers(0, 3))
def test_a_larger_sample_continues_a_smaller_one(n: int, sizes: tuple[int, int], seed: int) -> None:
    # With n = 3 there are too many combinations to make them all.
    made = paper(60)
    less, more = sorted(sizes)
    small = list(sampled_places(made, n, less, seed))
    large = list(sampled_places(made, n, more, seed))
    assert large[:less] == small
    assert len(set(large)) == len(large) == more
    assert all(list(one) == sorted(set(one)) and len(one) == n for one in large)


def test_too_many_items_need_a_sample() -> None:
    made = paper(500)
    with pytest.raises(SuperError, match=r"20,708,500 combinations of 3 functions.*--super-sample"):
        list(all_places(made, 3))
    assert len(list(sampled_places(made, 3, 10, 0))) == 10


def test_an_id_names_functions_in_any_order() -> None:
    made = paper(functions=[{"target": f"a.py::f{n}", "sha256": DIGEST, "id": n} for n in (3, 1, 2)])
    assert places_in(made, "2205.00048_2,3") == (0, 2)
    assert item_id(made, (0, 2)) == "2205.00048_3,2"
    with pytest.raises(SuperError, match="is named twice"):
        places_in(made, "2205.00048_2,2")
    with pytest.raises(SuperError, match="has no function `7`"):
        places_in(made, "2205.00048_7")


def test_an_item_is_graded_by_the_experiments_that_need_its_functions() -> None:
    made = paper(
        experiments=[experiment("a", [0]), experiment("b", [1, 2]), experiment("c", [2])],
        functions=[{"target": f"{file}.py::f", "sha256": DIGEST} for file in "xyz"],
    )
    item = Items(made).item((0, 1))
    assert item.id == "2205.00048_0,1"
    assert item.grade is not None
    assert item.grade.collect == ["x.py", "y.py"]
    assert [one.label for one in item.grade.commands] == ["a", "b"]
    assert Items(made).item((0, 1)).query == made.query


def test_an_agent_learns_what_is_missing_and_nothing_of_the_answers() -> None:
    made = paper(
        functions=[
            {"target": "a.py::A.f", "sha256": DIGEST, "passage": "Section 3.", "description": "Does this."},
            {"target": "a.py::g@loop", "sha256": DIGEST},
        ],
        experiments=[
            experiment(
                "quality",
                description="The error.",
                result=[{"json": {"file": "o.json"}, "expected": {"auc": 0.8125}, "rel": 0.05}],
                paper={"json": {"auc": 0.9375}},
            )
        ],
    )
    public = public_part(Items(made).item((0, 1)), "repo")
    assert "`A.f` in `a.py`: Does this." in public.query
    assert "the lines of the region `loop` in `g` in `a.py`" in public.query
    assert "- quality: `python run.py` The error." in public.query
    assert '{"quality": "…"}' in public.query
    assert public.missing[0].passage == "Section 3."
    assert "8125" not in repr(public)
    assert "9375" not in repr(public)
    assert DIGEST not in repr(public)


REPORTED = [
    experiment("one", result=[{"number": "n", "expected": 0.5, "rel": 0.05}]),
    experiment(
        "two",
        result=[
            {"name": "a", "number": "n", "interval": [1, 2]},
            {"name": "b", "json": {"file": "f"}, "expected": {"x": [0.0], "y": -2}, "abs": 0.1},
            {"exit": 0},
        ],
    ),
    experiment("three"),
]


def report_scores(report: Any) -> list[float]:
    item = Items(paper(experiments=REPORTED)).item((0,))
    return list(scores(item.experiments, parsed_report(report)))


def test_the_expected_report_is_right() -> None:
    report = expected_report(Items(paper(experiments=REPORTED)).item((0,)).experiments)
    assert report == {"one": 0.5, "two": {"a": 1.5, "b": {"x": [0.0], "y": -2}}}
    assert report_scores(report) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "report",
    [
        '```json\n{"one": 0.51, "two": {"a": 1, "b": {"x": 0, "y": -1.95}}}\n```',
        "{'one': '0.5', 'two': {'a': [1.2], 'b': {'x': [[0.05]], 'y': ['-2']}}}",
        # As JSON it can have any length.
        f'{{"one": 0.5, "two": {{"a": 1, "b": {{"x": [0], "y": -2}}}}, "more": "{"x" * 200_000}"}}',
    ],
)
def test_fences_quotes_and_lists_of_one_element_do_not_matter(report: Any) -> None:
    assert report_scores(report) == [1, 1, 1, 1]


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value, 1]
    return value


@pytest.mark.parametrize(
    "report",
    [
        *(None, 3, "", "no idea", [], {}, {"one": None}, {"one": float("nan")}, "[" * 100_000, {"two": 5}),
        {"two": {"b": nested(5_000)}},
    ],
)
def test_no_report_is_all_wrong(report: Any) -> None:
    assert set(report_scores(report)) == {0}
    assert len(report_scores(report)) >= 4


def test_values_that_were_not_asked_for_are_wrong() -> None:
    report = {"one": 0.5, "two": {"a": 1.5, "b": {"x": [0.0], "y": -2, "z": 1}}}
    assert report_scores(report) == [1, 1, 1, 1, 0]


# The published rule: gold, report, whether it passes


@pytest.mark.parametrize(
    ("expected", "report", "passes"),
    [
        ({"a": 1.0}, {"a": 1.04}, True),
        ({"a": 1.0}, {"a": 1.06}, False),
        # The mean hides a value that is far off, and opposite signs cancel.
        ({"a": 1.0, "b": 1.0}, {"a": 1.09, "b": 1.0}, True),
        ({"a": -0.5}, {"a": 1e9}, True),
        # Zero fails even where it is right.
        ({"a": 0}, {"a": 0}, False),
        # Only as far as the reported list goes.
        ({"a": [1, 2, 3], "b": 1}, {"a": [], "b": 1}, True),
        ({"a": 1.0}, '{"a": 1.0}', True),
    ],
)
def test_reference_scoring_is_the_published_rule(expected: Any, report: Any, passes: bool) -> None:
    named = f'{{"one": {report}}}' if isinstance(report, str) else {"one": report}
    made = paper(experiments=[experiment("one", result=[{"json": {"file": "f"}, "expected": expected}])])
    item = Items(made).item((0,))
    evidence = Evidence(steps=[], submission=named, submitted=True)
    found = score(BUILT_IN, item, evidence, scoring="reference")
    assert found["self_report"] == float(passes)
    assert is_solved(BUILT_IN, item, found, scoring="reference") == passes
