"""Rules for task files beyond the type of each field."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath

from pytest_super.errors import TaskFileError
from pytest_super.tasks.combinations import function_ids
from pytest_super.tasks.grade import GradedCommand
from pytest_super.tasks.paper import files_of
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import TASK_SUFFIX, Task
from pytest_super.words import did_you_mean

# Sources that only a compiler reads.
COMPILED = frozenset(
    {".c", ".cc", ".cpp", ".cu", ".cxx", ".f", ".f90", ".h", ".hpp", ".hs", ".kt", ".rs", ".scala", ".swift"}
)

Broken = Iterator[tuple[tuple[str | int, ...], str]]
NEEDED = ("functions", "experiments")
ONLY_PAPERS = ("paper", "functions", "experiments", "aggregate", "n")
# Items are scored by their experiments alone.
NOT_PAPERS = ("answer", "answer_unknown", "grade", "solution", "subproblems", "entrypoint", "landmarks")


def fields_of_sets(task: Task, _folder: Path) -> Broken:
    if task.set != "functions":
        for name in ONLY_PAPERS:
            if name in task.model_fields_set:
                yield (name,), f"`{name}` is for tasks of the set functions only"
        return
    for name in NEEDED:
        if not getattr(task, name):
            yield (), f"`{name}` is missing: a task of the set functions needs it"
    for name in NOT_PAPERS:
        if name in task.model_fields_set:
            yield (name,), f"a task of the set functions takes no `{name}`: its experiments decide"


def missing_repository(task: Task, _folder: Path) -> Broken:
    if task.set == "functions" and (task.repository is None or not task.repository.provide):
        place = ("repository",) if task.repository else ()
        yield place, "a task of the set functions needs a repository with `provide: true`: its code is masked"


def repeated_functions(task: Task, _folder: Path) -> Broken:
    yield from repeated("functions", "id", function_ids(task))
    yield from repeated("functions", "target", [one.target for one in task.functions])
    yield from repeated("experiments", "name", [one.name for one in task.experiments])


def repeated(field: str, part: str, values: list[str]) -> Broken:
    for place, value in enumerate(values):
        if (first := values.index(value)) < place:
            yield (field, place, part), f"`{field}[{first}]` has the same {part}: {value}"


def unknown_functions(task: Task, _folder: Path) -> Broken:
    ids = function_ids(task)
    for place, experiment in enumerate(task.experiments):
        for index, name in enumerate(experiment.functions or ()):
            if name not in ids:
                hint = did_you_mean(name, ids) or f"; known are {', '.join(ids[:50])}"
                yield ("experiments", place, "functions", index), f"there is no function `{name}`{hint}"


def missing_paper(task: Task, folder: Path) -> Broken:
    if task.paper is not None and not (folder / task.paper.file).is_file():
        yield ("paper", "file"), f"there is no file {folder / task.paper.file}"


def too_many_at_once(task: Task, _folder: Path) -> Broken:
    for place, n in enumerate(task.n):
        if task.functions and n > len(task.functions):
            yield ("n", place), f"{n} functions cannot be masked together: there are {len(task.functions)}"


def broken_rules(task: Task, folder: Path, unknown: Collection[str] = ()) -> Broken:
    """Location and message of each rule that `task` breaks, but of none that needs a field in `unknown`."""
    for needed, rule in RULES:
        if not unknown or needed.isdisjoint(unknown):
            yield from rule(task, folder)


def missing_answer(task: Task, _folder: Path) -> Broken:
    has_score = task.has_answer or task.answer_unknown or task.grade is not None
    if task.set not in ("auto", "functions") and not has_score:
        yield (), f"`answer` is missing: a task of the set {task.set} is scored against it"


def null_answer(task: Task, _folder: Path) -> Broken:
    if task.has_answer and task.answer is None:
        yield ("answer",), "`answer` has no value to compare with"


def contradicted_answer(task: Task, _folder: Path) -> Broken:
    if task.answer_unknown and task.has_answer:
        yield ("answer_unknown",), "`answer_unknown` is true, but there is an `answer`"


def missing_entrypoint(task: Task, _folder: Path) -> Broken:
    if task.set == "auto" and task.entrypoint is None:
        yield (), "an auto task needs an `entrypoint`: its metric is whether the script ran"


def source_as_entrypoint(task: Task, _folder: Path) -> Broken:
    path = task.entrypoint.path if task.entrypoint else ""
    if PurePosixPath(path).suffix in COMPILED:
        yield ("entrypoint", "path"), f"no process runs {path} itself: name the program that is built from it"


def missing_category(task: Task, _folder: Path) -> Broken:
    if task.set == "masked" and task.category is None:
        yield (), "a masked task needs a `category`"


def broken_solution(task: Task, folder: Path) -> Broken:
    if task.solution is None:
        return
    try:
        read_solution(task.solution, folder)
    except TaskFileError as error:
        # Cells in the task file itself cannot be unreadable, so the other errors concern the notebook.
        key = "answer_cell" if "answer_cell" in str(error) else "notebook"
        yield ("solution", key), str(error)


def broken_path(task: Task, folder: Path) -> Broken:
    """The agent can read a repository folder, so it must not contain task files or the solution."""
    if task.repository is None or task.repository.path is None:
        return
    tree = folder / task.repository.path
    place = ("repository", "path")
    if not tree.is_dir():
        yield place, f"there is no folder {tree}"
    elif next(tree.rglob(f"*{TASK_SUFFIX}"), None):
        yield place, f"{tree} contains task files, which the agent could read"
    elif task.solution and task.solution.notebook and is_inside(folder / task.solution.notebook, tree):
        yield place, f"{tree} contains the solution, which the agent could read"


def broken_grade(task: Task, folder: Path) -> Broken:
    """The hidden files exist, where the agent cannot read them."""
    tree = folder / task.repository.path if task.repository and task.repository.path else None
    for holder, command, _ in graders(task):
        for target, source in command.files.items():
            place = (*holder, "files", target)
            files = [folder / source, *(folder / source).rglob("*")]
            if not files[0].exists():
                yield place, f"there is no file {folder / source}"
            elif odd := [one for one in files if not (one.is_file() or one.is_dir())]:
                yield place, f"{odd[0]} is not a regular file"
            elif tree and is_inside(folder / source, tree):
                yield place, f"{folder / source} is in the repository's folder, where the agent could read it"


def graders(task: Task) -> Iterator[tuple[tuple[str | int, ...], GradedCommand, list[str]]]:
    """Each command that grades, with its place, and what is collected for it."""
    for place, one in task.grade.steps() if task.grade else ():
        yield ("grade", *place), one, one.collect if isinstance(one.collect, list) else []
    for index, experiment in enumerate(task.experiments):
        yield ("experiments", index), experiment, files_of(task.functions)


def covered_files(task: Task, _folder: Path) -> Broken:
    """Collected files are put in place first. Then results are removed, and hidden files put there."""
    for holder, command, collected in graders(task):
        for target in command.files:
            for path in collected:
                if PurePosixPath(path).is_relative_to(target):
                    yield (*holder, "files", target), f"{target} would replace {path}, which is collected"
        for index, check in enumerate(command.result):
            place = (*holder, "result", index)
            for path in collected:
                if check.file is not None and PurePosixPath(path).is_relative_to(check.file):
                    gone = f"{check.file} is removed before the command runs"
                    yield place, f"{gone}, and with it {path}, which is collected"
            if check.file in command.files:
                why = f"{check.file} is also in `files`, so it is there even if the command does not write it"
                yield place, why


def is_inside(path: Path, tree: Path) -> bool:
    return path.resolve().is_relative_to(tree.resolve())


RULES: list[tuple[frozenset[str], Callable[[Task, Path], Broken]]] = [
    (frozenset(needed), rule)
    for needed, rule in (
        (("set", "answer", "answer_unknown", "grade"), missing_answer),
        (("answer",), null_answer),
        (("answer", "answer_unknown"), contradicted_answer),
        (("set", "entrypoint"), missing_entrypoint),
        (("entrypoint",), source_as_entrypoint),
        (("set", "category"), missing_category),
        (("solution",), broken_solution),
        (("repository",), broken_path),
        (("grade", "experiments", "repository"), broken_grade),
        (("grade", "experiments", "functions"), covered_files),
        (("set", "functions", "experiments"), fields_of_sets),
        (("set", "repository"), missing_repository),
        (("functions", "experiments"), repeated_functions),
        (("functions", "experiments"), unknown_functions),
        (("paper",), missing_paper),
        (("functions", "n"), too_many_at_once),
    )
]
