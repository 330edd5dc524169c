"""What a trial asked its model: for each call the parts that no call before it had, and the answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.metrics.leaves import is_number
from pytest_super.model.protocols.canonical import lines_of, place_of, text_lines
from pytest_super.model.protocols.registry import PROTOCOLS
from pytest_super.report.page.stored import ShownTrial, own_path
from pytest_super.report.page.texts import Text, level_of, text_of
from pytest_super.store.answers import FILE, RecordedCall, TrialAnswers, read_answers
from pytest_super.store.json_lines import UNREADABLE, damage

MEASURED = ("prompt_tokens", "completion_tokens", "seconds")


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """One call, its texts with their labels."""

    number: int
    facts: str
    texts: list[tuple[str, Text]]


def conversation_of(run: Path, trial: ShownTrial, most: int) -> tuple[list[ShownCall], str]:
    """The calls of a trial, with at most `most` characters of texts, and why they cannot be read."""
    try:
        answers = read_answers(own_path(run, f"{trial.folder}/{FILE}"))
        seen: set[str] = set()
        labelled = [(call, list(texts_of(answers, call, seen))) for call in answers.calls.values()]
    except (SuperError, *UNREADABLE) as error:
        return [], damage(error)
    level = level_of((text for _, texts in labelled for _, text in texts), most)
    return [
        ShownCall(
            number=call.number,
            facts=facts_of(call),
            texts=[(label, text_of(text, level)) for label, text in texts],
        )
        for call, texts in labelled
    ], ""


def texts_of(answers: TrialAnswers, call: RecordedCall, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield texts of a call, without those in `seen`, which gets them. Raises one of UNREADABLE."""
    request = answers.request(call.asked)
    new = [part for id, part in request.items() if id not in seen]
    seen.update(request)
    fields = [line for part in new if not part.item for line in lines_of(part.value, part.name)]
    if fields:
        yield "request", "\n".join(fields)
    yield from ((place_of(part), text_in(part.value)) for part in new if part.item)
    if "answer" in call.end:
        yield "answer", text_in(said(call.end["answer"], answers.asked(call.number)))
    else:
        yield "no answer", text_in(call.end.get("error") or "the process died before it came")


def said(answer: Any, request: dict[str, Any]) -> Any:
    """What the model said, as the message of a chat completion; the whole answer if it cannot be read so."""
    for protocol in PROTOCOLS:
        if protocol.name == request.get("protocol"):
            try:
                return protocol.said(answer, request)
            except (SuperError, *UNREADABLE):
                break
    return answer


def text_in(value: Any) -> str:
    """All texts of a message, whose label has its role."""
    return "\n".join(text_lines(value))


def facts_of(call: RecordedCall) -> str:
    known = {name: call.end.get(name) for name in MEASURED}
    facts = [f"{name.replace('_', ' ')} {value}" for name, value in known.items() if is_number(value)]
    return ", ".join([*facts, *(["recorded"] if call.taken is not None else [])])
