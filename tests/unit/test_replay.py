"""Replay: a stored trajectory's actions taken again, and where trajectories are found."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_super.agents.replay import ReplayAgent, stored_steps
from pytest_super.errors import SuperError
from pytest_super.store.trajectory import Action, Step, step_to_data
from tests.unit.folder_kernel import FolderKernel
from tests.unit.test_published import REACT, step_cells, write
from tests.unit.test_trial import TrialBench


def stored(type: str, content: str = "", *, outcome: str = "ok", **fields: Any) -> Step:
    return Step(
        **{"number": 1, "origin": "agent", **fields},
        action=Action(type=type, content=content),
        outcome=outcome,
    )


def replay(*steps: Step, **limits: Any) -> TrialBench:
    bench = TrialBench(**limits)
    bench.run(ReplayAgent(steps).run)
    return bench


SLEEP = stored("execute", "sleep(50)", outcome="timed_out")
NEXT = stored("execute", "1")
TIMED_OUT, WAITED, DONE = ("execute", "timed_out"), ("continue_wait", "ok"), ("execute", "ok")


def taken(bench: TrialBench) -> Sequence[tuple[str, str]]:
    return [(step.action.type, step.outcome) for step in bench.recorded]


def test_it_does_what_was_done() -> None:
    edit = "a.py\n<<<BEFORE_EDIT>>>\nx\n<<<AFTER_EDIT>>>\ny"
    bench = TrialBench()
    bench.kernel.files.write("a.py", b"x\n")
    steps = [
        stored("execute", "n = 6", thought="set"),
        stored("edit", edit),
        stored("edit", json.dumps({"path": "a.py", "before": "y", "after": "z"})),
        stored("execute", "n * 7"),
        stored("read", "a.py"),
        stored("submit", '{"n": 42}', thought="done"),
    ]
    assert bench.run(ReplayAgent(steps).run) == "submitted"
    assert [step.thought for step in bench.recorded] == ["set", "", "", "", "", "done"]
    assert [step.observation for step in bench.recorded[3:5]] == ["42", "z\n"]
    assert bench.kernel.files.read("a.py") == b"z\n"
    assert bench.trial.submission == {"n": 42}


def test_pre_executed_steps_and_those_of_earlier_attempts_are_not_taken_again() -> None:
    before = stored("execute", "x = 1", origin="pre_execute", attempt=2)
    bench = replay(before, stored("execute", "1"), stored("execute", "2", attempt=2))
    assert [step.action.content for step in bench.recorded] == ["2"]


@pytest.mark.parametrize("type", ["", "continue", "I will look.", "submit_invalid_json", "open_browser"])
def test_an_answer_that_was_no_action_is_answered_as_it_was(type: str) -> None:
    bench = replay(stored(type, "!ls", outcome="error", observation="no such action"), stored("execute", "1"))
    assert taken(bench) == [(type, "error"), ("execute", "ok")]
    assert bench.recorded[0].observation == "no such action"


def test_a_step_that_a_running_cell_kept_from_being_done_is_not_done() -> None:
    recorded = TrialBench(cell=10.0)
    recorded.trial.execute("sleep(15)")
    recorded.trial.execute("x = 1")
    recorded.trial.continue_wait()
    # This time the cell is in no one's way.
    quick = replay(*[*recorded.recorded, stored("execute", "x")], cell=20.0)
    assert [outcome for _, outcome in taken(quick)] == ["ok", "error", "error", "error"]
    assert "NameError" in quick.recorded[3].observation


@pytest.mark.parametrize(
    ("steps", "again"),
    [
        pytest.param([SLEEP, stored("continue_wait"), NEXT], [TIMED_OUT, WAITED, DONE], id="waited for"),
        pytest.param(
            [SLEEP, stored("interrupt", outcome="interrupted"), NEXT],
            [TIMED_OUT, ("interrupt", "interrupted"), DONE],
            id="interrupted",
        ),
        pytest.param(
            [SLEEP, NEXT], [TIMED_OUT, ("interrupt", "interrupted"), DONE], id="stopped by the runner"
        ),
        pytest.param(
            [stored("execute", "sleep(70)"), NEXT],
            [TIMED_OUT, ("continue_wait", "timed_out"), WAITED, DONE],
            id="longer than it was",
        ),
    ],
)
def test_a_cell_past_its_limit_is_treated_as_it_was(steps: list[Step], again: list[tuple[str, str]]) -> None:
    assert taken(replay(*steps, cell=30.0)) == again


def test_what_only_its_agent_can_do_is_refused_before_anything_is_done() -> None:
    with pytest.raises(
        SuperError, match="step 3 cannot be replayed: only its agent knows the action `read_mail`"
    ):
        ReplayAgent([stored("execute", "1"), stored("read_mail", number=3)])


@pytest.mark.parametrize("outcome", ["ok", "error"])
@pytest.mark.parametrize("type", ["command", "read_answer"])
def test_a_program_is_refused_with_the_reason_however_it_ended(type: str, outcome: str) -> None:
    with pytest.raises(SuperError, match=f"step 1 cannot be replayed: it is a whole program .`{type}`"):
        ReplayAgent([stored(type, "agent --yolo", outcome=outcome), stored("submit", "1")])


def test_the_commands_of_swe_agent_are_given_to_its_editor(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\ny = 2\n")
    bench = TrialBench()
    bench.trial.kernel = FolderKernel(tmp_path)  # type: ignore[assignment]
    commands = [("open", "open a.py"), ("goto", "goto 2"), ("edit", "edit 2:2\ny = 3\nend_of_edit")]
    bench.run(ReplayAgent([stored(type, content) for type, content in commands]).run)
    assert taken(bench) == [("open", "ok"), ("goto", "ok"), ("edit", "ok")]
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\r\ny = 3\n"


def lines(*steps: Step) -> str:
    return "".join(json.dumps(step_to_data(step)) + "\n" for step in steps)


def keep(path: Path, *contents: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(*(stored("execute", content) for content in contents)))
    return path


def contents(path: Path, task_id: str = "t", epoch: int = 1) -> list[str] | None:
    steps = stored_steps(path, task_id, epoch)
    return None if steps is None else [step.action.content for step in steps]


def test_a_file_is_read_whatever_the_task(tmp_path: Path) -> None:
    path = keep(tmp_path / "trajectory.jsonl", "1", "2")
    assert contents(path) == contents(tmp_path) == ["1", "2"]
    assert stored_steps(path, "t") == [stored("execute", "1"), stored("execute", "2")]


def test_a_published_notebook_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, REACT + step_cells(1, "execute", "1"))
    assert contents(path) == contents(tmp_path) == ["1"]


def test_a_published_run_is_asked_for_the_task(tmp_path: Path) -> None:
    (tmp_path / "t_cpu,goal").mkdir()
    write(tmp_path / "t_cpu,goal", REACT + step_cells(1, "execute", "1"))
    assert contents(tmp_path, "t_cpu,goal") == ["1"]
    assert contents(tmp_path, "other") is None


def test_a_run_of_ours_gives_the_last_rerun_of_the_epoch_or_else_of_the_first(tmp_path: Path) -> None:
    for name in ("2.2", "2.10", "3.11", "10.12"):
        keep(tmp_path / "trials" / "t" / name / "trajectory.jsonl", name)
    for other in ("2.11", "2.10.old", "notes"):
        (tmp_path / "trials" / "t" / other).mkdir()
    found = {epoch: contents(tmp_path, epoch=epoch) for epoch in (1, 2, 3, 4, 10)}
    assert found == {1: ["2.10"], 2: ["2.10"], 3: ["3.11"], 4: ["2.10"], 10: ["10.12"]}
    assert contents(tmp_path, "other") is None


@pytest.mark.parametrize(
    "name", ["nothing", "empty", "empty/a.jsonl", "empty/b.jsonl", "empty/c.jsonl", "empty/d.ipynb"]
)
def test_what_holds_no_trajectory_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/a.jsonl").write_text("")
    (tmp_path / "empty/b.jsonl").write_text('{"a": 1}\n[1]\n')
    (tmp_path / "empty/c.jsonl").write_bytes(b"\xff\n")
    (tmp_path / "empty/d.ipynb").write_text("{}")
    with pytest.raises(SuperError, match=name):
        stored_steps(tmp_path / name, "t")


@pytest.mark.parametrize("content", [b"\xff" * 10_000, b"[" * 100_000 + b"\n"])
def test_a_file_of_other_content_is_refused_in_a_short_message(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(SuperError, match="is not a trajectory") as raised:
        stored_steps(tmp_path / "t.jsonl", "t", 1)
    assert len(str(raised.value)) < 500
