import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.model.completion import Answer, Failure, ModelCallError, Usage
from pytest_super.model.protocols.common import COMMON
from pytest_super.model.provider import Asked
from pytest_super.model.scripted import ScriptedProvider

MESSAGES = [{"role": "user", "content": "12345678"}]
REQUEST = {"messages": MESSAGES}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.yaml"


def ask(script: Path, *, task: str = "some-task", call: int = 1, **fields: Any) -> Answer:
    request = {"messages": MESSAGES, **fields}
    return asyncio.run(ScriptedProvider(script).ask(Asked(COMMON, request, request, task), call))


def failure_of(script: Path, *, task: str = "some-task", call: int = 1) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        ask(script, task=task, call=call)
    return caught.value


def text_of(answer: Answer) -> str | None:
    text: str | None = answer.body["choices"][0]["message"]["content"]
    return text


def problem_with(script: Path, content: str) -> str:
    script.write_text(content, encoding="utf-8")
    with pytest.raises(SuperError) as caught:
        ScriptedProvider(script)
    return str(caught.value)


def test_the_kth_call_of_any_trial_gets_the_kth_answer_also_when_repeated(script: Path) -> None:
    script.write_text("- one\n- text: two\n")
    provider = ScriptedProvider(script)

    async def play() -> list[Answer]:
        calls = (("a", 1), ("b", 2), ("b", 2))
        return [await provider.ask(Asked(COMMON, REQUEST, REQUEST, task), k) for task, k in calls]

    first, second, again = asyncio.run(play())
    assert (text_of(first), text_of(second), again) == ("one", "two", second)


def test_a_task_has_its_own_answers_and_the_star_is_for_the_rest(script: Path) -> None:
    script.write_text('a,cpu: [for a]\n"*": [for the rest]\n')
    assert text_of(ask(script, task="a,cpu")) == "for a"
    assert text_of(ask(script, task="b")) == "for the rest"


def test_a_script_may_be_json_or_yaml_that_begins_like_it(script: Path) -> None:
    script.write_text(json.dumps({"a": ["caf\u00e9 \U0001f600", {"text": "x\ty"}]}))
    assert text_of(ask(script, task="a")) == "caf\u00e9 \U0001f600"
    assert text_of(ask(script, task="a", call=2)) == "x\ty"
    script.write_text("[one, two]\n")
    assert text_of(ask(script, call=2)) == "two"


def test_an_answer_is_a_chat_completion(script: Path) -> None:
    script.write_text("- hello\n")
    answer = ask(script, task="a")
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    assert answer.body["object"] == "chat.completion"
    assert answer.body["choices"] == [choice]
    assert (answer.model, answer.fingerprint, answer.usage.cost_usd) == ("scripted", None, None)
    assert json.loads(json.dumps(answer.body, allow_nan=False)) == answer.body


def test_an_answer_may_call_tools(script: Path) -> None:
    function = {"name": "run", "arguments": '{"code": "1 + 1"}'}
    calls = [{"id": "mine", "type": "function", "function": function}]
    script.write_text(json.dumps([{"tool_calls": calls}]))
    [choice] = ask(script, task="a").body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": calls}


def test_usage_cost_and_finish_reason_come_from_the_script(script: Path) -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 7}
    script.write_text(
        json.dumps([{"text": "x", "usage": usage, "cost_usd": 0.25, "finish_reason": "length"}])
    )
    answer = ask(script)
    assert answer.body["choices"][0]["finish_reason"] == "length"
    assert answer.usage == Usage(prompt_tokens=900, completion_tokens=7, cost_usd=0.25)
    assert not answer.is_counted
    assert answer.body["usage"] == {"prompt_tokens": 900, "completion_tokens": 7, "total_tokens": 907}


def test_usage_is_counted_where_the_script_has_none(script: Path) -> None:
    script.write_text("- '123456789'\n")
    answer = ask(script)
    # Nine characters and the role's nine; eight and the role's four.
    assert (answer.usage.completion_tokens, answer.usage.prompt_tokens, answer.is_counted) == (5, 3, True)
    assert ask(script, tools=[{"name": "x" * 400}]).usage.prompt_tokens == 103


def test_after_the_last_answer_the_message_says_how_many_there_were(script: Path) -> None:
    script.write_text("a: [one, two]\n")
    error = failure_of(script, task="a", call=3)
    assert error.failure is Failure.REFUSED
    assert error.message == f"the script {script} has no answer 3 for task a, only 2"
    assert "no answer 1 for task c, only 0" in failure_of(script, task="c").message


@pytest.mark.parametrize(
    ("status", "code", "failure"),
    [
        (401, "", Failure.FATAL),
        (429, "", Failure.RATE_LIMITED),
        (500, "", Failure.TRANSIENT),
        (400, "", Failure.REFUSED),
        (400, "context_length_exceeded", Failure.CONTEXT),
    ],
)
def test_a_scripted_error_is_a_providers_error_without_retries(
    script: Path, status: int, code: str, failure: Failure
) -> None:
    script.write_text(json.dumps([{"error": {"status": status, "code": code, "message": "No luck."}}]))
    error = failure_of(script)
    assert (error.failure, error.message, error.is_final) == (failure, "scripted: No luck.", True)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("just text", "a script is a list of answers, or a mapping"),
        ("{}", "a script is a list of answers, or a mapping"),
        ("", "a script is one document, and there are 0"),
        ("- a\n---\n- b\n", "a script is one document, and there are 2"),
        ("- one\n- 42\n", "answer 2 of the script: is neither a text nor a mapping: put quotes"),
        ("a: [one, true]\n", "answer 2 of task a: is neither a text nor a mapping"),
        ("a: one\n", "task a: should be a list, not text"),
        ("- {txt: one}\n", "answer 1 of the script, txt: is not known here"),
        ('- {"\\e[2J\\nx": one}\n', "answer 1 of the script, ?[2J | x: is not known here"),
        ("- {}\n", "answer 1 of the script: says nothing"),
        ("- {error: {status: 200}}\n", "answer 1 of the script, error.status: "),
        ("- {error: {status: 500}, text: x}\n", "answer 1 of the script: has an `error`, which excludes"),
        ("- {text: x, cost_usd: -1}\n", "answer 1 of the script, cost_usd: "),
    ],
)
def test_a_script_with_anything_else_is_refused(script: Path, content: str, problem: str) -> None:
    assert problem_with(script, content).startswith(f"{script}: {problem}")


def test_all_errors_of_a_script_are_reported_together(script: Path) -> None:
    assert len(problem_with(script, "- 1\n- two\n- 3\n").splitlines()) == 2


def test_broken_yaml_is_reported_with_its_place(script: Path) -> None:
    assert problem_with(script, "- one\n- [two\n").startswith(f"{script}:3:1: broken YAML")
    assert problem_with(script, "a: [one]\na: [two]\n") == f"{script}:2:1: the key `a` appears twice"


def test_a_missing_file_is_reported(script: Path) -> None:
    with pytest.raises(SuperError, match="cannot be read: No such file"):
        ScriptedProvider(script)
