"""The agents react and react-super: what they ask a model, and what they make of its answers."""

import re
from typing import Any

import pytest

from pytest_super.agents.asking import parse_submission
from pytest_super.agents.react.agent import ReActAgent, react_prompt
from pytest_super.agents.react.format import ACTION_TYPES, parse_edit, parse_response, render_response
from pytest_super.metrics.reference import reference_scores
from pytest_super.model.completion import Completion, Message
from pytest_super.store.trajectory import Action
from pytest_super.testing import FakeModel
from tests.unit.test_trial import TrialBench

SUBMIT = render_response("done", Action(type="submit", content='{"a": 1}'))


def execute(code: str, thought: str = "go on") -> str:
    return render_response(thought, Action(type="execute", content=code))


def run(agent: ReActAgent, *answers: str | Completion, tokens: int = 10**6, **limits: Any) -> TrialBench:
    bench = TrialBench(tokens=tokens, model=FakeModel(*answers), **limits)
    bench.run(agent.run)
    return bench


def model_of(bench: TrialBench) -> FakeModel:
    assert isinstance(bench.trial.model, FakeModel)
    return bench.trial.model


def requests(bench: TrialBench) -> list[list[Message]]:
    return model_of(bench).requests


def test_a_trial_from_the_first_cell_to_the_submission() -> None:
    edit = render_response(
        "change", Action(type="edit", content="a.py\n<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny")
    )
    bench = TrialBench(tokens=10**6, model=FakeModel(execute("print(6 * 7)", "multiply"), edit, SUBMIT))
    bench.kernel.files.write("a.py", b"w\nx\nz\n")
    assert bench.run(ReActAgent(edit=True).run) == "submitted"
    taken = [(step.thought, step.action.type, step.outcome) for step in bench.recorded]
    assert taken == [("multiply", "execute", "ok"), ("change", "edit", "ok"), ("done", "submit", "ok")]
    assert bench.recorded[0].observation == "42\n"
    assert bench.kernel.files.read("a.py") == b"w\ny\nz\n"
    assert bench.trial.submission == {"a": 1}


def test_it_asks_with_the_paper_s_messages_and_decoding() -> None:
    bench = run(ReActAgent(edit=True), execute("print(42)", "look"), execute("1"), SUBMIT)
    first, second, third = requests(bench)
    assert [message["role"] for message in first] == ["system", "user"]
    assert len(third) == 3
    assert first[1]["content"] == "Query: do it"
    assert [message["role"] for message in second] == ["system", "user", "assistant"]
    assert second[2]["content"].startswith(
        "Thought: look\nAction: execute\n<content>\nprint(42)\n</content>\n"
    )
    assert "42" in second[2]["content"].partition("Observation:")[2]
    parameters = model_of(bench).parameters[0]
    assert (parameters["temperature"], parameters["max_tokens"]) == (0.2, 1500)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("I cannot do that.", "no action"),
        (Completion(text=execute("print(1)"), finish_reason="length"), "cut off"),
        (render_response("", Action(type="edit", content="a.py\n<<<BEFORE_EDIT>>>\nx")), "lacks a part"),
        (render_response("", Action(type="submit", content="accuracy is 0.6")), "not JSON"),
    ],
)
def test_an_answer_that_is_no_action_is_told_and_the_trial_goes_on(
    answer: str | Completion, told: str
) -> None:
    bench = run(ReActAgent(edit=True), answer, SUBMIT)
    assert bench.trial.stop_reason == "submitted"
    assert bench.recorded[0].outcome == "error"
    assert told in bench.recorded[0].observation
    assert told in requests(bench)[1][2]["content"]


def test_an_answer_that_is_no_action_is_kept_but_not_shown_again() -> None:
    bench = run(ReActAgent(edit=True), "I cannot do that.", SUBMIT)
    assert bench.recorded[0].thought == "I cannot do that."
    assert "I cannot do that." not in requests(bench)[1][2]["content"]


def test_a_submission_that_is_no_json_is_none_and_reads_as_one_in_the_history() -> None:
    bad = render_response("done", Action(type="submit", content="{a: 1}"))
    bench = run(ReActAgent(edit=True), bad, execute("1"), steps=2)
    assert not bench.trial.submitted
    assert reference_scores(bench.recorded[:1], answer={"a": 1}).submitted == 0
    assert "Action: submit\n<content>\n{a: 1}\n</content>" in requests(bench)[1][2]["content"]


def test_without_edit_there_is_no_edit() -> None:
    edit = render_response("", Action(type="edit", content="a\n<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny"))
    bench = run(ReActAgent(edit=False), edit, SUBMIT)
    assert "use one of execute, submit, continue_wait, interrupt" in bench.recorded[0].observation


def test_a_cell_that_runs_is_waited_for_or_interrupted() -> None:
    wait, stop = "Thought: right run\nAction: continue_wait", "Thought: wrong run\nAction: interrupt"
    bench = run(
        ReActAgent(edit=True),
        *(execute("sleep(50)"), wait, execute("sleep(500)"), execute("1"), stop, SUBMIT),
        cell=30.0,
    )
    assert [(step.action.type, step.outcome) for step in bench.recorded] == [
        ("execute", "timed_out"),
        ("continue_wait", "ok"),
        ("execute", "timed_out"),
        ("execute", "error"),
        ("interrupt", "interrupted"),
        ("submit", "ok"),
    ]


def test_a_prompt_of_the_user_stands_in_place_of_the_whole_system_prompt() -> None:
    [[system, _]] = requests(run(ReActAgent("Be quick.", edit=True), SUBMIT))
    assert system["content"] == "Be quick."


def test_observations_are_fenced_where_the_prompt_s_own_are() -> None:
    fenced = ReActAgent("Observation: ```\nx\n```\n", edit=True)
    _, messages = requests(run(fenced, execute("print(42)"), SUBMIT))
    assert "Observation: ```\n42\n" in messages[2]["content"]


def demonstrated(prompt: str) -> list[Action]:
    answers = re.findall(
        r"^Thought: .*?^</content>", prompt.partition("examples follow.")[2], re.DOTALL | re.MULTILINE
    )
    return [parse_response(answer).action for answer in answers]


@pytest.mark.parametrize("edit", [False, True])
def test_the_demonstrations_are_in_the_format(edit: bool) -> None:
    actions = demonstrated(react_prompt(edit=edit))
    submissions = [parse_submission(action.content) for action in actions if action.type == "submit"]
    assert submissions == [{"precision": 0.615, "recall": 0.5821}, ["Oslo", "Bern"], None]
    edits = [parse_edit(action.content).path for action in actions if action.type == "edit"]
    assert edits == ["evaluate.py"] * edit
    cells = "\n".join(action.content for action in actions if action.type == "execute")
    assert re.findall("!git clone|README|!pip install|!python -m|read_csv", cells) == [
        *("!git clone", "README", "!pip install", "!python -m", "read_csv")
    ]


@pytest.mark.parametrize("edit", [False, True])
def test_the_prompts_say_what_the_paper_s_do_and_only_one_tells_of_edit(edit: bool) -> None:
    prompt = react_prompt(edit=edit)
    assert bool(re.search(r"\bedit\b|_EDIT>>>", prompt)) == edit
    said = [*ACTION_TYPES, "<content>", "null", "1500 tokens", "5 minutes", "conda"]
    assert {what for what in said if what not in prompt} <= {"edit"}
