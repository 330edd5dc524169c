"""Provides a release from the package index as a folder: its source distribution, verified and unpacked.

We have our own client, because only two GETs are needed: the libraries (unearth, pypi-simple) have many
dependencies, save few lines, and do not read pip's configuration either.
"""

import hashlib
import re
from contextlib import suppress
from pathlib import Path

from packaging.version import InvalidVersion, Version

from pytest_super.errors import InfrastructureError
from pytest_super.redaction import redacted
from pytest_super.sources.archive import SUFFIXES, check_one_folder, unpack
from pytest_super.sources.index import Index, IndexFile
from pytest_super.sources.store import store, stored, workshop


def fetch_release(project: str, version: str, sha256: str, *, cache: Path) -> Path:
    """The top folder of the source distribution with this digest. Raises InfrastructureError."""
    place = cache / "pypi" / sha256
    if found := stored(place):
        return found
    with workshop(cache) as work, Index() as index:
        file = find_release(index, project, version, sha256)
        archive = work / file.name
        _download(index, file, archive, sha256)
        unpacked = work / "unpacked"
        unpacked.mkdir()
        unpack(archive, unpacked)
        check_one_folder(unpacked, file.name)
        return store(unpacked, place)


def find_release(index: Index, project: str, version: str, sha256: str) -> IndexFile:
    """The source distribution with the digest, or with none declared. Raises InfrastructureError."""
    files: list[IndexFile] = []
    errors: list[str] = []
    for url in index.urls:
        try:
            files += index.files(url, normalized(project))
        except InfrastructureError as error:
            # A further index can have the file; the error matters only if none has.
            errors.append(str(error))
        # By digest and not by name: the task pins the digest.
        if same := [file for file in files if file.sha256 == sha256 and file.name.endswith(SUFFIXES)]:
            return same[0]
    sources = [file for file in files if file.name.endswith(SUFFIXES)]
    wanted = normalized(f"{project}-{version}")
    named = [file for file in sources if normalized(_without_suffix(file.name)) == wanted]
    if unchecked := [file for file in named if not file.sha256]:
        return unchecked[0]
    if errors:
        raise InfrastructureError("\n".join(errors))
    if named:
        raise _other_digest(named[0].name, expected=sha256, actual=str(named[0].sha256))
    raise InfrastructureError(f"{project} {version}: {_why_not_found(files, sources, sha256)}")


def later_releases(project: str, version: str, most: int) -> list[tuple[str, IndexFile]]:
    """The `most` newest later source distributions, withdrawn ones too. Raises InfrastructureError."""
    with Index() as index:
        found = source_distributions(index, project)
    later = sorted((one for one in found if one > Version(version)), reverse=True)
    return [(str(one), found[one]) for one in later[:most]]


def source_distributions(index: Index, project: str) -> dict[Version, IndexFile]:
    """Map a project's versions to one source distribution each. Raises InfrastructureError."""
    found: dict[Version, IndexFile] = {}
    for url in index.urls:
        for file in index.files(url, normalized(project)):
            name, _, text = _without_suffix(file.name).rpartition("-")
            if file.name.endswith(SUFFIXES) and normalized(name) == normalized(project):
                with suppress(InvalidVersion):
                    version = Version(text)
                    # Of two files of one release, the one that was not yanked is used.
                    if version not in found or found[version].yanked > file.yanked:
                        found[version] = file
    return found


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _without_suffix(name: str) -> str:
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))


def _why_not_found(files: list[IndexFile], sources: list[IndexFile], sha256: str) -> str:
    if any(file.sha256 == sha256 for file in files):
        return "repository.sha256 is the digest of a wheel; use that of the source distribution"
    if not sources:
        return "the package index has no source distribution; check repository"
    known = ", ".join(file.name for file in sources[-5:])
    return f"the package index has no such source distribution, but {known}; check repository"


def _other_digest(name: str, *, expected: str, actual: str) -> InfrastructureError:
    return InfrastructureError(
        f"{name} has sha256 {actual}, but the task pins {expected}: check repository.version and .sha256"
    )


def _download(index: Index, file: IndexFile, archive: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    try:
        with archive.open("wb") as target:
            for chunk in index.read(file.url):
                digest.update(chunk)
                target.write(chunk)
    except OSError as error:
        raise InfrastructureError(f"{redacted(file.url)} cannot be stored: {error}") from None
    if digest.hexdigest() != sha256:
        raise _other_digest(file.name, expected=sha256, actual=digest.hexdigest())
