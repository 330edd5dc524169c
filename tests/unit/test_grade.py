"""Graders in task files, and the values that their commands yield."""

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import TaskFileError
from pytest_super.grading.values import CommandRun, values_of, values_of_check
from pytest_super.metrics.evidence import Evidence, GradedValue
from pytest_super.metrics.graded import GRADED
from pytest_super.tasks.grade import Check, GradedCommand
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import Task

NAMED = {"pattern": r"^(?P<name>\w\w-F): .*?(?P<value>-?\d[-.\de]*)", "block": r"situation (\d)"}
GRADE: dict[str, Any] = {"collect": ["a.py"], "command": "true", "result": [{"exit": 0}]}


def errors_of(folder: Path, **grade: Any) -> str:
    """The messages about a task file with this grader, without its path."""
    path = folder / "t.task.yaml"
    given = {name: value for name, value in {**GRADE, **grade}.items() if value is not None}
    text = json.dumps({"id": "t", "set": "expert", "query": "q", "grade": given})
    path.write_text(text.replace("NaN", ".nan"))
    try:
        load_tasks(path, shown="t")
    except TaskFileError as error:
        return "\n".join(line.partition(": ")[2] for line in str(error).splitlines())
    return ""


# Task files


@pytest.mark.parametrize(
    ("grade", "message"),
    [
        ({}, ""),
        ({"collect": "all"}, ""),
        ({"where": "same", "collect": None}, ""),
        ({"collect": "everything"}, "`grade.collect` should be a list of paths, or `all`"),
        ({"collect": None}, "`grade` needs `collect`: what comes out of the agent's sandbox"),
        (
            {"collect": ["../a"]},
            "`grade.collect` must be a path of a file or a folder without `..`, not '../a'",
        ),
        (
            {"where": "same"},
            "`grade` takes neither `collect` nor `sandbox` where it is graded in the `same` sandbox",
        ),
        ({"files": {"a": "missing.py"}}, "there is no file "),
        ({"then": {**GRADE, "files": {"a": "missing.py"}}}, "there is no file "),
        ({"then": {**GRADE, "where": "same", "collect": None}}, "`grade` takes `then` only where both"),
        ({"then": {**GRADE, "collect": "all"}}, "`grade` needs the paths of files in `then.collect`"),
        ({"result": [{}]}, "`grade.result[0]` needs exactly one of exit, junit, json, regex, number"),
        ({"result": [{"exit": 0, "number": "n"}]}, "`grade.result[0]` needs exactly one of exit, junit"),
        ({"result": [{"exit": 0, "expected": 1}]}, "`grade.result[0]` with exit takes no expected"),
        (
            {"result": [{"number": "n", "rel": 1}]},
            "`grade.result[0]` needs `expected` with rel, abs and ignore_case",
        ),
        (
            {"result": [{"number": "n", "expected": 1, "interval": [0, 1]}]},
            "`grade.result[0]` takes one of expected, interval",
        ),
        (
            {"result": [{"number": "n", "interval": [1, 0]}]},
            "`grade.result[0].interval` should have its lower bound first",
        ),
        (
            {"result": [{"json": {"file": "n"}, "expected": {"a": [1, math.nan]}}]},
            "`grade.result[0].expected` contains NaN, which equals nothing",
        ),
        (
            {"result": [{"json": {"file": "a", "pointer": "x"}}]},
            "`grade.result[0].json.pointer` is not a JSON pointer",
        ),
        (
            {"result": [{"regex": {"pattern": "("}}]},
            "`grade.result[0].regex.pattern` is not a regular expression",
        ),
        (
            {"result": [{"regex": {"pattern": "a"}}]},
            "`grade.result[0].regex` has no group 1: the pattern has 0",
        ),
        (
            {"result": [{"regex": {"pattern": "(?P<name>a)"}}]},
            "`grade.result[0].regex` needs a group `value`, and no `group`, with the group `name`",
        ),
        ({"result": [{"regex": NAMED}]}, "`grade.result[0]` needs the values of the pattern's names"),
        (
            {"result": [{"name": "n", "regex": NAMED, "expected": {"a": 1}}]},
            "`grade.result[0]` takes no `name` where `expected` has the values",
        ),
        ({"result": [{"name": "n", "regex": NAMED, "interval": [0, 1]}]}, ""),
        ({"colect": []}, "unknown field `grade.colect`; did you mean `collect`?"),
    ],
)
def test_a_mistake_in_a_grader_is_told(tmp_path: Path, grade: dict[str, Any], message: str) -> None:
    told = errors_of(tmp_path, **grade)
    assert message in told
    assert bool(told) == bool(message)


