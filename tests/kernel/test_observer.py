"""Which processes ran in a sandbox, by what its bridge observed."""

import os
import struct
import sys
import time
from collections.abc import Iterator
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel import link
from pytest_super.kernel.cell import CellResult
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.delivery import bridge_program
from pytest_super.kernel.inside import processes
from pytest_super.kernel.inside.process_image import ELF64, Image, has_symbol, layout_of
from pytest_super.kernel.observed import ObservedProcess
from pytest_super.kernel.providers.local import LocalSandbox
from tests.kernel.conftest import FORKS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")

SLEEP = "import time; time.sleep(0.8)\n"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.files.write("x.py", SLEEP.encode())
        kernel.files.write("fails.py", (SLEEP + "raise SystemExit(3)").encode())
        kernel.files.write("long.py", b"import time; time.sleep(60)")
        kernel.execute("import os, sys, subprocess; os.makedirs('pkg')")
        kernel.files.write("pkg/mod.py", SLEEP.encode())
        yield kernel


def named(result: CellResult, name: str) -> list[ObservedProcess]:
    assert result.processes is not None
    return [p for p in result.processes if any(path.endswith(name) for path in p.files.values())]


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        "!python x.py --lr 3",
        "!bash -c 'exec python x.py'",
        "!echo x.py | xargs python",
        "!nohup python x.py >log 2>&1 & wait",
        "!python < x.py",
        "pid = os.fork()\nif not pid: os.execv(sys.executable, ['python', 'x.py'])\nos.waitpid(pid, 0)",
        "!ln -sf x.py y.py; python y.py",
    ],
)
def test_script_is_observed_from_start_to_end(kernel: Kernel, cell: str) -> None:
    pythons = [process for process in named(kernel.execute(cell), "x.py") if process.is_python]
    (process,) = pythons
    assert process.seconds is not None
    # A busy machine sees the start late.
    assert 0.1 < process.seconds < 5
    assert process.status == 0
    assert process.executable is not None


def test_files_and_arguments_of_any_form_are_reported(kernel: Kernel) -> None:
    # As Rscript names a file; bytes that are not UTF-8; a module.
    command = "subprocess.run([sys.executable, 'x.py', '--file=long.py', b'\\xff\\xfe', '\\x1b[2J'])"
    (process,) = named(kernel.execute(command), "x.py")
    assert process.files == {"1": "x.py", "2": "long.py"}
    assert process.arguments[3:] == ["\udcff\udcfe", "\x1b[2J"]
    (process,) = named(kernel.execute("!python -m pkg.mod"), "mod.py")
    assert list(process.files) == ["2"]


@pytest.mark.parametrize(
    ("cell", "status"), [("!python fails.py || true", 3 << 8), ("!timeout -s KILL 1 python long.py", 9)]
)
def test_exit_status_does_not_depend_on_the_cell(kernel: Kernel, cell: str, status: int) -> None:
    result = kernel.execute(cell)
    (process,) = [p for p in named(result, "fails.py") + named(result, "long.py") if p.is_python]
    assert process.status == status


@pytest.mark.parametrize(
    "cell", ["if False:\n    !python x.py\nimport time; time.sleep(0.8)", "!sleep 1.2 # x.py"]
)
def test_what_did_not_run_is_not_observed(kernel: Kernel, cell: str) -> None:
    assert kernel.execute("1").processes == []
    assert [process for process in named(kernel.execute(cell), "x.py") if process.is_python] == []


def test_a_program_with_the_name_of_python_or_of_its_functions_is_not_one(kernel: Kernel) -> None:
    kernel.execute("!cp /bin/sleep python && printf 'Py_BytesMain libpython' >> python; touch 1.2")
    (process,) = named(kernel.execute("!./python 1.2; rm python"), "1.2")
    assert process.is_python is False


@given(st.binary(max_size=64), st.lists(st.integers(0, 2**64 - 1), max_size=60))
def test_the_names_of_a_program_of_any_form_can_be_searched(form: bytes, numbers: list[int]) -> None:
    data = ELF64 + form + struct.pack(f"<{len(numbers)}Q", *numbers)
    assert has_symbol(BytesIO(data), [b"libpython"]) is False
    assert has_symbol(BytesIO(b"#!" + data + b"libpython"), [b"libpython"]) is True


