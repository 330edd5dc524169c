"""Published output as a terminal shows it."""

import unicodedata

from pytest_super.kernel.terminal_text import as_shown
from tests.published.trajectories import expert_trajectories


def test_published_observations_lose_no_line_that_nothing_overwrites() -> None:
    seen = [step.observation for run in expert_trajectories() for step in run.steps]
    assert len(seen) > 4000
    for text in seen:
        if not set(text) & set("\r\b\x1b"):
            assert as_shown(text).split("\n") == [
                "".join(char for char in line if char == "\t" or unicodedata.category(char) != "Cc")
                for line in text.split("\n")
            ]
