"""A fake kernel whose files are those of a real folder, for tests of tools that work on files."""

import errno
import os
from pathlib import Path
from typing import Any

from pytest_super.kernel.files import READ_LIMIT, FileSearch
from pytest_super.kernel.inside.lookup import open_regular, search
from pytest_super.testing import FakeFiles, FakeKernel


class FolderFiles(FakeFiles):
    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.directory = directory

    def resolve(self, path: str = ".") -> str:
        return os.path.realpath(os.path.join(self.directory, path))

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        with open_regular(os.path.join(self.directory, path)) as file:
            data: bytes = file.read(limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, "Larger than allowed", path)
        return data

    def write(self, path: str, data: bytes) -> None:
        with open(os.path.join(self.directory, path), "wb") as file:
            file.write(data)

    def search(self, path: str = ".", **asked: Any) -> FileSearch:
        wanted = {"name": "*", "text": "", "hidden": True, "most": 1000, "seconds": 60.0}
        return FileSearch(**search(self.resolve(path), **{**wanted, **asked}))


class FolderKernel(FakeKernel):
    """In a cell `cd(path)` changes the directory, as `%cd` does in a real one."""

    files: FolderFiles

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.realpath(folder)
        self.workdir = self.folder
        super().__init__()

    def _reset(self) -> None:
        super()._reset()
        self.files = FolderFiles(self.folder)
        self._namespace["cd"] = self._cd

    def _cd(self, path: str) -> None:
        self.files.directory = self.files.resolve(path)
