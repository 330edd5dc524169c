"""Published trajectories: what the reader returns and refuses, and how our parser reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.errors import SuperError
from pytest_super.store.published import PublishedTrajectory, read_history
from pytest_super.store.trajectory import Action

Cell = dict[str, Any]


def markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def code(text: str, observation: str) -> Cell:
    output = {"output_type": "execute_result", "data": {"text/plain": [observation]}}
    return {
        "cell_type": "code",
        "metadata": {},
        "source": text.splitlines(keepends=True),
        "outputs": [output],
    }


def step_cells(
    number: int,
    type: str,
    content: str = "",
    *,
    thought: str = "go on",
    observation: str = "",
    times: str = "",
) -> list[Cell]:
    spent = [markdown(f"Execution Start time: {times}")] if times else []
    words = [markdown(f"**Thought**: {thought}"), markdown(f"**Action ({type})**:")]
    return [markdown(f"### Step {number}"), *spent, *words, code(content, observation)]


PROMPT = "You 'work'\nin a \"notebook\"."
MESSAGES = [{"role": "system", "content": PROMPT}, {"role": "user", "content": "Query: do it"}]
REACT = [markdown("### Query\ndo it\nwell"), markdown(f"### Prompt\n<details>\n{MESSAGES!r}\n</details>\n")]
SWE = [markdown(f"### System Prompt\n<details>\n{PROMPT}\n</details>\n"), markdown("### Query\ndo it\nwell")]


def write(folder: Path, cells: list[Cell]) -> Path:
    path = folder / "history.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.parametrize(("cells", "agent"), [(REACT, "react-super"), (SWE, "swe-agent")])
def test_query_prompt_and_agent_are_read(cells: list[Cell], agent: str, tmp_path: Path) -> None:
    read = read_history(write(tmp_path, cells))
    assert read == PublishedTrajectory(agent=agent, query="do it\nwell", system_prompt=PROMPT, steps=[])  # type: ignore[arg-type]


def test_a_step_is_read_to_the_letter(tmp_path: Path) -> None:
    cells = step_cells(
        1,
        "execute",
        "x = 1\n\nx",
        thought="set\n\nit ",
        observation="1\n",
        times="09:00:01, End time: 09:01:03 (duration: 61 seconds)",
    )
    [read] = read_history(write(tmp_path, REACT + cells)).steps
    assert (read.number, read.origin, read.action) == (
        1,
        "agent",
        Action(type="execute", content="x = 1\n\nx"),
    )
    assert (read.thought, read.observation, read.seconds) == ("set\n\nit ", "1\n", 61.0)


def test_only_the_first_steps_with_just_these_thoughts_are_pre_executed(tmp_path: Path) -> None:
    fixed = "[pre-executed by user]"
    thoughts = [fixed, "EXECUTED BY USER", "[continued after timeout]", f"{fixed}\n\n", fixed, "look"]
    cells = [
        cell
        for number, thought in enumerate(thoughts, 1)
        for cell in step_cells(number, "None", thought=thought)
    ]
    steps = read_history(write(tmp_path, SWE + cells)).steps
    assert [read.origin for read in steps] == ["pre_execute"] * 3 + ["agent"] * 3


@pytest.mark.parametrize(
    ("cells", "type", "content", "thought", "read"),
    [
        (SWE, "None", "!ls", "look\n\n", "execute"),
        (SWE, "None", "exit_context", "Exit due to context window", "exception"),
        (SWE, "None", "EDITING `a.py. CHANGING:\n\n\nx", "EXECUTED BY USER", "edit"),
        (SWE, "open", "open a.py", "look\n\n", "open"),
        (REACT, "None", "None", "wait", "None"),
        (REACT, "I will (really) go on.", "", "go", "I will (really) go on."),
    ],
)
def test_types_are_ours_for_cells_and_exits(
    cells: list[Cell], type: str, content: str, thought: str, read: str, tmp_path: Path
) -> None:
    [found] = read_history(write(tmp_path, cells + step_cells(1, type, content, thought=thought))).steps
    assert found.action == Action(type=read, content=content)


@pytest.mark.parametrize(
    ("type", "observation", "outcome"),
    [
        ("execute", "a\n", "ok"),
        (
            "execute",
            "\n\nYour command has already run for 300 seconds. It is still running. You can",
            "timed_out",
        ),
        ("interrupt", "Kernel interrupted.", "interrupted"),
        ("", "Thought or action not provided in the correct format.", "error"),
        ("submit_invalid_json", "Invalid json format for submission.", "error"),
    ],
)
def test_the_outcome_is_what_the_observation_tells(
    type: str, observation: str, outcome: str, tmp_path: Path
) -> None:
    [read] = read_history(write(tmp_path, REACT + step_cells(1, type, observation=observation))).steps
    assert read.outcome == outcome


@pytest.mark.parametrize(
    ("cells", "place", "what"),
    [
        ([], ":0", "expected the query or the system prompt after this cell"),
        ([markdown("# My notebook")], ":1", "expected the query or the system prompt here"),
        (REACT[:1], ":1", "expected the prompt after this cell"),
        ([REACT[0], markdown("### Prompt\n<details>\n[oops\n</details>\n")], ":2", "not a list of messages"),
        (REACT + step_cells(2, "execute"), ":3", "expected step 1 here"),
        (REACT + step_cells(1, "execute")[:-1], ":5", "expected a code cell after this cell"),
        (REACT + step_cells(1, "execute")[:2] + step_cells(2, "execute"), ":5", "expected an action here"),
        (REACT + step_cells(1, "execute", times="soon"), ":4", "expected the time of a step here"),
        ([*REACT, {"cell_type": "code"}], ":3", "it has no `outputs`"),
    ],
)
def test_any_other_notebook_is_refused_with_its_cell(
    cells: list[Cell], place: str, what: str, tmp_path: Path
) -> None:
    path = write(tmp_path, cells)
    with pytest.raises(SuperError) as raised:
        read_history(path)
    assert str(raised.value).startswith(f"{path}{place}: ")
    assert what in str(raised.value)


@pytest.mark.parametrize("text", ["[]", '{"cells": 7}', "\udcff"])
def test_what_is_no_notebook_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "history.ipynb"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(SuperError, match="is not a notebook"):
        read_history(path)


@pytest.mark.parametrize("cells", [REACT, SWE])
def test_the_prompt_is_extracted_to_the_letter(
    cells: list[Cell], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prompt", "extract", str(write(tmp_path, cells))]) == 0
    assert capsys.readouterr().out == PROMPT
