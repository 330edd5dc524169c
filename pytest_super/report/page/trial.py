"""The detail of one trial: what was asked and what decided it, then its steps, in a page of bounded size."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.report.facts import facts_of, sign_lines
from pytest_super.report.notebook import Told, pauses
from pytest_super.report.notebook import content_of as action_text
from pytest_super.report.page.stored import ShownTrial, content_of, read_told, readable_steps
from pytest_super.report.page.texts import Text, first_lines, level_of, text_of
from pytest_super.store.results import TrialResult, result_fields
from pytest_super.store.step_values import submitted_text
from pytest_super.store.trajectory import MANY_REPEATS, Step
from pytest_super.store.why import FILE as WHY
from pytest_super.store.why import Why, read_why
from pytest_super.words import named, shortened

TRAJECTORY = "trajectory.jsonl"
# Characters of the page that a step takes without its texts, and a trial without its steps, generously.
STEP_ALONE, TRIAL_ALONE = 1500, 12_000
# Of the facts of a result, each of which can have any number of entries and be of any length.
MOST_FACTS, LONGEST_FACT, MOST_FILES = 20, 150, 5
# The fields that say what decided a trial, before and after its signs of integrity. Of these, more is shown.
DECIDING = ("error", "metrics", "cause", "difference", "graded", "agent_error")
BESIDE = ("unseen", "stop_reason")
LONGEST_DECIDING = 400
# Characters of a question or an answer before its fold: the cause below is to be seen without scrolling.
TOLD_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class ShownLandmark:
    """One landmark, numbered from 1."""

    number: int
    pattern: str
    step: int | None
    is_echo: bool


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """One step, its texts with their labels."""

    number: int
    kind: str
    outcome: str
    is_pre_executed: bool
    seconds: float
    tokens: int
    landmarks: list[ShownLandmark]
    texts: list[tuple[str, Text]]
    notes: list[str]
    is_lost: bool
    """Whether it lost the task."""


@dataclass(frozen=True, kw_only=True)
class ShownDetail:
    """Everything that is shown of one trial."""

    trial: ShownTrial
    told: list[tuple[str, Text]]
    """What was asked, expected and submitted."""
    deciding: list[tuple[str, str]]
    why: list[str]
    """What `pytest-super why` has found."""
    lost: int | None
    """The number of the step that lost the task."""
    facts: list[tuple[str, str]]
    """The other fields of its result."""
    flags: list[str]
    """What makes its figures doubtful."""
    landmarks: list[ShownLandmark]
    steps: list[ShownStep]
    left_out: str
    """What of the trajectory the page lacks; "" if it has everything."""
    trouble: list[str]


def detail_of(trial: ShownTrial, run: Path, most: int) -> ShownDetail:
    """The detail of a trial in the folder of its run, in about `most` characters."""
    trouble: list[str] = []
    steps = readable_steps(run, f"{trial.folder}/{TRAJECTORY}", trouble)
    landmarks = landmarks_of(trial.result)
    kept = kept_steps(steps, (most - TRIAL_ALONE) // (2 * STEP_ALONE))
    labelled = [list(texts_of(step)) for step in kept]
    why = found_by_why(run, trial)
    told = list(told_texts(read_told(run, trial), trial.result, steps))
    budget = most - TRIAL_ALONE - STEP_ALONE * len(kept)
    level = level_of((text for texts in (told, *labelled) for _, text in texts), budget)
    after = pauses(steps)
    shown = [
        shown_step(step, after.get(step.number), texts, landmarks, level, is_lost=step.number == why.step)
        for step, texts in zip(kept, labelled, strict=True)
    ]
    omitted = sum(text.omitted for step in shown for _, text in step.texts)
    return ShownDetail(
        trial=trial,
        told=[(label, text_of(text, level, at_once=first_lines(text, TOLD_AT_ONCE))) for label, text in told],
        deciding=[(name, shortened(value, LONGEST_DECIDING)) for name, value in deciding(trial.result)],
        why=[shortened(line, LONGEST_DECIDING) for line in why.lines[:MOST_FACTS]],
        lost=why.step,
        facts=[(name, shortened(value, LONGEST_FACT)) for name, value in other_facts(trial.result)],
        flags=[shortened(text, LONGEST_FACT) for text in sign_lines(trial.result)],
        landmarks=landmarks,
        steps=shown,
        left_out=left_out(len(steps) - len(kept), omitted),
        trouble=[shortened(text, LONGEST_FACT) for text in trouble[:MOST_FACTS]],
    )


def found_by_why(run: Path, trial: ShownTrial) -> Why:
    with suppress(OSError):
        return read_why(content_of(run, f"{trial.folder}/{WHY}"))
    return Why()


def kept_steps(steps: Sequence[Step], most: int) -> list[Step]:
    """The first and the last ones, if there are too many."""
    if len(steps) <= most:
        return list(steps)
    head = max(most * 2 // 3, 1)
    return [*steps[:head], *steps[len(steps) - max(most - head, 1) :]]


def left_out(steps: int, characters: int) -> str:
    counts = {"steps": steps, "characters": characters}
    return " and ".join(f"{count:,} {noun}" for noun, count in counts.items() if count)


def landmarks_of(result: TrialResult) -> list[ShownLandmark]:
    return [
        ShownLandmark(
            number=number,
            pattern=shortened(str(found["pattern"]), LONGEST_FACT),
            step=found["step"],
            is_echo=bool(found.get("is_echo")),
        )
        for number, found in enumerate(result.landmarks_found[:MOST_FACTS], 1)
    ]


def texts_of(step: Step) -> Iterator[tuple[str, str]]:
    """The texts that are not empty, each with its label."""
    for label, text in (
        ("Thought", step.thought),
        ("Action", action_text(step)),
        ("Observation", step.observation),
    ):
        if text:
            yield label, text
    for kind, source in other_outputs(step):
        if source:
            yield f"Output {shortened(kind, LONGEST_FACT)}, not rendered", source


def shown_step(
    step: Step,
    pause: float | None,
    texts: Sequence[tuple[str, str]],
    landmarks: Sequence[ShownLandmark],
    most: int,
    *,
    is_lost: bool,
) -> ShownStep:
    hit = [one for one in landmarks if one.step == step.number]
    patterns = [(one.number, one.pattern) for one in hit]
    return ShownStep(
        number=step.number,
        kind=shortened(step.action.type, LONGEST_FACT) or "no action",
        outcome=shortened(step.outcome, LONGEST_FACT),
        is_pre_executed=step.origin == "pre_execute",
        seconds=step.seconds,
        tokens=step.prompt_tokens + step.completion_tokens,
        landmarks=hit,
        texts=[
            (label, text_of(text, most, patterns if label == "Observation" else ())) for label, text in texts
        ],
        notes=list(notes_of(step, pause))[:MOST_FACTS],
        is_lost=is_lost,
    )


def notes_of(step: Step, pause: float | None) -> Iterator[str]:
    if pause is not None:
        yield f"{pause:.1f} s after the step before"
    if step.repeats >= MANY_REPEATS:
        yield f"the same action with the same observation {step.repeats} times in a row"
    if step.omitted_characters:
        yield f"the cell printed {step.omitted_characters:,} characters more, which were not stored"
    if step.files:
        yield f"changed files: {shortened(named(list(step.files), MOST_FILES), LONGEST_DECIDING)}"
    for kind, source in other_outputs(step):
        if not source:
            yield f"an output that is not shown: {shortened(kind, LONGEST_FACT)}"


def told_texts(told: Told, result: TrialResult, steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    """A trial has its task's texts when it has ended by itself."""
    graded = [f"{one['name']}: {one['expected']}" for one in result.graded if one["expected"]]
    submitted = submitted_text(steps)
    yield "Question", told.query or "not stored, because the trial has not ended by itself"
    yield "Expected", told.expected or "\n".join(graded) or "not known"
    yield "Submitted", "nothing" if submitted is None else submitted


