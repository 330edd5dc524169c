"""What a change of the harness would have touched of the published trials, as docs states it."""

from collections.abc import Callable, Iterator
from statistics import median

from pytest_super.store.trajectory import Step
from tests.pages import page_path
from tests.published.trajectories import expert_trajectories

SHOWN = {"open", "goto", "scroll_down", "scroll_up", "search_file", "search_dir", "find_file", "create"}
UNMATCHED = ("Could not find the following", "Found multiple", "Usage: edit")
LONG = 10_000


def action_of(step: Step) -> str:
    return step.action.type if step.action else ""


# What the harness words, and the steps that meet it.
KINDS: dict[str, Callable[[Step], bool]] = {
    "how colours and carriage returns are shown": lambda step: bool({"\r", "\x1b"} & set(step.observation)),
    "how a file is shown or searched": lambda step: action_of(step) in SHOWN,
    "what an edit reports": lambda step: action_of(step) == "edit",
    "how output of more than 10,000 characters is cut": lambda step: len(step.observation) > LONG,
    "what an edit reports that fails": lambda step: (
        step.observation.startswith(UNMATCHED) or "proposed edit" in step.observation[:200]
    ),
}


def shares(agent: str, meets: Callable[[Step], bool]) -> str:
    """The share of the trials that meet it, the median first step, and the share of steps after it."""
    trials = [one.steps for one in expert_trajectories() if one.agent == agent]
    first = [next((place for place, step in enumerate(trial, 1) if meets(step)), None) for trial in trials]
    known = [place for place in first if place is not None]
    left = sum(len(trial) - place for trial, place in zip(trials, first, strict=True) if place is not None)
    if not known:
        return "0 % | | 0 %"
    of_trials, of_steps = len(known) / len(trials), left / sum(map(len, trials))
    return f"{of_trials:.0%} | {median(known):.0f} | {of_steps:.0%}".replace("%", " %")


def rows() -> Iterator[str]:
    for kind, meets in KINDS.items():
        yield f"| {kind} | {shares('react-super', meets)} | {shares('swe-agent', meets)} |"


def test_the_page_states_what_changes_would_have_touched() -> None:
    lines = page_path("evidence.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows() if row not in lines] == []
