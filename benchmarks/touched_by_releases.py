"""What releases of other people's agents touch: which trials ask something else, and from which call on.

Usage: python benchmarks/touched_by_releases.py [--small] [--agent codex ...] [--releases 5]

Takes the newest releases of each agent from npm or pip, runs each by its name in a container without network,
with a scripted model whose answers do not depend on what it is asked, and compares what consecutive releases
asked. The trials run commands that succeed, fail, and print much. The newest release is compared with itself,
too, and with --small nothing else is.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agents_by_name import ANSWER_FILE, MODELS, call_of
from model_server import serving
from process_tree import ENVIRONMENT, ONLY_REQUIRED_PLUGINS
from rows import print_row

from pytest_super.cli import main as pytest_super
from pytest_super.model.protocols.canonical import Part, with_ids
from pytest_super.model.recorded import RecordedTrial
from pytest_super.store.answers import FILE, TrialAnswers, read_answers

TASKS = {
    "prints": ["echo ready", "python3 -c 'print(6 * 7)'", "ls"],
    "fails": ["echo ready", "cat missing.txt", "python3 -c 'raise ValueError(7)'"],
    "much": ["echo ready", "seq 5000", "ls /usr/bin"],
}
PACKAGES = {"codex": "@openai/codex", "claude-code": "@anthropic-ai/claude-code", "mini-swe-agent": ""}
RELEASE = re.compile(r"\d+\.\d+\.\d+")
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def releases_of(agent: str) -> list[str]:
    """All final ones, from the oldest to the newest."""
    if package := PACKAGES[agent]:
        printed = output_of("npm", "view", package, "versions", "--json")
        found = json.loads(printed)
    else:
        printed = output_of(sys.executable, "-m", "pip", "index", "versions", agent)
        found = printed.split("Available versions: ")[1].splitlines()[0].split(", ")[::-1]
    return [version for version in found if RELEASE.fullmatch(version)]


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Release:
    agent: str
    version: str

    def run(self, folder: Path, task: str) -> Path:
        """The folder of a run of one task."""
        (folder / f"{task}.task.yaml").write_text(json.dumps(task_of(task)))
        with self.model(folder, task) as (name, environment):
            options = [
                f"--super-agent={self.agent}=={self.version}",
                f"--super-model={name}",
                "--super-sandbox=docker",
            ]
            command = [sys.executable, "-m", "pytest", "-q", *options, f"{folder}/{task}.task.yaml"]
            subprocess.run(
                command,
                cwd=folder,
                env=ENVIRONMENT | ONLY_REQUIRED_PLUGINS | environment,
                stdout=subprocess.DEVNULL,
                check=False,
            )
        return (folder / ".super/runs/latest").resolve()

    @contextmanager
    def model(self, folder: Path, task: str) -> Iterator[tuple[str, dict[str, str]]]:
        """The name of the scripted model, and the variables that it needs."""
        commands = [*TASKS[task], f"echo 42 > {ANSWER_FILE}"]
        if self.agent in MODELS:
            with serving(
                [*(call_of(self.agent, command) for command in commands), "I am done."]
            ) as environment:
                yield MODELS[self.agent], environment
        else:
            script = folder / f"{task}.json"
            script.write_text(
                json.dumps([bash_call(n, command) for n, command in enumerate([*commands, END])])
            )
            yield f"scripted:{script}", {}


def bash_call(number: int, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {
        "text": "On I go.",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def task_of(id: str) -> dict[str, Any]:
    sandbox = {"network": False}
    return {
        "id": id,
        "set": "expert",
        "query": f"Do what is to be done for {id}.",
        "answer": 42,
        "sandbox": sandbox,
    }


def asked_by(releases: list[Release], folder: Path) -> list[dict[str, Path]]:
    """The run of each task by each release."""
    runs = []
    for release in releases:
        pytest_super(["image", "build", "--agent", f"{release.agent}=={release.version}"])
        runs.append({task: release.run(folder, task) for task in TASKS})
    return runs


def differences(before: dict[str, Path], now: dict[str, Path]) -> list[tuple[int, str]]:
    """The first call of each task that the release before did not make, and what differs; (0, "") if none."""
    return [
        first_difference(*(run[task] / f"trials/{task}/1.0/{FILE}" for run in (before, now)))
        for task in TASKS
    ]


def first_difference(before: Path, now: Path) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as name:
        trial, asked = RecordedTrial.open(Path(name) / FILE, before), read_answers(now)
        for number, call in asked.calls.items():
            parts = list(parts_of_call(asked, call.asked))
            if trial.ask(parts)[1] is None:
                return number, trial.difference(parts)
    return 0, ""


def parts_of_call(answers: TrialAnswers, asked: str) -> Iterator[Part]:
    return with_ids((part.name, part.value, part.item) for part in answers.request(asked).values())


def print_difference(old: Release, new: Release, found: list[tuple[int, str]]) -> None:
    touched = [one for one in found if one[0]]
    calls = ", ".join(str(call) for call, _ in touched)
    print_row(
        f"{old.agent} {old.version} to {new.version}",
        f"{len(touched)} of {len(found)}",
        peer=f"calls {calls}" if calls else "",
        wanted="; ".join(words[:120] for _, words in touched[:2]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="the newest release of one agent, twice")
    parser.add_argument("--agent", action="append", choices=PACKAGES)
    parser.add_argument("--releases", type=int, default=5)
    options = parser.parse_args()
    agents = options.agent or (["codex"] if options.small else list(PACKAGES))
    print("| releases | trials touched | first touched | | by |\n|---|---|---|---|---|")
    for agent in agents:
        newest = releases_of(agent)[-options.releases :]
        versions = newest[-1:] * 2 if options.small else [*newest, newest[-1]]
        releases = [Release(agent, version) for version in versions]
        with tempfile.TemporaryDirectory() as name:
            runs = asked_by(releases, Path(name))
            for (old, before), (new, now) in pairwise(zip(releases, runs, strict=True)):
                print_difference(old, new, differences(before, now))


if __name__ == "__main__":
    main()
