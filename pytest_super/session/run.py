"""The run: one pytest session with its settings, its sandbox provider and its results folder."""

import secrets
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_super.agents.registry import TRUSTED, is_program
from pytest_super.errors import SuperError
from pytest_super.kernel.providers.registry import AUTO, Choice, choose_provider, find_provider
from pytest_super.model.settings import ModelSettings
from pytest_super.session.comparability import subject_of
from pytest_super.session.settings import Settings, usage_errors
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.store.results import FORMAT, read_results
from pytest_super.store.run_folder import new_run_id
from pytest_super.store.stored_runs import find_run
from pytest_super.store.verdict import decided_after


@dataclass(frozen=True, kw_only=True)
class Run:
    """Equal on the controller and on every worker."""

    settings: Settings
    id: str
    sandbox: str | None
    """The name of a provider; None if only the project's own hook makes sandboxes."""
    sandbox_note: str
    image_id: str
    """What the folder of `--super-image` contains, as the controller sees it; "" for another image."""
    subject: dict[str, Any]
    """What is tried: the agent with its code, the model, and their parameters."""
    expected_seconds: dict[str, float]
    """By task id, from the newest run before this one. xdist requires the same order from every worker."""
    resumed: str
    """The folder of the run whose trials are taken over; "" for none."""
    gateway_token: str = field(repr=False)
    """Only in the memory of the run's processes, because code in a local sandbox can read files."""

    @property
    def path(self) -> Path:
        return self.settings.directory / "runs" / self.id

    @property
    def last_epoch(self) -> int:
        """The last one that counts: the most, unless the gates were decided before."""
        most = self.settings.epochs.most
        if not self.settings.epochs.is_adaptive:
            return most
        return decided_after(self.path, self.gateway_token) or most

    @property
    def header(self) -> str:
        """What is run, for the header of the session."""
        model = f", model {self.settings.model}" if self.settings.model else ""
        why = f" ({self.sandbox_note})" if self.sandbox_note else ""
        sandbox = f"sandbox {self.sandbox}{why}" if self.sandbox else f"sandboxes {self.sandbox_note}"
        answers = f", answers of {self.settings.answers_of}" if self.settings.answers else ""
        if self.settings.forked_from:
            answers = f", forked from {self.settings.forked_from}"
        return f"agent {self.settings.agent}{model}{answers}, {sandbox}, results {self.path}"

    def model_settings(self) -> ModelSettings:
        settings = self.settings
        assert settings.model is not None
        return ModelSettings(
            name=settings.model,
            parameters=dict(settings.model_parameters),
            max_cost=settings.max_cost,
            calls=str(self.path / "calls.jsonl"),
            record=str(self.path / "trials") if settings.is_recorded else None,
            answers=settings.answers or None,
            needs_answers=settings.needs_answers,
            is_fork=bool(settings.forked_from),
            is_for_program=is_program(settings.agent),
        )

    def to_worker(self) -> dict[str, Any]:
        """What the controller decides once and a worker cannot read from its options."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "settings"}
        # For a worker, `latest` could already be another run.
        settings = self.settings
        found = {name: getattr(settings, name) for name in ANSWERS}
        paths = {name: str(getattr(settings, name) or "") for name in SIDES}
        return {**own, **found, **paths, "trajectory": str(settings.for_agent.trajectory or "")}


# What the controller finds for the settings.
ANSWERS = ("answers", "answers_of", "forked_from", "model")
# What a run is compared with.
SIDES = ("baseline", "anchor")
RUN = pytest.StashKey[Run]()
# The key of a worker's output under which it sends its hints to the controller.
HINTS = "super_hints"
# The same for the reason why nothing can run.
REFUSED = "super_refused"


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def worker_name(config: pytest.Config) -> str:
    return config.workerinput["workerid"] if is_worker(config) else "main"  # type: ignore[attr-defined]


def open_run(config: pytest.Config, settings: Settings) -> Run:
    """The run of this session. Raises SuperError and pytest.UsageError."""
    if is_worker(config):
        data = {**config.workerinput["super"]}  # type: ignore[attr-defined]
        for_agent = replace(settings.for_agent, trajectory=path_or_none(data.pop("trajectory")))
        found = {name: data.pop(name) for name in ANSWERS}
        found |= {name: path_or_none(data.pop(name)) for name in SIDES}
        settings = replace(settings, for_agent=for_agent, **found)
        return Run(settings=settings, **data)
    sandbox, note = provider_for(config, settings)
    return Run(
        settings=settings,
        id=new_run_id(),
        sandbox=sandbox,
        sandbox_note=note,
        image_id=find_provider(sandbox).image_id(settings.for_sandboxes) if sandbox else "",
        subject=subject_of(settings, config.invocation_params.dir, config.rootpath),
        resumed=str(run_named(settings.directory, settings.resume)) if settings.resume else "",
        expected_seconds=seconds_of_latest(settings.directory),
        gateway_token=secrets.token_hex(32),
    )


def path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def run_named(directory: Path, name: str) -> Path:
    """The folder of a stored run: by its id, as `latest`, or by its path. Raises pytest.UsageError."""
    with usage_errors(f"--super-resume={name}"):
        return find_run(directory, name)


def provider_for(config: pytest.Config, settings: Settings) -> tuple[str | None, str]:
    """The name of the sandbox provider, and a note on it for the header. Raises SuperError."""
    # A list of tasks needs no engine.
    if config.option.collectonly:
        return None, ""
    is_trusted = settings.agent in TRUSTED
    try:
        choice = choose_provider(settings.sandbox, settings.for_sandboxes, is_trusted=is_trusted)
        refuse_without_image(choice, settings)
        return choice
    except SuperError:
        if settings.sandbox == AUTO and offers(config, "pytest_super_make_sandbox"):
            return None, "made by the project"
        raise


def refuse_without_image(choice: Choice, settings: Settings) -> None:
    """Raises SuperError if the sandboxes lack what the settings need: an image for the agent."""
    if settings.for_sandboxes.program is not None and find_provider(choice.name).uses_host_python:
        note = f" ({choice.note})" if choice.note else ""
        raise SuperError(
            f"the agent {settings.agent} is a program in an image, and the sandbox {choice.name} has no image"
            f"{note}: use --super-sandbox=docker, or run a program of this machine by `command: …`"
        )


# How a conftest or a plugin makes agents.
MAKES_AGENTS = ("super_agent", "pytest_super_make_agent")


def offers(config: pytest.Config, *names: str) -> bool:
    """Whether a plugin or conftest has one of these hooks or fixtures."""
    return any(hasattr(plugin, name) for plugin in config.pluginmanager.get_plugins() for name in names)


def seconds_of_latest(directory: Path) -> dict[str, float]:
    try:
        results = read_results(directory / "runs" / "latest")
        return {result.id: result.wall_seconds for result in results if not result.is_error}
    # Only the order of the tasks depends on this, so a damaged or older run is ignored.
    except UNREADABLE:
        return {}


def facts_of(config: pytest.Config, run: Run) -> dict[str, Any]:
    """The content of run.json, which says what was measured."""
    return {
        "format": FORMAT,
        "id": run.id,
        "agent": run.settings.agent,
        "model": run.settings.model,
        "model_parameters": dict(run.settings.model_parameters),
        "subject": run.subject,
        "sandbox": run.sandbox,
        "isolated": find_provider(run.sandbox).why_not_isolated() is None if run.sandbox else None,
        "scoring": run.settings.scoring,
        "epochs": str(run.settings.epochs),
        "max_errors": run.settings.max_errors,
        "resumed": Path(run.resumed).name if run.resumed else None,
        "answers": run.settings.answers_of or None,
        "arguments": list(config.invocation_params.args),
        "versions": {name: version(name) for name in ("pytest-super", "pytest", "pytest-xdist")},
    }
