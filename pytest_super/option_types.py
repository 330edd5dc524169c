"""The types of option values: each parses a text or a path, or raises ValueError with what is wrong."""

from __future__ import annotations

import json
import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def told(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """`parse` with its own error messages, which argparse does not show."""

    def checked(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            from pytest_super.redaction import without_secret

            raise ArgumentTypeError(f"{without_secret(text)!r}: {error}") from None

    return checked


def positive(text: str) -> int:
    number = int(text) if re.fullmatch(r"\s*[+-]?\d+\s*", text) else 0
    if number < 1:
        raise ValueError("must be a whole number of at least 1")
    return number


def machines(text: str) -> tuple[str, ...]:
    """The machine of each worker: `slurm`, or an address for ssh."""
    kind, colon, count = text.partition(":")
    if kind == "slurm" and colon:
        return ("slurm",) * positive(count)
    found: list[str] = []
    for one in text.split(","):
        named = re.fullmatch(r"(?:(\d+)\*)?(ssh://[^/\s]+)", one.strip())
        if named is None:
            raise ValueError(
                "must be slurm:N, such as slurm:6, or machines such as 4*ssh://a,4*ssh://me@b:22"
            )
        found += [named[2]] * positive(named[1] or "1")
    return tuple(found)


def arguments(text: str) -> tuple[str, ...]:
    """The words of a command line."""
    return tuple(shlex.split(text))


# What `adaptive` stands for.
LEAST_EPOCHS, MOST_EPOCHS = 1, 10
PASS_CHANCE = 0.88


@dataclass(frozen=True)
class Epochs:
    """How often a task is tried: from `least` to `most` times, as long as the gates are not decided."""

    least: int
    most: int

    @property
    def is_adaptive(self) -> bool:
        return self.most > self.least

    def __str__(self) -> str:
        return f"{self.least}-{self.most}" if self.is_adaptive else f"{self.least}"


def epochs(text: str) -> Epochs:
    if text.strip() == "adaptive":
        return Epochs(LEAST_EPOCHS, MOST_EPOCHS)
    least, dash, most = text.partition("-")
    try:
        found = Epochs(positive(least), positive(most) if dash else positive(least))
    except ValueError:
        raise ValueError("must be a whole number of at least 1, adaptive, or a range such as 1-10") from None
    if dash and found.least >= found.most:
        raise ValueError("must be a range that rises, such as 1-10")
    return found


def amount(text: str) -> float:
    value = number(text)
    if value <= 0:
        raise ValueError("must be more than 0")
    return value


def share(text: str) -> float:
    value = parsed(text)
    if not 0 <= value <= 1:
        raise ValueError("must be a number between 0 and 1, such as 0.05")
    return value


def number(text: str) -> float:
    value = parsed(text)
    if not isfinite(value):
        raise ValueError("must be a number")
    return value


def parsed(text: str) -> float:
    """NaN for what is not a number."""
    try:
        return float(text)
    except ValueError:
        return nan


def sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({positive(part) for part in text.split(",")}))
    except ValueError:
        raise ValueError("must be whole numbers of at least 1, such as 1,2") from None


@dataclass(frozen=True)
class Sample:
    """How many tasks are tried, and the seed of their choice."""

    size: int
    seed: int


def sample(text: str) -> Sample:
    size, colon, seed = text.partition(":")
    if colon and not re.fullmatch(r"\d{1,18}", seed):
        raise ValueError("must be a number of tasks, or SIZE:SEED with two whole numbers")
    return Sample(positive(size), int(seed or 0))


RETRIEVALS = ("oracle", "search", "none")


@dataclass(frozen=True)
class Retrieval:
    """What of the paper and the code a prompt has besides the task."""

    source: str = "search"
    """One of RETRIEVALS."""
    tokens: int = 16_000
    """About the most, together with the function's file."""

    def __str__(self) -> str:
        return f"{self.source}:{self.tokens}"


def retrieval(text: str) -> Retrieval:
    source, colon, tokens = text.partition(":")
    if source not in RETRIEVALS:
        # Not at the top: only a message needs it.
        from pytest_super.words import did_you_mean

        meant = did_you_mean(source, RETRIEVALS)
        raise ValueError(f"must be {', '.join(RETRIEVALS)}, or one of them with :TOKENS{meant}")
    return Retrieval(source, positive(tokens)) if colon else Retrieval(source)


def chance(text: str) -> float:
    value = parsed(text)
    if not 0 < value < 1:
        raise ValueError("must be a number more than 0 and less than 1, such as 0.88")
    return value


def points(text: str) -> float:
    value = number(text)
    if not 0 < value <= 100:
        raise ValueError("must be a number of points, more than 0 and at most 100")
    return value


def file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def file_text(path: Path) -> str:
    try:
        return file(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error.reason}") from None


def folder(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}")
    return path


def mount(text: str) -> tuple[str, str]:
    # The last colon, because a name on the host can contain others.
    host, _, inside = text.rpartition(":")
    if not (host.startswith("/") and inside.startswith("/")):
        raise ValueError("write it as /folder/of/host:/folder/inside")
    return host, inside


def word(text: str) -> str:
    # Command lines and variables are written to disk, and code in the sandbox can read them.
    refuse_secret(text, "no key goes into a sandbox; the gateway has that of the model")
    return text


def variable(text: str) -> tuple[str, str]:
    name, equals, value = word(text).partition("=")
    if not (name.isidentifier() and equals):
        raise ValueError("write it as NAME=VALUE")
    return name, value


def parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError("write it as KEY=VALUE")
    # Parameters are written to disk.
    refuse_secret(text, "keys come from the environment, as for litellm")
    try:
        found: Any = json.loads(value)
    except (ValueError, RecursionError):
        found = value
    # The gateway applies it; everything else is checked by litellm or the provider.
    if name == "timeout" and not (isinstance(found, int | float) and 0 < found < inf):
        raise ValueError("must be a number of seconds above 0")
    return name, found


def refuse_secret(text: str, why: str) -> None:
    # Not at the top: a session without an agent needs no more than the standard library.
    from pytest_super.redaction import may_hold_secret

    if may_hold_secret(text):
        raise ValueError(why)
