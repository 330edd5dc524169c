"""`pytest-super fork`: today's agent goes on from a step of a stored trial, in real kernels."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from tests.integration.conftest import CLIENT, WITH_AND_WITHOUT_XDIST, Folder, read_lines
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

CLI = "import sys; from pytest_super.cli import main; sys.exit(main())"
MODEL = "--super-model=openai/gpt-4o"
# How long it took is not compared.
READ = "import time; print(open('{path}').read()); print(f'{{time.time() % 10:.4f}} s')"
MADE, WRONG, RIGHT = "print('made')", "print('wrong')", "print('right')"
SUBMIT = "Thought: done\nAction: submit\n<content>{}</content>"
# Two steps of one answer, after one without a question, and many that take no time.
HASTY = """
class Agent:
    def run(self, trial):
        trial.execute("0")
        code = trial.complete([{"role": "user", "content": "what?"}]).text
        trial.execute("1")
        trial.execute("2")
        for number in range(20):
            trial.reject(trial.complete([{"role": "user", "content": str(number)}]).text)
        trial.submit(int(trial.complete([{"role": "user", "content": "so?"}]).text))
"""
# Executes nothing of what it is told.
OTHER = """
class Agent:
    def run(self, trial):
        answers = [trial.complete([{"role": "user", "content": "what?"}]).text for _ in range(3)]
        trial.execute("'none'")
        trial.submit(int(answers[-1]))
"""
# Does what the model calls its tools for, and prints what it says in the end.
PROGRAM = """
import json, sys
sys.path.insert(0, "{folder}")
from client import ask_with

