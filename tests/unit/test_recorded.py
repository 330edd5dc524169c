"""Which recorded answer a call gets, also after a gateway has died and where clients have left."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import SuperError
from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.protocols.canonical import Part, parts_of
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.recorded import MOST_TRIALS, RecordedTrial, RecordedTrials, answer_of
from pytest_super.store import answers
from pytest_super.store.answers import FILE, AnswerStore, read_answers

FACTS = {"prompt_tokens": 1, "completion_tokens": 1, "cost_usd": 0.5, "is_counted": False, "model": "m"}


def asked(*said: str) -> list[Part]:
    return list(parts_of(COMMON, {"messages": [{"role": "user", "content": text} for text in said]}))


def end(trial: RecordedTrial, number: int, text: str) -> None:
    trial.add(number, answer={"text": text}, fingerprint=None, seconds=2.0, **FACTS)


def recorded(path: Path, *ended: tuple[str, str]) -> Path:
    """The record of a trial whose calls are one message each, with its answer."""
    trial = RecordedTrial(path=path)
    for question, answer in ended:
        number, _ = trial.ask(asked(question))
        end(trial, number, answer)
    return path


def of(trials: RecordedTrials, name: str) -> RecordedTrial:
    task, _, folder = name.partition("/")
    return trials.of(name, task, int(folder.partition(".")[0]))


def texts_of(trial: RecordedTrial, *questions: str) -> list[str]:
    """What the calls get, one after the other; "" where the model would be asked."""
    found = []
    for question in questions:
        number, call = trial.ask(asked(question))
        text = answer_of(call).body["text"] if call else ""
        end(trial, number, text)
        found.append(text)
    return found


def test_equal_calls_get_their_answers_in_the_order_of_asking_whichever_came_first(tmp_path: Path) -> None:
    source = RecordedTrial(path=tmp_path / "source")
    first, second = source.ask(asked("q"))[0], source.ask(asked("q"))[0]
    end(source, second, "fast")
    end(source, first, "slow")
    trial = RecordedTrial.open(tmp_path / "own", source.path)
    assert texts_of(trial, "q", "q", "q") == ["slow", "fast", ""]


def test_a_call_that_died_with_its_gateway_gets_the_same_answer_again(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("q", "1"), ("q", "2"), ("q", "3"))
    trial = RecordedTrial.open(tmp_path / "own", source)
    assert texts_of(trial, "q") == ["1"]
    number, died = trial.ask(asked("q"))
    again = RecordedTrial.open(tmp_path / "own", source)
    assert died is not None
    assert answer_of(died).body["text"] == "2"
    assert texts_of(again, "q", "q", "q") == ["2", "3", ""]
    assert again.calls == number + 3


@pytest.mark.parametrize(("code", "is_taken"), [("context", True), ("filtered", True), ("refused", True)] + [
    (code, False) for code in ("transient", "rate_limited", "fatal", "run_cost", "budget_tokens")
])  # fmt: skip
def test_a_failure_is_taken_if_the_request_was_at_fault(tmp_path: Path, code: str, is_taken: bool) -> None:
    source = RecordedTrial(path=tmp_path / "source")
    source.add(source.ask(asked("q"))[0], error={"code": code, "message": "no"})
    _, call = RecordedTrial.open(tmp_path / "own", source.path).ask(asked("q"))
    assert (call is not None) == is_taken
    if call is not None:
        with pytest.raises(ModelCallError) as raised:
            answer_of(call)
        assert (raised.value.failure, raised.value.is_final) == (Failure(code), True)


def test_an_answer_has_the_usage_and_the_time_of_its_record_and_is_not_paid(tmp_path: Path) -> None:
    source = RecordedTrial(path=tmp_path / "source")
    for question in ("waited", "left"):
        number, _ = source.ask(asked(question))
        if question == "left":
            source.add(number, left_after=0.5)
        end(source, number, "a")
    trial = RecordedTrial.open(tmp_path / "own", source.path)
    calls = [trial.ask(asked(question))[1] for question in ("waited", "left")]
    waited, left = (answer_of(call) for call in calls if call is not None)
    assert (waited.usage.cost_usd, waited.usage.recorded, waited.usage.recorded_usd) == (0.5, 1, 0.5)
    # Where the client left, the time passes again.
    assert (waited.seconds, left.seconds) == (2.0, 0.0)


def test_an_answer_to_a_request_that_differs_in_what_is_hidden_is_taken(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("it took 0.51 s", "1"), ("it took 0.51 s", "2"))
    trial = RecordedTrial.open(tmp_path / "own", source)
    taken = [trial.ask(asked(f"it took {seconds} s"))[1] for seconds in (0.51, 0.7)]
    assert [each.is_folded for each in taken if each] == [False, True]
    calls = read_answers(tmp_path / "own").calls.values()
    assert [call.taken for call in calls] == [1, 2]


def test_what_an_answer_of_the_trial_has_is_not_hidden(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("it took 0.51 s", "0.51 s is long"), ("took 0.6 s", "x"))
    trial = RecordedTrial.open(tmp_path / "own", source)
    assert texts_of(trial, "it took 0.7 s", "it took 0.51 s", "took 0.7 s") == ["", "0.51 s is long", "x"]


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def tool(text: str, id: str = "x") -> dict[str, Any]:
    return {"messages": [{"role": "tool", "tool_call_id": id, "content": text}]}


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (user("a"), user("b"), "message 1 (user): 'a' -> 'b'"),
        (user("a"), {**user("a"), "temperature": 0}, "temperature: '' -> 'temperature: 0'"),
        ({**user("a"), "temperature": 1}, user("a"), "temperature: 'temperature: 1' -> ''"),
        (user("a"), {"messages": user("a")["messages"] * 2}, "message 2 (user): '' -> 'a'"),
        ({"messages": user("a")["messages"] * 2}, user("a"), "no equal request is left"),
        (user("a\nb\nc"), user("a\nB\nc"), "message 1 (user): 'b' -> 'B'"),
        (tool("one"), tool("two", id="y"), "message 1 (tool): 'one' -> 'two'"),
        (
            user(f"{'long ' * 50}one"), user(f"{'long ' * 50}two"),
            "message 1 (user): '…long long long long long long one' -> '…long long long long long long two'",
        ),
    ],
)  # fmt: skip
def test_of_a_request_that_is_not_recorded_the_part_that_differs_first_is_told(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    source = RecordedTrial(path=tmp_path / "source")
    end(source, source.ask(list(parts_of(COMMON, before)))[0], "1")
    trial = RecordedTrial.open(tmp_path / "own", source.path)
    assert trial.ask(list(parts_of(COMMON, now))) == (1, None)
    assert read_answers(trial.path).calls[1].differs == words


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"part": "x", "after": "y", "name": "n", "value": 1}', ":2: not a line of a record"),
        ('{"call": 1, "asked": "nothing"}', ":2: not a line of a record"),
        ("[]", ":2: not a line of a record"),
        ('{"format": 99}', "has format 99, and this pytest-super reads up to 1"),
    ],
    ids=["part", "request", "list", "format"],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_an_error_with_its_place(
    tmp_path: Path, line: str, message: str
) -> None:
    recorded(tmp_path / "source", ("q", "1"))
    lines = (tmp_path / "source").read_text().splitlines(keepends=True)
    (tmp_path / "source").write_text("".join([lines[0], f"{line}\n", *lines[1:]]))
    with pytest.raises(SuperError, match=message):
        RecordedTrial.open(tmp_path / "own", tmp_path / "source")


def test_a_record_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_MIB", 0)
    with pytest.raises(SuperError, match="is larger than 0 MiB"):
        RecordedTrial.open(tmp_path / "own", recorded(tmp_path / "source", ("q", "1")))


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("q", "1"), ("r", "2"))
    source.write_bytes(source.read_bytes()[:-20])
    assert texts_of(RecordedTrial.open(tmp_path / "own", source), "q", "r") == ["1", ""]


def test_a_record_whose_parts_are_not_what_their_ids_say_is_damaged(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("how much?", "1"), ("how many?", "2"))
    assert texts_of(RecordedTrial.open(tmp_path / "own", source), "how many?") == ["2"]
    source.write_text(source.read_text().replace("how many?", "how few?"))
    damaged = asked("how many?")[-1].id
    with pytest.raises(SuperError, match=f"{source} is damaged: the part {damaged} is not what its id says"):
        RecordedTrial.open(tmp_path / "other", source)


def test_answers_of_another_record_are_not_passed_on(tmp_path: Path) -> None:
    source = recorded(tmp_path / "source", ("q", "1"))
    trial = RecordedTrial.open(tmp_path / "own", source)
    texts_of(trial, "q")
    with pytest.raises(SuperError, match="come from another record"):
        RecordedTrial.open(tmp_path / "third", trial.path)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=6))
def test_each_part_is_stored_once_and_each_request_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, requests: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("record") / "answers.jsonl"
    trial = RecordedTrial(path=path)
    for said in requests:
        trial.ask(asked(*said))
    written = read_answers(path)
    found = [[each["content"] for each in written.asked(number)["messages"]] for number in written.calls]
    assert found == requests
    beginnings = {tuple(said[:length]) for said in requests for length in range(1, len(said) + 1)}
    assert len(written.parts) == 1 + len(beginnings)


def test_a_run_of_many_trials_keeps_few_of_them_in_memory(tmp_path: Path) -> None:
    source = tmp_path / "source/trials"
    names = [f"t{number}/1.0" for number in range(MOST_TRIALS + 2)]
    for name in names:
        (source / name).mkdir(parents=True)
        recorded(source / name / FILE, ("q", "1"), ("q", "2"))
    trials = RecordedTrials(tmp_path / "own", AnswerStore(tmp_path / "source"))
    assert [texts_of(of(trials, name), "q") for name in names] == [["1"]] * len(names)
    assert len(trials._trials) == MOST_TRIALS
    # The first ones are read again.
    assert [texts_of(of(trials, name), "q") for name in names[:2]] == [["2"]] * 2


def test_a_trial_with_a_call_under_way_stays_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "source/trials/a/1.0"
    folder.mkdir(parents=True)
    recorded(folder / FILE, ("q", "1"), ("q", "2"))
    trials = RecordedTrials(tmp_path / "own", AnswerStore(tmp_path / "source"))
    trial = of(trials, "a/1.0")
    number, taken = trial.ask(asked("q"))
    assert taken is not None
    for other in range(MOST_TRIALS + 1):
        texts_of(of(trials, f"t{other}/1.0"), "q")
    # Each answer is given once.
    assert texts_of(of(trials, "a/1.0"), "q") == ["2"]
    end(trial, number, "1")


def test_the_last_rerun_of_a_trial_gives_its_answers(tmp_path: Path) -> None:
    for rerun, answer in (("1.0", "died"), ("1.1", "again"), ("2.0", "epoch"), ("10.0", "tenth")):
        (tmp_path / "trials/a" / rerun).mkdir(parents=True)
        recorded(tmp_path / "trials/a" / rerun / FILE, ("q", answer))
    trials = RecordedTrials(tmp_path / "own", AnswerStore(tmp_path))
    names = ("a/1.0", "a/1.1", "a/2.0", "a/3.0", "b/1.0")
    assert [texts_of(of(trials, name), "q") for name in names] == [["again"]] * 2 + [["epoch"], [""], [""]]
