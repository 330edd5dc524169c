"""Bad input and bad luck: one clear message each, and nothing lost."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.platform import MARKER
from tests.integration.conftest import WITH_AND_WITHOUT_XDIST, Project
from tests.waiting import until

USAGE = pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--super-agent=nonsense"], "*unknown agent `nonsense`: use gold, *, or package.module:Name*"),
        (["--super-agent=agens:Agent"], "*: No module named 'agens'; the ini value `pythonpath = .` finds *"),
        (["--super-agent=agent:Agnt"], "*agent has no Agnt; did you mean `Agent`[?]"),
        (["--super-agent=glod"], "*package.module:Name of your own; did you mean `gold`[?]"),
        (["--super-epoch=3"], "*there is no option --super-epoch; did you mean `--super-epochs`[?]"),
        (
            ["-o", "super_fail_undr=1"],
            "*there is no ini value super_fail_undr; did you mean `super_fail_under`[?]",
        ),
        (["--super-keep=al"], "*--super-keep=al: choose from never, failed, all; did you mean `all`[?]"),
        (["--super-category="], "*--super-category= is empty: give it a value*"),
        (["--super-epochs=x"], "*--super-epochs=x: must be a whole number of at least 1, adaptive, or *"),
        (["--super-temperature=hot"], "*--super-temperature=hot: must be a number"),
        (["--super-max-errors=5"], "*--super-max-errors=5: must be a number between 0 and 1, such as 0.05"),
        (["--super-max-cost=-1"], "*--super-max-cost=-1: must be more than 0"),
        (["--super-sandbox=locl"], "*; did you mean `local`[?]"),
        (["--super-fail-under=acuracy:1"], "*choose from accuracy, *; did you mean `accuracy`[?]"),
        (["--super-ca-bundle=gone.pem"], "*--super-ca-bundle=gone.pem: there is no file */gone.pem"),
        (["--super-mount=x"], "*write it as /folder/of/host:/folder/inside*"),
        (["-n2", "--dist=worksteal"], "*tasks run under --dist=load*"),
        (["--reruns=2"], "*--reruns=2 would run missed tasks again, *best of several*--super-epochs*"),
        (["--override-ini=reruns=1"], "*the ini value reruns=1 would run * and --reruns=0 in a run with *"),
        (["--timeout-method=thread"], "*--timeout-method=thread would end the whole process *=signal in a *"),
        (["--super-agent=command:agent 'open"], "*No closing quotation*"),
        (["--super-agent=host-command: "], "*needs a command line*"),
        (["--super-agent=command:agent {query}"], "*unknown placeholder {query}: use {query_file}, *"),
        (["--super-agent=codex"], "*--super-agent=codex needs --super-model*"),
        (["--super-agent=codex==0.1"], "*codex 0.1 is too old: 0.* is the oldest that works here"),
        (
            ["--super-agent=codex", "--super-model=openai/gpt-4o", "--super-sandbox=local"],
            "*the agent codex is a program in an image, and the sandbox local has no image *=docker, or *",
        ),
        (["--super-agent-files=gone"], "*--super-agent-files=gone: there is no folder */gone"),
        (["--super-agent-env=MY_TOKEN=x"], "*--super-agent-env=MY_TOKEN: no key goes into a sandbox*"),
        (["--super-agent-env=A"], "*--super-agent-env=A: write it as NAME=VALUE"),
        (["--super-attempts=2"], "*--super-attempts needs --super-model*"),
        (["--super-model=scripted:missing.yaml"], "*missing.yaml*"),
        (["--super-model=openai/gpt-4o", "--super-model-arg=api_key=x"], "*-arg=api_key: keys come from *"),
        (
            ["--super-model=openai/gpt-4o", f"--super-model-arg=timeout={'[' * 5000}"],
            "*must be a number of seconds above 0*",
        ),
    ],
)
def test_a_wrong_option_is_one_message(project: Project, arguments: list[str], message: str) -> None:
    project.add_task("right")
    result = project.run(*arguments)
    assert result.ret == USAGE
    result.stderr.fnmatch_lines([message])
    result.stderr.no_fnmatch_line("*Traceback*")


OWN_SANDBOXES = """
def pytest_super_make_sandbox(task):
    raise AssertionError("the kernels of this project need no sandbox")