def test_forks_are_part_of_their_parent(kernel: Kernel) -> None:
    code = """
import multiprocessing, time
workers = [multiprocessing.Process(target=time.sleep, args=(1.2,)) for _ in range(3)]
[worker.start() for worker in workers]; [worker.join() for worker in workers]
"""
    kernel.files.write("forks.py", code.encode())
    assert len(named(kernel.execute("!python forks.py"), "forks.py")) == 1


def test_background_process_is_reported_when_it_has_ended(kernel: Kernel) -> None:
    begun = kernel.execute(
        "background = subprocess.Popen([sys.executable, 'long.py']); import time; time.sleep(0.8)"
    )
    (process,) = named(begun, "long.py")
    assert process.seconds is None
    # Not waited for: it stays a zombie.
    (ended,) = named(kernel.execute("background.kill(); time.sleep(0.1)"), "long.py")
    assert (ended.number, ended.status) == (process.number, 9)


def test_process_that_calls_exec_is_two(kernel: Kernel) -> None:
    kernel.files.write("execs.py", b"import os, time; time.sleep(1); os.execvp('sleep', ['sleep', '2'])")
    begin = time.monotonic()
    (process,) = named(kernel.execute("!python execs.py"), "execs.py")
    assert process.replaced
    assert process.seconds is not None
    assert process.seconds < time.monotonic() - begin - 0.9


def test_run_that_was_first_seen_between_fork_and_exec_has_its_whole_time(kernel: Kernel) -> None:
    run = "time.sleep(0.7); os.execv(sys.executable, ['python', 'x.py'])"
    cell = f"import time\npid = os.fork()\nif not pid: {run}\n_ = os.waitpid(pid, 0)"
    (process,) = named(kernel.execute(cell), "x.py")
    assert process.seconds is not None
    assert process.seconds >= 0.8


def test_arguments_read_after_an_exec_are_not_those_of_the_program_before_it() -> None:
    before = (b"1", b"1")
    assert Image(os.getpid(), before).layout == layout_of(processes.stat_of(os.getpid())) != before


def test_time_for_which_a_process_was_stopped_does_not_count(kernel: Kernel) -> None:
    cell = "%%bash\npython x.py & p=$!; sleep 0.6; kill -STOP $p; sleep 2; kill -CONT $p; wait"
    begin = time.monotonic()
    (process,) = named(kernel.execute(cell), "x.py")
    assert process.seconds is not None
    assert process.seconds < time.monotonic() - begin - 0.9


def test_restart_ends_what_ran(kernel: Kernel) -> None:
    result = kernel.execute("!python long.py", timeout=0.9)
    assert named(result, "long.py")[-1].seconds is None
    kernel.restart()
    (process,) = [p for p in named(kernel.execute("import os, sys, subprocess"), "long.py") if p.is_python]
    # Killed, or hung up by the end of its terminal.
    assert process.status in (1, 9)


def test_a_copy_that_another_argument_names_does_not_stand_for_a_changed_script(kernel: Kernel) -> None:
    kernel.execute("for folder in ('new/src', 'copy/src'): os.makedirs(folder)")
    kernel.files.write("copy/src/x.py", SLEEP.encode())
    kernel.files.write("new/src/x.py", b"import time as clock\nclock.sleep(0.8)\n")
    kernel.expect_script("src/x.py", SLEEP.encode())
    (process,) = named(kernel.execute("!python -X copy/src/x.py new/src/x.py"), "new/src/x.py")
    assert (process.changed, process.kept_lines) == (True, 0.0)


def test_a_python_is_reported_after_more_other_processes_than_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = bridge_program().replace(b"MOST_REPORTS = 2000", b"MOST_REPORTS = 3   ")
    monkeypatch.setattr(link, "bridge_program", lambda **_: program)
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.files.write("x.py", SLEEP.encode())
        result = kernel.execute("!for n in 1 2 3 4 5 6; do sleep 1 < x.py & done; wait; python x.py")
        assert [process.is_python for process in named(result, "x.py")] == [False] * 3 + [True]
