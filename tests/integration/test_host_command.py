"""Programs beside the trial: how they act in it, how they end, and that nothing of them stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_super.kernel.conformance.support import until
from pytest_super.platform import host
from tests.integration.conftest import FAKE_KERNELS, SCRIPT, ProgramProject, asked_in
from tests.pages import example

OPTIONS = ("--super-sandbox=local", "-p", "no:cacheprovider", ".")


class HostProject(ProgramProject):
    """Its runs are on fake kernels. A command line has its path as `$P`, Python as `$PY`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        pytester.makeconftest(FAKE_KERNELS)
        self.script("42")

    def agent(self, command: str) -> str:
        return f"--super-agent=host-command: P={self.path}; PY={sys.executable}; {command}"

    def run(self, command: str, *arguments: str) -> dict[str, Any]:
        self.outcome = self.pytester.runpytest(self.agent(command), *OPTIONS, *arguments)
        return self.results[-1]

    def run_python(self, source: str, *arguments: str) -> dict[str, Any]:
        self.add_program("program", f"from client import *\n{source}")
        return self.run("$PY $P/program.py", *arguments)

    def printed(self, id: str = "a") -> list[str]:
        """The lines that the task's program has printed, with the note behind them."""
        (step,) = [step for step in self.steps(id) if step["action"]["type"] == "host_command"]
        return str(step["observation"]).splitlines()

    def numbers(self, name: str) -> list[int]:
        """Process ids that a program has written down."""
        return [int(word) for word in (self.path / name).read_text().split()]


@pytest.fixture
def project(pytester: pytest.Pytester, own_temporary_files: None) -> HostProject:  # noqa: ARG001
    return HostProject(pytester)


def is_dead(pid: int) -> bool:
    return host().start_time(pid) is None


# What a program can do


def test_a_shell_line_solves_a_task(project: HostProject) -> None:
    (project.path / "conftest.py").unlink()
    script = "import time; time.sleep(0.8); print('half' + ' way')"
    project.add_task(landmarks=["half way"], entrypoint={"path": "run.py", "min_seconds": 0.5})
    line = f"""
        query=$(pytest-super trial task | grep -c 'What is it')
        printf '%s\\n' '%%writefile run.py' "{script}" | pytest-super trial execute --thought write
        echo '!python run.py' | pytest-super trial execute
        echo "print($query + 41)" | pytest-super trial execute | tail -1 | pytest-super trial submit
        pytest-super trial execute < /dev/null; echo "then $?"
    """
    result = project.run(line)
    metrics = result["metrics"]
    assert (result["solved"], result["stop_reason"], metrics["landmarks"]) == (True, "submitted", 1.0)
    assert (metrics["script_executed"], result["compute_seconds"] > 0) == (1.0, True)
    write, run, _, submission, program = project.steps()
    assert (write["thought"], run["observation"], run["landmarks"]) == ("write", "half way\n", [0])
    assert submission["action"] == {"type": "submit", "content": "42"}
    assert (program["action"]["type"], program["outcome"], program["landmarks"]) == ("host_command", "ok", [])
    assert program["observation"].splitlines()[-3:] == [
        "pytest-super: the trial is over: submitted",
        "then 2",
        "[The program ended with exit code 0.]",
    ]


def test_the_exit_status_of_the_client_tells_how_the_action_went(project: HostProject) -> None:
    project.add_task()
    lines = """
        c() { pytest-super trial "$@"; echo "$1 $?"; }
        echo 1/0 | c execute; echo 'sleep(400)' | c execute; c continue-wait; c interrupt
        echo none | c read; echo '{}' | c edit; echo '[1]' | c edit; echo '{' | c submit; c history
        SUPER_TRIAL_TOKEN=x c task; SUPER_TRIAL_URL=http://127.0.0.1:1 c task
        unset SUPER_TRIAL_URL; c task; echo null | c submit
    """
    project.run(lines)
    statuses = [line for line in project.printed() if line.rpartition(" ")[2] in ("0", "1", "2")]
    assert statuses == [
        *("execute 1", "execute 1", "continue-wait 0", "interrupt 1", "read 1", "edit 1", "edit 1"),
        *("submit 1", "history 0", "task 2", "task 2", "task 2", "submit 2"),
    ]


def test_a_program_that_knows_only_its_environment_asks_the_model(project: HostProject) -> None:
    project.add_task()
    project.script({"text": "42", "usage": {"prompt_tokens": 10, "completion_tokens": 3}})
    project.add_program(
        "foreign",
        """
import json, os, sys, urllib.request
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
body = {"model": sys.argv[3], "messages": [{"role": "user", "content": open(sys.argv[1]).read()}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers
)
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
open(sys.argv[2], "w").write(answer)
""",
    )
    line = "$PY $P/foreign.py {query_file} {answer_file} {model}"
    result = project.run(line, SCRIPT)
    assert (result["solved"], result["stop_reason"]) == (True, "submitted")
    assert (result["prompt_tokens"], result["completion_tokens"], result["compute_seconds"]) == (10, 3, 0)
    (request,) = asked_in(project.latest / "trials/a/1.0")
    assert request["messages"][0]["content"] == "What is it? 'Tell' \"me\""
    submission, program = project.steps()
    assert (submission["action"]["content"], program["action"]["type"]) == ("42", "host_command")
    assert sum(step["prompt_tokens"] for step in (submission, program)) == 10


