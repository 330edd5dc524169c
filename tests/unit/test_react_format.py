"""What the ReAct agents answer: every way in which models write it, and no way in which it does harm."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_super.agents.react.format import (
    ACTION_TYPES,
    WITHOUT_CONTENT,
    FormatError,
    parse_edit,
    parse_response,
    render_response,
)
from pytest_super.store.trajectory import Action

LS = Action(type="execute", content="!ls")
EDIT = "a.py\n<<<BEFORE_EDIT>>>\nx = 1\n<<<AFTER_EDIT>>>\nx = 2"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("Thought: look\nAction: execute\n<content>\n!ls\n</content>", id="plain"),
        pytest.param("Thought: look\nAction:\nexecute\n<content>\n!ls\n</content>", id="type below"),
        pytest.param("**Thought**: look\n**Action**: execute\n<content>\n!ls\n</content>", id="bold names"),
        pytest.param("Thought: look Action: execute\n<content>\n!ls\n</content>", id="one line"),
        pytest.param("look\nAction: execute\n<content>\n!ls\n</content>", id="no label"),
        pytest.param(
            "Thought: \nThought: look\nAction: execute\n<content>\n!ls\n</content>", id="two labels"
        ),
        pytest.param(
            "\n\nThought: look\n\nAction: execute\n\n\n<content>\n!ls\n</content>\n\n", id="blank lines"
        ),
        pytest.param("Thought: look\nAction: execute\n<content>!ls</content>", id="tags in the line"),
        pytest.param("Thought: look\r\nAction: execute\r\n<content>\r\n!ls\r\n</content>\r\n", id="CRLF"),
        pytest.param("Thought: look\nAction: execute\n```\n!ls\n```", id="fence instead of tags"),
        pytest.param("Thought: look\nAction: execute\n```python\n!ls\n```\n", id="fence with a language"),
        pytest.param(
            "Thought: look\nAction: execute\n```\n!ls\n```\nThis lists all.", id="words after the fence"
        ),
        pytest.param(
            "Thought: look\nAction: execute\n<content>\n```\n!ls\n```\n</content>", id="fence in tags"
        ),
        pytest.param(
            "Thought: look\nAction: execute\nThe cell:\n<content>\n!ls\n</content>", id="words before"
        ),
    ],
)
def test_all_ways_to_write_an_action_are_the_same_action(answer: str) -> None:
    response = parse_response(answer)
    assert (response.thought, response.action) == ("look", LS)


@pytest.mark.parametrize(
    ("before", "thought"), [("Sure, here it is.\nThought: do it\n", "Sure, here it is.\ndo it"), ("", "")]
)
def test_a_thought_has_the_text_before_its_label_and_can_be_missing(before: str, thought: str) -> None:
    assert parse_response(f"{before}Action: execute\n<content>\n!ls\n</content>").thought == thought


@pytest.mark.parametrize(
    "thought",
    ["Action: I will list the files.", "I could submit.\nAction: submit would end it, so I look first."],
)
def test_actions_that_the_thought_speaks_of_are_not_taken(thought: str) -> None:
    response = parse_response(render_response(thought, LS))
    assert (response.thought, response.action) == (thought, LS)


@pytest.mark.parametrize(
    "content",
    [
        'print("Next Action: go")\nprint(2)',
        'prompt = """\nThought: x\nAction: submit\nObservation: y\n"""',
        'open("a.xml", "w").write("<content>text</content>")',
        '!grep -c "</content>" a.xml',
        "x = 1\n\n",
        "!printf 'a\\r\\n'\r\nsecond",
        "```\nonly begun",
        "a\n```\nb\n```\nc",
        "!echo </content> Thoughtful",
    ],
)
def test_the_content_is_taken_to_the_letter(content: str) -> None:
    action = Action(type="execute", content=content)
    assert parse_response(render_response("look", action)).action == action


def test_of_several_actions_the_first_is_taken() -> None:
    made_up = "\nObservation:\na.txt\n\n" + render_response("done", Action(type="submit", content='"a.txt"'))
    for answer in (render_response("look", LS), "Thought: look\nAction: execute\n<content>!ls</content>"):
        assert parse_response(answer + made_up).action == LS
    in_a_line = "Thought: look\nAction: execute\n<content>!ls</content> Observation: a.txt"
    assert parse_response(in_a_line + made_up).action == LS


@pytest.mark.parametrize(
    "between", ["", "\nNow I am done.\n", "\nObservation: a\n<content>b</content>\n", "\n**Thought**: so"]
)
def test_a_closing_tag_of_a_later_action_closes_only_that(between: str) -> None:
    later = render_response("done", Action(type="submit", content='"a.txt"'))
    assert parse_response(f"{render_response('look', LS)}\n{between}\n{later}").action == LS
    later = later.removeprefix("Thought: done\n")
    assert parse_response(f"{render_response('look', LS)}\n{between}\n{later}").action == LS


@pytest.mark.parametrize("between", ["\nObservation: a\n</content>\n", " Thought: so\n</content>"])
def test_a_closing_tag_of_nothing_after_the_content_can_be_its_end(between: str) -> None:
    with pytest.raises(FormatError, match="A second </content> follows, so it is not clear"):
        parse_response(render_response("look", LS) + between)


def test_the_first_complete_action_is_taken() -> None:
    assert parse_response("Thought: so\nAction: submit\n\n" + render_response("look", LS)).action == LS


@pytest.mark.parametrize("type", WITHOUT_CONTENT)
@pytest.mark.parametrize(
    "rest", ["", "\n<content>\n</content>", "\n<content>", "\n<content>None</content>", "\nNow."]
)
def test_waiting_needs_no_content(type: str, rest: str) -> None:
    assert parse_response(f"Thought: it runs\nAction: {type}{rest}").action == Action(type=type)


@pytest.mark.parametrize("word", ["continue", "Continue wait", "continue-wait", "CONTINUE_WAIT"])
def test_to_continue_can_only_mean_to_wait(word: str) -> None:
    assert parse_response(f"Thought: it runs\nAction: {word}").action == Action(type="continue_wait")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "contains no action"),
        ("I am sorry, I cannot do that.", "contains no action"),
        ("Thought: look\nAction:", "not named"),
        ("Thought: look\nAction:\n<content>\n!ls\n</content>", "not named"),
        (
            "Thought: look\nAction: I will look.\n<content>\n!ls\n</content>",
            "`I will look.` is not an action: use one of",
        ),
        (
            "Thought: look\nAction: None",
            "`None` is not an action: use one of execute, edit, submit, continue_wait, int",
        ),
        ("Thought: look\nAction: execute", "content of execute is missing"),
        ("Thought: look\nAction: execute\n!ls", "content of execute is missing"),
        ("Thought: look\nAction: execute\n<content>\n</content>", "content of execute is empty"),
        ("Thought: look\nAction: execute\n```\n\n```", "content of execute is empty"),
        ("Thought: look\nAction: execute\n<content>\n!rm -r data", "not closed"),
        (
            render_response("look", LS).removesuffix("\n</content>") + "\n" + render_response("so", LS),
            "not closed",
        ),
        (
            render_response("so", Action(type="execute", content="<a>\n<content>\nb\n</content>\n</a>")),
            "not closed",
        ),
        ("Thought: look\nAction: execute\n```\n!rm -r data", "not clear"),
        ("Thought: look\nAction: execute\n```\nx = '''\n```\ny\n```\n'''\n```", "not clear"),
        ("Thought: look\nAction: execute\n```bash\nls\n```", "exclamation mark"),
        ("Thought: look\nAction: execute\n<content>\n```sh\nls\n```\n</content>", "exclamation mark"),
    ],
)
def test_what_is_no_complete_action_gets_one_clear_answer(answer: str, why: str) -> None:
    with pytest.raises(FormatError) as raised:
        parse_response(answer)
    assert why in str(raised.value).split("\n")[0]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_answer_is_never_taken(reason: str) -> None:
    with pytest.raises(FormatError, match="cut off"):
        parse_response(render_response("look", LS), finish_reason=reason)


PARTS = st.sampled_from(
    ["<content>", "</content>", "</content>.", "Action: submit", "Thought:", "```", "\n", "\r\n", " ", "x"]
)


def can_be_carried(content: str) -> bool:
    """Whether it has text, begins as no fence, and neither closes itself nor opens an action of its own."""
    closes = "</content>" in content and any(word in content for word in ("Thought", "Action"))
    opens = "Action" in content and "<content>" in content
    return bool(content.strip()) and not content.lstrip().startswith("```") and not closes and not opens


def speaks_of_none(thought: str) -> bool:
    return "action" not in thought.lower() and "thought" not in thought.lower()


CONTENTS = (st.text() | st.lists(PARTS).map("".join)).filter(can_be_carried)
THOUGHTS = st.text().map(str.strip).filter(speaks_of_none)


@given(THOUGHTS, st.sampled_from(["execute", "edit", "submit"]), CONTENTS)
@example("", "execute", "\nx\n \n")
def test_what_is_written_in_the_format_is_read_as_it_was_or_refused_for_a_tag(
    thought: str, type: str, content: str
) -> None:
    action = Action(type=type, content=content)
    try:
        response = parse_response(render_response(thought, action))
    except FormatError:
        assert "content>" in content
        return
    assert (response.thought, response.action) == (thought, action)


WORDS = "Thought Action Observation : * ` ``` ```sh execute edit submit interrupt continue x !ls { [1] null é"
PIECES = st.sampled_from([*WORDS.split(), " ", "\n", "\r\n", "<content>", "</content>", "\ud800", "\0"])


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(), st.sampled_from(["stop", "length", ""]))
def test_any_text_is_an_action_or_no_action(answer: str, reason: str) -> None:
    try:
        action = parse_response(answer, reason).action
    except FormatError:
        return
    assert reason != "length"
    assert action.type in WITHOUT_CONTENT or action.content.strip()
    assert action.content in (answer.replace("\r\n", "\n") + answer)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "Action:",
            "*",
            "a",
            "<content>",
            "</content>",
            "\nAction: execute\n<content>",
            "Action" + 50 * " ",
        ),
        *(" ", "\n ", "\r\n", "\n```", "</content> Thoughts", "\nThought: ", "Action: a_"),
    ],
)
@pytest.mark.parametrize("head", ["", "Action: execute\n<content>\n", "Action: execute\n```\n", "Action:"])
@pytest.mark.timeout(60)
def test_a_hostile_answer_is_read_in_linear_time(unit: str, head: str) -> None:
    # Work that is quadratic in this length takes minutes.
    with contextlib.suppress(FormatError):
        assert parse_response(head + unit * (2**17 // len(unit))).action.type in ACTION_TYPES


@pytest.mark.parametrize(
    ("content", "path", "before", "after"),
    [
        (EDIT, "a.py", "x = 1\n", "x = 2\n"),
        ("\na b's.py \n<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny", "a b's.py", "x\n", "y\n"),
        ("a\n above\n<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny", "a", " above\nx\n", " above\ny\n"),
        ("a\n<<<BEFORE_EDIT>>>\n# <<<AFTER_EDIT>>>\n<<<AFTER_EDIT>>>\ny", "a", "# <<<AFTER_EDIT>>>\n", "y\n"),
    ],
)
def test_an_edit_is_a_path_and_lines(content: str, path: str, before: str, after: str) -> None:
    change = parse_edit(content)
    assert (change.path, change.before, change.after) == (path, before, after)


LINES = st.lists(st.text(st.characters(exclude_characters="\n")).filter(lambda line: "_EDIT>>>" not in line))


@given(st.from_regex(r"[a-z][a-z {};'\"]*[a-z]\.py", fullmatch=True), LINES, LINES)
def test_an_edit_is_read_as_it_was_written(path: str, before: list[str], after: list[str]) -> None:
    lines = [path, "<<<BEFORE_EDIT>>>", *before, "<<<AFTER_EDIT>>>", *after]
    written = (path, "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after))
    # With and without an end of the last line. Without it, a last line that is blank is such an end.
    for content in ("\n".join([*lines, ""]), *(["\n".join(lines)] if lines[-1] else [])):
        change = parse_edit(content)
        assert (change.path, change.before, change.after) == written


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a.py\n<<<BEFORE_EDIT>>>\nx = 1", "lacks a part"),
        ("a.py\n<<<BEFORE_EDIT>>>\nx = 1\n<<<AFTER", "lacks a part"),
        ("a.py\n<<<AFTER_EDIT>>>\nx\n<<<BEFORE_EDIT>>>\ny", "lacks a part"),
        ("<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny", "lacks a part"),
        ("a.py", "lacks a part"),
        ("", "lacks a part"),
        (f"{EDIT}\n<<<BEFORE_EDIT>>>\ny = 1\n<<<AFTER_EDIT>>>\ny = 2", "one by one"),
        (f"{EDIT}\n<<<AFTER_EDIT>>>", "one by one"),
    ],
)
def test_an_edit_that_is_not_whole_is_refused(content: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        parse_edit(content)
