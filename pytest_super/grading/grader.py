"""Runs the grader of a task in a sandbox of its own, or in the agent's."""

import os
import re
import shlex
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import Self

from pytest_super.errors import InfrastructureError
from pytest_super.grading.collected import Collected, add_file, files_at, inside, paths_of, placed
from pytest_super.grading.values import CommandRun, values_of
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.terminal_text import shown_lines
from pytest_super.metrics.evidence import GradedValue
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.grade import Grade, GradedCommand
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget
from pytest_super.trial.program import Program

# Bytes of a file with values, and characters of the command's output.
LONGEST_RESULT = LONGEST_OUTPUT = 16 * 2**20
# Characters at the end of the output that are looked at.
MOST_READ = 20_000
MOST_LINES, LONGEST_LINE = 3, 200
# Pytest writes an `E` before the lines of an exception, and others after them.
EXCEPTION = re.compile(r"(?:E +)?([\w.]*(?:Error|Exception)(?::.*)?)")


class Grader:
    """Grades what an agent left behind, by the command of its task."""

    def __init__(self, grade: Grade, *, task_folder: Path, base: str, log: Path) -> None:
        """`task_folder` is that of the task file, which has the hidden files.

        `base` is the folder of the provided repository in the working directory, "" without one. `log` gets
        what the command prints.
        """
        self._grade = grade
        self._task_folder = task_folder
        self._base = base
        self._log = log

    def grade(self, kernel: Kernel, collected: Collected | None) -> list[GradedValue]:
        """The values of the task's grader.

        `kernel` is ready in a sandbox that starts as the agent's own did, or, without `collected`, in the
        agent's. Raises InfrastructureError.
        """
        try:
            if collected is None:
                make_ready(kernel)
            else:
                self._put_collected(kernel, collected)
            return self._run_all(kernel)
        except SandboxLostError as lost:
            return self.failed(f"the sandbox of the grader was lost: {lost.detail}")
        except OSError as error:
            why = f"the grader's files cannot be put in place: {error}"
            if collected is None:
                # In the agent's own sandbox, by folders that it has made unwritable.
                return self.failed(why)
            raise InfrastructureError(why) from error

    def failed(self, why: str) -> list[GradedValue]:
        """The values if nothing can be graded, by the agent's own doing."""
        run = CommandRun(problem=why)
        return [value for command in self._grade.commands for value in values_of(command, run, no_file)]

    def _put_collected(self, kernel: Kernel, collected: Collected) -> None:
        for path in paths_of(self._grade, self._base):
            for name in files_at(kernel, path).keys() - collected.files.keys():
                kernel.files.remove(inside(kernel, name))
        kernel.files.unpack(collected.archive, kernel.workdir)

    def _put_hidden(self, kernel: Kernel, command: GradedCommand) -> None:
        """Last, so that nothing that the agent has written stands in their place."""
        targets = {placed(target, self._base): source for target, source in command.files.items()}
        for path in targets:
            kernel.files.remove(inside(kernel, path))
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "hidden.tar"
            with disk_errors(archive), tarfile.open(archive, "w") as tar:
                for target, source in targets.items():
                    add_hidden(tar, target, self._task_folder / source)
            kernel.files.unpack(archive, kernel.workdir)

    def _run_all(self, kernel: Kernel) -> list[GradedValue]:
        def read(path: str) -> bytes:
            return kernel.files.read(inside(kernel, placed(path, self._base)), LONGEST_RESULT)

        values: list[GradedValue] = []
        with disk_errors(self._log):
            self._log.unlink(missing_ok=True)
        for command in self._grade.commands:
            # A command that did not end can still run.
            make_ready(kernel)
            self._put_hidden(kernel, command)
            # A file that the agent or an earlier command left behind does not count as a result.
            for check in command.result:
                if check.file is not None:
                    kernel.files.remove(inside(kernel, placed(check.file, self._base)))
            values += values_of(command, self._run(kernel, command), read)
        return values

    def _run(self, kernel: Kernel, command: GradedCommand) -> CommandRun:
        budget = Budget(Limits(compute=command.timeout), tokens=1)
        budget.start_metering(lambda: kernel.busy_seconds)
        # Absolute, because the agent's kernel can have changed its directory.
        line = f"cd {shlex.quote(inside(kernel, self._base))} && {command.command}"
        with OutputFile(self._log, command.command) as output:
            ran = Program(kernel, budget, None).run(line, {}, {}, output.write)
        problem = ""
        if ran.spent is not None:
            problem = f"the grader's command did not end within {command.timeout:g} s"
        elif ran.exit_code is None:
            problem = f"the grader's command was stopped: {ran.result.detail or ran.result.outcome.value}"
        elif output.is_full:
            problem = f"the grader's command printed more than {LONGEST_OUTPUT:,} characters"
        text = output.text()
        return CommandRun(exit_code=ran.exit_code, output=text, problem=problem, last_lines=last_lines(text))


def make_ready(kernel: Kernel) -> None:
    """Let the agent's kernel run cells again. If it has to be restarted, all processes inside end."""
    if kernel.is_running:
        kernel.interrupt()
    if kernel.is_running or not kernel.is_alive:
        kernel.restart()


def heading(command: str) -> str:
    """What the log of a grader has before the output of a command."""
    return f"$ {command}\n"


class OutputFile:
    """What a command prints, up to LONGEST_OUTPUT characters, at the end of a file as it arrives."""

    def __init__(self, path: Path, command: str) -> None:
        self.is_full = False
        self._path = path
        self._length = 0
        with disk_errors(path):
            # Surrogates are escaped, since they cannot be encoded.
            self._file = path.open("a", encoding="utf-8", errors="backslashreplace")
            self._file.write(heading(command))
            self._begin = self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with disk_errors(self._path):
            self._file.close()

    def write(self, text: str) -> None:
        room = LONGEST_OUTPUT - self._length
        self.is_full = self.is_full or len(text) > room
        self._length += len(text[:room])
        self._file.write(text[:room])
        self._file.flush()

    def text(self) -> str:
        with disk_errors(self._path), self._path.open(encoding="utf-8") as file:
            file.seek(self._begin)
            return file.read()


def add_hidden(tar: tarfile.TarFile, target: str, source: Path) -> None:
    """Add the file, or the files below the folder. Raises InfrastructureError."""
    try:
        found = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
        for path in found:
            name = PurePosixPath(target, *path.relative_to(source).parts)
            add_file(tar, str(name), path.read_bytes(), os.access(path, os.X_OK))
    except OSError as error:
        raise InfrastructureError(f"a file of the grader cannot be read: {error}") from error


def no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


def last_lines(output: str) -> str:
    """The last exception that was printed, else the last lines; "" if nothing was printed."""
    lines = shown_lines(output[-MOST_READ:])
    raised = [found[1] for line in lines if (found := EXCEPTION.fullmatch(line))]
    return " | ".join(line[:LONGEST_LINE] for line in raised[-1:] or lines[-MOST_LINES:])