def deciding(result: TrialResult) -> Iterator[tuple[str, str]]:
    fields = {field.name: field for field in result_fields()}
    yield from facts_of(result, [fields[name] for name in DECIDING], MOST_FACTS)
    if not result.integrity:
        yield "integrity", "nobody looked" if result.integrity is None else "no signs"
    yield from facts_of(result, [fields[name] for name in BESIDE], MOST_FACTS)


def other_facts(result: TrialResult) -> Iterator[tuple[str, str]]:
    shown = (*DECIDING, *BESIDE)
    others = [field for field in result_fields() if field.page and field.name not in shown]
    return facts_of(result, others, MOST_FACTS)


def other_outputs(step: Step) -> Iterator[tuple[str, str]]:
    """The outputs of a cell besides plain text: the kind of each, and its source if that is text.

    They are not rendered: pictures are only named, and HTML, SVG and JavaScript are shown as text.
    """
    for output in step.outputs:
        data = output.get("data")
        for kind, value in data.items() if isinstance(data, dict) else ():
            if kind == "text/plain":
                continue
            text = source_of(value)
            if kind.startswith("image/") and kind != "image/svg+xml":
                yield f"{kind}, {len(text):,} characters of Base64", ""
            else:
                yield kind, text


def source_of(value: Any) -> str:
    """The text of an entry of nbformat, which can be a list of lines or a JSON value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "".join(value)
    return json.dumps(value)
