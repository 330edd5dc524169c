"""Reading, writing, listing and uploading files of the sandbox."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import MEGABYTE, printed, still_works

ODD_NAMES = ["plain.txt", "with space.txt", "qu'o\"te;.txt", "é€😀.txt", "-dash", "{1}*?$HOME", "new\nline"]


def test_files_of_any_name_and_size_are_read_back_unchanged(shared_kernel: Kernel) -> None:
    data = bytes(range(256)) + b"\r\n\x00 no newline at the end"
    for name in ODD_NAMES:
        shared_kernel.files.write(name, data)
        assert shared_kernel.files.read(name) == data
        assert printed(shared_kernel, f"print(len(open({name!r}, 'rb').read()))") == f"{len(data)}\n"
    assert {*ODD_NAMES} <= {entry.name for entry in shared_kernel.files.entries()}
    shared_kernel.files.write("empty", b"")
    assert shared_kernel.files.read("empty") == b""
    large = os.urandom(8 * MEGABYTE + 1)
    shared_kernel.files.write("large", large)
    assert shared_kernel.files.read("large") == large
    with pytest.raises(OSError, match="large"):
        shared_kernel.files.read("large", limit=MEGABYTE)
    assert still_works(shared_kernel)


def test_names_that_are_not_utf8_can_be_listed_and_read(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "with open(b'caf\\xe9', 'w') as file: n = file.write('au lait')")
    (name,) = [entry.name for entry in shared_kernel.files.entries() if entry.name.startswith("caf")]
    assert shared_kernel.files.read(name) == b"au lait"


def test_relative_paths_are_resolved_as_in_a_cell(kernel: Kernel) -> None:
    printed(kernel, "%mkdir sub\n%cd -q sub")
    kernel.files.write("here", b"1")
    assert printed(kernel, "print(open('here').read())") == "1\n"
    assert kernel.files.read(f"{kernel.workdir}/sub/here") == b"1"


def test_what_cannot_be_opened_raises_the_error_of_open_and_delays_nothing(
    shared_kernel: Kernel, tmp_path: Path
) -> None:
    files = shared_kernel.files
    for attempt in (lambda: files.read("no"), lambda: files.write("no/no", b"")):
        with pytest.raises(FileNotFoundError, match="'no"):
            attempt()
    with pytest.raises(IsADirectoryError):
        files.read("/tmp")
    with pytest.raises(NotADirectoryError):
        files.entries("/etc/passwd")
    code = "import os; os.mkfifo('alone'); os.mkfifo('held'); held = os.open('held', os.O_RDWR)"
    printed(shared_kernel, code)
    for name in ("/dev/zero", "alone", "held"):
        with pytest.raises(OSError, match=name):
            files.read(name)
    for name in ("alone", "held"):
        with pytest.raises(OSError, match=name):
            files.write(name, b"x")
    with pytest.raises(FileNotFoundError):
        files.upload(tmp_path / "missing", "new")
    assert still_works(shared_kernel)
    files.write("after", b"1")
    assert files.read("after") == b"1"


def test_a_file_is_overwritten_in_place(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "!echo old > script.sh; chmod 750 script.sh; ln -s script.sh link")
    shared_kernel.files.write("link", b"new")
    assert printed(shared_kernel, "!stat -c '%a %F' script.sh link; cat script.sh") == (
        "750 regular file\n777 symbolic link\nnew"
    )


def test_files_work_while_a_cell_runs(shared_kernel: Kernel) -> None:
    shared_kernel.execute("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)", timeout=0.1)
    shared_kernel.files.write("go", b"")
    assert shared_kernel.wait(30).outcome is Outcome.OK


def test_a_tree_is_uploaded_whole_but_for_what_python_compiled(kernel: Kernel, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "__pycache__").mkdir(parents=True)
    (tree / "deep" / "__pycache__" / "m.cpython-311.pyc").write_bytes(b"")
    (tree / "deep" / "empty").mkdir()
    (tree / "deep" / "naïve name.txt").write_text("text")
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("deep/naïve name.txt")
    (tree / "large").write_bytes(bytes(3 * MEGABYTE))
    kernel.files.upload(tree, "new/place")
    listed = {entry.name: (entry.kind, entry.size) for entry in kernel.files.entries("new/place")}
    assert listed.keys() == {"deep", "run.sh", "link", "large"}
    assert listed["large"] == ("file", 3 * MEGABYTE)
    assert kernel.files.read("new/place/link") == b"text"
    assert printed(kernel, "!new/place/run.sh; ls -1N new/place/deep") == "ran\nempty\nnaïve name.txt\n"


def test_a_link_that_leads_to_itself_is_listed(shared_kernel: Kernel) -> None:
    printed(shared_kernel, "!mkdir loops; ln -s loop loops/loop; mkfifo loops/pipe")
    listed = [(entry.name, entry.kind) for entry in shared_kernel.files.entries("loops")]
    assert listed == [("loop", "link"), ("pipe", "other")]


def test_digests_are_of_regular_files_and_follow_no_link(shared_kernel: Kernel) -> None:
    printed(
        shared_kernel,
        "!mkdir -p tree/sub; cd tree; printf abc > a; printf x > sub/run.sh; chmod +x sub/run.sh; "
        "ln -s a link; ln -s sub folder; mkfifo pipe",
    )
    found = {file.name: file for file in shared_kernel.files.digests("tree").files}
    assert found.keys() == {"a", "sub/run.sh"}
    assert (found["a"].size, found["a"].sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    assert [found[name].is_executable for name in ("a", "sub/run.sh")] == [False, True]
    assert [file.name for file in shared_kernel.files.digests("tree/a").files] == [""]
    with pytest.raises(OSError, match="tree/link"):
        shared_kernel.files.digests("tree/link")
    with pytest.raises(FileNotFoundError):
        shared_kernel.files.digests("tree/missing")
    printed(shared_kernel, "!mkdir many; truncate -s 200M many/file")
    assert not shared_kernel.files.digests("many", seconds=0.0).is_complete


def test_files_links_and_folders_are_removed(shared_kernel: Kernel) -> None:
    printed(
        shared_kernel,
        "!mkdir -p gone/sub kept; touch gone/sub/a kept/b; ln -s ../kept gone/link; ln -s kept link",
    )
    for path in ("gone", "link", "never"):
        shared_kernel.files.remove(path)
    assert printed(shared_kernel, "!ls -d gone link kept/* 2>/dev/null") == "kept/b\n"


def test_an_archive_is_unpacked_over_whatever_is_in_its_place(shared_kernel: Kernel, tmp_path: Path) -> None:
    archive = archive_of(tmp_path, {"new/deep/a": b"1" * MEGABYTE, "existing/b": b"2"})
    printed(shared_kernel, "!mkdir -m 700 existing; echo old > existing/b")
    shared_kernel.files.unpack(archive, ".")
    assert shared_kernel.files.read("new/deep/a") == b"1" * MEGABYTE
    assert printed(shared_kernel, "!stat -c %a existing existing/b; cat existing/b") == "700\n755\n2"
    deep = "d/" * 1100
    names = ["folder", "file/a", "nowhere/a", "loop/a", "link", "sub/folder", f"{deep}a"]
    printed(
        shared_kernel,
        "!mkdir -p over/folder/a over/sub/folder && cd over && touch file target && "
        "ln -s /nonexistent/x nowhere && ln -s loop loop && ln -s target link",
    )
    shared_kernel.files.unpack(archive_of(tmp_path, dict.fromkeys(names, b"new")), "over")
    for name in names:
        assert shared_kernel.files.read(f"over/{name}") == b"new"
    assert shared_kernel.files.read("over/target") == b""
    shared_kernel.files.remove("over")
    assert printed(shared_kernel, "!ls -d over 2>/dev/null") == ""


def archive_of(folder: Path, files: dict[str, bytes]) -> Path:
    archive = folder / "files.tar"
    with tarfile.open(archive, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return archive
