"""Programs as agents, in the local sandbox: what they are given, how they end, what no limit lets them do."""

import sys
from typing import Any

import pytest

from tests.integration.conftest import NO_ANSWERS, SCRIPT, ProgramProject, asked_in
from tests.openai_server import OpenAIServer

# Asks as many times as its first argument says, prints the answers and submits the last.
ASK = """
from client import *
query, answer_file, times = sys.argv[1:]
for number in range(int(times)):
    text = ask(f"{open(query).read()} {number}")
    print("model says", text, flush=True)
    open(answer_file, "w").write(text)
"""


class CommandProject(ProgramProject):
    """A command line finds the programs in `$P`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.add_program("ask", ASK)
        self.script("one", "2", "42")

    def run(self, command: str, *arguments: str) -> dict[str, Any]:
        self.outcome = self.pytester.runpytest(
            f"--super-agent=command: P={self.path}; {command}", "--super-sandbox=local", ".", *arguments
        )
        return self.results[-1]


@pytest.fixture
def project(pytester: pytest.Pytester) -> CommandProject:
    return CommandProject(pytester)


PATHS = """
from client import *
base = os.environ["OPENAI_BASE_URL"]
for url, data in [
    (base + "/models", None), (base + "/embeddings", b"{}"), (base + "/../super/trials", b"{}"),
    (base[:-3] + "/super/trials", b'{"name": "x", "task": "x", "epoch": 1}'),
    (base.replace(base.split("/")[3], "other") + "/models", None),
]:
    try:
        print(urllib.request.urlopen(url, data).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""

ASK_ONCE, ASK_THRICE = (f"python $P/ask.py {{query_file}} {{answer_file}} {times}" for times in (1, 3))
# Notes, with each step, whether a process of the program `deaf` is left.
NOTE_DEAF = """
from pathlib import Path

def is_deaf(place):
    try:
        return str(Path("deaf.py").resolve()).encode() in (place / "cmdline").read_bytes()
    except OSError:
        return False

def pytest_super_step(item, step):
    with open("deaf.txt", "a") as file:
        print(step.action.type, any(map(is_deaf, Path("/proc").glob("[0-9]*"))), file=file)
"""
# What the first trial does; the others submit.
FIRST = "if test ! -e $P/was; then touch $P/was; %s; fi; echo 42 > {answer_file}"


def test_a_program_asks_the_model_for_which_its_trial_is_charged_and_submits(project: CommandProject) -> None:
    project.add_task(landmarks=["model says 2"])
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    project.script(*({"text": text, "usage": usage} for text in ("one", "2", "42")))
    result = project.run(ASK_THRICE, SCRIPT)
    told = (result["solved"], result["stop_reason"], result["metrics"]["landmarks"])
    assert told == (True, "submitted", 1.0)
    command, answer, submission = project.steps()
    assert command["action"]["type"] == "command"
    said = "model says one\nmodel says 2\nmodel says 42\n"
    assert command["observation"] == f"{said}[The program ended with exit code 0.]"
    assert (command["outcome"], command["landmarks"]) == ("ok", [0])
    assert (answer["observation"], submission["action"]["content"]) == ("42", "42")
    asked = [each["messages"][0]["content"] for each in asked_in(project.latest / "trials/a/1.0")]
    assert asked == [f"What is it? 'Tell' \"me\" {number}" for number in range(3)]
    assert (result["prompt_tokens"], result["completion_tokens"], result["steps"]) == (30, 9, 6)
    assert result["model_seconds"] > 0
    assert [call["prompt_tokens"] for call in project.calls] == [10, 10, 10]
    # Of three calls, which are steps before that of the program.
    assert sum(step["prompt_tokens"] for step in project.all_steps()) == 30


def test_a_program_gets_a_shell_its_working_directory_and_few_variables(project: CommandProject) -> None:
    project.add_task()
    show = "pwd; echo {workdir} {model} ${HOME} $OPENAI_API_KEY '{\"a\": 1}'; env | grep -c TOKEN"
    project.run(show, SCRIPT)
    where, told, tokens, _ = project.steps()[0]["observation"].splitlines()
    workdir, model, home, key, text = told.split(maxsplit=4)
    assert (where, model, key, text, tokens) == (workdir, "scripted", "none-is-needed", '{"a": 1}', "0")
    assert home.endswith("/home")


def test_the_files_that_a_program_changes_are_in_its_step(project: CommandProject) -> None:
    pre = ["!touch before.txt changed.txt; mkdir -p out/__pycache__; sleep 0.1"]
    project.add_task(set="masked", category="data", pre_execute=pre)
    written = "echo 1 > changed.txt; touch out/new.txt out/__pycache__/m.pyc .hidden"
    project.run(f"{written}; echo 42 > {{answer_file}}", SCRIPT)
    (command,) = (step for step in project.steps() if step["action"]["type"] == "command")
    assert list(command["files"]) == ["changed.txt", "out/new.txt"]
    (notebook,) = project.latest.glob("trials/a/*/trajectory.ipynb")
    assert "changed files: changed.txt, out/new.txt" in notebook.read_text()


def test_a_program_starts_after_pre_executed_cells_and_has_no_endpoint_without_model(
    project: CommandProject,
) -> None:
    pre = ["%mkdir sub\n%cd sub", "import os; os.environ['SET'] = 'by a cell'"]
    project.add_task(set="masked", category="data", pre_execute=pre)
    result = project.run('basename $PWD; echo $SET "${OPENAI_BASE_URL-none}"; echo 42 > {answer_file}')
    assert result["solved"]
    assert project.steps()[-3]["observation"].startswith("sub\nby a cell none\n")


def test_how_a_program_ends_is_told(project: CommandProject) -> None:
    ends = {
        "failed": ("exit 3", "exit code 3", "error"),
        "killed": ("kill -9 $$", "signal 9", "error"),
        "ended": ("kill 0", "signal 15", "error"),
        "left": ("(setsid sleep 600 &) ; echo left", "exit code 0", "ok"),
    }
    project.run_queries({id: query for id, (query, _, _) in ends.items()}, ". {query_file}")
    for id, (_, told, outcome) in ends.items():
        step, answer = project.steps(id)
        assert step["observation"].endswith(f"[The program ended with {told}.]")
        assert step["outcome"] == outcome
        assert answer["observation"] == "[There is no answer file: nothing was submitted.]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("no-such-agent --task x", "exit code 127: *no-such-agent: *not found"),
        ("touch agent; ./agent", "exit code 126: *./agent: Permission denied"),
    ],
)
def test_a_program_that_cannot_start_stops_the_run_as_an_error(
    project: CommandProject, line: str, how: str
) -> None:
    for id in ("a", "b"):
        project.add_task(id)
    result = project.run(line, SCRIPT)
    assert (result["id"], result["stop_reason"], len(project.results)) == ("a", "error", 1)
    assert project.outcome.ret == pytest.ExitCode.INTERRUPTED
    project.outcome.stdout.fnmatch_lines([f"error   a: the agent's program could not start: {how}: check *"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pre", "line", "why"),
    [
        ("%mkdir .super-query.md", "echo 42 > {answer_file}", "*Is a directory*.super-query.md*"),
        ("x = 1", f"echo {'x' * 200_000} > {{answer_file}}", "OSError: *Argument list too long*"),
    ],
)
def test_a_program_that_we_cannot_start_is_an_error_and_never_a_miss(
    project: CommandProject, pre: str, line: str, why: str
) -> None:
    project.add_task(set="masked", category="data", pre_execute=[pre])
    result = project.run(line, SCRIPT)
    assert (result["stop_reason"], result["agent_error"]) == ("error", None)
    project.outcome.stdout.fnmatch_lines([f"error   a: the agent's program was not started: {why}"])


def test_a_program_that_asks_for_nothing_that_is_offered_is_told_and_stops_the_run(
    project: CommandProject,
) -> None:
    for id in ("a", "b"):
        project.add_task(id)
    project.add_program("paths", PATHS)
    result = project.run("python $P/paths.py; echo no model; exit 3", SCRIPT)
    assert (result["id"], result["stop_reason"], len(project.results)) == ("a", "error", 1)
    assert project.outcome.ret == pytest.ExitCode.INTERRUPTED
    project.outcome.stdout.fnmatch_lines(
        ["error   a: *cannot use the model: it asked for POST /v1/embeddings, *: only *exit code 3: no*"]
    )
    *statuses, _, note, end = project.steps()[0]["observation"].splitlines()
    assert statuses == ["200", "404", "404", "404", "404"]
    assert note.startswith("[The program asked for POST /v1/embeddings, POST /v1/../super/trials")
    offered = (
        "only POST /v1/chat/completions, /v1/responses, /v1/messages, :generateContent, "
        ":streamGenerateContent?alt=sse, and GET /v1/models"
    )
    assert note.endswith(f"{offered} are offered here.]")
    assert end == "[The program ended with exit code 3.]"


def test_the_last_words_of_a_program_without_an_answer_are_in_its_line(project: CommandProject) -> None:
    for id, query in {"a": "echo first; echo no disk >&2; exit 3", "b": "exit 4"}.items():
        project.add_task(id, query=query)
    # It has asked the model, so it did start.
    project.add_task("c", query=f"{ASK_ONCE.format(query_file='$Q', answer_file='/dev/null')}; exit 127")
    project.run("Q={query_file}; . {query_file}", SCRIPT)
    ended = "the agent ended without a submission"
    project.outcome.stdout.fnmatch_lines(
        [
            f"missed  a: * {ended} (exit code 3: no disk); *",
            f"missed  b: * {ended} (exit code 4); *",
            f"missed  c: * {ended} (exit code 127: model says one); *",
        ]
    )


def test_an_answer_file_that_holds_no_answer_is_no_submission(project: CommandProject) -> None:
    queries = {id: query for id, (query, _) in NO_ANSWERS.items()}
    project.run_queries(queries, "A={answer_file}; . {query_file}")
    told = {row["id"]: row["agent_error"] for row in project.results}
    for id, (_, why) in NO_ANSWERS.items():
        assert why in project.steps(id)[-1]["observation"]
        assert why in told[id]


def test_what_is_left_out_of_a_programs_output_is_counted(project: CommandProject) -> None:
    project.add_task()
    project.run("head -c 3000000 /dev/zero | tr '\\0' x")
    step = project.steps()[0]
    shown = sum(output["text"].count("x") for output in step["outputs"])
    assert shown + step["omitted_characters"] == 3_000_000


@pytest.mark.slow
def test_a_program_that_does_not_end_is_killed_when_compute_is_spent(project: CommandProject) -> None:
    project.add_task("a", limits={"compute": 2})
    project.add_task("b")
    project.add_program(
        "deaf", "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]\nwhile 1: pass"
    )
    project.pytester.makeconftest(NOTE_DEAF)
    project.run(FIRST % "echo begun; exec python $P/deaf.py")
    rows = project.results
    assert [(row["stop_reason"], row["solved"]) for row in rows] == [("compute", False), ("submitted", True)]
    (step,) = project.steps("a")
    assert step["observation"] == "begun\n[The program was ended: compute spent.]"
    assert 2 <= rows[0]["compute_seconds"] < 20
    assert (project.path / "deaf.txt").read_text().splitlines()[0] == "command False"


@pytest.mark.slow
def test_waiting_for_the_model_is_no_compute_time(
    project: CommandProject, openai_environment: OpenAIServer
) -> None:
    openai_environment.always("42")
    openai_environment.latency = 3.0
    project.add_task(limits={"compute": 2.5})
    result = project.run(ASK_ONCE, "--super-model=openai/gpt-4o")
    assert result["solved"]
    assert result["compute_seconds"] < 2.5 < 3.0 <= result["model_seconds"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are observed by /proc")
def test_what_a_program_computes_while_it_waits_for_the_model_is_charged(
    project: CommandProject, openai_environment: OpenAIServer
) -> None:
    openai_environment.always("42")
    openai_environment.latency = 12.0
    project.add_task(limits={"compute": 2, "wall": 60})
    result = project.run(f"(while :; do :; done) & {ASK_ONCE}", "--super-model=openai/gpt-4o")
    assert (result["stop_reason"], result["submitted"]) == ("compute", False)


@pytest.mark.slow
def test_a_model_that_fails_makes_the_trial_an_error_whatever_the_program_does(
    project: CommandProject, openai_environment: OpenAIServer
) -> None:
    openai_environment.always(openai_environment.fault("401"))
    project.add_task("a")
    project.add_task("b")
    result = project.run(f"{ASK_ONCE}; echo 42 > {{answer_file}}", "--super-model=openai/gpt-4o")
    assert (result["id"], result["stop_reason"], result["solved"]) == ("a", "error", False)
    assert "API key" in result["error"]
    assert not list(project.latest.glob("trials/b/*/trajectory.jsonl"))


def test_a_program_that_kills_the_sandbox_does_not_affect_the_next_trial(project: CommandProject) -> None:
    project.add_task("a")
    project.add_task("b")
    project.run(FIRST % "kill -9 $(ps -o ppid= -p $PPID); sleep 60")
    ends = [(row["stop_reason"], row["solved"]) for row in project.results]
    assert ends == [("sandbox_lost", False), ("submitted", True)]


def test_a_model_of_a_fixture_is_refused(project: CommandProject) -> None:
    project.pytester.makeconftest(
        """
        import pytest
        from pytest_super.testing import FakeModel

        @pytest.fixture
        def super_model():
            return FakeModel("42")
        """
    )
    project.add_task()
    result = project.run(ASK_ONCE)
    assert result["stop_reason"] == "error"
    assert "a program can ask the model of --super-model alone" in result["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "value"),
    [("python train.py", 1.0), ("echo python train.py; sleep 0.8", 0.0)],
    ids=["ran", "said"],
)
def test_program_is_observed_when_it_runs_the_entrypoint(
    project: CommandProject, line: str, value: float
) -> None:
    project.add_task(set="auto", answer=None, entrypoint={"path": "train.py", "min_seconds": 0.5})
    result = project.run(f"echo 'import time; time.sleep(0.8)' > train.py; {line}", "--junitxml=junit.xml")
    assert (result["metrics"]["script_executed"], result["error"]) == (value, None)
    assert f'"super.script_executed" value="{value}"' in (project.path / "junit.xml").read_text()
