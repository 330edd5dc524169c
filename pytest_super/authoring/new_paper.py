"""Writes a first task of a paper: runs its commands, and states what they execute and yield."""

import os
import re
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pytest_super.authoring.generate.repositories import parse, pin
from pytest_super.authoring.paper_proposals import (
    Values,
    candidates,
    digests_of,
    printed_in,
    redactions,
    regex_of,
    results_of,
)
from pytest_super.authoring.starter import write
from pytest_super.authoring.verify.gold_findings import are_different
from pytest_super.authoring.verify.papers.runs import UNCOMPILED, Originals, Runs, Trial, read_originals
from pytest_super.authoring.verify.papers.values import failures_of
from pytest_super.errors import SuperError
from pytest_super.functions.uses import side_effects
from pytest_super.grading.grader import heading, last_lines
from pytest_super.kernel.providers.unpacked_image import is_folder
from pytest_super.report.live import LiveCommand
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.sources import fetch
from pytest_super.sources.paper import paper_text
from pytest_super.tasks.grade import RegexValue
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.paper import Experiment, PaperText
from pytest_super.tasks.task import TASK_SUFFIX, Repository, Task
from pytest_super.tasks.yaml_writer import to_yaml
from pytest_super.words import counted, printable_line

# Before a field, and in place of one that is not known.
COMMENTS = {
    "query": "Say what the code is, and name the paper.",
    "functions": "Keep those that the paper describes: `passage` quotes it, `description` fills its gaps.",
    "experiments": "Name them as the paper does. Delete what is not a result.",
    "n": "How many functions are masked together, such as [1, 2].",
}
UNKNOWN = {
    "paper": "paper: {file: paper.md} is the paper's text, next to this file.",
    "sandbox": "sandbox: {packages: [numpy==2.2.6]} is what the code imports.",
}
MISSING_MODULE = re.compile(
    r"^(?:ModuleNotFoundError|ImportError|\S*python[\d.]*): No module named '?([\w.]+)", re.M
)
MISSING_PACKAGE = (
    "\nthe module {module} is missing: for containers, list its package and ipykernel in FILE, run "
    "`pytest-super image build --requirements FILE --tag NAME`, and give `--image NAME`; for local and "
    "bubblewrap, install it with pip"
)


class Ran(NamedTuple):
    """What a command does with the original code."""

    executed: set[str]
    """The targets of functions."""
    values: Values
    hidden: int
    """Number of values before the last one of their name."""
    has_block: bool


def write_paper(arguments: Namespace, start: Callable[[Task], ReadyKernel]) -> int:
    """Write the task file, and run the original code on it: 1 if it fails. Raises SuperError."""
    regex = regex_of(arguments.pattern, arguments.block)
    fields, output = draft_of(arguments)
    new_runs = partial(Runs, start=start, workers=2)
    with LiveCommand(lambda: "running the original code"):
        draft = loaded(fields, output)
        ran = [ran_twice(one, read_originals(draft), new_runs(draft), regex) for one in draft.experiments]
        if regex.block and not any(one.has_block for one in ran):
            raise SuperError("--block matches nothing that the commands print")
        complete(fields, ran, regex, are_named=bool(arguments.targets))
        if arguments.paper:
            text = paper_text(PaperText(file=fields["paper"]["file"]), output.parent)
            fields["paper"]["redact"] = redactions(text, [one.values for one in ran])
        paper = loaded(fields, output)
        write(output, text_of(fields))
        gold = Trial(
            files=read_originals(paper).files, commands=paper.experiments, seeds={"PYTHONHASHSEED": 2}
        )
        failures = failures_of(paper, new_runs(paper).all([gold]))
    values = counted(sum(len(one.values) for one in ran), "value")
    result = f"gold fails: {'; '.join(one.text for one in failures)}" if failures else "gold passes"
    print(printable_line(f"{output}: {counted(len(paper.functions), 'function')}, {values}; {result}"))
    for line in doubts(ran):
        print(printable_line(line))
    return 1 if failures else 0


def draft_of(arguments: Namespace) -> tuple[dict[str, Any], Path]:
    """The fields of the task, without its results and with all functions that it can mask, and its file."""
    name = arguments.repository
    named = parse(f"./{name}" if "/" not in name and Path(name).is_dir() else name)
    output = arguments.output or Path(f"{named.short}{TASK_SUFFIX}")
    if output.exists() and not arguments.force:
        raise SuperError(f"{output} exists: --force overwrites it")
    repository: dict[str, Any] = {**pin(named, output.parent), "provide": True}
    folder = fetch(Repository(**repository), base=output.parent)
    targets, commands = arguments.targets, arguments.commands
    digests = digests_of(folder, targets) if targets else candidates(folder, commands)
    if not digests:
        raise SuperError(f"{name}: no function to mask but in files of a command: --target names one")
    timeout = {"timeout": arguments.timeout} if arguments.timeout else {}
    fields = {
        "id": named.short,
        "set": "functions",
        "query": f"The folder `{folder.name}` has the code of a paper, without some of its functions.",
        "repository": repository,
        "paper": {"file": os.path.relpath(arguments.paper, output.parent)} if arguments.paper else None,
        "functions": [
            {"target": target, "sha256": digests[target], **description_of(state)}
            for target, state in side_effects(folder, digests).items()
        ],
        "experiments": [
            {"name": f"experiment {number}", "command": command, **timeout, "result": [{"exit": 0}]}
            for number, command in enumerate(commands, 1)
        ],
        "n": 1,
        "sandbox": sandbox_of(arguments, folder),
    }
    return fields, output


