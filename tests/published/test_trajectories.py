"""All published trajectories, read and replayed."""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pytest_super.agents.asking import parse_submission
from pytest_super.agents.clipped_history import clipped, content_text, history_text
from pytest_super.agents.react.agent import as_shown
from pytest_super.agents.react.format import FormatError, parse_edit, parse_response, render_response
from pytest_super.agents.replay import ReplayAgent
from pytest_super.kernel.cell import CellResult
from pytest_super.store.published import PublishedTrajectory
from pytest_super.store.step_values import submission_of
from pytest_super.store.trajectory import Action, Step
from pytest_super.testing import cell_result
from tests.published.trajectories import expert_tasks, expert_trajectories
from tests.unit.folder_kernel import FolderKernel
from tests.unit.test_trial import TrialBench

Published = dict[tuple[str, str], PublishedTrajectory]


@pytest.fixture(scope="module")
def published() -> Published:
    """The expert trajectories, by agent and task."""
    return {(one.agent, one.task): one.history for one in expert_trajectories()}


def steps_of(published: Published, agent: str) -> dict[tuple[str, int], Step]:
    return {
        (task, step.number): step
        for (name, task), history in published.items()
        if name == agent
        for step in history.steps
    }


def test_all_published_trajectories_are_read_whole(published: Published) -> None:
    assert len(published) == 90
    assert len(steps_of(published, "react-super")) == 2218
    assert len(steps_of(published, "swe-agent")) == 2386
    assert {task: history.query for (_, task), history in published.items()} == {
        name: task["query"] for name, task in expert_tasks().items()
    }
    assert len({(history.agent, history.system_prompt) for history in published.values()}) == 2


# Actions that the published code misread: it kept the tag as the content of an interruption, and did not know
# `continue`, which can only mean to wait.
OTHERWISE = {
    ("dpt", 24): Action(type="interrupt"),
    ("dpt", 27): Action(type="interrupt"),
    ("dpt", 30): Action(type="interrupt"),
    ("dpt", 36): Action(type="interrupt"),
    ("mixup-amp", 39): Action(type="continue_wait"),
}

# Types that neither parser accepts: an answer not understood, the end of a run, words of the thought.
NO_TYPES = Counter({"": 303, "exception": 22, "None": 1, "I will": 14})

TYPES = Counter({"execute": 1254, "edit": 591, "submit": 23, "interrupt": 7, "continue_wait": 3})


def as_answered(step: Step) -> Action:
    """The action as the model wrote it: a submission is JSON."""
    if step.action.type != "submit":
        return step.action
    return Action(type="submit", content=json.dumps(submission_of(step.action.content)))


def test_published_actions_go_through_the_parser_as_they_are(published: Published) -> None:
    read, refused = Counter[str](), Counter[str]()
    for place, step in steps_of(published, "react-super").items():
        action = as_answered(step)
        try:
            response = parse_response(render_response(step.thought, action))
        except FormatError:
            refused["I will" if action.type.startswith("I will ") else action.type] += 1
        else:
            assert response.action == OTHERWISE.get(place, action)
            read[response.action.type] += 1
    assert (read, refused) == (TYPES, NO_TYPES)


def test_published_submissions_are_the_values_that_were_submitted(published: Published) -> None:
    submitted = [step for step in steps_of(published, "react-super").values() if step.action.type == "submit"]
    values = [submission_of(step.action.content) for step in submitted]
    assert [str(value) for value in values] == [step.action.content for step in submitted]
    assert [parse_submission(json.dumps(value)) for value in values] == values
    assert values.count(None) == 4


def test_published_edits_are_shown_as_they_are_published(published: Published) -> None:
    """An edit of the prefix is stored as a path and two texts. There the last line is ended, too."""
    shown = 0
    for step in steps_of(published, "react-super").values():
        if step.action.type == "edit":
            with suppress(FormatError):
                content = json.dumps(asdict(parse_edit(step.action.content)))
                assert content_text(Action(type="edit", content=content)) == f"{step.action.content}\n"
                shown += 1
    assert shown == 538


def published_text(steps: list[Step]) -> str:
    """The history in the published prompts (section 4.1 and the published code)."""
    last = len(steps) - 1
    observed = [
        clipped(
            step.observation,
            *((50_000, "... (truncated) ...") if index == last else (500, "(truncated) ... ")),
        )
        for index, step in enumerate(steps)
    ]
    return "".join(
        f"Thought: {step.thought}\nAction: {step.action.type}\n<content>\n{step.action.content}\n</content>\n"
        f"Observation: ```\n{observation}\n```\n"
        for step, observation in zip(steps, observed, strict=True)
    )


def as_stored(step: Step) -> Step:
    """The step as our agent stores the same answer."""
    try:
        response = parse_response(render_response(step.thought, as_answered(step)))
    except FormatError:
        return as_shown(step)
    return replace(step, thought=response.thought, action=response.action)


def is_misread(step: Step) -> bool:
    """Whether the published code kept a tag as content, or a label as thought (see OTHERWISE)."""
    ours = as_stored(step)
    return (ours.thought, ours.action) != (step.thought, step.action)


@pytest.mark.slow
def test_the_history_before_each_published_step_is_the_published_one(published: Published) -> None:
    equal, other = 0, 0
    for (agent, _), trajectory in published.items():
        steps = trajectory.steps if agent == "react-super" else []
        ours = [as_stored(step) for step in steps]
        for count in range(1, len(steps)):
            is_equal = history_text(ours[:count], fenced=True) == published_text(steps[:count])
            assert is_equal != any(map(is_misread, steps[:count]))
            equal, other = equal + is_equal, other + (not is_equal)
    # The others have one of the 15 answers that the published code misread.
    assert (equal, other) == (1814, 359)


class IdleKernel(FolderKernel):
    """A kernel whose cells do nothing."""

    def _run(self, _code: str) -> CellResult:
        return cell_result("", None, "")


def test_every_published_trajectory_is_replayed_to_its_end(published: Published, tmp_path: Path) -> None:
    for trajectory in expert_trajectories():
        steps = published[trajectory.agent, trajectory.task].steps
        bench = TrialBench()
        bench.trial.kernel = IdleKernel(tmp_path)  # type: ignore[assignment]
        bench.run(ReplayAgent(steps).run)
        types = [step.action.type for step in steps if step.action.type != "exception"]
        assert [step.action.type for step in bench.recorded] == types
        # In the published figures null is not a submission.
        assert bool(bench.trial.submission) == trajectory.metrics["submitted"]
