"""The gate `--super-must-solve`: the tasks that a file names must be solved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.gate import FAILED, PASSED
from pytest_super.gate.errors import ROUNDING
from pytest_super.option_types import share
from pytest_super.reading import read_text
from pytest_super.store.results import TrialResult
from pytest_super.words import named

# So many tasks are named in the verdict.
MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class MustSolve:
    """Passed if each task is solved in at least its share of the epochs. An error counts as not solved."""

    name: str
    """Of the file."""
    shares: Mapping[str, float]

    def needs(self, id: str) -> bool:
        return id in self.shares

    def decide(self, results: Sequence[TrialResult]) -> tuple[str, str]:
        if not (failing := list(self.failing(results))):
            return PASSED, f"the tasks of {self.name} are solved"
        return FAILED, f"of {self.name} too rarely solved: {named(failing, MOST_NAMED)}"

    def failing(self, results: Sequence[TrialResult]) -> Iterator[str]:
        for id, least in self.shares.items():
            trials = [one for one in results if one.id == id]
            solved = sum(one.solved and not one.is_error for one in trials)
            if not trials or solved < least * len(trials) - ROUNDING:
                yield f"{id} in {solved} of {len(trials)}"

    def chance_of_red(self, baseline: Mapping[str, Sequence[float]], epochs: int) -> float:
        """How often it fails if nothing changes, by the values of each task in a baseline that has it."""
        green = 1.0
        for id, least in self.shares.items():
            if values := baseline.get(id):
                rate = sum(value >= 1 for value in values) / len(values)
                few = range(ceil(least * epochs - ROUNDING))
                green *= 1 - sum(comb(epochs, n) * rate**n * (1 - rate) ** (epochs - n) for n in few)
        return 1 - green

    @property
    def why_open(self) -> str:
        return f"not all trials have ended that {self.name} needs"


def read_must_solve(path: Path) -> MustSolve:
    """A file with a line for each task: its id, and perhaps the share of epochs. Raises SuperError."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, ValueError) as error:
        raise SuperError(f"{path} cannot be read: {error}") from None
    shares: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        id, *least = line.partition("#")[0].split() or [""]
        if not id:
            continue
        try:
            shares[id] = share(least[0]) if least else 1.0
        except ValueError as error:
            raise SuperError(f"{path}:{number}: {least[0]}: {error}") from None
        if len(least) > 1:
            raise SuperError(
                f"{path}:{number}: write the id of a task, and perhaps a share, such as `{id} 0.8`"
            )
    if not shares:
        raise SuperError(f"{path} names no task")
    return MustSolve(name=path.name, shares=shares)
