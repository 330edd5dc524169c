"""Signs in the agent's own files: what is expected of it stands there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.integrity.code import LEAST_DIGITS, is_any
from pytest_super.integrity.look import Look, Seen
from pytest_super.metrics.distinctive import distinctive_values, numbers_in
from pytest_super.tasks.paper import graded_commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pytest_super.integrity.look import Traces
    from pytest_super.tasks.task import Task


def known_answers(traces: Traces) -> Iterator[Seen]:
    values = [value for one in expected_of(traces.task) for value in distinctive_values(one)]
    for path, text in traces.agent_files.items() if values else ():
        lines = text.splitlines()
        count = sum(1 for line in lines for _ in numbers_in(line, LEAST_DIGITS))
        for number, line in enumerate(lines, 1):
            if is_any(values, line, count):
                yield Seen(f"{path}:{number}: {line.strip()}")


def expected_of(task: Task) -> Iterator[Any]:
    if task.has_answer:
        yield task.answer
    commands = [*graded_commands(task.experiments), *([task.grade] if task.grade else ())]
    yield from (check.expected for one in commands for check in one.result if check.has_expected)


BY_AGENT = (Look(kind="answer in the agent", find=known_answers, is_suspect=True),)