@pytest.mark.parametrize(
    ("grade", "message"),
    [
        (
            {"result": [{"number": "a.py"}]},
            "a.py is removed before the command runs, and with it a.py, which is collected",
        ),
        ({"files": {"a.py": "hidden"}}, "a.py would replace a.py, which is collected"),
        (
            {"files": {"n": "hidden"}, "result": [{"number": "n"}]},
            "n is also in `files`, so it is there even",
        ),
        # These work.
        ({"collect": ["src"], "files": {"src/test.py": "hidden"}}, ""),
        ({"collect": "all", "files": {"a.py": "hidden"}, "result": [{"number": "n"}]}, ""),
    ],
)
def test_files_of_a_grader_that_take_each_others_place_are_refused(
    tmp_path: Path, grade: dict[str, Any], message: str
) -> None:
    (tmp_path / "hidden").touch()
    told = errors_of(tmp_path, **grade)
    assert message in told
    assert bool(told) == bool(message)


def test_a_hidden_file_in_the_folder_of_the_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "hidden.py").touch()
    task = {"id": "t", "set": "expert", "query": "q", "repository": {"path": "repo"}}
    grade = {**GRADE, "files": {"tests/a.py": "repo/hidden.py"}}
    (tmp_path / "t.task.yaml").write_text(json.dumps({**task, "grade": grade}))
    with pytest.raises(TaskFileError, match="is in the repository's folder, where the agent could read it"):
        load_tasks(tmp_path / "t.task.yaml")


# Values


def graded(
    check: dict[str, Any], content: str | bytes = "", *, output: str = "", code: int | None = 0
) -> list[GradedValue]:
    """The values of a check, of which every file has this content."""
    data = content.encode() if isinstance(content, str) else content
    return values_of_check(
        Check.model_validate(check), CommandRun(exit_code=code, output=output), lambda _: data
    )


def scores(check: dict[str, Any], content: str | bytes = "", **run: Any) -> list[float]:
    return [value.score for value in graded(check, content, **run)]


def reason(check: dict[str, Any], content: str | bytes = "", **run: Any) -> str:
    """Why the check has no value."""
    (value,) = graded(check, content, **run)
    assert value.score == 0.0
    return value.why


@pytest.mark.parametrize(("code", "score"), [(3, 1.0), (0, 0.0), (-9, 0.0)])
def test_an_exit_code_is_equal_or_wrong(code: int, score: float) -> None:
    assert scores({"exit": 3}, code=code) == [score]


def test_a_command_that_did_not_end_by_itself_has_no_right_value() -> None:
    for check in ({"exit": 0}, {"junit": "a"}, {"json": {"file": "a"}}, {"regex": {"pattern": "(.)"}}):
        run = CommandRun(exit_code=0, output="a", problem="it hung")
        (value,) = values_of_check(Check.model_validate(check), run, lambda _: b"1")
        assert (value.score, value.why) == (0.0, "it hung")


def test_each_testcase_is_a_value_and_a_skipped_one_is_wrong() -> None:
    cases = ["", "<failure/>", "<error/>", "<skipped/>", "<system-out/>"]
    xml = "".join(f'<testcase classname="m" name="t{n}">{case}</testcase>' for n, case in enumerate(cases))
    values = graded({"junit": "r.xml"}, f"<testsuites><testsuite>{xml}</testsuite></testsuites>")
    assert [value.score for value in values] == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert [value.found for value in values] == ["passed", "failure", "error", "skipped", "passed"]
    assert values[0].name == "m.t0"


