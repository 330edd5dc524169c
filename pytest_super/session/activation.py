"""Turns a pytest session into a run, after all checks that are possible before money is spent."""

import os
from functools import partial

import pytest

from pytest_super.option_values import ini_value
from pytest_super.platform import obey_interrupts, when_parent_ends
from pytest_super.session.hooks import Session
from pytest_super.session.run import RUN, Run, is_worker, open_run
from pytest_super.session.settings import Settings, read_settings, refuse_unwritable_page, usage_errors
from pytest_super.session.signals import Interrupts
from pytest_super.session.start.collection import name_items_in_order
from pytest_super.session.start.recorded_answers import with_answers
from pytest_super.session.start.refusals import (
    refuse_dist_modes,
    refuse_missing_options,
    refuse_options,
    refuse_unknown_agent,
)
from pytest_super.session.start.resume import RESUMED_RUN, ResumedRun
from pytest_super.session.trial import fixtures, reported_outcome
from pytest_super.session.trial.scoring import GATES, SCORING, Scoring, read_gates, read_scoring
from pytest_super.session.trial.start_ahead import START_AHEAD, StartAhead


@usage_errors()
def activate(config: pytest.Config) -> None:
    """Make this session a run. Raises pytest.UsageError before anything is spent.

    The order matters: options are checked, the run is made of them, and its hooks find it in the stash.
    """
    obey_interrupts()
    settings = read_settings(config)
    scoring = read_scoring(config, settings)
    if not is_worker(config):
        settings = checked(config, settings)
    collect_tasks_by_default(config)
    name_items_in_order(config)
    run = open_run(config, settings)
    stash_run(config, run, scoring)
    config.pluginmanager.register(fixtures, "super-fixtures")
    config.pluginmanager.register(reported_outcome, "super-outcome")
    config.pluginmanager.register(Session(), "super-session")
    config.pluginmanager.register(Interrupts(), "super-interrupts")
    if is_worker(config):
        # Otherwise an orphaned worker would continue for 15 s, with its sandboxes.
        when_parent_ends(lambda: os._exit(1))
    elif not config.option.collectonly:
        control(config, run)


def checked(config: pytest.Config, settings: Settings) -> Settings:
    """The settings with what the controller finds for them. Workers get that from it, and check nothing."""
    if settings.machines and not config.option.collectonly:
        # Not at the top: most runs have one machine.
        from pytest_super.session.workers.machines import use_machines

        use_machines(config, settings.machines, settings.srun)
    refuse_dist_modes(config)
    refuse_options(config)
    refuse_unknown_agent(config, settings.agent)
    settings = with_answers(settings)
    # These can name the model, so it is missed only after them.
    refuse_missing_options(settings)
    if settings.html is not None:
        refuse_unwritable_page(settings.html)
    return settings


def stash_run(config: pytest.Config, run: Run, scoring: Scoring) -> None:
    """Put the run where hooks and fixtures find it."""
    config.stash[RUN] = run
    config.stash[SCORING] = scoring
    only_collects = config.option.collectonly
    if run.settings.epochs.is_adaptive or not (only_collects or is_worker(config)):
        config.stash[GATES] = read_gates(config, run, scoring)
    if not only_collects:
        # Not at the top: they take time to load, and a session that only collects needs none of them.
        from pytest_super.session.trial.kernels import choose_place, ready_kernel

        # Making a snapshot would take processor time of the trial that runs.
        config.stash[START_AHEAD] = StartAhead(partial(choose_place, may_make=False), ready_kernel)
        if run.resumed:
            config.stash[RESUMED_RUN] = ResumedRun(run)


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
