"""JUnit XML: the file that pytest has written, with what its format has no place for in pytest.

Rewritten afterwards, since only the file is a public interface: the run's totals as suite
properties, trouble of the infrastructure as <error> in whatever phase it came, and no second
testcase for the attempt of a worker that died.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.report.summary import gate_accuracy, groups, summarise
from pytest_super.task import TASK_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_super.report.summary import Group
    from pytest_super.results import RunFolder, TrialResult
    from pytest_super.settings import Settings

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def rewrite_junit(path: str, run: RunFolder, settings: Settings) -> None:
    """Rewrite pytest's file at `path` in place, where there is one."""
    file = Path(os.path.expanduser(os.path.expandvars(path)))
    if not file.exists():
        return
    tree = ET.parse(file)
    by_name = {result.name: result for result in run.final()}
    for suite in tree.iter("testsuite"):
        drop_lost_attempts(suite)
        for case in filter(is_task, suite.iter("testcase")):
            if result := by_name.get(case.get("name", "")):
                complete(case, result)
        count_again(suite)
        add_properties(suite, total_figures(run, settings))
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    tree.write(temporary, encoding="utf-8", xml_declaration=True)
    temporary.replace(file)


def is_task(case: ET.Element) -> bool:
    return case.get("classname", "").endswith(TASK_SUFFIX)


def drop_lost_attempts(suite: ET.Element) -> None:
    """Drop what workers that died have left: testcases without a name, and all but the last of a task."""
    last: dict[tuple[str | None, str | None], ET.Element] = {}
    for case in suite.findall("testcase"):
        key = (case.get("classname"), case.get("name"))
        if case.get("name") is None:
            suite.remove(case)
        elif is_task(case) and key in last:
            suite.remove(last[key])
        last[key] = case


def complete(case: ET.Element, result: TrialResult) -> None:
    """What pytest could not know: that the failure is an error, and the figures of a worker that died."""
    if result.is_error:
        for failure in case.findall("failure"):
            failure.tag = "error"
    if case.find("properties") is None:
        add_properties(case, [*static_properties(result), *result_properties(result)])


def count_again(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, tag in COUNTED.items():
        suite.set(attribute, str(sum(len(case.findall(tag)) for case in cases)))


def add_properties(element: ET.Element, figures: Iterable[tuple[str, object]]) -> None:
    properties = element.find("properties")
    if properties is None:
        properties = ET.Element("properties")
        element.insert(0, properties)
    for name, value in figures:
        ET.SubElement(properties, "property", name=name, value="" if value is None else str(value))


def static_properties(result: TrialResult) -> list[tuple[str, object]]:
    """What is known of a trial before it runs."""
    return [
        ("super.set", result.set),
        ("super.category", result.category or ""),
        ("super.epoch", result.epoch),
    ]


def result_properties(result: TrialResult) -> list[tuple[str, object]]:
    """The figures of a trial as JUnit properties; one that does not apply is an empty text."""
    # Metrics that a hook adds come first: they cannot replace ours.
    figures: dict[str, object] = {
        **result.metrics,
        "accuracy": result.accuracy,
        "landmarks": result.landmarks,
        "script_executed": result.script_executed,
        "submitted": int(result.submitted),
        "solved": int(result.solved),
        "tokens": result.prompt_tokens + result.completion_tokens,
        "cost_usd": result.cost_usd,
        "compute_seconds": result.compute_seconds,
        "stop_reason": result.stop_reason,
    }
    return [(f"super.{name}", "" if value is None else value) for name, value in figures.items()]


def total_figures(run: RunFolder, settings: Settings) -> Iterator[tuple[str, object]]:
    """Name and value of each suite property; None where a metric applies to no trial."""
    yield "super.agent", settings.agent
    yield "super.scoring", settings.scoring
    results, attempts = run.final(), run.results.values()
    tokens = sum(result.prompt_tokens + result.completion_tokens for result in attempts)
    yield "super.tokens", tokens
    yield "super.cost_usd", sum(result.cost_usd or 0.0 for result in attempts)
    yield "super.compute_seconds", round(sum(result.compute_seconds for result in attempts), 3)
    yield "super.accuracy_errors_as_0", gate_accuracy(results)
    yield from group_figures("super", summarise(results))
    for group in groups(results):
        prefix = ".".join(part for part in ("super", group.set, group.category) if part)
        yield from group_figures(prefix, group)


def group_figures(prefix: str, group: Group) -> Iterator[tuple[str, object]]:
    for name in ("trials", "errors", "solved", "accuracy", "landmarks", "submitted", "script_executed"):
        yield f"{prefix}.{name}", getattr(group, name)
