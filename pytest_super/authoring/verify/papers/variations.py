"""Proposes hidden variations of experiments that have none: another seed or number in their commands."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

from pytest_super.authoring.verify.leaks import values_in
from pytest_super.authoring.verify.papers.runs import Files, RunResult, Trial
from pytest_super.authoring.verify.texts import Text
from pytest_super.json_values import loaded
from pytest_super.metrics.distinctive import distinctive_values
from pytest_super.tasks.paper import SEED_VARIABLE, Experiment
from pytest_super.tasks.yaml_writer import Flow, to_yaml

# As the shell would replace it: `${SUPER_SEED:-0}` or `$SUPER_SEED`.
SEED = re.compile(rf"\$\{{{SEED_VARIABLE}\b[^}}]*\}}|\${SEED_VARIABLE}\b")
OTHER_SEED = "7"
# Of the keys of an experiment in a task file.
INDENT = " " * 4
WHOLE_NUMBER = re.compile(r"(?<=[ =])\d+(?= |$)")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What was tried in place of an experiment's command, and what the original code yields then."""

    experiment: str
    command: str = ""
    """Empty if the command has no seed and no number."""
    expected: dict[str, Any] = field(default_factory=dict)
    """By the names of checks; empty if it yields the same as the experiment, or not all values."""


def propose(
    experiments: Iterable[Experiment],
    files: Files,
    run: Callable[[Iterable[Trial]], list[RunResult]],
    texts: Sequence[Text],
) -> list[Proposal]:
    """The first varied command of each that yields values not in `texts`, else the last that was tried."""
    todo = [(one, varied_commands(one.command)) for one in experiments]
    found = {one.name: Proposal(experiment=one.name) for one, _ in todo}
    while todo := [(one, left) for one, left in todo if left and not found[one.name].expected]:
        tried = [varied(one, left.pop(0)) for one, left in todo]
        trials = [Trial(files=files, commands=[one]) for one in tried]
        for one, result in zip(tried, run(trials), strict=True):
            found[one.name] = proposal_of(one, result, texts)
    return list(found.values())


def varied_commands(command: str) -> list[str]:
    """The command with another seed, or else with another number in place of each, the last one first."""
    if SEED.search(command):
        return [SEED.sub(OTHER_SEED, command)]
    numbers = reversed(list(WHOLE_NUMBER.finditer(command)))
    return [f"{command[: one.start()]}{int(one[0]) + 1}{command[one.end() :]}" for one in numbers]


def varied(experiment: Experiment, command: str) -> Experiment:
    """The experiment with another command, and the checks that can vary."""
    checks = [check for check in experiment.checks if check.has_expected]
    return experiment.model_copy(update={"command": command, "result": checks, "vary": []})


def proposal_of(tried: Experiment, result: RunResult, texts: Sequence[Text]) -> Proposal:
    names = [check.key for check in tried.checks]
    # A list is several values, and what is too long is shown clipped.
    is_whole = len(result.values) == len(names) and all(is_shown(one.found) for one in result.values)
    # Texts are shown as they are.
    values = {
        name: (loaded(one.found, one.found), one) for name, one in zip(names, result.values, strict=False)
    }
    hidden = {name: (value, one) for name, (value, one) in values.items() if not is_told(value, texts)}
    differs = any(one.score < 1 for _, one in hidden.values())
    expected = {name: value for name, (value, _) in hidden.items()} if is_whole and differs else {}
    return Proposal(experiment=tried.name, command=tried.command, expected=expected)


def is_told(value: Any, texts: Iterable[Text]) -> bool:
    sought = list(distinctive_values(value))
    return any(values_in(text, sought) for text in texts)


def is_shown(found: str) -> bool:
    """Whether there is a value that is shown whole."""
    return found.isprintable() and found != "" and not found.rstrip('"').endswith("…")


def proposal_lines(paper: str, proposal: Proposal) -> Iterator[str]:
    """What is missing, and YAML that can be appended to the experiment as it is."""
    name = f"{paper}: `{proposal.experiment}` has no hidden variation, so a table of its values passes"
    if proposal.expected:
        yield f"{name}; append to it:"
        vary = to_yaml({"vary": [{"command": proposal.command, "expected": Flow(proposal.expected)}]})
        yield from indent(vary, INDENT).splitlines()
    else:
        tried = "no other seed or number in its command changes its values and yields all of them"
        yield f"{name}; {tried}: let it take an argument that does"
