"""Test doubles for agents and conftests: a manual clock, a kernel without a process, a scripted model."""

import ast
import contextlib
import errno
import io
import json
import posixpath
import traceback
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_super.errors import EngineError
from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.files import READ_LIMIT, FileEntry, FileSearch
from pytest_super.kernel.inside.values import to_json
from pytest_super.kernel.terminal_text import as_shown
from pytest_super.model.completion import Completion, Message, Usage


class FakeClock:
    """A clock that only `sleep` moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


# Not an Exception, which the cell's own code could catch.
class Dead(BaseException):
    """Raised in a cell to simulate the death of its kernel or sandbox."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        self.result = CellResult(outcome=outcome, detail=detail)


class FakeFiles:
    """Files in memory, with methods of kernel.files.SandboxFiles."""

    def __init__(self, workdir: str = "/fake") -> None:
        self._workdir = workdir
        self._contents: dict[str, bytes] = {}
        self._known: dict[str, str] | None = None

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        name = posixpath.normpath(path)
        if name not in self._contents:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if len(self._contents[name]) > limit:
            raise OSError(errno.EFBIG, "Larger than allowed", path)
        return self._contents[name]

    def write(self, path: str, data: bytes) -> None:
        self._contents[posixpath.normpath(path)] = data

    def entries(self, path: str = ".") -> list[FileEntry]:
        below = self._below(path)
        return [
            FileEntry(
                name=name,
                kind="file" if name in below else "folder",
                size=len(below.get(name, b"")),
                modified=0.0,
            )
            for name in sorted({file.partition("/")[0] for file in below})
        ]

    def resolve(self, path: str = ".") -> str:
        return posixpath.normpath(posixpath.join(self._workdir, path))

    def search(
        self, path: str = ".", *, name: str = "*", text: str = "", hidden: bool = True, seconds: float = 10.0
    ) -> FileSearch:
        """Search all files without a time limit; `name` cannot contain folders."""
        del hidden, seconds
        matching = {
            file: sum(text in line for line in data.decode().splitlines())
            for file, data in self._below(path).items()
            if fnmatch(posixpath.basename(file), name)
        }
        found = [(file, lines if text else 0) for file, lines in matching.items() if lines or not text]
        lines = sum(count for _, count in found)
        return FileSearch(
            folder=self.resolve(path), found=found, files=len(found), lines=lines, is_complete=True
        )

    def changes(self, _folder: str) -> dict[str, str]:
        now = {path: sha256(data).hexdigest() for path, data in self._contents.items()}
        before, self._known = now if self._known is None else self._known, now
        return {
            path: now.get(path, "") for path in sorted({*before, *now}) if before.get(path) != now.get(path)
        }

    def upload(self, tree: Path, path: str) -> None:
        for file in sorted(tree.rglob("*")):
            if file.is_file():
                self.write(f"{path}/{file.relative_to(tree)}", file.read_bytes())

    def _below(self, path: str) -> dict[str, bytes]:
        folder = posixpath.normpath(path)
        return {
            posixpath.relpath(file, folder): data
            for file, data in sorted(self._contents.items())
            if folder == "." or file.startswith(f"{folder}/")
        }


