"""The history in the prompts of SUPER's agents."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_super.agents.clipped_history import EARLIER_MARK, LAST_MARK, clipped, content_text, history_text
from pytest_super.agents.react.agent import as_shown
from pytest_super.agents.react.format import AFTER, BEFORE, parse_edit, parse_response
from pytest_super.store.trajectory import Action, Origin, Step
from pytest_super.testing import FakeKernel
from pytest_super.trial.editing import EditError, edit
from pytest_super.trial.prefix import pre_execute
from tests.unit.test_trial import TrialBench, make_task


def step(
    observation: str = "seen",
    *,
    type: str = "execute",
    content: str = "!ls",
    thought: str = "Look.",
    origin: Origin = "agent",
) -> Step:
    action = Action(type=type, content=content)
    return Step(number=1, origin=origin, action=action, thought=thought, observation=observation)


def test_steps_are_written_as_the_prompts_write_them_and_content_is_never_cut() -> None:
    code = "print(1)\n" * 20_000
    head = f"Thought: Look.\nAction: execute\n<content>\n{code}\n</content>\nObservation:"
    steps = [step("a\nb", content=code), step("c", content=code)]
    assert history_text(steps) == f"{head}\na\nb\n\n{head}\nc\n\n"
    assert history_text(steps, fenced=True) == f"{head} ```\na\nb\n```\n{head} ```\nc\n```\n"


def test_only_the_last_observation_is_shown_at_length() -> None:
    long = "x" * 60_000
    first, last = history_text([step(long), step(long)]).split("Observation:\n")[1:]
    assert first.partition("\n\n")[0] == "(truncated) ... " + "x" * 500
    assert last == "... (truncated) ..." + "x" * 50_000 + "\n\n"


def test_pre_executed_steps_have_the_fixed_thought_and_an_agent_keeps_its_own() -> None:
    own = "[pre-executed by user]\n\n"
    assert history_text([step(thought="", origin="pre_execute")]).startswith(f"Thought: {own[:-2]}\nAction: ")
    assert history_text([step(thought=own)]).startswith(f"Thought: {own}\nAction: ")


def test_the_published_runner_s_own_wait_keeps_its_thought() -> None:
    thought = "[continued after timeout]"
    wait = step(type="continue_wait", content="", thought=thought, origin="pre_execute")
    assert history_text([wait], fenced=True).startswith(f"Thought: {thought}\nAction: continue_wait\n")


def test_a_submission_that_is_not_json_has_the_published_type_in_that_form_only() -> None:
    invalid = step(type="submit_invalid_json", content="{")
    assert "\nAction: submit_invalid_json\n" in history_text([as_shown(invalid)], fenced=True)
    assert "\nAction: submit\n" in history_text([as_shown(invalid)])


def test_a_step_that_was_no_action_is_an_ordinary_one() -> None:
    bench = TrialBench()
    bench.trial.reject("Thought or action not found.")
    assert history_text(bench.recorded) == (
        "Thought: \nAction: \n<content>\n\n</content>\nObservation:\nThought or action not found.\n\n"
    )


def test_an_edit_is_shown_as_an_agent_writes_it() -> None:
    bench = TrialBench()
    bench.kernel.files.write("{a} b.py", b"x = 1\n")
    bench.trial.edit("{a} b.py", "x = 1", "x = {2}", thought="Change.")
    content = "{a} b.py\n<<<BEFORE_EDIT>>>\nx = 1\n<<<AFTER_EDIT>>>\nx = {2}\n"
    assert f"Action: edit\n<content>\n{content}\n</content>\n" in history_text(bench.recorded)


def shown_again(data: bytes, before: str, after: str) -> bytes:
    """The file after the edit that an agent writes who copies the shown one of the prefix."""
    kernel = FakeKernel()
    kernel.files.write("a b.py", data)
    task = make_task(pre_execute=[{"edit": {"path": "a b.py", "before": before, "after": after}}])
    shown = history_text(list(pre_execute(task, kernel)), fenced=True)  # type: ignore[arg-type]
    change = parse_edit(parse_response(shown).action.content)
    assert change.path == "a b.py"
    return edit(data, change.before, change.after)[0]


TEXTS = st.lists(st.sampled_from(["x", "y", " ", "\n", "\r\n", "é"]), max_size=12).map("".join)


@given(TEXTS, st.integers(0, 12), st.integers(1, 12), TEXTS)
@example("x = 1\ny = 2\nz\n", 6, 6, "y = 3\n")
@example("x = 1\ny = 2\nz\n", 6, 5, "y = 3")
@example("x = 1\ny = 2\n", 10, 1, "")
@example("x = 1\r\ny = 2", 11, 1, "3\n4")
@example("x\ny\n", 2, 2, "\n\n")
def test_an_edit_of_the_prefix_is_shown_so_that_a_copy_of_it_is_the_same_edit(
    text: str, start: int, length: int, after: str
) -> None:
    before = text[start : start + length]
    assume(before)
    try:
        edited = edit(text.encode(), before, after)[0]
    except EditError:
        return
    assert shown_again(text.encode(), before, after) == edited


PATHS = st.text(st.characters(exclude_characters="\n\r"), min_size=1).filter(
    lambda path: path == path.strip()
)
LINES = st.lists(st.text(st.characters(exclude_characters="\n")).filter(lambda line: "_EDIT>>>" not in line))


@given(PATHS, LINES, LINES)
def test_an_edit_is_shown_as_it_was_parsed(path: str, before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    content = "\n".join([path, BEFORE, *before, AFTER, *after, ""])
    change = parse_edit(content)
    stored = json.dumps({"path": change.path, "before": change.before, "after": change.after})
    assert (change.before, change.after) == (old, new)
    assert content_text(Action(type="edit", content=stored)) == content


@pytest.mark.parametrize(
    "content", ["f.py\nbefore", "[1]", '{"path": "f.py"}', "[" * 100_000, "", '{"path": 1, "before": 2}']
)
def test_an_edit_of_another_form_is_shown_as_it_is(content: str) -> None:
    assert f"<content>\n{content}\n</content>" in history_text([step(type="edit", content=content)])


@given(st.text(), st.integers(0, 20), st.sampled_from([EARLIER_MARK, LAST_MARK]))
def test_what_is_shown_is_the_end_and_marked_only_where_something_is_missing(
    observation: str, limit: int, mark: str
) -> None:
    text = clipped(observation, limit, mark)
    if len(observation) <= limit:
        assert text is observation
    else:
        assert text.startswith(mark)
        assert observation.endswith(text.removeprefix(mark))
        assert len(text) == limit + len(mark)
