"""The ends of kernels and sandboxes: the cause is reported and nothing is left behind."""

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import (
    IGNORES_INTERRUPTS,
    Remains,
    SandboxFactory,
    limited,
    printed,
    started,
    still_works,
    until,
)
from pytest_super.tasks.sandbox_spec import SandboxSpec


def assert_dead_until_restart(kernel: Kernel, death: CellResult, why: str) -> None:
    assert (death.outcome, death.detail) == (Outcome.KERNEL_DIED, why)
    after = kernel.execute("print('lost')", timeout=30)
    assert after.outcome is Outcome.KERNEL_DIED
    assert why in after.detail
    kernel.restart()
    assert still_works(kernel)


def test_a_kernel_that_ends_says_why_and_loses_its_state(kernel: Kernel) -> None:
    printed(kernel, "state = 1")
    death = kernel.execute("import os; os._exit(3)", timeout=30)
    assert_dead_until_restart(kernel, death, "exit code 3")
    assert kernel.execute("state").detail == "NameError: name 'state' is not defined"
    # ipykernel sends buffered output within 0.2 seconds.
    code = "import os, signal, time\nprint('last words')\ntime.sleep(1)\nos.kill(os.getpid(), signal.SIGKILL)"
    death = kernel.execute(code, timeout=30)
    assert (death.outcome, death.detail) == (Outcome.KERNEL_DIED, "killed by signal 9")
    assert death.text == "last words\n"


def test_out_of_memory_is_named(sandbox_factory: SandboxFactory) -> None:
    with started(limited(sandbox_factory, memory="400m")) as kernel:
        death = kernel.execute("hog = []\nwhile True: hog.append(bytearray(b'x') * 10_000_000)", timeout=120)
        if death.outcome is Outcome.SANDBOX_LOST:
            assert "out of memory" in death.detail
        else:
            assert_dead_until_restart(kernel, death, "out of memory")


def test_a_fork_bomb_stays_inside_or_ends_the_sandbox(sandbox_factory: SandboxFactory) -> None:
    with started(limited(sandbox_factory, pids=40), with_kernel=False) as kernel:
        # Twice as many in each tenth of a second: faster, it could take all processes of the machine.
        bomb = "import os, time\nwhile 1:\n    try: os.fork()\n    except OSError: pass\n    time.sleep(.1)"
        result = kernel.run_program("python3 bomb.py", {}, {"bomb.py": bomb}, timeout=1)
        if result.outcome is Outcome.SANDBOX_LOST:
            return
        kernel.restart()
        # A sandbox without control groups can have been ended meanwhile.
        assert kernel.run_program("true", {}, {}, timeout=60).outcome in (Outcome.OK, Outcome.SANDBOX_LOST)


def test_a_full_disk_is_an_error_or_the_end_of_the_sandbox(sandbox_factory: SandboxFactory) -> None:
    with started(limited(sandbox_factory, disk="64m")) as kernel:
        code = "import time\nfile = open('big', 'wb', 0)\nwhile 1: file.write(bytes(10**6)); time.sleep(0.01)"
        result = kernel.execute(code, timeout=120)
        assert result.outcome in (Outcome.ERROR, Outcome.SANDBOX_LOST)
        assert "space" in result.detail or "disk" in result.detail


def test_close_ends_everything(sandbox_factory: SandboxFactory, remains: Remains) -> None:
    sandbox = sandbox_factory(SandboxSpec())
    with started(sandbox) as kernel:
        printed(
            kernel,
            "import subprocess\nfor command in (['sleep', '600'], ['setsid', 'sleep', '600'],"
            " ['sh', '-c', 'setsid nohup sleep 600 & exit']):\n    child = subprocess.Popen(command)",
        )
        kernel.execute(IGNORES_INTERRUPTS, timeout=0.2)
    kernel.close()
    sandbox.close()
    assert until(lambda: remains(sandbox) == []), remains(sandbox)
    never_opened = sandbox_factory(SandboxSpec())
    never_opened.close()
    never_opened.close()


def test_the_bridge_killed_from_inside_is_a_lost_sandbox(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec())) as kernel:
        result = kernel.execute(
            "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"
        )
        assert result.outcome is Outcome.SANDBOX_LOST
        assert result.detail
        assert kernel.execute("1").outcome is Outcome.SANDBOX_LOST