messages = [{{"role": "user", "content": "go"}}]
while True:
    body = {{"model": "any", "messages": messages}}
    message = ask_with(json.dumps(body).encode())["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        said = str(eval(json.loads(call["function"]["arguments"])["code"]))
        messages.append({{"role": "tool", "tool_call_id": call["id"], "content": said}})
print(message["content"])
"""


def execute(code: str) -> str:
    return f"Thought: on\nAction: execute\n<content>{code}</content>"


def tool(id: str, code: str) -> dict[str, Any]:
    function = {"name": "run", "arguments": json.dumps({"code": code})}
    return {"tool_calls": [{"id": id, "type": "function", "function": function}]}


class ForkProject(Folder):
    """Its run `first` has a trial that went wrong at its third step, which is number 4 after the prefix."""

    def __init__(self, pytester: pytest.Pytester, server: OpenAIServer) -> None:
        super().__init__(pytester)
        self.server = server
        self.write("agent.py", HASTY)
        self.write("read.txt", "one")
        self.cells = [READ.format(path=self.path / "read.txt"), MADE, WRONG]

    def add_task(self, id: str = "a", file: str = "", **fields: Any) -> None:
        super().add_task(id, file, **{"pre_execute": ["print('before')"], **fields})

    def record(self, *arguments: str, agent: str = "react-super") -> None:
        """Make the run `first`."""
        self.add_task()
        if agent == "react-super":
            self.server.reply(*map(execute, self.cells), SUBMIT.format(0))
        self.pytester.runpytest(f"--super-agent={agent}", "--super-sandbox=local", MODEL, *arguments)
        self.latest.resolve().rename(self.first)
        self.server.requests.clear()

    @property
    def first(self) -> Path:
        return self.path / ".super/runs/first"

    def fork(self, *arguments: str, is_apart: bool = False) -> pytest.RunResult:
        """In this process, where each import is paid for once, unless it is to be apart."""
        given = ("fork", ".super/runs/first", "a", *arguments)
        if is_apart:
            return self.pytester.run(sys.executable, "-c", CLI, *given)
        started: list[list[str]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "execv", lambda _, command: started.append(command))
            self.command(*given)
        return self.pytester.runpytest(*started[0][3:])

    @property
    def results(self) -> list[dict[str, Any]]:
        rows = read_lines(self.latest / "results.jsonl")
        return sorted(rows, key=lambda row: row["epoch"])

    @property
    def result(self) -> dict[str, Any]:
        (row,) = self.results
        return row

    def actions(self, epoch: int = 1) -> list[str]:
        steps = read_lines(self.latest / f"trials/a/{epoch}.0/trajectory.jsonl")
        return [step["action"]["content"] for step in steps]


@pytest.fixture
def project(pytester: pytest.Pytester, openai_environment: OpenAIServer) -> ForkProject:
    return ForkProject(pytester, openai_environment)


@WITH_AND_WITHOUT_XDIST
def test_todays_agent_goes_on_from_a_step_and_asks_only_from_there_on(
    project: ForkProject, workers: tuple[str, ...]
) -> None:
    project.record("--super-model-arg=top_p=0.5")
    project.server.reply(execute(RIGHT), SUBMIT.format(42), execute(RIGHT), SUBMIT.format(41))
    result = project.fork("--step=3", "--super-epochs=2", *workers, is_apart=not workers)
    # Two requests of each epoch: the first two answers came from the record.
    assert len(project.server.requests) == 4
    for epoch, (row, solved) in enumerate(zip(project.results, (True, False), strict=True), 1):
        assert project.actions(epoch)[1:4] == [*project.cells[:2], RIGHT]
        assert (row["forked_from"], row["fork_difference"]) == ("first a step 3", "")
        assert (row["recorded"], row["provided"], row["error"], row["solved"]) == (2, 2, None, solved)
    # The agent sees what was replayed as its own past, and nothing of what came after it.
    seen = json.dumps(project.server.requests[0].body["messages"])
    assert MADE in seen
    assert WRONG not in seen
    assert project.server.requests[0].body["top_p"] == 0.5
    result.stdout.fnmatch_lines(
        [
            "super: agent react-super, model openai/gpt-4o, forked from first a step 3, sandbox local *",
            "forked from first a step 3: 2 of 2 trials replayed it as recorded",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_agent_that_asks_otherwise_has_the_same_past_and_differences_are_told(
    project: ForkProject,
) -> None:
    project.record()
    project.write("prompt.md", "Be brief.")
    project.server.reply(SUBMIT.format(42))
    project.fork("--step=3", "--super-prompt=prompt.md")
    (request,) = project.server.requests
    messages = request.body["messages"]
    assert messages[0]["content"].startswith("Be brief.")
    assert MADE in json.dumps(messages)
    row = project.result
    assert (row["recorded"], row["fork_difference"], row["error"], row["solved"]) == (2, "", None, True)
    # Another agent takes another step.
    project.write("other.py", OTHER)
    project.server.reply("42")
    project.fork("--step=3", "--super-agent=other:Agent")
    assert project.result["fork_difference"].startswith("step 2: ")
    assert len(project.server.requests) == 2
    project.write("read.txt", "other")
    project.server.reply(SUBMIT.format(42))
    result = project.fork("--step=3")
    assert project.result["fork_difference"] == "step 2: 'one' -> 'other'"
    assert (project.result["error"], project.result["solved"]) == (None, True)
    assert project.actions()[1:] == [*project.cells[:2], "42"]
    result.stdout.fnmatch_lines(
        ["forked from first a step 3: 0 of 1 trial replayed it as recorded", "  a: step 2: 'one' -> 'other'"]
    )


def test_a_replayed_step_that_leaves_another_file_is_told(project: ForkProject) -> None:
    project.write("read.txt", "here")
    project.cells[0] = f"_ = open('copy.txt', 'w').write(open({str(project.path / 'read.txt')!r}).read())"
    project.record()
    project.write("read.txt", "gone")
    project.server.reply(SUBMIT.format(42))
    project.fork("--step=3")
    before, now = (hashlib.sha256(text.encode()).hexdigest()[:12] for text in ("here", "gone"))
    difference = f"step 2: 'copy.txt: {before}' -> 'copy.txt: {now}'"
    assert (project.result["fork_difference"], project.result["error"]) == (difference, None)


@pytest.mark.long
def test_nothing_compares_a_fork_with_whole_trials(
    project: ForkProject, capsys: pytest.CaptureFixture[str]
) -> None:
    project.record("--super-epochs=1")
    # What the project's own settings decide by is not decided by a fork.
    project.pytester.makeini("[pytest]\nsuper_fail_under = 1\nsuper_set = masked\nsuper_epochs = 2-4\n")
    project.server.reply(SUBMIT.format(0))
    result = project.fork("--step=3")
    result.stdout.no_fnmatch_line("gate:*")
    project.pytester.makeini("[pytest]\n")
    forked = project.latest.resolve()
    capsys.readouterr()
    assert main(["compare", str(project.first), str(forked)]) == 1
    assert "other conditions (fork): a" in capsys.readouterr().err
    for more in ((), ("--add",)):
        if more:
            assert main(["baseline", "update", str(project.first)]) == 0
        assert main(["baseline", "update", str(forked), *more]) == 1
    assert capsys.readouterr().err.count("is a fork of first a step 3: a baseline is made of") == 2
    for gate in ("--super-baseline=baseline.json", "--super-fail-under=0"):
        result = project.fork("--step=3", gate)
        result.stderr.fnmatch_lines(["*no gate is decided by a fork: leave out *"])
    whole = ("--super-agent=react-super", "--super-sandbox=local", MODEL)
    result = project.pytester.runpytest(*whole, f"--super-baseline={forked}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    # A whole trial is not taken over from a fork.
    project.server.reply(SUBMIT.format(42))
    project.pytester.runpytest(*whole, f"--super-resume={forked}")
    assert (project.result["resumed_from"], project.result["forked_from"]) == ("", "")


def test_a_program_goes_on_from_a_call_of_a_tool(project: ForkProject) -> None:
    project.write("client.py", CLIENT)
    project.write("program.py", PROGRAM.format(folder=project.path))
    project.server.reply(tool("c1", "1 + 1"), tool("c2", "6 * 9"), "0")
    project.record(agent=f"command: python {project.path}/program.py > {{answer_file}}")
    project.server.reply(tool("c3", "6 * 7"), "42")
    project.fork("--step=2")
    assert len(project.server.requests) == 2
    said = [one["content"] for one in project.server.requests[-1].body["messages"] if one["role"] == "tool"]
    assert said == ["2", "42"]
    row = project.result
    assert (row["recorded"], row["fork_difference"], row["solved"]) == (1, "", True)


def test_what_cannot_be_forked_is_refused_in_one_line(
    project: ForkProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # By which pytest would take the place of this process.
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it was not refused"))
    project.record()
    trial = project.first / "trials/a/1.0"

    def refused(step: int = 3, name: str = "a", run: Path = project.first) -> str:
        capsys.readouterr()
        assert main(["fork", str(run), name, f"--step={step}"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix("pytest-super: ")

    nothing = project.path / "nothing"
    assert refused(run=nothing) == (
        f"there is no run {nothing}: name the id of a run in .super/runs, latest, or the path of a run"
    )
    assert refused(name="b") == "first has no trial of b"
    for step in (-1, 0, 1, 6):
        assert refused(step) == f"--step={step}: the agent's steps are 2 to 5"
    assert refused(5) == "--step=5: it is the submission, from which nothing goes on"
    project.add_task(query="other")
    assert refused() == "a of first cannot be forked: its task has changed since"
    project.add_task()
    (trial / "answers.jsonl").unlink()
    assert refused().startswith("a of first has no recorded answers, so its steps cannot be replayed: ")
    (trial / "trajectory.jsonl").unlink()
    assert refused() == f"{trial}/trajectory.jsonl is not a trajectory: it has no steps"
    (project.path / "tasks/a.task.yaml").unlink()
    assert refused() == "tasks: there is no *.task.yaml file"


def test_an_answer_belongs_to_the_steps_that_follow_it(project: ForkProject) -> None:
    project.server.always("0")
    project.record(agent="agent:Agent")
    for step, message in (
        (2, "the agent took it before it asked its model"),
        (3, "the same answer of the model led to step 4, so name a step before it, or 4"),
    ):
        refused = project.command("fork", ".super/runs/first", "a", f"--step={step}")
        assert refused.stderr == f"pytest-super: --step={step}: {message}\n"
    project.fork("--step=20")
    assert (project.result["recorded"], project.result["fork_difference"]) == (1 + 16, "")
    assert len(project.server.requests) == 4 + 1