def test_the_example_of_the_pages_works(project: HostProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    project.add_task()
    project.script("print(40 + 2)", "SUBMIT 42")
    project.add_program("beside", example("agent-host-command.md", "beside.py"))
    project.pytester.makeini(example("agent-host-command.md", "beside.ini"))
    project.pytester.runpytest(SCRIPT, *OPTIONS).assert_outcomes(passed=1)
    assert [step["action"]["type"] for step in project.steps()] == ["execute", "submit", "host_command"]


def test_recorded_answers_are_given_to_a_program_that_names_its_directory(project: HostProject) -> None:
    project.add_task()
    program = "act('submit', answer=int(ask('Write your answer into ' + sys.argv[1])))"
    project.add_program("program", f"from client import *\n{program}")
    line = "$PY $P/program.py {answer_file}"
    assert project.run(line, SCRIPT)["solved"]
    result = project.run(line, "--super-answers=latest", "--super-answers-miss=fail")
    assert (result["solved"], result["recorded"], result["provided"]) == (True, 1, 0)


def test_a_program_gets_the_hosts_environment_without_keys(
    project: HostProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = dict.fromkeys(("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"), "hush")
    for name, value in {**secrets, "NO_PROXY": "inside.example", "MINE": "yes"}.items():
        monkeypatch.setenv(name, value)
    project.add_task()
    show = "echo {workdir} {model} {invocation_dir} $MINE $NO_PROXY; env | grep -c =hush$; pwd; "
    project.run(f"{show} cat {{query_file}}", SCRIPT)
    told, keys, folder, query, _, _ = project.printed()
    assert told == f"/fake scripted {project.path} yes inside.example,127.0.0.1"
    assert (keys, query) == ("0", "What is it? 'Tell' \"me\"")
    assert not Path(folder).exists()


def test_each_trial_has_its_own_with_workers_too(project: HostProject) -> None:
    for id in "ab":
        project.add_task(id, query=id)
    source = """
same = {act("execute", code="1")["number"] for _ in range(3)} == {1, 2, 3}
query = send(os.environ["SUPER_TRIAL_URL"])["query"]
act("execute", code=repr(query))
act("submit", answer=42 if same else 0)
"""
    project.run_python(source, "-n2")
    assert sorted((row["id"], row["solved"]) for row in project.results) == [(id, True) for id in "ab"]
    assert all(project.steps(id)[3]["observation"] == repr(id) for id in "ab")


def test_an_attempt_without_a_submission_is_followed_by_another(project: HostProject) -> None:
    project.add_task()
    project.script("Plan: say it. [END]")
    line = "if grep -q 'say it' {query_file}; then echo 42 > {answer_file}; fi"
    result = project.run(line, SCRIPT, "--super-attempts=2")
    assert (result["solved"], result["stop_reason"]) == (True, "submitted")
    taken = [(step["attempt"], step["action"]["type"]) for step in project.steps()]
    assert taken == [(1, "host_command"), (2, "submit"), (2, "host_command")]


# How a program ends


def test_how_a_program_ends_is_told(project: HostProject) -> None:
    ends = {
        "failed": ("exit 3", "exit code 3", "error"),
        "killed": ("kill -9 $$", "signal 9", "error"),
        "fine": ("true", "exit code 0", "ok"),
    }
    project.run_queries({id: query for id, (query, _, _) in ends.items()}, ". {query_file}")
    for id, (_, told, outcome) in ends.items():
        (step,) = project.steps(id)
        assert step["outcome"] == outcome
        assert project.printed(id)[-2:] == [
            f"[The program ended with {told}.]",
            "[There is no answer file: nothing was submitted.]",
        ]


def test_a_program_that_cannot_start_stops_the_run_as_an_error(project: HostProject) -> None:
    for id in ("a", "b"):
        project.add_task(id)
    project.run("no-such-agent --task x")
    assert [result["stop_reason"] for result in project.results] == ["error"]
    project.outcome.stdout.fnmatch_lines(["error   a: *could not start: exit code 127: *no-such-agent: *"])


def test_a_program_that_has_acted_did_start(project: HostProject) -> None:
    project.add_task()
    result = project.run_python("act('execute', code='1'); print('bye'); sys.exit(127)")
    assert (result["stop_reason"], result["agent_error"]) == ("returned", "exit code 127: bye")


# Heeds nothing, and has a child that has left its group and its environment.
DEAF = """
import signal, subprocess
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"], start_new_session=True, env={}, stdout=subprocess.DEVNULL)
open(PIDS + ".new", "w").write(f"{os.getpid()} {child.pid}")
open("here", "w").close()
os.rename(PIDS + ".new", PIDS)
print("begun", flush=True)
"""


def deaf(project: HostProject, source: str) -> str:
    return f"PIDS = {str(project.path / 'pids')!r}\n{DEAF}\n{source}\nwhile True: time.sleep(1)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "source", "note"),
    [
        ({"compute": 30}, "act('execute', code='sleep(60)')", "compute spent"),
        pytest.param({"wall": 1.5}, "", "wall spent", marks=pytest.mark.slow),
        pytest.param({"steps": 1}, "act('execute', code='1')", "steps spent", marks=pytest.mark.slow),
        ({}, "act('submit', answer=0)", "the trial was over (submitted)"),
    ],
)
def test_a_program_that_does_not_end_is_killed_when_the_trial_is_over(
    project: HostProject, limits: dict[str, Any], source: str, note: str
) -> None:
    project.add_task(limits=limits)
    result = project.run_python(deaf(project, source))
    assert (result["error"], result["solved"]) == (None, False)
    assert result["stop_reason"] in note
    assert project.printed() == ["begun", f"[The program was ended: {note}.]"]
    assert all(is_dead(pid) for pid in project.numbers("pids"))


def test_what_the_model_failed_with_comes_before_a_submission_and_ends_the_program(
    project: HostProject,
) -> None:
    project.add_task()
    project.script({"error": {"status": 401, "message": "bad key"}})
    result = project.run_python(deaf(project, "ask('x'); act('submit', answer=42)"), SCRIPT)
    assert (result["stop_reason"], result["submitted"]) == ("error", False)
    assert result["error"] == "scripted: bad key"
    assert all(is_dead(pid) for pid in project.numbers("pids"))


STAY = "sh -c 'echo $$ >> $0; exec sleep 600' $P/pids &"
LEFT = (
    STAY,
    # In a session of its own, without its environment, of a parent that has ended, stopped.
    f"setsid {STAY}",
    f"env -i setsid {STAY}",
    "env -i setsid sh -c 'sleep 600 & echo $! >> $0' $P/pids;",
    "env -i setsid sh -c 'echo $$ >> $0; kill -STOP $$; sleep 600' $P/pids &",
)


def test_what_a_program_leaves_running_is_ended(project: HostProject) -> None:
    project.add_task()
    are_begun = f"[ $(wc -l < $P/pids) = {len(LEFT)} ]"
    project.run(f": > $P/pids; {' '.join(LEFT)} until {are_begun}; do :; done; echo 42 > {{answer_file}}")
    assert len(project.numbers("pids")) == len(LEFT)
    assert all(is_dead(pid) for pid in project.numbers("pids"))
    assert project.results[-1]["solved"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_program_that_turns_on_what_watches_it_ends_with_its_trial(
    project: HostProject, number: int
) -> None:
    project.add_task(limits={"wall": 1.5})
    parent = "int(open(f'/proc/{os.getppid()}/stat').read().split()[3])"
    result = project.run_python(deaf(project, f"child.kill(); os.kill({parent}, {int(number)})"))
    assert result["error"] is None
    assert is_dead(project.numbers("pids")[0])


def test_output_is_cut_in_the_middle_and_earns_no_landmark(project: HostProject) -> None:
    project.add_task(landmarks=["the very end"])
    result = project.run("head -c 100000000 /dev/zero | tr '\\0' x | fold; echo the very end")
    assert result["metrics"]["landmarks"] == 0.0
    assert project.printed()[-3].endswith("the very end")
    assert any("characters left out" in line for line in project.printed())
    assert sum(map(len, project.printed())) < 500_000


def start(project: HostProject, *arguments: str) -> subprocess.Popen[bytes]:
    """A run whose program hangs, under way."""
    project.add_task()
    project.add_program("program", "from client import *\n" + deaf(project, ""))
    command = [sys.executable, "-m", "pytest", project.agent("$PY $P/program.py"), *OPTIONS, *arguments]
    process = subprocess.Popen(
        command,
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert until((project.path / "pids").exists, 30)
    return process


@pytest.mark.parametrize(
    ("number", "workers"),
    [(2, ()), (15, ()), (9, ()), *(pytest.param(one, ("-n1",), marks=pytest.mark.slow) for one in (2, 9))],
)
def test_no_program_outlives_its_run(
    project: HostProject, tmp_path: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    process = start(project, *workers)
    (mark,) = tmp_path.glob("*/here")
    os.kill(process.pid, number)
    assert process.wait(30) != 0
    program, child = project.numbers("pids")
    assert until(lambda: is_dead(program) and not mark.parent.exists(), 30)
    assert until(lambda: is_dead(child), 30)


ASKS_IN_VAIN = 'import os; from client import *; send(os.environ["OPENAI_BASE_URL"] + "/embeddings", b"{}")'


def test_a_program_that_asks_for_a_model_in_a_run_without_one_stops_the_run(project: HostProject) -> None:
    for id in ("a", "b"):
        project.add_task(id)
    project.run(f"cd $P; $PY -c '{ASKS_IN_VAIN}'; exit 3")
    assert [result["stop_reason"] for result in project.results] == ["error"]
    project.outcome.stdout.fnmatch_lines(
        ["error   a: *it asked for a model, but this run has none: set one with --super-model. exit code 3*"]
    )
