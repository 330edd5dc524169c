"""Runs a program in the sandbox as one step, until it ends or the trial's budget is spent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.observed import ObservedProcess
from pytest_super.kernel.programs import Texts
from pytest_super.kernel.running_cell import Listener
from pytest_super.model.completion import Model
from pytest_super.trial.observation import observation_of
from pytest_super.words import exit_words

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.model_endpoint import ModelEndpoint, OnCall

# Longest time until a spent budget is noticed.
TICK = 1.0
KILL_SECONDS = 10.0
NOT_FOUND = 127


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
        return "\n".join(filter(None, (self.result.text.rstrip("\n"), self.note)))


class Program:
    """Runs one program. The trial's model, if there is one, is served on the sandbox's loopback."""

    def __init__(
        self, kernel: Kernel, budget: Budget, model: Model | None, on_call: OnCall = lambda *_: None
    ) -> None:
        """`on_call` is told of each answered call of the model."""
        self._kernel = kernel
        self._budget = budget
        self._endpoint = None if model is None else endpoint_of(model, budget, on_call)
        self._processes: dict[int, ObservedProcess] | None = None
        self._dropped: Counter[str] = Counter()

    def run(self, command: str, environment: Texts, files: Texts, listener: Listener) -> ProgramResult:
        """Write `files` (path to text) in folders that are made if necessary, then run `command` by `sh -c`.

        The program has `environment` besides that of the sandbox. `listener` gets all output as it streams.
        Time spent waiting for the model is not charged as compute time. Raises InfrastructureError, including
        ModelError, and SandboxLostError if the sandbox is gone before the program starts.
        """
        kernel, budget, endpoint = self._kernel, self._budget, self._endpoint
        start = partial(kernel.run_program, command, files=files, listener=listener)
        if endpoint is None:
            return self._follow(start(environment=environment, timeout=self._timeout()))
        # Here, as in `endpoint_of`.
        from pytest_super.model.protocols import registry

        url = kernel.serve(endpoint.answer, registry.CLIENT_HEADERS)
        # Clients need a key, but any key works.
        environment = registry.environment(url, "none-is-needed") | dict(environment)
        # The meter stays in use after the program: `close` stops the clock of the endpoint.
        budget.start_metering(lambda: kernel.busy_seconds - endpoint.waiting_seconds)
        try:
            return self._follow(start(environment=environment, timeout=self._timeout()))
        finally:
            kernel.stop_serving()
            endpoint.close()

    def _follow(self, result: CellResult) -> ProgramResult:
        """Wait for the end of the program, or end it. `result` is its first one."""
        self._take(result)
        while result.is_running and not self._is_over():
            result = self._kernel.wait_for_program(self._timeout())
            self._take(result)
        return self._killed(result) if self._is_over() else self._ended(result)

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

    def _take(self, result: CellResult) -> None:
        if result.processes is not None:
            # The last report of each tells most.
            self._processes = (self._processes or {}) | {it.number: it for it in result.processes}
        self._dropped.update(result.dropped)

    def _killed(self, result: CellResult) -> ProgramResult:
        """Kill every process in the sandbox, because the trial is over."""
        spent = self._spent
        self._kernel.require_running()
        if result.outcome is not Outcome.SANDBOX_LOST:
            self._kernel.restart(timeout=KILL_SECONDS)
            if result.is_running:
                # The listener is told nothing after the end of the program.
                result = self._kernel.wait_for_program(KILL_SECONDS)
                self._take(result)
            result = replace(result, outcome=Outcome.INTERRUPTED)
        note = self._note(f"[The program was ended: {spent} spent.]")
        why = self._endpoint.why_spent if self._endpoint else ""
        return ProgramResult(result=self._whole(result), note=note, spent=spent, why_spent=why)

    def _ended(self, result: CellResult) -> ProgramResult:
        whole, code = self._whole(result), result.exit_code
        if result.outcome is Outcome.SANDBOX_LOST:
            return ProgramResult(result=whole, note="")
        if code is None:
            note = f"[The program was not started: {result.detail}]"
            return ProgramResult(result=whole, note=note, not_started=result.detail)
        note = self._note(exit_note(code))
        refused = self._endpoint.refused if self._endpoint else ""
        return ProgramResult(result=whole, note=note, exit_code=code, refused=refused)

    def _whole(self, result: CellResult) -> CellResult:
        processes = None if self._processes is None else list(self._processes.values())
        return replace(result, processes=processes, dropped=dict(self._dropped))

    def _note(self, how: str) -> str:
        """The note on the end, after a note on refused requests to the model."""
        return "\n".join(filter(None, (self._endpoint.note if self._endpoint else "", how)))


def endpoint_of(model: Model, budget: Budget, on_call: OnCall) -> ModelEndpoint:
    # Not at the top: it loads the protocols of all model APIs, and a grader's programs have no model.
    from pytest_super.trial.model_endpoint import ModelEndpoint

    return ModelEndpoint(model, budget, on_call)


def with_exit_code(result: CellResult, code: int) -> CellResult:
    """The result with a program's exit code, which is -N for the signal N."""
    return replace(result, outcome=Outcome.ERROR if code else Outcome.OK, detail=exit_words(code))


def exit_note(code: int) -> str:
    why = ": a command was not found" if code == NOT_FOUND else ""
    return f"[The program ended with {exit_words(code)}{why}.]"
