"""script_executed of cells in a real kernel, whose processes are observed."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.metrics.script_executed import script_executed
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Entrypoint
from tests.kernel.conftest import FORKS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")

# Half of the time that the script takes: under load, a process is seen late.
TRAIN = Entrypoint(path="repo/train.py", min_seconds=0.5)
WORK = "import time, sys\nif '--help' in sys.argv: sys.exit()\ntime.sleep(1.0)\nprint('done')\n"
FILES = {
    "repo/train.py": WORK,
    "repo/run.sh": "echo begin\npython train.py\n",
    "repo/bin/python": "#!/bin/sh\nsleep 1\n",
    "repo/other/train.py": WORK,
    "repo/pkg/mod.py": WORK,
    "repo/launch.py": "import subprocess, sys\nsubprocess.run([sys.executable, *sys.argv[1:]], check=True)\n",
    "repo/fails.py": WORK + "sys.exit(3)\n",
    "repo/crashes.py": WORK + "raise ValueError\n",
}
# Descriptor 255 is where bash has its script.
INHERIT = "with open('train.py') as f: os.dup2(f.fileno(), 255)\n"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox(run=FORKS)) as kernel:
        kernel.execute("import os\nfor d in ('bin', 'other', 'pkg'): os.makedirs('repo/' + d)")
        for path, text in FILES.items():
            kernel.files.write(path, text.encode())
        imports = "import os, sys, subprocess, time, asyncio, runpy"
        kernel.execute(f"%cd repo\n{imports}\nos.chmod('bin/python', 0o755)")
        yield kernel


def score(kernel: Kernel, *cells: str, path: str = TRAIN.path, least: float = 0.5) -> float | None:
    steps = [Step(number=0, origin="pre_execute", action=Action(type="execute", content="%cd repo"))]
    for number, cell in enumerate(cells, 1):
        result = kernel.execute(cell)
        assert result.processes is not None
        steps.append(
            Step(
                number=number,
                origin="agent",
                action=Action(type="execute", content=cell),
                outcome=result.outcome.value,
                outputs=result.outputs,
                processes=[asdict(process) for process in result.processes],
                seconds=result.seconds,
            )
        )
    return script_executed(steps, TRAIN.model_copy(update={"path": path, "min_seconds": least}))


@pytest.mark.parametrize(
    "cell",
    [
        "!python train.py --epochs 3 2>&1 | tee log",
        "!bash run.sh",
        "!echo train.py | xargs python -u",
        "!python launch.py -u train.py",
        "!python < train.py",
        "p = await asyncio.create_subprocess_exec(sys.executable, 'train.py'); await p.wait()",
        "%run train.py",
        "exec(open('train.py').read())",
    ],
)
def test_run_of_the_entrypoint_counts(kernel: Kernel, cell: str) -> None:
    assert score(kernel, cell) == 1.0


@pytest.mark.parametrize(
    "cell",
    [
        "if False:\n    !python train.py\ntime.sleep(1.0)",
        "!timeout 0.2 python train.py; sleep 0.8",
        "!python train.py",
        "!PATH=$PWD/bin:$PATH python train.py",
        "!python -c 'import time; time.sleep(1.0)' < train.py",
        "!python train.py --help; sleep 0.8",
        "!tail -f train.py & sleep 0.8; kill $!",
        "!cp $(which tail) python3; sleep 0.8 & ./python3 --pid=$! -f train.py; rm python3",
        "!cp train.py copy.py; python copy.py",
        "!python other/train.py",
        "!mkdir -p d/train.py; echo 'import time; time.sleep(1.0)' > d/train.py/__main__.py\n"
        "_ = subprocess.run(['python', 'train.py'], cwd='d')",
        "!cp $(which tail) bash; sleep 0.8 & ./bash --pid=$! -f < train.py",
        INHERIT + "subprocess.run(['python', '-c', 'import time; time.sleep(1.0)'], pass_fds=[255])",
        "_ = subprocess.run(['python', '-X', 'a' * 4090, '-c', 'import time; time.sleep(1.0)'],"
        " stdin=open('train.py'))",
        "!ln -s train.py timeit.py; python -I -m timeit -n1 -r1 'import time; time.sleep(1.0)'; rm timeit.py",
    ],
)
def test_what_only_looks_like_a_run_does_not_count(kernel: Kernel, cell: str) -> None:
    # That run counts, but not for an entrypoint that has to take a minute.
    assert score(kernel, cell, least=60.0 if cell == "!python train.py" else 0.5) == 0.0


@pytest.mark.parametrize(
    ("cell", "path"),
    [
        ("!python fails.py || true", "repo/fails.py"),
        ("!python crashes.py\nfrom IPython.display import clear_output; clear_output()", "repo/crashes.py"),
        ("%run crashes.py", "repo/crashes.py"),
    ],
)
def test_run_that_failed_does_not_count(kernel: Kernel, cell: str, path: str) -> None:
    assert score(kernel, cell, path=path) == 0.0


def test_module_and_shell_script_count(kernel: Kernel) -> None:
    assert score(kernel, "!python -m pkg.mod", path="repo/pkg/mod.py") == 1.0
    assert score(kernel, "!chmod +x run.sh; ./run.sh", path="repo/run.sh") == 1.0
    # What a shell has inherited at that descriptor is not its script.
    cell = INHERIT.replace("train.py", "run.sh")
    cell += "subprocess.run(['bash', '-c', 'sleep 0.8; true'], pass_fds=[255])"
    assert score(kernel, cell, path="repo/run.sh") == 0.0


def test_background_run_counts_in_the_cell_in_which_it_has_ended(kernel: Kernel) -> None:
    begin = "background = subprocess.Popen([sys.executable, 'train.py'])"
    assert score(kernel, begin, "time.sleep(1.2)", "background.wait()") == 1.0


OTHERS = r"""%%bash
printf 'sleep 1; print "done\n";' > train.pl && printf 'sleep 1; exit 3' > fails.pl
printf '#!/usr/bin/perl\nsleep 1' > direct.pl && chmod +x direct.pl
printf 'setTimeout(() => console.log("done"), 1500)' > train.js
mkdir -p build && cp $(which sleep) build/train && cp $(which sleep) build/train.pl"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "path", "executed"),
    [
        ("!perl -w train.pl", "repo/train.pl", 1.0),
        ("!./direct.pl", "repo/direct.pl", 1.0),
        ("!node train.js --epochs 1", "repo/train.js", 1.0),
        ("!build/train 1.5", "repo/build/train", 1.0),
        ("!perl fails.pl", "repo/fails.pl", 0.0),
        ("!perl -e 'sleep 1' train.pl", "repo/train.pl", 0.0),
        ("!node -e 'setTimeout(() => 0, 900)' train.js", "repo/train.js", 0.0),
        ("!tail -f train.pl & sleep 0.9; kill $!", "repo/train.pl", 0.0),
        ("!python -c 'import time; time.sleep(0.9)' train.pl", "repo/train.pl", 0.0),
        ("!build/train.pl 0.9", "repo/build/train.pl", 0.0),
        ("!timeout 0.7 build/train 9", "repo/build/train", 0.0),
    ],
)
def test_a_script_of_another_language_or_a_program_counts_by_its_process(
    kernel: Kernel, cell: str, path: str, executed: float
) -> None:
    if not all(map(shutil.which, ("perl", "node"))):
        pytest.skip("needs perl and node")
    kernel.execute(OTHERS)
    kernel.expect_script(path, b"")
    assert score(kernel, cell, path=path) == executed


