"""Reading, writing, listing and uploading files of the sandbox."""

import os
from pathlib import Path

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import MEGABYTE, printed, still_works

ODD_NAMES = ["plain.txt", "with space.txt", "qu'o\"te;.txt", "é€😀.txt", "-dash", "{1}*?$HOME", "new\nline"]


def test_files_of_any_name_and_size_are_read_back_unchanged(shared_kernel: Kernel) -> None:
    files, data = shared_kernel.files, bytes(range(256)) + b"\r\n\x00 no newline at the end"
    for name in ODD_NAMES:
        files.write(name, data)
        assert files.read(name) == data
        assert printed(shared_kernel, f"print(len(open({name!r}, 'rb').read()))") == f"{len(data)}\n"
    assert {*ODD_NAMES} <= {entry.name for entry in files.entries()}
    large = os.urandom(8 * MEGABYTE + 1)
    files.write("large", large)
    assert files.read("large") == large
    with pytest.raises(OSError, match="large"):
        files.read("large", limit=MEGABYTE)
    assert still_works(shared_kernel)


def test_what_cannot_be_opened_raises_the_error_of_open(shared_kernel: Kernel) -> None:
    with pytest.raises(FileNotFoundError, match="'no/no"):
        shared_kernel.files.write("no/no", b"")
    with pytest.raises(NotADirectoryError):
        shared_kernel.files.entries("/etc/passwd")


def test_a_tree_is_uploaded_and_removed(shared_kernel: Kernel, tmp_path: Path) -> None:
    files = shared_kernel.files
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "naïve name.txt").write_text("text")
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "link").symlink_to("deep/naïve name.txt")
    files.upload(tmp_path, "new/place")
    listed = {(entry.name, entry.kind) for entry in files.entries("new/place")}
    assert listed == {("deep", "folder"), ("run.sh", "file"), ("link", "link")}
    assert files.read("new/place/link") == b"text"
    assert printed(shared_kernel, "!new/place/run.sh; ls -1N new/place/deep") == "ran\nnaïve name.txt\n"
    files.remove("new")
    assert "new" not in {entry.name for entry in files.entries()}
