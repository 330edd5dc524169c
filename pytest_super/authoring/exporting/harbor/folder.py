"""The files of a task's folder in the form of Harbor."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.exporting.harbor import reward, solve
from pytest_super.grading.collected import paths_of, placed
from pytest_super.grading.grader import result_paths
from pytest_super.kernel.providers.docker.container_config import WORKDIR
from pytest_super.sources import fetch
from pytest_super.tasks.grade import SAME
from pytest_super.tasks.solution import read_solution

if TYPE_CHECKING:
    from pytest_super.tasks.grade import Check, Grade
    from pytest_super.tasks.sandbox_spec import SandboxSpec
    from pytest_super.tasks.task import Task

    Files = dict[str, str | Path]
    """Paths in the folder: a text, or a file to copy."""

ANSWER = f"{WORKDIR}/answer.json"
# The folder in `tests` with another copy of the repository.
OF_VERIFIER = "repository/"
# The modules that `reward` imports, with those that they import.
REWARD_MODULES = (
    "errors",
    "words",
    "grading.junit",
    "grading.values",
    *(f"metrics.{name}" for name in ("accuracy", "checking", "difference", "evidence", "graded")),
    *(f"metrics.{name}" for name in ("leaves", "metric", "numbers", "matching.patterns")),
    "tasks.repetitions",
)
# Patterns are searched by `re` where the package `regex` is missing.
NO_REGEX = """\
V0 = 0


class error(Exception):
    pass


def compile(*_):
    raise error
