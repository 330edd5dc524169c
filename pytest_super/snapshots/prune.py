"""`pytest-super image prune`: the snapshots of prefixes, and what is known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.kernel.saving import remove_snapshots
from pytest_super.snapshots.record import snapshots_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_prune_parser(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("prune", help="remove the snapshots of prefixes that no container uses")
    parser.set_defaults(run=run_prune)


def run_prune(_arguments: Namespace) -> int:
    """Also which prefixes are not worth a snapshot is forgotten."""
    removed = remove_snapshots()
    for path in snapshots_folder().glob("*.json"):
        path.unlink(missing_ok=True)
    print(f"removed {len(removed)} snapshots")
    return 0
