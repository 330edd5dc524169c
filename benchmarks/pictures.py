"""The pictures in docs/: real runs of a scripted agent, photographed in Chromium.

Usage: python benchmarks/pictures.py [FOLDER]      (default: docs; takes about two minutes)

Needs the extras tasks, gate, docs and browser, and a `chromium`. The agent `react` asks a script instead of a
model: it runs the cells of each task's own solution, and by chance submits wrong values. So the figures say
nothing about any model. The summary of a job is rendered here, in the style of GitHub.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import markdown
from playwright.sync_api import sync_playwright

from pytest_super.comparison.comparison import compare
from pytest_super.comparison.side import side_of_run
from pytest_super.report.comparison import markdown as summary_of
from pytest_super.report.page.server import PageServer
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from pytest_super.tasks.task import Task

ROOT = Path(__file__).parents[1]
TASKS = ("vader-demo", "vader-icwsm2014", "mord", "langid")
# The chance of a right answer in the first run, and in the second, of a worse agent.
CHANCES = (0.8, 0.55)
WIDTH = 1000
# Smaller pictures, which can still be read.
SCALE = 0.9
# As GitHub shows Markdown in the summary of a job.
GITHUB = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 24px; color: #1f2328; }
h3 { font-size: 1.25em; }
table { border-collapse: collapse; margin-bottom: 16px; }
tr:nth-child(2n) { background: #f6f8fa; }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
"""


def script_for(tasks: list[Task], chance: float, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Answers for each task: its solution's cells, then an answer that is right with this chance."""
    luck = random.Random(seed)
    return {task.id: list(answers(task, luck.random() < chance, luck)) for task in tasks}


def answers(task: Task, is_right: bool, luck: random.Random) -> Iterator[dict[str, Any]]:
    assert task.solution is not None
    cells = read_solution(task.solution, task.folder).cells
    thoughts = ("I look at what is there first.", "That worked. The next part of the experiment.")
    for number, cell in enumerate(cells if is_right else cells[:-1]):
        yield answer(thoughts[number > 0], "execute", cell, luck)
    value = task.answer if is_right else changed(task.answer)
    yield answer("I have the result.", "submit", json.dumps(value), luck)


def answer(thought: str, action: str, content: str, luck: random.Random) -> dict[str, Any]:
    tokens = {"prompt_tokens": luck.randrange(2000, 20_000), "completion_tokens": luck.randrange(50, 400)}
    return {
        "text": f"Thought: {thought}\nAction: {action}\n<content>\n{content}\n</content>",
        "usage": tokens,
        "cost_usd": round(2.5e-6 * tokens["prompt_tokens"] + 1e-5 * tokens["completion_tokens"], 6),
    }


def changed(value: Any) -> Any:
    """The value with other numbers."""
    if isinstance(value, dict):
        return {key: changed(one) for key, one in value.items()}
    return round(value * 1.1, 4) if isinstance(value, int | float) else value


def run(folder: Path, tasks: list[Task], number: int) -> Path:
    """Run the agent; returns the folder of the run."""
    (folder / "script.json").write_text(json.dumps(script_for(tasks, CHANCES[number], number)))
    # With relative paths, which the page shows.
    command = [
        sys.executable, "-m", "pytest", "-n2", "--super-agent=react", "--super-model=scripted:script.json",
        "--super-sandbox=local", "tasks",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, env={**os.environ, "CI": "true"}, stdout=sys.stderr)
    return (folder / ".super/runs/latest").resolve()


def copy_tasks(folder: Path) -> None:
    (folder / "tasks").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in TASKS:
        for path in (ROOT / "tasks").glob(f"{name}.*"):
            shutil.copy(path, folder / "tasks")


@contextmanager
def served(*runs: Path) -> Iterator[str]:
    with PageServer(runs) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


def photograph(page: Page, path: Path, height: int) -> None:
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.screenshot(path=path)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def photograph_all(runs: list[Path], folder: Path) -> None:
    with sync_playwright() as playwright, served(runs[0]) as one, served(*runs) as both:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(device_scale_factor=SCALE)
        page.goto(one)
        photograph(page, folder / "page.png", 1250)
        page.locator("#trials tbody tr", has_text="missed").locator("a").first.click()
        photograph(page, folder / "trajectory.png", 1250)
        page.goto(both)
        photograph(page, folder / "two-runs.png", 1000)
        text = summary_of(compare(side_of_run(runs[0]), side_of_run(runs[1]), 0.1))
        # Another page, because the policy of the last one forbids this style.
        page = browser.new_page(device_scale_factor=SCALE)
        body = markdown.markdown(f"### {text}", extensions=["tables", "sane_lists"])
        page.set_content(f"<style>{GITHUB}</style>{body}")
        photograph(page, folder / "summary.png", 470)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "docs")
    folder = parser.parse_args().folder
    tasks = [task for name in TASKS for task in load_tasks(ROOT / "tasks" / f"{name}.task.yaml")]
    with tempfile.TemporaryDirectory() as name:
        copy_tasks(Path(name))
        photograph_all([run(Path(name), tasks, number) for number in range(2)], folder)


if __name__ == "__main__":
    main()
