"""Programs, which run without the kernel."""

import sys
from collections.abc import Callable

import pytest

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import Remains, SandboxFactory, printed, started
from pytest_super.tasks.sandbox_spec import SandboxSpec

# Of the bridge: the program itself, and perhaps the kernel.
CHILDREN = "cat /proc/$PPID/task/*/children | wc -w"


def run(
    kernel: Kernel,
    command: str,
    *,
    timeout: float = 60.0,
    listener: Callable[[str], None] | None = None,
    **environment: str,
) -> CellResult:
    files = {"a/b.txt": "é\n"}
    return kernel.run_program(command, environment, files, timeout=timeout, listener=listener)


def test_a_program_has_files_variables_and_empty_input(sandbox_factory: SandboxFactory) -> None:
    sandbox = sandbox_factory(SandboxSpec(env={"GIVEN": "by the task"}))
    with started(sandbox, with_kernel=False) as kernel:
        heard: list[str] = []
        line = 'pwd; cat a/b.txt; echo "$GIVEN, $ADDED, $NO_PROXY"; cat; echo ä >&2; exit 3'
        result = run(kernel, line, listener=heard.append, ADDED="more")
        told = f"{kernel.workdir}\né\nby the task, more, 127.0.0.1\nä\n"
        assert (result.outcome, result.exit_code, result.text) == (Outcome.ERROR, 3, told)
        assert (result.detail, "".join(heard)) == ("exit code 3", told)
        assert run(kernel, "kill -9 $$").exit_code == -9
        assert run(kernel, "yes | head -n 1").text == "y\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_program_needs_no_kernel_and_the_first_cell_starts_it(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec()), with_kernel=False) as kernel:
        assert run(kernel, CHILDREN).text == "1\n"
        assert kernel.is_alive
        kernel.restart()
        assert run(kernel, CHILDREN).text == "1\n"
        assert printed(kernel, "import os; os.mkdir('sub'); os.chdir('sub'); print(1)") == "1\n"
        assert run(kernel, f"{CHILDREN}; pwd").text == f"2\n{kernel.workdir}/sub\n"


def test_a_program_that_timed_out_runs_until_everything_is_killed(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec()), with_kernel=False) as kernel:
        first = run(kernel, "echo begun; sleep 0.6; echo ended > end; sleep 60", timeout=0.3)
        assert (first.outcome, first.text) == (Outcome.TIMED_OUT, "begun\n")
        second = kernel.wait_for_program(0.6)
        assert (second.outcome, second.text, second.exit_code) == (Outcome.TIMED_OUT, "begun\n", None)
        assert kernel.files.read("end") == b"ended\n"
        assert 0.8 < kernel.busy_seconds < 30
        kernel.kill()
        assert kernel.wait_for_program(30).exit_code == -9
        assert run(kernel, "echo again").text == "again\n"


def test_a_lost_sandbox_ends_a_program(sandbox_factory: SandboxFactory, remains: Remains) -> None:
    sandbox = sandbox_factory(SandboxSpec())
    with started(sandbox, with_kernel=False) as kernel:
        result = run(kernel, "echo last; sleep 0.3; kill -9 $PPID; sleep 60")
        assert (result.outcome, result.text, result.exit_code) == (Outcome.SANDBOX_LOST, "last\n", None)
        assert run(kernel, "true").outcome is Outcome.SANDBOX_LOST
    assert remains(sandbox) == []
