"""The fields of a task file that pin a repository: a commit, a release with its digest, or a folder."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from pytest_super.errors import InfrastructureError
from pytest_super.redaction import redacted
from pytest_super.sources.git import run_git
from pytest_super.sources.index import Index, IndexFile
from pytest_super.sources.release import source_distributions

if TYPE_CHECKING:
    from pytest_super.authoring.generate.repositories import Named

TIMEOUT = 120.0
ADVICE = "check its address and the network"
_COMMIT = re.compile(r"[0-9a-f]{40}")


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
    # `^{}` is the commit of an annotated tag.
    # A tag wins over a branch of the same name, as when git itself resolves a name.
    wanted = (
        [f"refs/tags/{version}^{{}}", f"refs/tags/{version}", f"refs/heads/{version}"]
        if version
        else ["HEAD"]
    )
    refs = remote_refs(url, wanted, cwd)
    found = next((refs[name] for name in wanted if name in refs), None)
    if found is None or not _COMMIT.fullmatch(found):
        missing = f"branch or tag {version}; a commit needs all 40 digits" if version else "commit yet"
        raise InfrastructureError(f"{redacted(url)} has no {missing}")
    return found


def remote_refs(url: str, names: list[str], cwd: Path) -> dict[str, str]:
    # `--`, because an address that begins with `-` would be an option.
    output = run_git("ls-remote", "--", url, *names, cwd=cwd, advice=ADVICE, timeout=TIMEOUT)
    lines = [line.split("\t") for line in output.splitlines()]
    return {name: commit for commit, name in (line for line in lines if len(line) == 2)}


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
    if not releases:
        raise InfrastructureError(f"{project} has no source distribution on the package index")
    known = ", ".join(map(str, sorted(releases)[-5:]))
    if version is None:
        valid = [each for each, file in releases.items() if not file.yanked]
        if not valid:
            raise InfrastructureError(
                f"{project}: all source distributions were yanked; name one as {project}==VERSION: {known}"
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