"""
TEST = "#!/bin/bash\npython3 /tests/reward.py /tests\n"
SOLVE = """\
#!/bin/bash
# The cells of a notebook, which IPython runs.
python3 -c "import IPython" 2> /dev/null || python3 -m pip install -q ipython
python3 /solution/solve.py /solution
"""
MEBIBYTE = 2**20
# Of the verifier, besides the grader's command.
MARGIN_SECONDS = 60.0


class NotExportedError(Exception):
    """A task that has no form in Harbor; the text says why."""


def folder_files(task: Task, base_image: str) -> Files:
    """Raises NotExportedError, and InfrastructureError if the repository cannot be fetched."""
    refuse(task)
    folder = task.folder
    repository = task.repository
    code = fetch(repository, base=folder) if repository and repository.provide else None
    name = code.name if code else ""
    is_answer = task.grade is None
    artifacts = [ANSWER] if task.grade is None else absolute(paths_of(task.grade, name))
    is_separate = task.grade is None or task.grade.where != SAME
    files: Files = {
        "instruction.md": instruction(task.query, is_answer=is_answer),
        "task.toml": settings_text(task, artifacts, is_separate=is_separate),
        "environment/Dockerfile": dockerfile(task, base_image, name, ""),
        "tests/test.sh": TEST,
        "tests/regex.py": NO_REGEX,
        "tests/reward.py": Path(reward.__file__),
        **{f"tests/{place}": source for place, source in reward_modules().items()},
    }
    if is_separate:
        # A verifier of its own starts from an image of this folder, in which it finds its tests.
        files["tests/Dockerfile"] = dockerfile(task, base_image, name, OF_VERIFIER) + "COPY . /tests/\n"
    if code is not None:
        files |= copied(code, f"environment/{name}")
        files |= copied(code, f"tests/{OF_VERIFIER}{name}") if is_separate else {}
    if task.grade is None:
        rules = {"answer": task.answer, "tolerance": task.tolerance, "answer_file": ANSWER}
    else:
        rules = grading_rules(task.grade, name)
        for number, source in enumerate(task.grade.files.values()):
            files |= copied(folder / source, f"tests/{hidden(number)}")
    files[f"tests/{reward.RULES}"] = json.dumps(rules, indent=2) + "\n"
    return files | solution_files(task, folder)


def refuse(task: Task) -> None:
    """Raises NotExportedError."""
    if task.set == "functions":
        raise NotExportedError("its items are made from a paper")
    if task.pre_execute:
        raise NotExportedError("it has pre-executed steps")
    if task.grade is None and not task.has_answer:
        raise NotExportedError("it has neither an answer nor a grader")
    if task.grade is not None and task.grade.sandbox is not None and task.grade.sandbox.image:
        raise NotExportedError("its grader has an image of its own")


def left_behind(task: Task) -> list[str]:
    """Its fields that Harbor has no counterpart of."""
    fields = {"landmarks": task.landmarks, "entrypoint": task.entrypoint}
    return [name for name, value in fields.items() if value]


def absolute(paths: list[str]) -> list[str]:
    return [str(PurePosixPath(WORKDIR) / path) for path in paths]


def instruction(query: str, *, is_answer: bool) -> str:
    if not is_answer:
        return query
    return f"{query.rstrip()}\n\nWrite the answer, as JSON, into the file `{ANSWER}`.\n"


def dockerfile(task: Task, base_image: str, repository: str, place: str) -> str:
    """`place` is where the repository is, in the folder of the Dockerfile."""
    lines = [f"FROM {task.sandbox.image or base_image}", f"WORKDIR {WORKDIR}"]
    if task.sandbox.packages:
        names = " ".join(map(shlex.quote, task.sandbox.packages))
        lines.append(f"RUN python3 -m pip install --no-cache-dir {names}")
    if repository:
        lines.append(f"COPY {json.dumps([f'{place}{repository}', f'{WORKDIR}/{repository}'])}")
    return "".join(f"{line}\n" for line in lines)


def reward_modules() -> Files:
    """The sources of the modules, in their packages, which are empty otherwise."""
    files: Files = {}
    for module in REWARD_MODULES:
        name = f"pytest_super.{module}"
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        files[f"{name.replace('.', '/')}.py"] = Path(found.origin)
        for parent in PurePosixPath(name.replace(".", "/")).parents:
            if parent.name:
                files[f"{parent}/__init__.py"] = ""
    return files


def copied(source: Path, place: str) -> Files:
    """A file, or the regular files of a folder."""
    if source.is_file():
        return {place: source}
    found = sorted(path for path in source.rglob("*") if path.is_file() and not path.is_symlink())
    return {f"{place}/{path.relative_to(source).as_posix()}": path for path in found}


def hidden(number: int) -> str:
    """The place of a hidden file or folder below `tests`."""
    return f"hidden/{number}"


def grading_rules(grade: Grade, base: str) -> dict[str, Any]:
    """What `reward` needs to know; all paths in the sandbox are absolute."""
    return {
        "folder": absolute([base])[0],
        "command": grade.command,
        "timeout": grade.timeout,
        "aggregate": grade.aggregate,
        "files": {
            absolute([placed(target, base)])[0]: hidden(number) for number, target in enumerate(grade.files)
        },
        "written": absolute([placed(path, base) for path in result_paths(grade)]),
        "result": [check_rules(check, base) for check in grade.checks],
    }


def check_rules(check: Check, base: str) -> dict[str, Any]:
    rules = {**check.model_dump(), "source": check.source, "has_expected": check.has_expected}
    for holder, name in (
        (rules, "junit"),
        (rules, "number"),
        (rules["json_"], "file"),
        (rules["regex"], "file"),
    ):
        if holder and holder[name]:
            holder[name] = absolute([placed(holder[name], base)])[0]
    return rules


def solution_files(task: Task, folder: Path) -> Files:
    if task.solution is None:
        return {}
    gold = read_solution(task.solution, folder)
    told = {"cells": gold.cells, "answer": gold.answer, "answer_file": None if task.grade else ANSWER}
    return {
        "solution/solve.sh": SOLVE,
        "solution/solve.py": Path(solve.__file__),
        "solution/cells.json": json.dumps(told, indent=2) + "\n",
    }


def settings_text(task: Task, artifacts: list[str], *, is_separate: bool) -> str:
    grade = task.grade
    tables: dict[str, dict[str, Any]] = {
        "": {"schema_version": "1.4", "artifacts": artifacts},
        "task": {"name": f"pytest-super/{task.id}", "keywords": task.tags},
        "metadata": {"category": task.category, "set": task.set},
        "agent": {"timeout_sec": task.limits.wall_or_default},
        "verifier": {
            "timeout_sec": (grade.timeout if grade else 0) + MARGIN_SECONDS,
            "environment_mode": "separate" if is_separate else "shared",
        },
        "environment": environment(task.sandbox),
        "environment.env": task.sandbox.env,
    }
    if grade and grade.sandbox is not None:
        merged = task.sandbox.model_copy(update=stated(grade.sandbox))
        tables["verifier.environment"] = environment(merged)
        tables["verifier.environment.env"] = merged.env
    return "\n".join(filter(None, (table_text(name, values) for name, values in tables.items())))


def stated(spec: SandboxSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.model_fields_set}


def environment(spec: SandboxSpec) -> dict[str, Any]:
    return {
        "cpus": spec.cpus,
        "memory_mb": megabytes(spec.memory),
        "storage_mb": megabytes(spec.disk),
        "gpus": spec.gpus,
        "network_mode": "public" if spec.network else "no-network",
    }


def megabytes(size: int | None) -> int | None:
    """Rounded up."""
    return None if size is None else -(-size // MEBIBYTE)


def table_text(name: str, values: dict[str, Any]) -> str:
    """Without the values that are None; "" for a table without values."""
    # Texts, numbers and lists of texts are written alike in TOML and JSON, except the character 127.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in values.items()
        if value is not None
    ]
    header = [f"[{name}]"] if name and lines else []
    return "".join(f"{line}\n" for line in [*header, *lines])
