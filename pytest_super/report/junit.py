"""Rewrites pytest's JUnit XML file, because only the file is a public interface.

The run's totals become suite properties, and failures of the infrastructure <error> in any phase. Each trial
has one testcase, also if a worker died during it or its teardown failed too.
"""

import os
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.gate.figures import without_interrupted
from pytest_super.metrics import Metric
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.metrics.means import mean_with_errors
from pytest_super.report.facts import single_values, texts_of
from pytest_super.report.failure_line import describe
from pytest_super.report.notebook import NOTEBOOK
from pytest_super.report.repeats import chosen_share, pass_at
from pytest_super.report.summary import Group, agreements, columns, groups, sets, totals, whole_set
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.field_declarations import Field
from pytest_super.store.results import TrialResult, result_fields
from pytest_super.store.run_folder import RunFolder
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import printable

Figure = tuple[str, object]
# The first one that a testcase has counts.
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def rewrite_junit(
    path: str,
    run: RunFolder,
    facts: Mapping[str, object],
    metrics: Sequence[Metric],
    doubled: Collection[str] = (),
) -> None:
    """Rewrite pytest's file at `path`, if it exists.

    `facts` says what was run, and what its gates have decided. `doubled` contains the names of trials that
    failed and whose teardown failed too: pytest writes two testcases for such a trial. Raises
    InfrastructureError if the file cannot be read or written.
    """
    # As pytest expands the option.
    file = Path(os.path.expanduser(os.path.expandvars(path)))
    if not file.exists():
        return
    figures: list[Figure] = [(f"super.{name}", value) for name, value in facts.items()]
    # With all reruns, because every rerun was paid for.
    figures += ((f"super.{field.name}", total or 0) for field, total in totals(run.results.values()))
    figures += figures_of_run(run, metrics)
    try:
        # A device would be replaced by a file.
        if not file.is_file():
            raise OSError("it is not a regular file")
        rewrite(file, run, figures, doubled)
    except (OSError, ValueError, ET.ParseError) as error:
        message = f"the JUnit XML {path} stays as pytest wrote it, without the figures of the run: {error}"
        raise InfrastructureError(message) from error


def rewrite(file: Path, run: RunFolder, figures: list[Figure], doubled: Collection[str]) -> None:
    tree = ET.parse(file)
    by_name = {result.name: result for result in run.final()}
    for suite in tree.iter("testsuite"):
        keep_one_each(suite, doubled)
        for case in filter(is_task, suite.iter("testcase")):
            if result := by_name.get(case.get("name", "")):
                complete(case, result, run.path)
        count_again(suite)
        add_properties(suite, figures)
    write_atomically(file, ET.tostring(tree.getroot(), encoding="utf-8", xml_declaration=True))


def is_task(case: ET.Element) -> bool:
    return case.get("classname", "").endswith(TASK_SUFFIX)


def keep_one_each(suite: ET.Element, doubled: Collection[str]) -> None:
    """Keep the last testcase of each trial, and merge the last two of a trial in `doubled`.

    The others are of reruns, and of workers that died, which also leave testcases without a name.
    """
    by_name: dict[str, list[ET.Element]] = {}
    for case in suite.findall("testcase"):
        if case.get("name") is None:
            suite.remove(case)
        elif is_task(case):
            by_name.setdefault(case.get("name", ""), []).append(case)
    for name, cases in by_name.items():
        if name in doubled and len(cases) > 1:
            merge(cases[-2], cases[-1])
        for case in cases[:-1]:
            suite.remove(case)


def merge(first: ET.Element, last: ET.Element) -> None:
    """Add the content of a trial's testcase to that of its teardown, which has the properties."""
    place = int(last.find("properties") is not None)
    last[place:place] = list(first)
    last.set("time", f"{float(first.get('time', 0)) + float(last.get('time', 0)):.3f}")


def complete(case: ET.Element, result: TrialResult, folder: Path) -> None:
    """Mark failures of the infrastructure as errors, and add what was wrong and the figures of the trial."""
    for failure in case.findall("failure"):
        if result.is_error:
            failure.tag = "error"
        else:
            failure.set("message", describe(result))
            failure.text = f"{describe(result)}; {result.folder}/{NOTEBOOK}"
    # The reports of a trial have them, but a worker that died has sent none.
    if case.find("properties/property[@name='super.trajectory']") is None:
        add_properties(case, figures_of_trial(result, folder))


def count_again(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    tags = [next((tag for tag in COUNTED.values() if case.find(tag) is not None), None) for case in cases]
    for attribute, tag in COUNTED.items():
        suite.set(attribute, str(tags.count(tag)))


def add_properties(element: ET.Element, figures: Iterable[Figure]) -> None:
    """Add the figures; None is empty text."""
    properties = element.find("properties")
    if properties is None:
        properties = ET.Element("properties")
        element.insert(0, properties)
    for name, value in figures:
        ET.SubElement(properties, "property", name=name, value="" if value is None else printable(str(value)))


def figures_of_trial(result: TrialResult, folder: Path) -> Iterator[Figure]:
    """Empty text for a figure that does not apply or is not known, as pytest writes no None."""
    yield "super.trajectory", str(folder / result.folder / NOTEBOOK)
    fields = (one for one in result_fields() if one.junit)
    figures = (figure for one in fields for figure in figures_of_field(one, result))
    named = (*figures, *result.metrics.items())
    yield from ((f"super.{name}", "" if value is None else value) for name, value in named)


def figures_of_field(field: Field, result: TrialResult) -> Iterator[Figure]:
    """One for each single value of an object. None without a value, unless the field is always shown."""
    value = getattr(result, field.name)
    if value == field.default and field.absent is None:
        return
    if isinstance(value, dict):
        yield from ((f"{field.name}.{name}", one) for name, one in single_values(value))
    elif isinstance(value, list):
        yield field.name, "; ".join(texts_of(field, result))
    else:
        yield field.name, int(value) if isinstance(value, bool) else value


def figures_of_run(run: RunFolder, metrics: Sequence[Metric]) -> Iterator[Figure]:
    """The figures of the whole run, of each set, and of each category of a set."""
    results = without_interrupted(run.final())
    yield "super.accuracy_errors_as_0", mean_with_errors(results, ACCURACY)
    yield from group_figures("super", Group(results=results), metrics)
    for name in sets(results):
        yield from group_figures(f"super.{name}", whole_set(name, results), metrics)
    for group in groups(results):
        if group.category:
            yield from group_figures(f"super.{group.set}.{group.category}", group, metrics)


def group_figures(prefix: str, group: Group, metrics: Sequence[Metric]) -> Iterator[Figure]:
    """The figures of some trials; None for a metric without a value in any of them."""
    yield f"{prefix}.trials", group.trials
    yield f"{prefix}.errors", group.errors
    yield from ((f"{prefix}.{field.name}", group.mean_of_field(field)) for field in columns())
    for metric in metrics:
        yield f"{prefix}.{metric.name}", group.mean(metric.name)
        yield f"{prefix}.{metric.name}_deviation", group.deviation(metric.name)
    for one in (repeated := pass_at(group)):
        yield f"{prefix}.pass_at_{one.k}", one.value
    if repeated:
        yield f"{prefix}.pass_at_tasks", repeated[-1].tasks
    if (chosen := chosen_share(group)) is not None:
        yield f"{prefix}.chosen_by_execution", chosen
    for name, found in agreements(group).items():
        yield f"{prefix}.agreement_with_{name}", found and found.share
        yield f"{prefix}.agreement_with_{name}_trials", found.trials if found else 0
