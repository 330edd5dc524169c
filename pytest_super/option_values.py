"""Adds the options to pytest, and reads their values: from the command line, the ini file or the defaults."""

from pathlib import Path
from typing import Any

import pytest

from pytest_super.options import AGENT, GROUPS, OPTIONS, Option

# From pytest 9.2 on, a number in `[tool.pytest]` can be written without quotes.
SCALAR: Any = str | int | float if pytest.version_tuple >= (9, 2) else "string"


def add_options(parser: pytest.Parser) -> None:
    for heading, options in GROUPS.items():
        group = parser.getgroup(heading)
        for option in options:
            kind, unset = add_option(group, option)
            parser.addini(option.key, f"default of {option.flag}", type=kind, default=unset)
    parser.addini("super_tasks", "what is collected when no path is given", type="args", default=["tasks"])


def add_option(group: pytest.OptionGroup, option: Option) -> tuple[Any, Any]:
    """Returns the type of its ini value, and the value if it is not set."""
    # The default is None also for a flag: only an option that was given overrides the ini value.
    named: dict[str, Any] = {"dest": option.key, "default": None, "help": told(option)}
    if option.is_flag:
        group.addoption(option.flag, action="store_true", **named)
        return "bool", None
    action = "append" if option.is_list else "store"
    group.addoption(option.flag, action=action, metavar=option.metavar, **named)
    return ("linelist", []) if option.is_list else (SCALAR, "")


def told(option: Option) -> str:
    repeatable = " Repeatable." if option.is_list else ""
    default = "" if option.default is None else f" Default: {option.default}."
    return f"{option.help}{repeatable}{default}"


def value_of(config: pytest.Config, option: Option) -> Any:
    """The option's value, else its ini value, else its default. Raises pytest.UsageError."""
    given = config.getoption(option.key)
    source = option.flag
    refuse_empty(option, given)
    if given is None:
        given, source = ini_value(config, option.key), f"the ini value {option.key}"
    if option.is_flag:
        return bool(given)
    if option.is_list:
        return tuple(parsed(config, option, text, source) for text in given)
    return option.default if given in ("", None) else parsed(config, option, str(given), source)


def parsed(config: pytest.Config, option: Option, text: str, source: str) -> Any:
    try:
        if option.parse_path is not None:
            return option.parse_path(resolved(config, option.key, text))
        value = option.parse(text)
    except ValueError as error:
        from pytest_super.redaction import without_secret

        raise pytest.UsageError(f"{source}={without_secret(text)}: {error}") from None
    if option.choices and value not in option.choices:
        from pytest_super.words import did_you_mean

        meant = did_you_mean(value, option.choices)
        raise pytest.UsageError(f"{source}={text}: choose from {', '.join(option.choices)}{meant}")
    return value


def resolved(config: pytest.Config, key: str, text: str) -> Path:
    """The absolute path: an option is relative to the working directory, an ini value to the rootdir."""
    base = config.rootpath if config.getoption(key) is None else config.invocation_params.dir
    return (base / Path(text).expanduser()).absolute()


def ini_value(config: pytest.Config, key: str) -> Any:
    """The ini value. Raises pytest.UsageError for any error that pytest raises about its type."""
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"the ini value {key}: {error}") from None


def refuse_empty(option: Option, given: str | list[str] | None) -> None:
    """Raises pytest.UsageError for an empty value, for example from an unset shell variable."""
    if given == "" or (isinstance(given, list) and "" in given):
        raise pytest.UsageError(f"{option.flag}= is empty: give it a value, or leave it out")


def refuse_unknown_options(parser: pytest.Parser, arguments: list[str]) -> None:
    """Raises pytest.UsageError for an option that looks like ours and that no plugin or conftest has."""
    flags = [option.flag for option in OPTIONS]
    given = {argument.partition("=")[0] for argument in arguments if argument.startswith("--super-")}
    if given.issubset(flags):
        return
    for argument in parser.parse_known_and_unknown_args(arguments)[1]:
        name = argument.partition("=")[0]
        if name in given:
            from pytest_super.words import did_you_mean

            raise pytest.UsageError(f"there is no option {name}{did_you_mean(name, flags)}")


def refuse_unknown_ini_value(warning: str) -> None:
    """Raises pytest.UsageError if this is pytest's warning of an unknown ini value that looks like ours."""
    known = [*(option.key for option in OPTIONS), "super_tasks"]
    _, is_unknown, key = warning.strip().partition("Unknown config option: ")
    if is_unknown and key.startswith("super_"):
        from pytest_super.words import did_you_mean

        raise pytest.UsageError(f"there is no ini value {key}{did_you_mean(key, known)}")


def has_agent(config: pytest.Config) -> bool:
    """Whether the run has an agent. Without one nothing is collected.

    Raises pytest.UsageError if the command line has other options without an agent. Those of PYTEST_ADDOPTS
    or addopts are also there in ordinary test runs.
    """
    refuse_empty(AGENT, config.getoption("super_agent"))
    if config.getoption("super_agent") or ini_value(config, AGENT.key):
        return True
    words = {str(argument).partition("=")[0] for argument in config.invocation_params.args}
    if given := [option.flag for option in OPTIONS if option.flag in words]:
        raise pytest.UsageError(f"{', '.join(given)} needs --super-agent, for example --super-agent=gold")
    return False
