"""Runs the experiments of imported papers for a short time, and says what they lack."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_super.authoring.importing.autoexperiment import recorder
from pytest_super.authoring.importing.autoexperiment.records import PaperReport, remark_lines
from pytest_super.errors import InfrastructureError
from pytest_super.grading.collected import inside
from pytest_super.grading.grader import last_lines
from pytest_super.kernel.cell import CellResult, SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.report.live import LiveCommand
from pytest_super.session.trial.grading import after_prefix
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.tasks.task import Task
from pytest_super.words import exit_words, named, one_line

Lacks = dict[str, list[str]]
"""Names by their kind, which is a key of SAID."""

FOLDER, LOG = ".recorder", "log"
RECORDER = {
    f"{FOLDER}/super_recorder.py": Path(recorder.__file__).read_text(encoding="utf-8"),
    f"{FOLDER}/super_recorder.pth": "import sys; sys.version_info < (3, 8) or __import__('super_recorder')\n",
}
INSTALL = f"""\
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
mkdir -p "$packages" && cp {FOLDER}/* "$packages"
"""
INSTALL_SECONDS = 60.0
LONGEST_LOG = 2**20
MOST_NAMED = 5
# What programs print that the recorder does not see.
_WHO = r"^(?:[^\s:]+: |line \d+: )+"
_NAME = r"['\u2018]?([^:'\u2019\n]+)['\u2019]?"
MISSING_MODULE = re.compile(
    r"^(?:ModuleNotFoundError|ImportError|\S*python[\d.]*): No module named '?([\w.]+)", re.M
)
SAID = {
    "files": re.compile(
        rf"{_WHO}(?:cannot (?:open|access|stat) )?{_NAME}: No such file(?: or directory)?$", re.M
    ),
    "modules": MISSING_MODULE,
    "programs": re.compile(rf"{_WHO}([^\s:]+): (?:command )?not found$", re.M),
    "the network": re.compile(r"(?:Could not resolve host: |unable to resolve host address .)([\w.-]+)"),
    "a GPU": re.compile(
        r"(No CUDA GPUs are available|Found no NVIDIA driver|Torch not compiled with CUDA enabled"
        r"|torch\.cuda\.is_available\(\) is False|no CUDA-capable device)"
    ),
}


def try_papers(papers: Sequence[Task], start: Callable[[Task], ReadyKernel], seconds: float) -> None:
    """Print how each experiment ends in its own sandbox, and what it lacks. Raises InfrastructureError."""
    with LiveCommand(lambda: "trying the experiments") as live:
        for paper in papers:
            report = PaperReport(paper.id)
            for experiment in paper.experiments:
                with live.activity(f"{paper.id}: {experiment.name}", "its command"):
                    for remark in remarks_on(start(paper), experiment.command, seconds):
                        report.note(experiment.name, remark)
            live.print_line(f"{paper.id}, tried for {seconds:g} s each, as far as they came:")
            for line in remark_lines(report):
                live.print_line(one_line(line))


def remarks_on(ready: ReadyKernel, command: str, seconds: float) -> Iterator[str]:
    """How the experiment ended, and then what it lacked, each in a line. Raises InfrastructureError."""
    with after_prefix(ready) as kernel:
        folder, log = inside(kernel, ready.repository or ""), inside(kernel, f"{FOLDER}/{LOG}")
        install(kernel)
        line = f"cd {shlex.quote(folder)} && {command}"
        result = kernel.run_program(line, {recorder.VARIABLE: log}, {}, timeout=seconds)
        lacks = lacks_of(kernel, log, result)
    yield ending(result, seconds)
    # What it ended without, it can do without.
    verb = "can use" if result.exit_code == 0 else "needs"
    for what, names in lacks.items():
        if names:
            shown = [name.removeprefix(f"{folder}/") for name in names]
            yield f"{verb} {what}: {named(shown, MOST_NAMED)}"


def install(kernel: Kernel) -> None:
    """Let each Python of the sandbox record what it lacks. Raises InfrastructureError."""
    result = kernel.run_program(INSTALL, {}, RECORDER, timeout=INSTALL_SECONDS)
    if result.exit_code != 0:
        raise InfrastructureError(
            f"what experiments lack cannot be recorded: {last_lines(result.text) or result.detail}"
        )


def ending(result: CellResult, seconds: float) -> str:
    if result.exit_code == 0:
        return "ran to the end"
    if result.is_running:
        return f"still ran after {seconds:g} s"
    how = result.detail if result.exit_code is None else exit_words(result.exit_code)
    return f"stopped with {how}: {last_lines(result.text)}".removesuffix(": ")


def lacks_of(kernel: Kernel, log: str, result: CellResult) -> Lacks:
    """What the recorder has seen, without what the run has made later, and what programs have said."""
    lacks: Lacks = {what: [] for what in SAID}
    for line in recorded_lines(kernel, log):
        what, _, name = line.partition("\t")
        # Code inside can write to the log, too.
        if what in lacks and name and not (name.startswith("/") and is_there(kernel, name)):
            lacks[what].append(name)
    for what, pattern in SAID.items():
        lacks[what] += pattern.findall(result.text)
    return {what: [*dict.fromkeys(names)] for what, names in lacks.items()}


def recorded_lines(kernel: Kernel, log: str) -> Iterable[str]:
    """Each once, also if several processes have recorded it."""
    try:
        data = b"".join(kernel.files.read_pieces(log, LONGEST_LOG))
    # Without a log nothing was recorded.
    except (OSError, SandboxLostError):
        return []
    return dict.fromkeys(data.decode("utf-8", "replace").splitlines())


def is_there(kernel: Kernel, path: str) -> bool:
    folder, name = posixpath.split(path)
    try:
        return any(entry.name == name for entry in kernel.files.entries(folder))
    except (OSError, SandboxLostError):
        return False
