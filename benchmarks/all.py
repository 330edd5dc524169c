"""Run every benchmark and print the table of docs/maintainers/speed.md.

Usage: python benchmarks/all.py [--small] [SCRIPT ...]      (needs a container engine and the package index)

--small checks in a minute or two that every script works; its figures mean nothing. The exit status is 1 if a
script fails. A figure above the wanted one is shown, but is not a failure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from rows import HEADER, is_row

FOLDER = Path(__file__).parent
# The options of each script in a full run.
SCRIPTS: dict[str, list[str]] = {
    "startup.py": [],
    "containers.py": [],
    "providers.py": [],
    "kernel.py": [],
    "trial.py": [],
    "collection.py": ["--large"],
    "masking.py": [],
    "papers.py": [],
    "steps.py": [],
    "page.py": [],
    "comparison.py": [],
    "export.py": [],
    "integrity.py": [],
    "load.py": [],
    "makespan.py": [],
    "controller.py": [],
    "door.py": [],
    "answers.py": [],
    "agents_peer.py": [],
    "agents_by_name.py": [],
}


def run(script: str, arguments: list[str]) -> tuple[list[str], bool]:
    """The rows that the script printed, and whether it succeeded. Its output passes through."""
    began = time.monotonic()
    print(f"--- {script} {' '.join(arguments)}".rstrip(), flush=True)
    command = [sys.executable, str(FOLDER / script), *arguments]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if is_row(line):
                rows.append(line.rstrip())
    print(f"    {time.monotonic() - began:.0f} s, exit status {process.returncode}", flush=True)
    return rows, process.returncode == 0 and bool(rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="the smallest size of each")
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=f"one of {', '.join(SCRIPTS)}")
    given = parser.parse_args()
    if unknown := set(given.scripts) - set(SCRIPTS):
        parser.error(f"no such script: {', '.join(sorted(unknown))}")
    table, failed = [], []
    for script in given.scripts or SCRIPTS:
        rows, succeeded = run(script, ["--small"] if given.small else SCRIPTS[script])
        table += rows
        if not succeeded:
            failed.append(script)
    print("", HEADER, *table, sep="\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
