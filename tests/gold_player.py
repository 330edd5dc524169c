"""A model that knows the way: leads SUPER's agents along a task's gold solution, over the test's HTTP server.

    openai_server.by(GoldPlayer(tasks))

On the way it looks around and uses the agent's tools.
"""

import ast
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task
from tests.openai_server import KEY, Answer

SHIPPED = Path(__file__).parents[1] / "tasks"

# Says what a container holds of the host and of trials before. The pattern does not find itself.
PROBE = (
    f"!env; grep -rls '{KEY[:-1]}[{KEY[-1]}]' /proc/[0-9]*/environ /etc /root /run /tmp /workspace; "
    "ls /tmp/been-here; touch /tmp/been-here; echo probed"
)
WRITE = r"open('notes.py', 'w').write('import json\n\nrate = 1\nsteps = 5\n');"
SHOW = "!cat notes.py"
EDITED = "import json\n\nrate = 1\nsteps = 6\n"
PLAN = "Run the cells of the solution."

PRE_EXECUTED = "[pre-executed by user]"
# What an agent wrote of a step into a history.
_STEP = re.compile(r"^Thought: (.*)\nAction: \w*\n<content>$", re.MULTILINE)


def react(type: str, content: str) -> str:
    return f"Thought: On I go.\nAction: {type}\n<content>\n{content}\n</content>"


def swe(command: str) -> str:
    return f"DISCUSSION\nOn I go.\n```\n{command}\n```"


@dataclass(frozen=True, kw_only=True)
class Form:
    """How an agent wants its answers, and what of its own tools is used."""

    cell: Callable[[str], str]
    submit: Callable[[str], str]
    tools: tuple[str, ...] = ()


REACT = Form(cell=partial(react, "execute"), submit=partial(react, "submit"))
REACT_SUPER = replace(
    REACT,
    tools=(
        react("execute", WRITE),
        react("edit", "notes.py\n<<<BEFORE_EDIT>>>\nsteps = 5\n<<<AFTER_EDIT>>>\nsteps = 6"),
        react("execute", SHOW),
    ),
)
SWE_AGENT = Form(
    cell=swe,
    submit=lambda text: swe(f"submit {text}"),
    tools=(
        swe(WRITE),
        swe("open notes.py"),
        swe("goto 3"),
        swe("search_file steps"),
        swe("edit 4:4\nsteps = 6\nend_of_edit"),
        swe(SHOW),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a request tells: who asks, for what, after how many steps of its own, and what the last gave."""

    form: Form
    query: str
    steps: int
    observation: str


class GoldPlayer:
    """Answers by the request alone, so that many trials may ask at once and a call may be made again.

    The solution's cells are played up to the one that yields the answer, and what is submitted is read from
    the output of that cell, as far as the agent shows it. `wasted_tokens` is what a call is said to have used
    as long as there is no plan from an attempt before.
    """

    def __init__(self, tasks: Sequence[Task], wasted_tokens: int | None = None) -> None:
        self._cells = {task.query.strip(): gold_cells(task) for task in tasks}
        self._wasted = wasted_tokens

    def __call__(self, request: Mapping[str, Any]) -> Answer:
        messages = request["messages"]
        if is_reflection(messages):
            return f"Plan: {PLAN}\n[END]"
        scene = read_scene(messages)
        answer = self._next(scene)
        if self._wasted is not None and PLAN not in scene.query:
            return {"text": answer, "usage": {"prompt_tokens": self._wasted, "completion_tokens": 10}}
        return answer

    def _next(self, scene: Scene) -> str:
        [cells] = [cells for query, cells in self._cells.items() if query in scene.query]
        moves = moves_of(scene.form, cells)
        if scene.steps < len(moves):
            return moves[scene.steps]
        return scene.form.submit(json.dumps(ast.literal_eval(scene.observation.strip())))


def shipped_task(id: str) -> Task:
    [task] = [task for path in SHIPPED.glob("*.task.yaml") for task in load_tasks(path) if task.id == id]
    return task


def write_shipped_task(id: str, folder: Path) -> None:
    """Alone, without the other tasks of its file."""
    task = shipped_task(id)
    data = task.model_dump(mode="json", exclude_unset=True, exclude_none=True, exclude={"subproblems"})
    (folder / f"{id}.task.yaml").write_text(json.dumps(data))
    if task.solution is not None and task.solution.notebook is not None:
        shutil.copy(SHIPPED / task.solution.notebook, folder)


def gold_cells(task: Task) -> list[str]:
    assert task.solution is not None
    gold = read_solution(task.solution, SHIPPED)
    return gold.cells[: gold.answer + 1]


def moves_of(form: Form, cells: Sequence[str]) -> list[str]:
    """All answers but the submission, in order; each makes one step."""
    return [form.cell(PROBE), *form.tools, *map(form.cell, cells)]


def is_reflection(messages: Sequence[Mapping[str, str]]) -> bool:
    return "\n\nThe attempt:\n\n" in messages[1]["content"]


def read_scene(messages: Sequence[Mapping[str, str]]) -> Scene:
    system, query, *rest = (message["content"] for message in messages)
    if "search_file" in system:
        return swe_scene(query, rest)
    form = REACT_SUPER if "<<<BEFORE_EDIT>>>" in system else REACT
    return react_scene(form, query, "".join(rest))


def react_scene(form: Form, query: str, history: str) -> Scene:
    """The history is one message; observations in it are not marked off, but follow their step."""
    steps = [found for found in _STEP.finditer(history) if found[1] != PRE_EXECUTED]
    observation = history.rpartition("\nObservation:\n")[2]
    return Scene(form=form, query=query, steps=len(steps), observation=observation)


def swe_scene(query: str, rest: Sequence[str]) -> Scene:
    """The history is an answer and an observation by turns; the prompt line follows the last."""
    own = [answer for answer in rest[::2] if f"\n{PRE_EXECUTED}\n" not in answer]
    observation = (rest[-1] if rest else "").rpartition("(Open file: ")[0]
    return Scene(form=SWE_AGENT, query=query, steps=len(own), observation=observation)
