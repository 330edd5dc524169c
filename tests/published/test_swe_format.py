"""Published answers of the SWE-agent, parsed."""

from collections import Counter

from pytest_super.agents.swe.commands import CommandError, arguments_of
from pytest_super.agents.swe.format import parse_answer
from tests.published.trajectories import expert_trajectories

NO_END = "an edit without its last line was run as a cell, where it opened IPython's editor or was no syntax"

WAITING_FORM = "the interrupt of a running cell was run as a cell, and did nothing"

TWO_EDITS = "two edits in one command put the second one's first line into the file"

# How what we read differs from what was published: how often, and why.
DIFFERENCES = {
    ("execute", "does not end"): (27, NO_END),
    ("execute", "interrupt"): (6, WAITING_FORM),
    ("edit", "Another command"): (1, TWO_EDITS),
}


def test_the_published_actions_are_read_as_they_were() -> None:
    trajectories = [one for one in expert_trajectories() if one.agent == "swe-agent"]
    assert len(trajectories) == 45
    same, differences = 0, Counter[tuple[str, str]]()
    actions = [step.action for one in trajectories for step in one.steps]
    # Cells by which the published runner ended a run are not actions of the agent.
    own = [action for action in actions if action.type != "exception"]
    for published in own:
        try:
            ours = parse_answer(f"DISCUSSION\nso\n```\n{published.content}\n```").action
        except CommandError as error:
            why = next(why for _, why in DIFFERENCES if why in str(error))
            differences[published.type, why] += 1
            continue
        same += ours == published
        if ours != published:
            differences[published.type, ours.type] += 1
    assert differences == {kind: count for kind, (count, _) in DIFFERENCES.items()}
    assert (len(actions), len(own), same) == (2386, 2352, 2352 - 34)


def test_the_published_searches_in_the_form_of_calls_have_a_meaning() -> None:
    calls = [
        step.action.content
        for one in expert_trajectories()
        for step in one.steps
        if one.agent == "swe-agent" and step.observation.startswith("bash: line 1: syntax error")
    ]
    assert len(calls) == 17
    assert all(1 <= len(arguments_of(call)) <= 2 for call in calls)
