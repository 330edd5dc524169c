"""`pytest-super generate` as a person runs it: through a gateway and real HTTP to a scripted model."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# All of it from the start: what is first imported while pytester runs is forgotten, and then there twice.
import pytest_super.authoring.generate.command  # noqa: F401
from pytest_super.cli import main
from pytest_super.tasks.loading import load_tasks
from tests.integration.conftest import read_lines
from tests.openai_server import OpenAIServer
from tests.waiting import until

YES = {"q_supported_dataset": "MRPC", "q_cpu": True, "q_model_families": True, "q_execute_example": True}
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
def test_folders_become_valid_tasks_and_a_second_run_asks_nothing(
    openai_server: OpenAIServer, capsys: pytest.CaptureFixture[str], pytester: pytest.Pytester
) -> None:
    named = make_repositories("a", "b", "c")
    openai_server.by(scripted(b="q_cpu"))
    assert main(["generate", *named, MODEL, "--jobs=2"]) == 0
    out = capsys.readouterr().out
    assert "2 of 3 repositories kept; all runs into auto have cost $" in out
    assert "1  needs_gpu" in out
    assert reasons() == {"a": "", "b": "needs_gpu", "c": ""}
    assert len(openai_server.requests) == 5
    assert openai_server.requests[0].body["temperature"] == 0
    assert main(["validate", "auto"]) == 0
    collected = pytester.runpytest(
        "--super-agent=react", "--super-model=m", "--collect-only", "-q", str(Path("auto").absolute())
    )
    collected.stdout.fnmatch_lines(["*a.task.yaml::a*", "*c.task.yaml::c*"])
    report = Path("auto/repositories.jsonl").read_bytes()
    assert main(["generate", *named, MODEL]) == 0
    assert len(openai_server.requests) == 5
    assert Path("auto/repositories.jsonl").read_bytes() == report


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
    assert "2  not looked at" in captured.out
    assert len(openai_server.requests) in (2, 3)
    assert reasons() == {"a": ""}
    assert main(["generate", *named, MODEL, "--max-cost=1"]) == 0
    assert reasons() == {"a": "", "b": "", "c": ""}


def test_a_model_that_is_scripted_needs_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    named = make_repositories("a", "b")
    script = {"a": [json.dumps(YES), PROPOSAL], "*": ["no JSON"]}
    Path("script.json").write_text(json.dumps(script))
    assert main(["generate", *named, "--model=scripted:script.json"]) == 0
    assert reasons() == {"a": "", "b": "bad_answer"}
    (task,) = load_tasks(Path("auto/a.task.yaml"))
    assert task.metadata["model"] == "scripted"
    assert "could not be used" in capsys.readouterr().out


@pytest.mark.slow
def test_ctrl_c_loses_no_answer_that_came(openai_server: OpenAIServer) -> None:
    named = make_repositories("a", "b", "c", "d")
    answer = scripted()
    go = threading.Event()

    def slowly(request: dict[str, Any]) -> str:
        # The first repository comes to its end, those after it wait.
        if "# a" not in request["messages"][1]["content"]:
            go.wait(60)
        return answer(request)

    openai_server.by(slowly)
    code = "import sys; from pytest_super.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "generate", *named, MODEL, "--jobs=2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        # Of each of two threads a call is under way.
        until(lambda: len(openai_server.requests) == 4)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kept     a ")
        process.send_signal(signal.SIGINT)
        assert "whose calls are paid" in process.stdout.readline()
        go.set()
        out, _ = process.communicate(timeout=60)
    finally:
        go.set()
        process.kill()
    assert process.returncode == 130
    assert "1  not looked at" in out
    assert reasons() == dict.fromkeys("abc", "")
    before = len(openai_server.requests)
    assert main(["generate", *named, MODEL]) == 0
    assert reasons() == dict.fromkeys("abcd", "")
    assert len(openai_server.requests) == before + 2
