"""The pictures in docs/ but inspect-viewer.png: real runs of a scripted agent, photographed in Chromium.

Usage: python benchmarks/pictures.py [FOLDER]      (default: docs; takes about four minutes)

Needs the extras tasks, gate, docs and browser, and a `chromium`. The agent `react` asks a script instead of a
model: it runs the cells of each task's own solution, and by chance submits wrong values. So the figures say
nothing about any model. In the trial of trajectory.png, it deletes lines of the data first. The summary of a
job is rendered here, in the style of GitHub.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import markdown
from playwright.sync_api import sync_playwright

from pytest_super.gate.comparison import compare
from pytest_super.gate.side import side_of_run
from pytest_super.report.comparison import markdown as summary_of
from pytest_super.report.page.server import PageServer
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
TASKS = ("vader-demo", "vader-icwsm2014", "mord", "langid")
# The chance of a right answer in the first run, and in the second, of a worse agent.
CHANCES = (0.8, 0.55)
# The trial of trajectory.png: what is done before the solution's cells, and what these then yield.
LOST = "vader-icwsm2014_data"
LOOK = '!wc -l "{folder}"/*_GroundTruth.txt'
DELETE = f"""!sed -i '/"/d' "{{folder}}"/*_GroundTruth.txt\n{LOOK}"""
WRONG = {
    "all": {
        "tweets": {"n": 4044, "pearson": 0.8746},
        "movie_reviews": {"n": 10604, "pearson": 0.4273},
        "amazon_reviews": {"n": 3573, "pearson": 0.5911},
        "nyt_editorials": {"n": 5151, "pearson": 0.5033},
    },
    "agreed": {
        "tweets": {"n": 3231, "pearson": 0.8864},
        "movie_reviews": {"n": 7485, "pearson": 0.4966},
        "amazon_reviews": {"n": 3184, "pearson": 0.6342},
        "nyt_editorials": {"n": 4292, "pearson": 0.503},
    },
}
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


def lost_answers(task: Task, luck: random.Random) -> Iterator[dict[str, Any]]:
    assert task.solution is not None
    yield answer("I look at the files of the paper first.", "execute", LOOK, luck)
    deleted = "Quotation marks would confuse pandas' reader. I delete the lines that have one."
    yield answer(deleted, "execute", DELETE, luck)
    for cell in read_solution(task.solution, task.folder).cells:
        yield answer("That worked. The next part of the experiment.", "execute", cell.rstrip(), luck)
    yield answer("I have the result.", "submit", json.dumps(WRONG), luck)


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


def run(folder: Path, script: dict[str, list[dict[str, Any]]], items: str = "tasks") -> Path:
    """Run the agent; returns the folder of the run."""
    (folder / "script.json").write_text(json.dumps(script))
    # With relative paths, which the page shows.
    command = [
        sys.executable, "-m", "pytest", "-n2", "--super-agent=react", "--super-model=scripted:script.json",
        "--super-sandbox=local", items,
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, env={**os.environ, "CI": "true"}, stdout=sys.stderr)
    return (folder / ".super/runs/latest").resolve()


def lost_run(folder: Path, tasks: list[Task]) -> Path:
    """A run in which a trial is lost at a step, and that step was searched; returns its folder."""
    [task] = [task for task in tasks if task.id == LOST]
    script = script_for(tasks, 1.0, 0) | {LOST: list(lost_answers(task, random.Random(0)))}
    path = run(folder, script, f"tasks/{Path(task._path).name}")
    start = "from pytest_super.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", start, "why", "latest", LOST, "--sandbox=local"]
    subprocess.run(command, cwd=folder, stdout=sys.stderr, check=True)
    return path


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


def photograph(page: Page, path: Path, height: int, width: int = WIDTH) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.screenshot(path=path)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def photograph_trial(path: Path, folder: Path) -> None:
    with sync_playwright() as playwright, served(path) as url:
        # As large as inspect-viewer.png, next to which it is shown.
        page = playwright.chromium.launch(executable_path=shutil.which("chromium")).new_page()
        page.goto(url)
        page.get_by_role("link", name=LOST, exact=True).click()
        photograph(page, folder / "trajectory.png", 900, 1280)


def photograph_all(runs: list[Path], folder: Path) -> None:
    with sync_playwright() as playwright, served(runs[0]) as one, served(*runs) as both:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(device_scale_factor=SCALE)
        page.goto(one)
        photograph(page, folder / "page.png", 1250)
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
        scripts = [script_for(tasks, chance, number) for number, chance in enumerate(CHANCES)]
        photograph_all([run(Path(name), script) for script in scripts], folder)
        photograph_trial(lost_run(Path(name), tasks), folder)


if __name__ == "__main__":
    main()
