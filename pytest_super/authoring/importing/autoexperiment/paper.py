"""One paper of the repository as a task, with the files that lie next to its task file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pytest_super.authoring.importing.autoexperiment.located import locate
from pytest_super.authoring.importing.autoexperiment.records import (
    OWN,
    TABLE,
    ExperimentRecord,
    FunctionRecord,
    PaperReport,
    Records,
    read_experiments,
    read_functions,
)
from pytest_super.authoring.importing.autoexperiment.results import EXIT_ONLY, checks_of, recorded_numbers
from pytest_super.authoring.task_text import task_text
from pytest_super.errors import SuperError
from pytest_super.functions.leaks import OLD_FOLDERS, is_old_file
from pytest_super.functions.masking import masked_files
from pytest_super.sources.beside import TASK_FILES
from pytest_super.store.json_lines import damage
from pytest_super.tasks.fields import legal_id
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import named

DATASET = "AutoExperiment (arXiv 2506.19724)"
CODE, PAPER = "code", "paper.txt"
Fields = dict[str, Any]
# In which agents of the published runs worked.
_WORKSPACE = ("agents", "workspace")


def paper_files(folder: Path, report: PaperReport) -> dict[str, str | Path]:
    """The task file, code and text of a paper. Raises SuperError or ValueError if it yields no task."""
    paper_id = legal_id(folder.name)
    if not paper_id:
        raise ValueError(f"{folder.name} has no character that an id can have")
    require(folder)
    text = paper_text(folder, report)
    code = code_of(folder / CODE)
    if code.others:
        report.note(
            CODE, f"not copied, because they are links or can contain solutions: {named(code.others, 3)}"
        )
    name = f"arXiv {paper_id}" if re.fullmatch(r"\d{4}\.\d{4,5}", paper_id) else paper_id
    task = {
        "id": paper_id,
        "set": "functions",
        "query": f"The folder `{paper_id}` has the code of the paper {name}.",
        "repository": {"path": paper_id, "provide": True},
        **({"paper": {"file": f"{paper_id}.txt"}} if text else {}),
        **functions_and_experiments(folder, code, report),
    }
    copied = {f"{paper_id}/{inside}": path for inside, path in code.files.items()}
    files: dict[str, str | Path] = {f"{paper_id}{TASK_SUFFIX}": valid_text(task)}
    return {**files, **({f"{paper_id}.txt": text} if text else {}), **copied}


def require(folder: Path) -> None:
    missing = [name for name in ("functions.jsonl", CODE) if not (folder / name).exists()]
    if not (folder / OWN).exists() and not (folder.parent / TABLE).exists():
        missing.append(OWN)
    if missing:
        raise ValueError(f"there is no {' and no '.join(missing)}")


def paper_text(folder: Path, report: PaperReport) -> Path | None:
    file, why = folder / PAPER, "it is empty"
    try:
        if file.read_text(encoding="utf-8").strip():
            return file
    except (OSError, UnicodeDecodeError) as error:
        why = f"it cannot be read: {damage(error)}"
    report.leave_out(PAPER, f"{why}: agents get no text of the paper")
    return None


def valid_text(task: Fields) -> str:
    """The text of the task file. Raises ValueError for an invalid task."""
    with TemporaryDirectory() as folder:
        # The loader looks for the code and the paper's text next to the task file.
        Path(folder, task["repository"]["path"]).mkdir()
        Path(folder, f"{task['id']}.txt").touch()
        return task_text(task, Path(folder, f"{task['id']}{TASK_SUFFIX}"))


def functions_and_experiments(folder: Path, code: Code, report: PaperReport) -> Fields:
    """These fields of the task. Raises SuperError or ValueError."""
    functions, experiments = read_functions(folder, report), read_experiments(folder, report)
    needs = dependencies(functions, experiments, report)
    found = dict(located(functions, folder / CODE, code.files, report))
    used = list(usable(experiments, needs, found, report))
    graded = {name for one in used for name in one["functions"]}
    for name in found:
        if name not in graded:
            report.note(f"function {name}", "no experiment needs it: it is masked only together with others")
    if not used:
        raise ValueError("no function has an experiment that needs it")
    made = list(found.values())
    # All functions of a paper are masked at once while its prefix runs.
    masked_files(folder / CODE, [fields["target"] for fields in made], nested=True)
    report.used = {"function": len(made), "experiment": len(used)}
    return {"functions": made, "experiments": used, "metadata": {"dataset": DATASET}}


def usable(
    experiments: Records[ExperimentRecord],
    needs: dict[str, list[str]],
    found: Collection[str],
    report: PaperReport,
) -> Iterator[Fields]:
    """The fields of the experiments that need a function that was found."""
    for one_id, record in experiments.by_id.items():
        if needed := [name for name in needs[one_id] if name in found]:
            yield {
                **({"description": record.description} if record.description.strip() else {}),
                "command": record.command,
                "functions": needed,
                **expectations(record, report),
            }
        elif needs[one_id]:
            report.leave_out(record.label, "none of the needed functions can be used")
        else:
            report.leave_out(record.label, "no recorded function is needed")


def dependencies(
    functions: Records[FunctionRecord], experiments: Records[ExperimentRecord], report: PaperReport
) -> dict[str, list[str]]:
    """The ids of the functions that each experiment needs, in the order of the functions."""
    pairs: set[tuple[str, str]] = set()
    for function in functions.by_id.values():
        known = known_ids(function.label, "experiment", function.experiments, experiments.ids, report)
        pairs.update((one, function.id) for one in known)
    for experiment in experiments.by_id.values():
        known = known_ids(experiment.label, "function", experiment.functions, functions.ids, report)
        pairs.update((experiment.id, one) for one in known)
    order = [*functions.by_id, *sorted(functions.ids - functions.by_id.keys())]
    return {one: [name for name in order if (one, name) in pairs] for one in experiments.by_id}


def known_ids(
    label: str, what: str, named: Collection[str], known: Collection[str], report: PaperReport
) -> Iterator[str]:
    for one in named:
        if one in known:
            yield one
        else:
            report.leave_out(f"{what} {one} of {label}", f"{what}s.jsonl does not have it")


def located(
    functions: Records[FunctionRecord], code: Path, files: Collection[str], report: PaperReport
) -> Iterator[tuple[str, Fields]]:
    """The fields of the functions that can be masked, by id."""
    taken: dict[str, str] = {}
    has_descriptions = any(record.description.strip() for record in functions.by_id.values())
    for one_id, record in functions.by_id.items():
        if has_descriptions and not record.description.strip():
            report.leave_out(record.label, "it has no description, so no published task has it")
            continue
        try:
            target, digest = locate(record, code, files)
            if target in taken:
                raise SuperError(f"{target} is already the function {taken[target]}")
        except SuperError as error:
            report.leave_out(record.label, str(error))
            continue
        taken[target] = one_id
        about = {"passage": record.passage, "description": record.description}
        texts = {name: text for name, text in about.items() if text.strip()}
        yield one_id, {"id": one_id, "target": target, "sha256": digest, **texts}


def expectations(record: ExperimentRecord, report: PaperReport) -> Fields:
    try:
        numbers = recorded_numbers(record.result)
    except ValueError as error:
        report.note(record.label, f"{error}: only the exit code is checked")
        return {"result": EXIT_ONLY}
    report.guessed += len(numbers)
    if zeros := [name for name, number in numbers.items() if number in (0, [0])]:
        report.note(
            record.label,
            f"{', '.join(zeros)} is recorded as 0, and no other number is within 5 % of it: set `abs`",
        )
    return {"result": checks_of(numbers)}


class Code(NamedTuple):
    files: dict[str, Path]
    """By their paths in the code."""
    others: list[str]
    """Paths that are not copied: links, and what can contain solutions or old versions of the code."""


def code_of(folder: Path) -> Code:
    found = Code({}, [])
    for top, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(top, name)
            shown = path.relative_to(folder).as_posix()
            if is_left_out(path):
                found.others.append(shown)
            elif name in names and path.is_file():
                found.files[shown] = path
        folders[:] = sorted(name for name in folders if not is_left_out(Path(top, name)))
    return found


def is_left_out(path: Path) -> bool:
    return (
        path.is_symlink()
        or path.name in OLD_FOLDERS
        or is_old_file(path.name)
        or path.parts[-2:] == _WORKSPACE
        or path.match(TASK_FILES)
    )
