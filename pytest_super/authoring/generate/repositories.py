"""Repositories as users name them: parsed, checked, and given task ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pytest_super.errors import SuperError
from pytest_super.redaction import redacted
from pytest_super.tasks.fields import legal_id
from pytest_super.tasks.task import TASK_SUFFIX

SCHEMES = ("https", "http", "ssh", "git", "file")
LONGEST_ID = 100
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!//).+")
_PROJECT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==(?P<version>[A-Za-z0-9][\w.!+-]*))?", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class Named:
    """A repository as it was named, before anything is fetched."""

    text: str
    kind: Literal["git", "index", "folder"]
    place: str
    """URL, project, or path."""
    version: str | None = None
    """Branch, tag, commit or release; None for the newest."""

    @property
    def short(self) -> str:
        """A legal id for the task."""
        place = self.place.removesuffix(".git").rstrip("/").replace(":", "/")
        is_local = self.kind == "folder" or place.startswith("file/")
        parts = [part for part in place.split("/") if part][-1 if is_local else -2 :]
        return legal_id("-".join(parts).lower())[:LONGEST_ID].rstrip("-._,") or "repository"


def parse(text: str) -> Named:
    """Raises SuperError for a text that does not name a repository."""
    if not text.isprintable():
        raise SuperError(f"{text!r} has characters that cannot be in the name of a repository")
    if "://" in text or _SCP.fullmatch(text):
        return parse_git(text)
    if "/" in text or text in (".", ".."):
        if not Path(text).is_dir():
            raise SuperError(f"{text}: there is no such folder; write a git repository as its URL")
        return Named(text=text, kind="folder", place=str(Path(text).resolve()))
    found = _PROJECT.fullmatch(text)
    if not found:
        raise SuperError(
            f"{text!r} is not a git URL, not a NAME or NAME==VERSION of the package index, not a folder"
        )
    return Named(text=text, kind="index", place=found["name"], version=found["version"])


def parse_git(text: str) -> Named:
    # Only an `@` after the host precedes a version; an earlier one follows the name of a user.
    path = re.search(r"://[^/]*/|(?<!:)[^:/]+:(?!//)", text)
    start = path.end() if path else len(text)
    if "://" in text:
        check_address(text)
    place, at, version = text[start:].rpartition("@")
    if not at:
        place, version = version, ""
    if not place or (at and not version):
        raise SuperError(f"{redacted(text)} names no repository: write it as URL or URL@COMMIT")
    return Named(text=text, kind="git", place=text[:start] + place, version=version or None)


def check_address(text: str) -> None:
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise SuperError(f"{redacted(text)}: the scheme of a git URL is one of {', '.join(SCHEMES)}")
    user, at, _ = parts.netloc.rpartition("@")
    # The task file would contain it.
    # A user's name alone, as in ssh://git@host, is not a secret.
    if at and (":" in user or parts.scheme != "ssh"):
        raise SuperError(
            f"{redacted(text)}: leave the password out of the URL; git's credential helpers can provide it"
        )


def read_all(texts: Iterable[str], lists: Iterable[Path]) -> list[Named]:
    """Each repository once, in order. Raises SuperError with all errors, those of a list with their line."""
    named: dict[str, Named] = {}
    errors: list[str] = []
    for place, text in [
        *(("", text) for text in texts),
        *(pair for path in lists for pair in lines_of(path)),
    ]:
        try:
            named.setdefault(text, parse(text))
        except SuperError as error:
            errors.append(f"{place}{error}")
    if errors:
        raise SuperError("\n".join(errors))
    if not named:
        raise SuperError("name a repository, or use --list for a file with one per line")
    return list(named.values())


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each line that is neither blank nor a comment. Raises SuperError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SuperError(f"--list: {path} cannot be read: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"{path}:{number}: ", line.strip()


def ids_of(named: Iterable[Named], known: Mapping[str, str], output: Path) -> dict[str, str]:
    """The id of each repository's task, by its text; `known` are the ids of earlier runs, which stay.

    An id that is taken, for example by a task file of another origin, gets a part of a digest as suffix.
    """
    taken, ids = set(known.values()), dict(known)
    for each in named:
        if each.text in ids:
            continue
        name = each.short
        if name in taken or (output / f"{name}{TASK_SUFFIX}").exists():
            name = f"{name}-{hashlib.sha256(each.text.encode()).hexdigest()[:8]}"
        taken.add(name)
        ids[each.text] = name
    return ids
