"""Which signal the bridge's processes get when their parent ends."""

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux sends signals of this kind")
CODE = """
import sys
from pytest_super.kernel.inside import supervision as control

if before := int(sys.argv[1]):
    control.request(control.PR_SET_PDEATHSIG, before)
control.go_on_when_parent_ends()
found = (control.c_int * 1)()
control.request(control.PR_GET_PDEATHSIG, found)
print(found[0])
"""


@pytest.mark.parametrize(("asked_for", "expected"), [(0, signal.SIGCONT), (signal.SIGKILL, signal.SIGKILL)])
def test_a_provider_that_asks_for_the_end_gets_it(asked_for: int, expected: int) -> None:
    # bwrap --die-with-parent does; a mere SIGCONT gives code inside time to stop the bridge again.
    command = [sys.executable, "-c", CODE, str(int(asked_for))]
    assert int(subprocess.run(command, capture_output=True, check=True).stdout) == expected