@pytest.mark.parametrize(
    ("attributes", "outcome"),
    [
        # Googletest's three, then CTest's, then those of others.
        ('status="run" result="completed"', "passed"),
        ('status="notrun" result="suppressed"', "skipped"),
        ('status="fail"', "failure"),
        ('skipped="true"', "skipped"),
        ('skipped="false" status="passed"', "passed"),
    ],
)
def test_a_test_did_not_pass_if_its_attributes_say_so(attributes: str, outcome: str) -> None:
    (value,) = graded({"junit": "r"}, f"<testsuite><testcase name='a' {attributes}/></testsuite>")
    assert (value.found, value.score) == (outcome, float(outcome == "passed"))


def test_what_pytest_writes_of_one_test_is_one_value(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_x="""
        import pytest

        @pytest.fixture
        def broken():
            yield
            raise RuntimeError

        def test_both(broken): assert 0
        def test_torn_down(broken): pass

        @pytest.mark.parametrize("n", [1, 2])
        def test_passed(n): pass

        # Pytest 8 lacks the fixture, which is an error.
        def test_parts(broken, subtests):
            for n in range(3):
                with subtests.test(n=n): assert 0
        """
    )
    pytester.runpytest_subprocess("-p", "no:super", "--junitxml=r.xml")
    values = graded({"junit": "r.xml"}, (pytester.path / "r.xml").read_bytes())
    *others, (name, outcome) = [(value.name, value.found) for value in values]
    assert others == [
        ("test_x.test_both", "failure"),
        ("test_x.test_torn_down", "error"),
        ("test_x.test_passed[1]", "passed"),
        ("test_x.test_passed[2]", "passed"),
    ]
    assert name == "test_x.test_parts"
    assert outcome in ("failure", "error")


def test_a_long_output_is_no_long_tag_and_a_failure_belongs_to_its_own_testcase() -> None:
    output = f"<system-out><![CDATA[{'a' * 2**22}]]></system-out><system-err>{'b' * 2**22}</system-err>"
    xml = f"<testcase name='a'><testcase name='b'/>{output}<failure/></testcase>"
    assert scores({"junit": "r.xml"}, xml) == [0.0, 1.0]


def test_entities_that_grow_without_end_are_refused() -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE a [<!ENTITY a0 "aaaaaaaaaa">{entities}]><testcase name="&a11;"/>'
    assert reason({"junit": "r.xml"}, bomb) == "r.xml declares a document type, which is refused"


