"""Answers from a file, `--super-model=scripted:FILE`, for tests without a model and without a key.

- first answer of every trial          a list: the k-th call of a trial gets the k-th answer
- text: let me look                    an answer: its text, or a mapping with any of `text`, `tool_calls`,
  finish_reason: length                `finish_reason`, `usage`, `cost_usd`, or `error` alone

some-task-id: [one, two]               or a mapping: a list for each task id,
"*": [for every other task]            and one for the rest
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from pytest_super.errors import SuperError
from pytest_super.json_values import plain
from pytest_super.model.completion import Answer, Failure, ModelCallError, Usage, classify
from pytest_super.model.protocols.protocol import Request
from pytest_super.model.provider import Asked, ModelProvider
from pytest_super.model.settings import SCRIPTED
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage, estimate_tokens
from pytest_super.tasks.reasons import reason
from pytest_super.tasks.yaml_reader import Reader, Unreadable, documents, read_text
from pytest_super.words import printable_line

REST = "*"


class ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ScriptedUsage(ScriptPart):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class ScriptedError(ScriptPart):
    """A provider's error, which is not retried; `code` is its code, such as `context_length_exceeded`."""

    status: int = Field(ge=400, le=599)
    code: str = ""
    message: str = "an error of the script"


class ScriptedAnswer(ScriptPart):
    """One answer; without `usage` its tokens are counted."""

    text: str | None = None
    tool_calls: list[dict[str, Any]] = []
    """In the form of OpenAI's chat completions."""
    finish_reason: str | None = None
    usage: ScriptedUsage | None = None
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    error: ScriptedError | None = None

    @model_validator(mode="before")
    @classmethod
    def take_text(cls, data: Any) -> Any:
        if not isinstance(data, str | dict):
            raise ValueError(
                "is neither a text nor a mapping: put quotes around a number, a date or a word like true"
            )
        return {"text": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def check_content(self) -> ScriptedAnswer:
        given = self.model_fields_set
        if not given & {"text", "tool_calls", "error"}:
            raise ValueError("says nothing: give it `text`, `tool_calls` or `error`")
        if "error" in given and len(given) > 1:
            raise ValueError("has an `error`, which excludes everything else")
        return self


Answers = list[ScriptedAnswer]
SCRIPT: TypeAdapter[dict[str, Answers]] = TypeAdapter(dict[str, Answers])


def model_of_script(path: Path) -> str:
    """The model's name, after the file was read: it has no errors then. Raises SuperError."""
    ScriptedProvider(path)
    return f"{SCRIPTED}{path}"


class ScriptedProvider(ModelProvider):
    """Gives each trial the file's answers in order, by the numbers of its calls.

    Has no state, so a repeated call gets the same answer. The constructor raises SuperError if the file
    cannot be read or is not a script.
    """

    takes_seed = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = load_script(path)

    def max_usage(self, request: Request) -> MaxUsage:  # noqa: ARG002
        """Unbounded: a script states any usage. So a trial under a limit makes one call at a time."""
        return UNBOUNDED

    async def ask(self, asked: Asked, call: int) -> Answer:
        """The answer to the trial's call of this number, from 1. Raises ModelCallError."""
        task = asked.task
        answers = self.answers.get(task, self.answers.get(REST, []))
        if call > len(answers):
            text = f"the script {self.path} has no answer {call} for task {task}, only {len(answers)}"
            raise ModelCallError(Failure.REFUSED, text)
        answer = answers[call - 1]
        if (error := answer.error) is not None:
            failure = classify(error.status, {error.code})
            # A script has no provider that could be asked a harmless question.
            failure = Failure.REFUSED if failure is Failure.DENIED else failure
            raise ModelCallError(failure, f"scripted: {error.message}", is_final=True)
        return answer_from(answer, asked.chat, task, call)


def answer_from(answer: ScriptedAnswer, request: Request, task: str, call: int) -> Answer:
    body = completion_body(answer, f"scripted-{task}-{call}")
    tokens = answer.usage or ScriptedUsage(
        prompt_tokens=estimate_tokens([request.get("messages"), request.get("tools")]),
        completion_tokens=estimate_tokens(body["choices"][0]["message"]),
    )
    body["usage"] = {**tokens.model_dump(), "total_tokens": tokens.prompt_tokens + tokens.completion_tokens}
    return Answer(
        body=body,
        usage=Usage(**tokens.model_dump(), cost_usd=answer.cost_usd),
        is_counted=answer.usage is None,
        model="scripted",
        fingerprint=None,
    )


def completion_body(answer: ScriptedAnswer, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": plain(answer.text)}
    if answer.tool_calls:
        message["tool_calls"] = plain(answer.tool_calls)
    finish_reason = answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    # `created` is constant, so that the same script gives the same bytes.
    return {"id": name, "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}


def load_script(path: Path) -> dict[str, Answers]:
    """The answers by task id, with `*` for all other tasks. Raises SuperError."""
    data = read_script(path)
    if isinstance(data, list):
        data = {REST: data}
    if not isinstance(data, dict) or not data:
        raise SuperError(f"{path}: a script is a list of answers, or a mapping from task ids to such lists")
    try:
        return SCRIPT.validate_python(data)
    except ValidationError as error:
        problems = [describe(problem["loc"], reason(problem)) for problem in error.errors(include_url=False)]
        raise SuperError("\n".join(f"{path}: {printable_line(problem)}" for problem in problems)) from None


def read_script(path: Path) -> Any:
    """The file's value, from JSON or YAML. Raises SuperError."""
    try:
        text = read_text(path)
        # By the reader of JSON first: YAML does not join the two escapes of a surrogate pair.
        with suppress(ValueError, RecursionError):
            return json.loads(text)
        nodes = list(documents(text))
        if len(nodes) != 1:
            raise SuperError(f"{path}: a script is one document, and there are {len(nodes)}")
        # No location, because the text fields of task files have no meaning in a script.
        return Reader().value(nodes[0], None)
    except Unreadable as error:
        raise SuperError(f"{path}:{error.line}:{error.column}: {printable_line(error.message)}") from None


def describe(location: tuple[str | int, ...], message: str) -> str:
    """A pydantic error in terms of the file; its location is a task, an index and fields."""
    task, *rest = location
    place = f"task {task}" if task != REST else "the script"
    if rest:
        place = f"answer {int(rest[0]) + 1} of {place}"
    fields = f", {'.'.join(map(str, rest[1:]))}" if rest[1:] else ""
    return f"{place}{fields}: {message}"
