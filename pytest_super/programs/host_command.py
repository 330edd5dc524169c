"""Runs any program on the host as an agent, which acts in the trial by HTTP requests."""

from __future__ import annotations

import errno
import os
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.files import SandboxFiles
from pytest_super.kernel.inside.lookup import open_regular
from pytest_super.kernel.inside.processes import remove_tree
from pytest_super.kernel.output import readable
from pytest_super.model.protocols import registry
from pytest_super.model.protocols.folds import AGENT_FOLDER
from pytest_super.programs import command as inside
from pytest_super.programs.answer import AnswerReader, explain_no_answer
from pytest_super.programs.command import fill, model_name
from pytest_super.programs.host_process import HostProgram, host_program
from pytest_super.programs.trial_client import TOKEN, URL
from pytest_super.programs.trial_endpoint import TRIAL, TrialEndpoint
from pytest_super.programs.trial_server import TrialServer
from pytest_super.redaction import is_secret
from pytest_super.store.trajectory import PROGRAM_BESIDE, Action
from pytest_super.trial.program import ProgramResult, exit_note, with_exit_code
from pytest_super.trial.trial import Trial

PREFIX = "host-command:"
QUERY, ANSWER = "query.md", "answer.json"
NAMES = (*inside.NAMES, "invocation_dir")
# The longest time until a spent wall limit is noticed.
TICK = 0.5
# A program learns from its next request that the trial is over. It then has this time to save its results.
LEAVE_SECONDS = 2.0
BUDGETS = ("compute", "wall", "tokens", "cost", "steps")


class HostCommandAgent:
    """Runs a command line in the host's shell, in a fresh directory, until it or the trial ends.

    Each of its actions in the trial is a step, and a last step of the type `host_command` has its output. Its
    own running time is not charged as compute time.
    """

    def __init__(self, command: str) -> None:
        """`command`: a line for `sh` with the placeholders of `command:` and {invocation_dir}.

        Raises SuperError like CommandAgent.
        """
        self.command = command.strip()
        inside.check(PREFIX, self.command, NAMES)
        self.invocation_dir = os.getcwd()

    def run(self, trial: Trial) -> None:
        def work(_files: SandboxFiles) -> tuple[str, str]:
            with fresh_folder(trial.task.query) as folder:
                return run_beside(trial, folder, self.line(trial, folder))

        # The wall limit's signal is put off in `use`; `attend` checks the limit instead.
        trial.use(Action(type=PROGRAM_BESIDE, content=self.command), work)

    def line(self, trial: Trial, folder: str) -> str:
        values = {
            "query_file": f"{folder}/{QUERY}",
            "answer_file": f"{folder}/{ANSWER}",
            "workdir": trial.kernel.workdir,
            "model": model_name(trial),
            "invocation_dir": self.invocation_dir,
        }
        return fill(self.command, values)


def run_beside(trial: Trial, folder: str, line: str) -> tuple[str, str]:
    """Run the program to its end. Returns its output and the outcome. Raises InfrastructureError."""
    endpoint = TrialEndpoint(trial)
    with TrialServer(endpoint.answer) as server:
        environment = environment_beside(server, os.environ)
        try:
            with host_program(line, folder, environment, endpoint.wake) as program:
                attend(endpoint, program)
                # Asked before `end`, after which every program has ended.
                has_ended = not program.is_running
                code = program.end()
                endpoint.close()
                # The last requests to the model can have failed or spent the budget.
                endpoint.is_over()
                return observation(trial, folder, program, code if has_ended else None, endpoint)
        finally:
            endpoint.close()


def observation(
    trial: Trial, folder: str, program: HostProgram, code: int | None, endpoint: TrialEndpoint
) -> tuple[str, str]:
    """`code` is None if we ended the program. Raises InfrastructureError if it could not start."""
    outcome = Outcome.OK if trial.submitted else Outcome.INTERRUPTED
    output, outputs = program.output, program.output.outputs()
    result = CellResult(outcome=outcome, text=readable(outputs), outputs=outputs, omitted=output.omitted)
    if code is None:
        reason = trial.stop_reason
        why = f"{reason} spent" if reason in BUDGETS else f"the trial was over ({reason})"
        note = lines(endpoint.note, f"[The program was ended: {why}.]")
        return ProgramResult(result=result, note=note).observation, outcome
    ran = ProgramResult(
        result=with_exit_code(result, code),
        note=lines(endpoint.note, exit_note(code)),
        exit_code=code,
        refused=endpoint.refused,
    )
    if trial.stop_reason is not None:
        return ran.observation, ran.result.outcome
    answer = AnswerReader(f"{folder}/{ANSWER}")
    found, reading = answer.read(read_regular_file)
    if answer.is_found:
        trial.submit(answer.value)
        return ran.observation, ran.result.outcome
    has_acted = any(step.origin == "agent" for step in trial.history)
    explain_no_answer(trial, ran, answer.problem, has_acted=has_acted)
    return f"{ran.observation}\n{found}", ran.result.outcome if reading == "ok" else reading


def attend(endpoint: TrialEndpoint, program: HostProgram) -> None:
    """Run the program's actions until its end, or LEAVE_SECONDS after the trial's. Raises ModelError."""
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


def environment_beside(server: TrialServer, host: Mapping[str, str]) -> dict[str, str]:
    """The host's variables without its keys, plus the addresses of the trial and its model."""
    # Requests to our own server must not go to a proxy of the host.
    no_proxy = ",".join(filter(None, [host.get("NO_PROXY") or host.get("no_proxy"), "127.0.0.1"]))
    # Appended so that `pytest-super` is found even if its environment is not activated.
    path = os.pathsep.join(filter(None, [host.get("PATH", os.defpath), sysconfig.get_path("scripts")]))
    return {
        **{name: value for name, value in host.items() if not is_secret(name, value)},
        **inside.ENVIRONMENT,
        **registry.environment(server.url, server.token),
        URL: f"{server.url}{TRIAL}",
        TOKEN: server.token,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
        "PATH": path,
    }


@contextmanager
def fresh_folder(query: str) -> Iterator[str]:
    """A temporary folder with the query's file. Raises InfrastructureError."""
    try:
        folder = tempfile.mkdtemp(prefix=AGENT_FOLDER)
        with open(f"{folder}/{QUERY}", "wb") as file:
            # A plan by a model can contain half of a surrogate pair.
            file.write(query.encode("utf-8", "replace"))
    except OSError as error:
        raise InfrastructureError(f"no folder for the program: {error}") from error
    try:
        yield folder
    finally:
        remove_tree(folder)


def read_regular_file(path: str, limit: int) -> bytes:
    """Like SandboxFiles.read. Raises OSError, including for devices and pipes, which could block for ever."""
    with open_regular(path) as file:
        data: bytes = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, "Larger than allowed", path)
    return data
