"""The options, each with an ini twin, and the settings they make; validated once, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Option:
    """One `--super-NAME`, with the ini value `super_NAME`."""

    name: str
    help: str
    default: Any = None
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] | None = None
    is_flag: bool = False
    is_list: bool = False

    @property
    def flag(self) -> str:
        return f"--super-{self.name}"

    @property
    def key(self) -> str:
        return f"super_{self.name.replace('-', '_')}"


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def portion(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("must be between 0 and 1")
    return number


SETS = ("expert", "masked", "auto", "functions")

OPTIONS = (
    Option(name="agent", help="Run tasks with this agent: gold, or package.module:Name."),
    Option(
        name="sandbox",
        help="Where kernels run: docker, local (no isolation), or auto: docker where an engine answers.",
        default="auto",
        choices=("auto", "docker", "local"),
    ),
    Option(name="set", help="Only tasks of this set; repeatable.", is_list=True),
    Option(name="category", help="Only tasks of this category, exactly; repeatable.", is_list=True),
    Option(name="epochs", help="Run every task this many times.", default=1, parse=positive),
    Option(
        name="fail-under",
        help="Gate: the exit status follows the mean accuracy, errors counted as 0; misses are not failures.",
        parse=portion,
    ),
    Option(name="allow-errors", help="Errors of the infrastructure alone do not fail the run.", is_flag=True),
    Option(
        name="scoring",
        help="paper: as the papers say; reference: as the published code does, its faults included.",
        default="paper",
        choices=("paper", "reference"),
    ),
    Option(
        name="keep",
        help="Keep sandboxes for a look into them: of failed (unsolved) trials, or all.",
        default="never",
        choices=("never", "failed", "all"),
    ),
    Option(name="image", help="Image of docker sandboxes whose task names none."),
    Option(
        name="ca-bundle", help="CA certificates (PEM) that docker sandboxes trust for pip, git and requests."
    ),
    Option(name="pip-config", help="pip configuration file that docker sandboxes use."),
    Option(
        name="mount", help="Read-only HOST:CONTAINER folder for docker sandboxes; repeatable.", is_list=True
    ),
    Option(name="dir", help="Folder for results.", default=".super"),
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the options and ini values say, checked."""

    agent: str
    sandbox: str
    sets: tuple[str, ...]
    categories: tuple[str, ...]
    epochs: int
    fail_under: float | None
    allow_errors: bool
    scoring: str
    keep: str
    image: str | None
    ca_bundle: Path | None
    pip_config: Path | None
    mounts: tuple[tuple[str, str], ...]
    """Folder on the engine's host, and where it is seen inside."""
    directory: Path

    @property
    def is_gated(self) -> bool:
        return self.fail_under is not None


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("super", "research-reproduction tasks (pytest-super)")
    for option in OPTIONS:
        ini_help = f"default of {option.flag}"
        if option.is_flag:
            group.addoption(option.flag, dest=option.key, action="store_true", default=None, help=option.help)
            parser.addini(option.key, ini_help, type="bool", default=None)
        elif option.is_list:
            metavar = option.name.upper()
            group.addoption(option.flag, dest=option.key, action="append", metavar=metavar, help=option.help)
            parser.addini(option.key, ini_help, type="linelist", default=[])
        else:
            text = option.help if option.default is None else f"{option.help} Default: {option.default}."
            metavar = option.name.upper()
            group.addoption(option.flag, dest=option.key, metavar=metavar, default=None, help=text)
            parser.addini(option.key, ini_help, default="")
    parser.addini("super_tasks", "what is collected when no path is given", type="args", default=["tasks"])


def read_settings(config: pytest.Config) -> Settings | None:
    """The settings, or None when no agent is asked for. Raises pytest.UsageError."""
    values = {option.key: value_of(config, option) for option in OPTIONS}
    if not values["super_agent"]:
        refuse_options_without_agent(config)
        return None
    if unknown := [name for name in values["super_set"] if name not in SETS]:
        raise pytest.UsageError(f"--super-set={unknown[0]}: choose from {', '.join(SETS)}")
    return Settings(
        agent=values["super_agent"],
        sandbox=values["super_sandbox"],
        sets=tuple(values["super_set"]),
        categories=tuple(values["super_category"]),
        epochs=values["super_epochs"],
        fail_under=values["super_fail_under"],
        allow_errors=bool(values["super_allow_errors"]),
        scoring=values["super_scoring"],
        keep=values["super_keep"],
        image=values["super_image"] or None,
        ca_bundle=existing(config, "super_ca_bundle", values),
        pip_config=existing(config, "super_pip_config", values),
        mounts=tuple(parse_mount(text) for text in values["super_mount"]),
        directory=(config.rootpath / values["super_dir"]).absolute(),
    )


def value_of(config: pytest.Config, option: Option) -> Any:
    given = config.getoption(option.key)
    source = option.flag
    if given is None:
        given, source = config.getini(option.key), f"the ini value {option.key}"
    if option.is_list or option.is_flag:
        return given
    if given in ("", None):
        return option.default
    try:
        value = option.parse(given)
    except ValueError as error:
        raise pytest.UsageError(f"{source}={given}: {error}") from None
    if option.choices and value not in option.choices:
        raise pytest.UsageError(f"{source}={given}: choose from {', '.join(option.choices)}")
    return value


def refuse_options_without_agent(config: pytest.Config) -> None:
    """Without an agent nothing is collected: an option that would be ignored is a mistake."""
    given = [option.flag for option in OPTIONS if config.getoption(option.key) is not None]
    if given:
        raise pytest.UsageError(f"{', '.join(given)} needs --super-agent, for example --super-agent=gold")


def existing(config: pytest.Config, key: str, values: dict[str, Any]) -> Path | None:
    if not values[key]:
        return None
    # An option is relative to where it was typed, an ini value to its file.
    base = config.rootpath if config.getoption(key) is None else config.invocation_params.dir
    path: Path = base / Path(values[key]).expanduser()
    if not path.is_file():
        raise pytest.UsageError(f"--{key.replace('_', '-')}: there is no file {path}")
    return path


def parse_mount(text: str) -> tuple[str, str]:
    host, _, inside = text.rpartition(":")
    if not (host.startswith("/") and inside.startswith("/")):
        raise pytest.UsageError(f"--super-mount={text}: write it as /folder/of/host:/folder/inside")
    return host, inside
