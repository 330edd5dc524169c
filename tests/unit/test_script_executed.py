import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.metrics.script_executed import script_executed
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.shell import SimpleCommand, commands
from pytest_super.store.trajectory import Action, Origin, Step
from pytest_super.tasks.task import Entrypoint

TRAIN = Entrypoint(path="train.py")
TRACEBACK = "Traceback (most recent call last):\n  File 'x.py', line 1\nValueError: no\n"


def step(
    content: str,
    *,
    type: str = "execute",
    origin: Origin = "agent",
    outcome: str = "ok",
    output: str = "",
    seconds: float = 60.0,
) -> Step:
    outputs: list[dict[str, Any]] = [{"output_type": "stream", "name": "stdout", "text": output}]
    action = Action(type=type, content=content)
    return Step(number=1, origin=origin, action=action, outcome=outcome, outputs=outputs, seconds=seconds)


def score(
    *sources: str, path: str = "train.py", output: str = "", repository: str | None = None
) -> float | None:
    """The score of cells that all ended well after a minute. The last one has this output."""
    steps = [step(source) for source in sources[:-1]] + [step(sources[-1], output=output)]
    return script_executed(steps, Entrypoint(path=path), repository=repository)


@pytest.mark.parametrize(
    "cell",
    [
        "!python train.py",
        "!/usr/bin/python3 -W ignore -X utf8 train.py",
        "!cd repo && python train.py",
        "!(cd repo; python train.py)",
        "!CUDA_VISIBLE_DEVICES= HF_HOME='/tmp/a b' python train.py",
        "!timeout -k 5 300 python train.py",
        "!env -u A B=1 nice -n 5 python train.py",
        "!torchrun --nproc_per_node 2 train.py",
        "!python -m torch.distributed.launch --nproc_per_node=2 train.py",
        "!python -m cProfile -o prof train.py",
        "!pip install x && python train.py",
        "!python train.py \\\n  --epochs 1",
        "!for i in 1 2; do python train.py --seed $i; done",
        "!bash -c 'python train.py'",
        "!eval python train.py",
        "import sys\n!{sys.executable} train.py",
        "!$PYTHON train.py",
        "!python train.py & wait",
        "!python -m train",
        "!eval eval eval eval eval python train.py",
        "!chmod +x train.py; ./train.py",
        "!python $HOME/repo/train.py",
        "lines = !python train.py",
        "for seed in range(2):\n    !python train.py --seed {seed}",
        "%run train.py --epochs 1",
        "%run -i -m train --epochs 1",
        "run train.py",
        "%%time\n%run train.py",
        "%%bash\ncat > config <<EOF\npython nothing.py 'x\nEOF\npython train.py",
        "%%sh\nsh -ex train.py || python train.py",
        "import subprocess\nsubprocess.run(['python', 'train.py'], check=True)",
        "import subprocess as sp\nsp.check_call('cd repo && python train.py', shell=True)",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-u', 'train.py'], cwd='repo')",
        "import subprocess\np = subprocess.Popen(['python', 'train.py'])\np.wait()",
        "import os\nos.system('python train.py')",
        "def go():\n    import os\n    os.system('python train.py')\ngo()",
        "import os, sys\nos.system(f'{sys.executable} train.py --lr {lr}')",
        "import runpy\nrunpy.run_path('train.py')",
        "exec(open('train.py').read())",
    ],
)
def test_a_run_of_the_entrypoint_counts(cell: str) -> None:
    assert score(cell) == 1.0


@pytest.mark.parametrize(
    ("cell", "path", "executed"),
    [
        ("!Rscript train.R 3", "train.R", 1.0),
        ("!cd repo && nohup perl5.36 -w train.pl > log", "train.pl", 1.0),
        ("import subprocess\nsubprocess.run(['node', '--trace-warnings', 'train.mjs'])", "train.mjs", 1.0),
        ("!./train", "train", 1.0),
        ("!perl -e 'sleep 9' train.pl", "train.pl", 0.0),
        ("!perl train.pl --help", "train.pl", 0.0),
        ("!node train.R", "train.R", 0.0),
    ],
)
def test_a_run_by_the_interpreter_of_its_language_counts(cell: str, path: str, executed: float) -> None:
    assert score(cell, path=path) == executed


