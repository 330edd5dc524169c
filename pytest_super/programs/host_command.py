"""Any program as an agent: run on the host beside the trial, in which it acts by HTTP requests."""

from __future__ import annotations

import errno
import os
import sysconfig
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.inside.filework import open_regular
from pytest_super.kernel.providers.local import remove_tree
from pytest_super.model.redaction import is_secret
from pytest_super.programs import command as inside
from pytest_super.programs.command import AnswerReader, fill, model_name
from pytest_super.programs.host_process import HostProgram
from pytest_super.programs.trial_endpoint import TRIAL, TrialEndpoint
from pytest_super.programs.trial_server import TrialServer
from pytest_super.store.trajectory import PROGRAM_BESIDE, Action
from pytest_super.trial.program import Ran, exit_note, model_environment, with_exit_code, with_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_super.kernel.client import Kernel
    from pytest_super.trial.trial import Trial

PREFIX = "host-command:"
QUERY, ANSWER = "query.md", "answer.json"
NAMES = (*inside.NAMES, "invocation_dir")
# How long a spent wall limit may go unnoticed.
TICK = 0.5
# A program whose trial is over learns so by its next request, and may want to write down what it did.
LEAVE_SECONDS = 2.0
BUDGETS = ("compute", "wall", "tokens", "cost", "steps")


class HostCommandAgent:
    """Runs a command line by the host's shell, in a fresh directory, until it or the trial ends.

    All that it does in the trial are steps of their own; behind them stands one of the type `host_command`
    with what it printed. The time that it takes for itself is not compute time.
    """

    def __init__(self, command: str) -> None:
        """`command`: a line for `sh`, with any of the places of `command:` and {invocation_dir}.

        Raises SuperError as CommandAgent does.
        """
        self.command = command.strip()
        inside.check(PREFIX, self.command, NAMES)
        self.invocation_dir = os.getcwd()

    def run(self, trial: Trial) -> None:
        run = HostRun(trial, self.command, self.invocation_dir)
        trial.use(Action(type=PROGRAM_BESIDE, content=self.command), run.tool)


class HostRun:
    """One program beside one trial."""

    def __init__(self, trial: Trial, command: str, invocation_dir: str) -> None:
        self.trial = trial
        self.command = command
        self.invocation_dir = invocation_dir
        self.answer = AnswerReader("")

    def tool(self, _kernel: Kernel) -> tuple[str, str]:
        """Run the program to its end; its output and how it ended, and the outcome.

        Raises InfrastructureError, ModelError among them.
        """
        with fresh_folder(self.trial.task.query) as folder:
            self.answer = AnswerReader(f"{folder}/{ANSWER}")
            return self.run(folder)

    def run(self, folder: str) -> tuple[str, str]:
        endpoint = TrialEndpoint(self.trial)
        with TrialServer(endpoint.answer) as server:
            environment = environment_beside(server, os.environ)
            try:
                with HostProgram(self.line(folder), folder, environment, endpoint.wake) as program:
                    attend(endpoint, program)
                    is_left = not program.is_running
                    code = program.end()
                    endpoint.close()
                    endpoint.is_over()
                    return self.told(program, code if is_left else None, endpoint.note)
            finally:
                endpoint.close()

    def line(self, folder: str) -> str:
        values = {
            "query_file": f"{folder}/{QUERY}",
            "answer_file": self.answer.path,
            "workdir": self.trial.kernel.workdir,
            "model": model_name(self.trial),
            "invocation_dir": self.invocation_dir,
        }
        return fill(self.command, values)

    def told(self, program: HostProgram, code: int | None, before: str) -> tuple[str, str]:
        """`code`: None when it was ended. `before`: what is to be said before how it ended."""
        outcome = Outcome.OK if self.trial.submitted else Outcome.INTERRUPTED
        result = with_output(CellResult(outcome=outcome), program.output)
        if code is None:
            note = lines(before, end_note(self.trial.stop_reason))
            return Ran(result=result, note=note).observation, outcome
        ran = Ran(result=with_exit_code(result, code), note=lines(before, exit_note(code)))
        if self.trial.stop_reason is not None:
            return ran.observation, ran.result.outcome
        found, said = self.answer.read(read_regular_file)
        if self.answer.is_found:
            self.trial.submit(self.answer.value)
            return ran.observation, ran.result.outcome
        return f"{ran.observation}\n{found}", ran.result.outcome if said == "ok" else said


def attend(endpoint: TrialEndpoint, program: HostProgram) -> None:
    """Take the program's actions until it ends, or does not end although the trial is over.

    Raises ModelError.
    """
    over_since: float | None = None
    while program.is_running:
        endpoint.take(TICK)
        if not endpoint.is_over():
            continue
        over_since = over_since or time.monotonic()
        if time.monotonic() - over_since > LEAVE_SECONDS:
            return


def lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


def end_note(stop_reason: str | None) -> str:
    why = f"{stop_reason} spent" if stop_reason in BUDGETS else f"the trial was over ({stop_reason})"
    return f"[The program was ended: {why}.]"


def environment_beside(server: TrialServer, host: Mapping[str, str]) -> dict[str, str]:
    """The host's variables without its keys, and the way to the trial and its model."""
    near = ",".join(filter(None, [host.get("NO_PROXY") or host.get("no_proxy"), "127.0.0.1"]))
    # Behind all others: for `pytest-super`, should its environment not be activated.
    path = os.pathsep.join(filter(None, [host.get("PATH", os.defpath), sysconfig.get_path("scripts")]))
    return {
        **{name: value for name, value in host.items() if not is_secret(name, value)},
        **inside.ENVIRONMENT,
        **model_environment(server.url),
        "OPENAI_API_KEY": server.token,
        "SUPER_TRIAL_URL": f"{server.url}{TRIAL}",
        "SUPER_TRIAL_TOKEN": server.token,
        "NO_PROXY": near,
        "no_proxy": near,
        "PATH": path,
    }


@contextmanager
def fresh_folder(query: str) -> Iterator[str]:
    """A folder with the query. Raises InfrastructureError."""
    try:
        folder = tempfile.mkdtemp(prefix="pytest-super-agent-")
        with open(f"{folder}/{QUERY}", "wb") as file:
            # A model may have written half of a surrogate pair into a plan.
            file.write(query.encode("utf-8", "replace"))
    except OSError as error:
        raise InfrastructureError(f"no folder for the program: {error}") from error
    try:
        yield folder
    finally:
        remove_tree(Path(folder))


def read_regular_file(path: str, limit: int) -> bytes:
    """As Kernel.read_file. Raises OSError, also for what would never end."""
    with open_regular(path) as file:
        data: bytes = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "Larger than allowed", path)
    return data
