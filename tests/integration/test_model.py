"""Models asked by agents, through the gateway, in pytest runs of their own.

Most runs have a scripted model, whose gateway starts without litellm. The others go over real HTTP.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_super.store.answers import read_answers
from tests.integration.conftest import Project, asked_in, read_lines
from tests.openai_server import KEY, OpenAIServer
from tests.waiting import until

# Asks until an answer begins with `submit`, and prints every other answer in a cell.
ASKER = """
import os, signal, sys, tempfile, time
from pathlib import Path

def gateway():
    folder = Path(tempfile.gettempdir(), f"pytest-super-{os.getuid()}")
    run = Path(".super/runs/latest").resolve().name
    return int((folder / run / "pid").read_text())

class Agent:
    def run(self, trial):
        while True:
            completion = trial.complete([{"role": "user", "content": "step " * 100}])
            if completion.text.startswith("submit"):
                trial.submit(int(completion.text.removeprefix("submit")))
            elif completion.text.startswith("kill"):
                Path("pid").write_text(str(os.getpid()))
                os.kill(gateway(), signal.SIGKILL)
            elif completion.text.startswith("wait"):
                Path("waiting").touch()
                time.sleep(60)
            else:
                trial.execute(f"print({completion.text!r}, {completion.model!r})")

# Leaves a file if its worker has imported what only the gateway needs.
class Noting(Agent):
    def run(self, trial):
        try:
            super().run(trial)
        finally:
            if {"litellm", "aiohttp"} & set(sys.modules):
                Path("imported").touch()
"""
MODEL = "--super-model=openai/gpt-4o"
pytestmark = pytest.mark.usefixtures("openai_environment")
NEEDS_PROC = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")


@pytest.fixture
def asking(project: Project) -> Project:
    project.pytester.makepyfile(agent=ASKER)
    return project


def gateways(project: Project) -> list[int]:
    """The process ids of the gateways of the project's newest run."""
    run = os.readlink(project.path / ".super" / "runs" / "latest")
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text(errors="replace").split("\0")
        except OSError:
            continue
        if "pytest_super.model.gateway" in words and Path(words[-2]).name == run:
            found.append(int(path.parent.name))
    return found


# The usage is about that of the agent's prompt, from which the next call is estimated.
LOOK = {"text": "look around", "usage": {"prompt_tokens": 120, "completion_tokens": 2}}


def asking_script(project: Project, answers: Any) -> str:
    """The option for a model that gives these answers."""
    (project.path / "script.json").write_text(json.dumps(answers))
    return "--super-model=scripted:script.json"


def test_answers_and_their_usage_are_reported(asking: Project, openai_server: OpenAIServer) -> None:
    for name in ("a", "b", "c"):
        asking.add_task(name)
    openai_server.reply(openai_server.fault("429", retry_after=0))
    openai_server.by(lambda _: "submit 42" if len(openai_server.requests) > 3 else "look around")
    result = asking.run(MODEL, "-n1", agent="agent:Noting")
    result.assert_outcomes(passed=3)
    assert not (asking.path / "imported").exists()
    rows = asking.results
    asked = len(openai_server.requests) - 1
    assert sum(row["prompt_tokens"] for row in rows.values()) == asked * 104
    assert all(row["model"] == "openai/gpt-4o" and row["cost_usd"] > 0 for row in rows.values())
    assert all(row["model_seconds"] >= row["waited_seconds"] for row in rows.values())
    assert any(row["waited_seconds"] > 0 for row in rows.values())
    calls = asking.calls
    assert len(calls) == asked
    assert {(call["model"], call["fingerprint"]) for call in calls} == {("gpt-4o-2024-08-06", "fp_test")}
    result.stdout.fnmatch_lines(["super: agent agent:Noting, model openai/gpt-4o, *"])
    assert sum(len(asked_in(asking.latest / row["folder"])) for row in rows.values()) == asked
    assert openai_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    files = [path for path in asking.path.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_wrong_key_stops_the_run_with_one_message(asking: Project, openai_server: OpenAIServer) -> None:
    for number in range(8):
        asking.add_task(f"t{number}")
    openai_server.always(openai_server.fault("401"))
    result = asking.run(MODEL, "-n2")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(openai_server.requests) == 1
    assert len(asking.results) <= 4
    assert all(row["error"] for row in asking.results.values())
    assert KEY not in result.stdout.str() + result.stderr.str()
    first = read_answers(next(asking.latest.glob("trials/*/1.0/answers.jsonl")))
    assert first.calls[1].end["error"]["code"] == "fatal"


@pytest.mark.long
def test_a_port_at_which_nothing_listens_ends_the_run_at_the_first_trial(
    asking: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        asking.add_task(f"t{number}")
    with socket.socket() as closed:
        # Bound, so that nobody else takes the port, but nothing listens.
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        result = asking.run(MODEL, "-n2")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    # Each worker has begun its first.
    assert len(asking.results) <= 2
    told = (
        "*gave up after 8 tries*connection to http://127.0.0.1:*failed*no call of the run has ever connected*"
    )
    result.stdout.fnmatch_lines([f"error   t?: {told}"])


@pytest.mark.slow
def test_a_provider_that_is_down_until_the_wall_limit_is_an_error_and_no_miss(
    asking: Project, openai_server: OpenAIServer
) -> None:
    asking.add_task("a", limits={"wall": 8})
    openai_server.always(openai_server.fault("hang"))
    result = asking.run(MODEL)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["error   a: *until the wall limit: openai/gpt-4o: no answer*"])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["", "n2"])
