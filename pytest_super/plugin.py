"""The pytest plugin: options, markers, and the activation of a run.

It is loaded in every pytest session where the package is installed. So it imports only pytest and the
standard library, and without an agent it registers nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.options import add_options, has_agent

if TYPE_CHECKING:
    import pytest


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_super import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "super_set(name): a task of this set (pytest-super)")
    config.addinivalue_line("markers", "super_category(name): a task of this category (pytest-super)")
    if has_agent(config):
        from pytest_super.session.activation import activate

        activate(config)
