"""Imports the papers of a checkout of AutoExperiment's repository, and prints a report."""

from pathlib import Path

from pytest_super.authoring.importing.autoexperiment.paper import DATASET, paper_files
from pytest_super.authoring.importing.autoexperiment.records import PaperReport, report_lines
from pytest_super.authoring.importing.store import changes_of, write_files
from pytest_super.errors import SuperError
from pytest_super.words import counted, printable_line

PAPERS = "dataset/MLRC"
# A folder with one of these is the folder of a paper.
PARTS = ("functions.jsonl", "experiments.jsonl", "code", "paper.txt")
RECORD = "autoexperiment.import.json"


def import_autoexperiment(checkout: Path, output: Path, *, force: bool) -> int:
    """Import each paper; the exit status is 1 if anything was left out. Raises SuperError."""
    folders = paper_folders(checkout)
    files: dict[str, str | Path] = {}
    reports = [PaperReport(folder.name) for folder in folders]
    for folder, report in zip(folders, reports, strict=True):
        try:
            made = paper_files(folder, report)
            if common := sorted(files.keys() & made.keys()):
                raise ValueError(f"another paper has the same id: both would write {common[0]}")
            files |= made
        except (SuperError, ValueError) as error:
            report.refuse(str(error))
        for line in report_lines(report):
            print(printable_line(line))
    if not files:
        raise SuperError(f"{checkout}: none of its {counted(len(folders), 'paper')} yields a task")
    written = write_files(output, files, {"dataset": DATASET}, record=RECORD, force=force)
    used = [report.used for report in reports if report.used]
    counts = [counted(sum(one[what] for one in used), what) for what in ("function", "experiment")]
    done = ", ".join([counted(len(used), "paper"), *counts])
    print(f"{done} in {output} (files: {changes_of(written)})")
    if guessed := sum(report.guessed for report in reports if report.used):
        line = f"The patterns of {counted(guessed, 'value')} are guessed from their names. A run of gold"
        print(printable_line(f"{line} has to confirm them: run pytest-super verify {output}"))
    print("No code was run: verify says how experiments end that lack files, modules or programs")
    return 1 if any(report.left_out for report in reports) else 0


def paper_folders(checkout: Path) -> list[Path]:
    """Raises SuperError if this is no checkout of the repository."""
    place = checkout / PAPERS
    if not place.is_dir():
        raise SuperError(
            f"{checkout}: there is no folder {PAPERS}: name a checkout of AutoExperiment's repository"
        )
    folders = sorted(path for path in place.iterdir() if any((path / part).exists() for part in PARTS))
    if not folders:
        raise SuperError(f"{place}: no folder in it has {', '.join(PARTS[:-1])} or {PARTS[-1]}")
    return folders
