"""What changes of this project touch: which trials ask their model something else, and from which call on.

Usage: python benchmarks/touched.py [--small] [--changes 40] [--seed 0] [--commit ID ...]

Draws changes of the agents, of trials and of kernels from the project's own history, and runs each of them
and the commit before it with a scripted model, whose answers do not depend on what it is asked. Each trial
meets one thing that the harness words: an exception, an answer that cannot be parsed, an edit, long output, a
time limit, a refused submission. What differs between two runs of one commit is noise, and is left out.

--small compares a commit with itself, and with one whose prompt differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_super.store.answers import FILE, read_answers

Request = dict[str, Any]
Calls = dict[str, list[Request]]
"""By trial, the requests in their order."""

# Of a local sandbox: `swe-agent` tells its model where it is.
FOLDER = re.compile(r"/tmp/super-[0-9a-f]+")
ROOT = Path(__file__).parents[1]
FOLDERS = [f"pytest_super/{name}" for name in ("agents", "trial", "kernel", "functions", "model")]
REACT, SWE = "Thought: I go on.\nAction: {}\n<content>\n{}\n</content>", "DISCUSSION\nI go on.\n```\n{}\n```"
LONG = "for n in range(4000): print(n, 'a line of output')"
# What each trial does before it submits, as cells.
CELLS = {
    "prints": ["print('ready')", "x = 1", "print(x)"],
    "raises": ["print(1)", "1 / 0", "open('missing')"],
    "long": ["print(1)", LONG],
    "quiet": ["x = 2", "!true"],
    "coloured": ["print('\\x1b[31mred\\x1b[0m')", "for n in range(9): print(f'\\r{n} %', end='')"],
    "slow": ["print(1)", "import time\ntime.sleep(8)"],
    "edits": ["open('a.txt', 'w').write('one\\ntwo\\n')"],
    "unclear": ["print(1)"],
    "refused": ["print(1)"],
}
MORE = {
    "react-super": {
        "slow": [REACT.format("continue_wait", ""), REACT.format("interrupt", "")],
        "edits": [
            REACT.format("edit", "a.txt\n<<<BEFORE_EDIT>>>\none\n<<<AFTER_EDIT>>>\nONE"),
            REACT.format("edit", "a.txt\n<<<BEFORE_EDIT>>>\nthree\n<<<AFTER_EDIT>>>\nONE"),
        ],
        "unclear": ["I do not know what to do."],
        "refused": [REACT.format("submit", "{not json")],
    },
    "swe-agent": {
        "edits": [SWE.format("open a.txt"), SWE.format("edit 1:1\nONE\nend_of_edit")],
        "unclear": ["I do not know what to do."],
        "refused": [SWE.format("submit {not json")],
    },
}


def script_of(agent: str) -> dict[str, list[str]]:
    """The answers of the model, by task."""
    form = REACT if agent == "react-super" else SWE
    cell, end = (
        (lambda code: form.format("execute", code), form.format("submit", "42"))
        if form is REACT
        else (form.format, form.format("submit 42"))
    )
    return {
        task: [*map(cell, cells), *MORE[agent].get(task, []), *[end] * 3] for task, cells in CELLS.items()
    }


def write_project(folder: Path) -> None:
    (folder / "tasks").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nsuper_sandbox = local\n")
    for task in CELLS:
        limits = "limits: {cell: 2}\n" if task == "slow" else ""
        text = f"id: {task}\nset: expert\nquery: Print a number and submit it.\nanswer: 42\n{limits}"
        (folder / "tasks" / f"{task}.task.yaml").write_text(text)
    for agent in MORE:
        (folder / f"{agent}.json").write_text(json.dumps(script_of(agent)))


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def calls_of(tree: Path, project: Path, agent: str, *options: str) -> Calls:
    """The requests of a run with the package in `tree`; empty if it cannot run the project."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            *(sys.executable, "-m", "pytest", f"--super-agent={agent}", "--super-sandbox=local"),
            *(
                f"--super-model=scripted:{agent}.json",
                *([f"--super-record={name}/calls"] if has_option(tree) else []),
                *("-p", "no:cacheprovider"),
            ),
            *(f"--super-dir={name}", *options, "tasks"),
        ]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False, timeout=300)
        found = recorded_calls(Path(name)) or whole_calls(Path(name))
        return {
            task: [json.loads(FOLDER.sub("", json.dumps(request))) for request in requests]
            for task, requests in found.items()
        }


