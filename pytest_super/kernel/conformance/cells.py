"""The output of cells, of any size, and their interrupts: no output is lost or shown in the wrong cell."""

import time

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import MEGABYTE, SandboxFactory, printed, started, still_works
from pytest_super.kernel.sandbox import FIXED_ENVIRONMENT
from pytest_super.tasks.sandbox_spec import SandboxSpec


def test_state_magics_and_shell_commands_work(kernel: Kernel) -> None:
    assert printed(kernel, "import os; print(os.getcwd())") == f"{kernel.workdir}\n"
    printed(kernel, "import math\ndef area(r): return math.pi * r * r")
    assert printed(kernel, "round(area(2), 3)") == "12.566\n"
    printed(kernel, "%%writefile greet.py\nimport sys\nprint('hello', sys.argv[1])")
    assert printed(kernel, "%run greet.py you") == "hello you\n"
    assert printed(kernel, "print(1)\nlen?\nprint(2)").startswith("1\nSignature: len(obj, /)\n")
    assert printed(kernel, "!echo out; echo err >&2") == "out\nerr\n"
    assert printed(kernel, "files = !echo one; echo two\nfiles") == "['one', 'two']\n"
    assert printed(kernel, "%%bash\nfor i in 1 2 3; do echo $i; done") == "1\n2\n3\n"
    assert "elapsed\n" in printed(kernel, "%mkdir -p deep/er\n%cd -q deep/er\n%env A=elapsed\n!echo $A")
    assert printed(kernel, "%pwd").strip("'\n").endswith("/deep/er")


def test_output_of_child_processes_is_complete_and_in_order(shared_kernel: Kernel) -> None:
    code = "import subprocess\nprint('a')\nr = subprocess.run(['echo', 'b{}'])\nprint('c')"
    results = [printed(shared_kernel, code.format(number)) for number in range(40)]
    assert results == [f"a\nb{number}\nc\n" for number in range(40)]
    # Characters of several bytes are in one piece, however they are read.
    child = 'print("é€😀" * 20000)'
    code = f"import subprocess, sys\nresult = subprocess.run([sys.executable, '-c', {child!r}])"
    assert printed(shared_kernel, code) == "é€😀" * 20_000 + "\n"


def test_30_megabytes_in_one_print(shared_kernel: Kernel) -> None:
    sizes: list[int] = []
    result = shared_kernel.execute(
        "print('<' + 'x' * 30_000_000 + '>')", timeout=120, listener=lambda text: sizes.append(len(text))
    )
    assert (result.outcome, sum(sizes)) == (Outcome.OK, 30_000_003)
    assert result.text.startswith("<xx")
    assert result.text.endswith("xx>\n")
    assert result.omitted > 29 * MEGABYTE
    assert max(sizes) < MEGABYTE
    assert still_works(shared_kernel)


def test_a_flood_can_be_interrupted(shared_kernel: Kernel) -> None:
    assert shared_kernel.execute("while True: print('x' * 1000)", timeout=0.3).is_running
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    assert still_works(shared_kernel)


def test_errors_and_interrupts_leave_the_next_cells_output_alone(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "import time")
    for number in range(6):
        failed = shared_kernel.execute(f"raise ValueError({number})", timeout=60)
        assert (failed.outcome, failed.detail) == (Outcome.ERROR, f"ValueError: {number}")
        assert printed(shared_kernel, f"print('after', {number})") == f"after {number}\n"
        # Every other cell has yet to begin when it is interrupted.
        timeout = 0.05 * (number % 2)
        assert shared_kernel.execute("while True: time.sleep(0.01)", timeout=timeout).is_running
        assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
        assert printed(shared_kernel, f"print('then', {number})") == f"then {number}\n"


def test_cells_that_await_and_child_processes_can_be_interrupted(shared_kernel: Kernel) -> None:
    assert shared_kernel.execute("import asyncio\nawait asyncio.Event().wait()", timeout=1.5).is_running
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    # Without isolation, other tests can have sleeping processes of their own.
    seconds = f"600.{time.time_ns()}"
    shared_kernel.execute(f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])", timeout=0.5)
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    assert f"sleep {seconds}" not in printed(
        shared_kernel, "!cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | tr -d '[]'; echo"
    )


def test_fixed_variables_are_set_and_a_tasks_own_override_them(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec(env={"TZ": "ABC5", "OWN": "1"}))) as kernel:
        names = [*FIXED_ENVIRONMENT, "OWN"]
        code = f"import os; print({{name: os.environ.get(name) for name in {names}}})"
        assert printed(kernel, code) == f"{ {**FIXED_ENVIRONMENT, 'TZ': 'ABC5', 'OWN': '1'} }\n"
        effect = "import sys, time; print(time.tzname[0], sys.flags.hash_randomization)"
        assert printed(kernel, effect) == "ABC 0\n"
