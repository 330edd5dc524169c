"""The pytest plugin: options, markers, and the activation of a run.

It is loaded in every pytest session where the package is installed. So it imports only pytest and the
standard library, and without an agent it registers nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_super.option_values import (
    add_options,
    has_agent,
    refuse_unknown_ini_value,
    refuse_unknown_options,
)

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_super import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None]:
    """Wraps the loading of conftests, which can add options."""
    yield
    refuse_unknown_options(parser, args)


def pytest_warning_recorded(warning_message: warnings.WarningMessage, when: str) -> None:
    if when == "config":
        refuse_unknown_ini_value(str(warning_message.message))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "super_set(name): a task of this set (pytest-super)")
    config.addinivalue_line("markers", "super_category(name): a task of this category (pytest-super)")
    if has_agent(config):
        from pytest_super.session.start.garbage import Garbage

        # First, because what follows imports much.
        config.pluginmanager.register(Garbage(config), "super-garbage")
        from pytest_super.session.activation import activate

        activate(config)
