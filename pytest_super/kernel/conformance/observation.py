"""Which processes have run inside, and that code inside cannot change what is reported."""

from __future__ import annotations

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import SandboxFactory, isolating, printed, started, until
from pytest_super.kernel.http_requests import Reply
from pytest_super.tasks.sandbox_spec import SandboxSpec

SCRIPT = "import sys, time; time.sleep(0.8); sys.exit(3)"


def test_process_of_a_script_is_observed_to_its_end(shared_kernel: Kernel) -> None:
    shared_kernel.files.write("observed.py", SCRIPT.encode())
    result = shared_kernel.execute("import subprocess\nsubprocess.run(['python3', 'observed.py'])")
    if result.processes is None:
        pytest.skip("processes are observed on Linux only")
    [process] = [one for one in result.processes if "observed.py" in one.files.values()]
    assert process.is_python
    assert process.seconds is not None
    assert process.seconds >= 0.8
    # None before Linux 6.15.
    assert process.status in (3 << 8, None)


def test_what_a_cell_leaves_running_is_metered(shared_kernel: Kernel) -> None:
    if shared_kernel.execute("1").processes is None:
        pytest.skip("processes are observed on Linux only")
    used: list[float] = []
    shared_kernel.meter(used.append)
    code = "import subprocess\nburner = subprocess.Popen(['sh', '-c', 'while :; do :; done'])"
    shared_kernel.execute(code)
    assert until(lambda: sum(used) > 0.2, 60)
    shared_kernel.execute("burner.kill(); burner.wait()")


def test_code_inside_cannot_read_or_write_the_memory_of_the_bridge(sandbox_factory: SandboxFactory) -> None:
    code = "import os\ntry: open(f'/proc/{os.getppid()}/mem', 'rb+')\nexcept OSError as e: print(e.strerror)"
    with started(isolating(sandbox_factory)) as kernel:
        assert printed(kernel, code) == "Permission denied\n"


def test_code_inside_cannot_write_to_the_host_in_place_of_the_bridge(sandbox_factory: SandboxFactory) -> None:
    # Into each open end of the sandbox's first process: by its name, and by pidfd_getfd.
    write = """
import ctypes, os
def named(number): return os.open(f"/proc/1/fd/{number}", os.O_WRONLY)
def copied(number): return ctypes.CDLL(None).syscall(438, os.pidfd_open(1), number, 0)
for number in (0, 1):
    for way in (named, copied):
        try: os.write(way(number), bytes(100))
        except OSError: pass
"""
    with started(isolating(sandbox_factory)) as kernel:
        results = [kernel.execute(code, timeout=30) for code in (write, "1")]
        assert [(result.outcome, result.dropped) for result in results] == [(Outcome.OK, {})] * 2


def test_code_inside_cannot_put_modules_into_the_bridge(sandbox_factory: SandboxFactory) -> None:
    plant = """
for name in ("socketserver", "http", "select", "subprocess", "shutil", "tarfile"):
    with open(f"{name}.py", "w") as file:
        file.write("open('imported', 'a').write(__name__)")
"""
    with started(sandbox_factory(SandboxSpec())) as kernel:
        printed(kernel, plant)
        assert kernel.serve(lambda _: Reply(status=200, body=b""))
        kernel.files.remove("select.py")
        assert "imported" not in [entry.name for entry in kernel.files.entries()]
