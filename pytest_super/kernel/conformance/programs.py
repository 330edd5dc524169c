"""Programs, which run without the kernel."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import Remains, SandboxFactory, printed, started, until
from pytest_super.tasks.sandbox_spec import SandboxSpec

# Of the bridge: the program itself, and perhaps the kernel.
CHILDREN = "cat /proc/$PPID/task/*/children | wc -w"
FLOOD = 200 * 10**6


@contextlib.contextmanager
def without_kernel(factory: SandboxFactory) -> Iterator[Kernel]:
    kernel = Kernel(factory(SandboxSpec(env={"GIVEN": "by the task"})))
    try:
        kernel.start(with_kernel=False)
        yield kernel
    finally:
        kernel.close()


def run(
    kernel: Kernel,
    command: str,
    *,
    timeout: float = 60.0,
    files: dict[str, str] | None = None,
    listener: Callable[[str], None] | None = None,
    **environment: str,
) -> CellResult:
    return kernel.run_program(command, environment, files or {}, timeout=timeout, listener=listener)


def test_a_program_has_files_variables_and_empty_input(sandbox_factory: SandboxFactory) -> None:
    with without_kernel(sandbox_factory) as kernel:
        heard: list[str] = []
        line = 'pwd; cat a/b.txt; echo "$GIVEN, $ADDED, $NO_PROXY"; cat; echo ä >&2; exit 3'
        result = run(kernel, line, files={"a/b.txt": "é\n"}, listener=heard.append, ADDED="more")
        told = f"{kernel.workdir}\né\nby the task, more, 127.0.0.1\nä\n"
        assert (result.outcome, result.exit_code, result.text) == (Outcome.ERROR, 3, told)
        assert (result.detail, "".join(heard)) == ("exit code 3", told)
        assert run(kernel, "kill -9 $$").exit_code == -9
        assert run(kernel, "yes | head -n 1").text == "y\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_program_needs_no_kernel_and_the_first_cell_starts_it(sandbox_factory: SandboxFactory) -> None:
    with without_kernel(sandbox_factory) as kernel:
        assert run(kernel, CHILDREN).text == "1\n"
        assert kernel.is_alive
        kernel.restart()
        assert run(kernel, CHILDREN).text == "1\n"
        assert printed(kernel, "import os; os.mkdir('sub'); os.chdir('sub'); print(1)") == "1\n"
        assert run(kernel, f"{CHILDREN}; pwd").text == f"2\n{kernel.workdir}/sub\n"


def test_programs_have_the_kernels_variables_and_say_why_they_were_not_started(
    sandbox_factory: SandboxFactory,
) -> None:
    with started(sandbox_factory(SandboxSpec(env={"NO_PROXY": "example.org"}))) as kernel:
        printed(kernel, "import os; os.environ['ADDED'] = 'by a cell'")
        kernel.pass_on_variables()
        result = run(kernel, 'echo "$ADDED, $NO_PROXY, $no_proxy"')
        # The model on the loopback needs no proxy.
        assert result.text == "by a cell, example.org,127.0.0.1, example.org,127.0.0.1\n"
        result = run(kernel, "echo \0")
        assert (result.outcome, result.exit_code) == (Outcome.ERROR, None)
        assert result.detail == "ValueError: embedded null byte"
        assert "IsADirectoryError" in run(kernel, "true", files={"/": ""}).detail


def test_a_program_that_timed_out_runs_until_everything_is_killed(sandbox_factory: SandboxFactory) -> None:
    with without_kernel(sandbox_factory) as kernel:
        first = run(kernel, "echo begun; sleep 0.6; echo ended > end; sleep 60", timeout=0.3)
        assert (first.outcome, first.text) == (Outcome.TIMED_OUT, "begun\n")
        second = kernel.wait_for_program(0.6)
        assert (second.outcome, second.text, second.exit_code) == (Outcome.TIMED_OUT, "begun\n", None)
        assert kernel.files.read("end") == b"ended\n"
        assert 0.8 < kernel.busy_seconds < 30
        kernel.kill()
        assert kernel.wait_for_program(30).exit_code == -9
        assert run(kernel, "echo again").text == "again\n"


def test_a_program_ends_before_the_processes_that_it_leaves_running(sandbox_factory: SandboxFactory) -> None:
    with without_kernel(sandbox_factory) as kernel:
        began = time.monotonic()
        # More than a pipe holds, and also after the next program.
        late = "head -c 300000 /dev/zero && echo late > late"
        result = run(kernel, f"(sleep 0.5; {late}; sleep 60) & echo done")
        assert (result.outcome, result.text) == (Outcome.OK, "done\n")
        assert run(kernel, "yes & echo $!").outcome is Outcome.OK
        assert time.monotonic() - began < 30
        assert until(lambda: "late" in {file.name for file in kernel.files.entries()})
        assert "\0" not in run(kernel, "echo next").text


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_flood_of_a_program_is_complete_and_takes_little_memory(sandbox_factory: SandboxFactory) -> None:
    heard: list[int] = []

    def slow(text: str) -> None:
        if not heard:
            time.sleep(1)
        heard.append(len(text))

    with without_kernel(sandbox_factory) as kernel:
        flood = f"head -c {FLOOD} /dev/zero | tr '\\0' x"
        result = run(kernel, f"{flood}; echo; grep VmHWM /proc/$PPID/status", listener=slow)
        peak = result.text.rpartition("VmHWM:")[2].split()
        assert peak[1] == "kB"
        assert int(peak[0]) < 150_000
        assert FLOOD < sum(heard) < FLOOD + 100
        assert FLOOD - 250_000 < result.omitted < FLOOD


def test_a_lost_sandbox_ends_a_program(sandbox_factory: SandboxFactory, remains: Remains) -> None:
    sandbox = sandbox_factory(SandboxSpec())
    kernel = Kernel(sandbox)
    try:
        kernel.start(with_kernel=False)
        result = run(kernel, "echo last; sleep 0.3; kill -9 $PPID; sleep 60")
        assert (result.outcome, result.text, result.exit_code) == (Outcome.SANDBOX_LOST, "last\n", None)
        assert run(kernel, "true").outcome is Outcome.SANDBOX_LOST
        busy = kernel.busy_seconds
        time.sleep(0.01)
        assert kernel.busy_seconds == busy
    finally:
        kernel.close()
    assert remains(sandbox) == []
