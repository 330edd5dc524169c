"""Refuses what runs a failed test again, or each test several times.

A miss that is tried again turns a score into the best of several. The plugin itself runs a trial once more if
its worker died, which says nothing about the agent.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_super.errors import InfrastructureError

# The options of pytest-rerunfailures, pytest-retry and flaky, by the names of their values.
OPTIONS = {
    "reruns": "--reruns",
    "force_reruns": "--force-reruns",
    "retries": "--retries",
    "force_flaky": "--force-flaky",
}
REASON = (
    "would run missed tasks again, so a score would be the best of several tries: "
    "use --super-epochs to run every task several times"
)
REPEATED = "would run every task several times as the same trial, and its figures would be mixed"


def refuse_rerun_options(config: pytest.Config) -> None:
    """Raises pytest.UsageError if failed tests would be run again, or all tests several times."""
    # pytest-repeat's; other plugins can have an option of this name.
    count = config.getoption("count", None)
    if isinstance(count, int) and count > 1:
        raise pytest.UsageError(f"--count={count} {REPEATED}: use --super-epochs={count}")
    for name, flag in OPTIONS.items():
        given = config.getoption(name, None)
        if given:
            shown = flag if given is True else f"{flag}={given}"
            raise pytest.UsageError(f"{shown} {REASON}")
        # An option of 0 overrides the ini value.
        if given is None and str(value := rerun_ini(config, name) or 0) != "0":
            raise pytest.UsageError(
                f"the ini value {name}={value} {REASON}, and {flag}=0 in a run with an agent"
            )


def rerun_ini(config: pytest.Config, name: str) -> Any:
    """The ini value; None if no plugin knows it."""
    try:
        return config.getini(name)
    except (KeyError, ValueError):
        return None


def refuse_rerun_mark(item: pytest.Item) -> None:
    """Raises InfrastructureError if a hook of the project has marked a task as flaky.

    Only when the item runs: an xdist worker cannot refuse what it has collected.
    """
    if item.get_closest_marker("flaky"):
        raise InfrastructureError(f"the marker `flaky` of {item.nodeid} {REASON}", is_final=True)