GIT = "git -c user.name=n -c user.email=e"
CLONES = f"""%%bash
git init -q origin && cd origin && mkdir -p src/deep tests && cp ../repo/train.py src/deep/train.py
cp ../repo/train.py src/test.py && cp ../repo/train.py tests/test.py && cp ../repo/train.py src/run.py
git add . && {GIT} commit -qm one && cd .. && git clone -q --depth 1 file://$PWD/origin clone
mkdir -p clone/build && cp repo/train.py clone/build && cp repo/train.py clone/build/new.py"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "name", "executed"),
    [
        ("!cd clone && python src/deep/train.py", "train.py", 1.0),
        ("!cd clone/src/deep && python train.py", "train.py", 1.0),
        ("!cd clone && python build/train.py", "train.py", 0.0),
        ("!cd clone && python src/test.py", "test.py", 0.0),
        ("!cd clone && python build/new.py", "new.py", 0.0),
        ("!cd clone && cp /dev/null .git/index && python src/run.py", "run.py", 0.0),
    ],
)
def test_a_bare_name_is_the_only_file_of_that_name_that_a_clone_tracks(
    kernel: Kernel, cell: str, name: str, executed: float
) -> None:
    kernel.execute("%cd -q " + kernel.workdir)
    kernel.execute(CLONES)
    kernel.expect_script(name, b"")
    assert score(kernel, cell, path=name) == executed
    kernel.execute("!rm -rf origin clone\n%cd -q repo")
