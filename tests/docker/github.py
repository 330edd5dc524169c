"""GitHub Actions, as far as our action needs it: expressions, conditions, outputs and caches.

The commands really run. Caches and artifacts are folders; a checkout is a copy; Python is there already.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
OURS = "pytest-super/pytest-super@v0"
PART = re.compile(r"'[^']*'|[A-Za-z_][\w.-]*|&&|\|\||[=!]=|.", re.DOTALL)
OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}
FUNCTIONS = {"always", "format", "hashFiles", "success"}
BUILD = re.compile(r"^( *pytest-super image build)$", re.MULTILINE)


def jobs() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The jobs of the page: that of a pull request for GitHub and for GitLab, and that of the main branch."""
    blocks = re.findall(r"```yml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    github, gitlab, main_branch = map(yaml.safe_load, blocks)
    return github["jobs"]["gate"], gitlab["agent"], main_branch["jobs"]["baseline"]


def python_of(expression: str) -> str:
    """The expression of GitHub in Python, with `value(name)` for what it looks up."""

    def part(found: re.Match[str]) -> str:
        text = found[0]
        if text in OPERATORS:
            return OPERATORS[text]
        return f"value({text!r})" if text[0].isalpha() and text not in FUNCTIONS else text

    return PART.sub(part, expression.strip())


@dataclass(kw_only=True)
class GitHub:
    """A repository and its jobs, each of which has a new machine."""

    repository: Path
    place: Path
    """For caches, and for the machines of the jobs."""
    variables: dict[str, str]
    """Those of each machine."""
    secrets: dict[str, str]
    runs: int = 0
    attempts: int = 0

    def run(self, job: dict[str, Any], *, event: str = "pull_request", is_again: bool = False) -> Job:
        """Run a job of a workflow to its end."""
        self.runs += not is_again
        self.attempts = self.attempts + 1 if is_again else 1
        machine = self.place / f"machine-{self.runs}-{self.attempts}"
        shutil.copytree(self.repository, machine / "checkout")
        values = {
            "github.event_name": event,
            "github.run_id": str(self.runs),
            "github.run_attempt": str(self.attempts),
            "github.job": "job",
            "strategy.job-index": "0",
            "runner.arch": "X64",
            "runner.temp": str(machine),
            **{f"secrets.{name}": value for name, value in self.secrets.items()},
        }
        ran = Job(machine=machine, caches=self.place / "caches", values=values, variables=self.variables)
        for step in job["steps"]:
            ran.run(step)
        return ran


@dataclass(kw_only=True)
class Job:
    machine: Path
    caches: Path
    values: dict[str, str]
    variables: dict[str, str]
    has_failed: bool = False
    log: str = ""
    restored: list[str] = field(default_factory=list)
    """The keys of the caches that were found."""

    @property
    def folder(self) -> Path:
        return self.machine / "checkout"

    @property
    def summary(self) -> str:
        path = self.machine / "summary.md"
        return path.read_text() if path.exists() else ""

    def evaluated(self, expression: str) -> Any:
        names = {
            "value": lambda name: self.values.get(name, ""),
            "format": str.format,
            "hashFiles": self.digest_of,
            "always": lambda: True,
            "success": lambda: not self.has_failed,
        }
        return eval(python_of(expression), names)

    def filled(self, text: object) -> str:
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(self.evaluated(found[1])), str(text))

    def digest_of(self, pattern: str) -> str:
        found = sorted(path.read_bytes() for path in self.folder.glob(pattern) if path.is_file())
        return hashlib.sha256(b"\0".join(found)).hexdigest() if found else ""

    def run(self, step: dict[str, Any]) -> None:
        condition = step.get("if", "success()")
        if (self.has_failed and "always()" not in condition) or not self.evaluated(condition):
            self.end(step, "skipped")
        elif "run" in step:
            self.end(step, "success" if self.command(step) == 0 else "failure")
        elif step["uses"] == OURS:
            self.action(step)
        else:
            given = {name: self.filled(value) for name, value in step.get("with", {}).items()}
            self.other_action(step, given)
            self.end(step, "success")

    def end(self, step: dict[str, Any], outcome: str) -> None:
        self.values[f"steps.{step.get('id')}.outcome"] = outcome
        self.has_failed = self.has_failed or outcome == "failure"

    def action(self, step: dict[str, Any]) -> None:
        """Run the steps of our action, with the variables of the step that uses it."""
        assert step["with"].keys() <= ACTION["inputs"].keys()
        inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | step["with"]
        self.values.update({f"inputs.{name}": self.filled(value) for name, value in inputs.items()})
        variables = {name: self.filled(value) for name, value in step.get("env", {}).items()}
        for one in ACTION["runs"]["steps"]:
            self.run({**one, "env": {**variables, **one.get("env", {})}})

    def command(self, step: dict[str, Any]) -> int:
        # What the image is built upon comes from a registry.
        command = BUILD.sub(r"\1 --base debian-super:bookworm", step["run"])
        output = self.machine / "output"
        output.write_text("")
        own = {name: self.filled(value) for name, value in step.get("env", {}).items()}
        ran = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self.folder / self.filled(step.get("working-directory", ".")),
            env={
                **self.variables,
                **own,
                "HOME": str(self.machine / "home"),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.machine / "summary.md"),
            },
            text=True,
            capture_output=True,
            check=False,
        )
        self.log += f"$ {command}\n{ran.stdout}{ran.stderr}"
        print(f"$ {command}\n{ran.stdout[-6000:]}{ran.stderr[-3000:]}")
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return ran.returncode

    def other_action(self, step: dict[str, Any], given: dict[str, str]) -> None:
        name = step["uses"].partition("@")[0]
        if name == "actions/cache/restore":
            hit = self.restore(given)
            self.values[f"steps.{step.get('id')}.outputs.cache-hit"] = str(hit == given["key"]).lower()
            self.values[f"steps.{step.get('id')}.outputs.cache-primary-key"] = given["key"]
        elif name == "actions/cache/save":
            self.copy(given["path"].splitlines(), self.caches / quote(given["key"], safe=""))
        elif name == "actions/upload-artifact":
            self.copy(given["path"].splitlines(), self.machine / "artifacts" / given["name"])
        else:
            assert name in ("actions/checkout", "actions/setup-python")

    def restore(self, given: dict[str, str]) -> str | None:
        """Copy the content of a cache, and return its key: this one, or the newest of an alike one."""
        found = [path for path in self.caches.glob("*") if path.name == quote(given["key"], safe="")]
        for beginning in given.get("restore-keys", "").split():
            alike = self.caches.glob(f"{quote(beginning, safe='')}*")
            found += sorted(alike, key=lambda path: path.stat().st_mtime, reverse=True)
        if not found:
            return None
        for number, name in enumerate(given["path"].splitlines()):
            self.copy_one(found[0] / str(number), self.place_of(name))
        self.restored.append(found[0].name)
        return given["key"] if found[0].name == quote(given["key"], safe="") else found[0].name

    def place_of(self, path: str) -> Path:
        return self.folder / path.replace("~", str(self.machine / "home"))

    def copy(self, paths: list[str], target: Path) -> None:
        for number, path in enumerate(paths):
            if not path.startswith("!"):
                self.copy_one(self.place_of(path), target / str(number))

    def copy_one(self, source: Path, target: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def variables_of_a_machine(environment: Path) -> dict[str, str]:
    """Those of this process, without what concerns the tests, and with the programs of an environment."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SUPER"))}
    # Of the image that comes from here, and not from this checkout.
    known.pop("PYTHONPATH", None)
    return {**known, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}