@pytest.mark.parametrize(
    "cell",
    [
        "!cat train.py; sleep 11",
        "!python my_train.py",
        "# python train.py\n!sleep 11",
        "!echo python train.py; sleep 11",
        '!echo "$(date) && python train.py"; sleep 11',
        "!python -c 'import train'",
        "!python - train.py",
        "!bash other.sh train.py",
        "!python other.py train.py",
        "!python train.py --help",
        "!eval eval eval eval eval eval python train.py",
        "script = 'train.py'\n!python {script}",
        "!python train.py &",
        "!nohup python train.py > log 2>&1 &\n!sleep 20",
        "!wc -l < train.py; sleep 11",
        "%%writefile train.py\nimport os",
        "%%bash --bg\npython train.py",
        "%%bash\ncat > run.sh <<'EOF'\npython train.py\nEOF\nsleep 20",
        "import subprocess\nsubprocess.run(['cat', 'train.py'])",
        "import subprocess\nsubprocess.Popen(['python', 'train.py'])",
        "import os\nos.system(chosen('python train.py', 'other'))",
        "import subprocess\nsubprocess.run(options + ['python', 'train.py'])",
        "def go():\n    import os\n    os.system('python train.py')",
        "print('!python train.py')",
        "python train.py",
        "",
        "!",
    ],
)
def test_what_only_mentions_the_entrypoint_does_not_count(cell: str) -> None:
    assert score(cell) == 0.0


@pytest.mark.parametrize(
    ("cell", "path"),
    [
        ("!bash run.sh", "run.sh"),
        ("%%bash\nsource run.sh", "run.sh"),
        ("!bash --norc +x run.sh", "run.sh"),
        ("!./bin/train --x", "bin/train"),
        ("!python -m pkg.mod", "pkg/mod.py"),
        ("!PYTHONPATH=src python -m pkg.mod", "src/pkg/mod.py"),
        ("!python -m pkg", "pkg/__main__.py"),
        ("!cd repo/src && python train.py", "src/train.py"),
        ("!python /content/repo/src/train.py", "src/train.py"),
        ("!jupyter nbconvert --to notebook --execute demo.ipynb", "demo.ipynb"),
        ("!papermill demo.ipynb out.ipynb -p x 1", "demo.ipynb"),
        ("%run demo.ipynb", "demo.ipynb"),
        ("import subprocess\nsubprocess.run(['python', 'train.py'], cwd='src')", "src/train.py"),
        ("import subprocess\nsubprocess.run(['python', 'train.py'], cwd=somewhere)", "src/train.py"),
    ],
)
def test_entrypoints_of_every_kind_are_known(cell: str, path: str) -> None:
    assert score(cell, path=path) == 1.0


@pytest.mark.parametrize(
    ("cell", "path"),
    [
        ("!python eval/train.py", "src/train.py"),
        ("!python -m eval.train", "src/train.py"),
        ("!(cd src); python train.py", "src/train.py"),
        ("!cd src; cd -; python train.py", "src/train.py"),
        ("!jupyter nbconvert --to html demo.ipynb", "demo.ipynb"),
    ],
)
def test_another_file_of_the_same_name_does_not_count(cell: str, path: str) -> None:
    assert score(cell, path=path) == 0.0


def test_the_repository_s_own_folder_tells_files_apart() -> None:
    assert score("!python repo/other/train.py") == 1.0
    assert score("!cd other; cd -; python train.py", repository="") == 1.0
    assert score("!pushd other; popd; python train.py", repository="") == 1.0
    assert score("!if X=1 cd other; then python train.py; fi", repository="") == 0.0
    assert score("!python other/train.py", repository="") == 0.0
    assert score("!python /somewhere/train.py", repository="") == 1.0
    assert score("import os\nos.chdir(f'run{i}')", "!python train.py", repository="") == 1.0
    assert score("!python project/train.py", repository="project") == 1.0


def test_the_folder_that_earlier_cells_went_to_is_known() -> None:
    assert score("%cd repo/src", "!python train.py", path="src/train.py") == 1.0
    assert score("import os\nos.chdir('repo/src')", "!python train.py", path="src/train.py") == 1.0
    assert score("%cd repo/eval", "!python train.py", path="src/train.py") == 0.0
    assert score("%cd repo/src", "%cd ../eval", "!python train.py", path="src/train.py") == 0.0
    assert score("!cd repo/src", "!python train.py", path="src/train.py") == 0.0