def has_option(tree: Path) -> bool:
    """Whether the package keeps whole calls only if it is told to."""
    return 'name="record"' in (tree / "pytest_super/options.py").read_text()


def recorded_calls(folder: Path) -> Calls:
    files = sorted(folder.glob(f"runs/latest/trials/*/*/{FILE}"))
    answers = {path.parents[1].name: read_answers(path) for path in files}
    return {task: [each.asked(number) for number in each.calls] for task, each in answers.items()}


def whole_calls(folder: Path) -> Calls:
    """Of a package that keeps them by that option."""
    files = sorted(folder.glob("calls/*/*/*.jsonl"))
    calls = {path.parent.name: [json.loads(line)["request"] for line in path.open()] for path in files}
    # As in the records of later packages.
    return {task: [{"protocol": "chat completions", **each} for each in calls[task]] for task in calls}


def first_difference(old: list[Request], new: list[Request]) -> int | None:
    """The number of the first call that differs, from 1; None if there is none."""
    for number, (before, after) in enumerate(zip(old, new, strict=False), 1):
        if json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
            return number
    return None if len(old) == len(new) else min(len(old), len(new)) + 1


def differences(old: Calls, new: Calls) -> dict[str, int]:
    """By trial, the first call that differs; without those that do not."""
    found = {task: first_difference(old[task], new[task]) for task in old.keys() & new.keys()}
    return {task: number for task, number in found.items() if number is not None}


def drawn(changes: int, seed: int) -> list[str]:
    """Commits that are not merges, and change what an agent can meet."""
    known = git("log", "--no-merges", "--format=%h", "--", *FOLDERS).split()
    return random.Random(seed).sample(known, min(changes, len(known)))


def compare(project: Path, commit: str, noise: dict[str, dict[str, int]]) -> Iterator[str]:
    """For each agent, what the commit touches. `noise` has the trials that differ without a change."""
    subject = git("log", "-1", "--format=%s", commit).strip()[:70]
    with checked_out(f"{commit}^") as old, checked_out(commit) as new:
        before, after = (calls_of_all(tree, project) for tree in (old, new))
    for agent in MORE:
        yield f"| {commit} | {agent} | {told(before[agent], after[agent], noise[agent])} | {subject} |"


def calls_of_all(tree: Path, project: Path) -> dict[str, Calls]:
    """By agent."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(MORE, pool.map(lambda agent: calls_of(tree, project, agent), MORE), strict=True))


def told(before: Calls, after: Calls, noise: Collection[str]) -> str:
    if not before or before.keys() != after.keys():
        return "does not run |"
    touched = {task: call for task, call in differences(before, after).items() if task not in noise}
    calls = ", ".join(f"{task} {call}" for task, call in sorted(touched.items()))
    return f"{len(touched)} of {len(after.keys() - set(noise))} | {calls}"


def small(project: Path) -> None:
    """Raises AssertionError if a prompt touches less than all, or nothing touches something."""
    (project / "prompt.txt").write_text("Solve the task.")
    same, again = (calls_of(ROOT, project, "react-super") for _ in range(2))
    other = calls_of(ROOT, project, "react-super", "--super-prompt=prompt.txt")
    assert same.keys() == CELLS.keys(), same.keys()
    assert not differences(same, again), differences(same, again)
    assert differences(same, other) == dict.fromkeys(CELLS, 1), differences(same, other)
    print("a prompt touches each trial at its first call, and nothing touches none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", action="append", help="this change, instead of drawn ones")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_project(Path(name))
        if given.small:
            small(Path(name))
            return
        noise = [calls_of_all(ROOT, Path(name)) for _ in range(2)]
        known = {agent: differences(*(one[agent] for one in noise)) for agent in MORE}
        print(f"differs without a change: {known}")
        for commit in given.commit or drawn(given.changes, given.seed):
            for line in compare(Path(name), commit, known):
                print(line, flush=True)


if __name__ == "__main__":
    main()
