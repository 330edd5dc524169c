"""Proves papers, and prints the proof of each, as findings and as text, as soon as it is known."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_super.authoring.verify.finding import Finding, Kind, finding
from pytest_super.authoring.verify.papers.leaks import paper_leaks
from pytest_super.authoring.verify.papers.proof import FunctionProof, PaperProof, prove
from pytest_super.authoring.verify.papers.runs import Runs, read_originals
from pytest_super.authoring.verify.papers.values import Failure, Spread
from pytest_super.authoring.verify.papers.variations import proposal_lines
from pytest_super.errors import SuperError
from pytest_super.report.live import LiveCommand
from pytest_super.report.table import table_lines
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.store.run_folder import make_ignored
from pytest_super.tasks.task import Task
from pytest_super.words import counted, one_line, printable_line


def findings_of(proof: PaperProof) -> Iterator[Finding]:
    """Everything for which an item of the paper cannot be trusted."""
    runs = counted(proof.gold_runs, "gold run")
    for kind in dict.fromkeys(one.verdict for one in proof.functions):
        if kind in ("gold_fails", "flaky"):
            yield from findings_of_failures(kind, proof.paper, f"in {runs}", proof.failures)
    if proof.exits_pass:
        yield finding("weak", proof.paper, "files that only have `os._exit(0)` pass")
    for spread in proof.spreads:
        allowing = f"; {tolerance_text(spread)} would allow for that" if spread.tolerance else ""
        yield finding("flaky", proof.paper, f"{spread_text(spread, runs)}{allowing}")
    seeds = f"with {counted(proof.seeds, 'seed')}"
    yield from findings_of_failures("flaky", proof.paper, seeds, proof.seed_failures)
    for one in proof.functions:
        yield from findings_of_function(proof.paper, one)


def findings_of_failures(kind: Kind, paper: str, runs: str, failures: Iterable[Failure]) -> Iterator[Finding]:
    for one in failures:
        log = f" ({one.log})" if one.log else ""
        yield finding(kind, paper, printable_line(f"{runs}{log}: {one.text}"), asdict(one))


def findings_of_function(paper: str, one: FunctionProof) -> Iterator[Finding]:
    name = f"{one.id} {one.target}"
    if one.verdict == "not_executed":
        yield finding("not_executed", paper, f"{name}: no experiment that needs it executes it")
        return
    if one.verdict == "insensitive":
        text = f"{name}: its experiments pass with the stubs {', '.join(one.passing_stubs)}"
        yield finding("insensitive", paper, text)
    for experiment in one.not_executed_by:
        yield finding("not_executed", paper, f"{name}: `{experiment}` needs it, but does not execute it")
    for experiment in one.unaffected:
        if experiment not in one.not_executed_by:
            yield finding("insensitive", paper, f"{name}: `{experiment}` passes although it only raises")


def spread_text(spread: Spread, runs: str) -> str:
    return f"{spread.name} is {min(spread.values):.12g}..{max(spread.values):.12g} in {runs}"


def tolerance_text(spread: Spread) -> str:
    ((kind, tolerance),) = spread.tolerance.items()
    return f"{kind}: {tolerance:.2g}"


def proof_lines(proof: PaperProof, findings: Sequence[Finding]) -> Iterator[str]:
    """A table of the functions, the findings, and the totals."""
    heads = ["id", "function", "verdict", "experiments"]
    rows = [[one.id, one.target, one.verdict, str(len(one.executed_by))] for one in proof.functions]
    yield from table_lines([heads, *rows], texts=3)
    # Whole lines, which can end in what is to be copied into the file.
    for one in findings:
        yield printable_line(f"{one.kind:<7} {one.text}")
    for spread in (one for one in proof.seed_spreads if one.tolerance):
        text = spread_text(spread, counted(proof.seeds, "run") + ", each with another seed")
        yield printable_line(f"{proof.paper}: {text}; proposed: {tolerance_text(spread)}")
    for proposal in proof.proposals:
        yield from map(printable_line, proposal_lines(proof.paper, proposal))
    if proof.undescribed:
        text = f"without `passage` and `description`: {', '.join(proof.undescribed)}"
        yield one_line(f"{proof.paper}: {text}")
    counts = Counter(one.verdict for one in proof.functions)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    of = f"{counted(proof.gold_runs, 'gold run')}, {counted(len(proof.functions), 'function')}"
    found = f"; {counted(len(findings), 'finding')}" if findings else ""
    yield one_line(f"{proof.paper}: {of}: {told}{found}")


def prove_papers(
    papers: Sequence[Task],
    start: Callable[[Task], ReadyKernel],
    *,
    epochs: int,
    functions: int | None,
    workers: int,
    folder: Path,
) -> dict[str, Any]:
    """The findings and the evidence as plain JSON values; logs are kept in `folder`/papers."""
    findings: list[Finding] = []
    proofs: list[PaperProof] = []
    with LiveCommand(lambda: f"{len(proofs)}/{len(papers)} papers proven") as live:
        for paper in papers:
            with live.activity(paper.id, "its runs"):
                try:
                    code = read_originals(paper)
                    make_ignored(folder, logs := folder / "papers" / paper.id)
                    runs = Runs(paper, start, workers)
                    proof = prove(code, runs, epochs=epochs, sample=functions, logs=logs)
                    found = [*findings_of(proof), *paper_leaks(code, start)]
                except SuperError as error:
                    findings.append(finding("unknown", paper.id, str(error)))
                    live.print_line(findings[-1].text)
                    continue
            proofs.append(proof)
            findings += found
            for line in proof_lines(proof, found):
                live.print_line(line)
    return {
        "findings": [asdict(one) for one in findings],
        "papers": [
            {**asdict(proof), "valid": all(one.verdict == "valid" for one in proof.functions)}
            for proof in proofs
        ],
    }