"""

# Modules that hold no agent, and what is wrong with each.
NO_AGENTS = {
    "class Agent:\n    def act(self, trial): ...": "has no method `run(self, trial)`",
    "class Agent:\n def __init__(self, model): ...\n def run(self, trial): ...": "required argument: 'model'",
    "Agent = 'text'": "cannot be called: name the class or function",
    "\nraise SystemExit(5)": ".py:2)",
    "key = settings['key']": "cannot be imported: NameError: name 'settings' is not defined",
    "class Agent:\n    def run(self, trial:": "cannot be imported: '(' was never closed",
}


def test_what_is_no_agent_is_refused_before_a_trial(project: Project) -> None:
    project.add_task("right")
    for number, (module, message) in enumerate(NO_AGENTS.items()):
        project.write(f"no_agent{number}.py", module)
        result = project.run(agent=f"no_agent{number}:Agent")
        assert result.ret == USAGE
        result.stderr.re_match_lines([f"ERROR: the agent `no_agent{number}:Agent` .*{re.escape(message)}.*"])
    assert not (project.path / ".super").exists()


def test_a_function_that_makes_no_agent_is_an_error_and_not_a_miss(project: Project) -> None:
    project.add_task("right")
    project.write("no_agent.py", "def make(): return object()")
    result = project.run(agent="no_agent:make")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the agent `no_agent:make` has no method `run(self, trial)`*"])


def test_a_project_can_rerun_its_other_tests(project: Project) -> None:
    project.add_task("wrong")
    result = project.run("--override-ini=reruns=1", "--reruns=0")
    result.assert_outcomes(failed=1)


# As pytest-repeat has it.
COUNT = """
def pytest_addoption(parser):
    parser.addoption("--count", default=1, type=int)
"""


def test_an_option_that_repeats_every_test_is_refused_and_its_default_is_not(project: Project) -> None:
    project.add_task("wrong")
    project.add_to_conftest(COUNT)
    result = project.run("--count=3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--count=3 would run every task several times*: use --super-epochs=3"])
    project.run().assert_outcomes(failed=1)


MARKED = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.%s)
"""


@pytest.mark.parametrize(
    ("mark", "words", "workers"),
    [
        ("flaky(reruns=2)", "`flaky` of tasks/wrong.task.yaml::wrong would run missed", "-n1"),
        ("timeout(9, method='thread')", "`timeout` of tasks/wrong.task.yaml::wrong would end", "-n0"),
    ],
    ids=["flaky", "timeout"],
)
def test_a_marker_that_spoils_a_score_is_refused(
    project: Project, mark: str, words: str, workers: str
) -> None:
    project.add_task("wrong")
    project.add_to_conftest(MARKED % mark)
    result = project.run(workers)
    assert result.ret == USAGE
    result.stderr.fnmatch_lines([f"*the marker {words} *"])
    assert not (project.path / ".super").exists()


PYTEST_9 = pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest does not read the table")


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("pytest.ini_options", "super_no_cache = 'maybe'"),
        ("pytest.ini_options", "super_epochs = 'x'"),
        pytest.param("pytest", "super_epochs = [3]", marks=PYTEST_9),
        pytest.param("pytest", "super_no_cache = 'yes'", marks=PYTEST_9),
        pytest.param("pytest", "super_category = 'data'", marks=PYTEST_9),
    ],
)
def test_a_wrong_ini_value_is_one_message_that_names_it(project: Project, table: str, line: str) -> None:
    (project.path / "tox.ini").unlink()
    project.write("pyproject.toml", f"[tool.{table}]\nsuper_agent = 'agent:Agent'\n{line}\n")
    result = project.pytester.runpytest("--super-sandbox=local")
    assert result.ret == USAGE
    [message] = [text for text in result.errlines if text]
    assert f"the ini value {line.partition(' ')[0]}" in message


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--super-epochs=3", "*--super-epochs needs --super-agent*"),
        ("--super-agent=gold", "*to collect tasks from*pytest-super init*"),
    ],
)
def test_an_agent_and_tasks_are_needed(pytester: pytest.Pytester, option: str, message: str) -> None:
    result = pytester.runpytest(option)
    assert result.ret == USAGE
    result.stderr.fnmatch_lines([message])