@pytest.mark.parametrize(
    ("check", "content", "why"),
    [
        ({"junit": "r"}, "<testsuite/>", "r has no testcases"),
        ({"junit": "r"}, f"<a>{'<testcase/>' * 10_001}</a>", "r has more than 10,000 testcases"),
        ({"junit": "r"}, "<a>" * 101, "r is nested deeper than 100"),
        ({"junit": "r"}, f"<a b='{' ' * 2**21}'/>", "r has a tag of more than 1 MiB"),
        ({"junit": "r"}, "<?xml version='1.0' encoding='foo'?><a/>", "r is not XML: unknown encoding"),
        ({"junit": "r"}, "\0", "r is not XML: "),
        ({"json": {"file": "o"}}, "{", "o is not JSON: "),
        ({"json": {"file": "o"}}, "[" * 100_000, "o is nested too deeply"),
        ({"json": {"file": "o", "pointer": "/a/9"}}, '{"a": [1]}', "there is nothing at /a/9"),
        ({"json": {"file": "o"}}, "NaN", "NaN is not a number from 0 to 1"),
        ({"json": {"file": "o"}}, "9" * 400, "9999999999"),
        ({"json": {"file": "o"}}, "[" + "[]," * 300_000 + "1]", "o has more than 500,000 values"),
        ({"regex": {"pattern": "a = (.*)"}}, "", "what the command printed has no match for `a = (.*)`"),
        ({"regex": {"pattern": "(.+)", "file": "o"}}, "x\x1b[2J", "'x\\x1b[2J' is not a number"),
        ({"regex": {"pattern": "(a|aa)+$", "file": "o"}}, "a" * 60 + "b", "the search in o took more"),
    ],
)
def test_what_cannot_be_read_is_wrong_and_says_why(
    check: dict[str, Any], content: str | bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_super.grading.values.REGEX_SECONDS", 0.2)
    assert reason(check, content).startswith(why)


@pytest.mark.parametrize(
    ("pointer", "found"), [("", '{"a/b": {"m~n": [7]}}'), ("/a~1b/m~0n/0", "7"), ("/a~1b", '{"m~n": [7]}')]
)
def test_a_json_pointer_is_that_of_its_standard(pointer: str, found: str) -> None:
    check = {"json": {"file": "o", "pointer": pointer}, "expected": json.loads(found)}
    assert scores(check, '{"a/b": {"m~n": [7]}}') == [1.0]


def test_each_value_of_an_expected_mapping_counts_and_further_ones_are_wrong() -> None:
    check = {"json": {"file": "o"}, "expected": {"a": [1, 2], "b": "x", "c": None}}
    values = graded(check, '{"a": [1, 3, 4], "b": " x\\n", "d": 0}')
    assert {value.name: value.score for value in values} == {
        "o a[0]": 1.0,
        "o a[1]": 0.0,
        "o b": 1.0,
        "o c": 0.0,
        "o a[2]": 0.0,
        "o d": 0.0,
    }
    assert [value.expected for value in values[-2:]] == ["nothing", "nothing"]


@pytest.mark.parametrize(
    ("expected", "found", "score"),
    [
        ({"failures": [], "n": 3}, '{"n": 3, "failures": []}', 1.0),
        ({"failures": [], "n": 3}, '{"n": 3}', 0.5),
        ({"failures": [], "n": 3}, '{"n": 3, "failures": {"a": {"b": []}}}', 1 / 3),
        ([], "[]", 1.0),
        ([], "{}", 0.0),
        ([1, 2], "[]", 0.0),
    ],
)
def test_an_empty_list_or_mapping_is_a_value(expected: Any, found: str, score: float) -> None:
    values = scores({"json": {"file": "o"}, "expected": expected}, found)
    assert sum(values) / len(values) == pytest.approx(score)


@pytest.mark.parametrize(
    ("found", "expected", "bounds", "score"),
    [
        ("0.81", 0.8, {"abs": 0.01}, 1.0),
        ("0.8101", 0.8, {"abs": 0.01}, 0.0),
        ("102", 100, {"rel": 0.02}, 1.0),
        ("102.1", 100, {"rel": 0.02, "abs": 2.1}, 1.0),
        ("1e-9", 0, {"rel": 0.5}, 0.0),
        ("true", 1, {}, 0.0),
        ('"1"', 1, {}, 0.0),
        ("NaN", 1, {"abs": 9}, 0.0),
        ("1" * 400, 1, {"abs": 9}, 0.0),
    ],
)
def test_a_number_is_right_within_the_larger_of_two_bounds(
    found: str, expected: object, bounds: dict[str, float], score: float
) -> None:
    assert scores({"json": {"file": "o"}, "expected": expected, **bounds}, found)[0] == score


@pytest.mark.parametrize(
    ("found", "score"), [("0.5", 1.0), ("1", 1.0), ("1.01", 0.0), ("NaN", 0.0), ("1" * 400, 0.0)]
)
def test_a_number_in_its_interval_is_right(found: str, score: float) -> None:
    assert scores({"json": {"file": "o"}, "interval": [0.5, 1]}, found) == [score]


def test_the_last_match_counts_as_a_number_or_as_the_expected_text() -> None:
    output = "acc = 0.1\nacc = 0.75 \n"
    check = {"regex": {"pattern": "acc = (.*)"}}
    assert scores(check, output=output) == [0.75]
    assert scores({**check, "expected": 0.75}, output=output) == [1.0]
    assert scores({**check, "expected": "0.75"}, output=output) == [1.0]
    assert scores({**check, "expected": "0.1"}, output=output) == [0.0]


@pytest.mark.parametrize(
    ("found", "scores_of_both"),
    [(" Trending UP\n", (0.0, 1.0)), ("trending up", (1.0, 1.0)), ("up", (0.0, 0.0))],
)
def test_a_text_is_compared_without_blanks_around_it_and_if_stated_without_case(
    found: str, scores_of_both: tuple[float, float]
) -> None:
    for source in ({"regex": {"pattern": "(?s)is (.*)"}}, {"json": {"file": "o", "pointer": "/0"}}):
        check = {**source, "expected": "trending up "}
        both = [
            scores(one, json.dumps([found]), output=f"is {found}")
            for one in (check, {**check, "ignore_case": True})
        ]
        assert both == [[one] for one in scores_of_both]


def named(regex: dict[str, Any], expected: dict[str, Any], output: str) -> list[GradedValue]:
    """The values of a command with one pattern that names them."""
    data = {"command": "true", "result": [{"regex": regex, "expected": expected}]}
    return values_of(GradedCommand.model_validate(data), CommandRun(output=output), lambda _: b"")


def test_one_pattern_yields_many_values_each_by_its_own_name() -> None:
    output = "".join(
        f"situation {block}\n"
        + "".join(f"{name}-F: [tensor({block}.{place}e-05)]\n" for place, name in names)
        for block in range(1, 7)
        if (names := list(enumerate(("GG", "GN", "NG", "NN", "XX", "YY"))))
    )
    expected = {f"{block} XX-F": float(f"{block}.4e-05") for block in range(1, 7)}
    expected |= {"1 GG-F": 2, "7 XX-F": 1}
    found = {one.name: one for one in named(NAMED, {**expected, "2 NN-F": "2.3e-05"}, output)}
    # Other names are ignored.
    assert len(found) == 9
    assert {name for name, one in found.items() if one.score < 1} == {"1 GG-F", "7 XX-F"}
    assert found["1 GG-F"].found == "1e-05"
    why = "what the command printed has no value `7 XX-F`, but 1 GG-F, 1 GN-F, 1 NG-F, 1 NN-F, 1 XX-F"
    assert found["7 XX-F"].why == why


def test_of_equal_names_the_last_counts() -> None:
    output = "GG-F: 1\nGN-F: 7\nxGG-F: 3\nGG-F: 2\n"
    found = named({"pattern": NAMED["pattern"]}, {"GG-F": 2, "GN-F": 7}, output)
    assert [one.score for one in found] == [1, 1]


@pytest.mark.parametrize(("text", "score"), [("0.25\n", 0.25), ("1", 1.0), ("0", 0.0)])
def test_without_an_expected_value_the_number_is_the_score(text: str, score: float) -> None:
    assert scores({"number": "/logs/reward.txt"}, text) == [score]


@pytest.mark.long
@pytest.mark.parametrize(
    ("check", "unit"),
    [
        ({"junit": "r"}, "<a/>"),
        ({"junit": "r"}, "<a b='' c=''/>"),
        ({"json": {"file": "o"}}, "[],"),
        ({"json": {"file": "o"}}, '{"":{}},'),
    ],
)
@pytest.mark.parametrize("length", [2**20, 2**24])
def test_a_result_of_any_content_takes_little_memory(check: dict[str, Any], unit: str, length: int) -> None:
    before, after = ("<a>", "</a>") if "junit" in check else ("[", "1]")
    data = f"{before}{unit * (length // len(unit) - 2)}{after}".encode()
    tracemalloc.start()
    try:
        assert scores(check, data) == [0.0]
        assert tracemalloc.get_traced_memory()[1] < 48 * 2**20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    for check in (
        {"junit": "r"},
        {"json": {"file": "o"}, "expected": {"a": 1}},
        {"number": "n"},
        {"regex": {"pattern": "(.*)", "file": "o"}, "interval": [0, 1]},
    ):
        values = graded(check, data)
        assert values
        assert all(0 <= value.score <= 1 and math.isfinite(value.score) for value in values)


@pytest.mark.parametrize(("aggregate", "score"), [("all", 0.0), ("mean", 0.75), ("fraction", 2 / 3)])
def test_the_values_of_a_grader_are_aggregated_as_the_task_says(aggregate: str, score: float) -> None:
    task = Task.model_validate(
        {
            "id": "a",
            "set": "expert",
            "query": "q",
            "grade": {"collect": ["a"], "command": "c", "result": [{"exit": 0}], "aggregate": aggregate},
        }
    )
    values = [
        GradedValue(name="x", score=1.0, command="one"),
        GradedValue(name="x", score=1.0, command="two"),
        GradedValue(name="y", score=0.0, command="two"),
    ]
    assert GRADED.compute(task, Evidence(steps=[], graded=values)) == score
    assert GRADED.compute(task, Evidence(steps=[])) is None
