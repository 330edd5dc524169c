"""`pytest-super generate` as a person runs it: through a gateway and real HTTP to a scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# All of it from the start: what is first imported while pytester runs is forgotten, and then there twice.
import pytest_super.authoring.generate.generation  # noqa: F401
from pytest_super.cli import main
from pytest_super.tasks.loading import load_tasks
from tests.integration.conftest import read_lines
from tests.openai_server import KEY, OpenAIServer
from tests.waiting import until

YES = {
    "q_supported_dataset": "MRPC",
    "q_cpu": True,
    "q_model_families": True,
    "q_execute_example": True,
}
TASK = "Fit the pairwise matcher on MRPC with bert-base by running train.py."
PROPOSAL = json.dumps({"thought": "shown", "output": {"task": TASK, "entrypoint": "train.py"}})
MODEL = "--model=openai/gpt-4o"
pytestmark = pytest.mark.usefixtures("openai_environment")


def scripted(**no: str) -> Callable[[dict[str, Any]], str]:
    """Answers; `no` has the question that is answered by no, by the name of the repository that is shown."""

    def answer(request: dict[str, Any]) -> str:
        system, user = request["messages"][:2]
        if "q_cpu" not in system["content"]:
            return PROPOSAL
        name = user["content"].split("<repository>\n")[1].split("\n")[0]
        return json.dumps(YES | {question: False for named, question in no.items() if named == name})

    return answer


@pytest.fixture(autouse=True)
def environment(_own_cache: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def make_repositories(*names: str) -> list[str]:
    for name in names:
        folder = Path("auto", name)
        folder.mkdir(parents=True)
        (folder / "README.md").write_text(f"# {name}\n\n    python train.py\n")
        (folder / "train.py").write_text("print('trained')\n")
    return [f"auto/{name}" for name in names]


def reasons() -> dict[str, str]:
    """Of the last line of each repository."""
    return {row["id"]: row["reason"] for row in read_lines(Path("auto/repositories.jsonl"))}


@pytest.mark.slow
def test_folders_become_tasks_that_validate_and_are_collected_and_a_second_run_asks_nothing(
    openai_server: OpenAIServer, capsys: pytest.CaptureFixture[str], pytester: pytest.Pytester
) -> None:
    named = make_repositories("a", "b", "c")
    openai_server.by(scripted(b="q_cpu"))
    assert main(["generate", *named, MODEL, "--jobs=2", "--record=calls"]) == 0
    out = capsys.readouterr().out
    assert "kept" in out
    assert "  needs_gpu" in out
    assert "have cost $" in out
    assert reasons() == {"a": "", "b": "needs_gpu", "c": ""}
    assert len(openai_server.requests) == 5
    assert openai_server.requests[0].body["temperature"] == 0
    assert len(list(Path("calls").rglob("*.jsonl"))) == 3
    assert main(["validate", "auto"]) == 0
    collected = pytester.runpytest(
        "--super-agent=react", "--super-model=m", "--collect-only", "-q", str(Path("auto").absolute())
    )
    collected.stdout.fnmatch_lines(["*a.task.yaml::a*", "*c.task.yaml::c*"])
    report = Path("auto/repositories.jsonl").read_bytes()
    assert main(["generate", *named, MODEL]) == 0
    assert len(openai_server.requests) == 5
    assert Path("auto/repositories.jsonl").read_bytes() == report
    assert "0 answers of openai/gpt-4o" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cost_limit_ends_the_run_and_a_higher_one_goes_on(
    openai_server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    named = make_repositories("a", "b", "c")
    answer = scripted()
    # $0.05 a call.
    usage = {"prompt_tokens": 20_000, "completion_tokens": 0, "total_tokens": 20_000}
    openai_server.by(lambda request: {"text": answer(request), "usage": usage})
    assert main(["generate", *named, MODEL, "--jobs=1", "--max-cost=0.12"]) == 1
    captured = capsys.readouterr()
    assert "raise --max-cost to go on" in captured.err
    assert any(line.split() == ["not", "looked", "at", "2"] for line in captured.out.splitlines())
    first = len(openai_server.requests)
    assert first in (2, 3)
    assert reasons() == {"a": ""}
    assert main(["generate", *named, MODEL, "--jobs=1", "--max-cost=0.12"]) == 1
    assert len(openai_server.requests) == first
    assert main(["generate", *named, MODEL, "--max-cost=1"]) == 0
    assert reasons() == {"a": "", "b": "", "c": ""}
    asked = {json.dumps(request.body["messages"]) for request in openai_server.requests}
    assert len(asked) == len(openai_server.requests) == 6


@pytest.mark.slow
def test_a_wrong_key_ends_the_run_with_one_message_that_has_no_key(
    openai_server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.always(openai_server.fault("401"))
    assert main(["generate", *make_repositories("a", "b", "c", "d"), MODEL]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("pytest-super: stopped: ")
    assert KEY not in captured.err + captured.out
    assert reasons() == {}


def test_a_model_that_is_scripted_needs_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    named = make_repositories("a", "b")
    script = {"a": [json.dumps(YES), PROPOSAL], "*": ["no JSON", "nor here"]}
    Path("script.json").write_text(json.dumps(script))
    assert main(["generate", *named, "--model=scripted:script.json"]) == 0
    assert reasons() == {"a": "", "b": "bad_answer"}
    (task,) = load_tasks(Path("auto/a.task.yaml"))
    assert task.metadata["model"] == "scripted"
    assert "could not be used, twice" in capsys.readouterr().out


def start(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from pytest_super.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, "generate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_loses_no_answer_that_came(openai_server: OpenAIServer, presses: int) -> None:
    named = make_repositories("a", "b", "c", "d")
    answer = scripted()
    go = threading.Event()

    def slowly(request: dict[str, Any]) -> str:
        # The first repository comes to its end, those after it wait.
        if "# a" not in request["messages"][1]["content"]:
            go.wait(60)
        return answer(request)

    openai_server.by(slowly)
    process = start(*named, MODEL, "--jobs=2")
    try:
        # Of each of two threads a call is under way.
        until(lambda: len(openai_server.requests) == 4)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kept     a ")
        process.send_signal(signal.SIGINT)
        assert "Ctrl-C again leaves at once" in process.stdout.readline()
        if presses == 2:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        go.set()
        out, _ = process.communicate(timeout=60)
    finally:
        go.set()
        process.kill()
    assert process.returncode == 130
    assert "not looked at" in out
    assert reasons() == {"a": ""}
    known = len(Path("auto/answers.jsonl").read_text().splitlines())
    assert known == (4 if presses == 1 else 2)
    before = len(openai_server.requests)
    assert main(["generate", *named, MODEL]) == 0
    assert reasons() == dict.fromkeys("abcd", "")
    assert len(openai_server.requests) == before + 8 - known


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(openai_server: OpenAIServer) -> None:
    named = make_repositories("a", "b")
    openai_server.by(scripted())
    openai_server.reply(json.dumps(YES), PROPOSAL, json.dumps(YES), openai_server.fault("hang"))
    process = start(*named, MODEL, "--jobs=1")
    try:
        until(lambda: len(openai_server.requests) == 4)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
    openai_server.release()
    assert main(["generate", *named, MODEL]) == 0
    assert reasons() == {"a": "", "b": ""}
    assert len(openai_server.requests) == 5