def test_a_run_that_reaches_its_limit_of_cost_stops_without_misses_and_errors(
    asking: Project, workers: tuple[str, ...]
) -> None:
    for number in range(8):
        asking.add_task(f"t{number}")
    answer = {**LOOK, "text": "submit 42", "cost_usd": 0.1}
    options = ("--super-max-cost=0.25", "--super-fail-under=1", "--junitxml=out.xml", *workers)
    result = asking.run(asking_script(asking, [answer]), *options)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert sum(call["cost_usd"] for call in asking.calls) == pytest.approx(0.2)
    reasons = Counter(row["stop_reason"] for row in asking.results.values())
    assert reasons.pop("submitted") == 2
    # With workers, the end of the run can also interrupt a trial that has not asked.
    assert set(reasons) <= {"run_cost", "interrupted"}
    assert reasons["run_cost"] >= 1
    result.stdout.fnmatch_lines(
        [
            "all * 2 * 1.000 * 0",
            "stopped t*: the run has cost $0.2000 of the $0.25 allowed: raise --super-max-cost to go on *",
            "* stopped by the run's limit of cost, *: the means are over 2 of 8 trials",
            f"to go on: * --super-resume={asking.latest.resolve().name} *--super-max-cost=0.25 *",
        ]
    )
    assert result.outlines[-1] == "gate: open, the run has no mean accuracy of all trials"
    assert result.parseoutcomes().keys() == {"passed", "stopped"}
    xml = (asking.path / "out.xml").read_text()
    assert 'failures="0"' in xml
    assert 'errors="0"' in xml
    assert "the run has cost" in xml


def test_a_first_request_that_is_larger_than_the_limit_is_told(asking: Project) -> None:
    asking.add_task("a", limits={"tokens": 1})
    result = asking.run(asking_script(asking, [LOOK]))
    why = (
        "the tokens budget was spent (the first request alone needs about * of 1 tokens: raise limits.tokens"
    )
    result.stdout.fnmatch_lines([f"missed  a: *{why}*"])
    assert (asking.results["a[1]"]["error"], asking.calls) == (None, [])


def test_a_gateway_that_dies_is_started_again_and_forgets_nothing(asking: Project) -> None:
    asking.add_task("a", limits={"tokens": 1150})
    asking.run(asking_script(asking, [LOOK, {**LOOK, "text": "kill"}, *[LOOK] * 20])).assert_outcomes(
        failed=1
    )
    row = asking.results["a[1]"]
    # No call passes the limit.
    assert (row["stop_reason"], row["metrics"]["accuracy"], row["prompt_tokens"]) == ("tokens", 0.0, 1080)
    assert (asking.path / "pid").exists()
    assert len(asking.calls) == 9


@pytest.mark.slow
@NEEDS_PROC
def test_nothing_is_left_of_a_run_that_was_killed(asking: Project) -> None:
    asking.add_task("a")
    model = asking_script(asking, ["wait"])
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "--super-sandbox=local", model]
    with subprocess.Popen([*command, "-n2"], cwd=asking.path, stdout=subprocess.DEVNULL) as process:
        try:
            until((asking.path / "waiting").exists)
            assert len(gateways(asking)) == 1
        finally:
            process.kill()
    until(lambda: not gateways(asking))


def test_a_scripted_model_needs_no_key_and_what_it_refuses_ends_its_trial_alone(
    asking: Project, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for id in ("a", "b", "c"):
        asking.add_task(id)
    refused = {"error": {"status": 400, "message": "Unknown parameter"}}
    answers = {"a": ["look around", "submit 42"], "b": [refused], "*": ["submit 0"]}
    result = asking.run(asking_script(asking, answers))
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["error   b: *Unknown parameter*"])
    assert openai_server.requests == []
    assert asking.results["a[1]"]["steps"] == 2
    assert len(asked_in(asking.latest / "trials/a/1.0")) == 2


@pytest.mark.slow
def test_the_usage_of_a_trial_whose_worker_died_comes_from_the_ledger(asking: Project) -> None:
    asking.add_task("a")
    asking.pytester.makepyfile(
        agent="""
import os, signal

class Agent:
    def run(self, trial):
        for _ in range(2):
            trial.complete([{"role": "user", "content": "step " * 100}])
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    asking.run(asking_script(asking, [{**LOOK, "cost_usd": 0.1}] * 2), "-n1").assert_outcomes(errors=1)
    for row in read_lines(asking.latest / "results.jsonl"):
        assert (row["prompt_tokens"], row["steps"]) == (240, 0)
        assert row["cost_usd"] > 0
        own = [call for call in asking.calls if call["trial"] == f"a/1.{row['rerun']}"]
        assert row["model_seconds"] == pytest.approx(sum(call["seconds"] for call in own))


def test_a_folder_that_the_gateway_cannot_use_stops_the_run_as_an_error(
    asking: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        asking.add_task(name)
    # A short path, because a socket's path is short: a long one would not be used.
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        (Path(temporary) / f"pytest-super-{os.getuid()}").write_text("in the way")
        monkeypatch.setattr(tempfile, "tempdir", temporary)
        result = asking.run(MODEL)
    assert result.parseoutcomes()["errors"] == len(asking.results)
    assert all("no place for the model gateway" in row["error"] for row in asking.results.values())
