"""Finding files in a sandbox: where the kernel is, which files hold a text."""

import hashlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.inside import lookup
from pytest_super.kernel.inside.lookup import Watch, open_regular, search
from pytest_super.kernel.providers.local import LocalSandbox
from tests.kernel.conftest import FORKS


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox(run=FORKS)) as kernel:
        yield kernel


@pytest.fixture
def folder(kernel: Kernel, request: pytest.FixtureRequest) -> str:
    """A new folder in the sandbox, in which cells run."""
    path = f"{kernel.workdir}/{request.node.name}"
    result = kernel.execute(f"%mkdir {path}\n%cd -q {path}", timeout=30)
    assert result.text == ""
    return path


def found(tree: Path, **asked: Any) -> dict[str, Any]:
    """What the search gives in this process."""
    defaults = {"name": "*", "text": "", "hidden": True, "most": 100}
    defaults["seconds"] = math.inf
    return search(str(tree), **{**defaults, **asked})


def make(tree: Path, *names: str, data: bytes = b"here\n") -> None:
    for name in names:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# In a sandbox


def test_a_path_resolves_to_what_it_is_in_a_cell(kernel: Kernel, folder: str) -> None:
    assert kernel.files.resolve() == folder
    assert kernel.files.resolve("sub/../missing") == f"{folder}/missing"
    kernel.execute("%mkdir real\n!ln -s real link", timeout=30)
    assert kernel.files.resolve("link/file") == f"{folder}/real/file"
    kernel.execute("%cd -q link", timeout=30)
    assert kernel.files.resolve() == f"{folder}/real"
    assert kernel.files.resolve("/") == "/"


def test_directory_and_changes_are_known_during_a_cell_and_after_the_kernel_died(
    kernel: Kernel, folder: str
) -> None:
    assert kernel.files.changes(folder) == {}
    kernel.execute("import time; open('a', 'w').close(); time.sleep(600)", timeout=2)
    assert kernel.files.resolve() == folder
    assert list(kernel.files.changes(folder) or ()) == ["a"]
    kernel.interrupt()
    kernel.execute(f"import os; os.unlink('{folder}/a'); os._exit(1)", timeout=30)
    assert kernel.files.resolve() == kernel.workdir
    assert kernel.files.changes(folder) == {"a": ""}
    kernel.restart()


def test_a_text_is_found_in_the_files_below_a_folder(kernel: Kernel, folder: str) -> None:
    kernel.execute("%mkdir -p deep/er", timeout=30)
    kernel.files.write("deep/er/one.py", "naïve = 'naïve'\nnaïve\n".encode())
    kernel.files.write("two with space.txt", "nothing\nnaïve".encode())
    kernel.execute("with open(b'caf\\xe9', 'w') as file: n = file.write('au lait')", timeout=30)
    ((name, lines),) = kernel.files.search(folder, text="lait").found
    assert (lines, kernel.files.read(name)) == (1, b"au lait")
    result = kernel.files.search(text="naïve")
    assert result.folder == folder
    assert result.found == [("deep/er/one.py", 2), ("two with space.txt", 1)]
    assert (result.files, result.lines, result.is_complete) == (2, 3, True)
    assert kernel.files.search("deep", text="nothing").found == []


def test_a_folder_that_is_none_raises_what_listing_it_raises(kernel: Kernel, folder: str) -> None:
    kernel.files.write("file", b"")
    with pytest.raises(FileNotFoundError, match="gone"):
        kernel.files.search(f"{folder}/gone")
    with pytest.raises(NotADirectoryError):
        kernel.files.search("file")
    with pytest.raises(OSError, match="null"):
        kernel.files.resolve("a\0b")


# Which files


def test_names_may_be_patterns_and_have_folders(tmp_path: Path) -> None:
    make(tmp_path, "a/config.py", "b/config.py", "b/config.json", "odd[1].py")
    names = {
        "config.py": ["a/config.py", "b/config.py"],
        "*.json": ["b/config.json"],
        "b/config.py": ["b/config.py"],
        "b/*": ["b/config.json", "b/config.py"],
        "odd[1].py": ["odd[1].py"],
        "config": [],
    }
    assert {name: [path for path, _ in found(tmp_path, name=name)["found"]] for name in names} == names


def test_hidden_and_binary_files_pipes_and_links_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, ".git/config", ".env", "seen/.cache/x", "seen/x")
    make(tmp_path, "binary", data=b"\0here")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to(".")
    (tmp_path / "again").symlink_to("seen/x")
    assert found(tmp_path, text="here", hidden=False)["found"] == [["seen/x", 1]]
    assert len(found(tmp_path, text="here")["found"]) == 4
    assert len(found(tmp_path)["found"]) == 5


def test_more_files_than_are_named_are_counted(tmp_path: Path) -> None:
    make(tmp_path, *(f"f{number}" for number in range(7)))
    result = found(tmp_path, text="here", most=3)
    assert (len(result["found"]), result["files"], result["lines"]) == (3, 7, 7)


def changes(watch: Watch, tree: Path, **asked: Any) -> dict[str, str] | None:
    return watch.changes(str(tree), **{"most": 100, "largest": 9, "seconds": math.inf, **asked})


def test_a_watch_tells_what_was_made_changed_and_removed_since_the_last_time(tmp_path: Path) -> None:
    watch = Watch()
    make(tmp_path, "same", "changed", "removed", ".hidden", "sub/__pycache__/m.pyc")
    assert changes(watch, tmp_path) == changes(watch, tmp_path) == {}
    make(tmp_path, "changed", "sub/made", ".hidden", ".git/x", "sub/__pycache__/m.pyc", data=b"there")
    make(tmp_path, "large", data=b"0123456789")
    (tmp_path / "removed").unlink()
    (tmp_path / "link").symlink_to("same")
    there = hashlib.sha256(b"there").hexdigest()
    assert changes(watch, tmp_path) == {
        "changed": there,
        "large": "10 bytes",
        "link": "-> same",
        "removed": "",
        "sub/made": there,
    }
    # Its content and its time are old, but it came here later.
    os.replace(tmp_path / "same", tmp_path / "changed")
    assert list(changes(watch, tmp_path) or ()) == ["changed", "same"]


def test_a_watch_tells_no_part_of_what_takes_too_long(tmp_path: Path) -> None:
    watch = Watch()
    assert changes(watch, tmp_path) == {}
    make(tmp_path, "a", "b", "c")
    assert changes(watch, tmp_path, seconds=-1) is None
    assert list(changes(watch, tmp_path, most=2) or ()) == ["a", "b"]


def test_a_search_whose_time_is_over_gives_what_it_has(tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    assert not found(tmp_path, seconds=-1)["is_complete"]


def test_a_file_that_cannot_be_opened_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "bad", "good")

    def opened(path: str) -> Any:
        if path.endswith("bad"):
            raise OSError("it changed meanwhile")
        return open_regular(path)

    monkeypatch.setattr(lookup, "open_regular", opened)
    assert found(tmp_path, text="here")["found"] == [["good", 1]]


# How many lines


def test_lines_are_counted_and_not_occurrences(tmp_path: Path) -> None:
    make(tmp_path, "a", data=b"here, here\nthere\n\nelse\nhere")
    make(tmp_path, "long", data=b"x" * 3 * 2**20 + b"here\n")
    assert found(tmp_path, text="here")["found"] == [["a", 3], ["long", 1]]
