"""Forks as local sandboxes: like interpreters of their own, and without anything of each other."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers import warm_kernels
from pytest_super.kernel.providers.local import LocalSandbox
from tests.kernel.conftest import FORKS
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are forks on Linux alone")

# What a cell can find out about the process in which it runs.
FACTS = r"""
import ctypes, gc, json, locale, multiprocessing.spawn, os, resource, signal, site, sys, threading, warnings
import jupyter_core.paths

ignored = {line.split()[0]: line.split()[1] for line in open("/proc/self/status") if line.startswith("Sig")}
facts = {
    "variables": {name: value for name, value in os.environ.items() if name not in (
        "JPY_PARENT_PID", "IPYTHONDIR", "PYTEST_SUPER_SANDBOX")},
    "names": sorted(os.environ),
    "flags": str(sys.flags),
    "path": sys.path,
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, *site.PREFIXES],
    "jupyter": jupyter_core.paths.ENV_JUPYTER_PATH,
    "executable": [sys.executable, multiprocessing.spawn.get_executable().decode()],
    "modules": sorted(set(sys.modules) - {"pwd"}),
    "main": sorted(name for name in vars(sys.modules["__main__"]) if not name.startswith("_i")),
    "finders": [str(type(finder)) for finder in sys.meta_path],
    "filters": len(warnings.filters),
    "threads": sorted(thread.name for thread in threading.enumerate()),
    "collector": [gc.isenabled(), gc.get_threshold()],
    "signals": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals() - {32, 33})],
    "blocked": ignored["SigBlk:"],
    "leads": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
    "descriptors": sorted(os.readlink(f"/proc/self/fd/{one}").partition(":")[0]
        for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")),
    "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
    "victim": open("/proc/self/oom_score_adj").read(),
    "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
    "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.__stdout__.encoding],
    "hash": hash("text"),
    "folder": os.getcwd(),
    "mask": os.umask(0o22),
}
print(json.dumps(facts))
"""


# The parent of the supervisor of the kernel's bridge.
SERVER = """
import os
process = os.getpid()
for _ in range(3):
    process = int(open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1])
print(process)
"""


def folder_of(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"super-{run}")


def printed(kernel: Kernel, code: str) -> str:
    return kernel.execute(code, timeout=60).text


def is_fork(kernel: Kernel) -> bool:
    return "forks/server.py" in printed(kernel, "print(open('/proc/self/cmdline').read())")


def began_as_fork(kernel: Kernel) -> bool:
    """By the bridge, for which no kernel has to start."""
    return "forks/server.py" in kernel.run_program("cat /proc/$PPID/cmdline", {}, {}, timeout=60).text


def facts_of(sandbox: LocalSandbox) -> Any:
    with started(sandbox) as kernel:
        return json.loads(printed(kernel, FACTS).replace(str(Path(sandbox.workdir).parent), "FOLDER"))


def test_a_fork_cannot_be_told_from_an_interpreter() -> None:
    own, fork = facts_of(LocalSandbox()), facts_of(LocalSandbox(run=FORKS))
    assert "FOLDER/venv/bin/python" in own["executable"]
    assert fork == own


def test_forks_have_nothing_of_each_other() -> None:
    change = "import os, sys, this; this.mark = os.environ['MARK'] = 'changed'; sys.path.append('/changed')"
    look = "print('this' in sys.modules, 'MARK' in os.environ, '/changed' in sys.path)"
    draw = "import random, uuid; print(random.random(), uuid.uuid4(), id(object()) > 0)"
    with started(LocalSandbox(run=FORKS)) as first:
        assert printed(first, change + "\n" + look).split("\n")[-2] == "True True True"
        with started(LocalSandbox(run=FORKS)) as second:
            assert printed(second, "import os, sys\n" + look) == "False False False\n"
            assert printed(first, draw).split()[:2] != printed(second, draw).split()[:2]


def test_nothing_but_programs_is_reported_as_a_process() -> None:
    fork = """
import os, time
if not (child := os.fork()):
    time.sleep(1)
    os._exit(0)
os.waitpid(child, 0)
"""
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.files.write("program.py", b"import time; time.sleep(60)")
        assert kernel.execute(fork, timeout=60).processes == []
        # It still runs at the end of a cell with a shell line, which is when processes are looked at.
        begin = "import subprocess\nchild = subprocess.Popen(['python', 'program.py'])\n!true"
        programs = kernel.execute(begin, timeout=60).processes
        assert [program.files for program in programs or []] == [{"1": "program.py"}]
        assert is_fork(kernel)


def test_exit_functions_run_when_the_kernel_ends_by_itself(tmp_path: Path) -> None:
    mark = tmp_path / "left"
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.execute(f"import atexit, pathlib; atexit.register(pathlib.Path({str(mark)!r}).touch)")
        death = kernel.execute("exit()", timeout=30)
        assert (death.outcome, death.detail) == (Outcome.KERNEL_DIED, "the cell ended it")
        until(mark.exists)


def test_a_restart_and_variables_of_the_task_need_an_interpreter() -> None:
    with started(LocalSandbox({"PYTHONOPTIMIZE": "1"}, run=FORKS)) as kernel:
        assert printed(kernel, "import sys; print(sys.flags.optimize)") == "1\n"
    with started(LocalSandbox(run=FORKS)) as kernel:
        assert is_fork(kernel)
        kernel.restart()
        assert not is_fork(kernel)


def test_when_the_process_is_gone_sandboxes_start_by_themselves() -> None:
    with started(LocalSandbox(run=f"gone-{FORKS}")) as kernel:
        assert began_as_fork(kernel)
        os.kill(int(printed(kernel, SERVER)), signal.SIGKILL)
        # What runs goes on.
        assert printed(kernel, "print(6 * 7)") == "42\n"
        with started(LocalSandbox(run=f"gone-{FORKS}"), with_kernel=False) as other:
            assert not began_as_fork(other)
    # Otherwise the next run removes it.
    shutil.rmtree(folder_of(f"gone-{FORKS}"))


def test_the_process_ends_when_it_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_kernels, "IDLE_SECONDS", 1.0)
    with started(LocalSandbox(run=f"idle-{FORKS}")) as kernel:
        server = Path("/proc", printed(kernel, SERVER).strip())
        folder = folder_of(f"idle-{FORKS}")
        # As long as there is a sandbox, however long it does nothing, it stays.
        time.sleep(1.5 * warm_kernels.IDLE_SECONDS)
        assert server.exists()
        assert folder.exists()
    until(lambda: not server.exists() and not folder.exists())
