"""Errors, time-outs, interrupts and background processes: no output is lost or shown in the wrong cell."""

from __future__ import annotations

import time

import pytest

from pytest_super.kernel.cell import CellStateError, Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import IGNORES_INTERRUPTS, printed, still_works


def test_30_times_error_then_print(shared_kernel: Kernel) -> None:
    for number in range(30):
        failed = shared_kernel.execute(f"raise ValueError({number})", timeout=60)
        assert (failed.outcome, failed.detail) == (Outcome.ERROR, f"ValueError: {number}")
        assert printed(shared_kernel, f"print('after', {number})") == f"after {number}\n"


def test_an_interrupt_of_a_cell_that_has_yet_to_begin_is_not_lost(shared_kernel: Kernel) -> None:
    for _ in range(10):
        shared_kernel.execute("import time\nwhile True: time.sleep(0.01)", timeout=0)
        assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED


def test_20_times_timeout_interrupt_print(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "import time")
    for number in range(20):
        assert (
            shared_kernel.execute("while True: time.sleep(0.01)", timeout=0.05).outcome is Outcome.TIMED_OUT
        )
        assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
        assert printed(shared_kernel, f"print('after', {number})") == f"after {number}\n"


def test_a_second_wait_returns_the_rest(shared_kernel: Kernel) -> None:
    first = shared_kernel.execute(
        "import time\nprint('one', flush=True)\ntime.sleep(1.5)\nprint('two')", timeout=0.75
    )
    assert (first.outcome, first.text) == (Outcome.TIMED_OUT, "one\n")
    assert shared_kernel.is_running
    second = shared_kernel.wait(60)
    assert (second.outcome, second.text) == (Outcome.OK, "two\n")
    assert second.seconds > 1.4
    assert not shared_kernel.is_running


def test_one_cell_at_a_time(shared_kernel: Kernel) -> None:
    shared_kernel.execute("import time; time.sleep(1)", timeout=0.1)
    with pytest.raises(CellStateError, match="still runs"):
        shared_kernel.execute("print('lost')")
    shared_kernel.wait(60)
    with pytest.raises(CellStateError, match="no cell runs"):
        shared_kernel.wait(60)


def test_a_cell_that_awaits_can_be_interrupted(shared_kernel: Kernel) -> None:
    assert shared_kernel.execute("import asyncio\nawait asyncio.Event().wait()", timeout=1.5).is_running
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED


def test_a_cell_that_ignores_interrupts_goes_on_until_the_second_one_ends_the_kernel(kernel: Kernel) -> None:
    kernel.execute(IGNORES_INTERRUPTS, timeout=0.5)
    for outcome in (Outcome.TIMED_OUT, Outcome.KERNEL_DIED):
        result = kernel.interrupt(2)
        assert (result.outcome, result.text) == (outcome, "no\n")
        assert "interrupt" in result.detail
    assert not kernel.is_running
    kernel.restart()
    assert still_works(kernel)


def test_an_interrupt_reaches_child_processes(shared_kernel: Kernel) -> None:
    # Without isolation, other tests can have sleeping processes of their own.
    seconds = f"600.{time.time_ns()}"
    shared_kernel.execute(f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])", timeout=0.5)
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    assert f"sleep {seconds}" not in printed(
        shared_kernel, "!cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | tr -d '[]'; echo"
    )


def test_only_the_time_of_cells_is_counted(kernel: Kernel) -> None:
    before = kernel.busy_seconds
    result = kernel.execute("import time; time.sleep(0.5)", timeout=30)
    time.sleep(0.5)
    assert 0.5 <= result.seconds < 0.9
    assert kernel.busy_seconds - before == pytest.approx(result.seconds)


# Background


def test_background_processes_do_not_delay_a_cell(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "import subprocess\nchild = subprocess.Popen(['sleep', '600'])")
    assert printed(shared_kernel, "print(child.poll())") == "None\n"


def test_output_of_background_processes_comes_with_later_cells(kernel: Kernel) -> None:
    printed(kernel, "import subprocess\nchild = subprocess.Popen('sleep 0.3; echo late', shell=True)")
    assert "late\n" in printed(kernel, "child.wait()\nimport time; time.sleep(0.5)\nprint('now')")
