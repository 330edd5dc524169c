"""Two runs next to each other: what can be compared, how they differ, what that decides."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.gate import Selected
from pytest_super.gate.baseline_file import read_baseline, read_side, why_renew, with_run, write_baseline
from pytest_super.gate.comparison import compare
from pytest_super.gate.difference import Difference, by_look, holm_levels
from pytest_super.gate.earlier import EarlierRuns
from pytest_super.gate.plan import RunPlan, plan_of
from pytest_super.gate.samples import Variance
from pytest_super.gate.side import Side, TaskTrials, side_of, side_of_run
from pytest_super.gate.wording import decided_lines
from pytest_super.option_types import Epochs
from pytest_super.report.comparison import comparison_lines, plan_lines
from pytest_super.store.results import TrialResult
from tests.stored import a_result, a_run, add_trial


def task(values: Sequence[float], **changes: Any) -> TaskTrials:
    plain = TaskTrials(
        set="expert", conditions="c", scoring="s", weight=1.0, values=list(values), cost_usd=0.5, tokens=100.0
    )
    return replace(plain, **changes)


def side(name: str, tasks: Mapping[str, TaskTrials], **changes: Any) -> Side:
    trials = sum(len(one.values) for one in tasks.values())
    plain = Side(name=name, run=name, subject={"agent": "a", "model": "m"}, tasks=dict(tasks), trials=trials)
    return replace(plain, **changes)


def many(
    values: Sequence[float], *, tasks: int = 45, first: int = 0, **changes: Any
) -> dict[str, TaskTrials]:
    return {f"t{number:03}": task(values, **changes) for number in range(first, first + tasks)}


def result(id: str, value: float | None, *, epoch: int = 1, **changes: Any) -> TrialResult:
    plain = TrialResult(
        id=id,
        set="expert",
        category=None,
        epoch=epoch,
        rerun=0,
        agent="a",
        headline="accuracy",
        metrics={"accuracy": value},
        conditions="c",
        scoring="s",
    )
    return replace(plain, **changes)


# Sides


def test_a_side_has_the_valid_trials_by_task() -> None:
    found = side_of(
        "run",
        {},
        [
            result("a", 0.5, epoch=2, cost_usd=3.0),
            result("a", 1.0, cost_usd=1.0),
            result("b", None, error="the engine died"),
            result("b", 0.0, epoch=2, stop_reason="interrupted"),
            result("no gold", None),
        ],
    )
    assert list(found.tasks) == ["a"]
    assert (found.tasks["a"].values, found.tasks["a"].cost_usd) == ([1.0, 0.5], 2.0)
    assert (found.trials, found.errors) == (4, {"b": 1})


def test_trials_of_a_task_that_changed_meanwhile_are_never_mixed() -> None:
    found = side_of("run", {}, [result("a", 1.0), result("a", 0.0, epoch=2, conditions="other")])
    assert found.tasks == {}
    assert found.mixed == ["a"]
    with pytest.raises(SuperError, match="its conditions differ between trials of one side: a"):
        compare(found, found, 0.1)


def test_a_baseline_is_read_as_it_was_written_and_has_a_line_for_each_task(tmp_path: Path) -> None:
    written = side("run", {"b": task([1, 0]), "a": task([0.5], cost_usd=None, weight=1 / 3)}, errors={"a": 1})
    path = tmp_path / "baseline.json"
    write_baseline(path, written)
    assert replace(read_side(path), name="run") == replace(written, tasks=dict(sorted(written.tasks.items())))
    lines = path.read_text().splitlines()
    assert sum('"values"' in line for line in lines) == 2
    write_baseline(path, replace(written, tasks={**written.tasks, "c": task([1])}))
    changed = set(path.read_text().splitlines()) ^ set(lines)
    # A new task changes its own line, and the comma before it.
    assert len(changed) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no baseline"),
        ("{", "is no baseline"),
        ("[]", "is no baseline"),
        ('{"format": 9}', "its format is 9, not 2"),
        ('{"format": 2, "subject": {}, "trials": 1, "errors": {}, "tasks": {"a": {}}}', "is no baseline"),
    ],
)
def test_a_bad_baseline_is_refused_with_its_path(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "b.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SuperError, match=message) as error:
        read_baseline(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        *({"values": one} for one in ([], [2.0], ["x"], [-0.1], [float("nan")], [10**400], [True], 5)),
        {"weight": 0},
        {"weight": "x"},
        {"tokens": None},
        {"seconds": -1},
        {"cost_usd": []},
        {"set": {}},
        {"scoring": 1},
    ],
    ids=str,
)
def test_fields_of_a_baseline_are_checked(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "b.json"
    write_baseline(path, side("run", {"a": task([1])}))
    data = json.loads(path.read_text())
    data["tasks"]["a"] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(SuperError, match=r"should be|another kind than expected") as error:
        read_baseline(path)
    assert len(str(error.value)) < 500


def test_a_baseline_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    write_baseline(path, side("run", {"a": task([1, 0])}))
    whole = path.read_bytes()
    # Without its last line end it is whole.
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SuperError):
            read_baseline(path)


# Comparisons


def test_only_what_can_be_compared_is_compared_and_the_rest_is_named() -> None:
    old = side("old", {"same": task([1] * 5), "query": task([1]), "gold": task([1]), "gone": task([1])})
    new = side(
        "new",
        {
            "same": task([1] * 5),
            "query": task([0], conditions="other"),
            "gold": task([0], scoring="other"),
            "added": task([0]),
        },
    )
    found = compare(old, new, 0.1)
    assert [one.id for one in found.sets[0].tasks] == ["same"]
    assert list(found.left_out.values()) == [["gone"], ["added"], ["query"], ["gold"]]
    text = "\n".join(comparison_lines(found))
    assert "left out, only in old: gone" in text
    assert "left out, other conditions" in text
    with pytest.raises(SuperError, match="no task that can be compared: only in old: gone"):
        compare(side("old", {"gone": task([1])}), side("new", {"added": task([1])}), 0.1)


def test_a_real_drop_has_regressed_and_names_its_tasks() -> None:
    old = side("old", {**many([1] * 5, tasks=30), **many([0] * 5, tasks=15, first=30)})
    new = side("new", {**old.tasks, **many([0] * 3, tasks=8)}, subject={"agent": "a", "model": "n"})
    found = compare(old, new, 0.1)
    assert found.verdict == "regressed"
    text = list(comparison_lines(found))
    assert text[:2] == ["baseline old (5 epochs); candidate new (5 epochs)", "model: m -> n"]
    assert "lost  t000  1.00 -> 0.00" in text
    [verdict] = decided_lines(found)
    assert fnmatch(verdict, "REGRESSED  expert -18 points (-2? to -8.?), limit -10")
    assert text[-1] == "to see why: pytest-super why new, or pytest-super view new"


def test_two_versions_of_a_program_are_told(tmp_path: Path) -> None:
    sides = []
    for version in ("0.169.0", "0.170.0"):
        run = a_run(tmp_path, version, agent="codex")
        for epoch in (1, 2):
            add_trial(run, a_result(epoch=epoch, agent_version=version))
        sides.append(side_of_run(run.path))
    old, new = sides
    assert "version: 0.169.0 -> 0.170.0" in list(comparison_lines(compare(old, new, 0.1)))


def test_an_unchanged_run_passes_where_there_are_enough_trials() -> None:
    same = many([1, 0, 1, 0, 1], tasks=150)
    assert compare(side("old", same), side("new", same), 0.1).verdict == "pass"
    old, new = many([1, 0] * 5, tasks=11), many([1, 0], tasks=11)
    found = compare(side("old", old), side("new", new), 0.2)
    assert found.verdict == "cannot tell"
    [verdict] = decided_lines(found)
    assert fnmatch(
        verdict, "CANNOT TELL  expert +0.0 points (-?? to +??), limit -20; about 5 more epochs needed"
    )
    assert list(comparison_lines(found))[-2:] == [
        "the baseline itself is uncertain by 5.0 points in expert (standard error, already counted)",
        "to find out, run more epochs, which count together with these: --super-epochs=1-5",
    ]
    assert compare(side("old", old), side("new", many([1, 0] * 4, tasks=11)), 0.2).verdict == "pass"


def test_a_run_with_many_errors_decides_nothing() -> None:
    same = many([1] * 5, tasks=100)
    found = compare(side("old", same), side("new", same, errors={"t000": 30}), 0.1)
    assert found.verdict == "cannot tell"
    [why] = decided_lines(found)
    assert why == "CANNOT TELL  30 of 500 trials of new are infrastructure errors, more than 5 %"
    *others, last = comparison_lines(found)
    assert last.endswith(
        "run them again, if this agent is not their cause (they are more frequent than the baseline's 0 of "
        "500, so failing trials may be among them): --super-resume=new"
    )
    assert not any("pass" in line for line in others)


def without(tasks: Mapping[str, TaskTrials], *ids: str) -> dict[str, TaskTrials]:
    return {id: one for id, one in tasks.items() if id not in ids}


@pytest.mark.parametrize("is_baseline", [False, True])
def test_errors_that_can_hide_another_verdict_leave_it_open(is_baseline: bool) -> None:
    # They can hide a drop by 4.4 points, or a baseline that was better by as much.
    value = 0.5 if is_baseline else 1.0
    whole = many([value] * 3)
    errors = {"t000": 3, "t001": 3}
    part = side("part", without(whole, *errors), trials=len(whole) * 3, errors=errors)
    sides = (part, side("new", whole)) if is_baseline else (side("old", whole), part)
    found = compare(*sides, 0.02 if is_baseline else 0.04)
    assert found.verdict == "cannot tell"
    assert compare(sides[0], sides[1], 0.2).verdict == "pass"
    [verdict] = decided_lines(found)
    assert verdict.endswith("; PASS if the trials with infrastructure errors are left out")
    *_, what_to_do = comparison_lines(found)
    assert what_to_do.startswith("to decide, run the errors of" if is_baseline else "errors fail the run, ")
    assert ("of the baseline" in what_to_do) == is_baseline
    assert found.left_out == {"all trials of part are errors": ["t000", "t001"]}


def test_one_error_leaves_a_verdict_that_it_cannot_change_in_few_trials_too() -> None:
    lost = many([0.0], tasks=10)
    broken = side("new", without(lost, "t000"), trials=10, errors={"t000": 1})
    assert compare(side("old", many([1.0] * 3, tasks=10)), broken, 0.1).verdict == "regressed"


def test_a_task_with_errors_whose_set_was_renamed_is_compared() -> None:
    renamed = side("new", many([1.0] * 3, set="masked"), errors={"t000": 1})
    (found,) = compare(side("old", many([1.0] * 3)), renamed, 0.1).sets
    assert (found.set, found.verdict) == ("expert", "pass")


@pytest.mark.parametrize("is_resumed", [True, False])
def test_an_error_that_a_resumed_run_has_run_again_hides_nothing(is_resumed: bool) -> None:
    earlier = [
        result("a", None, error="the engine died", resumed_from="r1"),
        result("b", 1.0, resumed_from="r1"),
    ]
    own = [result("a", 1.0), result("b", 1.0, resumed_from="r1" if is_resumed else "")]
    found = EarlierRuns(trials=earlier).like(own, "r2")
    assert [one.id for one in found] == ([] if is_resumed else ["a", "b"])


@pytest.mark.long
def test_several_sets_give_no_more_false_alarms_than_one() -> None:
    chance = random.Random(7)
    sets = ("auto", "expert", "functions", "masked")

    def run(name: str) -> Side:
        values = {
            f"{one}-{n}": task([float(chance.random() < 0.5) for _ in range(5)], set=one)
            for one in sets
            for n in range(20)
        }
        return side(name, values)

    alarms = sum(compare(run("old"), run("new"), 0.01).verdict == "regressed" for _ in range(300))
    # 5 % of 300, and three deviations.
    assert alarms <= 15 + 3 * 3.8


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        # 0.005 <= 0.05 / 4, 0.01 <= 0.05 / 3, 0.03 > 0.05 / 2.
        ({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}, {"a", "d"}),
        # Holm stops at the second; each alone, or step by step from the largest, would reject others.
        ({"a": 0.01, "b": 0.026, "c": 0.04}, {"a"}),
        ({"a": 0.02, "b": 0.02, "c": 0.02}, set()),
        ({"a": 0.049}, {"a"}),
        ({"a": 0.016, "b": 0.024, "c": 0.049}, {"a", "b", "c"}),
    ],
)
def test_sets_regress_by_holms_procedure(p_values: dict[str, float], rejected: set[str]) -> None:
    deviation = 0.01
    found = {
        name: Difference(
            value=deviation * NormalDist().inv_cdf(p), variance=Variance(value=deviation**2, freedom=1e9)
        )
        for name, p in p_values.items()
    }
    levels = holm_levels(found, lambda _name, sets: 1 - 0.05 / sets)
    assert {name for name in found if found[name].bounds(levels[name])[1] < 0} == rejected


def test_a_plan_says_what_cannot_be_found() -> None:
    base = side("main", many([1, 0] * 5, tasks=6))
    whole = plan_of(base, Selected(ids=base.tasks.keys()), Epochs(3, 3), 0.1)
    lines = list(plan_lines(whole, base, 0.1))
    assert lines[0].startswith("expert: 3 epochs against main: 80 % chance to see a drop of ")
    assert fnmatch(lines[1], "TOO FEW TASKS  expert: a drop of * points can be found, not one of 10 by any *")
    part = plan_of(base, Selected(ids=["t000"]), Epochs(1, 1), 0.1)
    assert next(plan_lines(part, base, 0.1)).startswith(
        "expert: 1 epoch against main: no drop has an 80 % chance"
    )


def test_a_small_set_shows_a_collapse_and_no_more() -> None:
    found = compare(side("old", many([1] * 6, tasks=2)), side("new", many([1] * 3, tasks=2)), 0.1)
    assert found.verdict == "cannot tell"
    assert list(decided_lines(found)) == [
        "NO COLLAPSE  expert: 2 tasks can show no more (a pass needs about 20)"
    ]
    assert not any("more epochs" in line for line in comparison_lines(found))
    broken = compare(side("old", many([1] * 6, tasks=2)), side("new", many([0] * 3, tasks=2)), 0.1)
    assert broken.verdict == "regressed"
    assert list(decided_lines(broken)) == ["REGRESSED  expert -100 points (-100 to -79), limit -10"]


def noisy_and_calm() -> Side:
    return side("main", {**many([1, 0] * 5, tasks=20), **many([1] * 10, tasks=20, first=20)})


def test_epochs_follow_the_noise_of_the_baseline() -> None:
    base = noisy_and_calm()
    found = plan_of(base, Selected(ids=[*base.tasks, "new"]), Epochs(2, 10), 0.1)
    noisy, calm = found.epochs["t000"], found.epochs["t020"]
    assert 2 <= calm < noisy <= 10
    assert found.epochs["new"] == 2
    [line] = plan_lines(found, base, 0.1)
    trials = 20 * (noisy + calm)
    assert line.startswith(
        f"expert: 2 to {noisy} epochs (at most {trials} trials) against main: 80 % chance to see a drop"
    )


def test_a_large_margin_needs_few_epochs_and_a_small_one_all() -> None:
    base = noisy_and_calm()
    assert set(plan_of(base, Selected(ids=base.tasks.keys()), Epochs(1, 10), 0.3).epochs.values()) == {2}
    assert max(plan_of(base, Selected(ids=base.tasks.keys()), Epochs(2, 10), 0.01).epochs.values()) == 10


def test_early_looks_must_be_surer_and_several_sets_surer_still() -> None:
    base = noisy_and_calm()
    found: RunPlan = plan_of(base, Selected(ids=base.tasks.keys()), Epochs(2, 10), 0.1)
    last = max(found.epochs.values())
    levels = [found.confidence_after(epoch, by_look(1))("expert", 1) for epoch in range(2, last + 1)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] > 0.95
    assert found.confidence_after(last, by_look(1))("expert", 2) > levels[-1]
    assert found.confidence_after(last, by_look(2))("expert", 1) > levels[-1]
    # After its last epoch a set has had its last look.
    assert found.confidence_after(last + 3, by_look(1))("expert", 1) == levels[-1]


def test_a_look_that_must_be_surer_decides_less() -> None:
    old, new = side("old", many([1] * 10)), side("new", many([1, 1, 0]))
    assert compare(old, new, 0.1).verdict == "regressed"
    assert compare(old, new, 0.1, confidence=lambda _name, _sets: 1 - 1e-15).verdict == "cannot tell"


def test_of_several_sets_the_one_that_is_surest_by_its_own_look_comes_first() -> None:
    # The first set differs more, but its early look must be much surer than it is.
    old = {**many([1] * 10, tasks=20), **many([1] * 10, tasks=20, first=20, set="masked")}
    new = {**many([0] * 2, tasks=20), **many([1, 0, 0] * 2, tasks=20, first=20, set="masked")}
    found = compare(
        side("old", old),
        side("new", new),
        0.1,
        confidence=lambda name, sets: 1.0 if name == "expert" else 1 - 0.05 / sets,
    )
    assert [(one.set, one.verdict) for one in found.sets] == [
        ("expert", "cannot tell"),
        ("masked", "regressed"),
    ]


def test_later_looks_must_be_surer_and_the_first_stays() -> None:
    levels = [by_look(number)("expert", 1) for number in range(1, 6)]
    assert levels == sorted(levels)
    assert levels[0] == pytest.approx(0.95)
    # However often somebody looks, all errors together have a sum.
    assert sum(1 - by_look(number)("expert", 1) for number in range(1, 10_000)) < 0.0823
    old, new = side("old", many([1] * 10, tasks=6)), side("new", many([1] * 9 + [0], tasks=6))
    assert compare(old, new, 0.1).verdict == "regressed"
    assert compare(old, replace(new, looks=1), 0.1).verdict == "cannot tell"


def test_a_difference_between_the_limits_asks_for_tasks_instead_of_epochs() -> None:
    old, new = side("old", many([1, 0] * 5, tasks=6)), side("new", many([1, 0] * 5, tasks=6))
    assert "use more tasks" in list(comparison_lines(compare(old, new, 0.02)))[-1]


# A baseline over time


def a_baseline(name: str, values: Sequence[float], tasks: int = 20, **changes: Any) -> Side:
    trials = many(values, tasks=tasks, of_runs=[len(values)], stops={"submitted": len(values)})
    return side(name, trials, runs={name: "2026-01-05"}, **changes)


def test_runs_of_one_subject_are_pooled_and_each_keeps_its_trials(tmp_path: Path) -> None:
    first, second = a_baseline("1", [1, 0]), a_baseline("2", [1, 1, 0], tasks=21)
    found, left_out = with_run(first, second)
    assert left_out == {}
    assert (found.run, found.runs) == ("1", {"1": "2026-01-05", "2": "2026-01-05"})
    assert (found.tasks["t000"].values, found.tasks["t000"].of_runs) == ([1, 0, 1, 1, 0], [2, 3])
    assert found.tasks["t020"].of_runs == [0, 3]
    assert found.tasks["t000"].stops == {"submitted": 5}
    write_baseline(tmp_path / "b.json", found)
    assert replace(read_side(tmp_path / "b.json"), name="1") == found


def test_a_baseline_of_edited_values_can_be_added_to() -> None:
    old = side("1", many([1, 0] * 5))
    found, _ = with_run(old, a_baseline("2", [1, 0], tasks=45))
    assert (found.tasks["t000"].of_runs, list(found.runs)) == ([10, 2], ["1", "2"])


def test_a_baseline_says_when_and_how_it_is_to_be_renewed() -> None:
    fine = a_baseline("main", [1, 0] * 5, tasks=45)
    assert list(why_renew(fine, 0.1, date(2026, 4, 5))) == []
    [old] = why_renew(fine, 0.1, date(2026, 4, 6))
    assert old.startswith("main is 91 days old, more than 90: ")
    [noisy] = why_renew(fine, 0.05, date(2026, 1, 5))
    assert noisy.startswith("expert: the standard error of main is 2.5 points, more than 30 % of the drop")


def test_each_verdict_says_how_uncertain_and_how_old_the_baseline_is() -> None:
    old = a_baseline("main", [1, 0] * 5, tasks=45)
    new = side("new", many([1, 0]), runs={"new": "2026-01-12"})
    said = "is uncertain by 2.5 points in expert (standard error, already counted), and 7 days old"
    assert f"the baseline itself {said}" in list(comparison_lines(compare(old, new, 0.1)))


def test_the_causes_of_misses_are_shown_with_their_shares_of_all_trials() -> None:
    old = side("old", many([1, 0, 0, 0], causes={"wrong value": 2, "gave up": 1}))
    new = side("new", many([1, 1, 0], causes={"agent failed": 1}))
    lines = list(comparison_lines(compare(old, new, 0.1)))
    assert "causes, of all trials: wrong value 50 -> 0 %, agent failed 0 -> 33 %, gave up 25 -> 0 %" in lines
    # Nothing is said where only some trials have one.
    for before in (a_baseline("old", [1, 0]), side("old", many([1, 0, 0], causes={"wrong value": 1}))):
        assert not any("causes" in line for line in comparison_lines(compare(before, new, 0.1)))


def test_runs_with_recorded_answers_are_told_to_run_again_with_more_epochs() -> None:
    old, new = side("old", many([1, 0] * 5, tasks=11)), side("new", many([1, 0], tasks=11))

    def advice(candidate: Side) -> str:
        return list(comparison_lines(compare(old, candidate, 0.2)))[-1]

    assert advice(new).endswith("run more epochs, which count together with these: --super-epochs=1-5")
    told = advice(replace(new, answers="another"))
    assert told == (
        "to find out, run again with more epochs, which do not count together with these: --super-epochs=1-7"
    )


def test_stop_reasons_that_changed_are_named_beside_the_verdict() -> None:
    old = side("old", many([1, 1, 0], stops={"submitted": 3}))
    new = side("new", many([1, 0, 0], stops={"submitted": 2, "agent_error": 1}))
    lines = list(comparison_lines(compare(old, new, 0.1)))
    shares = "agent_error 0 % -> 33 %, submitted 100 % -> 67 %"
    told = f"trials end differently from the baseline's: {shares}; before you trust"
    assert any(line.startswith(told) for line in lines)
    few = side(
        "new", {**many([1, 0, 0], stops={"submitted": 3}), "t000": task([0], stops={"agent_error": 1})}
    )
    assert not any("otherwise" in line for line in comparison_lines(compare(old, few, 0.1)))


# Noise that trials do not show


def test_tasks_that_are_not_repeated_have_the_noise_of_their_own() -> None:
    # Noisy tasks with one trial, next to quiet ones that a smoke set has repeated on both sides.
    chance = random.Random(7)

    def noisy() -> dict[str, TaskTrials]:
        return {f"t{n:03}": task([float(chance.random() < 0.5)], of_runs=[1]) for n in range(8, 16)}

    missed = 0
    for _ in range(40):
        first = side("1", {**many([1], tasks=8, of_runs=[1]), **noisy()})
        old, _ = with_run(first, side("2", many([1] * 4, tasks=8, of_runs=[4])))
        new = side("3", {**many([1] * 3, tasks=8), **noisy()}, looks=1)
        [found] = compare(old, new, 0.1).sets
        low, high = found.difference.bounds(found.level)
        missed += not low <= 0 <= high
        assert found.baseline_error > 0.03
    assert missed <= 4


def test_what_tasks_share_in_a_run_or_repositories_in_an_epoch_widens_the_bounds() -> None:
    def width(old: dict[str, TaskTrials], new: dict[str, TaskTrials]) -> float:
        low, high = compare(side("old", old), side("new", new), 0.1).sets[0].difference.bounds()
        return high - low

    def of(patterns: Sequence[Sequence[float]], **changes: Any) -> dict[str, TaskTrials]:
        return {f"t{n:02}": task(patterns[n % len(patterns)], **changes) for n in range(30)}

    half = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    apart = width(of(half), of(half))
    # All trials of a task end alike, otherwise than in the other run.
    assert width(of([[1.0] * 4, [0.0] * 4]), of([[0.0] * 4, [1.0] * 4])) > 2 * apart
    # Three tasks each of a repository are solved in the same epochs.
    together = {id: replace(one, repository=str(int(id[1:]) // 6)) for id, one in of(half[:1]).items()}
    assert width(together, together) > 1.5 * apart
    mixed = {id: replace(one, repository=str(int(id[1:]) // 6)) for id, one in of(half).items()}
    assert width(mixed, mixed) == pytest.approx(apart)
