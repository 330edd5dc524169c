"""What the model is shown of a repository, and its answers, which are checked before anything is used."""

import json
import posixpath
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pytest_super.authoring.generate.screening import RepositoryRefused
from pytest_super.sources.tree import Tree, legible
from pytest_super.tasks.reasons import reason

T = TypeVar("T", bound=BaseModel)

# All lengths are in characters.
LONGEST_README = 30_000
LONGEST_LIST = 8_000
LONGEST_CODE = 12_000
LONGEST_LINE = 200
LINES_PER_FILE = 8
CUT = "[… cut here]"
# Texts that models write instead of null.
NOTHING = frozenset({"", "none", "null", "no", "n/a", "false"})
# The reason for dropping a repository when the answer to the question is no.
NO = {
    "q_supported_dataset": "no_supported_dataset",
    "q_cpu": "needs_gpu",
    "q_model_families": "no_model_family",
    "q_execute_example": "no_execute_example",
}
_MARK = re.compile(r"<(\s*+/?\s*+(?:repository|readme|scripts|code)\s*+)>", re.IGNORECASE)
_RELEVANT = re.compile(
    r"load_dataset|from_pretrained|add_argument\([^)]*(data|task|model)|(data_?set|task|model)_(name|path|dir)|"
    r"\b(glue|torchvision\.datasets|fetch_\w+|load_\w+)\b|\bcuda\b|bitsandbytes|deepspeed|\bpeft\b|lora|"
    r"flash_attn|triton|\bapex\b|nvidia|multi_?gpu",
    re.IGNORECASE,
)


def for_questions(name: str, tree: Tree) -> str:
    code = [line for path, data in tree.contents((".py", ".sh")) for line in relevant_lines(path, data)]
    return f"{for_task(name, tree)}\n\n{part('code', code, LONGEST_CODE)}"


def for_task(name: str, tree: Tree) -> str:
    parts = (
        part("repository", [name], LONGEST_LINE),
        part("readme", [tree.readme], LONGEST_README),
        part("scripts", tree.scripts, LONGEST_LIST),
    )
    return "\n\n".join(parts)


def part(tag: str, lines: list[str], most: int) -> str:
    """The beginning of the text, up to a whole line, between tags."""
    # A README must not close its own part. Tags are replaced, because deleting one can create another.
    text = _MARK.sub(r"[\1]", "\n".join(lines))
    if len(text) > most:
        whole, _, _ = text[:most].rpartition("\n")
        text = f"{whole}\n{CUT}"
    return f"<{tag}>\n{text}\n</{tag}>"


def relevant_lines(path: str, data: bytes) -> Iterator[str]:
    """The first lines of a file that are about data, models or devices."""
    lines = (line.strip()[:LONGEST_LINE] for line in legible(data).split("\n"))
    return (f"{path}: {line}" for line in islice(filter(_RELEVANT.search, lines), LINES_PER_FILE))


class Suitability(BaseModel):
    """Answers to the four questions (SUPER, appendix B.1). Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)

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
    def take_no(cls, value: Any) -> Any:
        is_no = value is False or (isinstance(value, str) and value.strip(" \t\r\n.").lower() in NOTHING)
        return None if is_no else value


class Proposal(BaseModel):
    """A task: what to do, and the script to run, as a path in the repository."""

    model_config = ConfigDict(strict=True, frozen=True)

    task: str = Field(min_length=20, max_length=1500)
    entrypoint: str = Field(min_length=1, max_length=500)


def suitability(text: str) -> Suitability:
    """Raises RepositoryRefused for an answer that does not have the required form."""
    return validated(Suitability, json_object(text))


def refuse_unsuitable(found: Suitability) -> None:
    """Raises RepositoryRefused for the first question whose answer is no."""
    for question, refusal in NO.items():
        if getattr(found, question) in (None, False):
            raise RepositoryRefused(refusal, getattr(found, f"{question}_reason"))


def proposal(text: str, tree: Tree) -> Proposal:
    """The task, with a script that exists. Raises RepositoryRefused."""
    answer = json_object(text)
    output = answer.get("output")
    if not answer or ("output" in answer and not output):
        raise RepositoryRefused("skipped", "it answered {}")
    given = validated(Proposal, output, "output")
    task = "\n".join(given.task.expandtabs(1).splitlines()).strip()
    entrypoint = posixpath.normpath(given.entrypoint.strip())
    if entrypoint not in tree.files or not tree.is_script(entrypoint):
        problem = f"{given.entrypoint!r} is no Python or shell file of the repository"
    elif posixpath.basename(entrypoint) not in task:
        problem = f"`task` does not name {entrypoint}, the script to run"
    elif not task.replace("\n", " ").isprintable():
        problem = "`task` has characters that are not text"
    # The author of a README is a stranger, and could send an agent with a network anywhere.
    elif re.search(r"://|\bwww\.", task):
        problem = "`task` has a web address"
    else:
        return Proposal(task=task, entrypoint=entrypoint)
    raise RepositoryRefused("bad_answer", problem)


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that begins at the first brace, also in prose or a fence. Raises RepositoryRefused."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text[text.find("{") :])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RepositoryRefused("bad_answer", "it has no JSON object" if text.strip() else "it is empty")
    return value


def validated(kind: type[T], data: object, *outer: str) -> T:
    """Raises RepositoryRefused with the first errors."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)[:4]
        problems = (
            f"`{'.'.join(map(str, (*outer, *detail['loc'])))}` {reason(detail)}" for detail in details
        )
        raise RepositoryRefused("bad_answer", "; ".join(problems)) from None
