"""`pytest-super prune`: remove the snapshots of prefixes and their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.snapshots.record import remove_snapshots
from pytest_super.store.user_cache import cache_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_prune_parser(subparsers: _SubParsersAction[ArgumentParser]) -> None:
    parser = subparsers.add_parser("prune", help="remove the snapshots of prefixes")
    parser.set_defaults(run=run_prune)


def run_prune(_arguments: Namespace) -> int:
    """Also removes the records of prefixes that cannot have a snapshot."""
    removed = remove_snapshots(cache_folder("snapshots"))
    print(f"removed {removed} snapshots")
    return 0