def test_our_options_in_pytest_addopts_do_not_break_an_ordinary_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--super-sandbox=docker --super-epochs=3")
    pytester.makepyfile("def test(): pass")
    pytester.runpytest("-n1").assert_outcomes(passed=1)


@pytest.mark.usefixtures("no_isolation")
def test_a_project_that_makes_its_own_sandboxes_needs_no_engine(project: Project) -> None:
    project.add_task("right")
    project.add_task("other")
    project.pytester.makeconftest(
        "from pytest_super.kernel.providers.local import LocalSandbox\n"
        "class Cluster(LocalSandbox):\n"
        "    name = 'cluster'\n"
        "def pytest_super_make_sandbox(task):\n"
        "    return Cluster({}) if task.id == 'right' else None\n"
    )
    result = project.run("--super-sandbox=auto")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["super: *, sandboxes made by the project, *", "error   other: *no sandbox from*"]
    )
    assert {row["id"]: row["sandbox"] for row in project.rows} == {"right": "cluster", "other": ""}


@pytest.mark.usefixtures("no_isolation")
def test_where_nothing_isolates_only_the_gold_agent_runs_locally_and_says_so(project: Project) -> None:
    project.add_task("right")
    result = project.pytester.runpytest("--super-agent=agent:Agent")
    assert result.ret == USAGE
    result.stderr.fnmatch_lines(
        ["*no container engine answers at*--super-sandbox=local*; the program bwrap is missing*"]
    )
    project.add_task("right", solution={"cells": ["40 + 2"]})
    result = project.pytester.runpytest("--super-agent=gold")
    result.assert_outcomes(passed=1)
    note = "no isolation, since no container engine answers at * and the program bwrap is missing"
    result.stdout.fnmatch_lines([f"super: agent gold, sandbox local ({note}), *"])


