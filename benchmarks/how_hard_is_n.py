"""How the share of solved items falls with n, for agents whose chance at each masked function is known.

Usage: python benchmarks/how_hard_is_n.py [--small] [--sample N] [--plot FILE.svg] [PAPER.task.yaml …]

Prints a Markdown table: for each agent and n the share of solved items, and the same for the items with calls
among their masked functions and for those without. By default it runs the shipped papers, in the local
sandbox.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
AGENTS = ("gold", "short", "chance", "stub")
SIZES = (1, 2, 3)
COLOURS = {"gold": "#2e7d32", "short": "#1565c0", "chance": "#ef6c00", "stub": "#c62828"}
WIDTH, HEIGHT, MARGIN = 480, 300, 50

Shares = dict[tuple[str, int], float]


def results_of(agent: str, papers: list[Path], sample: int, folder: Path) -> list[dict[str, Any]]:
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "partial_gold", "-n2", f"--rootdir={folder}"),
        *(f"--super-agent={agent}", "--super-sandbox=local", f"--super-dir={folder}/{agent}"),
        *(f"--super-n={','.join(map(str, SIZES))}", f"--super-sample={sample}", *map(str, papers)),
    ]
    subprocess.run(command, cwd=Path(__file__).parent, check=False, stdout=subprocess.DEVNULL)
    lines = (folder / agent / "runs/latest/results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    if failed := [row["error"] for row in found if row["error"]]:
        raise SystemExit(f"{agent}: {failed[0]}")
    return found


def shares(rows: list[dict[str, Any]], agent: str, kind: str) -> Shares:
    """The share of solved items for each n; `kind` is all, `calls`, or `no calls` among the functions."""
    solved: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        has_calls = row["masked"]["calls"] > 0
        if kind == "all" or has_calls == (kind == "calls"):
            solved[row["masked"]["n"]].append(row["solved"])
    return {(agent, n): sum(found) / len(found) for n, found in solved.items()}


def table(kinds: dict[str, Shares], counts: dict[tuple[str, int], int]) -> str:
    heads = [
        "agent",
        *(f"n = {n}" for n in SIZES),
        *(f"n = {n}, {kind}" for kind in list(kinds)[1:] for n in SIZES[1:]),
    ]
    lines = [f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 1)}|"]
    lines.append(
        "| items | "
        + " | ".join(
            str(counts.get((kind, n), 0)) for kind in kinds for n in (SIZES if kind == "all" else SIZES[1:])
        )
        + " |"
    )
    for agent in AGENTS:
        cells = [
            f"{found[agent, n]:.2f}" if (agent, n) in found else "-"
            for kind, found in kinds.items()
            for n in (SIZES if kind == "all" else SIZES[1:])
        ]
        lines.append(f"| `{agent}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(found: Shares) -> str:
    """The shares over n as an SVG picture."""

    def x(n: int) -> float:
        return MARGIN + (n - SIZES[0]) * (WIDTH - 2 * MARGIN) / (SIZES[-1] - SIZES[0])

    def y(share: float) -> float:
        return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y(share)}" y2="{y(share)}" stroke="#ddd"/>'
            f'<text x="{MARGIN - 8}" y="{y(share) + 4}" text-anchor="end">{share:g}</text>'
        )
    for n in SIZES:
        parts.append(f'<text x="{x(n)}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">n = {n}</text>')
    for agent in AGENTS:
        points = [(x(n), y(found[agent, n])) for n in SIZES if (agent, n) in found]
        line = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[agent]}" stroke-width="2"/>')
        parts.append(f'<text x="{points[-1][0] + 6}" y="{points[-1][1] + 4}">{agent}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="6 items of one paper")
    parser.add_argument("--sample", type=int, default=120)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("papers", nargs="*", type=Path)
    given = parser.parse_args()
    papers = [path.resolve() for path in given.papers] or sorted((ROOT / "tasks").glob("paper-*.task.yaml"))
    sample = 6 if given.small else given.sample
    rows: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for agent in AGENTS:
            rows[agent] = results_of(agent, papers[:1] if given.small else papers, sample, Path(folder))
    kinds: dict[str, Shares] = {}
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for kind in ("all", "calls", "no calls"):
        kinds[kind] = {}
        for agent in AGENTS:
            kinds[kind] |= shares(rows[agent], agent, kind)
        for row in rows["gold"]:
            is_of_kind = kind == "all" or (row["masked"]["calls"] > 0) == (kind == "calls")
            counts[kind, row["masked"]["n"]] += is_of_kind
    print(table(kinds, counts))
    if given.plot:
        given.plot.write_text(plot(kinds["all"]))


if __name__ == "__main__":
    main()
