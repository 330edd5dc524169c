"""The page of a run: its figures and charts, what is told of damaged files, and that every text is inert."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_super.model.protocols.canonical import parts_of
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.recorded import RecordedTrial
from pytest_super.report.notebook import write_notebook
from pytest_super.report.page.charts import axis
from pytest_super.report.page.conversation import conversation_of
from pytest_super.report.page.figures import figures_of
from pytest_super.report.page.interval import TaskMean, general_mean
from pytest_super.report.page.pair import pair_of
from pytest_super.report.page.render import MOST_OF_TRIAL, one_file, run_page, runs_page, trial_body
from pytest_super.report.page.server import Pages
from pytest_super.report.page.stored import read_run
from pytest_super.report.page.texts import Text, text_of
from pytest_super.report.page.trial import ShownDetail, detail_of
from pytest_super.store.answers import FACTS, FILE
from pytest_super.store.results import RUNNING, TrialResult, folder_name
from pytest_super.store.run_folder import RunFolder
from pytest_super.store.trajectory import Step
from pytest_super.store.trial_folder import TrialFolder
from pytest_super.store.verdict import write_verdict
from pytest_super.tasks.task import Task
from tests.stored import a_result, a_run, a_step, add_trial, append_line

HOSTILE = (
    "</script><script>globalThis.caught = 1</script><img src=x onerror=alert(1)>"
    "\"' onmouseover=alert(1) {{ 7*7 }} \u2028 \u202e \x1b[31m &lt; <!-- ]]> </style> javascript:alert(1)"
)


WORDS = st.text(st.sampled_from("<>&'\"/=`{}%#- \n\t\x00\x1b\u2028\u202eabonscriptxml!\ud800"), max_size=40)


class Outline(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", (data,)))


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    found.close()
    return found


# Figures


def test_the_table_has_the_terminals_means_with_intervals() -> None:
    results = [a_result("a"), a_result("b", accuracy=0.0), a_result("c", category="goal"), a_result("d")]
    found = figures_of(results)
    assert found.heads == ["solved", "accuracy", "landmarks", "submitted"]
    assert [(row.group.set, row.group.category, row.group.trials) for row in found.rows] == [
        ("masked", "data", 3), ("masked", "goal", 1), ("masked", "all", 4),
    ]  # fmt: skip
    expected = general_mean(
        [TaskMean(value=value, cluster=id) for id, value in zip("abcd", (1, 0, 1, 1), strict=True)]
    )
    assert found.rows[-1].figures[1].text == "0.750"
    assert found.rows[-1].figures[1].bounds == (expected.low, expected.high)
    assert [level.name for level in found.levels] == ["masked data", "masked goal", "masked all"]
    assert found.levels[0].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(("limit", "is_invalid"), [(0.5, False), (0.4, True), ("x", True)])
def test_a_run_is_invalid_by_the_limit_that_it_was_given(
    tmp_path: Path, limit: Any, is_invalid: bool
) -> None:
    # The command line can hold a secret.
    run = a_run(tmp_path, max_errors=limit, arguments=["-o", "key=sk-secret"])
    add_trial(run, a_result("a"))
    add_trial(run, a_result("b", error="the engine died", metrics={"accuracy": None}))
    page = one_file(read_run(run.path), "run")
    assert ("invalid: 1 of 2 trials are infrastructure errors" in page) is is_invalid
    assert "sk-secret" not in page


REGRESSION = {
    "masked": {"verdict": "regressed", "points": -50.0, "low": -75.5, "high": -24.5, "baseline_error": 0.0}
}


def page_with_verdict(folder: Path, **changed: Any) -> str:
    run = a_run(folder)
    add_trial(run, a_result())
    gates = ["gate: FAILED, masked: REGRESSED"]
    write_verdict(run.path, {"gates": gates, "regression": REGRESSION, "verdict": "failed", **changed})
    return one_file(read_run(run.path), "run")


def test_a_run_begins_with_its_verdict_and_its_trials(tmp_path: Path) -> None:
    page = page_with_verdict(tmp_path)
    parts = [
        'Verdict: <b class="red">failed</b>',
        "<li>FAILED, masked: REGRESSED</li>",
        '<th scope="row">masked</th><td data-head="verdict">regressed</td>',
        '<td data-head="interval">-75.5 to -24.5</td>',
        'class="outcome solved"',
        "<h2>Trials</h2>",
        "<h2>Figures</h2>",
        "<h2>What was run</h2>",
    ]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    passed = page_with_verdict(tmp_path / "passed", verdict="passed", regression={})
    assert "Verdict: <b>passed</b>" in passed


@pytest.mark.parametrize("changed", [{"gates": 1}, {"regression": {"a": {"points": "x"}}}])
def test_a_verdict_that_cannot_be_read_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert "verdict.json cannot be read" in page_with_verdict(tmp_path, **changed)


# Charts


@given(st.floats(1e-300, 1e15))
def test_an_axis_begins_at_0_and_ends_behind_the_largest_value_after_few_ticks(largest: float) -> None:
    top, ticks = axis(largest)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= 7
    assert largest <= top * (1 + 1e-9)
    assert top <= 2.01 * largest


# Texts


def viewed(
    folder: Path, result: TrialResult, steps: Sequence[Step] = (), query: str | None = None, answer: Any = 3
) -> ShownDetail:
    """The detail of a stored trial, with the texts of its task if a query is given."""
    run = a_run(folder)
    path = add_trial(run, result, steps)
    if query is not None:
        task = Task.model_validate({"id": "mean", "set": "expert", "query": query, "answer": answer})
        write_notebook(path, task, result, list(steps))
    return detail_of(read_run(run.path).trials[0], run.path, 100_000)


def page_of(view: ShownDetail) -> str:
    return trial_body(view, id="s", level=2, source="x")


def whole(text: Text) -> str:
    return "".join(piece.text for piece in [*text.at_once, *text.folded])


@given(st.text(), st.integers(0, 300))
def test_a_text_that_is_cut_takes_no_more_than_it_may(text: str, most: int) -> None:
    found = text_of(text, most)
    kept = whole(found).replace(f"\n[… {found.omitted:,} characters are left out here …]\n", "")
    assert len(kept) <= most
    assert len(kept) + found.omitted == len(text)


def test_a_landmark_is_marked_where_its_pattern_matches_also_across_lines() -> None:
    found = text_of("loss 1\nall\ndone, done", 1000, [(3, r"all done")])
    assert [(piece.text, piece.landmark) for piece in found.at_once] == [
        ("loss 1\n", None), ("all\ndone", 3), (", done", None),
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["(", "(a+)+$", "", "b|(?:a{400}){251}"])
def test_a_pattern_that_no_task_file_can_have_marks_nothing(pattern: str) -> None:
    found = text_of("a" * 40 + "b", 1000, [(1, pattern)])
    assert whole(found) == "a" * 40 + "b"
    assert [piece.landmark for piece in found.at_once] == [None]


# Trials


def test_a_trial_shows_what_decided_it_and_its_steps(tmp_path: Path) -> None:
    result = a_result(
        accuracy=0.0,
        difference="n is 2, not 3",
        landmarks_found=[
            {"pattern": "half way", "step": 1, "is_echo": True, "timed_out": False},
            {"pattern": "done", "step": None, "is_echo": False, "timed_out": False},
        ],
        integrity=[{"kind": "echoed output", "step": 1, "evidence": "half way", "is_suspect": True}],
    )
    steps = [
        a_step(1, content="print('half way')", thought="try", observation="half way\n", seconds=1.25),
        a_step(2, type="submit", content='{"n": 2}'),
    ]
    view = viewed(tmp_path, result, steps)
    assert ("wrong values", "n is 2, not 3") in view.deciding
    assert [(label, whole(text)) for label, text in view.told][2] == ("Submitted", '{"n": 2}')
    assert view.flags == ["echoed output, step 1: half way"]
    page = page_of(view)
    assert '<mark title="landmark 1">half way</mark>' in page
    assert "1.2 s" in page
    assert "Thought" in page
    assert "landmark 1 (echo)" in page


def test_a_trial_begins_with_the_question_what_was_expected_and_why_it_was_missed(tmp_path: Path) -> None:
    steps = [a_step(content="print(2)"), a_step(2, type="submit", content='{"n": 2}')]
    result = a_result(accuracy=0.0, cause="wrong value", difference="n is 2, not 3", integrity=[])
    view = viewed(tmp_path, result, steps, "How <many>?", {"n": 3})
    assert [(label, whole(text)) for label, text in view.told] == [
        ("Question", "How <many>?"), ("Expected", '{"n": 3}'), ("Submitted", '{"n": 2}'),
    ]  # fmt: skip
    assert view.deciding == [
        ("score", "accuracy 0, landmarks 0, submitted 1"), ("cause", "wrong value"),
        ("wrong values", "n is 2, not 3"), ("integrity", "no signs"), ("stopped", "submitted"),
    ]  # fmt: skip
    page = page_of(view)
    places = [page.index(part) for part in ("How &lt;many&gt;?", "wrong value", "no signs", "Step 1")]
    assert places == sorted(places)


def test_a_graded_trial_shows_the_values_that_were_expected(tmp_path: Path) -> None:
    value = {"name": "loss", "score": 0.0, "found": "2", "expected": "3", "why": ""}
    view = viewed(tmp_path, a_result(accuracy=0.0, graded=[value], unseen=["processes"]))
    assert [(label, whole(text)) for label, text in view.told][:2] == [
        ("Question", "not stored, because the trial has not ended by itself"), ("Expected", "loss: 3"),
    ]  # fmt: skip
    assert {("graded", "loss is 2, not 3"), ("unseen", "processes"), ("integrity", "nobody looked")} <= {
        *view.deciding
    }


CALL = json.dumps({"name": "shell", "arguments": json.dumps({"command": 'cd a\nls "b"', "limit": 3})})


def test_a_call_shows_its_arguments_as_texts_and_the_time_since_the_step_before(tmp_path: Path) -> None:
    steps = [
        a_step(1, type="message", content="I look.", started="2026-11-23T10:15:00.000+00:00"),
        a_step(2, type="tool_call", content=CALL, started="2026-11-23T10:15:02.500+00:00"),
        a_step(3, type="tool_call", content="no JSON", started="soon"),
    ]
    page = page_of(viewed(tmp_path, a_result(), steps, "q"))
    assert "shell\ncommand:\ncd a\nls &#34;b&#34;\nlimit: 3" in page
    assert page.count("2.5 s after the step before") == page.count("after the step before") == 1
    assert "no JSON" in page
    [notebook] = tmp_path.rglob("trajectory.ipynb")
    cells = json.loads(notebook.read_text())["cells"]
    sources = {cell["id"]: cell["source"] for cell in cells}
    assert sources["action-2"] == 'shell\ncommand:\ncd a\nls "b"\nlimit: 3'
    assert "2.5 s after the step before" in sources["step-2"]


def test_outputs_that_a_browser_would_render_are_text_and_pictures_are_only_named(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "display_data", "data": {"text/html": ["<b>bold", "</b>"], "image/png": "iVBOR"}},
        {"output_type": "display_data", "data": {"image/svg+xml": "<svg onload=alert(1)>"}},
    ]
    page = page_of(viewed(tmp_path, a_result(), [a_step(outputs=outputs)]))
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "&lt;svg onload=alert(1)&gt;" in page
    assert "an output that is not shown: image/png, 5 characters of Base64" in page
    assert "iVBOR" not in page


def test_a_trial_of_any_size_takes_no_more_than_it_may_and_the_rest_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    long = [a_step(n, observation='<">\n' * 200_000, thought="<" * 9000) for n in range(1, 4)]
    many = [a_step(n, observation="&" * 500) for n in range(1, 2001)]
    for id, steps in (("long", long), ("many", many)):
        add_trial(run, a_result(id, accuracy=0.0), steps)
    page = one_file(read_run(run.path), "run")
    details = page.split('<details class="trial"')[1:]
    assert len(details) == 2
    assert all(sum(map(len, outline(one).text)) <= MOST_OF_TRIAL for one in details)
    assert "characters more in" in details[0]
    assert "steps more in" in details[1]
    assert 'href="run/trials/long/1.0/trajectory.jsonl"' in details[0]


def test_of_many_trials_the_unsolved_ones_have_details_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_super.report.page.render.MOST_OF_ALL", 60_000)
    run = a_run(tmp_path)
    for number in range(5):
        add_trial(run, a_result(f"t{number}", accuracy=float(number < 4)))
    page = one_file(read_run(run.path), "run")
    assert page.count('<details class="trial"') == page.count("<h3>") == 3
    assert "2 of 5 trials have no detail" in page
    assert "<h3>t4</h3>" in page
    assert "<h3>t3</h3>" not in page


# The conversation with the model


def talk(run: RunFolder, result: TrialResult, *said: str) -> None:
    """Store calls of one conversation that grows, and that the model answers with the same words."""
    record = RecordedTrial(path=run.path / folder_name(result) / FILE)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}]
    for text in said:
        messages.append({"role": "user", "content": text})
        number, _ = record.ask(list(parts_of(COMMON, {"model": "m", "messages": messages})))
        message = {"role": "assistant", "content": f"to {text}"}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        record.add(number, answer=answer, **{**dict.fromkeys(FACTS), "seconds": 1.5})
        messages.append(message)
    number, _ = record.ask(list(parts_of(COMMON, {"model": "m", "messages": messages[:1]})))
    record.add(number, error={"code": "timeout", "message": "no answer"})


def test_a_conversation_shows_each_part_of_a_request_once(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    result = a_result()
    add_trial(run, result)
    talk(run, result, "first", "then")
    calls, unread = conversation_of(run.path, read_run(run.path).trials[0], 10_000)
    assert unread == ""
    assert [call.facts for call in calls] == ["seconds 1.5", "seconds 1.5", ""]
    assert [[(label, whole(text)) for label, text in call.texts] for call in calls] == [
        [
            ("request", "protocol: chat completions\nmodel: m"), ("message 1 (system)", "be brief"),
            ("message 2 (user)", "first"), ("answer", "to first"),
        ],
        [("message 3 (assistant)", "to first"), ("message 4 (user)", "then"), ("answer", "to then")],
        [("no answer", "code: timeout\nmessage: no answer")],
    ]  # fmt: skip


def test_a_conversation_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    folder = add_trial(run, a_result())
    (folder / FILE).write_text('{"format": 99}')
    calls, unread = conversation_of(run.path, read_run(run.path).trials[0], 1000)
    assert (calls, bool(unread)) == ([], True)


def test_no_conversation_is_read_through_a_link_that_leads_out_of_the_run(tmp_path: Path) -> None:
    other, run = a_run(tmp_path, "other"), a_run(tmp_path)
    result = a_result()
    folder, source = add_trial(run, result), add_trial(other, result) / FILE
    talk(other, result, "secret")
    (folder / FILE).symlink_to(source)
    calls, unread = conversation_of(run.path, read_run(run.path).trials[0], 1000)
    assert (calls, "leads out of the run" in unread) == ([], True)


@settings(deadline=None, max_examples=25)
@given(WORDS.filter(lambda text: len(text.strip()) > 0) | st.just(HOSTILE))
def test_no_element_of_a_conversation_comes_from_a_text(text: str) -> None:
    with TemporaryDirectory() as name:
        run, result = a_run(Path(name)), a_result()
        add_trial(run, result)
        pages = []
        for said in (text, "word"):
            (run.path / folder_name(result) / FILE).unlink(missing_ok=True)
            talk(run, result, said)
            pages.append(Pages([run.path]).page(f"/0/{folder_name(result)}")[1]())  # type: ignore[index]
        found, harmless = (outline(page).elements for page in pages)
        assert found == harmless


# Damaged and half-written files


def damage(run: Path) -> None:
    trial = run / "trials/mean/1.0"
    append_line(trial / "trajectory.jsonl", '{"number": 2, "orig')
    append_line(run / "results.jsonl", {**a_result("../../etc").to_data()})
    append_line(run / "results.jsonl", {**a_result("late").to_data(), "weight": 0})
    append_line(run / "results.jsonl", {**a_result("bad").to_data(), "wall_seconds": 10**400})
    append_line(run / "results.jsonl", {**a_result("odd").to_data(), "landmarks_found": [{"a": 1}]})
    append_line(run / "results.jsonl", '["x"]\n\udcff'.encode("utf-8", "replace").decode())
    append_line(run / "results.jsonl", '{"id": "cut", "set"')
    append_line(run / "trouble.jsonl", "{")
    (run / "run.json").write_bytes(b"\xff{")


def test_of_damaged_files_the_page_shows_what_can_be_read_and_names_the_rest(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    add_trial(run, a_result(), [a_step(observation="seen")])
    damage(run.path)
    found = read_run(run.path)
    assert [one.result.id for one in found.trials] == ["mean"]
    text = "\n".join(found.trouble)
    assert "run.json cannot be read" in text
    assert "a line of trouble.jsonl cannot be read" in text
    assert [f"line {number} of results.jsonl" in text for number in range(2, 8)] == [
        True, True, True, False, True, True,
    ]  # fmt: skip
    assert "the result of odd is damaged" in text
    page = one_file(found, "run")
    assert "seen" in page
    assert "line 2 of trajectory.jsonl is damaged or not complete" in page


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_a_file_that_is_cut_or_overwritten_anywhere_raises_nothing(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        run = a_run(Path(name))
        result = a_result(landmarks_found=[{"pattern": "a", "step": 1, "is_echo": False, "timed_out": False}])
        add_trial(run, result, [a_step(observation="a"), a_step(2)])
        write_verdict(run.path, {"gates": ["gate: passed"], "regression": REGRESSION, "verdict": "passed"})
        task = Task.model_validate({"id": "mean", "set": "expert", "query": "q", "answer": 1})
        write_notebook(run.path / "trials/mean/1.0", task, result, [])
        for path in sorted([*run.path.rglob("*.json*"), *run.path.rglob("*.ipynb")]):
            content = bytearray(path.read_bytes())
            place = data.draw(st.integers(0, len(content)))
            content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
            path.write_bytes(content[: data.draw(st.integers(0, 2 * len(content)))])
        assert one_file(read_run(run.path), "run").startswith("<!doctype html>")


ANY_VALUES = [None, -1, 10**400, "x", [None], [{"a": 1}], {"a": 1}]


@pytest.mark.parametrize("value", ANY_VALUES, ids=lambda value: repr(value)[:12])
def test_results_with_any_value_in_a_field_raise_nothing(tmp_path: Path, value: Any) -> None:
    run = a_run(tmp_path)
    for number, field in enumerate(fields(TrialResult)):
        # A category for each, so that no other trial makes up for the value in a mean.
        data = {**a_result(f"t{number}", category=field.name).to_data(), field.name: value}
        append_line(run.path / "results.jsonl", data)
    assert "<main" in one_file(read_run(run.path), "run")


DAMAGED = [
    {"whole_file": [{}]},
    {"graded": [{"score": 1}]},
    {"graded": [{"score": "x", "name": "a", "found": "", "expected": "b", "why": ""}]},
    {"integrity": [{"kind": "changed script"}]},
    {"entrypoint_process": {}, "metrics": {"accuracy": 1.0, "script_executed": 0.0}},
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=repr)
def test_a_result_whose_entries_are_damaged_is_named_and_the_others_are_shown(
    tmp_path: Path, damaged: dict[str, Any]
) -> None:
    run = a_run(tmp_path)
    add_trial(run, a_result("whole"))
    append_line(run.path / "results.jsonl", {**a_result("odd").to_data(), **damaged})
    found = read_run(run.path)
    assert [one.result.id for one in found.trials] == ["whole"]
    assert "the result of odd is damaged" in one_file(found, "run")


def test_a_trial_that_runs_is_listed_with_what_it_does(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    folder = TrialFolder(run.path, a_result(stop_reason=RUNNING, metrics={"accuracy": None}))
    folder.activity.begin("cell")
    folder.write_step(a_step(observation="so far"))
    (found,) = read_run(run.path).trials
    assert (found.outcome, found.why) == ("unfinished", "cell")
    assert "so far" in one_file(read_run(run.path), "run")
    folder.close()


# Every text is inert


def a_hostile_step(text: str) -> Step:
    return replace(
        a_step(1, type=text or "execute", content=text, thought=text, observation=text, outcome=text),
        outputs=[{"output_type": "display_data", "data": {"text/html": text, f"image/{text}": text}}],
    )


def a_hostile_result(text: str) -> TrialResult:
    return a_result(
        accuracy=0.0,
        set=text,
        category=text,
        agent=text,
        model=text,
        sandbox=text,
        software=text,
        worker=text,
        stop_reason=text or "submitted",
        difference=text,
        agent_error=text,
        resumed_from=text,
        started=text,
        metrics={"accuracy": 0.0, text[:300]: 1.0},
        applicable=["accuracy"],
        changed_elsewhere=[text],
        graded=[{"name": text, "score": 0.0, "found": text, "expected": text, "why": "", "command": text}],
        landmarks_found=[{"pattern": text, "step": 1, "is_echo": True, "timed_out": False}],
        entrypoint_process={
            "script": text,
            "arguments": [text],
            "seconds": 1.0,
            "status": 0,
            "changed": True,
        },
    )


def a_task(text: str) -> Task:
    return Task.model_construct(id="mean", set="expert", query=text, answer=text)


def page_with(text: str) -> str:
    with TemporaryDirectory() as name:
        run = a_run(Path(name), subject={text: text}, arguments=[text], versions={text: text}, scoring=text)
        step = a_hostile_step(text)
        folder = add_trial(run, a_hostile_result(text), [step])
        write_notebook(folder, a_task(text), a_result(), [step])
        write_verdict(
            run.path, {"gates": [text], "regression": {text: REGRESSION["masked"]}, "verdict": text}
        )
        add_trial(run, a_result("error", error=text, metrics={"accuracy": None}))
        append_line(run.path / "trouble.jsonl", {"id": text, "error": text})
        return one_file(read_run(run.path), "run")


@cache
def harmless() -> Outline:
    return outline(page_with("word"))


@settings(deadline=None, max_examples=30)
@given(WORDS.filter(lambda text: len(text.strip()) > 0) | st.just(HOSTILE))
def test_no_element_and_no_attribute_of_a_page_comes_from_a_text_of_the_run(text: str) -> None:
    found = outline(page_with(text))
    allowed = {*harmless().elements, ("mark", ("title",))}
    assert set(found.elements) <= allowed


def test_a_hostile_text_is_shown_as_it_is_but_for_what_a_terminal_would_obey() -> None:
    page = page_with(HOSTILE)
    text = "".join(outline(page).text)
    assert "<img src=x onerror=alert(1)>" in text
    assert "{{ 7*7 }}" in text
    assert not set("\u2028\u202e\x1b") & set(page)
    assert page.count("<script>") == 1
    assert page.count("</script>") == 1
    assert "javascript:" not in "".join(part for part in page.split('href="')[1:] if part.startswith("j"))


def test_only_our_own_script_and_style_may_run() -> None:
    page = run_page(read_run(Path("/nonexistent")), [])
    policy = page.split('Content-Security-Policy" content="')[1].split('"')[0].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert "*" not in policy


# Two runs


def test_of_two_runs_tasks_that_flipped_come_first(tmp_path: Path) -> None:
    runs = []
    for number, values in enumerate(
        [{"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0}, {"a": 1.0, "b": 1.0, "c": 0.0}]
    ):
        run = a_run(tmp_path, f"run{number}")
        for id, value in values.items():
            add_trial(run, a_result(id, accuracy=value))
        runs.append(read_run(run.path))
    found = pair_of(*runs)
    assert [(one.id, one.flip, one.change) for one in found.tasks] == [
        ("c", "lost", -1.0), ("b", "won", 1.0), ("a", "", 0.0), ("d", "", None),
    ]  # fmt: skip
    assert found.sets[0][0] == "masked"
    assert "masked: " in found.verdicts[0]
    assert found.verdict == "cannot tell"
    assert [one.is_red for one in found.tasks] == [False] * 4
    page = runs_page(runs, found, [{"a": "/0/trials/a/1.0"}, {}], version="v")
    assert '<td data-head="baseline"><a href="/0/trials/a/1.0">1.000</a></td>' in page


def test_without_scipy_pages_are_made_and_two_runs_say_what_they_lack(tmp_path: Path) -> None:
    for name in ("one", "two"):
        add_trial(a_run(tmp_path, name), a_result())
    code = (
        "import sys\nsys.modules['scipy'] = None\n"
        "from pathlib import Path\nfrom pytest_super.report.page.server import Pages\n"
        f"pages = Pages([Path({str(tmp_path)!r}, 'runs', name) for name in ('one', 'two')])\n"
        "print(pages.page('/0/')[1](), pages.page('/')[1]())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "<h1>Run one</h1>" in done.stdout
    assert "pytest-super[gate]" in done.stdout


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"accuracy": 5.0}, "the run damaged cannot be compared: .*numbers from 0 to 1, not \\[5.0\\]"),
        ({"cost_usd": -1.0}, "the run damaged cannot be compared: .*should be numbers from 0 on"),
        ({"id": "other"}, "no task that can be compared"),
    ],
)
def test_runs_that_cannot_be_compared_are_shown_with_the_reason(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    runs = []
    for name, own in (("sound", {}), ("damaged", changed)):
        run = a_run(tmp_path, name)
        add_trial(run, a_result(**own))
        runs.append(read_run(run.path))
    found = pair_of(*runs)
    assert {one.id for one in found.tasks} == {"mean", changed.get("id", "mean")}
    assert re.search(reason, found.trouble)
