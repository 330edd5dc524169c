"""Errors, time-outs, interrupts and background processes: no output is lost or shown in the wrong cell."""

import time

import pytest

from pytest_super.kernel.cell import CellStateError, Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import IGNORES_INTERRUPTS, printed, still_works


def test_errors_and_interrupts_leave_the_next_cells_output_alone(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "import time")
    for number in range(15):
        failed = shared_kernel.execute(f"raise ValueError({number})", timeout=60)
        assert (failed.outcome, failed.detail) == (Outcome.ERROR, f"ValueError: {number}")
        assert printed(shared_kernel, f"print('after', {number})") == f"after {number}\n"
        # Every other cell has yet to begin when it is interrupted.
        timeout = 0.05 * (number % 2)
        assert shared_kernel.execute("while True: time.sleep(0.01)", timeout=timeout).is_running
        assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
        assert printed(shared_kernel, f"print('then', {number})") == f"then {number}\n"


def test_a_second_wait_returns_the_rest_and_no_other_cell_runs_meanwhile(shared_kernel: Kernel) -> None:
    first = shared_kernel.execute(
        "import time\nprint('one', flush=True)\ntime.sleep(1.5)\nprint('two')", timeout=0.75
    )
    assert (first.outcome, first.text) == (Outcome.TIMED_OUT, "one\n")
    assert shared_kernel.is_running
    with pytest.raises(CellStateError, match="still runs"):
        shared_kernel.execute("print('lost')")
    second = shared_kernel.wait(60)
    assert (second.outcome, second.text) == (Outcome.OK, "two\n")
    assert second.seconds > 1.4
    with pytest.raises(CellStateError, match="no cell runs"):
        shared_kernel.wait(60)
    assert not shared_kernel.is_running


def test_cells_that_await_and_child_processes_can_be_interrupted(shared_kernel: Kernel) -> None:
    assert shared_kernel.execute("import asyncio\nawait asyncio.Event().wait()", timeout=1.5).is_running
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    # Without isolation, other tests can have sleeping processes of their own.
    seconds = f"600.{time.time_ns()}"
    shared_kernel.execute(f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])", timeout=0.5)
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    assert f"sleep {seconds}" not in printed(
        shared_kernel, "!cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | tr -d '[]'; echo"
    )


def test_only_the_second_of_two_ignored_interrupts_ends_the_kernel(kernel: Kernel) -> None:
    kernel.execute(IGNORES_INTERRUPTS, timeout=0.5)
    for outcome in (Outcome.TIMED_OUT, Outcome.KERNEL_DIED):
        result = kernel.interrupt(2)
        assert (result.outcome, result.text) == (outcome, "no\n")
        assert "interrupt" in result.detail
    assert not kernel.is_running
    kernel.restart()
    assert still_works(kernel)


def test_background_processes_delay_no_cell_and_only_cells_take_time(kernel: Kernel) -> None:
    printed(kernel, "import subprocess\nchild = subprocess.Popen('sleep 0.6; echo late', shell=True)")
    assert printed(kernel, "print(child.poll())") == "None\n"
    before = kernel.busy_seconds
    result = kernel.execute("child.wait()\nimport time; time.sleep(0.5)\nprint('now')", timeout=30)
    assert "late\n" in result.text
    time.sleep(0.3)
    assert result.seconds >= 0.5
    assert kernel.busy_seconds - before == pytest.approx(result.seconds)