def description_of(state: Sequence[str]) -> dict[str, str]:
    """What a body must do besides its result, and no paper says."""
    return {"description": f"Sets {', '.join(f'`{name}`' for name in state)}."} if state else {}


def sandbox_of(arguments: Namespace, folder: Path) -> dict[str, Any] | None:
    # A task cannot name a folder.
    image = None if is_folder(arguments.image or "") else arguments.image
    # Otherwise an installed copy of the package would be found, or none.
    is_layout = any(folder.glob("src/*/*.py")) and not (folder / "src/__init__.py").exists()
    env = {"PYTHONPATH": "src"} if is_layout else None
    named = {"image": image, "packages": arguments.packages, "env": env}
    return {name: value for name, value in named.items() if value} or None


def loaded(fields: dict[str, Any], output: Path) -> Task:
    (task,) = load_tasks(output, shown=f"{output}, which is not written", text=text_of(fields))
    return task


def text_of(fields: dict[str, Any]) -> str:
    """The fields as YAML, with comments that say what is to be filled in."""
    return "".join(
        f"# {UNKNOWN[name]}\n"
        if value is None
        else (f"# {COMMENTS[name]}\n" if name in COMMENTS else "") + to_yaml({name: value})
        for name, value in fields.items()
    )


def ran_twice(one: Experiment, code: Originals, runs: Runs, regex: RegexValue) -> Ran:
    """Once with probes, once with another hash seed. Raises SuperError if it fails, or prints no value."""
    with tempfile.TemporaryDirectory() as logs:
        trials = [
            Trial(
                files=files, commands=[one], seeds={"PYTHONHASHSEED": seed, **more}, log=Path(logs, str(seed))
            )
            for seed, (files, more) in enumerate(((code.with_probes(), UNCOMPILED), (code.files, {})))
        ]
        results = runs.all(trials)
        printed = [path.read_text(encoding="utf-8") for path in sorted(Path(logs).iterdir())]
    texts = [text.removeprefix(heading(one.command)) for text in printed]
    if failures := failures_of(code.paper, results):
        hint = "; --timeout allows more time" if failures[0].exit_code is None else ""
        if missing := MISSING_MODULE.search("\n".join(texts)):
            hint = MISSING_PACKAGE.format(module=missing[1])
        raise SuperError(f"`{one.command}` fails with the original code: {failures[0].text}{hint}")
    found = [printed_in(regex, text) for text in texts]
    first, second = (run.numbers for run in found)
    values = {name: [number, second[name]] for name, number in first.items() if name in second}
    if not values:
        but = last_lines(texts[0]) or "nothing at all"
        raise SuperError(f"`{one.command}` prints nothing that --pattern matches, but: {but}")
    executed = {code.paper.functions[place].target for place in results[0].executed}
    return Ran(executed, values, found[0].hidden, found[0].has_block)


def doubts(ran: Sequence[Ran]) -> Iterator[str]:
    """What a person must look at, a line each."""
    if hidden := sum(one.hidden for one in ran):
        yield (
            f"{counted(hidden, 'value')} not taken, because a later one has the same name: --block, such as "
            "'epoch \\d+', tells them apart"
        )
    if differing := [name for one in ran for name, found in one.values.items() if are_different(found)]:
        yield f"other values in a second run, which sets the tolerance: {', '.join(differing)}"


def complete(fields: dict[str, Any], ran: Sequence[Ran], regex: RegexValue, *, are_named: bool) -> None:
    """Keep the functions that are executed, and add the results. Raises SuperError."""
    executed = set().union(*(one.executed for one in ran))
    if are_named and (idle := [one for one in fields["functions"] if one["target"] not in executed]):
        raise SuperError(f"no command executes {idle[0]['target']}")
    kept = [one for one in fields["functions"] if one["target"] in executed]
    fields["functions"] = [{"id": place, **one} for place, one in enumerate(kept)]
    for experiment, one in zip(fields["experiments"], ran, strict=True):
        needed = [each["id"] for each in fields["functions"] if each["target"] in one.executed]
        if not needed:
            why = f"`{experiment['command']}` executes no function of {fields['id']} to mask"
            raise SuperError(f"{why}: --target names one")
        experiment |= {"functions": needed} if len(needed) < len(kept) else {}
        experiment |= {"result": results_of(one.values, regex)}