class FakeKernel:
    """Runs Python cells in this process, with the methods of kernel.client.Kernel.

    In a cell, `sleep(seconds)` makes the cell take that long by the clock, `die()` kills the kernel, `lose()`
    kills the sandbox, and `fail_engine()` raises EngineError, as if the engine did not answer. `work` is what
    processes do that cells have left behind.
    """

    workdir = "/fake"
    writable = None
    memory_kills = 0

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.files = FakeFiles(self.workdir)
        self.restarts = 0
        self.is_closed = self.is_killed = False
        self._charge: Callable[[float], None] | None = None
        self._sampled = self.clock()
        self.busy_seconds = self._left = self._ran = 0.0
        self._pending: CellResult | None = None
        self._value: object = None
        self._reset()

    @property
    def is_running(self) -> bool:
        return self._pending is not None

    def meter(self, charge: Callable[[float], None]) -> None:
        self._charge = charge
        self._sampled = self.clock()

    def work(self, wall: float, processor: float) -> None:
        """Let time pass in which processes in the sandbox use processor time.

        Of that, a sample has no more than the time since the last one.
        """
        self.clock.sleep(wall)
        if self._pending is not None:
            self.busy_seconds += wall
        if self._charge is not None:
            self._charge(min(processor, self.clock() - self._sampled))
        self._sampled = self.clock()

    def kill(self) -> None:
        self.is_killed = True

    def start(self, *, with_kernel: bool = True) -> None:
        """Nothing to do: the kernel is always ready."""

    def pass_on_variables(self) -> None:
        """Does nothing: programs are not simulated."""

    def execute(
        self, code: str, *, timeout: float | None = None, listener: Callable[[str], None] | None = None
    ) -> CellResult:
        assert self._pending is None, "a cell still runs"
        self._left = self._ran = 0.0
        try:
            self._pending = self._run(code)
        except Dead as death:
            return death.result
        if listener is not None:
            listener(self._pending.text)
        return self.wait(timeout)

    def wait(self, timeout: float | None = None) -> CellResult:
        assert self._pending is not None, "no cell runs"
        passed = self._left if timeout is None else min(timeout, self._left)
        self.clock.sleep(passed)
        self.busy_seconds += passed
        self._ran += passed
        self._left -= passed
        if self._left > 0:
            return CellResult(outcome=Outcome.TIMED_OUT, seconds=self._ran)
        return self._end(self._pending)

    def interrupt(self, _timeout: float = 0.0) -> CellResult:
        assert self._pending is not None, "no cell runs"
        return self._end(CellResult(outcome=Outcome.INTERRUPTED, seconds=self._ran))

    def evaluate(self, expression: str) -> Any:
        """The value of the last cell, unless the expression sets something."""
        return None if expression.startswith("setattr") else json.loads(to_json(self._value))

    def restart(self, timeout: float | None = None) -> None:
        """Restart immediately; `timeout` is ignored."""
        del timeout
        self.restarts += 1
        self._reset()

    def expect_script(self, path: str, content: bytes) -> None:
        """It observes no processes."""

    def keep(self) -> str:
        return "it was never real"

    def close(self) -> None:
        self.is_closed = True

    def _reset(self) -> None:
        self._pending = self._value = None
        self._namespace: dict[str, Any] = {
            "sleep": self._sleep,
            "die": lambda: self._raise(Dead(Outcome.KERNEL_DIED, "exit code 3")),
            "lose": lambda: self._raise(Dead(Outcome.SANDBOX_LOST, "killed (exit code 137)")),
            "fail_engine": lambda: self._raise(EngineError("the engine does not answer")),
        }

    def _sleep(self, seconds: float) -> None:
        self._left += seconds

    def _raise(self, error: BaseException) -> None:
        raise error

    def _end(self, result: CellResult) -> CellResult:
        self._pending, self._left = None, 0.0
        return result

    def _run(self, code: str) -> CellResult:
        printed = io.StringIO()
        self._value = None
        error = ""
        with contextlib.redirect_stdout(printed):
            try:
                self._value = self._evaluate(code)
            except EngineError:
                # A failure of the engine is not an error of the cell.
                raise
            except Exception as raised:
                error = "".join(traceback.format_exception_only(raised)).strip()
        return cell_result(printed.getvalue(), self._value, error)

    def _evaluate(self, code: str) -> object:
        """Run the cell. Returns the value of its last expression."""
        module = ast.parse(code)
        last = module.body[-1] if module.body else None
        if not isinstance(last, ast.Expr):
            exec(compile(module, "<cell>", "exec"), self._namespace)
            return None
        del module.body[-1]
        exec(compile(module, "<cell>", "exec"), self._namespace)
        return eval(compile(ast.Expression(last.value), "<cell>", "eval"), self._namespace)


def cell_result(printed: str, value: object, error: str) -> CellResult:
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
    if value is not None:
        result = {"data": {"text/plain": repr(value)}, "metadata": {}, "execution_count": None}
        outputs.append({"output_type": "execute_result", **result})
    if error:
        name, _, words = error.partition(": ")
        outputs.append({"output_type": "error", "ename": name, "evalue": words, "traceback": [error]})
    text = as_shown(printed + (repr(value) if value is not None else "") + error)
    outcome = Outcome.ERROR if error else Outcome.OK
    return CellResult(outcome=outcome, text=text, outputs=outputs, detail=error)


class FakeModel:
    """Gives the listed answers in order, and records the requests.

    An answer is a text or a Completion. The tokens of a text are estimated as one for every four characters.
    """

    def __init__(self, *answers: str | Completion) -> None:
        self.answers = list(answers)
        self.requests: list[list[Message]] = []
        self.parameters: list[dict[str, Any]] = []

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        assert self.answers, f"there is no answer left for request {len(self.requests) + 1}"
        self.requests.append(list(messages))
        self.parameters.append(parameters)
        answer = self.answers.pop(0)
        if isinstance(answer, Completion):
            return answer
        prompt = sum(len(str(message["content"])) for message in messages)
        usage = Usage(prompt_tokens=-(-prompt // 4), completion_tokens=-(-len(answer) // 4))
        return Completion(text=answer, usage=usage, model="fake")
