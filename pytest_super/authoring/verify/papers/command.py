"""Proves papers, and prints the result of each as soon as it is known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.finding import Finding
from pytest_super.authoring.verify.papers.contents import read_originals
from pytest_super.authoring.verify.papers.leaks import paper_leaks
from pytest_super.authoring.verify.papers.lines import findings_of, proof_data, proof_lines
from pytest_super.authoring.verify.papers.proof import prove
from pytest_super.authoring.verify.papers.runs import Runs
from pytest_super.errors import SuperError
from pytest_super.report.live_command import LiveCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_super.authoring.verify.papers.proof import PaperProof
    from pytest_super.session.item import ReadyKernel
    from pytest_super.tasks.task import Task

    Start = Callable[[Task], ReadyKernel]


def prove_papers(
    papers: Sequence[Task], start: Start, *, epochs: int, functions: int | None, workers: int
) -> dict[str, Any]:
    """The findings and the evidence as plain JSON values."""
    findings: list[Finding] = []
    proofs: list[PaperProof] = []
    done = ""

    def show(what: str) -> None:
        nonlocal done
        done = what

    with LiveCommand(lambda: f"{len(proofs)}/{len(papers)} papers proven; last run: {done}") as live:
        for paper in papers:
            with live.activity(paper.id, "its runs"):
                try:
                    code = read_originals(paper)
                    proof = prove(code, Runs(paper, start, workers, show), epochs=epochs, sample=functions)
                    found = [*findings_of(proof), *paper_leaks(code, start)]
                except SuperError as error:
                    findings.append(Finding(kind="unknown", task=paper.id, text=f"{paper.id}: {error}"))
                    live.print_line(findings[-1].text)
                    continue
            proofs.append(proof)
            findings += found
            for line in proof_lines(proof, found):
                live.print_line(line)
    return {
        "findings": [asdict(finding) for finding in findings],
        "papers": [proof_data(proof) for proof in proofs],
    }
