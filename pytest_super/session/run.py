"""The run: one pytest session with its settings, its sandbox provider and its results folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.registry import TRUSTED
from pytest_super.model.settings import ModelSettings
from pytest_super.store.results import FORMAT, new_run_id, read_results

if TYPE_CHECKING:
    from pytest_super.session.settings import Settings


OWN = "own"


@dataclass(frozen=True, kw_only=True)
class Run:
    """The same on the controller and on every worker."""

    settings: Settings
    id: str
    sandbox: str
    """`docker`, `local`, or OWN where neither may be used."""
    sandbox_note: str
    expected_seconds: dict[str, float]
    """By task id, from the newest run before this one."""

    @property
    def path(self) -> Path:
        return self.settings.directory / "runs" / self.id

    def model_settings(self) -> ModelSettings:
        settings = self.settings
        assert settings.model is not None
        return ModelSettings(
            name=settings.model,
            parameters=dict(settings.model_parameters),
            max_cost=settings.max_cost,
            calls=str(self.path / "calls.jsonl"),
            # Two runs must not write into one file.
            record=str(settings.record / self.id) if settings.record else None,
        )

    def junit_facts(self) -> dict[str, Any]:
        """Suite properties that say what was run."""
        settings = self.settings
        return {"agent": settings.agent, "scoring": settings.scoring, "epochs": settings.epochs}

    def to_worker(self) -> dict[str, Any]:
        """What a worker cannot read from its options: the choices that must be made once."""
        return {
            "id": self.id,
            "sandbox": self.sandbox,
            "sandbox_note": self.sandbox_note,
            "expected_seconds": self.expected_seconds,
            # By now a worker may take another run for the latest.
            "trajectory": str(self.settings.for_agent.trajectory or ""),
        }


RUN = pytest.StashKey[Run]()
# Of a worker's output, for what the terminal of its controller has not seen.
HINTS = "super_hints"


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def open_run(config: pytest.Config, settings: Settings) -> Run:
    """The run of this session. Raises pytest.UsageError."""
    if is_worker(config):
        data = {**config.workerinput["super"]}  # type: ignore[attr-defined]
        told = data.pop("trajectory")
        for_agent = replace(settings.for_agent, trajectory=Path(told) if told else None)
        return Run(settings=replace(settings, for_agent=for_agent), **data)
    sandbox, note = ("local", "") if config.option.collectonly else choose_sandbox(config, settings)
    return Run(
        settings=settings,
        id=new_run_id(),
        sandbox=sandbox,
        sandbox_note=note,
        expected_seconds=seconds_of_latest(settings.directory),
    )


def choose_sandbox(config: pytest.Config, settings: Settings) -> tuple[str, str]:
    """The provider, and what to say of the choice. Raises pytest.UsageError.

    A project that makes its own sandboxes needs none of ours.
    """
    try:
        return choose_built_in(settings)
    except pytest.UsageError:
        if settings.sandbox == "auto" and makes_sandboxes(config):
            return OWN, "made by the project"
        raise


def makes_sandboxes(config: pytest.Config) -> bool:
    return any(hasattr(plugin, "pytest_super_make_sandbox") for plugin in config.pluginmanager.get_plugins())


def choose_built_in(settings: Settings) -> tuple[str, str]:
    """Docker where it is there. Raises pytest.UsageError.

    Only an agent that runs code which the user already has may fall back to running without isolation.
    """
    if settings.sandbox == "local":
        return "local", "no isolation"
    may_fall_back = settings.sandbox == "auto" and settings.agent in TRUSTED
    trouble = engine_trouble() or (image_trouble(settings) if may_fall_back else None)
    if trouble is None:
        return "docker", ""
    if may_fall_back:
        return "local", f"no isolation, since {trouble.split(': ')[0]}"
    raise pytest.UsageError(trouble)


def engine_trouble() -> str | None:
    from pytest_super.kernel.providers.docker import engine

    return engine.engine_trouble()


def image_trouble(settings: Settings) -> str | None:
    from pytest_super.kernel.providers.docker import engine, image

    name = settings.image or image.DEFAULT_IMAGE
    return None if engine.has_image(name) else str(engine.missing_image(name, is_final=True))


def seconds_of_latest(directory: Path) -> dict[str, float]:
    try:
        results = read_results(directory / "runs" / "latest")
    except (OSError, ValueError, TypeError):
        return {}
    return {result.id: result.wall_seconds for result in results if not result.is_error}


def facts_of(config: pytest.Config, run: Run) -> dict[str, Any]:
    """What run.json tells: enough to say what was measured."""
    return {
        "format": FORMAT,
        "id": run.id,
        "agent": run.settings.agent,
        "model": run.settings.model,
        "model_parameters": dict(run.settings.model_parameters),
        "sandbox": run.sandbox,
        "isolated": None if run.sandbox == OWN else run.sandbox == "docker",
        "scoring": run.settings.scoring,
        "epochs": run.settings.epochs,
        "arguments": list(config.invocation_params.args),
        "versions": {name: version(name) for name in ("pytest-super", "pytest", "pytest-xdist")},
    }
