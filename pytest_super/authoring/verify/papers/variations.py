"""Proposes hidden variations of experiments that have none: another seed or number in their commands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_super.tasks.paper import SEED_VARIABLE

if TYPE_CHECKING:
    from pytest_super.authoring.verify.papers.runs import Outcome
    from pytest_super.tasks.paper import Experiment

# As the shell would replace it: `${SUPER_SEED:-0}` or `$SUPER_SEED`.
SEED = re.compile(rf"\$\{{{SEED_VARIABLE}\b[^}}]*\}}|\${SEED_VARIABLE}\b")
OTHER_SEED = "7"
WHOLE_NUMBER = re.compile(r"(?<=[ =])\d+(?= |$)")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What was tried in place of an experiment's command, and what the original code yields then."""

    experiment: str
    command: str = ""
    """Empty if the command has no seed and no number."""
    expected: dict[str, Any] = field(default_factory=dict)
    """By the names of checks; empty if it yields the same as the experiment, or not all values."""


def varied_command(command: str) -> str:
    """The command with another seed, or else with another last number; "" if it has neither."""
    if SEED.search(command):
        return SEED.sub(OTHER_SEED, command)
    numbers = list(WHOLE_NUMBER.finditer(command))
    if not numbers:
        return ""
    last = numbers[-1]
    return f"{command[: last.start()]}{int(last[0]) + 1}{command[last.end() :]}"


def varied(experiment: Experiment) -> Experiment:
    """The experiment with the command that is tried, and the checks that can vary."""
    checks = [check for check in experiment.checks if check.has_expected]
    command = varied_command(experiment.command)
    return experiment.model_copy(update={"command": command, "result": checks, "vary": []})


def proposal_of(experiment: Experiment, outcome: Outcome | None) -> Proposal:
    """`outcome` is None if there is no command to try."""
    if outcome is None:
        return Proposal(experiment=experiment.name)
    tried = varied(experiment)
    names = [check.key for check in tried.checks]
    # A list is several values, and what is too long is shown clipped.
    is_whole = len(outcome.values) == len(names) and all(is_shown(one.found) for one in outcome.values)
    differs = any(value.score < 1 for value in outcome.values)
    values = zip(names, outcome.values, strict=False)
    expected = {name: read(value.found) for name, value in values} if is_whole and differs else {}
    return Proposal(experiment=experiment.name, command=tried.command, expected=expected)


def is_shown(found: str) -> bool:
    """Whether there is a value that is shown whole."""
    return bool(found) and not found.rstrip('"').endswith("…")


def read(text: str) -> Any:
    """A value as it is shown, which texts are as they are."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def proposal_line(proposal: Proposal) -> str:
    name = f"`{proposal.experiment}` has no hidden variation, so a table of its values passes"
    if proposal.expected:
        stated = f"{{command: {json.dumps(proposal.command)}, expected: {json.dumps(proposal.expected)}}}"
        return f"{name}; proposed: vary: [{stated}]"
    if proposal.command:
        return f"{name}; `{proposal.command}` yields no other values: let it take a seed or an argument"
    return f"{name}; its command has no seed and no number: let it take one"
