"""Unpacks archives of research code without letting them write outside their folder."""

import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from pytest_super.errors import InfrastructureError

TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".tar")
SUFFIXES = (*TAR_SUFFIXES, ".zip")

# The standard library's exceptions for broken or unsafe archives.
# KeyError, a LookupError: a hard link to a missing member. RuntimeError: an encrypted zip.
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
)


def unpack(archive: Path, folder: Path) -> None:
    """Raises InfrastructureError for an archive that is broken or has members outside of `folder`."""
    try:
        if archive.name.endswith(".zip"):
            _unpack_zip(archive, folder)
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter=_only_inside)
    except BROKEN as error:
        raise InfrastructureError(f"{archive.name} cannot be unpacked: {error}") from None


def _only_inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        # Some repositories contain links to files on their authors' machines; they would dangle here.
        return None


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            path = PurePosixPath(name.replace("\\", "/"))
            # `extractall` would unpack it to another place without an error.
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"the member {name!r} is outside of the folder")
        opened.extractall(folder)


def check_one_folder(folder: Path, name: str) -> None:
    """Raises InfrastructureError unless an unpacked source distribution consists of one folder."""
    entries = sorted(folder.iterdir())
    if len(entries) != 1 or not entries[0].is_dir() or entries[0].is_symlink():
        found = ", ".join(entry.name for entry in entries[:5]) or "nothing"
        raise InfrastructureError(
            f"{name} is not a source distribution: it should contain one folder, but has {found}"
        )
