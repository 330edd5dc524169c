"""Runs the cells of an exported solution by IPython, and writes the answer of the last one.

It is copied into the folder `solution`, and imports nothing of ours.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """`folder` has `cells.json`: the cells, the index of the answer's cell, and the answer's file."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    told = json.loads((folder / "cells.json").read_text())
    shell: Any = InteractiveShell.instance()
    for number, cell in enumerate(told["cells"]):
        with capture_output() as captured:
            ran = shell.run_cell(cell, store_history=True)
        print(captured.stdout, captured.stderr, sep="")
        if number == told["answer"] and told["answer_file"]:
            value = value_in(repr(ran.result) if ran.result is not None else captured.stdout)
            Path(told["answer_file"]).write_text(json.dumps(value))


def value_in(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text.strip())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
