"""What runs between cells is metered, and stopped when compute runs out."""

import os
import queue
import sys
import time
from collections.abc import Iterator

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.inside import processes
from pytest_super.kernel.inside.processor_time import ProcessorTime
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.tasks.public_task import public_part
from pytest_super.tasks.task import Limits, Task
from pytest_super.trial.budget import Budget
from pytest_super.trial.observation import ONLY_SUBMIT
from pytest_super.trial.trial import Trial
from tests.kernel.conftest import FORKS
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")

SETUP = """
import socket, subprocess, sys, threading, time
def begin(code):
    return subprocess.Popen([sys.executable, "-c", code])
def burn():
    while is_burning: time.time()
"""
BURN = "while True: pass"
SERVE = """
server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "0"], stdout=subprocess.PIPE)
server.stdout.readline()
sleeper = subprocess.Popen(["sleep", "600"])
"""
HIDE = """
import os, shutil, subprocess, tempfile, time
os.chdir(tempfile.mkdtemp())
open("data", "w").close()
def copy(name):
    return shutil.copy(shutil.which("tail"), name)
"""
# A file that has the name of a pipe, in the folder of the bridge.
STDIN = """
import os, subprocess, time
read_end, _ = os.pipe()
open(f"pipe:[{os.fstat(read_end).st_ino}]", "w").close()
hidden = [subprocess.Popen(["tail"], stdin=read_end)]
time.sleep(1.2)
"""
# A pipe, which nobody writes to, that has the name of a removed program.
EXECUTABLE = f"""{HIDE}
hidden = [subprocess.Popen([os.path.abspath(copy("x")), "-f", "data"])]
os.unlink("x")
os.mkfifo("x (deleted)")
time.sleep(1.2)
"""
# Programs with large holes, through which a search takes long.
LARGE = f"""{HIDE}
for number in range(30):
    os.truncate(copy(f"x{{number}}"), 2**28)
hidden = [subprocess.Popen([f"./x{{number}}", "-f", "data"]) for number in range(30)]
time.sleep(1.2)
"""
STOP = "process.kill(); _ = process.wait()"


class Metered:
    """A kernel and the samples of its processor time."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._samples: queue.Queue[float] = queue.Queue()

    def meter(self) -> None:
        self.kernel.meter(self._samples.put)
        self.samples(1)

    def samples(self, count: int) -> float:
        """The sum of the next samples."""
        while not self._samples.empty():
            self._samples.get()
        return sum(self._samples.get(timeout=60) for _ in range(count))

    def await_use(self, seconds: float) -> float:
        used = 0.0
        while used < seconds:
            used += self._samples.get(timeout=60)
        return used


@pytest.fixture(scope="module")
def metered() -> Iterator[Metered]:
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.execute(SETUP)
        yield Metered(kernel)


def test_thread_that_works_on_after_its_cell_is_charged(metered: Metered) -> None:
    metered.meter()
    metered.kernel.execute("is_burning = True; threading.Thread(target=burn).start()")
    assert metered.await_use(0.4) >= 0.4
    metered.kernel.execute("is_burning = False")


def test_background_process_is_charged_once_also_when_it_has_ended(metered: Metered) -> None:
    metered.meter()
    metered.kernel.execute(f"process = begin({BURN!r})")
    assert metered.await_use(0.6) >= 0.6
    metered.kernel.execute(STOP)
    metered.samples(1)
    assert metered.samples(1) < 0.3


def test_a_sample_never_has_more_than_the_time_since_the_last_one() -> None:
    time_of = ProcessorTime(os.getpid())
    began = time.monotonic()
    assert time_of.used({}, began) == 0.0
    # As much as many processors use in a moment.
    stats = {os.getpid(): processes.statistics([os.getpid()])[os.getpid()]}
    used = time_of.used(stats, time.monotonic())
    assert 0.0 < used <= time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("hide", [STDIN, EXECUTABLE, LARGE], ids=["stdin", "executable", "large"])
def test_nothing_inside_stops_the_metering(metered: Metered, hide: str) -> None:
    metered.meter()
    metered.kernel.execute(f"{hide}\nprocess = begin({BURN!r})")
    assert metered.await_use(2) >= 2
    metered.kernel.execute(f"{STOP}\nfor process in hidden: {STOP}")


def test_a_sandbox_whose_processes_cannot_be_seen_any_more_is_lost() -> None:
    with started(LocalSandbox(run=FORKS)) as kernel:
        limit = "import os, resource, time; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (10, 10))"
        result = kernel.execute(f"{limit}; time.sleep(60)", timeout=20)
    assert result.outcome == "sandbox_lost"
    assert "Too many open files" in result.detail


def test_idle_server_and_sleeping_process_cost_nothing(metered: Metered) -> None:
    metered.meter()
    metered.kernel.execute(SERVE)
    # Their start.
    metered.samples(1)
    assert metered.samples(2) < 0.3
    metered.kernel.execute("for p in (server, sleeper): p.kill(); p.wait()")


@pytest.mark.slow
def test_what_ran_before_the_metering_is_free_also_when_it_has_ended(metered: Metered) -> None:
    metered.kernel.execute(f"process = begin({BURN!r})")
    metered.meter()
    assert metered.samples(6) < 0.3
    metered.kernel.execute(STOP)
    # What it has used since the last sample cannot be told from what its parent has used.
    assert metered.samples(2) < 1.5


def test_all_is_stopped_when_compute_runs_out_while_the_agent_thinks() -> None:
    matcher = LandmarkMatcher(["epoch 1", "epoch 9"])
    with started(LocalSandbox(run=FORKS)) as kernel:
        trial = Trial(
            public_part(Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": 42})),
            kernel=kernel,
            budget=Budget(Limits(compute=0.6, cell=0.3), tokens=1000),
            landmarks=matcher,
            record=lambda _: None,
        )
        trial.compute_limit.start()
        # In parts, because the text of the cell is no evidence.
        cell = f"{SETUP}print('epo' + 'ch 1')\nprocess = begin({BURN!r})\ntime.sleep(600)"
        assert trial.execute(cell).outcome == "timed_out"
        until(lambda: not kernel.is_alive)
        assert trial.execute("print('epo' + 'ch 9')").observation == ONLY_SUBMIT
        trial.submit(42)
        trial.close()
    assert (trial.stop_reason, trial.submission, matcher.hits) == ("submitted", 42, [True, False])
