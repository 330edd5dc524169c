"""The values of options and ini values, checked once before anything runs."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from pytest_super.agents.registry import AgentSettings, installed_agent
from pytest_super.errors import SuperError
from pytest_super.kernel.providers.host_environment import trusted_certificates
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.model.settings import SCRIPTED
from pytest_super.option_types import Epochs, Sample
from pytest_super.option_values import resolved, value_of
from pytest_super.options import OPTIONS
from pytest_super.programs.installed.agent import Additions
from pytest_super.store.stored_runs import find_path, find_side

# The value of --super-answers that keeps no record.
NO_ANSWERS = "none"


@dataclass(frozen=True, kw_only=True)
class Settings:
    agent: str
    sandbox: str
    sets: tuple[str, ...]
    categories: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: tuple[int, ...] | None
    """How many functions of a paper are masked together; None leaves that to its file."""
    sample: Sample | None
    epochs: Epochs
    fail_under: tuple[str, ...]
    """The gates as they were written."""
    must_solve: Path | None
    """A file with the tasks that must be solved."""
    baseline: Path | None
    """A file or a run's folder to compare with."""
    anchor: Path | None
    """An older baseline to compare with as well."""
    max_regression: float
    """In points: the drop to rule out."""
    pass_chance: float
    """How often an agent that has not changed shall pass."""
    cannot_tell: str
    """What a run does that decides nothing: `pass` or `fail`."""
    all_tasks: bool
    """Whether tasks run that the baseline never solved."""
    resume: str
    """The run whose trials are taken over; "" for none."""
    max_errors: float | None
    """The share of the trials that can be errors; None if any error fails the run."""
    scoring: str
    keep: str
    machines: tuple[str, ...] | None
    """How many workers a Slurm cluster runs; None for workers of this machine."""
    srun: tuple[str, ...]
    """The user's options for the jobs of these workers."""
    no_cache: bool
    directory: Path
    html: Path | None
    """Where the run's page is written."""
    for_agent: AgentSettings
    for_sandboxes: SandboxSettings
    attempts: int
    select: str
    model: str | None
    model_parameters: tuple[tuple[str, Any], ...]
    """The user's parameters for every call."""
    max_cost: float | None
    answers: str
    """The run whose answers are given again, as it is named, then its folder or archive; "" for none."""
    answers_of: str = ""
    """The id of that run."""
    forked_from: str = ""
    """The run, the trial and the step from which all trials go on; "" for whole trials."""
    is_recorded: bool
    """Whether the model's answers are kept."""
    needs_answers: bool
    """Whether a request without a recorded answer ends its trial."""

    @property
    def is_gated(self) -> bool:
        return bool(self.fail_under or self.must_solve or self.baseline)


@contextmanager
def usage_errors(option: str = "") -> Iterator[None]:
    """Turns a SuperError of the block into pytest.UsageError, whose text begins with the option, if any."""
    try:
        yield
    except SuperError as error:
        raise pytest.UsageError(f"{option}: {error}" if option else str(error)) from None


def read_settings(config: pytest.Config) -> Settings:
    """The settings of a session with an agent. Raises SuperError and pytest.UsageError."""
    values = {option.key.removeprefix("super_"): value_of(config, option) for option in OPTIONS}
    refuse_endless_epochs(values)
    if values["anchor"] and not values["baseline"]:
        raise pytest.UsageError("--super-anchor is compared with beside --super-baseline: name both")
    settings = {
        # A field that has the name of an option has its value.
        **values,
        "sets": values["set"],
        "categories": values["category"],
        "splits": values["split"],
        "sizes": values["n"],
        "baseline": named_by(find_side, config, values, "baseline"),
        "anchor": named_by(find_side, config, values, "anchor"),
        "resume": values["resume"] or "",
        "srun": values["srun"] or (),
        # As documented, relative to the rootdir even as an option, unlike the other paths.
        "directory": (config.rootpath / values["dir"]).absolute(),
        "for_agent": AgentSettings(
            prompt=values["prompt"],
            trajectory=named_by(find_path, config, values, "trajectory"),
            retrieval=values["retrieval"],
            additions=Additions(
                arguments=values["agent_arg"], files=values["agent_files"], environment=values["agent_env"]
            ),
        ),
        "for_sandboxes": sandbox_settings(config, values),
        "model": model_name(config, values["model"]),
        "model_parameters": model_parameters(values),
        "answers": "" if values["answers"] == NO_ANSWERS else values["answers"] or "",
        "is_recorded": values["answers"] != NO_ANSWERS,
        "needs_answers": values["answers_miss"] == "fail",
    }
    names = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in settings.items() if name in names})


def refuse_endless_epochs(values: dict[str, Any]) -> None:
    """Raises pytest.UsageError if no gate could end a range of epochs early."""
    gates = [values[name] for name in ("baseline", "fail_under", "must_solve")]
    if values["epochs"].is_adaptive and not any(gates):
        raise pytest.UsageError(
            f"--super-epochs={values['epochs']} runs until the gates are decided: "
            "it needs --super-baseline, --super-fail-under or --super-must-solve"
        )


def named_by(
    find: Callable[[Path, str], Path], config: pytest.Config, values: dict[str, Any], name: str
) -> Path | None:
    """What a path or a run's name means now, with links resolved: this run will be `latest`."""
    if not (given := values[name]):
        return None
    path = resolved(config, f"super_{name}", given)
    with usage_errors(f"--super-{name}={given}"):
        return find(config.rootpath / values["dir"], str(path) if path.exists() else given).resolve()


def refuse_unwritable_page(page: Path) -> None:
    """Raises pytest.UsageError if `page` is not a regular file, or cannot become one."""
    try:
        if not stat.S_ISREG(page.stat().st_mode):
            raise pytest.UsageError(f"--super-html: {page} is not a regular file: name another path")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise pytest.UsageError(f"--super-html: {page} cannot be written: {error.strerror}") from None
    folder = next(one for one in Path(os.path.realpath(page)).parents if one.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise pytest.UsageError(f"--super-html: {page} cannot be written: no permission to write in {folder}")


def sandbox_settings(config: pytest.Config, values: dict[str, Any]) -> SandboxSettings:
    installed = installed_agent(values["agent"])
    return SandboxSettings(
        image=image_named(config, values["image"]),
        program=installed.program(is_exact="==" in values["agent"]) if installed else None,
        # By default the certificates that this machine trusts, as in local sandboxes.
        ca_bundle=values["ca_bundle"] or trusted_certificates(os.environ),
        pip_config=values["pip_config"],
        mounts=dict(values["mount"]),
    )


def image_named(config: pytest.Config, name: str | None) -> str | None:
    """An image of the engine by its name, one in a folder by the absolute path."""
    if name and name[0] in "./~":
        return str(resolved(config, "super_image", name))
    return name or None


def model_name(config: pytest.Config, name: str | None) -> str | None:
    if name is None or not name.startswith(SCRIPTED):
        return name
    from pytest_super.model.scripted import model_of_script

    return model_of_script(resolved(config, "super_model", name.removeprefix(SCRIPTED)))


def model_parameters(values: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    temperature = values["temperature"]
    return (*values["model_arg"], *([] if temperature is None else [("temperature", temperature)]))
