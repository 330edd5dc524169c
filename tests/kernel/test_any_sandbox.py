"""What the bridge does alike in every sandbox, tried in a local one: the conformance suite has the rest."""

import hashlib
import io
import tarfile
import time
from pathlib import Path

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.programs import run
from pytest_super.kernel.conformance.support import kernel, printed, shared_kernel, started, until
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from tests.kernel.conftest import FORKS

__all__ = ["kernel", "shared_kernel"]


@pytest.fixture(scope="module")
def sandbox_factory() -> object:
    return lambda _: LocalSandbox(run=FORKS)


def test_output_that_is_not_utf8_is_replaced(shared_kernel: Kernel) -> None:
    assert printed(shared_kernel, "import os; n = os.write(1, b'a\\xffb\\n')") == "a\ufffdb\n"
    assert printed(shared_kernel, r"!printf 'a\377b\n'").replace("\ufffd", "?") == "a?b\n"
    assert printed(shared_kernel, r"print('a\udcffb')").startswith("a")


def test_the_end_comes_after_all_output(kernel: Kernel) -> None:
    sizes: list[int] = []
    code = "import os, sys, time\nprint('x' * 10_000_000)\nsys.stdout.flush()\ntime.sleep(1)\nos._exit(3)"
    death = kernel.execute(code, timeout=120, listener=lambda text: sizes.append(len(text)))
    assert (death.outcome, sum(sizes)) == (Outcome.KERNEL_DIED, 10_000_001)


def test_a_kernel_that_is_stopped_while_traced_has_not_ended(kernel: Kernel) -> None:
    # Its parent, the bridge, becomes its tracer, and is told of each stop.
    printed(kernel, "import ctypes, os, signal\nctypes.CDLL(None).ptrace(0, 0, 0, 0)")
    assert kernel.execute("os.kill(os.getpid(), signal.SIGSTOP)", timeout=1).outcome is Outcome.TIMED_OUT
    kernel.restart()
    assert printed(kernel, "1") == "1\n"


def test_background_processes_delay_no_cell_and_only_cells_take_time(kernel: Kernel) -> None:
    printed(kernel, "import subprocess\nchild = subprocess.Popen('sleep 0.6; echo late', shell=True)")
    assert printed(kernel, "print(child.poll())") == "None\n"
    before = kernel.busy_seconds
    result = kernel.execute("child.wait()\nprint('now')", timeout=30)
    assert "late\n" in result.text
    time.sleep(0.3)
    assert kernel.busy_seconds - before == pytest.approx(result.seconds)


def test_names_that_are_not_utf8_can_be_listed_and_read(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "with open(b'caf\\xe9', 'w') as file: n = file.write('au lait')")
    (name,) = [entry.name for entry in shared_kernel.files.entries() if entry.name.startswith("caf")]
    assert shared_kernel.files.read(name) == b"au lait"


def test_devices_and_pipes_are_refused_and_delay_nothing(shared_kernel: Kernel) -> None:
    code = "import os; os.mkfifo('alone'); os.mkfifo('held'); held = os.open('held', os.O_RDWR)"
    printed(shared_kernel, code)
    for name in ("/dev/zero", "alone", "held"):
        with pytest.raises(OSError, match=name):
            shared_kernel.files.read(name)
    for name in ("alone", "held"):
        with pytest.raises(OSError, match=name):
            shared_kernel.files.write(name, b"x")


def test_a_file_is_overwritten_in_place(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "!echo old > script.sh; chmod 750 script.sh; ln -s script.sh link")
    shared_kernel.files.write("link", b"new")
    assert printed(shared_kernel, "!stat -c '%a %F' script.sh link; cat script.sh") == (
        "750 regular file\n777 symbolic link\nnew"
    )


def test_what_python_compiled_is_not_uploaded(shared_kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "tree" / "__pycache__").mkdir(parents=True)
    shared_kernel.files.upload(tmp_path, "uploaded")
    assert shared_kernel.files.entries("uploaded/tree") == []


