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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.options import Settings
    from pytest_super.report.summary import Group
    from pytest_super.results import TrialResult

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def rewrite_junit(path: str, results: list[TrialResult], settings: Settings) -> None:
    """Rewrite pytest's file at `path` in place, where there is one."""
    file = Path(os.path.expanduser(os.path.expandvars(path)))
    if not file.exists():
        return
    tree = ET.parse(file)
    failed = {result.name for result in results if result.is_error}
    for suite in tree.iter("testsuite"):
        drop_lost_attempts(suite)
        for case in suite.iter("testcase"):
            if is_task(case) and case.get("name") in failed:
                turn_into_error(case)
        count_again(suite)
        add_totals(suite, results, settings)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    tree.write(temporary, encoding="utf-8", xml_declaration=True)
    temporary.replace(file)


def is_task(case: ET.Element) -> bool:
    return case.get("classname", "").endswith(".task.yaml")


def drop_lost_attempts(suite: ET.Element) -> None:
    """Of several testcases of one task keep the last: the earlier ones are of workers that died."""
    last: dict[tuple[str | None, str | None], ET.Element] = {}
    for case in suite.findall("testcase"):
        key = (case.get("classname"), case.get("name"))
        if is_task(case) and key in last:
            suite.remove(last[key])
        last[key] = case


def turn_into_error(case: ET.Element) -> None:
    for failure in case.findall("failure"):
        failure.tag = "error"


def count_again(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, tag in COUNTED.items():
        suite.set(attribute, str(sum(len(case.findall(tag)) for case in cases)))


def add_totals(suite: ET.Element, results: list[TrialResult], settings: Settings) -> None:
    properties = suite.find("properties")
    if properties is None:
        properties = ET.Element("properties")
        suite.insert(0, properties)
    for name, value in total_figures(results, settings):
        ET.SubElement(properties, "property", name=name, value="" if value is None else str(value))


def total_figures(results: list[TrialResult], settings: Settings) -> Iterator[tuple[str, object]]:
    """Name and value of each suite property; None where a metric applies to no trial."""
    yield "super.agent", settings.agent
    yield "super.scoring", settings.scoring
    yield "super.compute_seconds", round(sum(result.compute_seconds for result in results), 3)
    yield "super.accuracy_errors_as_0", gate_accuracy(results)
    yield from group_figures("super", summarise(results))
    for group in groups(results):
        prefix = ".".join(part for part in ("super", group.set, group.category) if part)
        yield from group_figures(prefix, group)


def group_figures(prefix: str, group: Group) -> Iterator[tuple[str, object]]:
    for name in ("trials", "errors", "solved", "accuracy", "landmarks", "submitted", "script_executed"):
        yield f"{prefix}.{name}", getattr(group, name)
