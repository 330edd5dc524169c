"""What an observation says of cells that did not do what they seem to have done, in a real kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import until
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.trial.observation import observation_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel(LocalSandbox())
    kernel.start()
    yield kernel
    kernel.close()


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


def test_text_that_utf_8_cannot_encode_is_shown_with_replacements(kernel: Kernel) -> None:
    failed = observation_of(
        kernel.execute("print(chr(0xD800))\nprint('after')\nraise ValueError('of ' + chr(0xD800))")
    )
    assert failed.startswith("?\nafter\n")
    assert failed.endswith("\nValueError: of ?\n")


def test_an_error_that_the_kernel_does_not_show_is_named(kernel: Kernel) -> None:
    hide = "shown, ip._showtraceback = ip._showtraceback, lambda *_: None"
    failed = kernel.execute(f"ip = get_ipython()\n{hide}\n1 / 0")
    kernel.execute("ip._showtraceback = shown")
    assert observation_of(failed) == "[The cell failed: ZeroDivisionError: division by zero]"
