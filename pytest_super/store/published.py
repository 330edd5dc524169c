"""Reads SUPER's published trajectories: history.ipynb of the agents react-super and swe-agent."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_super.errors import SuperError
from pytest_super.store.json_lines import UNREADABLE, damage, read_json
from pytest_super.store.trajectory import CONTINUED, Action, Step
from pytest_super.tasks.solution import cell_source

AgentName = Literal["react-super", "swe-agent"]

# The thoughts of steps that the runner pre-executed; the second one marks edits.
PRE_EXECUTED = ("[pre-executed by user]", "EXECUTED BY USER", CONTINUED)

# Cells by which the runner of swe-agent ends a run; the runner of react-super has an action type for it.
EXITS = ("exit_context", "exit_max_compute_time")

_QUERY = re.compile(r"### Query\n(.*)", re.DOTALL)
_DETAILS = re.compile(r"### (?:System )?Prompt\n<details>\n(.*)\n</details>\n?", re.DOTALL)
_TIMES = re.compile(r"Execution Start time: [\d:]{8}, End time: [\d:]{8} \(duration: (\d+) seconds\)")
_THOUGHT = re.compile(r"\*\*Thought\*\*: (.*)", re.DOTALL)
_ACTION = re.compile(r"\*\*Action \((.*)\)\*\*:", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class PublishedTrajectory:
    """One published trial."""

    agent: AgentName
    query: str
    system_prompt: str
    steps: list[Step]
    """Thoughts, contents and observations are verbatim: a submission of react-super is a Python literal.

    A notebook cell has the type `execute`; the end of a run for lack of tokens or time has the type
    `exception`. `outcome` is `ok` unless the observation shows another; `seconds` are rounded down. The
    published times of day are left out: they have no date, and their differences can be a second too long.
    """


@dataclass(frozen=True, slots=True)
class Cell:
    kind: str
    text: str
    output: str


def read_history(path: Path) -> PublishedTrajectory:
    """The trajectory in a history.ipynb. Raises SuperError, with file and cell, for any other notebook."""
    cells = Cells(path)
    if cells.see("### Query\n"):
        query = cells.take(_QUERY, "the query")[1]
        prompt = system_message(cells)
        agent: AgentName = "react-super"
    else:
        prompt = cells.take(_DETAILS, "the query or the system prompt")[1]
        query = cells.take(_QUERY, "the query")[1]
        agent = "swe-agent"
    steps = list(read_steps(cells, agent))
    return PublishedTrajectory(agent=agent, query=query, system_prompt=prompt, steps=steps)


class Cells:
    """The cells of a notebook, taken in order and checked against the expected kind."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = load_cells(path)
        self.taken = 0

    @property
    def are_left(self) -> bool:
        return self.taken < len(self.cells)

    def see(self, beginning: str) -> bool:
        return self.are_left and self.cells[self.taken].text.startswith(beginning)

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Match the whole next cell, which must be markdown."""
        found = pattern.fullmatch(self.take_cell("markdown", what).text)
        if found is None:
            raise self.error(f"expected {what} here")
        return found

    def take_cell(self, kind: str, what: str) -> Cell:
        if not self.are_left:
            raise self.error(f"expected {what} after this cell")
        self.taken += 1
        cell = self.cells[self.taken - 1]
        if cell.kind != kind:
            raise self.error(f"expected {what} here")
        return cell

    def error(self, what: str) -> SuperError:
        """An error at the last taken cell."""
        return SuperError(f"{self.path}:{self.taken}: not a published trajectory: {what}")


def load_cells(path: Path) -> list[Cell]:
    try:
        return [load_cell(path, number, cell) for number, cell in enumerate(read_json(path)["cells"], 1)]
    except OSError as error:
        raise SuperError(f"{path} cannot be read: {error.strerror}") from None
    except UNREADABLE as error:
        raise SuperError(f"{path} is not a notebook: {damage(error)}") from None


def load_cell(path: Path, number: int, cell: dict[str, Any]) -> Cell:
    try:
        outputs = cell["outputs"] if cell["cell_type"] == "code" else []
        texts = ["".join(output["data"]["text/plain"]) for output in outputs]
        return Cell(cell["cell_type"], cell_source(cell), "".join(texts))
    except (KeyError, TypeError) as error:
        raise SuperError(f"{path}:{number}: not a cell of a published run: {damage(error)}") from None


def system_message(cells: Cells) -> str:
    """The first message of the prompt, which is a Python list of messages."""
    messages = cells.take(_DETAILS, "the prompt")[1]
    try:
        return str(ast.literal_eval(messages)[0]["content"])
    except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError):
        raise cells.error("the prompt is not a list of messages") from None


def read_steps(cells: Cells, agent: AgentName) -> Iterator[Step]:
    number, is_prefix = 0, True
    while cells.are_left:
        number += 1
        cells.take(re.compile(f"### Step {number}"), f"step {number}")
        has_time = cells.see("Execution Start time")
        seconds = float(cells.take(_TIMES, "the time of a step")[1]) if has_time else 0.0
        thought = cells.take(_THOUGHT, "a thought")[1]
        type = cells.take(_ACTION, "an action")[1]
        cell = cells.take_cell("code", "a code cell")
        # Only at the beginning: later, agents imitate these thoughts.
        is_prefix = is_prefix and thought in PRE_EXECUTED
        yield Step(
            number=number,
            origin="pre_execute" if is_prefix else "agent",
            action=Action(type=type_of(agent, type, thought, cell.text), content=cell.text),
            thought=thought,
            observation=cell.output,
            outcome=step_outcome(type, cell.output),
            seconds=seconds,
        )


def type_of(agent: AgentName, type: str, thought: str, content: str) -> str:
    if agent == "react-super" or type != "None":
        return type
    if content in EXITS:
        return "exception"
    return "edit" if thought == PRE_EXECUTED[1] else "execute"


def step_outcome(type: str, observation: str) -> str:
    # The texts of the published runners.
    if type == "interrupt" and observation == "Kernel interrupted.":
        return "interrupted"
    if type in ("", "submit_invalid_json") or observation == f"Invalid action type: {type}":
        return "error"
    return "timed_out" if "seconds. It is still running." in observation else "ok"
