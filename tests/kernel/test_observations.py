"""What an observation says of cells that did not do what they seem to have done, in a real kernel."""

import sys
from collections.abc import Iterator

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started, until
from pytest_super.kernel.providers.bubblewrap import BubblewrapSandbox
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from pytest_super.trial.observation import observation_of

LACKING = find_provider("bubblewrap").why_unavailable()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """In bubblewrap where that works: it has terminals of its own, as a container."""
    sandbox = LocalSandbox() if LACKING else BubblewrapSandbox(SandboxSpec(), SandboxSettings())
    with started(sandbox) as kernel:
        yield kernel


def begin(kernel: Kernel, code: str) -> None:
    """Run a cell that goes on until it is interrupted, and wait until it has printed `begun`."""
    heard: list[str] = []
    kernel.execute(code, timeout=0, listener=heard.append)
    assert until(lambda: "begun" in "".join(heard))


def test_an_interrupted_shell_line_says_that_the_lines_after_it_ran(kernel: Kernel) -> None:
    begin(kernel, "!echo begun; sleep 600\nprint('rest')")
    said = observation_of(kernel.interrupt(30))
    assert "rest\n[The cell was interrupted, and ran to its end: an interrupt ends a shell command" in said


def test_a_cell_that_still_runs_after_its_interrupted_shell_line_says_so(kernel: Kernel) -> None:
    begin(kernel, "!echo begun; sleep 600\nimport time; time.sleep(600)")
    assert "still running after the interrupt (an interrupt ends" in observation_of(kernel.interrupt(1))
    assert observation_of(kernel.interrupt(30)).endswith("\n[The cell was interrupted.]")


def test_what_the_kernel_cannot_show_of_an_error_is_replaced_or_named(kernel: Kernel) -> None:
    failed = observation_of(
        kernel.execute("print(chr(0xD800))\nprint('after')\nraise ValueError('of ' + chr(0xD800))")
    )
    assert failed.startswith("?\nafter\n")
    assert failed.endswith("\nValueError: of ?\n")
    hide = "shown, ip._showtraceback = ip._showtraceback, lambda *_: None"
    hidden = kernel.execute(f"ip = get_ipython()\n{hide}\n1 / 0")
    kernel.execute("ip._showtraceback = shown")
    assert observation_of(hidden) == "[The cell failed: ZeroDivisionError: division by zero]"


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")


@on_linux
def test_a_process_that_ends_with_its_shell_line_is_named(kernel: Kernel) -> None:
    result = kernel.execute("!(sleep 600 > log & echo $!)")
    named = f"terminal: process {result.text.strip()}"
    # On a busy machine it can end after its cell.
    assert named in observation_of(result) or until(lambda: named in observation_of(kernel.execute("pass")))


@on_linux
@pytest.mark.parametrize(
    "cell",
    [
        "import subprocess\nlog, command = open('log', 'w'), ['sleep', '600']\n"
        "child = subprocess.Popen(command, start_new_session=True, stdout=log)\n"
        "print(child.pid, file=open('pid', 'w'))",
        "%%bash\nsleep 600 > log 2>&1 &\necho $! > pid",
    ],
    ids=["Popen", "bash"],
)
def test_a_process_that_was_started_as_the_note_says_goes_on_and_is_not_named(
    kernel: Kernel, cell: str
) -> None:
    assert observation_of(kernel.execute(cell)) == ""
    begin(kernel, "import os, time\nprint('begun')\ntime.sleep(600)")
    kernel.interrupt(30)
    assert observation_of(kernel.execute("os.kill(int(open('pid').read()), 0)")) == ""


@on_linux
def test_a_prompt_that_nobody_answers_is_named_and_can_be_answered_as_the_note_says(kernel: Kernel) -> None:
    ask = """python -c "print('got', input('Proceed? begun '))" """
    begin(kernel, f"!{ask}")
    assert until(lambda: "interrupt stops it. python -c print('got'," in observation_of(kernel.wait(0)))
    kernel.interrupt(30)
    assert "got y" in observation_of(kernel.execute(f"!echo y | {ask}"))
    # A program that shows an unfinished line and computes is not said to wait for input.
    begin(kernel, "!printf begun; sleep 600")
    assert observation_of(kernel.wait(0)).endswith("continue_wait keeps waiting, interrupt stops it.]")
    kernel.interrupt(30)