def test_where_pre_executed_cells_lead_is_known_but_what_they_run_is_not_credited() -> None:
    entrypoint = Entrypoint(path="src/train.py")
    steps = [step("%cd repo/src", origin="pre_execute"), step("!python train.py", origin="pre_execute")]
    assert script_executed(steps, entrypoint) == 0.0
    assert script_executed([*steps, step("!python train.py")], entrypoint) == 1.0


@pytest.mark.parametrize("type", ["edit", "submit", "interrupt", "continue_wait", "open", ""])
def test_only_executed_cells_count(type: str) -> None:
    assert script_executed([step("!python train.py", type=type)], TRAIN) == 0.0


@pytest.mark.parametrize("outcome", ["error", "timed_out", "interrupted", "kernel_died", "sandbox_lost"])
def test_only_a_cell_that_ended_well_counts(outcome: str) -> None:
    assert script_executed([step("!python train.py", outcome=outcome)], TRAIN) == 0.0


@pytest.mark.parametrize(
    "output",
    [
        TRACEBACK,
        "\x1b[31mTraceback\x1b[0m (most recent call last):\n",
        '  File "train.py", line 3\n    x = = 1\nSyntaxError: invalid syntax\n',
        "usage: train.py [-h] --data DATA\ntrain.py: error: the following arguments are required: --data\n",
        "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: Missing option '--data'.\n",
        "python: can't open file '/w/train.py': [Errno 2] No such file or directory\n",
        "/usr/bin/python3: No module named train\n",
        "/bin/bash: line 1: python: command not found\n",
        "/bin/bash: line 1: ./train.py: Permission denied\n",
        "Killed\n",
        "CompletedProcess(args=['python', 'train.py'], returncode=1, stdout=b'')\n",
    ],
)  # fmt: skip
def test_a_run_whose_output_tells_of_a_failure_does_not_count(output: str) -> None:
    assert score("!python train.py", output=output) == 0.0


@pytest.mark.parametrize(
    "output",
    [
        "/bin/bash: line 1: module: command not found\nepoch 1\n",
        "data: No such file or directory, downloading\n",
        "CompletedProcess(args=['python', 'train.py'], returncode=0)\n",
    ],
)
def test_harmless_output_is_no_failure(output: str) -> None:
    assert score("!python train.py", output=output) == 1.0


def test_a_longer_line_than_a_shell_s_message_is_the_script_s_own() -> None:
    message = "train.py: error: ".ljust(1000, "x")
    assert score("!python train.py", output=message) == 0.0
    assert score("!python train.py", output=f"{message}x") == 1.0


def test_the_traceback_of_a_cell_is_seen_in_its_outputs_or_its_observation() -> None:
    action = Action(type="execute", content="!python train.py")
    error = [{"output_type": "error", "traceback": TRACEBACK.splitlines()}]
    value = [{"output_type": "execute_result", "data": {"text/plain": TRACEBACK}}]
    for outputs in (error, value):
        shown = Step(number=1, origin="agent", action=action, outputs=outputs, seconds=60)
        assert script_executed([shown], TRAIN) == 0.0
    told = Step(number=1, origin="agent", action=action, observation=TRACEBACK, seconds=60)
    assert script_executed([told], TRAIN) == 0.0


def test_a_run_must_last_the_entrypoint_s_minimum() -> None:
    assert script_executed([step("!python train.py", seconds=9.99)], TRAIN) == 0.0
    assert script_executed([step("!python train.py", seconds=10.0)], TRAIN) == 1.0
    quick = Entrypoint(path="train.py", min_seconds=0.5)
    assert script_executed([step("!python train.py", seconds=0.5)], quick) == 1.0


def test_a_cell_that_timed_out_counts_when_it_was_waited_for() -> None:
    started = step("!python train.py", outcome="timed_out", seconds=300)
    still = step("", type="continue_wait", outcome="timed_out", seconds=600)
    ended = step("", type="continue_wait", outcome="ok", seconds=700)
    assert script_executed([started, still], TRAIN) == 0.0
    assert script_executed([started, still, ended], TRAIN) == 1.0
    assert script_executed([started, step("", type="edit"), still, ended], TRAIN) == 1.0
    failed = step("", type="continue_wait", outcome="ok", output=TRACEBACK, seconds=700)
    assert script_executed([started, failed], TRAIN) == 0.0
    stopped = step("", type="interrupt", outcome="interrupted", seconds=310)
    assert script_executed([started, stopped], TRAIN) == 0.0


