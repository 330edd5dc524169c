"""Finds what gives the functions and values of a paper away in exactly what an agent's sandbox holds."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from pytest_super.authoring.verify.finding import Finding, finding
from pytest_super.authoring.verify.leaks import found_in
from pytest_super.authoring.verify.papers.runs import Originals
from pytest_super.authoring.verify.texts import Text, prefix_texts, repository_texts
from pytest_super.functions.leaks import Leak, find_leaks, gold_of, long_lines
from pytest_super.functions.masking import masked_files
from pytest_super.grading.collected import CollectionError, collect
from pytest_super.kernel.client import Kernel
from pytest_super.metrics.distinctive import distinctive_values
from pytest_super.metrics.self_report import expected
from pytest_super.redaction import redacted
from pytest_super.session.trial.grading import after_prefix
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.sources.paper import paper_text
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.combinations import Items
from pytest_super.tasks.task import Task

# A line with so many places in the files with functions gives no body away.
OFTEN = 3


def paper_leaks(code: Originals, start: Callable[[Task], ReadyKernel]) -> Iterator[Finding]:
    """Raises InfrastructureError."""
    paper = code.paper
    yield from fetchable_code(paper)
    values = list(distinctive_values(expected_values(paper)))
    yield from found_in(paper, texts_of_task(paper), values)
    with after_prefix(start(Items(paper).item((0,)))) as kernel, tempfile.TemporaryDirectory() as name:
        yield from installed_copies(code, kernel)
        try:
            tree = fetch_files(kernel, Path(name))
        except CollectionError as error:
            yield finding("unknown", paper.id, f"its files cannot be searched: {error}")
            return
        yield from found_in(paper, repository_texts(tree), values)
        yield from code_leaks(code, tree)


def fetchable_code(paper: Task) -> Iterator[Finding]:
    """With the network, an agent can fetch what is masked from where the paper's code was fetched."""
    repository = paper.repository
    if not paper.sandbox.network or repository is None or repository.path is not None:
        return
    if repository.git is not None:
        place = f"{redacted(repository.git)} at commit {repository.commit}"
    else:
        place = f"the release {repository.pypi} {repository.version}"
    text = f"with the network, the agent can fetch the masked functions: {place}"
    yield finding("leaks", paper.id, text, {"kind": "network", "place": place})


def texts_of_task(paper: Task) -> Iterator[Text]:
    yield Text(place="the query", text=paper.query)
    yield from prefix_texts(paper)
    for function in paper.functions:
        yield Text(place=f"the description of {function.target}", text=function.description)
        yield Text(place=f"the passage of {function.target}", text=function.passage)
    for one in paper.experiments:
        yield Text(place=f"the description of `{one.name}`", text=one.description or "")
    if paper.paper is not None:
        yield Text(place="the paper", text=paper_text(paper.paper, paper.folder))


def expected_values(paper: Task) -> dict[str, Any]:
    values = {
        one.name: {name: expected(check) for name, check in one.reported.items()} for one in paper.experiments
    }
    hidden = {f"{one.name} varied": [other.expected for other in one.vary] for one in paper.experiments}
    return {**values, **hidden}


def fetch_files(kernel: Kernel, folder: Path) -> Path:
    """The files of the working directory, in a folder. Raises CollectionError and InfrastructureError."""
    archive = folder / "files.tar"
    collect(kernel, [""], archive)
    tree = folder / "the working directory"
    with disk_errors(folder), tarfile.open(archive) as tar:
        tar.extractall(tree, filter="data")
    return tree


def code_leaks(code: Originals, tree: Path) -> Iterator[Finding]:
    """Leaks of the functions: in files without any, and in the others as each function is masked."""
    paper = code.paper
    masked = {one.target: masked_files(code.folder, [one.target])[one.file] for one in paper.functions}
    texts = (data.decode("utf-8", "replace") for data in code.files.values())
    counts = Counter(line for text in texts for line in long_lines(text))
    common = {line for line, count in counts.items() if count >= OFTEN}
    gold = {
        target: one._replace(lines=one.lines - common)
        for target, file in masked.items()
        for one in [gold_of(target, file.functions[0].body)]
    }
    for path in code.files:
        (tree / code.folder.name / path).unlink(missing_ok=True)
    for leak in find_leaks(tree, gold.values()):
        yield finding_of(paper, leak)
    for one in paper.functions:
        with tempfile.TemporaryDirectory() as name:
            changed = with_lines_of(code.files[one.file], masked[one.target].data)
            for path, data in {**code.files, one.file: changed}.items():
                place = Path(name, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            for leak in find_leaks(Path(name), [gold[one.target]]):
                yield finding_of(paper, leak)


def with_lines_of(original: bytes, masked: bytes) -> bytes:
    """The masked file, with blank lines behind the stub, so that its lines have the original's numbers."""
    before, after = original.splitlines(keepends=True), masked.splitlines(keepends=True)
    pairs = zip(reversed(before), reversed(after), strict=False)
    end = len(after) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return b"".join([*after[:end], b"\n" * (len(before) - len(after)), *after[end:]])


def finding_of(paper: Task, leak: Leak) -> Finding:
    about = f" ({leak.target})" if leak.target else ""
    return finding("leaks", paper.id, f"{leak.path}: {leak.detail}{about}", leak._asdict())


def installed_copies(code: Originals, kernel: Kernel) -> Iterator[Finding]:
    """Packages of the paper that Python also finds outside of the working directory."""
    paper = code.paper
    for name in module_names(code) - sys.stdlib_module_names:
        spec = f"__import__('importlib.util').util.find_spec({name!r})"
        origin = kernel.evaluate(f"getattr({spec}, 'origin', None)")
        if origin and not origin.startswith(kernel.workdir):
            facts = {"kind": "installed", "path": origin}
            yield finding("leaks", paper.id, f"an installed copy of {name}: {origin}", facts)


def module_names(code: Originals) -> set[str]:
    """The top-level modules that contain its functions."""
    names = set()
    for path in code.files:
        *parents, file = Path(path).parts
        packages = [
            part
            for depth, part in enumerate(parents)
            if (code.folder.joinpath(*parents[: depth + 1]) / "__init__.py").exists()
        ]
        names.add(packages[0] if packages else Path(file).stem)
    return names
