"""What a fork begins with: a stored trial up to a step, written as a run whose answers are given again."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_super.agents.replay import read_steps
from pytest_super.authoring.tries import OWN_SETTINGS
from pytest_super.errors import SuperError
from pytest_super.store.answers import FILE, AnswerStore, TrialAnswers, complete_lines, read_answers
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors, to_line
from pytest_super.store.results import TrialResult, folder_name
from pytest_super.store.trajectory import Step, step_to_data

DIRECTORY = Path(".super/fork")
# Options that run.json has by their values, also those that came from an ini file.
OF_FACTS = ("agent", "model", "sandbox", "scoring")
# Options that are as in the command line of the stored run.
OF_SANDBOX = frozenset(f"--super-{name}" for name in ("image", "ca-bundle", "pip-config", "mount"))
OF_ARGUMENTS = OF_SANDBOX | frozenset(
    f"--super-{name}" for name in ("attempts", "prompt", "retrieval", "agent-arg", "agent-files", "agent-env")
)


def write_start(run: Path, result: TrialResult, number: int) -> Path:
    """Write the trial up to the step with this number. Returns the folder. Raises SuperError."""
    trial = run / folder_name(result)
    steps = read_steps(trial / "trajectory.jsonl")
    answers = read_answers(trial / FILE)
    if not answers.calls:
        raise SuperError(
            f"{result.name} of {run.name} has no recorded answers, so its steps cannot be replayed: "
            "its agent asked no model, or the run had --super-answers=none; run the task again without that"
        )
    kept = calls_until(answers, steps, number)
    lines = [line for _, line in complete_lines(trial / FILE) if line.get("call") in (None, *kept)]
    facts = AnswerStore(run).facts()
    start = (DIRECTORY / f"{run.name}-{result.id}-{result.epoch}-step-{number}").absolute()
    source = f"{run.name} {result.name} step {number}"
    # Whichever epoch it was.
    own = f"trials/{result.id}/1.0"
    files = {
        f"{own}/{FILE}": map(asked_anew, lines),
        f"{own}/trajectory.jsonl": (step_to_data(step) for step in steps if step.number <= number),
        "run.json": [{"id": facts.get("id"), "model": facts.get("model"), "forked_from": source}],
    }
    with disk_errors(start):
        (start / own).mkdir(parents=True, exist_ok=True)
        for name, rows in files.items():
            write_atomically(start / name, "".join(map(to_line, rows)))
    return start


def asked_anew(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a record as if its answer did not come from another one: a fork is compared with nothing."""
    return {name: value for name, value in line.items() if name not in ("taken", "folded")}


def calls_until(answers: TrialAnswers, steps: Sequence[Step], number: int) -> list[int]:
    """The calls before the step with this number. Raises SuperError if the agent cannot go on from there."""
    own = {step.number: step for step in steps if step.origin == "agent"}
    if number not in own:
        has = f"the agent's steps are {min(own)} to {max(own)}" if own else "the agent has no step"
        raise SuperError(f"--step={number}: {has}")
    if own[number].action.type == "submit":
        raise SuperError(f"--step={number}: it is the submission, from which nothing goes on")
    kept = calls_before(answers, own[number])
    if not kept:
        raise SuperError(f"--step={number}: the agent took it before it asked its model")
    same = [one for one in own if one > number and calls_before(answers, own[one]) == kept]
    if same:
        raise SuperError(
            f"--step={number}: the same answer of the model led to step {same[0]}, so name a step before it, "
            f"or {same[-1]}"
        )
    return kept


def calls_before(answers: TrialAnswers, step: Step) -> list[int]:
    """A step that tells of a call of a program began with it."""
    return [call.number for call in answers.calls.values() if call.started <= step.started]


def arguments_of(facts: dict[str, Any], given: Collection[str]) -> Iterator[str]:
    """The options of pytest by which a stored run had its agent, model and sandboxes, without those given."""
    yield from OWN_SETTINGS
    yield from ("--super-epochs=1", "--super-answers-miss=live")
    yield from (f"--super-{name}={facts[name]}" for name in OF_FACTS if facts.get(name))
    for name, value in dict(facts.get("model_parameters") or {}).items():
        yield f"--super-model-arg={name}={json.dumps(value)}"
    names = OF_ARGUMENTS - {one.partition("=")[0] for one in given}
    yield from only(map(str, facts.get("arguments") or ()), names)


def sandbox_arguments(facts: dict[str, Any], given: Collection[str]) -> Iterator[str]:
    """The options of pytest by which a stored run had its sandboxes, without those that are given."""
    if facts.get("sandbox") and "--super-sandbox" not in given:
        yield f"--super-sandbox={facts['sandbox']}"
    yield from only(map(str, facts.get("arguments") or ()), OF_SANDBOX - set(given))


def only(arguments: Iterator[str], names: Collection[str]) -> Iterator[str]:
    """Yield these options and their values from some arguments."""
    for one in arguments:
        name, equals, value = one.partition("=")
        if name in names:
            yield f"{name}={value if equals else next(arguments, '')}"