def test_a_cell_refused_while_another_runs_does_not_end_that_one() -> None:
    started = step("!python train.py", outcome="timed_out", seconds=300)
    refused = step("!ls", outcome="error", seconds=0)
    ended = step("", type="continue_wait", outcome="ok", seconds=700)
    assert script_executed([started, refused, ended], TRAIN) == 1.0
    assert script_executed([started, step("!python train.py")], TRAIN) == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a \'b c\' "d\\"e" f\\ g', [("a", "b c", 'd"e', "f g")]),
        ("a#b #c", [("a#b",)]),
        ("a >x 2>&1 <y b", [("a", "b")]),
        ("a 2 >x", [("a", "2")]),
        ("a && b || c | d & e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("a <<E 1\nx; y\nE\nb", [("a", "1"), ("b",)]),
        ("a <<< 'x' b", [("a", "b")]),
        ("a \\\n b", [("a", "b")]),
        ("a ''", [("a", "")]),
    ],
)
def test_shell_text_is_read_as_simple_commands(text: str, expected: list[tuple[str, ...]]) -> None:
    assert [command.words for command in commands(text) if command.words] == expected


@given(st.text(st.sampled_from("ab \\'\"#;&|()<>\n$-{}!%="), max_size=40))
def test_any_shell_text_and_any_cell_is_read(text: str) -> None:
    assert all(isinstance(command, SimpleCommand) for command in commands(text))
    for source in (text, f"!{text}", f"%%bash\n{text}", f"%cd {text}", f"%run {text}"):
        Notebook().read(source)


def test_a_cell_nested_beyond_the_parser_is_read_as_running_nothing() -> None:
    assert score("x = " + "(" * 5000 + ")" * 5000 + "\n!python train.py") == 0.0
    assert score("x = " + "-" * 50_000 + "1\n!python train.py") == 0.0


def test_a_cell_of_more_than_400_lines_is_read_as_running_nothing() -> None:
    assert score("#\n" * 400 + "!python train.py") == 1.0
    assert score("#\n" * 401 + "!python train.py") == 0.0


def test_a_cell_of_more_than_50_000_characters_is_read_as_running_nothing() -> None:
    end = "\n!python train.py"
    assert score("#" * (50_000 - len(end)) + end) == 1.0
    assert score("#" * (50_001 - len(end)) + end) == 0.0
    # Python's parser would take a thousand times its memory.
    tracemalloc.start()
    score("0;" * 2**20 + end)
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


def test_what_a_program_ran_is_not_known() -> None:
    program = step("agent --task query.md", type="command")
    assert script_executed([program], TRAIN) is None
    assert script_executed([program, step("!python other.py")], TRAIN) is None
    assert script_executed([], TRAIN) == 0.0
    assert script_executed([step("!python train.py")], None) is None
    assert script_executed([program, step("!python train.py")], TRAIN) == 1.0
    assert script_executed([step("!python other.py")], TRAIN) == 0.0


def test_a_program_that_did_not_run_or_was_over_too_soon_hides_nothing() -> None:
    refused = step("agent --task query.md", type="command", outcome="error", seconds=0)
    quick = step("agent --task query.md", type="command", outcome="error", seconds=9.9)
    assert script_executed([step("agent", type="command", seconds=10.0)], TRAIN) is None
    assert script_executed([refused, step("!python other.py")], TRAIN) == 0.0
    assert script_executed([refused], Entrypoint(path="train.py", min_seconds=0.5)) == 0.0
    assert script_executed([quick], TRAIN) == 0.0
    assert script_executed([quick], Entrypoint(path="train.py", min_seconds=5)) is None
    failed = step("agent --task query.md", type="command", outcome="error", seconds=60)
    lost = step("agent --task query.md", type="command", outcome="sandbox_lost", seconds=60)
    assert script_executed([failed], TRAIN) is None
    assert script_executed([lost], TRAIN) is None