def test_a_limit_that_the_sandbox_cannot_enforce_refuses_the_task(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    project.add_task("a", solution={"cells": ["42"]}, sandbox={"memory": "1g", "image": "my:image"})
    result = project.run(agent="gold")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a requires the image 'my:image', memory, which the local sandbox lacks*"])


def test_packages_that_are_missing_are_one_message_before_the_run(project: Project) -> None:
    packages = ["numpy", "pytest<1", "no-such-package", "other; python_version < '3'"]
    for id in ("right_1", "right_2"):
        project.add_task(id, sandbox={"packages": packages})
    project.add_task("right_3")
    result = project.run()
    assert result.ret == USAGE
    lacking = f"no-such-package (not installed), pytest<1 (installed is {pytest.__version__})"
    assert [line for line in result.errlines if line] == [
        "ERROR: 2 tasks cannot run in the local sandbox: it uses this machine's Python, which lacks "
        f"{lacking}; run `pip install no-such-package 'pytest<1'`, or use containers (--super-sandbox=docker)"
    ]
    assert not (project.path / ".super").exists()
    project.run("-k", "right_3").assert_outcomes(passed=1, deselected=2)


@pytest.mark.parametrize(("workers", "is_refused"), [("-n0", False), ("-n2", True)])
def test_tasks_with_gpus_are_refused_where_workers_would_share_one(
    project: Project, workers: str, is_refused: bool
) -> None:
    project.add_task("right", sandbox={"gpus": 1})
    result = project.run(workers)
    if is_refused:
        assert result.ret == USAGE
        # Each worker refuses, and that is one message.
        [message] = [line for line in result.errlines if line]
        assert message.startswith(
            "ERROR: 1 task with `sandbox.gpus` (right) cannot run on 2 workers, because "
        )
        assert not (project.path / ".super").exists()
    else:
        result.assert_outcomes(passed=1)


def test_packages_are_not_looked_for_where_a_project_makes_its_sandboxes(project: Project) -> None:
    project.add_task("right", sandbox={"packages": ["no-such-package"]})
    project.add_to_conftest(OWN_SANDBOXES)
    project.run().assert_outcomes(passed=1)


def test_a_broken_file_stops_the_run_before_money_is_spent(project: Project) -> None:
    project.add_task("right")
    project.add_task("right", file="two")
    project.write("tasks/bad.task.yaml", "id: x\nset: expert\nqeury: hi\nanswer: 1\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["tasks/bad.task.yaml:3:1: unknown field `qeury`; did you mean `query`[?]"])
    result.stdout.fnmatch_lines(
        ["tasks/two.task.yaml:1:1: the id `right` already appears at tasks/right.task.yaml:1"]
    )
    assert not list(project.path.glob(".super/runs/*/trials"))


def test_a_broken_file_stops_the_run_although_one_worker_collects_more_slowly(project: Project) -> None:
    (project.path / "conftest.py").write_text("""
import os, time

def pytest_collection_finish():
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        time.sleep(1)
""")
    project.add_task("right")
    project.write("tasks/bad.task.yaml", "id: x\n")
    result = project.run("-n2")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["tasks/bad.task.yaml:1:1: *", "*Interrupted: 1 error during collection*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_what_is_no_regular_file_stops_the_run_with_its_path(project: Project) -> None:
    project.add_task("right")
    tasks = project.path / "tasks"
    os.mkfifo(tasks / "pipe.task.yaml")
    (tasks / "folder.task.yaml").mkdir()
    (tasks / "dead.task.yaml").symlink_to("gone")
    (tasks / "device.task.yaml").symlink_to("/dev/zero")
    os.mkfifo(tasks / "pipe.ipynb")
    project.add_task("notebook", solution={"notebook": "pipe.ipynb"})
    (tasks / "hidden").mkdir()
    (tasks / "hidden/dead.py").symlink_to("gone")
    project.add_task("hidden", answer=None, grade=GRADE)
    result = project.run()
    assert (result.ret, result.parseoutcomes()["errors"]) == (pytest.ExitCode.INTERRUPTED, 6)
    irregular = "it is not a regular file"
    for line in (
        f"tasks/pipe.task.yaml:1:1: cannot be read: {irregular}",
        f"tasks/device.task.yaml:1:1: cannot be read: {irregular}",
        "tasks/folder.task.yaml:1:1: cannot be read: Is a directory",
        "tasks/dead.task.yaml:1:1: cannot be read: No such file or directory",
        f"tasks/notebook.task.yaml:1:*: the notebook {tasks}/pipe.ipynb cannot be read: {irregular}",
        f"tasks/hidden.task.yaml:1:*: {tasks}/hidden/dead.py is not a regular file",
    ):
        result.stdout.fnmatch_lines_random([line])


GRADE = {
    "command": "python x.py",
    "files": {"hidden": "hidden"},
    "collect": ["x.py"],
    "result": [{"regex": {"pattern": "a (.*)"}, "expected": 1}],
}


@pytest.mark.parametrize(
    ("arguments", "status"),
    [((), pytest.ExitCode.NO_TESTS_COLLECTED), (("tasks/mean.yaml",), USAGE)],
    ids=["folder", "named"],
)
def test_a_task_file_of_another_name_is_told_how_it_is_called(
    project: Project, arguments: tuple[str, ...], status: pytest.ExitCode
) -> None:
    project.write("tasks/mean.yaml", "id: mean\nquery: what is it?\n")
    project.write("tasks/settings.yaml", "colour: red\n")
    result = project.run(*arguments)
    assert result.ret == status
    told = [line for line in result.outlines if "a task file is named NAME.task.yaml" in line]
    assert told[0].startswith(f"{project.path}/tasks/mean.yaml: ")
    assert "settings" not in " ".join(told)


def test_a_broken_file_cannot_forge_a_line_of_the_terminal(project: Project) -> None:
    project.write("tasks/bad.task.yaml", json.dumps({"id": "a", "\x1b[2K\n\x1b[31mforged": 1}))
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["tasks/bad.task.yaml:1:13: unknown field `[?][[]2K | [?][[]31mforged`; known are *"]
    )
    assert "\x1b" not in result.stdout.str()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_disk_that_is_full_is_an_error_and_not_a_miss(project: Project) -> None:
    (project.path / "agent.py").write_text(
        """
class Agent:
    def run(self, trial):
        for _ in range(100):
            trial.execute("print('x' * 100_000)")
        trial.submit(42)
"""
    )
    project.add_task("right")
    # Not begun: its results would find no place either.
    project.add_task("next")
    folder = project.path / ".super"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    try:
        result = project.run()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(
            ["results cannot be written under *: No space left on device: make room, *"]
        )
        result.stdout.no_fnmatch_line("*INTERNALERROR*")
        [trajectory] = (folder / "runs/latest/trials").glob("*/1.0/trajectory.jsonl")
        assert len(trajectory.read_text().splitlines()) > 3
    finally:
        subprocess.run(["umount", folder], check=True)


# In a local kernel: a cell that obeys an interrupt, a process that has left the kernel's session, and a cell
# that runs on. A shell cannot stop ignoring a signal that it was started to ignore.
HANGS = """
import time
from pathlib import Path

KILL = "import subprocess; print(subprocess.run(['sh', '-c', 'kill -INT $$; sleep 9']).returncode)"
STRAY = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"

class Agent:
    def run(self, trial):
        if trial.task.id != "hang":
            trial.submit(42)
        trial.kernel.execute("import time; time.sleep(600)", timeout=0)
        outcome = trial.kernel.interrupt(30).outcome.value
        if trial.task.id == "hang":
            Path("interrupted").write_text(f"{outcome} {trial.kernel.execute(KILL).text.strip()}")
        trial.execute("print('begun')")
        trial.execute(STRAY)
        hanging = str(Path("hanging").absolute())
        trial.execute(f"open({hanging!r}, 'w').close(); import time; time.sleep(600)")
"""


HANGS_IN_EACH_TASK = """
import time
from pathlib import Path

class Agent:
    def run(self, trial):
        Path(f"hanging_{trial.task.id}").touch()
        time.sleep(600)
"""


@pytest.fixture
def sandboxes() -> Iterator[Path]:
    """Where the local sandboxes of a run lie, apart from other runs'; short, since sockets lie there."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder)


def start(
    project: Project,
    sandboxes: Path,
    *arguments: str,
    agent: str = HANGS,
    on_interrupt: signal.Handlers = signal.SIG_DFL,
) -> subprocess.Popen[bytes]:
    """A run in a session of its own, as from a shell, with the trial in the middle of a cell."""
    (project.path / "conftest.py").unlink()
    project.write("agent.py", agent)
    project.add_task("hang")
    options = ("--super-agent=agent:Agent", "--super-sandbox=local")
    with (project.path / "out.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=project.path,
            env={**os.environ, "TMPDIR": str(sandboxes)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, on_interrupt),
        )
    until(lambda: any(project.path.glob("hanging*")))
    return process


def members(session: int) -> list[str]:
    """The states of a session's living processes, zombies not counted."""
    listed = subprocess.run(["ps", "--sid", str(session), "-o", "stat="], capture_output=True, text=True)
    return [state for state in listed.stdout.split() if not state.startswith("Z")]


def inhabitants(sandboxes: Path) -> list[int]:
    """Living processes that were started in a local sandbox there, whatever their session."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environ.read_bytes()
        except OSError:
            continue
        if f"{MARKER}=".encode() in variables and bytes(sandboxes) in variables:
            found.append(int(environ.parent.name))
    return found


def is_nothing_left(process: subprocess.Popen[bytes], sandboxes: Path) -> bool:
    return not (members(process.pid) or inhabitants(sandboxes) or any(sandboxes.glob("super-*")))


@pytest.mark.parametrize(
    ("workers", "signals", "on_interrupt"),
    [
        # As a shell starts what it runs in the background.
        ((), (signal.SIGINT,), signal.SIG_IGN),
        (("-n1",), (signal.SIGTERM,), signal.SIG_DFL),
        pytest.param(("-n2",), (signal.SIGINT, signal.SIGINT), signal.SIG_DFL, marks=pytest.mark.slow),
        pytest.param(("-n3",), (signal.SIGINT,), signal.SIG_DFL, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_stores_its_trials_and_leaves_nothing(
    project: Project,
    sandboxes: Path,
    workers: tuple[str, ...],
    signals: tuple[signal.Signals, ...],
    on_interrupt: signal.Handlers,
) -> None:
    project.add_task("another")
    process = start(project, sandboxes, *workers, on_interrupt=on_interrupt)
    assert (project.path / "interrupted").read_text() == "interrupted -2"
    assert inhabitants(sandboxes)
    for number in signals:
        os.killpg(process.pid, number)
    assert process.wait(30) != 0
    until(lambda: is_nothing_left(process, sandboxes))
    [row] = [row for row in stored(project) if row["id"] == "hang"]
    assert row["solved"] is False
    trajectory = project.path / ".super/runs/latest" / row["folder"] / "trajectory.jsonl"
    assert "begun" in trajectory.read_text()
    if len(signals) == 1:
        output = (project.path / "out.txt").read_text()
        where = "at step 3, cell"
        assert re.search(f"stopped hang: (interrupted: .*|the run was interrupted), {where}", output)
        assert re.search(
            r"\n(1 interrupted(, 1 not run|: the means are over 1 of 2 trials)|2 interrupted)\nresults: ",
            output,
        )
        assert not re.search(r"\ball .* 1$|[1-9] error", output, re.MULTILINE)
        assert row["stop_reason"] == "interrupted"


def test_a_trial_that_is_interrupted_after_its_submission_is_no_error(project: Project) -> None:
    project.write("conftest.py", INTERRUPTS_LOOKING_AT_FILES)
    project.add_task("right")
    result = project.run(no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["stopped right: interrupted: *", "1 interrupted"])
    result.stdout.no_fnmatch_line("*infrastructure error*")
    assert project.results["right[1]"]["stop_reason"] == "interrupted"


INTERRUPTS_LOOKING_AT_FILES = """
import os, signal
import pytest
from pytest_super.kernel.sandbox import WritableFolders
from pytest_super.testing import FakeFiles, FakeKernel

class Files(FakeFiles):
    def now(self):
        return 0.0

    def changed(self, *arguments, **named):
        os.kill(os.getpid(), signal.SIGINT)

class Kernel(FakeKernel):
    writable = WritableFolders(folders=("/work",), is_whole=True)

    def __init__(self):
        super().__init__()
        self.files = Files()

@pytest.fixture
def super_make_kernel():
    return Kernel
"""


@pytest.mark.slow
def test_workers_that_are_interrupted_count_what_they_stopped_and_what_did_not_begin(
    project: Project, sandboxes: Path
) -> None:
    for number in range(4):
        project.add_task(f"another{number}")
    process = start(project, sandboxes, "-n2", "--super-fail-under=0.5", agent=HANGS_IN_EACH_TASK)
    until(lambda: len(list(project.path.glob("hanging*"))) == 2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == pytest.ExitCode.INTERRUPTED
    output = (project.path / "out.txt").read_text()
    assert "\n2 interrupted, 3 not run\n" in output
    assert output.endswith("\ngate: open, the run has no mean accuracy of all trials\n")
    assert (
        len(re.findall(r"^stopped \w+: (interrupted: |the run was interrupted)", output, re.MULTILINE)) == 2
    )
    assert "error" not in output


def test_workers_store_their_trials_when_only_their_controller_is_sent_a_signal(
    project: Project, sandboxes: Path
) -> None:
    # As a shell starts what it runs in the background.
    process = start(project, sandboxes, "-n1", on_interrupt=signal.SIG_IGN)
    assert (project.path / "interrupted").read_text() == "interrupted -2"
    process.terminate()
    assert process.wait(30) != 0
    until(lambda: is_nothing_left(process, sandboxes))
    [row] = stored(project)
    assert (row["stop_reason"], row["steps"]) == ("interrupted", 2)
    output = (project.path / "out.txt").read_text()
    assert "stopped hang: interrupted: the controller has ended" in output


def stored(project: Project) -> list[dict[str, Any]]:
    paths = (project.path / ".super/runs/latest/trials").glob("*/*/result.json")
    return [json.loads(path.read_text()) for path in paths]


SPOILS = """
import os, shutil
import pytest

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Spoils())

class Spoils:
    ended = 0

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        self.ended += report.when == "teardown"
        if self.ended == {after} and report.when == "teardown":
            {spoil}
"""


@pytest.mark.parametrize(
    ("workers", "after", "spoil", "message"),
    [
        ("-n0", 2, "shutil.rmtree('.super')", "0 of 2 results; missing: run.json, trials/*"),
        (
            "-n1",
            1,
            "os.truncate('.super/runs/latest/results.jsonl', 0)",
            "1 of 2 results; missing: no other file",
        ),
    ],
    ids=["removed", "cut"],
)
def test_a_run_whose_results_are_lost_meanwhile_fails_and_counts_them(
    project: Project, workers: str, after: int, spoil: str, message: str
) -> None:
    for name in ("right", "right2"):
        project.add_task(name)
    project.add_to_conftest(SPOILS.format(after=after, spoil=spoil))
    result = project.run(workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"{project.path}/.super/runs/*lost *has {message}", "results: *"])


@pytest.mark.slow
@WITH_AND_WITHOUT_XDIST
def test_a_killed_run_leaves_no_process_and_its_trials_on_disk(
    project: Project, sandboxes: Path, workers: tuple[str, ...]
) -> None:
    project.add_task("a_right")
    process = start(project, sandboxes, *workers)
    until(lambda: ("a_right", "submitted") in stops(project))
    assert inhabitants(sandboxes)
    process.kill()
    process.wait(10)
    until(lambda: is_nothing_left(process, sandboxes))
    # A worker sees its connection end, and may store what it interrupts before it notices the death.
    assert ("a_right", "submitted") in stops(project)
    assert dict(stops(project))["hang"] in (("running", "interrupted") if workers else ("running",))


def stops(project: Project) -> set[tuple[str, str]]:
    return {(row["id"], row["stop_reason"]) for row in stored(project)}


def test_trials_of_a_file_outside_of_the_rootdir_are_stored(project: Project, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    task = {"id": "away", "set": "expert", "query": "q", "answer": 2, "solution": {"cells": ["1 + 1"]}}
    (tmp_path / "away.task.yaml").write_text(json.dumps(task))
    root, folder = f"--rootdir={tmp_path}/root", f"--super-dir={tmp_path}/results"
    (project.path / "conftest.py").rename(tmp_path / "conftest.py")
    result = project.run(root, folder, f"{tmp_path}/away.task.yaml", "-n1", agent="gold")
    result.assert_outcomes(passed=1)
    (row,) = (tmp_path / "results/runs/latest/results.jsonl").read_text().splitlines()
    assert json.loads(row)["id"] == "away"
