"""An exported log in Inspect itself, which has an environment of its own: its requirements are not ours."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_super.report.export.formats import export_run
from pytest_super.report.notebook import write_notebook
from pytest_super.tasks.task import Task
from tests.stored import a_result, a_run, a_step, add_trial

pytestmark = [pytest.mark.long, pytest.mark.network]

# The version that docs/reference/exporting.md names, and a library that it needs without saying so.
INSPECT = ("inspect-ai==0.3.285", "openai>=3.4")
# Prints what Inspect has read of a log, and writes it anew in both of its forms.
READ = """
import sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries, write_eval_log
log = read_eval_log(sys.argv[1])
print(log.model_dump_json())
print("[" + ",".join(one.model_dump_json() for one in read_eval_log_sample_summaries(sys.argv[1])) + "]")
for name in ("again.eval", "again.json"):
    write_eval_log(log, sys.argv[2] + "/" + name)
    assert read_eval_log(sys.argv[2] + "/" + name).samples == log.samples
"""
FRAMES = """
import sys
from inspect_ai.analysis import evals_df, samples_df
print(len(evals_df(sys.argv[1])), sorted(samples_df(sys.argv[1])["score_accuracy"].dropna()))
"""
QUERY = "What is the mean?"


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with Inspect."""
    folder = tmp_path_factory.mktemp("inspect")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", *INSPECT], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run with a solved trial, a missed one and an error, in a folder of its own."""
    folder = tmp_path_factory.mktemp("log")
    run = a_run(folder, failures=[])
    text = "\x1b[31m\u202e\U0001f600 " * 500
    steps = [
        a_step(1, thought="First look.", observation=text, outputs=[{"output_type": "stream", "text": text}]),
        a_step(2, type="", content="no action", observation="Name an action."),
        a_step(3, type="submit", content="0.5", prompt_tokens=90, completion_tokens=9),
    ]
    for result in (
        a_result(model="openai/m", completion_tokens=9),
        a_result(accuracy=0.25, epoch=2, difference="mean is 2.0"),
        a_result("broken,x", metrics={"accuracy": None}, error=text, stop_reason="error", wall_seconds=0.0),
    ):
        task = Task(id=result.id, set="expert", query=QUERY, answer={"mean": 0.5})
        write_notebook(add_trial(run, result, steps), task, result, steps)
    path, trials = export_run(run.path, "inspect", folder / "logs" / "run.eval")
    assert trials.unread == []
    return path


def printed(inspect: Path, code: str, *arguments: Path) -> list[Any]:
    done = subprocess.run(
        [inspect / "python", "-c", code, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_inspect_reads_the_log(inspect: Path, log: Path, tmp_path: Path) -> None:
    read, summaries = map(json.loads, printed(inspect, READ, log, tmp_path))
    assert (read["version"], read["status"], read["eval"]["model"]) == (2, "success", "openai/m")
    assert read["eval"]["dataset"]["sample_ids"] == ["broken,x", "mean"]
    by_key = {(one["id"], one["epoch"]): one for one in read["samples"]}
    solved, missed, error = by_key["mean", 1], by_key["mean", 2], by_key["broken,x", 1]
    assert solved["input"] == QUERY
    assert solved["scores"]["accuracy"]["value"] == 1.0
    assert missed["scores"]["accuracy"]["answer"] == "0.5"
    assert solved["model_usage"]["openai/m"]["input_tokens"] == 1000
    assert (missed["model_usage"], error["scores"], error["total_time"]) == ({}, {}, None)
    assert error["error"]["message"].startswith("\x1b[31m")
    assert [one["role"] for one in solved["messages"]] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip
    assert len(summaries) == 3
    assert {one["scores"].get("accuracy", {}).get("value") for one in summaries} == {1.0, 0.25, None}


def test_inspect_makes_data_frames_of_the_log(inspect: Path, log: Path) -> None:
    subprocess.run([inspect / "pip", "install", "--quiet", "pandas", "pyarrow"], check=True)
    # Its progress comes first.
    assert printed(inspect, FRAMES, log)[-1] == "1 [0.25, 1.0]"
