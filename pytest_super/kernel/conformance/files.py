"""Reading, writing, listing and uploading files of the sandbox."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.conformance.support import MEGABYTE, printed, still_works

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.kernel.client import Kernel


ODD_NAMES = ["plain.txt", "with space.txt", "qu'o\"te;.txt", "é€😀.txt", "-dash", "{1}*?$HOME", "new\nline"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_files_are_read_back_unchanged(kernel: Kernel, name: str) -> None:
    data = bytes(range(256)) + b"\r\n\x00 no newline at the end"
    kernel.write_file(name, data)
    assert kernel.read_file(name) == data
    assert name in [entry.name for entry in kernel.list_files()]
    assert printed(kernel, f"print(len(open({name!r}, 'rb').read()))") == f"{len(data)}\n"


def test_names_that_are_not_utf8_can_be_listed_and_read(kernel: Kernel) -> None:
    printed(kernel, "with open(b'caf\\xe9', 'w') as file: n = file.write('au lait')")
    (name,) = [entry.name for entry in kernel.list_files() if entry.name.startswith("caf")]
    assert kernel.read_file(name) == b"au lait"


def test_large_files_work(kernel: Kernel) -> None:
    data = os.urandom(8 * MEGABYTE + 1)
    kernel.write_file("large", data)
    assert kernel.read_file("large") == data
    with pytest.raises(OSError, match="large"):
        kernel.read_file("large", limit=MEGABYTE)
    assert still_works(kernel)


def test_empty_files_work(kernel: Kernel) -> None:
    kernel.write_file("empty", b"")
    assert kernel.read_file("empty") == b""


def test_relative_paths_are_resolved_as_in_a_cell(kernel: Kernel) -> None:
    printed(kernel, "%mkdir sub\n%cd -q sub")
    kernel.write_file("here", b"1")
    assert printed(kernel, "print(open('here').read())") == "1\n"
    assert kernel.read_file(f"{kernel.workdir}/sub/here") == b"1"


def test_files_that_cannot_be_opened_raise_the_error_of_open(kernel: Kernel) -> None:
    for attempt in (lambda: kernel.read_file("no"), lambda: kernel.write_file("no/no", b"")):
        with pytest.raises(FileNotFoundError, match="'no"):
            attempt()
    with pytest.raises(IsADirectoryError):
        kernel.read_file("/tmp")
    with pytest.raises(NotADirectoryError):
        kernel.list_files("/etc/passwd")
    with pytest.raises(OSError, match="/dev/zero"):
        kernel.read_file("/dev/zero")


def test_a_pipe_is_not_a_file(kernel: Kernel) -> None:
    printed(kernel, "import os; os.mkfifo('alone'); os.mkfifo('held'); held = os.open('held', os.O_RDWR)")
    for name in ("alone", "held"):
        with pytest.raises(OSError, match=name):
            kernel.write_file(name, b"x")
        with pytest.raises(OSError, match=name):
            kernel.read_file(name)
    assert still_works(kernel)


def test_a_file_is_overwritten_in_place(kernel: Kernel) -> None:
    printed(kernel, "!echo old > script.sh; chmod 750 script.sh; ln -s script.sh link")
    kernel.write_file("link", b"new")
    assert printed(kernel, "!stat -c '%a %F' script.sh link; cat script.sh") == (
        "750 regular file\n777 symbolic link\nnew"
    )


def test_files_work_while_a_cell_runs(kernel: Kernel) -> None:
    kernel.execute("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)", timeout=0.1)
    kernel.write_file("go", b"")
    assert kernel.wait(30).outcome is Outcome.OK


def test_a_tree_is_uploaded_whole(kernel: Kernel, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "empty").mkdir(parents=True)
    (tree / "deep" / "naïve name.txt").write_text("text")
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("deep/naïve name.txt")
    (tree / "large").write_bytes(bytes(3 * MEGABYTE))
    kernel.upload(tree, "new/place")
    listed = {entry.name: (entry.kind, entry.size) for entry in kernel.list_files("new/place")}
    assert listed.keys() == {"deep", "run.sh", "link", "large"}
    assert listed["large"] == ("file", 3 * MEGABYTE)
    assert kernel.read_file("new/place/link") == b"text"
    assert printed(kernel, "!new/place/run.sh; ls -1N new/place/deep") == "ran\nempty\nnaïve name.txt\n"
