"""Runs a program in the sandbox as one step, until it ends or the trial's budget is spent."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.output import CellOutput, output_text
from pytest_super.trial.observation import observation_of, shown_output
from pytest_super.words import exit_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.observed import ObservedProcess
    from pytest_super.model.completion import Model
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.model_endpoint import ModelEndpoint, OnCall

# Longest time until a spent budget is noticed. More than a second, because after a second of waiting the
# kernel's client checks whether it has missed the end of the cell.
TICK = 1.5
KILL_SECONDS = 10.0
NOT_FOUND = 127
EXIT_CODE = re.compile("-?[0-9]{1,9}")
# The program has empty input and its own session, so that `kill 0` does not kill the kernel. Its output goes
# through our own pipe, and each piece is flushed before the next is read: ipykernel would read the output of
# its children faster than it can forward it, until memory is full. The cell does not wait for the pipe's end,
# because processes that the program leaves running can keep it open.
CELL = """
try:
    import codecs, json, os, select, subprocess, sys
    _given = json.loads({given!r})
    for _path, _text in _given["files"].items():
        os.makedirs(os.path.dirname(_path) or ".", exist_ok=True)
        with open(_path, "wb") as _file:
            _file.write(_text.encode("utf-8", "replace"))
    _near = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1"]))
    _program = subprocess.Popen(
        ["/bin/sh", "-c", _given["command"]],
        env={{**os.environ, "NO_PROXY": _near, "no_proxy": _near, **_given["environment"]}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
except Exception as _error:
    _program, _end = None, f"{{type(_error).__name__}}: {{_error}}"
else:
    _decoder = codecs.getincrementaldecoder("utf-8")("replace")
while _program is not None:
    _ended = _program.poll() is not None
    if select.select([_program.stdout], [], [], 0 if _ended else 0.2)[0]:
        _data = os.read(_program.stdout.fileno(), 65536)
        if not _data:
            break
        sys.stdout.write(_decoder.decode(_data))
        sys.stdout.flush()
    elif _ended:
        break
_end if _program is None else _program.wait()
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramResult:
    """The result of a program."""

    result: CellResult
    note: str
    """How the program ended, for the agent: its exit code, or the reason why we ended it."""
    exit_code: int | None = None
    """-N for the signal N; None if the program did not end by itself."""
    spent: str | None = None
    """The limit that was reached, if any. All processes in the sandbox are then killed."""
    why_spent: str = ""
    """See ModelEndpoint.why_spent."""
    not_started: str = ""
    """Why there was no program: it is empty if it was started."""
    refused: str = ""
    """See ModelEndpoint.refused."""

    @property
    def observation(self) -> str:
        if not self.note:
            return observation_of(self.result)
        return "\n".join(filter(None, (shown_output(self.result).rstrip("\n"), self.note)))


class Program:
    """Runs one program. The trial's model, if there is one, is served on the sandbox's loopback."""

    def __init__(
        self, kernel: Kernel, budget: Budget, model: Model | None, on_call: OnCall = lambda *_: None
    ) -> None:
        """`on_call` is told of each answered call of the model."""
        self._kernel = kernel
        self._budget = budget
        self._endpoint = None if model is None else endpoint_of(model, budget, on_call)
        self._output = CellOutput()
        self._processes: dict[int, ObservedProcess] | None = None
        self._dropped: Counter[str] = Counter()
        self._not_started = ""

    def run(
        self,
        command: str,
        environment: Mapping[str, str],
        files: Mapping[str, str],
        listener: Callable[[str], None],
    ) -> ProgramResult:
        """Write `files` (path to text) in folders that are made if necessary, then run `command` by `sh -c`.

        The program has `environment` added to that of the kernel. `listener` gets all output as it streams.
        Time spent waiting for the model is not charged as compute time. Raises InfrastructureError, including
        ModelError, and SandboxLostError if the sandbox is gone before the program starts.
        """
        kernel, budget, endpoint = self._kernel, self._budget, self._endpoint
        given = {"command": command, "environment": dict(environment), "files": dict(files)}
        if endpoint is None:
            return self._run(given, listener)
        given["environment"] = self._serve(endpoint) | dict(environment)
        # The meter stays in use after the program: `close` stops the clock of the endpoint.
        budget.start_metering(lambda: kernel.busy_seconds - endpoint.waiting_seconds)
        try:
            return self._run(given, listener)
        finally:
            kernel.stop_serving()
            endpoint.close()

    def _serve(self, endpoint: ModelEndpoint) -> dict[str, str]:
        """The variables by which clients find the model. They need a key, but any key works."""
        # Here, as in `endpoint_of`.
        from pytest_super.model.protocols import registry

        url = self._kernel.serve(endpoint.answer, registry.CLIENT_HEADERS)
        return registry.environment(url, "none-is-needed")

    def _run(self, given: Mapping[str, Any], listener: Callable[[str], None]) -> ProgramResult:
        cell = CELL.format(given=json.dumps(given))
        result = self._kernel.execute(cell, timeout=self._timeout(), listener=listener)
        code = self._take(result)
        while result.is_running:
            if self._is_over():
                return self._killed(result)
            result = self._kernel.wait(timeout=self._timeout())
            later = self._take(result)
            # The cell's value can come with an earlier result than the news of its end.
            code = code if later is None else later
        if self._is_over():
            return self._killed(result)
        return self._ended(result, code)

    def _timeout(self) -> float:
        return min(TICK, max(self._budget.seconds_left(), 0.01))

    @property
    def _spent(self) -> str | None:
        return (self._endpoint.spent if self._endpoint else None) or self._budget.spent()

    def _is_over(self) -> bool:
        """Raises ModelError."""
        if self._endpoint is not None and self._endpoint.failure is not None:
            raise self._endpoint.failure
        return self._spent is not None

    def _take(self, result: CellResult) -> int | None:
        """Keep the program's output. Returns its exit code, which is the cell's value."""
        if result.processes is not None:
            # The last report of each tells most.
            self._processes = (self._processes or {}) | {it.number: it for it in result.processes}
        self._dropped.update(result.dropped)
        code = None
        for output in result.outputs:
            if output["output_type"] == "execute_result":
                text = output_text(output)
                code = int(text) if EXIT_CODE.fullmatch(text) else None
                self._not_started = "" if code is not None else text.strip("'\"")
            else:
                self._output.add(*as_message(output))
        return code

    def _killed(self, result: CellResult) -> ProgramResult:
        """Kill every process in the sandbox, because the trial is over."""
        spent = self._spent
        if result.outcome not in (Outcome.SANDBOX_LOST, Outcome.KERNEL_DIED):
            result = replace(result, outcome=Outcome.INTERRUPTED)
            # Not an interrupt, which would not reach the program in its own session.
            self._kernel.restart(timeout=KILL_SECONDS)
        note = self._note(f"[The program was ended: {spent} spent.]")
        why = self._endpoint.why_spent if self._endpoint else ""
        return ProgramResult(result=self._whole(result), note=note, spent=spent, why_spent=why)

    def _ended(self, result: CellResult, code: int | None) -> ProgramResult:
        whole = self._whole(result)
        if why := self._not_started:
            whole, note = replace(whole, outcome=Outcome.ERROR), f"[The program was not started: {why}]"
            return ProgramResult(result=whole, note=note, not_started=why)
        # The cell ended in another way than by the end of the program.
        if code is None:
            return ProgramResult(result=whole, note="")
        note = self._note(exit_note(code))
        refused = self._endpoint.refused if self._endpoint else ""
        return ProgramResult(result=with_exit_code(whole, code), note=note, exit_code=code, refused=refused)

    def _whole(self, result: CellResult) -> CellResult:
        processes = None if self._processes is None else list(self._processes.values())
        return replace(with_output(result, self._output), processes=processes, dropped=dict(self._dropped))

    def _note(self, how: str) -> str:
        """The note on the end, after a note on refused requests to the model."""
        return "\n".join(filter(None, (self._endpoint.note if self._endpoint else "", how)))


def endpoint_of(model: Model, budget: Budget, on_call: OnCall) -> ModelEndpoint:
    # Not at the top: it loads the protocols of all model APIs, and a grader's programs have no model.
    from pytest_super.trial.model_endpoint import ModelEndpoint

    return ModelEndpoint(model, budget, on_call)


def with_output(result: CellResult, output: CellOutput) -> CellResult:
    """The result with a program's output."""
    outputs = output.outputs()
    return replace(result, outputs=outputs, text="".join(map(output_text, outputs)), omitted=output.omitted)


def with_exit_code(result: CellResult, code: int) -> CellResult:
    """The result with a program's exit code, which is -N for the signal N."""
    return replace(result, outcome=Outcome.ERROR if code else Outcome.OK, detail=exit_words(code))


def exit_note(code: int) -> str:
    why = ": a command was not found" if code == NOT_FOUND else ""
    return f"[The program ended with {exit_words(code)}{why}.]"


def as_message(output: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kernel message from which the output was made."""
    return output["output_type"], {name: value for name, value in output.items() if name != "output_type"}
