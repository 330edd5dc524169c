"""The model's answers, of which nothing is believed before it is checked."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pytest_super.authoring.generate.refusal import Refused

if TYPE_CHECKING:
    from pytest_super.sources.tree import Tree

# Characters of a reason that are kept, and of a task.
LONGEST_REASON = 500
SHORTEST_TASK, LONGEST_TASK = 20, 1500
# What models write where null was asked for.
NOTHING = frozenset({"", "none", "null", "no", "n/a", "false"})
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


class Strict(BaseModel):
    # What is said beyond what was asked for does no harm.
    model_config = ConfigDict(strict=True, frozen=True)


class Suitability(Strict):
    """Answers to the four questions (SUPER, appendix B.1)."""

    q_supported_dataset: str | None
    q_cpu: bool
    q_model_families: bool
    q_execute_example: bool
    q_supported_dataset_reason: str = ""
    q_cpu_reason: str = ""
    q_model_families_reason: str = ""
    q_execute_example_reason: str = ""

    @field_validator("q_supported_dataset", mode="before")
    @classmethod
    def take_false(cls, value: Any) -> Any:
        is_no = value is False or (isinstance(value, str) and value.strip(" \t\r\n.").lower() in NOTHING)
        return None if is_no else value

    def to_data(self) -> dict[str, Any]:
        return {name: shown(value) if isinstance(value, str) else value for name, value in self}


# What each question is answered by no with.
NO = {
    "q_supported_dataset": "no_supported_dataset",
    "q_cpu": "needs_gpu",
    "q_model_families": "no_model_family",
    "q_execute_example": "no_execute_example",
}


class Proposal(Strict):
    """A task: what to do, and the script that is to run, a path in the repository."""

    task: str = Field(min_length=SHORTEST_TASK, max_length=LONGEST_TASK)
    entrypoint: str = Field(min_length=1, max_length=500)


def suitability(text: str) -> Suitability:
    """Raises Refused for an answer of another form."""
    try:
        return Suitability.model_validate(json_object(text))
    except ValidationError as error:
        raise Refused("bad_answer", explain(error)) from None


def refuse_unsuitable(found: Suitability) -> None:
    """Raises Refused for the first question that is answered by no."""
    for question, reason in NO.items():
        if getattr(found, question) in (None, False):
            raise Refused(reason, shown(getattr(found, f"{question}_reason")))


def proposal(text: str, tree: Tree) -> Proposal | None:
    """The task, which can be had from the repository; None where the model found none. Raises Refused."""
    answer = json_object(text)
    output = answer.get("output")
    if not answer or ("output" in answer and output in ({}, None)):
        return None
    try:
        given = Proposal.model_validate(output)
    except ValidationError as error:
        raise Refused("bad_answer", explain(error, "output")) from None
    found = Proposal(task=checked_text(given.task), entrypoint=script_in(tree, given.entrypoint))
    if posixpath.basename(found.entrypoint) not in found.task:
        raise Refused("bad_answer", f"`task` does not name {found.entrypoint}, the script that is to be run")
    return found


def script_in(tree: Tree, path: str) -> str:
    """Raises Refused unless it is a script in the repository."""
    clean = posixpath.normpath(path.strip())
    if not clean.isprintable() or not tree.has(clean):
        raise Refused("entrypoint_missing", f"there is no file {shown(path)!r} in the repository")
    if not tree.is_script(clean):
        raise Refused("entrypoint_type", f"{clean} is neither a Python nor a shell file")
    return clean


def checked_text(text: str) -> str:
    """With plain line ends and blanks. Raises Refused for what an agent should not be told."""
    text = re.sub(r"\r\n?", "\n", text).replace("\t", " ").strip()
    if not text.replace("\n", " ").isprintable():
        raise Refused("bad_answer", "`task` holds characters that are not text")
    # An agent may have the network, and a README's author is a stranger.
    if re.search(r"://|\bwww\.", text):
        raise Refused("bad_answer", "`task` holds a web address")
    return text


def json_object(text: str) -> dict[str, Any]:
    """The object that the text is, or holds in a fence or from its first brace on. Raises Refused."""
    text = text.strip()
    start = text.find("{")
    for candidate in (text, *_FENCE.findall(text), text[start:] if start >= 0 else ""):
        try:
            value, end = json.JSONDecoder().raw_decode(candidate.strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
        # Of a list that is all of the answer none of its objects is meant; prose may begin with a number.
        if candidate is text and end == len(text):
            raise Refused("bad_answer", "it is JSON, but no object")
    raise Refused("bad_answer", "it holds no JSON object" if text else "it is empty")


def explain(error: ValidationError, *outer: str) -> str:
    """The first errors, in terms of the JSON."""
    details = error.errors(include_url=False, include_input=False)[:4]
    problems = [f"`{'.'.join(map(str, (*outer, *detail['loc'])))}`: {detail['msg']}" for detail in details]
    return "; ".join(problems)


def shown(text: str) -> str:
    """The beginning of what a model said, as text on one line."""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST_REASON]).strip()