def test_digests_are_of_regular_files_and_follow_no_link(shared_kernel: Kernel) -> None:
    make = "!mkdir -p tree/sub; cd tree; printf abc > a; printf x > sub/run.sh; chmod +x sub/run.sh; "
    printed(shared_kernel, make + "ln -s a link; ln -s sub folder; ln -s loop loop; mkfifo pipe")
    found = {file.name: file for file in shared_kernel.files.digests("tree").files}
    assert found.keys() == {"a", "sub/run.sh"}
    assert (found["a"].size, found["a"].sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    assert [found[name].is_executable for name in ("a", "sub/run.sh")] == [False, True]
    assert [file.name for file in shared_kernel.files.digests("tree/a").files] == [""]
    with pytest.raises(OSError, match="tree/link"):
        shared_kernel.files.digests("tree/link")
    assert "loop" in [entry.name for entry in shared_kernel.files.entries("tree")]


def test_an_archive_is_unpacked_over_whatever_is_in_its_place(shared_kernel: Kernel, tmp_path: Path) -> None:
    names = ["folder", "file/a", "nowhere/a", "loop/a", "link", "sub/folder", f"{'d/' * 1100}a"]
    printed(
        shared_kernel,
        "!mkdir -p over/folder/a over/sub/folder && cd over && touch file target && "
        "ln -s /nonexistent/x nowhere && ln -s loop loop && ln -s target link",
    )
    archive = tmp_path / "files.tar"
    with tarfile.open(archive, "w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"new"))
    shared_kernel.files.unpack(archive, "over")
    for name in names:
        assert shared_kernel.files.read(f"over/{name}") == b"new"
    assert shared_kernel.files.read("over/target") == b""
    for path in ("over", "never"):
        shared_kernel.files.remove(path)
    assert printed(shared_kernel, "!ls -d over 2>/dev/null") == ""


def test_programs_have_the_kernels_variables(kernel: Kernel) -> None:
    printed(kernel, "import os; os.environ.update(ADDED='by a cell', NO_PROXY='example.org')")
    kernel.pass_on_variables()
    # The model on the loopback needs no proxy.
    told = "by a cell, example.org,127.0.0.1, example.org,127.0.0.1\n"
    assert run(kernel, 'echo "$ADDED, $NO_PROXY, $no_proxy"').text == told


def test_a_program_ends_before_the_processes_that_it_leaves_running() -> None:
    with started(LocalSandbox(run=FORKS), with_kernel=False) as kernel:
        # More than a pipe holds, and also after the next program.
        late = "head -c 300000 /dev/zero && echo late > late"
        result = run(kernel, f"(sleep 0.5; {late}; sleep 60) & echo done", timeout=30)
        assert (result.outcome, result.text) == (Outcome.OK, "done\n")
        assert run(kernel, "yes & echo $!").outcome is Outcome.OK
        assert until(lambda: "late" in {file.name for file in kernel.files.entries()})
        assert "\0" not in run(kernel, "echo next").text


def test_a_flood_of_a_program_is_complete_and_takes_little_memory() -> None:
    heard: list[int] = []

    def slow(text: str) -> None:
        time.sleep(0 if heard else 1)
        heard.append(len(text))

    with started(LocalSandbox(), with_kernel=False) as kernel:
        flood = "head -c 100000000 /dev/zero | tr '\\0' x; echo; grep VmHWM /proc/$PPID/status"
        peak = run(kernel, flood, listener=slow).text.rpartition("VmHWM:")[2].split()
    assert (int(peak[0]) < 75_000, peak[1]) == (True, "kB")
    assert 100_000_000 < sum(heard) < 100_000_100


def test_lines_that_a_shell_command_ends_in_its_own_way_are_one_landmark(shared_kernel: Kernel) -> None:
    ends = {"LF": r"\n", "CRLF": r"\r\n", "CR": r"\r", "CR CRLF": r"\r\r\n"}
    matcher = LandmarkMatcher([f"{name}: training done metrics" for name in ends])
    for name, end in ends.items():
        cell = rf"!printf '{name}: training{end}done\nmetrics\n'"
        matcher.begin_cell(cell)
        shared_kernel.execute(cell, listener=matcher.feed)
        matcher.end_cell()
    assert matcher.hits == [True] * len(ends)
