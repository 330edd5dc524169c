"""`pytest-super prune`: remove the snapshots of prefixes."""

from argparse import ArgumentParser, Namespace

HELP = "remove the snapshots of prefixes"


def add_arguments(parser: ArgumentParser) -> None:
    """This command has no arguments."""


def run(_arguments: Namespace) -> int:
    """Also remove the records of prefixes that have no snapshot."""
    from pytest_super.snapshots.record import remove_snapshots
    from pytest_super.store.user_cache import cache_folder

    removed = remove_snapshots(cache_folder("snapshots"))
    print(f"removed {removed} snapshots")
    return 0
