"""What was found by trying cheats, as findings and as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from pytest_super.authoring.verify.cheating.cheat import Cheat
from pytest_super.authoring.verify.cheating.trying import State, Tried, Trying
from pytest_super.authoring.verify.finding import Finding
from pytest_super.words import counted, named, one_line

MOST_TASKS = 5
OPEN = "open for {of}: {cheat} To close it, {closing} ({tasks})"
INHERENT = "cannot be closed for {of}: {cheat} Instead, {closing}"


def findings_of(trying: Trying) -> Iterator[Finding]:
    """The ways that a change of the task would close, and what could not be tried."""
    for task, why in trying.untried.items():
        yield Finding(kind="unknown", task=task, text=f"{task}: {why}")
    for one in trying.tried:
        if one.error:
            yield Finding(kind="unknown", task=one.task, text=f"{one.task}: {one.cheat.name}: {one.error}")
        elif one.state == "open":
            text = f"{one.task}: {words_of(one.cheat)} To close it, {one.cheat.closing}"
            yield Finding(kind="open", task=one.task, text=text)


def words_of(cheat: Cheat) -> str:
    return f"{cheat.name} ({cheat.aim}): {cheat.does}"


def cheat_lines(trying: Trying) -> Iterator[str]:
    """How many ways each task has, and each way that is not closed once for all its tasks."""
    tried = trying.tried
    by_task: dict[str, list[Tried]] = {}
    by_cheat: dict[str, list[Tried]] = {}
    for one in tried:
        by_task.setdefault(one.task, []).append(one)
        by_cheat.setdefault(one.cheat.name, []).append(one)
    for task, found in by_task.items():
        yield one_line(f"{task}: {counted(len(found), 'cheat')}: {counts_of(found)}")
    for text, state in ((OPEN, "open"), (INHERENT, "cannot be closed")):
        for found in by_cheat.values():
            yield from way_lines(text, [one for one in found if one.state == state and not one.error])
    yield from (one_line(one.text) for one in findings_of(trying) if one.kind == "unknown")


def counts_of(tried: Sequence[Tried]) -> str:
    cheats: dict[str, list[str]] = {}
    for one in tried:
        cheats.setdefault("unknown" if one.error else one.state, []).append(one.cheat.name)
    idle = {"not tried": f" ({', '.join(cheats.get('not tried', ()))})"}
    known = [state for state in (*get_args(State), "unknown") if state in cheats]
    return ", ".join(f"{len(cheats[state])} {state}{idle.get(state, '')}" for state in known)


def way_lines(text: str, tried: Sequence[Tried]) -> Iterator[str]:
    """A line about one cheat and all tasks to which it is a way; none without such tasks."""
    if tried:
        cheat, of = tried[0].cheat, counted(len(tried), "task")
        tasks = named([one.task for one in tried], MOST_TASKS)
        yield one_line(text.format(of=of, cheat=words_of(cheat), closing=cheat.closing, tasks=tasks))
