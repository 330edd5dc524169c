"""The parts of a repository that the model sees, and its answers, which are checked before anything is used.

The parts are of bounded length, between tags that they cannot contain.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pytest_super.authoring.generate.refusal import RepositoryRefused
from pytest_super.sources.tree import Tree, legible
from pytest_super.tasks.reasons import reason

# In characters.
LONGEST_REASON = 500
SHORTEST_TASK, LONGEST_TASK = 20, 1500
# Texts that models write instead of null.
NOTHING = frozenset({"", "none", "null", "no", "n/a", "false"})
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
# Characters.
LONGEST_README = 30_000
LONGEST_LIST = 8_000
LONGEST_CODE = 12_000
LONGEST_LINE = 200
LINES_PER_FILE = 8
CUT = "[… cut here]"

# Possessive quantifiers, for the reason given in `refusal`.
_MARK = re.compile(r"<(\s*+/?\s*+(?:repository|readme|scripts|code)\s*+)>", re.IGNORECASE)
_RELEVANT = re.compile(
    r"load_dataset|from_pretrained|add_argument\([^)]*(data|task|model)|(data_?set|task|model)_(name|path|dir)|"
    r"\b(glue|torchvision\.datasets|fetch_\w+|load_\w+)\b|\bcuda\b|bitsandbytes|deepspeed|\bpeft\b|lora|"
    r"flash_attn|triton|\bapex\b|nvidia|multi_?gpu",
    re.IGNORECASE,
)


def for_questions(name: str, tree: Tree) -> str:
    return "\n\n".join([*common(name, tree), part("code", code_lines(tree), LONGEST_CODE)])


def for_task(name: str, tree: Tree) -> str:
    return "\n\n".join(common(name, tree))


def common(name: str, tree: Tree) -> list[str]:
    return [
        part("repository", name, LONGEST_LINE),
        part("readme", tree.readme, LONGEST_README),
        part("scripts", "\n".join(tree.scripts), LONGEST_LIST),
    ]


def part(tag: str, text: str, most: int) -> str:
    """The beginning of `text`, up to a whole line, between tags."""
    # A README must not close its own part. Tags are replaced, because deleting one can create another.
    text = _MARK.sub(r"[\1]", text)
    if len(text) > most:
        # `chr(10)`, because Python 3.11 allows no backslash within the braces of an f-string.
        text = f"{text[:most].rsplit(chr(10), 1)[0]}\n{CUT}"
    return f"<{tag}>\n{text}\n</{tag}>"


def code_lines(tree: Tree) -> str:
    return "\n".join(
        line for path, data in tree.contents((".py", ".sh")) for line in relevant_lines(path, data)
    )


def relevant_lines(path: str, data: bytes) -> Iterator[str]:
    """The first lines of a file that are about data, models or devices."""
    lines = (line.strip()[:LONGEST_LINE] for line in legible(data).split("\n"))
    found = (line for line in lines if _RELEVANT.search(line))
    for line, _ in zip(found, range(LINES_PER_FILE), strict=False):
        yield f"{path}: {line}"


class Strict(BaseModel):
    # Unknown fields are ignored.
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


# The reason for dropping a repository when the answer to the question is no.
NO = {
    "q_supported_dataset": "no_supported_dataset",
    "q_cpu": "needs_gpu",
    "q_model_families": "no_model_family",
    "q_execute_example": "no_execute_example",
}


class Proposal(Strict):
    """A task: what to do, and the script to run, as a path in the repository."""

    task: str = Field(min_length=SHORTEST_TASK, max_length=LONGEST_TASK)
    entrypoint: str = Field(min_length=1, max_length=500)


def suitability(text: str) -> Suitability:
    """Raises RepositoryRefused for an answer that does not have the required form."""
    try:
        return Suitability.model_validate(json_object(text))
    except ValidationError as error:
        raise RepositoryRefused("bad_answer", explain(error)) from None


def refuse_unsuitable(found: Suitability) -> None:
    """Raises RepositoryRefused for the first question whose answer is no."""
    for question, refusal in NO.items():
        if getattr(found, question) in (None, False):
            raise RepositoryRefused(refusal, shown(getattr(found, f"{question}_reason")))


def proposal(text: str, tree: Tree) -> Proposal | None:
    """The task, with a script that exists; None when the model found no task. Raises RepositoryRefused."""
    answer = json_object(text)
    output = answer.get("output")
    if not answer or ("output" in answer and output in ({}, None)):
        return None
    try:
        given = Proposal.model_validate(output)
    except ValidationError as error:
        raise RepositoryRefused("bad_answer", explain(error, "output")) from None
    found = Proposal(task=checked_text(given.task), entrypoint=script_in(tree, given.entrypoint))
    if posixpath.basename(found.entrypoint) not in found.task:
        raise RepositoryRefused("bad_answer", f"`task` does not name {found.entrypoint}, the script to run")
    return found


def script_in(tree: Tree, path: str) -> str:
    """The path of a script in the repository, normalised. Raises RepositoryRefused for any other path."""
    clean = posixpath.normpath(path.strip())
    if clean not in tree.files:
        raise RepositoryRefused("entrypoint_missing", f"there is no file {shown(path)!r} in the repository")
    if not tree.is_script(clean):
        raise RepositoryRefused("entrypoint_type", f"{clean} is neither a Python nor a shell file")
    return clean


def checked_text(text: str) -> str:
    """The text with plain line ends and blanks. Raises RepositoryRefused for unprintable text."""
    text = re.sub(r"\r\n?", "\n", text).replace("\t", " ").strip()
    if not text.replace("\n", " ").isprintable():
        raise RepositoryRefused("bad_answer", "`task` has characters that are not text")
    # The author of a README is a stranger, and could send an agent with a network anywhere.
    if re.search(r"://|\bwww\.", text):
        raise RepositoryRefused("bad_answer", "`task` has a web address")
    return text


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in the text: all of it, fenced, or after the first brace. Raises RepositoryRefused."""
    text = text.strip()
    start = text.find("{")
    for candidate in (text, *_FENCE.findall(text), text[start:] if start >= 0 else ""):
        try:
            value, end = json.JSONDecoder().raw_decode(candidate.strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
        # An answer that is a list does not mean any of its objects; but prose can begin with a number.
        if candidate is text and end == len(text):
            raise RepositoryRefused("bad_answer", "it is JSON, but not an object")
    raise RepositoryRefused("bad_answer", "it has no JSON object" if text else "it is empty")


def explain(error: ValidationError, *outer: str) -> str:
    """The first errors, with the names of the JSON fields."""
    details = error.errors(include_url=False)[:4]
    problems = [f"`{'.'.join(map(str, (*outer, *detail['loc'])))}` {reason(detail)}" for detail in details]
    return "; ".join(problems)


def shown(text: str) -> str:
    """The beginning of a text, on one line."""
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST_REASON]).strip()
