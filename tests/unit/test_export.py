"""Stored runs in the forms of other tools: nothing is lost or invented, and what is not known is null."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_super.cli import main
from pytest_super.report.export.formats import FORMATS, export_run
from pytest_super.report.export.trials import read_trials
from pytest_super.report.notebook import write_notebook
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import RunFolder
from pytest_super.store.trajectory import Action, Step
from pytest_super.store.trial_folder import TrialFolder
from pytest_super.tasks.task import Task
from tests.pages import page_path
from tests.stored import a_result, a_run, a_step, add_trial, append_line

QUERY = "What is the mean?\n\n  Of all."
PREFIX = replace(a_step(1, content="import numpy", observation="ready"), origin="pre_execute")
EDIT = json.dumps({"path": "a.py", "before": "1", "after": "2"})
STEPS = [
    PREFIX,
    a_step(2, thought="First look.", content="print(1)", observation="1\n", prompt_tokens=90),
    a_step(3, type="edit", content=EDIT, observation="edited", started="2026-11-23T10:15:04.000+00:00"),
    a_step(4, type="", thought="Hm.", content="no action", observation="Name an action.", outcome="error"),
    a_step(5, type="submit", content="0.5"),
]
OBJECT = {"type": ["object", "null"]}
TEXT, COUNT = {"type": ["string", "null"]}, {"type": ["integer", "null"]}


def closed(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


RESULT = closed(source_call_id=TEXT, content=TEXT, extra=OBJECT)
CALL = closed(
    ("tool_call_id", "function_name", "arguments"),
    tool_call_id={"type": "string"},
    function_name={"type": "string", "minLength": 1},
    arguments={"type": "object"},
)
OF_ALL = {
    "step_id": {"type": "integer", "minimum": 1},
    "timestamp": {"type": ["string", "null"]},
    "message": {"type": "string"},
    "observation": closed(results={"type": "array", "items": RESULT}),
    "extra": OBJECT,
}
OF_AGENT = {
    "model_name": TEXT,
    "reasoning_content": TEXT,
    "tool_calls": {"type": "array", "items": CALL},
    "metrics": {
        "anyOf": [
            {"type": "null"},
            closed(
                prompt_tokens=COUNT,
                completion_tokens=COUNT,
                cached_tokens=COUNT,
                cost_usd={"type": ["number", "null"]},
                extra=OBJECT,
            ),
        ]
    },
}
NEEDED = ("step_id", "source", "message")
ATIF = closed(
    ("schema_version", "agent", "steps"),
    schema_version={"const": "ATIF-v1.7"},
    session_id=TEXT,
    trajectory_id=TEXT,
    agent=closed(
        ("name", "version"),
        name={"type": "string"},
        version={"type": "string"},
        model_name=TEXT,
        extra=OBJECT,
    ),
    steps={
        "type": "array",
        "minItems": 1,
        "items": {
            "anyOf": [
                closed(NEEDED, source={"const": "agent"}, **OF_ALL, **OF_AGENT),
                closed(NEEDED, source={"enum": ["system", "user"]}, **OF_ALL),
            ]
        },
    },
    notes=TEXT,
    final_metrics=closed(
        total_prompt_tokens=COUNT,
        total_completion_tokens=COUNT,
        total_cached_tokens=COUNT,
        total_cost_usd={"type": ["number", "null"]},
        total_steps=COUNT,
        extra=OBJECT,
    ),
    extra=OBJECT,
)
VALIDATOR = jsonschema.Draft202012Validator(ATIF)


def stored_trial(folder: Path, result: TrialResult, steps: Sequence[Step] = (), **facts: Any) -> Path:
    """The folder of a run with one trial, whose notebook is written."""
    run = a_run(folder, **facts)
    task = Task(id=result.id, set="expert", query=QUERY, answer={"mean": 0.5})
    write_notebook(add_trial(run, result, steps), task, result, list(steps))
    return run.path


def exported(run: Path, name: str, output: Path) -> Path:
    assert export_run(run, name, output)[1].unread == []
    return output


def table(run: Path, output: Path) -> list[dict[str, str]]:
    with exported(run, "csv", output / "out.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def trajectory(run: Path, output: Path, name: str = "mean.1.json") -> Any:
    found = json.loads((exported(run, "atif", output / "out") / name).read_text())
    VALIDATOR.validate(found)
    assert [step["step_id"] for step in found["steps"]] == list(range(1, len(found["steps"]) + 1))
    for step in found["steps"]:
        known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        for one in step.get("observation", {"results": ()})["results"]:
            assert one.get("source_call_id") in {*known, None}
    return found


def members(run: Path, output: Path) -> dict[str, Any]:
    with ZipFile(exported(run, "inspect", output / "out.eval")) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


# The table


def test_the_table_has_a_row_for_each_trial_and_a_column_for_each_single_value(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    add_trial(run, a_result(model="openai/m", software='image "a",\nb'))
    add_trial(run, a_result(accuracy=0.5, epoch=2))
    # A rerun replaces the trial whose worker died.
    add_trial(run, a_result("area", error="a worker died", stop_reason="crashed"))
    add_trial(run, a_result("area", rerun=1, metrics={"accuracy": None, "own": 3.0}))
    area, first, second = table(run.path, tmp_path)
    assert (area["rerun"], area["error"]) == ("1", "")
    assert (area["id"], first["id"], second["epoch"]) == ("area", "mean", "2")
    assert first["run"] == run.path.name
    assert (first["prompt_tokens"], first["cost_usd"], first["solved"]) == ("1000", "0.02", "true")
    assert (second["metric_accuracy"], second["solved"]) == ("0.5", "false")
    assert (area["metric_accuracy"], area["metric_own"], first["metric_own"]) == ("", "3.0", "")
    assert first["software"] == 'image "a",\nb'
    # Lists and objects are in the other formats.
    assert not {"landmarks_found", "metrics", "environment", "graded"} & first.keys()


def test_the_columns_are_those_that_the_page_names(tmp_path: Path) -> None:
    text = page_path("results.md").read_text(encoding="utf-8")
    listed = text.partition("### results.jsonl")[2].partition("\n### ")[0]
    named = re.findall(r"^\| `(\w+)` \| (?:text|integer|number|boolean)\b", listed, re.MULTILINE)
    [row] = table(stored_trial(tmp_path, a_result()), tmp_path)
    assert [name for name in row if not name.startswith("metric_")] == ["run", *named]


NOT_KNOWN = ["prompt_tokens", "completion_tokens", "model_seconds", "waited_seconds"]


@pytest.mark.parametrize(
    ("fields", "empty", "known"),
    [
        # An agent without a model has used no tokens that anybody has counted.
        ({"prompt_tokens": 0}, [*NOT_KNOWN, "grade_seconds"], {"solved": "true", "dropped": "0"}),
        ({"prompt_tokens": 0, "model": "m"}, [], {"prompt_tokens": "0", "model_seconds": "0.0"}),
        (
            {"error": "it died", "stop_reason": "crashed", "wall_seconds": 0.0, "compute_seconds": 0.0}
            | {"submitted": False, "solved": False, "model": "m"},
            ["solved", "submitted", "wall_seconds", "compute_seconds", "model_seconds", "dropped"],
            {"prompt_tokens": "1000", "steps": "2"},
        ),
        ({"graded_in": "fresh"}, [], {"grade_seconds": "0.0"}),
    ],
)
def test_what_was_not_measured_is_empty(
    tmp_path: Path, fields: dict[str, Any], empty: list[str], known: dict[str, str]
) -> None:
    [row] = table(stored_trial(tmp_path, a_result(**fields)), tmp_path)
    assert {name: row[name] for name in empty} == dict.fromkeys(empty, "")
    assert {name: row[name] for name in known} == known


@settings(max_examples=30)
@given(text=st.text())
@example(text="\r")
def test_any_text_comes_back_from_the_table(text: str) -> None:
    with TemporaryDirectory() as name:
        run = stored_trial(Path(name), a_result(agent_error=text, difference=text))
        [row] = table(run, Path(name))
    assert (row["agent_error"], row["difference"]) == (text, text)


# Conversations


def test_the_calls_of_a_program_are_calls_of_its_own_tools(tmp_path: Path) -> None:
    called = json.dumps({"name": "shell", "arguments": '{"command": "ls"}'})
    odd = json.dumps({"name": "patch", "arguments": "*** Begin"})
    steps = [
        Step(number=number, origin="agent", action=Action(type=kind, content=content), observation="result")
        for number, (kind, content) in enumerate(
            [("tool_call", called), ("tool_call", odd), ("tool_call", "cut"), ("message", "Done.")], 1
        )
    ]
    run = stored_trial(tmp_path, a_result(model="openai/m"), steps)
    *_, first, second, third, said = trajectory(run, tmp_path)["steps"]
    calls = [step["tool_calls"][0] for step in (first, second, third)]
    assert [(call["function_name"], call["arguments"]) for call in calls] == [
        ("shell", {"command": "ls"}),
        ("patch", {"content": "*** Begin"}),
        ("tool_call", {"content": "cut"}),
    ]
    assert (said["message"], "tool_calls" in said) == ("Done.", False)


def test_an_atif_trajectory_has_the_query_the_steps_and_the_result(tmp_path: Path) -> None:
    result = a_result(model="openai/m", subject="5ab1", landmarks_found=[{"pattern": "a", "step": 2}])
    run = stored_trial(tmp_path, replace(result, landmarks_found=[]), STEPS)
    found = trajectory(run, tmp_path)
    assert found["agent"] == {"name": "mine.agents:Agent", "version": "5ab1", "model_name": "openai/m"}
    user, prefix, cell, edit, lost, submit = found["steps"]
    assert (user["source"], user["message"]) == ("user", QUERY)
    assert (prefix["source"], prefix["message"]) == ("system", "import numpy")
    assert prefix["observation"]["results"] == [{"content": "ready"}]
    assert (cell["message"], cell["tool_calls"][0]["arguments"]) == ("First look.", {"code": "print(1)"})
    assert cell["observation"]["results"] == [{"source_call_id": "call-2", "content": "1\n"}]
    assert cell["metrics"] == {"prompt_tokens": 90, "completion_tokens": 0}
    # No call of a model was counted in it.
    assert edit["metrics"] is None
    assert edit["tool_calls"][0]["arguments"] == json.loads(EDIT)
    assert edit["timestamp"] == "2026-11-23T10:15:04.000+00:00"
    assert (lost["message"], "tool_calls" in lost) == ("Hm.\nno action", False)
    assert submit["tool_calls"][0]["function_name"] == "submit"
    metrics = found["final_metrics"]
    assert (metrics["total_prompt_tokens"], metrics["total_cached_tokens"]) == (1000, 0)
    assert found["extra"]["result"]["metrics"]["accuracy"] == 1.0
    assert found["extra"]["expected"] == '{"mean": 0.5}'


def test_an_inspect_log_has_a_sample_and_a_summary_for_each_trial(tmp_path: Path) -> None:
    run = stored_trial(tmp_path, a_result(accuracy=0.25, difference="mean is 2.0"), STEPS)
    found = members(run, tmp_path)
    sample = found["samples/mean_epoch_1.json"]
    assert (sample["input"], sample["target"]) == (QUERY, '{"mean": 0.5}')
    assert sample["scores"]["accuracy"] == {"value": 0.25, "answer": "0.5", "explanation": "mean is 2.0"}
    assert (sample["total_time"], sample["error"], sample["model_usage"]) == (20.0, None, {})
    assert [message["role"] for message in sample["messages"]] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant", "user",
        "assistant", "tool",
    ]  # fmt: skip
    assert [message.get("source") for message in sample["messages"]][:2] == ["input", "input"]
    [summary] = found["summaries.json"]
    assert (summary["id"], summary["scores"]["accuracy"]["value"]) == ("mean", 0.25)
    header = found["header.json"]
    assert (header["status"], header["eval"]["model"]) == ("success", "openai/m")
    [mean] = [one for one in header["results"]["scores"] if one["name"] == "accuracy"]
    assert mean["metrics"]["mean_over_tasks"]["value"] == 0.25
    assert header["stats"]["completed_at"] == "2026-11-23T10:15:20+00:00"


def test_metrics_without_a_value_are_no_scores_and_errors_are_errors(tmp_path: Path) -> None:
    result = a_result(error="no disk", stop_reason="error", metrics={"accuracy": None}, started="at noon")
    run = stored_trial(tmp_path, result)
    add_trial(RunFolder(run), a_result("stopped", error="interrupted: Ctrl-C", stop_reason="interrupted"))
    found = members(run, tmp_path)
    sample = found["samples/mean_epoch_1.json"]
    assert found["header.json"]["status"] == "cancelled"
    assert (sample["scores"], sample["error"]["message"]) == ({}, "no disk")
    assert (sample["started_at"], sample["metadata"]["started"]) == (None, "at noon")
    assert found["header.json"]["results"]["completed_samples"] == 0


FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ACTIONS = st.builds(
    Action, type=st.sampled_from(["execute", "edit", "submit", "open"]), content=st.text()
) | st.fixed_dictionaries(dict.fromkeys(("path", "before", "after"), st.text())).map(
    lambda edit: Action(type="edit", content=json.dumps(edit))
)
ANY_STEP = st.builds(
    Step,
    number=st.integers(1, 99),
    origin=st.sampled_from(["agent", "pre_execute"]),
    action=ACTIONS,
    thought=st.text(),
    observation=st.text(),
    outputs=st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=2), max_size=2),
    processes=st.none() | st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=2), max_size=2),
    dropped=st.dictionaries(st.text(max_size=5), st.integers(1, 5), max_size=2),
    landmarks=st.lists(st.integers(0, 9), max_size=2),
    started=st.text(max_size=5),
    seconds=st.floats(0, 1e6),
    prompt_tokens=st.integers(0, 2),
)


def step_of_atif(step: dict[str, Any]) -> Step:
    rest = step["extra"]
    if step["source"] == "system":
        action = Action(type=rest.pop("action"), content=step["message"])
        return step_of(rest, action, rest.pop("thought"), step["observation"]["results"][0]["content"])
    [call], [seen] = step["tool_calls"], step["observation"]["results"]
    action = action_of(call["function_name"], call["arguments"])
    return step_of(rest, action, step["message"], seen["content"])


def steps_of_inspect(messages: list[dict[str, Any]]) -> Iterator[Step]:
    for said, seen in zip(messages[0::2], messages[1::2], strict=True):
        [call] = said["tool_calls"]
        assert call["id"] == seen["tool_call_id"]
        action = action_of(call["function"], call["arguments"])
        yield step_of(said["metadata"], action, said["content"], seen["content"])


def action_of(type: str, arguments: dict[str, str]) -> Action:
    return Action(type=type, content=arguments.popitem()[1] if len(arguments) == 1 else json.dumps(arguments))


def step_of(rest: dict[str, Any], action: Action, thought: str, observation: str) -> Step:
    tokens: dict[str, Any] = {name: rest.pop(name) or 0 for name in ("prompt_tokens", "completion_tokens")}
    return Step(**rest, **tokens, action=action, thought=thought, observation=observation)


@settings(max_examples=25)
@given(steps=st.lists(ANY_STEP, min_size=1, max_size=2))
def test_no_field_of_a_step_is_lost(steps: list[Step]) -> None:
    with TemporaryDirectory() as name:
        run = a_run(Path(name))
        add_trial(run, a_result(), steps)
        atif = trajectory(run.path, Path(name))["steps"]
        sample = members(run.path, Path(name))["samples/mean_epoch_1.json"]
    assert list(map(step_of_atif, atif)) == steps
    assert list(steps_of_inspect(sample["messages"])) == steps


@pytest.mark.parametrize("name", ["inspect", "atif"])
def test_no_field_of_a_result_is_lost(tmp_path: Path, name: str) -> None:
    landmark = {"pattern": "a", "step": 2, "is_echo": False, "timed_out": False}
    result = a_result(landmarks_found=[landmark], environment={"TZ": "UTC"}, masked={"n": 2}, model="m")
    run = stored_trial(tmp_path, result)
    [stored] = read_trials(run).results
    if name == "inspect":
        found = members(run, tmp_path)["samples/mean_epoch_1.json"]["metadata"]
        assert found.pop("unread") == []
    else:
        found = trajectory(run, tmp_path)["extra"]["result"]
    wanted = stored.to_data()
    assert found.keys() == wanted.keys()
    # Only the places where nothing was known differ.
    assert {key for key in wanted if found[key] != wanted[key]} <= {
        *(key for key, value in wanted.items() if value == ""),
        "grade_seconds",
    }


@pytest.mark.parametrize("name", FORMATS)
def test_what_can_hold_a_secret_is_left_out(tmp_path: Path, name: str) -> None:
    body = {"token": "sk-third", "team": "blue"}
    parameters = {"api_key": "sk-second", "temperature": 0.5, "extra_body": body}
    facts = {"arguments": ["-o", "key=sk-first"], "model_parameters": parameters}
    run = stored_trial(tmp_path, a_result(), STEPS, **facts)
    output = exported(run, name, tmp_path / "out")
    files = [output] if output.is_file() else list(output.iterdir())
    content = b"".join(file.read_bytes() for file in files)
    if name == "inspect":
        content = json.dumps(members(run, tmp_path)).encode()
    assert b"sk-" not in content
    assert (b"blue" in content) == (name in ("inspect", "atif"))


# Runs that are damaged or go on


def test_what_cannot_be_read_is_named_and_the_rest_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    folder = add_trial(run, a_result(), STEPS)
    nan = {"number": 6, "origin": "agent", "action": {"type": "execute"}, "outputs": [{"v": float("nan")}]}
    append_line(folder / "trajectory.jsonl", nan)
    append_line(folder / "trajectory.jsonl", '{"number": 7, "ori')
    append_line(run.path / "results.jsonl", '{"id": "cut", "set"')
    output = tmp_path / "out"
    assert main(["export", str(run.path), "--format=atif", f"--output={output}"]) == 1
    said = capsys.readouterr()
    assert "line 2 of results.jsonl cannot be read" in said.err
    assert "trials/mean/1.0: line 7 of trajectory.jsonl is damaged or not complete" in said.err
    assert said.out == f"{output}: 1 trial\n"
    found = json.loads((output / "mean.1.json").read_text(), parse_constant=pytest.fail)
    # Without a notebook the query is not known.
    assert len(found["steps"]) == len(STEPS) + 1
    assert found["steps"][-1]["extra"]["outputs"] == [{"v": "nan"}]
    assert found["extra"]["unread"] == ["line 7 of trajectory.jsonl is damaged or not complete"]


@pytest.mark.parametrize("name", FORMATS)
def test_trials_that_go_on_are_left_out(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(tmp_path)
    add_trial(run, a_result())
    slow = TrialResult(id="slow", set="masked", category=None, epoch=1, rerun=0, agent="a")
    TrialFolder(run.path, slow).close()
    assert main(["export", str(run.path), "--format", name, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert said.out == f"{tmp_path / 'out'}: 1 trial\n"
    assert "left out, because they have not ended: 1 trial" in said.err
    if name == "inspect":
        assert members(run.path, tmp_path)["header.json"]["status"] == "started"


# The command


def test_only_files_of_the_same_kind_are_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored_trial(tmp_path, a_result())
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert main(["export", str(run), "--format=csv", f"--output={tmp_path}/old.csv"]) == 0
    assert (tmp_path / "old.csv").read_text().startswith("run,id,")
    assert main(["export", str(run), "--format=csv", f"--output={tmp_path}/full"]) == 1
    assert "is not a regular file: name another path" in capsys.readouterr().err
    assert main(["export", str(run), "--format=atif", f"--output={tmp_path}/full"]) == 1
    assert "is there already: name a new folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
