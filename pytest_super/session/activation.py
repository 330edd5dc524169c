"""Turns a pytest session into a run, after all checks that are possible before money is spent."""

from __future__ import annotations

import os
from functools import partial

import pytest

from pytest_super.agents.registry import NEED_MODEL, find_agent
from pytest_super.errors import SuperError
from pytest_super.option_values import ini_value
from pytest_super.platform import obey_interrupts, when_parent_ends
from pytest_super.session.hooks import Session
from pytest_super.session.run import MAKES_AGENTS, RUN, Run, is_worker, offers, open_run
from pytest_super.session.settings import Settings, read_settings, refuse_unwritable_page
from pytest_super.session.signals import Interrupts
from pytest_super.session.start.other_plugins import refuse_options
from pytest_super.session.start.papers import name_items_in_order
from pytest_super.session.start.recorded_answers import with_answers
from pytest_super.session.start.resume import RESUMED_RUN, ResumedRun
from pytest_super.session.trial import fixtures
from pytest_super.session.trial.scoring import GATES, SCORING, read_gates, read_scoring
from pytest_super.session.trial.start_ahead import START_AHEAD, StartAhead

# xdist's scope schedulers hang or lose items when a worker dies, and worksteal spoils the order.
DIST_MODES = ("no", "load")


def activate(config: pytest.Config) -> None:
    """Make this session a run. Raises pytest.UsageError before anything is spent."""
    obey_interrupts()
    settings = read_settings(config)
    scoring = read_scoring(config, settings)
    if not is_worker(config):
        if settings.machines and not config.option.collectonly:
            # Not at the top: most runs have one machine.
            from pytest_super.session.workers.machines import use_machines

            use_machines(config, settings.machines, settings.srun)
        refuse_dist_modes(config)
        refuse_options(config)
        refuse_unknown_agent(config, settings.agent)
        settings = with_answers(settings)
        refuse_missing_options(settings)
        if settings.html is not None:
            refuse_unwritable_page(settings.html)
    collect_tasks_by_default(config)
    name_items_in_order(config)
    run = open_run(config, settings)
    config.stash[RUN] = run
    config.stash[SCORING] = scoring
    is_controller = not is_worker(config) and not config.option.collectonly
    if is_controller or settings.epochs.is_adaptive:
        config.stash[GATES] = read_gates(config, run, scoring)
    if not config.option.collectonly:
        config.stash[START_AHEAD] = start_ahead()
        if run.resumed:
            config.stash[RESUMED_RUN] = ResumedRun(run)
    config.pluginmanager.register(fixtures, "super-fixtures")
    config.pluginmanager.register(Session(), "super-session")
    config.pluginmanager.register(Interrupts(), "super-interrupts")
    if is_worker(config):
        # Otherwise an orphaned worker would continue for 15 s, with its sandboxes.
        when_parent_ends(lambda: os._exit(1))
    if is_controller:
        control(config, run)


def control(config: pytest.Config, run: Run) -> None:
    """Register what only the controller of a run does."""
    from pytest_super.session.controller.controller import Controller
    from pytest_super.session.controller.live import LiveRun
    from pytest_super.session.terminal_summary import TerminalSummary
    from pytest_super.session.workers.worker_processes import WorkerProcesses, are_many
    from pytest_super.session.workers.workers import Workers

    controller = Controller(config, run)
    workers = Workers(controller)
    plugins: dict[str, object] = {
        "super-terminal": TerminalSummary(controller, workers),
        "super-workers": workers,
        "super-controller": controller,
        "super-live": LiveRun(config, controller),
    }
    if are_many(config):
        plugins["super-worker-processes"] = WorkerProcesses(run)
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, name)


def start_ahead() -> StartAhead:
    # Not at the top: these modules take time to load, and a session that only collects needs none of them.
    from pytest_super.session.trial.kernels import choose_place, ready_kernel

    # Making a snapshot would take processor time of the trial that runs.
    return StartAhead(partial(choose_place, may_make=False), ready_kernel)


def refuse_dist_modes(config: pytest.Config) -> None:
    mode = config.getoption("dist", "no")
    if mode not in DIST_MODES:
        raise pytest.UsageError(f"tasks run under --dist=load (the default of -n), not --dist={mode}")
    # Items keep their order only if xdist hands them out one by one.
    if getattr(config.option, "maxschedchunk", 1) is None:
        config.option.maxschedchunk = 1


def refuse_unknown_agent(config: pytest.Config, name: str) -> None:
    """Raises pytest.UsageError, unless a conftest or plugin can make agents by names of its own."""
    if offers(config, *MAKES_AGENTS):
        return
    try:
        find_agent(name)
    except SuperError as error:
        raise pytest.UsageError(str(error)) from None


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


def collect_tasks_by_default(config: pytest.Config) -> None:
    """Collect from the ini value super_tasks if the command line has no path."""
    # Paths of the ini value `testpaths` are not arguments: super_tasks takes their place.
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    paths = [config.rootpath / path for path in ini_value(config, "super_tasks")]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise pytest.UsageError(
            f"there is no {', '.join(missing)} to collect tasks from: "
            "name a path, set super_tasks, or make a first task with `pytest-super init`"
        )
    config.args = [str(path) for path in paths]
