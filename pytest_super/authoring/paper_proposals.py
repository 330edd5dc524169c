"""What a first task of a paper can contain: functions, results with tolerances, and what to redact."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from pytest_super.authoring.verify.gold_findings import are_different
from pytest_super.authoring.verify.leaks import values_in
from pytest_super.authoring.verify.papers.values import Spread, as_number
from pytest_super.authoring.verify.texts import Text
from pytest_super.errors import SuperError
from pytest_super.functions.masking import MaskedFunction, mask_file, masked_files
from pytest_super.functions.source import SEPARATOR, PythonSource, SourceError, definitions
from pytest_super.grading.values import matches, named_values
from pytest_super.json_values import loaded
from pytest_super.metrics.distinctive import NUMBER, distinctive_values
from pytest_super.metrics.leaves import is_number
from pytest_super.sources.paper import REDACTED
from pytest_super.tasks.grade import RegexValue
from pytest_super.tasks.yaml_writer import Flow

Values = dict[str, list[float]]
"""The numbers of an experiment by name, one for each run."""

# `name: 0.5`, `name = [tensor(0.5)]`, `"name": 0.5`, but not `loop.py:40: UserWarning: 3`. Times, dates,
# `nan` and `1,234.5` match too, and are dropped later: without that, a part of them would be a value.
PATTERN = (
    r"(?P<name>[A-Za-z][\w@%/. -]*?)(?<!\.py)(?<!Warning)\W? *[:=] *\[?(?:\w+\()?"
    r"(?P<value>(?>[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:[.,:_-]\d+)*|(?i:nan|inf)(?!\w))))"
    r"(?! ?(?:[mun]?s|secs?|seconds?|min|minutes?|h|hours?)\b(?! *[:=]))"
)
DURATION = re.compile(r"(?i)(?<![a-z])(((run|wall|cpu)?time|duration)s?|took|elapsed|sec(ond)?s?)(?![a-z\d])")
LEAST_LINES = 3
NOT_CODE = re.compile(r"(^|/)(\.|tests?/|test_|docs?/|build/|setup\.py|conftest\.py)")
# `python src/run.py`, `python -m src.run`.
NAMED_FILE = re.compile(r"([\w./-]+)\.py\b|-m +([\w.]+)")
# Of a number that both runs agree in, and of 0.
REL, ABS = 0.001, 1e-9


def regex_of(pattern: str | None, block: str | None) -> RegexValue:
    """Raises SuperError."""
    try:
        regex = RegexValue(pattern=pattern or PATTERN, block=block)
    except ValidationError as error:
        raise SuperError(f"--pattern or --block: it {error.errors()[0]['msg'].split(', ', 1)[1]}") from None
    if not regex.has_names:
        raise SuperError("--pattern needs the groups `name` and `value`: '(?P<name>.*): (?P<value>.*)'")
    return regex


def digests_of(folder: Path, targets: Sequence[str]) -> dict[str, str]:
    """Map qualified targets to digests. Raises SuperError for one that cannot be masked."""
    files = [masked_files(folder, [target]) for target in targets]
    return {
        f"{path}::{one.functions[0].name}": one.functions[0].sha256
        for each in files
        for path, one in each.items()
    }


def candidates(folder: Path, commands: Sequence[str]) -> dict[str, str]:
    """The digests of functions worth masking, by target; not of files that commands name."""
    # Those files are the experiments.
    found = [one for command in commands for one in NAMED_FILE.findall(command)]
    named = {posixpath.normpath(path or module.replace(".", "/")) for path, module in found}
    # After `cd src` or with `PYTHONPATH=src`.
    ends = tuple(f"/{one}" for one in named if not (folder / f"{one}.py").exists())
    return {
        f"{name}{SEPARATOR}{masked.name}": masked.sha256
        for path in sorted(folder.rglob("*.py"))
        if not (NOT_CODE.search(name := path.relative_to(folder).as_posix()) or path.is_symlink())
        and (stem := name.removesuffix(".py")) not in named
        and not stem.endswith(ends)
        for masked in maskable(name, path)
        if masked.body_lines >= LEAST_LINES
    }


def maskable(name: str, path: Path) -> Iterator[MaskedFunction]:
    # Such as a file of Python 2.
    with suppress(SourceError, OSError):
        source = PythonSource.read(name, path.read_bytes())
        for one in definitions(source):
            # `main` only puts others together, and a function in a function is masked with it.
            if one.node.name != "main" and (one.is_method or "." not in one.name):
                with suppress(SourceError):
                    yield from mask_file(source, [one.name]).functions


class Printed(NamedTuple):
    """What a run has printed."""

    numbers: dict[str, float]
    """The last one of each name."""
    hidden: int
    """Number of values before the last one of their name."""
    has_block: bool


def printed_in(regex: RegexValue, text: str) -> Printed:
    """Raises SuperError."""
    try:
        found = [(name, loaded(value or "", value or "")) for name, value in named_values(regex, text)]
        if regex.pattern == PATTERN:
            found = [(name, value) for name, value in found if not DURATION.search(name)]
        has_block = bool(regex.block and next(matches(regex.block, text), None))
    except TimeoutError:
        raise SuperError("the search for values takes too long: simplify --pattern and --block") from None
    last = {name: as_number(one) if isinstance(one, str) else one for name, one in found}
    numbers = {name: value for name, value in last.items() if is_number(value)}
    return Printed(numbers, len(found) - len(last), has_block)


def tolerance_of(numbers: list[float]) -> tuple[str, float]:
    """`rel` or `abs`, and how much."""
    if not are_different(numbers):
        return ("rel", REL) if numbers[0] else ("abs", ABS)
    ((kind, least),) = Spread(name="", values=numbers).tolerance.items()
    return kind, max(float(f"{least:.1e}"), REL)


def results_of(values: Values, regex: RegexValue) -> list[dict[str, Any]]:
    """The entries of `result`, one for each tolerance."""
    stated = regex.model_dump(include={"pattern", "block"}, exclude_none=True)
    groups: dict[tuple[str, float], dict[str, float]] = {}
    for name, numbers in values.items():
        groups.setdefault(tolerance_of(numbers), {})[name] = numbers[0]
    return [{"regex": stated, "expected": Flow(found), kind: most} for (kind, most), found in groups.items()]


def redactions(text: str, expected: Any) -> list[str]:
    """Patterns for the expected values in the text of a paper, as `verify` finds them."""
    values = list(distinctive_values(expected))
    patterns: list[str] = []
    while hits := values_in(Text(place="the paper", text=text), values):
        written = NUMBER.match(text, hits[0][0])
        assert written is not None
        patterns.append(rf"(?<!\w){re.escape(written[0].rstrip('.'))}(?!\w)")
        text = re.sub(patterns[-1], REDACTED, text)
    return patterns
