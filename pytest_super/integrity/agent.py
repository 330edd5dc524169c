"""Signs in the agent's own files: what is expected of it stands there."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_super.integrity.code import LEAST_DIGITS, is_any, known_values
from pytest_super.integrity.look import Look, Seen, Traces
from pytest_super.metrics.distinctive import numbers_in


def known_answers(traces: Traces) -> Iterator[Seen]:
    values = known_values(traces.task)
    for path, text in traces.agent_files.items() if values else ():
        lines = text.splitlines()
        count = sum(1 for line in lines for _ in numbers_in(line, LEAST_DIGITS))
        for number, line in enumerate(lines, 1):
            if is_any(values, line, count):
                yield Seen(f"{path}:{number}: {line.strip()}")


BY_AGENT = (Look(kind="answer in the agent", find=known_answers, is_suspect=True),)
