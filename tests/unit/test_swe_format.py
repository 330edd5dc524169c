"""What SWE-agent answers: what is read from it, what is refused, that the published runs read alike."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_super.agents.asking import parse_submission
from pytest_super.agents.swe.commands import CommandError, arguments_of, parse_edit
from pytest_super.agents.swe.format import parse_answer, render_answer, submission_text

EDIT = "edit 2:3\n    x = 1\n\n    y = 2\nend_of_edit"


def action(text: str) -> tuple[str, str]:
    found = parse_answer(text).action
    return found.type, found.content


def command(content: str) -> tuple[str, str]:
    """What a fenced command is read as."""
    return action(f"DISCUSSION\nso\n```\n{content}\n```")


# The form of an answer


@pytest.mark.parametrize(
    "text",
    [
        "```\n!ls\n```",
        "DISCUSSION\r\nI look.\r\n```\r\n!ls\r\n```\r\n",
        "**DISCUSSION**: I look.\n```bash\n!ls\n```",
        "I look.\n```\n\n\n!ls   \n\n```",
        "I look.\n````python\n!ls\n````",
        "I look.\n  ```\n!ls\n  ```",
        "I look.\n```!ls\n```",
        "I look.\n```!ls```",
        "DISCUSSION\nI look.\n```\n!ls\n```\nThat should show the files.",
    ],
)
def test_a_command_is_found_in_every_form_that_can_mean_one_thing_only(text: str) -> None:
    answer = parse_answer(text)
    assert (answer.action.type, answer.action.content) == ("execute", "!ls")
    assert answer.thought in ("", "I look.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no command"),
        ("DISCUSSION\nI am done.\n", "no command"),
        ("DISCUSSION\nI look.\n!ls", "no command"),
        ("```\n```", "empty"),
        ("```python\n   \n```", "empty"),
        ("```\n!ls", "not closed"),
        ("```\n!ls\n```\nand\n```\n!pwd\n```", "more than one"),
        ("```\n!ls\n```\nand\n```\n!pwd", "not closed"),
        ("```\nopen a.py\n!ls\n```", "More text follows"),
        ("```\nscroll_down\nscroll_down\n```", "More text follows"),
        (f"```\n{EDIT}\n!python a.py\n```", "More text follows"),
        ("```\nedit 1:2\nx = 1\n```", "does not end"),
        ("```\nedit a.py\n```", "does not end"),
        ('```\nedit("1:2", "x")\n```', "as a call"),
        (f"```\nedit 1:1\nx\n```\nDISCUSSION\nnow\n```\n{EDIT}\n```", "Another command"),
        (f"```\nedit 1:1\nx\n{EDIT}\n```", "Another command"),
        ('```\naction: {"type": "execute", "content": "!ls"}\n```', "not JSON here"),
    ],
)
def test_what_is_not_one_command_is_refused_with_the_form_that_is_wanted(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        parse_answer(text)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_is_never_carried_out(reason: str) -> None:
    with pytest.raises(CommandError, match="cut off"):
        parse_answer("```\n!rm -r data\n```", reason)


def test_a_refusal_keeps_what_was_meant_and_why() -> None:
    with pytest.raises(CommandError) as refused:
        parse_answer("DISCUSSION\nI change it.\n```\nedit 1:2\nx\n```")
    assert refused.value.thought == "I change it."
    assert refused.value.action is not None
    assert (refused.value.action.type, refused.value.action.content) == ("edit", "edit 1:2\nx")


@pytest.mark.parametrize("content", ["scroll_down", "open a.py", "edit 1:2\nend_of_edit"])
def test_a_command_may_stand_where_the_language_of_a_fence_does(content: str) -> None:
    assert action(f"```{content}\n```") == (content.split()[0], content)


def test_a_command_may_hold_fences() -> None:
    readme = "%%writefile README.md\nRun\n```bash\nmake\n```\ndone"
    assert command(readme) == ("execute", readme)
    edit = "edit 1:1\n```\nmake\n```\n```sh\nend_of_edit"
    assert command(edit) == ("edit", edit)
    cell = "text = '''\n```\n'''"
    assert action(f"````\n{cell}\n````") == ("execute", cell)


# Commands and cells


@pytest.mark.parametrize(
    ("content", "type", "arguments"),
    [
        ("open a.py", "open", ["a.py"]),
        ("  open a.py 7", "open", ["a.py", "7"]),
        ("open", "open", []),
        ("open 'my file.py' 7", "open", ["my file.py", "7"]),
        (r"open my\ file.py", "open", ["my file.py"]),
        ('open "it\'s; $HOME {1}.py"', "open", ["it's; $HOME {1}.py"]),
        ("goto 5", "goto", ["5"]),
        ("scroll_down", "scroll_down", []),
        ("create new/file.py", "create", ["new/file.py"]),
        ('search_dir "def main" src', "search_dir", ["def main", "src"]),
        ("search_file --fp16 run.sh", "search_file", ["--fp16", "run.sh"]),
        ("search_file == run.py", "search_file", ["==", "run.py"]),
        ("find_file *.json .", "find_file", ["*.json", "."]),
        ('search_dir("dataset", "src")', "search_dir", ["dataset", "src"]),
        ("search_file('load')", "search_file", ["load"]),
        ('search_file(search_term="load", file="a.py")', "search_file", ["load", "a.py"]),
        ("search_file(file='a.py', search_term='load');", "search_file", ["load", "a.py"]),
        ("goto(12)", "goto", ["12"]),
        ("scroll_up()", "scroll_up", []),
    ],
)
def test_a_command_is_known_by_its_name_and_takes_words_quotes_or_a_call(
    content: str, type: str, arguments: list[str]
) -> None:
    assert command(content) == (type, content.rstrip())
    assert arguments_of(content) == arguments


@pytest.mark.parametrize(
    "cell",
    [
        "open('a.py').read()",
        "openai.key = 1",
        "create = 3",
        "goto += 1",
        "submit = {'a': 1}",
        "create(model)",
        "search_file(name)",
        "search_file('a').run()",
        "search_file(file='a.py')",
        "search_file('a', search_term='b')",
        "search_dir(*terms)",
        "search_dir(**options)",
        "x = search_file('a')\nprint(x)",
        "edited = 5",
        "action: int = 3",
        "{'type': 'interrupt'}",
        '{"type": "train"}',
        "!open a.py",
        "# wait",
        "def submit(answer):\n    return answer",
    ],
)
def test_what_is_python_or_a_shell_command_stays_a_cell(cell: str) -> None:
    assert command(cell) == ("execute", cell)


def test_a_call_of_any_size_takes_little_memory() -> None:
    tracemalloc.start()
    command("goto(" + "1+" * 2**20 + "1)")
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        "interrupt",
        "interrupt()",
        "interrupt;",
        'action: {"type": "interrupt"}',
        'Action: {"type": "interrupt", "content": ""}',
        "action: interrupt",
        '{"type": "interrupt"}',
    ],
)
def test_what_to_do_with_a_running_cell_is_understood_in_every_published_form(content: str) -> None:
    assert command(content)[0] == "interrupt"
    assert command(content.replace("interrupt", "continue_wait"))[0] == "continue_wait"


# Submissions

REFUSED = "not JSON"


def submission(content: str) -> Any:
    try:
        return parse_submission(submission_text(content))
    except ValueError:
        return REFUSED


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ('submit {"a": 0.5, "b": null}', {"a": 0.5, "b": None}),
        ('submit\n{"a":\n 1}', {"a": 1}),
        ("submit null", None),
        ('submit({"a": true})', {"a": True}),
        ("submit '{\"a\": 1}'", {"a": 1}),
        *((content, REFUSED) for content in ("submit", "submit()", "submit {'a': 1}", "submit the answer")),
    ],
)
def test_a_submission_is_a_json_value(content: str, answer: object) -> None:
    assert command(content) == ("submit", content)
    assert submission(content) == answer


# All answers there can be

PIECES = st.sampled_from(
    [
        *["```", "````", "```python", "```x```", "DISCUSSION", "end_of_edit"],
        *("edit 1:2", "open a", "submit {}"),
        *("scroll_down", 'search_dir("a")', "goto(", "action: {", '{"type": "interrupt"}', "x = 1", "", "  "),
        *("'", "\\", "\r", "\x0c", "\u2028", "\ud800", "é"),
    ]
)
ANSWERS = st.lists(PIECES | st.text(max_size=8), max_size=14).map("\n".join) | st.text()


@given(ANSWERS)
def test_every_answer_is_read_or_refused_and_reads_the_same_when_it_is_shown_again(text: str) -> None:
    try:
        answer = parse_answer(text)
    except CommandError:
        return
    assert parse_answer(render_answer(answer.thought, answer.action.content)) == answer


@given(st.text(), st.lists(st.text().map(lambda line: line.replace("\n", " "))))
@example(thought="", lines=["```", "```python", "````"])
def test_a_cell_reads_as_it_is_whatever_is_in_it(thought: str, lines: list[str]) -> None:
    cell = "\n".join(["x = 1", *lines, "y = 2"]).replace("\r\n", "\n")
    thought = thought.replace("`", "'")
    answer = parse_answer(render_answer(thought, cell))
    assert (answer.action.type, answer.action.content) == ("execute", cell)
    assert answer.thought == thought.replace("\r\n", "\n").strip()


@given(st.lists(st.text(alphabet="a` \t", max_size=9)))
def test_an_edit_reads_as_it_is_whatever_fences_are_in_it(lines: list[str]) -> None:
    content = "\n".join(["edit 1:2", *lines, "end_of_edit"])
    answer = parse_answer(render_answer("so", content))
    assert (answer.action.type, answer.action.content) == ("edit", content)
    assert parse_edit(content) == ("1:2", lines)
