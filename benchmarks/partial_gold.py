"""A pytest plugin with agents that put some masked functions back: by a fixed rule, by chance, or none.

They know the originals, so they say nothing about models. They show what the dial n does to an agent whose
chance at each function is known.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import PurePosixPath

from pytest_super.agents.gold_functions import writing
from pytest_super.functions.masking import masked_files
from pytest_super.sources import fetch
from pytest_super.tasks.paper import MaskableFunction
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial

# The rule: a function is put back if its body has at most so many lines.
SHORT = 12
# The chance of each function.
CHANCE = 0.7


class PartialGold:
    """Puts the functions back for which `puts_back` is true, and leaves the stubs of the others."""

    def __init__(self, task: PaperItem, puts_back: Callable[[MaskableFunction, int], bool]) -> None:
        """`puts_back` gets a function and the number of lines of its body."""
        self._task = task
        self._puts_back = puts_back

    def run(self, trial: Trial) -> None:
        task = self._task
        assert task.repository is not None
        folder = fetch(task.repository, base=task.folder)
        masked = masked_files(folder, [one.target for one in task.functions])
        lines = {(path, one.name): one.body_lines for path, file in masked.items() for one in file.functions}
        left = [one.target for one in task.functions if not self._puts_back(one, lines[one.file, one.name])]
        stubs = {path: file.data for path, file in masked_files(folder, left).items()}
        for file in task.files:
            data = stubs.get(file, (folder / file).read_bytes())
            trial.execute(writing(PurePosixPath(folder.name, file), data))
        trial.submit(None)


def pytest_super_make_agent(name: str, task: Task, epoch: int) -> PartialGold | None:
    if not isinstance(task, PaperItem):
        return None
    chance = random.Random(f"{task.id} {epoch}")
    rules: dict[str, Callable[[MaskableFunction, int], bool]] = {
        "stub": lambda _function, _lines: False,
        "short": lambda _function, lines: lines <= SHORT,
        "chance": lambda _function, _lines: chance.random() < CHANCE,
    }
    return PartialGold(task, rules[name]) if name in rules else None
