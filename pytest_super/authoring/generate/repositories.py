"""Repositories as users name them, the ids of their tasks, and the fields of a task file that pin them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.redaction import redacted
from pytest_super.sources.git import run_git
from pytest_super.sources.index import Index, IndexFile
from pytest_super.sources.release import source_distributions
from pytest_super.tasks.fields import legal_id
from pytest_super.tasks.task import TASK_SUFFIX

SCHEMES = ("https", "http", "ssh", "git", "file")
LONGEST_ID = 100
# Seconds of one question to a git server.
TIMEOUT = 120.0
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!//).+")
_PROJECT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==(?P<version>[A-Za-z0-9][\w.!+-]*))?", re.ASCII
)
_COMMIT = re.compile(r"[0-9a-f]{40}")


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
    place, at, version = text[start:].partition("@")
    if not place or (at and not version):
        raise SuperError(f"{redacted(text)} names no repository: write it as URL or URL@COMMIT")
    return Named(text=text, kind="git", place=text[:start] + place, version=version or None)


def check_address(text: str) -> None:
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise SuperError(f"{redacted(text)}: the scheme of a git URL is one of {', '.join(SCHEMES)}")
    user, at, _ = parts.netloc.rpartition("@")
    # The task file would contain it. A user's name alone, as in ssh://git@host, is not a secret.
    if at and (":" in user or parts.scheme != "ssh"):
        raise SuperError(
            f"{redacted(text)}: leave the password out of the URL; git's credential helpers can provide it"
        )


def ids_of(named: Iterable[Named], taken: set[str], output: Path) -> dict[str, str]:
    """The id of each repository's task, by its text. One that is taken gets a digest as its suffix."""
    ids: dict[str, str] = {}
    for each in named:
        name = each.short
        if name in taken or name in ids.values() or (output / f"{name}{TASK_SUFFIX}").exists():
            name = f"{name}-{hashlib.sha256(each.text.encode()).hexdigest()[:8]}"
        ids[each.text] = name
    return ids


def pin(named: Named, output: Path) -> dict[str, str]:
    """The fields of `repository` in a task, without `provide`. Raises InfrastructureError."""
    if named.kind == "git":
        return {"git": named.place, "commit": commit_of(named.place, named.version, output)}
    if named.kind == "index":
        return release_of(named.place, named.version)
    folder, base = Path(named.place), output.resolve()
    if folder == base or not folder.is_relative_to(base):
        raise InfrastructureError(
            f"{named.text} is not inside {output}: a task can only name a folder next to its file; move it "
            "there, or name a git repository as file:///PATH"
        )
    return {"path": folder.relative_to(base).as_posix()}


def commit_of(url: str, version: str | None, cwd: Path) -> str:
    """The commit of a branch or tag, by default of the default branch. Raises InfrastructureError."""
    if version and _COMMIT.fullmatch(version.lower()):
        return version.lower()
    # `^{}` is the commit of an annotated tag. A tag wins over a branch of the same name, as in git itself.
    tag = f"refs/tags/{version}"
    names = [f"{tag}^{{}}", tag, f"refs/heads/{version}"] if version else ["HEAD"]
    # `--`, because an address that begins with `-` would be an option.
    output = run_git(
        *("ls-remote", "--", url, *names),
        cwd=cwd,
        advice="check its address and the network",
        timeout=TIMEOUT,
    )
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in output.splitlines())}
    found = next((commits[name] for name in names if name in commits), None)
    if found is None or not _COMMIT.fullmatch(found):
        missing = f"branch or tag {version}; a commit needs all 40 digits" if version else "commit yet"
        raise InfrastructureError(f"{redacted(url)} has no {missing}")
    return found


def release_of(project: str, version: str | None) -> dict[str, str]:
    """The given release, or the newest one with a source distribution. Raises InfrastructureError."""
    with Index() as index:
        releases = source_distributions(index, project)
        chosen = choose(releases, project, version)
        file = releases[chosen]
        digest = file.sha256 or digest_of(index, file)
    return {"pypi": project, "version": version or str(chosen), "sha256": digest}


def choose(releases: dict[Version, IndexFile], project: str, version: str | None) -> Version:
    """A yanked release is chosen only by its version. Raises InfrastructureError."""
    known = ", ".join(map(str, sorted(releases)[-5:])) or "none"
    if version is None:
        valid = [each for each, file in releases.items() if not file.yanked]
        if not valid:
            raise InfrastructureError(
                f"{project} has no source distribution on the package index that was not yanked; name a "
                f"yanked one as {project}==VERSION; known: {known}"
            )
        # As with pip, a pre-release is used only if there is nothing else.
        return max([each for each in valid if not each.is_prerelease] or valid)
    try:
        wanted = Version(version)
    except InvalidVersion:
        raise InfrastructureError(f"{project}: {version} is not a version") from None
    if wanted not in releases:
        raise InfrastructureError(
            f"{project} {version} has no source distribution; the newest that have one are {known}"
        )
    return wanted


def digest_of(index: Index, file: IndexFile) -> str:
    digest = hashlib.sha256()
    for chunk in index.read(file.url):
        digest.update(chunk)
    return digest.hexdigest()
