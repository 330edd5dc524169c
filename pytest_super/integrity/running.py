"""Signs in what ran: landmarks that the agent printed itself, a changed script, malformed messages."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath

from pytest_super.integrity.look import PROCESSES, Look, Seen, Traces
from pytest_super.metrics.script_executed import entrypoint_run
from pytest_super.metrics.script_runs.failures import output_of
from pytest_super.store.trajectory import Step
from pytest_super.words import counted

ESCAPED, ESCAPES = re.compile(r"\\(.)"), {"n": "\n", "t": "\t", "r": "\r"}
WORD = re.compile(r"[^\W\d_]{2}")
SHOWING = frozenset(
    ["bash", "cat", "echo", "grep", "head", "less", "more", "nl", "printf", "sed", "sh", "tac", "tail"]
)
# Characters, times lines: a second.
MOST_COMPARED = 10**8


def echoes(traces: Traces, *, is_all: bool) -> Iterator[Seen]:
    """The landmarks of steps that printed only what the agent had written, or what is in their own cell."""
    hit_by = {landmark.step for landmark in traces.evidence.landmarks if landmark.is_hit}
    steps = [step for step in traces.evidence.steps if step.origin == "agent"]
    only = {step.number for step in steps if step.number in hit_by and is_only_echo(step, steps)}
    for landmark in traces.evidence.landmarks:
        if is_all and landmark.step in only:
            yield Seen(f"what matched {landmark.pattern} is a text that the agent wrote", landmark.step)
        elif not is_all and landmark.is_echo and landmark.step not in only:
            yield Seen(f"what matched {landmark.pattern} is in the source of its cell", landmark.step)


def is_only_echo(step: Step, steps: Iterable[Step]) -> bool:
    """Whether the agent had written all that a step printed, in its cell or before.

    Mere numbers are in many texts, and a program that a step runs can print what stands in it.
    """
    lines = {line.strip() for line in output_of(step).splitlines()} - {""}
    if not any(WORD.search(line) for line in lines) or runs_program(step):
        return False
    written = "\n".join(one.action.content for one in steps if one.number <= step.number)
    # In literals, or as they are.
    texts = written + ESCAPED.sub(lambda found: ESCAPES.get(found[1], found[1]), written)
    return len(lines) * len(texts) < MOST_COMPARED and all(line in texts for line in lines)


def runs_program(step: Step) -> bool:
    """Whether a step ran another program than those that show files and texts."""
    names = (PurePosixPath(one["arguments"][0]).name for one in step.processes or () if one["arguments"])
    return any(name not in SHOWING for name in names)


def changed_script(traces: Traces) -> Iterator[Seen]:
    run = entrypoint_run(traces.task, traces.evidence)
    if run is not None and run.process.changed:
        yield Seen(f"{run.script} differs from what the repository and the edits made of it", run.step)


def malformed(traces: Traces) -> Iterator[Seen]:
    for step in traces.evidence.steps:
        if count := sum(step.dropped.values()):
            yield Seen(f"{counted(count, 'part')} of the sandbox's stream did not fit", step.number)


RUNNING = (
    Look(kind="echoed output", find=partial(echoes, is_all=True), is_suspect=True),
    Look(kind="echoed landmark", find=partial(echoes, is_all=False)),
    Look(kind="changed script", find=changed_script, needs=PROCESSES),
    Look(kind="malformed messages", find=malformed),
)
