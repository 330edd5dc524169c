"""Programs beside the trial: how they act in it, how they end, and that nothing of them stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.conformance.support import until
from pytest_super.platform import host
from tests.pages import example

if TYPE_CHECKING:
    from tests.openai_server import OpenAIServer

# What a program needs to act, in its own process.
REMOTE = """
import json, os, sys, threading, time, urllib.error, urllib.request

def send(url, body=None):
    headers = {"Authorization": "Bearer " + os.environ["SUPER_TRIAL_TOKEN"]}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)

def act(name, **fields):
    return send(os.environ["SUPER_TRIAL_URL"] + "/" + name, fields)

def ask(text, **fields):
    messages = [{"role": "user", "content": text}]
    return send(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": messages, **fields})
"""
FAKE = """
import pytest
from pytest_super.testing import FakeKernel

@pytest.fixture
def super_make_kernel():
    return FakeKernel
"""
SCRIPT = "--super-model=scripted:script.yaml"
OPTIONS = ("--super-sandbox=local", "-p", "no:cacheprovider", ".")


class Project:
    """A folder with tasks and programs, on fake kernels. A command line has it as `$P`, Python as `$PY`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path
        pytester.makeini("[pytest]\n")
        pytester.makeconftest(FAKE)
        self.add_program("remote", REMOTE)
        self.script("42")

    def add_program(self, name: str, source: str) -> None:
        (self.path / f"{name}.py").write_text(source)

    def script(self, *answers: Any) -> None:
        (self.path / "script.yaml").write_text(json.dumps(list(answers)))

    def add_task(self, id: str = "a", **fields: Any) -> None:
        task = {"id": id, "set": "expert", "query": "What is it? 'Tell' \"me\"", "answer": 42, **fields}
        (self.path / f"{id}.task.yaml").write_text(json.dumps(task))

    def agent(self, command: str) -> str:
        return f"--super-agent=host-command: P={self.path}; PY={sys.executable}; {command}"

    def run(self, command: str, *arguments: str) -> dict[str, Any]:
        """Run all tasks; the result of the last."""
        self.outcome = self.pytester.runpytest_subprocess(self.agent(command), *OPTIONS, *arguments)
        return self.results[-1]

    def run_python(self, source: str, *arguments: str) -> dict[str, Any]:
        self.add_program("program", f"from remote import *\n{source}")
        return self.run("$PY $P/program.py", *arguments)

    @property
    def latest(self) -> Path:
        return self.path / ".super/runs/latest"

    @property
    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.latest / "results.jsonl").read_text().splitlines()]

    def steps(self, id: str = "a") -> list[dict[str, Any]]:
        (path,) = self.latest.glob(f"trials/{id}/1.*/trajectory.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def printed(self) -> list[str]:
        """The lines that the program of the task `a` has printed, with the note behind them."""
        (observation,) = [
            step["observation"] for step in self.steps() if step["action"]["type"] == "host_command"
        ]
        lines: list[str] = observation.splitlines()
        return lines

    def numbers(self, name: str) -> list[int]:
        """Process ids that a program has written down."""
        return [int(word) for word in (self.path / name).read_text().split()]


@pytest.fixture
def project(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Where programs run.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Project(pytester)


def is_dead(pid: int) -> bool:
    return host().start_time(pid) is None


# What a program can do


def test_a_shell_line_solves_a_task(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    script = "print('half' + ' way')"
    project.add_task(landmarks=["half way"], entrypoint={"path": "run.py", "min_seconds": 0})
    line = f"""
        query=$(pytest-super trial task | grep -c 'What is it')
        printf '%s\\n' '%%writefile run.py' "{script}" | pytest-super trial execute --thought write
        echo '!python run.py' | pytest-super trial execute
        echo "print($query + 41)" | pytest-super trial execute | tail -1 | pytest-super trial submit
        pytest-super trial execute < /dev/null; echo "then $?"
    """
    result = project.run(line)
    assert (result["solved"], result["stop_reason"], result["metrics"]["landmarks"]) == (
        True,
        "submitted",
        1.0,
    )
    assert (result["metrics"]["script_executed"], result["compute_seconds"] > 0) == (1.0, True)
    write, run, _, submission, program = project.steps()
    assert (write["thought"], run["observation"], run["landmarks"]) == ("write", "half way\n", [0])
    assert submission["action"] == {"type": "submit", "content": "42"}
    assert (program["action"]["type"], program["outcome"], program["landmarks"]) == ("host_command", "ok", [])
    assert program["observation"].splitlines()[-3:] == [
        "pytest-super: the trial is over: submitted",
        "then 2",
        "[The program ended with exit code 0.]",
    ]


def test_the_exit_status_of_the_client_tells_how_the_action_went(project: Project) -> None:
    project.add_task()
    lines = """
        c() { pytest-super trial "$@"; echo "$1 $?"; }
        echo 1/0 | c execute; echo 'sleep(400)' | c execute; c continue-wait; c interrupt
        echo '{}' | c edit; echo '[1]' | c edit; echo '{' | c submit; c history
        SUPER_TRIAL_TOKEN=x c task; SUPER_TRIAL_URL=http://127.0.0.1:1 c task
        unset SUPER_TRIAL_URL; c task; echo null | c submit
    """
    project.run(lines)
    statuses = [line for line in project.printed() if line.rpartition(" ")[2] in ("0", "1", "2")]
    assert statuses == [
        "execute 1",
        "execute 1",
        "continue-wait 0",
        "interrupt 1",
        "edit 1",
        "edit 1",
        "submit 1",
        "history 0",
        "task 2",
        "task 2",
        "task 2",
        "submit 2",
    ]


def test_openais_client_asks_the_model_with_what_is_in_its_environment(project: Project) -> None:
    project.add_task()
    project.script({"text": "42", "usage": {"prompt_tokens": 10, "completion_tokens": 3}})
    project.add_program(
        "foreign",
        """
import openai, sys
client = openai.OpenAI()
print([model.id for model in client.models.list()] != [])
messages = [{"role": "user", "content": open(sys.argv[1]).read()}]
answer = client.chat.completions.create(model=sys.argv[3], messages=messages).choices[0].message.content
open(sys.argv[2], "w").write(answer)
""",
    )
    line = "$PY $P/foreign.py {query_file} {answer_file} {model}"
    result = project.run(line, SCRIPT, "--super-record=calls")
    assert (result["solved"], result["stop_reason"]) == (True, "submitted")
    assert (result["prompt_tokens"], result["completion_tokens"], result["compute_seconds"]) == (10, 3, 0)
    (file,) = (project.path / "calls").glob("*/a/1.0.jsonl")
    (call,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert call["request"]["messages"][0]["content"] == "What is it? 'Tell' \"me\""
    submission, program = project.steps()
    assert (submission["action"]["content"], program["action"]["type"]) == ("42", "host_command")
    assert sum(step["prompt_tokens"] for step in (submission, program)) == 10


def test_the_example_of_the_pages_works(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    project.add_task()
    project.script("print(40 + 2)", "SUBMIT 42")
    project.add_program("beside", example("agent-host-command.md", "beside.py"))
    project.pytester.makeini(example("agent-host-command.md", "beside.ini"))
    project.pytester.runpytest_subprocess(SCRIPT, *OPTIONS).assert_outcomes(passed=1)
    assert [step["action"]["type"] for step in project.steps()] == ["execute", "submit", "host_command"]


def test_a_program_without_a_model_is_told_how_to_name_one(project: Project) -> None:
    project.add_task()
    result = project.run_python("print(ask('x')['error']['message']); act('submit', answer=42)")
    assert result["solved"]
    assert "--super-model" in project.printed()[0]


def test_a_program_gets_the_hosts_environment_without_keys(
    project: Project, monkeypatch: pytest.MonkeyPatch
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


def test_pre_executed_cells_are_told(project: Project) -> None:
    project.add_task(set="masked", category="data", pre_execute=["x = 6 * 7"])
    source = """
steps = send(os.environ["SUPER_TRIAL_URL"] + "/history")["steps"]
print(steps[0]["origin"], steps[0]["action"]["content"])
act("submit", answer=int(act("execute", code="x")["observation"]))
"""
    assert project.run_python(source)["solved"]
    assert project.printed()[0] == "pre_execute x = 6 * 7"


def test_requests_at_once_are_steps_one_by_one(project: Project) -> None:
    project.add_task()
    source = """
act("execute", code="n = 0")
seen = []
def add():
    seen.append(act("execute", code="n += 1; n")["observation"])
threads = [threading.Thread(target=add) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*sorted(seen))
act("submit", answer=42)
"""
    assert project.run_python(source)["steps"] == 11
    assert [step["observation"] for step in project.steps()[1:9]] == [str(n) for n in range(1, 9)]
    assert project.printed()[0] == "1 2 3 4 5 6 7 8"


def test_each_trial_has_its_own_with_workers_too(project: Project) -> None:
    for id in "abcd":
        project.add_task(id, query=id)
    source = """
same = {act("execute", code="1")["number"] for _ in range(3)} == {1, 2, 3}
query = send(os.environ["SUPER_TRIAL_URL"])["query"]
act("execute", code=repr(query))
act("submit", answer=42 if same else 0)
"""
    project.run_python(source, "-n2")
    assert sorted((row["id"], row["solved"]) for row in project.results) == [(id, True) for id in "abcd"]
    assert all(project.steps(id)[3]["observation"] == repr(id) for id in "abcd")


def test_the_step_that_tells_of_it_takes_no_submission_of_its_own_from_the_limit(project: Project) -> None:
    project.add_task(limits={"steps": 2})
    result = project.run("echo x=41 | pytest-super trial execute; echo 42 > {answer_file}")
    assert (result["solved"], result["steps"]) == (True, 3)


@pytest.mark.parametrize("scoring", ["paper", "reference"])
def test_what_it_prints_earns_nothing_and_what_it_submits_counts(project: Project, scoring: str) -> None:
    project.add_task(landmarks=["trained"])
    line = "echo x=41 | pytest-super trial execute; echo trained; echo 42 > {answer_file}"
    result = project.run(line, f"--super-scoring={scoring}")
    assert (result["metrics"]["accuracy"], result["metrics"]["landmarks"]) == (1, 0)


def test_an_attempt_without_a_submission_is_followed_by_another(project: Project) -> None:
    project.add_task()
    project.script("Plan: say it. [END]")
    line = "if grep -q 'say it' {query_file}; then echo 42 > {answer_file}; fi"
    result = project.run(line, SCRIPT, "--super-attempts=2")
    assert (result["solved"], result["stop_reason"]) == (True, "submitted")
    assert [(step["attempt"], step["action"]["type"]) for step in project.steps()] == [
        (1, "host_command"),
        (2, "submit"),
        (2, "host_command"),
    ]


def test_what_it_did_can_be_replayed_without_it(project: Project) -> None:
    project.add_task()
    project.run("echo x=41 | pytest-super trial execute; echo 42 > {answer_file}; exit 3")
    project.pytester.runpytest_subprocess(
        "--super-agent=replay", f"--super-trajectory={project.latest}", *OPTIONS
    )
    assert [step["action"]["type"] for step in project.steps()] == ["execute", "submit"]
    assert project.results[-1]["solved"]


def test_the_command_line_client_imports_little(pytester: pytest.Pytester) -> None:
    source = """
        import sys
        from pytest_super.cli import main
        assert main(["trial", "task"]) == 2
        print(*sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
    """
    heavy = {"pytest", "yaml", "pydantic", "docker", "jupyter_client", "zmq", "requests", "litellm"}
    result = pytester.run(sys.executable, pytester.makepyfile(source))
    assert result.ret == 0
    assert not heavy & set(result.stdout.str().split())


# How a program ends


@pytest.mark.parametrize(
    ("command", "told", "outcome"),
    [
        ("no-such-agent --task x", "exit code 127: a command was not found", "error"),
        ("exit 3", "exit code 3", "error"),
        ("kill -9 $$", "signal 9", "error"),
        ("true", "exit code 0", "ok"),
    ],
)
def test_how_a_program_ends_is_told(project: Project, command: str, told: str, outcome: str) -> None:
    project.add_task()
    result = project.run(command)
    assert (result["stop_reason"], result["submitted"], result["error"]) == ("returned", False, None)
    (step,) = project.steps()
    assert step["outcome"] == outcome
    assert project.printed()[-2:] == [
        f"[The program ended with {told}.]",
        "[There is no answer file: nothing was submitted.]",
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo '{broken' > {answer_file}", "is not JSON"),
        ("truncate -s 1G {answer_file}", "Larger than"),
        ("printf '\\377' > {answer_file}", "is not JSON"),
        ("mkfifo {answer_file}", "Not a regular file"),
        ("mkdir {answer_file}", "Is a directory"),
    ],
)
def test_an_answer_file_that_holds_no_answer_is_no_submission(
    project: Project, command: str, why: str
) -> None:
    project.add_task()
    result = project.run(command)
    assert (result["submitted"], result["stop_reason"]) == (False, "returned")
    assert why in project.printed()[-1]


def test_what_was_submitted_stays_whatever_comes_after(project: Project) -> None:
    project.add_task()
    source = """
act("submit", answer=42)
print(act("submit", answer=0)["error"]["code"], ask("x")["error"]["code"])
open("answer.json", "w").write("0")
"""
    result = project.run_python(source, SCRIPT)
    assert (result["solved"], result["steps"], result["prompt_tokens"]) == (True, 2, 0)
    assert project.printed()[0] == "trial_ended trial_ended"


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


def deaf(project: Project, source: str) -> str:
    return f"PIDS = {str(project.path / 'pids')!r}\n{DEAF}\n{source}\nwhile True: time.sleep(1)"


@pytest.mark.parametrize(
    ("limits", "source", "note"),
    [
        ({"compute": 30}, "act('execute', code='sleep(60)')", "compute spent"),
        pytest.param({"wall": 1.5}, "", "wall spent", marks=pytest.mark.slow),
        pytest.param({"steps": 1}, "act('execute', code='1')", "steps spent", marks=pytest.mark.slow),
        pytest.param(
            {},
            "act('execute', code='lose()')",
            "the trial was over (sandbox_lost)",
            marks=pytest.mark.slow,
        ),
        ({}, "act('submit', answer=0)", "the trial was over (submitted)"),
    ],
)
def test_a_program_that_does_not_end_is_killed_when_the_trial_is_over(
    project: Project, limits: dict[str, Any], source: str, note: str
) -> None:
    project.add_task(limits=limits)
    result = project.run_python(deaf(project, source))
    assert (result["error"], result["solved"]) == (None, False)
    assert result["stop_reason"] in note
    assert project.printed() == ["begun", f"[The program was ended: {note}.]"]
    assert all(is_dead(pid) for pid in project.numbers("pids"))


def test_no_program_passes_a_limit_by_more_than_a_call(project: Project) -> None:
    project.add_task(limits={"tokens": 1000})
    project.script(*[{"text": "x", "usage": {"prompt_tokens": 300, "completion_tokens": 1}}] * 50)
    source = """
def insist():
    while True: ask("step")
for _ in range(8): threading.Thread(target=insist, daemon=True).start()
"""
    result = project.run_python(deaf(project, source), SCRIPT)
    assert (result["stop_reason"], result["error"]) == ("tokens", None)
    assert len((project.latest / "calls.jsonl").read_text().splitlines()) <= 4


def test_a_model_that_fails_makes_the_trial_an_error_whatever_the_program_does(
    project: Project, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in openai_server.environment.items():
        monkeypatch.setenv(name, value)
    openai_server.always(openai_server.fault("401"))
    project.add_task()
    result = project.run_python(deaf(project, "ask('x')"), "--super-model=openai/gpt-4o")
    assert (result["stop_reason"], result["solved"]) == ("error", False)
    assert "API key" in result["error"]
    assert all(is_dead(pid) for pid in project.numbers("pids"))


def test_what_the_model_failed_with_comes_before_a_submission(project: Project) -> None:
    project.add_task()
    project.script({"error": {"status": 401, "message": "bad key"}})
    result = project.run_python("ask('x'); act('submit', answer=42)", SCRIPT)
    assert (result["stop_reason"], result["submitted"], result["error"]) == (
        "error",
        False,
        "scripted: bad key",
    )


def test_a_limit_that_the_model_reached_comes_before_a_submission(project: Project) -> None:
    project.add_task(limits={"tokens": 30})
    project.script(*["on and on"] * 100)
    source = "while 'error' not in ask('x'): pass\nact('submit', answer=42)"
    result = project.run_python(source, SCRIPT)
    assert (result["stop_reason"], result["submitted"]) == ("tokens", False)


def test_an_engine_that_fails_makes_the_trial_an_error(project: Project) -> None:
    project.add_task()
    result = project.run_python("act('execute', code='fail_engine()'); time.sleep(600)")
    assert (result["stop_reason"], result["error"]) == ("error", "the engine does not answer")


def test_a_machine_that_has_no_room_for_the_program_makes_the_trial_an_error(project: Project) -> None:
    project.add_task()
    conftest = FAKE + "import tempfile\ntempfile.tempdir = '/proc'\n"
    (project.path / "conftest.py").write_text(conftest)
    result = project.run("true")
    assert result["stop_reason"] == "error"
    assert result["error"].startswith("no folder for the program: ")


STAY = "sh -c 'echo $$ > $0; exec sleep 600' $P/pids &"
LEFT = {
    "in its group": STAY,
    "in a session of its own": f"setsid {STAY}",
    "without its environment": f"env -i setsid {STAY}",
    "of a parent that has ended": "env -i setsid sh -c 'sleep 600 & echo $! > $0' $P/pids;",
    "stopped": "env -i setsid sh -c 'echo $$ > $0; kill -STOP $$; sleep 600' $P/pids &",
}


@pytest.mark.parametrize("start", LEFT.values(), ids=LEFT)
def test_what_a_program_leaves_running_is_ended(project: Project, start: str) -> None:
    project.add_task()
    project.run(f"{start} until [ -s $P/pids ]; do :; done; echo 42 > {{answer_file}}")
    assert all(is_dead(pid) for pid in project.numbers("pids"))
    assert project.results[-1]["solved"]


def test_a_program_whose_first_thread_has_ended_is_killed(project: Project) -> None:
    project.add_task(limits={"wall": 1.5})
    source = """
import ctypes
threading.Thread(target=time.sleep, args=(600,)).start()
open(PIDS, "w").write(str(os.getpid()))
ctypes.CDLL(None).syscall(60, 0)
"""
    project.run_python(f"PIDS = {str(project.path / 'pids')!r}{source}")
    (pid,) = project.numbers("pids")
    assert not Path(f"/proc/{pid}").exists()
    assert project.results[-1]["stop_reason"] == "wall"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_program_that_turns_on_what_watches_it_ends_with_its_trial(project: Project, number: int) -> None:
    project.add_task(limits={"wall": 1.5})
    parent = "int(open(f'/proc/{os.getppid()}/stat').read().split()[3])"
    result = project.run_python(deaf(project, f"child.kill(); os.kill({parent}, {int(number)})"))
    assert result["error"] is None
    assert is_dead(project.numbers("pids")[0])


def test_output_is_cut_in_the_middle_and_earns_no_landmark(project: Project) -> None:
    project.add_task(landmarks=["the very end"])
    result = project.run("head -c 100000000 /dev/zero | tr '\\0' x | fold; echo the very end")
    assert result["metrics"]["landmarks"] == 0.0
    assert project.printed()[-3].endswith("the very end")
    assert any("characters left out" in line for line in project.printed())
    assert sum(map(len, project.printed())) < 500_000


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    """A run whose program hangs, under way."""
    project.add_task()
    project.add_program("program", "from remote import *\n" + deaf(project, ""))
    command = [sys.executable, "-m", "pytest", project.agent("$PY $P/program.py"), *OPTIONS, *arguments]
    process = subprocess.Popen(
        command,
        cwd=project.path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert until((project.path / "pids").exists, 30)
    return process


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.slow)], ids=["", "n1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_program_outlives_its_run(
    project: Project, tmp_path: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    process = start(project, *workers)
    (mark,) = tmp_path.glob("*/here")
    os.kill(process.pid, number)
    assert process.wait(30) != 0
    program, child = project.numbers("pids")
    assert until(lambda: is_dead(program) and not mark.parent.exists(), 30)
    assert until(lambda: is_dead(child), 30)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("agent {query}", "unknown placeholder {query}: use {query_file}, {answer_file}, {workdir}, {model}"),
        ("agent 'open", "No closing quotation"),
        (" ", "needs a command line"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_refused_at_once(
    pytester: pytest.Pytester, command: str, words: str
) -> None:
    result = pytester.runpytest_subprocess(f"--super-agent=host-command:{command}", *OPTIONS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str()


def test_it_is_no_agent_that_may_fall_back_to_no_isolation(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    # Without bwrap, too, which isolates.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    result = pytester.runpytest_subprocess("--super-agent=host-command: true", ".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_the_trajectory_tells_what_a_program_asked_for_in_vain(project: Project) -> None:
    project.add_task()
    asking = 'import os; from remote import send; send(os.environ["OPENAI_BASE_URL"] + "/responses", {})'
    project.run(f"cd $P; $PY -c '{asking}'; exit 3", SCRIPT)
    observations = [step["observation"] for step in project.steps()]
    offered = "only POST /v1/chat/completions and GET /v1/models"
    assert observations[-1].splitlines()[:2] == [
        f"[The program asked for POST /v1/responses: {offered} are offered here.]",
        "[The program ended with exit code 3.]",
    ]
