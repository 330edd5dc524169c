"""Finds the runs of the entrypoint among the processes that the sandbox observed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.observed import ObservedProcess
from pytest_super.metrics.script_runs.failures import is_failure, output_of
from pytest_super.metrics.script_runs.launch import (
    INTERPRETERS,
    JUPYTER,
    PYTHON,
    SCRIPTS,
    SHELLS,
    Launch,
    by_jupyter,
    by_other,
    by_python,
    by_shell,
    file_of,
)
from pytest_super.metrics.script_runs.places import UNKNOWN, is_entrypoint
from pytest_super.metrics.script_runs.shell import module_paths
from pytest_super.store.trajectory import PROGRAM, Step
from pytest_super.tasks.task import Entrypoint

KEPT_LINES = 0.5
# Scripts that no shell can run.
NOT_SHELLS = tuple(set(SCRIPTS) - {".sh", ".bash"})
_TAKES_CODE = re.compile(r"-[A-Za-z]*c.*", re.DOTALL)


def is_observed(steps: Sequence[Step]) -> bool:
    """Whether the sandbox of the agent's cells observed its processes."""
    return any(step.processes is not None for step in steps if step.origin == "agent")


def may_hide_run(step: Step, min_seconds: float) -> bool:
    """Whether the step is a program of the agent that ran for at least `min_seconds` inside the sandbox."""
    has_run = step.origin == "agent" and step.action.type == PROGRAM and not is_refused(step)
    return has_run and step.seconds >= min_seconds


def is_refused(step: Step) -> bool:
    """Whether the step was refused because a cell was running: an error that took no time."""
    return step.outcome == Outcome.ERROR and not step.seconds


class ProcessRun(NamedTuple):
    """A process that ran the entrypoint."""

    process: ObservedProcess
    script: str
    """The file that it ran, as in `files` of the process."""
    counts: bool
    """Whether it ran long enough, ended well, and the script was still the entrypoint."""
    step: int
    """The number of the step that reported it."""


def process_runs(
    steps: Sequence[Step], entrypoint: Entrypoint, *, repository: str | None
) -> Iterator[ProcessRun]:
    """The agent's runs of the entrypoint. One that began and ended in different steps appears twice."""
    provided = [] if repository is None else [repository]
    for step in steps:
        for data in (step.processes or ()) if step.origin == "agent" else ():
            process = ObservedProcess(**data)
            script = script_of(process)
            repositories = [*process.repositories, *provided]
            if script and is_entrypoint(script, entrypoint.path, repositories, process.only):
                is_good = counts(process, step, script, entrypoint.min_seconds)
                yield ProcessRun(process, script, is_good, step.number)


def counts(process: ObservedProcess, step: Step, script: str, min_seconds: float) -> bool:
    # Agents change scripts for good reasons, but one of which little is left is another script.
    if process.kept_lines is not None and process.kept_lines < KEPT_LINES:
        return False
    if process.seconds is None or process.seconds < min_seconds:
        return False
    # The exit status is not known of every process: then the cell in which it ended decides.
    if process.status is not None or process.replaced:
        return process.status == 0
    return step.outcome == Outcome.OK and not is_failure(output_of(step), script)


def script_of(process: ObservedProcess) -> str | None:
    """The script, module or notebook that an interpreter runs, or a program that is not a script itself."""
    program = process.files.get("program")
    if program is not None and not program.endswith(SCRIPTS):
        return program
    if not is_interpreter(process):
        launch = by_other(name_of(process), process.arguments[1:])
        return None if launch is None else named_script(process, launch)
    is_shell, launch = name_of(process) in SHELLS, launch_of(process)
    script = read_script(process, is_shell=is_shell) if launch is None else named_script(process, launch)
    # A program that is only named like a shell can be given any file.
    others = NOT_SHELLS if is_shell else tuple(INTERPRETERS)
    return None if script is not None and script.endswith(others) else script


def named_script(process: ObservedProcess, launch: Launch) -> str | None:
    """The file of the argument that names the script or the module."""
    words = process.arguments[1:]
    for position, (previous, word) in enumerate(zip(["", *words], words, strict=False), 1):
        path = process.files.get(str(position))
        if path is None:
            continue
        if launch.kind == "module" and word in (
            f"-m{launch.text}",
            launch.text if previous == "-m" else None,
        ):
            # A link with the name of another module can lead to the entrypoint.
            ends = (end.removeprefix(UNKNOWN) for end in module_paths(launch.text))
            return path if f"/{path}".endswith(tuple(ends)) else None
        if launch.kind == "script" and file_of(word) == launch.text:
            return path
    return None


def read_script(process: ObservedProcess, *, is_shell: bool) -> str | None:
    """The file that an interpreter reads although its arguments do not name it."""
    if is_shell and "script" in process.files:
        return process.files["script"]
    takes_code = any(map(_TAKES_CODE.fullmatch, process.arguments[1:]))
    return None if takes_code else process.files.get("stdin")


def launch_of(process: ObservedProcess) -> Launch | None:
    """What the arguments of an interpreter start, except code."""
    arguments = process.arguments[1:]
    if name_of(process) in SHELLS:
        launch = by_shell(arguments)
        return None if launch is not None and launch.kind == "shell" else launch
    launch = by_python(arguments)
    if launch is not None and posixpath.basename(launch.text) in JUPYTER:
        return by_jupyter(posixpath.basename(launch.text), arguments)
    return launch


def is_interpreter(process: ObservedProcess) -> bool:
    """Whether it is a Python or a shell. The name of a Python counts only if its symbols cannot be read."""
    name = name_of(process)
    if process.is_python is None:
        return name in SHELLS or PYTHON.fullmatch(name) is not None
    return process.is_python or name in SHELLS


def name_of(process: ObservedProcess) -> str:
    return posixpath.basename(process.executable or (process.arguments or [""])[0])
