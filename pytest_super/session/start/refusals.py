"""Refuses options, and markers of other plugins, with which a run cannot work or its scores are spoilt.

A miss that is tried again turns a score into the best of several. The plugin itself runs a trial once more if
its worker died, which says nothing about the agent.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from pytest_super.agents.registry import NEED_MODEL, find_agent
from pytest_super.session.run import MAKES_AGENTS, offers
from pytest_super.session.settings import Settings

# xdist's scope schedulers hang or lose items when a worker dies, and worksteal spoils the order.
DIST_MODES = ("no", "load")
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
KILLED = "would end the whole process at a timeout, so the trial would have no score"


def refuse_dist_modes(config: pytest.Config) -> None:
    mode = config.getoption("dist", "no")
    if mode not in DIST_MODES:
        raise pytest.UsageError(f"tasks run under --dist=load (the default of -n), not --dist={mode}")
    # Items keep their order only if xdist hands them out one by one.
    if getattr(config.option, "maxschedchunk", 1) is None:
        config.option.maxschedchunk = 1


def refuse_unknown_agent(config: pytest.Config, name: str) -> None:
    """Raises SuperError, unless a conftest or plugin can make agents by names of its own."""
    if not offers(config, *MAKES_AGENTS):
        find_agent(name)


def refuse_missing_options(settings: Settings) -> None:
    """Raises pytest.UsageError if an option is missing that the agent needs."""
    needs_model = settings.agent in NEED_MODEL or settings.for_sandboxes.program is not None
    if needs_model and settings.model is None:
        raise pytest.UsageError(
            f"--super-agent={settings.agent} needs --super-model, for example --super-model=openai/gpt-4o"
        )
    if settings.attempts > 1 and settings.model is None:
        raise pytest.UsageError("--super-attempts needs --super-model, to reflect on failed attempts")
    if settings.select == "model" and (settings.model is None or settings.epochs.most == 1):
        raise pytest.UsageError("--super-select=model needs --super-model and several --super-epochs")
    if settings.agent == "replay" and settings.for_agent.trajectory is None:
        raise pytest.UsageError("--super-agent=replay needs --super-trajectory, the run or file to replay")


def refuse_options(config: pytest.Config) -> None:
    """Raises pytest.UsageError if tests would be run again, or a timeout would end the process."""
    method = config.getoption("timeout_method", None)
    if (method or ini_of(config, "timeout_method")) == "thread":
        given = "--timeout-method=thread" if method else "the ini value timeout_method=thread"
        raise pytest.UsageError(f"{given} {KILLED}: use --timeout-method=signal in a run with an agent")
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
        if given is None and str(value := ini_of(config, name) or 0) != "0":
            raise pytest.UsageError(
                f"the ini value {name}={value} {REASON}, and {flag}=0 in a run with an agent"
            )


def ini_of(config: pytest.Config, name: str) -> Any:
    """The ini value; None if no plugin knows it."""
    try:
        return config.getini(name)
    except (KeyError, ValueError):
        return None


def refuse_marks(items: Iterable[pytest.Item]) -> None:
    """Raises pytest.UsageError if a hook of the project has marked a task for such a plugin."""
    for item in items:
        if item.get_closest_marker("flaky"):
            raise pytest.UsageError(f"the marker `flaky` of {item.nodeid} {REASON}")
        mark = item.get_closest_marker("timeout")
        if mark and "thread" in (*mark.args, *mark.kwargs.values()):
            raise pytest.UsageError(f'the marker `timeout` of {item.nodeid} {KILLED}: use method="signal"')
