"""Programs from npm, in containers, that get the recorded answers of their model again."""

import json
from pathlib import Path

import pytest

from tests.docker.test_docker_agents_by_name import (
    ANSWER,
    Player,
    build_image,
    model_of,
    results_of,
    write_small_task,
)
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.usefixtures("openai_environment", "image")]
FAIL = ("--super-answers=first", "--super-answers-miss=fail")
# Three commands each: what succeeds, fails, and prints much.
COMMANDS = {
    "prints": ["echo ready", "python3 -c 'print(6 * 7)'"],
    "fails": ["cat missing.txt", "python3 -c 'raise ValueError(7)'"],
    "much": ["seq 5000", "ls /usr/bin | head -500"],
}
# The file of each, and how it begins in a prompt.
INSTRUCTIONS = {
    "codex": (".codex/AGENTS.md", "# AGENTS.md instructions"),
    "claude-code": (".claude/CLAUDE.md", "Codebase and user instructions are shown below."),
}
BY_NAME = pytest.mark.parametrize("name", ["codex", "claude-code"])


class RecordedProject:
    """Three tasks, whose first run is `first`."""

    def __init__(self, pytester: pytest.Pytester, server: OpenAIServer, name: str) -> None:
        build_image(name)
        pytester.makeini("[pytest]\nsuper_sandbox = docker\n")
        self.pytester, self.server, self.name = pytester, server, name
        queries = {id: write_small_task(pytester, id) for id in COMMANDS}
        end = f"echo 42 > {ANSWER}"
        server.by(Player(name, {queries[id]: [*commands, end] for id, commands in COMMANDS.items()}))

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(f"--super-agent={self.name}", "-n2", *arguments, ".")

    def record(self, *arguments: str) -> None:
        self.run(model_of(self.name), *arguments)
        runs = self.pytester.path / ".super/runs"
        (runs / "latest").resolve().rename(runs / "first")

    def check_again(self, *arguments: str) -> None:
        """Run again without the model: no request differs, and all actions are done."""
        asked = len(self.server.requests)
        ran = self.run(*FAIL, *arguments)
        results = results_of(self.pytester)
        assert {id: (one["solved"], one["error"]) for id, one in results.items()} == dict.fromkeys(
            COMMANDS, (True, None)
        ), ran.outlines
        assert len(self.server.requests) == asked
        [line] = [line for line in ran.outlines if "got all answers from" in line]
        equal, _, trials = line.split()[:3]
        assert equal == trials, ran.outlines


@pytest.fixture
def recorded(pytester: pytest.Pytester, openai_server: OpenAIServer, name: str) -> RecordedProject:
    return RecordedProject(pytester, openai_server, name)


@pytest.mark.long
@BY_NAME
def test_a_program_asks_the_same_again_and_a_change_shows_at_the_first_call(
    recorded: RecordedProject, name: str, tmp_path: Path
) -> None:
    recorded.record()
    for _ in range(3):
        recorded.check_again()
    file, told = INSTRUCTIONS[name]
    instructions = tmp_path / "setup" / file
    instructions.parent.mkdir(parents=True)
    instructions.write_text("Speak of ferrets.")
    recorded.run(*FAIL, f"--super-agent-files={tmp_path / 'setup'}")
    for one in results_of(recorded.pytester).values():
        assert "no answer to call 1: " in one["error"]
        assert f"'' -> '{told}" in one["error"]


@pytest.mark.long
@BY_NAME
def test_a_hundred_trials_of_a_program_ask_the_same_again(recorded: RecordedProject) -> None:
    recorded.record("--super-epochs=34")
    recorded.check_again("--super-epochs=34")


# Asks once, so that there is a record, and then tries to read and to write it.
SPY = """
from pathlib import Path

TRY = '''
def tried(mode):
    try:
        open({record!r}, mode).close()
        return "done"
    except OSError as error:
        return type(error).__name__
print(tried("r"), tried("a"))
'''

class Agent:
    def run(self, trial):
        trial.complete([{"role": "user", "content": "hi"}])
        record = next(Path(__file__).parent.glob(".super/runs/*/trials/a/1.0/answers.jsonl"))
        trial.submit(trial.execute(TRY.format(record=str(record))).observation.strip())
"""


@pytest.mark.parametrize("sandbox", ["docker", "bubblewrap"])
def test_no_code_of_a_trial_can_read_or_write_its_record(
    pytester: pytest.Pytester, openai_server: OpenAIServer, sandbox: str
) -> None:
    openai_server.always("hello")
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.makepyfile(spy=SPY)
    task = {"id": "a", "set": "expert", "query": "x", "answer": "FileNotFoundError FileNotFoundError"}
    (pytester.path / "a.task.yaml").write_text(json.dumps(task))
    ran = pytester.runpytest(
        "--super-agent=spy:Agent", "--super-model=openai/gpt-4o", f"--super-sandbox={sandbox}", "."
    )
    ran.assert_outcomes(passed=1)
