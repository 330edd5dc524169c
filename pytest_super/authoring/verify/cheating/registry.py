"""The cheats of the corpus. To add one, write a file there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.cheating import corpus

if TYPE_CHECKING:
    from pytest_super.authoring.verify.cheating.cheat import Cheat


@cache
def cheats() -> dict[str, Cheat]:
    """Map the names of all cheats, in order, to them."""
    names = sorted(module.name for module in iter_modules(corpus.__path__))
    return {name: cheat_in(name) for name in names}


def cheat_in(name: str) -> Cheat:
    module = import_module(f"{corpus.__name__}.{name}")
    assert module.__doc__ is not None
    made: Cheat = module.CHEAT
    return replace(made, name=name, does=module.__doc__.strip())
