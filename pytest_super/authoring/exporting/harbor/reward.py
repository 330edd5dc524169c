"""Computes the reward of an exported task, in the sandbox of its verifier.

It is copied there with the modules that it imports, so these need nothing but Python 3.10 and its library.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_super.grading.values import CommandRun, values_of
from pytest_super.metrics.accuracy import accuracy
from pytest_super.metrics.graded import AGGREGATIONS

REWARD = Path("/logs/verifier/reward.json")
RULES = "rules.json"


def main(tests: Path) -> None:
    """`tests` is the folder with RULES and the hidden files."""
    rules = json.loads((tests / RULES).read_text())
    reward = graded(rules, tests) if "result" in rules else answered(rules)
    REWARD.parent.mkdir(parents=True, exist_ok=True)
    REWARD.write_text(json.dumps({"reward": reward}))


def answered(rules: dict[str, Any]) -> float:
    """The accuracy of the answer in the file that the instruction names; 0 without a file with an answer."""
    try:
        submission = json.loads(Path(rules["answer_file"]).read_bytes())
    except (OSError, ValueError, RecursionError):
        return 0.0
    return accuracy(rules["answer"], submission, tolerance=rules["tolerance"])


def graded(rules: dict[str, Any], tests: Path) -> float:
    """What the values of the command are worth."""
    for path in rules["written"]:
        remove(Path(path))
    for target, source in rules["files"].items():
        put(tests / source, Path(target))
    checks = [SimpleNamespace(**{**check, **parts(check)}) for check in rules["result"]]
    command: Any = SimpleNamespace(checks=checks, label="")
    values = values_of(command, run(rules), lambda path: Path(path).read_bytes())
    return AGGREGATIONS[rules["aggregate"]](values)


def parts(check: dict[str, Any]) -> dict[str, Any]:
    return {name: SimpleNamespace(**check[name]) for name in ("json_", "regex") if check[name]}


def run(rules: dict[str, Any]) -> CommandRun:
    command = ["sh", "-c", f"cd {rules['folder']} && {rules['command']}"]
    try:
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=rules["timeout"], check=False
        )
    except subprocess.TimeoutExpired:
        return CommandRun(problem=f"the grader's command did not end within {rules['timeout']:g} s")
    output = ran.stdout.decode("utf-8", "replace")
    print(output)
    return CommandRun(exit_code=ran.returncode, output=output)


def put(source: Path, target: Path) -> None:
    remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
