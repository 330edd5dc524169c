"""Reports on processes: what code inside can send, and which of them are runs of the entrypoint."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel.incoming import MOST_REPORTED, Incoming
from pytest_super.kernel.observed import ObservedProcess, ProcessChannel, read_process
from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.script_executed import SCRIPT_EXECUTED, entrypoint_run, script_executed
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Entrypoint, Task

REPORT: dict[str, Any] = {
    "op": "process",
    "number": 1,
    "pid": 7,
    "arguments": ["python", "train.py"],
    "executable": "/usr/bin/python3.11",
    "is_python": True,
    "files": {"1": "repo/train.py"},
    "repositories": ["repo"],
    "started": 1_700_000_000.0,
    "ended": 1_700_000_012.5,
    "stopped": 0.5,
    "status": 0,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def reported(incoming: Incoming | None = None, **fields: Any) -> ObservedProcess | None:
    """The process of a report with these fields; None if the report was dropped."""
    control = (incoming or Incoming()).control([json.dumps({**REPORT, **fields}).encode(), b""])
    return None if control is None else read_process(control.fields)


def test_report_is_read() -> None:
    process = reported()
    assert process is not None
    assert (process.seconds, process.status, process.started) == (12.0, 0, "2023-11-14T22:13:20.000+00:00")
    running = reported(ended=None, status=None)
    assert running is not None
    assert running.seconds is None


@given(st.dictionaries(st.sampled_from(sorted(REPORT)), JSON))
def test_any_report_is_read_or_dropped(fields: dict[str, Any]) -> None:
    process = reported(**fields)
    if process is not None:
        assert json.loads(json.dumps(asdict(process), allow_nan=False)) == asdict(process)


def test_reports_are_bounded() -> None:
    incoming, size = Incoming(), 60_000
    reports = [reported(incoming, arguments=["x" * size]) for _ in range(MOST_REPORTED // size + 10)]
    assert MOST_REPORTED // size - 5 < sum(report is not None for report in reports) <= MOST_REPORTED // size
    assert incoming.take_dropped().keys() == {"process"}


def test_sandbox_that_cannot_observe_is_told_from_one_in_which_nothing_ran() -> None:
    channel = ProcessChannel(lambda *_, **__: None)
    assert channel.take(look=True) == {}


def score(
    *,
    outcome: str = "ok",
    output: str = "",
    path: str = "train.py",
    repository: str | None = None,
    **fields: Any,
) -> float | None:
    """The score of a trial whose only process is that of a report with these fields."""
    process = reported(**fields)
    assert process is not None
    step = Step(
        number=1,
        origin="agent",
        action=Action(type="execute", content="!make"),
        outcome=outcome,
        outputs=[{"output_type": "stream", "name": "stdout", "text": output}],
        processes=[asdict(process)],
        seconds=60.0,
    )
    return script_executed([step], Entrypoint(path=path), repository=repository)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"outcome": "timed_out"},
        {"arguments": ["python", "-u", "-m", "train"], "files": {"3": "repo/train.py"}},
        {"arguments": ["python", "-mtrain"], "files": {"1": "repo/train.py"}},
        {"arguments": ["python"], "files": {"stdin": "repo/train.py"}},
        {"executable": None, "is_python": None},
        {"executable": None, "is_python": None, "arguments": ["sh", "run.sh"],
         "files": {"1": "repo/run.sh"}, "path": "run.sh"},
        {"status": None},
        {"kept_lines": 0.5, "changed": True},
        {"executable": "/bin/bash", "is_python": False, "arguments": ["bash", "-e", "run.sh"],
         "files": {"2": "repo/run.sh"}, "path": "run.sh"},
        {"executable": "/bin/bash", "is_python": False, "arguments": ["bash", "-c", "./run.sh"],
         "files": {"script": "repo/run.sh"}, "path": "run.sh"},
        {"arguments": ["python", "/venv/bin/jupyter-nbconvert", "--execute", "n.ipynb"],
         "files": {"1": "/venv/bin/jupyter-nbconvert", "3": "repo/n.ipynb"}, "path": "n.ipynb"},
        {"path": "repo/train.py", "repositories": []},
        {"executable": "/usr/lib/R/bin/exec/R", "is_python": False, "path": "train.R",
         "arguments": ["R", "--no-echo", "--file=train.R", "--args", "-e"], "files": {"2": "repo/train.R"}},
        {"executable": "/opt/julia-1.10/bin/julia", "is_python": False, "path": "train.jl",
         "arguments": ["julia", "--project=.", "train.jl"], "files": {"2": "repo/train.jl"}},
        {"executable": "/usr/bin/ruby3.1", "is_python": False, "path": "train.rb",
         "arguments": ["ruby", "train.rb"], "files": {"1": "repo/train.rb"}},
        {"executable": "/w/repo/train", "is_python": False, "path": "train",
         "arguments": ["./train", "3"], "files": {"program": "repo/train"}},
        {"files": {"1": "repo/other/train.py"}, "only": ["repo/other/train.py"]},
    ],
)  # fmt: skip
def test_process_is_a_run(fields: dict[str, Any]) -> None:
    assert score(**fields) == 1.0


@pytest.mark.parametrize(
    "fields",
    [
        {"is_python": False},
        {"executable": "/usr/bin/node", "is_python": False, "path": "train.jl",
         "arguments": ["node", "train.jl"], "files": {"1": "repo/train.jl"}},
        {"executable": "/usr/lib/R/bin/exec/R", "is_python": False, "path": "train.R",
         "arguments": ["R", "-e", "Sys.sleep(9)", "train.R"], "files": {"3": "repo/train.R"}},
        {"executable": "/w/repo/train.py", "is_python": False,
         "arguments": ["./train.py", "9"], "files": {"program": "repo/train.py"}},
        {"path": "train.rb", "arguments": ["python", "train.rb"], "files": {"1": "repo/train.rb"}},
        {"executable": None, "is_python": None, "arguments": ["tail", "train.py"]},
        {"executable": "/usr/bin/tail", "is_python": False, "arguments": ["tail", "train.py"]},
        {"executable": "/usr/bin/timeout", "is_python": False, "arguments": ["timeout", "9", "train.py"]},
        {"arguments": ["python", "-c", "sleep", "train.py"], "files": {"3": "repo/train.py"}},
        {"arguments": ["python", "-c", "sleep"], "files": {"stdin": "repo/train.py"}},
        {"arguments": ["python", "train.py", "--help"]},
        {"arguments": ["python", "other.py", "train.py"], "files": {"1": "other.py", "2": "repo/train.py"}},
        {"files": {"1": "repo/other/train.py"}},
        {"files": {"1": "repo/other/train.py"}, "only": ["repo/train.py"]},
        {"files": {"1": "repo/copy.py"}, "only": ["repo/copy.py"]},
        {"files": {"1": "repo/other/train.py"}, "repositories": [], "repository": "repo"},
        {"ended": None},
        {"ended": REPORT["started"] + 10.4},
        {"status": 3 << 8},
        {"status": 9},
        {"status": None, "replaced": True},
        {"status": None, "outcome": "error"},
        {"status": None, "output": "Traceback (most recent call last):\n"},
        {"kept_lines": 0.4, "changed": True},
        {"arguments": ["python", "/venv/bin/jupyter-nbconvert", "n.ipynb"],
         "files": {"1": "/venv/bin/jupyter-nbconvert", "2": "repo/n.ipynb"}, "path": "n.ipynb"},
    ],
)  # fmt: skip
def test_process_is_no_run(fields: dict[str, Any]) -> None:
    assert score(**fields) == 0.0


def test_process_of_a_pre_executed_step_is_not_credited() -> None:
    process = ObservedProcess(number=1, pid=1, arguments=["python", "train.py"], files={"1": "train.py"})
    before = Step(
        number=1,
        origin="pre_execute",
        action=Action(type="execute", content="!python train.py"),
        processes=[asdict(process) | {"is_python": True, "seconds": 60.0, "status": 0}],
    )
    after = Step(number=2, origin="agent", action=Action(type="execute", content="1"), processes=[])
    assert script_executed([before, after], Entrypoint(path="train.py")) == 0.0


def task(**fields: Any) -> Task:
    return Task.model_validate({"id": "t", "set": "auto", "query": "q", **fields})


def evidence(*processes: dict[str, Any], source: str = "!make") -> Evidence:
    """A trial with one cell, in which these processes were observed."""
    step = Step(
        number=1,
        origin="agent",
        action=Action(type="execute", content=source),
        outcome="ok",
        processes=list(processes),
        seconds=60.0,
    )
    return Evidence(steps=[step], repository="repo")


def run(number: int, *, seconds: float, script: str = "repo/train.py", status: int = 0) -> dict[str, Any]:
    process = ObservedProcess(number=number, pid=1, arguments=["python", "train.py"], files={"1": script})
    return asdict(process) | {"is_python": True, "seconds": seconds, "status": status}


def test_the_metric_needs_an_entrypoint() -> None:
    assert not SCRIPT_EXECUTED.applies(task())
    assert entrypoint_run(task(), evidence(run(1, seconds=60))) is None


@pytest.mark.parametrize(
    ("processes", "value", "number"),
    [
        ([run(1, seconds=60, script="repo/copies/train.py")], 0.0, None),
        ([run(1, seconds=5), run(2, seconds=8), run(3, seconds=7)], 0.0, 2),
        ([run(1, seconds=60, status=1), run(2, seconds=20), run(3, seconds=60, status=1)], 1.0, 2),
    ],
)
def test_the_process_of_a_result_counts_or_is_the_longest(
    processes: list[dict[str, Any]], value: float, number: int | None
) -> None:
    entrypoint = {"path": "train.py"}
    found = entrypoint_run(task(entrypoint=entrypoint), evidence(*processes))
    assert (found.process.number if found else None) == number
    assert SCRIPT_EXECUTED.compute(task(entrypoint=entrypoint), evidence(*processes)) == value


def test_where_processes_are_observed_a_cell_that_names_the_script_has_not_run_it() -> None:
    entrypoint = Entrypoint(path="train.py")
    assert script_executed(evidence(source="!python train.py").steps, entrypoint) == 0.0
    assert script_executed(evidence(source="%run train.py").steps, entrypoint) == 1.0
