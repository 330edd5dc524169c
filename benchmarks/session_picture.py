"""The picture docs/session.svg: a red pull request in the terminal, from its verdict to the step at fault.

Usage: python benchmarks/session_picture.py [--small] [FILE]      (default: docs/session.svg)

The commands really run, and their output is drawn. A scripted agent computes figures of a table; then it is
changed, and deletes the lines without a value. Fails unless the verdict is that it regressed, and the cause
is that step. --small runs fewer epochs, and draws into a temporary folder. Takes a minute or two.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from process_tree import ENVIRONMENT

FILE = Path(__file__).parents[1] / "docs/session.svg"
INI = "[pytest]\npythonpath = .\nsuper_sandbox = local\n"
TABLE = "hour,level\n0,1.8\n1,2.4\n2,\n3,3.1\n4,2.2\n5,\n6,0.9\n7,1.4\n"
# What is asked in each task, the code that answers, and the answer.
TASKS = {
    "gaps": ("number of hours without a level", "len(rows) - len(levels)", 2),
    "highest": ("highest level", "max(levels)", 3.1),
    "hours": ("number of hours", "len(rows)", 8),
    "lowest": ("lowest level", "min(levels)", 0.9),
}
READ = "import csv; rows = list(csv.DictReader(open('data/tide.csv'))); print(len(rows), 'hours')"
LEVELS = "levels = [float(row['level']) for row in rows if row['level']]"
TASK = """
id: {id}
set: expert
query: The table `data/tide.csv` has the level of the water in each hour. Report the {asked}.
repository: {{path: data, provide: true}}
answer: {answer}
landmarks: [8 hours]
solution:
  cells:
    - {read}
    - {levels}
    - {code}
"""
AGENT = f"""
CODES = { ({asked: code for asked, code, _ in TASKS.values()})!r}

class Agent:
    def run(self, trial):
        trial.execute("!head -n 3 data/tide.csv")
        trial.execute({READ!r})
        trial.execute({LEVELS!r})
        step = trial.execute(CODES[trial.task.query.split("Report the ")[1].rstrip(".\\n")])
        trial.submit(float(step.observation))
"""
CHANGE = "trial.execute(\"!sed -i '/,$/d' data/tide.csv\")\n        "
RUN = "pytest --super-agent=agents:Agent --super-epochs={epochs} -n 2"
COMPARED = f"{RUN} --super-baseline=baseline.json"
WHY = "pytest-super why latest 'gaps[2]'"
# The lines of a run that are shown, from the first comparison on; others become an ellipsis.
SHOWN = re.compile(
    r"baseline baseline|code of|set +tasks|expert +\d|lost|causes, of|(REGRESSED|CANNOT TELL|PASS)  "
)
ALARMING = re.compile(r"lost |REGRESSED|\S+  lost at")

COLUMNS, MARGIN, LINE = 104, 16, 19
STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; }
rect { fill: #f6f8fa; }
.command { font-weight: bold; }
.alarm { fill: #b3261e; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
rect { fill: #161b22; }
.alarm { fill: #ff8f85; }
}
"""


def write_project(folder: Path) -> None:
    (folder / "tasks/data").mkdir(parents=True)
    (folder / "tasks/data/tide.csv").write_text(TABLE)
    (folder / "pytest.ini").write_text(INI)
    (folder / "agents.py").write_text(AGENT)
    for id, (asked, code, answer) in TASKS.items():
        text = TASK.format(
            id=id, asked=asked, code=code, answer=answer, read=f'"{READ}"', levels=f'"{LEVELS}"'
        )
        (folder / f"tasks/{id}.task.yaml").write_text(text)


def run(command: str, folder: Path) -> list[str]:
    """The lines that a command prints when it is typed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    print(f"$ {command}", flush=True)
    typed = subprocess.run(
        command, shell=True, cwd=folder, env={**ENVIRONMENT, "PATH": path}, stdout=subprocess.PIPE, text=True
    )
    print(typed.stdout, flush=True)
    return typed.stdout.splitlines()


def session(folder: Path, epochs: int) -> list[str]:
    """The lines of the terminal: those of the run that is compared, and of the search for the cause."""
    write_project(folder)
    run(RUN.format(epochs=epochs), folder)
    run("pytest-super baseline update latest", folder)
    agent = folder / "agents.py"
    agent.write_text(AGENT.replace(f"trial.execute({READ!r})", f"{CHANGE}trial.execute({READ!r})"))
    compared = COMPARED.format(epochs=epochs)
    verdict = list(shown(run(compared, folder)))
    cause = run(WHY, folder)
    if "REGRESSED" not in verdict[-1] or "lost at step 2 of 5" not in cause[0]:
        sys.exit("the session has another verdict, or another cause")
    return [f"$ {compared}", *verdict, "", f"$ {WHY}", *cause]


def shown(lines: list[str]) -> Iterator[str]:
    is_cut = False
    for line in lines:
        if SHOWN.match(line):
            yield from ["…"] if is_cut else []
            yield line
        is_cut = not SHOWN.match(line)


def drawn(lines: list[str]) -> str:
    """The lines as an SVG, the long ones wrapped."""
    texts: list[str] = []
    for line in lines:
        kind = "command" if line.startswith("$ ") else "alarm" if ALARMING.match(line) else ""
        for part in textwrap.wrap(line, COLUMNS, subsequent_indent="  ") or [""]:
            y = MARGIN + LINE * (len(texts) + 1) - 5
            texts.append(
                f'<text x="{MARGIN}" y="{y}" class="{kind}" xml:space="preserve">{escape(part)}</text>'
            )
    width, height = 2 * MARGIN + round(7.85 * COLUMNS), 2 * MARGIN + LINE * len(texts)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="6"/>',
            *texts,
            "</svg>\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        picture = drawn(session(Path(name) / "project", 2 if given.small else 4))
        path = Path(name) / FILE.name if given.small else given.file
        path.write_text(picture, encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
