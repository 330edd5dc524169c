"""Masking 1,000 functions of an installed package, compared with parsing the same files twice.

Usage: python benchmarks/masking.py [--small] [--package NAME]
"""

from __future__ import annotations

import argparse
import ast
import resource
import statistics
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rows import print_row

from pytest_super.functions.masking import masked_files, write_masked
from pytest_super.functions.source import PythonSource, SourceError, definitions
from pytest_super.functions.spans import parts_of


def chosen(folder: Path, count: int) -> list[str]:
    """The first functions with a body, none of them in another one."""
    targets: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        source, last = PythonSource.read(name, path.read_bytes()), 0
        for one in definitions(source):
            with suppress(SourceError):
                last_line = parts_of(source, one).last_line
                if one.node.lineno > last:
                    targets.append(f"{name}::{one.name}")
                    last = last_line
    return targets[:count]


def parse_twice(folder: Path, targets: list[str]) -> None:
    for name in {target.partition("::")[0] for target in targets}:
        data = (folder / name).read_bytes()
        ast.parse(data)
        ast.parse(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="50 functions, one round")
    parser.add_argument("--package", default="_pytest")
    given = parser.parse_args()
    count, rounds = (50, 1) if given.small else (1000, 5)
    spec = find_spec(given.package)
    assert spec is not None
    folder = Path(str(spec.origin)).parent
    targets = chosen(folder, count)
    ours, theirs = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            began = time.perf_counter()
            write_masked(folder, Path(name, "masked"), masked_files(folder, targets))
            ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        parse_twice(folder, targets)
        theirs.append(time.perf_counter() - began)
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print_row(
        f"masking {len(targets):,} functions of {given.package}, {mebibytes:.0f} MiB at most "
        "/ parsing their files twice (`masking.py`)",
        f"{statistics.median(ours):.2f} s",
        peer=f"{statistics.median(theirs):.2f} s",
        ratio=statistics.median(ours) / statistics.median(theirs),
        wanted="2 s, 200 MiB",
    )


if __name__ == "__main__":
    main()
