"""Runs the experiments of a paper on its originals, with a stub in place of one, or with probes."""

import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pytest_super.functions.masking import Stub, masked_files
from pytest_super.functions.source import by_file
from pytest_super.functions.splicing import probed
from pytest_super.grading.collected import add_file, inside, read_collected
from pytest_super.grading.grader import Grader
from pytest_super.kernel.client import Kernel
from pytest_super.metrics.evidence import GradedValue
from pytest_super.session.trial.grading import after_prefix
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.sources import fetch
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.combinations import Items
from pytest_super.tasks.grade import GradedCommand
from pytest_super.tasks.paper import Experiment, MaskableFunction, files_of
from pytest_super.tasks.task import Task

Files = dict[str, bytes]
"""Contents by path in the repository."""

MARK = ".executed"
# Numba cannot compile a probe.
UNCOMPILED = {"NUMBA_DISABLE_JIT": 1}


@dataclass(frozen=True, kw_only=True)
class Originals:
    """The files with functions of a paper, read once for all that is done with them."""

    paper: Task
    folder: Path
    """The paper's repository on the host."""
    files: Files

    def stubbed(self, function: MaskableFunction, stub: Stub) -> Files:
        """The originals, with one function replaced by a stub. Raises SuperError."""
        masked = masked_files(self.folder, [function.target], stub=stub)
        return {**self.files, **{path: file.data for path, file in masked.items()}}

    def with_probes(self) -> Files:
        """The originals, where executed functions leave a file next to their own. Raises SuperError."""
        files = dict(self.files)
        marks = {one.target: f"{MARK}-{place}" for place, one in enumerate(self.paper.functions)}
        for path, names in by_file(marks).items():
            statements = {name: leave(marks[f"{path}::{name}"]) for name in names}
            files[path] = probed(path, files[path], statements)
        return files


def read_originals(paper: Task) -> Originals:
    """Raises SuperError."""
    assert paper.repository is not None
    folder = fetch(paper.repository, base=paper.folder)
    files = {path: (folder / path).read_bytes() for path in files_of(paper.functions)}
    return Originals(paper=paper, folder=folder, files=files)


def leave(mark: str) -> str:
    """A statement that makes an empty file next to the file in which it is."""
    # Names such as `open` can be arguments of the function.
    return f"__import__('pathlib').Path(__file__).with_name({mark!r}).touch()"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The files and the commands of one run, in a sandbox of its own."""

    files: Files
    commands: Sequence[GradedCommand]
    seeds: Mapping[str, int] = field(default_factory=dict)
    """Variables of the environment, such as seeds."""
    log: Path | None = None
    """Where what the commands print is kept, if anywhere."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run has yielded."""

    values: list[GradedValue]
    executed: frozenset[int]
    """The places of functions with probes that were executed."""
    log: str = ""
    """The path of what its commands have printed, if that is kept."""

    @property
    def passes(self) -> bool:
        return all(value.score == 1 for value in self.values)

    def passed(self, experiment: Experiment) -> bool:
        """Whether it passed, and its variations if they were run."""
        names = {experiment.name, *(one.label for one in experiment.varied_commands)}
        return all(value.score == 1 for value in self.values if value.command in names)


class Runs:
    """Runs trials of one paper, several at once."""

    def __init__(self, paper: Task, start: Callable[[Task], ReadyKernel], workers: int) -> None:
        """`start` starts a kernel with the paper's repository."""
        self._paper = paper
        self._start = start
        self._workers = workers

    def all(self, trials: Iterable[Trial]) -> list[RunResult]:
        """Run the trials and keep their order. Raises InfrastructureError."""
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(self._run, trials))

    def _run(self, trial: Trial) -> RunResult:
        item = for_trial(self._paper, trial)
        assert item.grade is not None
        with after_prefix(ready := self._start(item)) as kernel, tempfile.TemporaryDirectory() as name:
            folder, base = Path(name), ready.repository or ""
            archive = folder / "files.tar"
            with disk_errors(archive), tarfile.open(archive, "w") as tar:
                for path, data in trial.files.items():
                    add_file(tar, str(PurePosixPath(base) / path), data, is_executable=False)
            collected = read_collected(archive)
            log = trial.log or folder / "log"
            # If the sandbox is lost early, that of an earlier run would stay.
            log.unlink(missing_ok=True)
            values = Grader(item.grade, task_folder=item.folder, base=base, log=log).grade(kernel, collected)
            files = [PurePosixPath(base, one.file) for one in self._paper.functions]
            marks = [str(file.with_name(f"{MARK}-{place}")) for place, file in enumerate(files)]
            executed = frozenset(place for place, mark in enumerate(marks) if is_there(kernel, mark))
            kept = trial.log is not None and log.exists()
        return RunResult(values=values, executed=executed, log=str(log) if kept else "")


def for_trial(paper: Task, trial: Trial) -> Task:
    """An item that is graded by the trial's commands, and has all its files replaced."""
    item = Items(paper).item((0,))
    assert item.grade is not None
    grade = item.grade.model_copy(update={"collect": list(trial.files)})
    grade._experiments = tuple(trial.commands)
    seeds = {name: str(seed) for name, seed in trial.seeds.items()}
    sandbox = item.sandbox.model_copy(update={"env": {**seeds, **item.sandbox.env}})
    return item.model_copy(update={"grade": grade, "sandbox": sandbox})


def is_there(kernel: Kernel, path: str) -> bool:
    try:
        kernel.files.read(inside(kernel, path))
    except OSError:
        return False
    return True
