"""The output of cells, of any size."""

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


def test_output_that_is_not_utf8_is_replaced(shared_kernel: Kernel) -> None:
    assert printed(shared_kernel, "import os; n = os.write(1, b'a\\xffb\\n')") == "a\ufffdb\n"
    assert printed(shared_kernel, r"!printf 'a\377b\n'").replace("\ufffd", "?") == "a?b\n"
    assert printed(shared_kernel, r"print('a\udcffb')").startswith("a")
    assert still_works(shared_kernel)


def test_input_is_refused_clearly(shared_kernel: Kernel) -> None:
    result = shared_kernel.execute("name = input('who? ')", timeout=30)
    assert result.outcome is Outcome.ERROR
    assert result.detail.startswith("StdinNotImplementedError")
    assert still_works(shared_kernel)


def test_displays_are_output_and_show_their_last_state(shared_kernel: Kernel) -> None:
    result = shared_kernel.execute(
        "from IPython.display import clear_output, display, HTML\n"
        "display({'loss': 0.5}); display(HTML('<b>x</b>')); 42"
    )
    kinds = [output["output_type"] for output in result.outputs]
    assert kinds == ["display_data", "display_data", "execute_result"]
    assert result.text == "{'loss': 0.5}\n<IPython.core.display.HTML object>\n42\n"
    code = "handle = display('one', display_id=True)\nfor i in range(5): handle.update(i)\nprint('end')"
    assert printed(shared_kernel, code) == "4\nend\n"
    assert printed(shared_kernel, "for i in range(9):\n    clear_output(wait=True); print(i)") == "8\n"
    bar = "print(f'\\r{i}% |{i // 10 * chr(35)}', end='', flush=True)"
    code = f"for i in range(101): {bar}\nprint()\nprint('done')"
    assert printed(shared_kernel, code) == "100% |##########\ndone\n"


def test_a_cell_that_breaks_the_kernels_output_still_ends(kernel: Kernel) -> None:
    result = kernel.execute("import sys\nsys.stdout = object()", timeout=30)
    assert (result.outcome, result.detail) == (Outcome.ERROR, "the kernel ended the cell without a reply")
    kernel.restart()
    assert still_works(kernel)


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
    assert shared_kernel.execute("while True: print('x' * 1000)", timeout=1).is_running
    assert shared_kernel.interrupt(30).outcome is Outcome.INTERRUPTED
    assert still_works(shared_kernel)


def test_fixed_variables_are_set_and_a_tasks_own_override_them(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec(env={"TZ": "ABC5", "OWN": "1"}))) as kernel:
        names = [*FIXED_ENVIRONMENT, "OWN"]
        code = f"import os; print({{name: os.environ.get(name) for name in {names}}})"
        assert printed(kernel, code) == f"{ {**FIXED_ENVIRONMENT, 'TZ': 'ABC5', 'OWN': '1'} }\n"
        effect = "import sys, time; print(time.tzname[0], sys.flags.hash_randomization)"
        assert printed(kernel, effect) == "ABC 0\n"
