"""SWE-agent's tools on real files: what they show and change, and that the published runs saw the same."""

import os
import re
import warnings
from pathlib import Path

import pytest

from pytest_super.agents.swe.tools import Editor, introduced_error
from pytest_super.agents.swe.window import LARGEST
from pytest_super.functions import bounded
from pytest_super.store.trajectory import Action
from tests.unit.folder_kernel import FolderKernel


class Editing:
    """A folder, a kernel in it, and an editor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = FolderKernel(folder)
        self.editor = Editor()

    def file(self, name: str, data: bytes | str | int) -> Path:
        """Make a file; a number stands for so many lines `line 1`, `line 2`, …"""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, int):
            data = "".join(f"line {number}\n" for number in range(1, data + 1))
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def ask(self, content: str) -> tuple[str, str]:
        action = Action(type=re.split(r"[\s(]", content)[0], content=content)
        return self.editor.tool(action)(self.kernel.files)  # type: ignore[arg-type]

    def do(self, content: str) -> str:
        observation, outcome = self.ask(content)
        assert outcome == "ok", observation
        return observation

    def fail(self, content: str) -> str:
        observation, outcome = self.ask(content)
        assert outcome == "error", observation
        return observation

    def shown(self, content: str) -> tuple[int, int]:
        """The first and the last line that the window shows."""
        numbers = re.findall(r"^(\d+):", self.do(content), re.MULTILINE)
        return int(numbers[0]), int(numbers[-1])


@pytest.fixture
def bench(tmp_path: Path) -> Editing:
    return Editing(tmp_path)


# Windows


def test_a_file_is_shown_with_its_path_its_length_and_numbered_lines(bench: Editing) -> None:
    bench.file("sub/a.py", "x = 1\n\ny = 2")
    assert bench.do("open sub/../sub/a.py") == (
        f"[File: {bench.kernel.folder}/sub/a.py (3 lines total)]\n1:x = 1\n2:\n3:y = 2"
    )


def test_a_long_file_is_shown_by_windows_that_say_what_lies_beyond(bench: Editing) -> None:
    bench.file("long", 250)
    top = bench.do("open long").splitlines()
    assert (len(top), top[1]) == (102, "1:line 1")
    assert top[-2:] == ["100:line 100", "(150 more lines below)"]
    middle = bench.do("scroll_down").splitlines()
    assert middle[1:3] == ["(98 more lines above)", "99:line 99"]
    assert middle[-1] == "(52 more lines below)"
    assert bench.shown("scroll_down") == (151, 250)
    assert bench.shown("scroll_down") == (151, 250)
    assert bench.shown("scroll_up") == (53, 152)
    assert bench.shown("scroll_up") == (1, 100)


def test_what_cannot_be_opened_is_told_and_the_open_file_stays(bench: Editing) -> None:
    bench.file("a", 3)
    bench.do("open a")
    bench.file("binary", b"\x7fELF\0\0")
    os.truncate(bench.file("huge", ""), LARGEST + 1)
    (bench.folder / "folder").mkdir()
    os.mkfifo(bench.folder / "pipe")
    reasons = {
        "open gone.py": "File gone.py not found",
        "open binary": "Error: binary is a binary file, which the editor cannot show",
        "open huge": "Error: huge is larger than 32 MiB: use a cell to look at parts of it",
        "open folder": "Error: folder: Is a directory",
        "open pipe": "Error: pipe: Not a regular file",
        "open a x": "Usage: open <path> [<line_number>]\nError: <line_number> must be a number",
        "goto x": "Usage: goto <line_number>\nError: <line_number> must be a number",
    }
    assert {content: bench.fail(content) for content in reasons} == reasons
    assert bench.fail("open").startswith("Usage: open")
    assert "in quotes" in bench.fail("open my file name.py")
    assert bench.do("goto 1").startswith(f"[File: {bench.kernel.folder}/a (3")


def test_without_an_open_file_there_is_nothing_to_move_in(bench: Editing) -> None:
    for content in ("goto 1", "scroll_up", "scroll_down", "search_file x", "edit 1:1\nx\nend_of_edit"):
        assert bench.fail(content) == "No file open. Use the open command first."


def test_what_is_shown_is_bounded_however_long_lines_are(bench: Editing) -> None:
    bench.file("wide", b"\n".join([b"short", b"x" * 3_000_000, b"y" * 30_000]))
    shown = bench.do("open wide")
    assert len(shown) < 45_000
    assert "1:short\n" in shown
    assert "x (... 2986668 more bytes)\n3:yyy" in shown
    bench.file("one", b"z" * 30_000)
    assert bench.do("open one").endswith("z" * 30_000)


# New files


def test_a_created_file_is_open_and_has_one_empty_line(bench: Editing) -> None:
    assert bench.do("create a.py") == "File 'a.py' created."
    assert (bench.folder / "a.py").read_bytes() == b"\n"
    assert bench.do("edit 1:1\nx = 1\ny = 2\nend_of_edit").startswith(f"[File: {bench.kernel.folder}/a.py (2")
    assert (bench.folder / "a.py").read_bytes() == b"x = 1\ny = 2\n"


# Searches


def test_a_term_is_found_in_a_file(bench: Editing) -> None:
    path = bench.file("a.py", "def f():\n    pass\n\ndef g(): pass\n")
    found = (
        f'Found 2 matches for "def " in {path}:\n'
        f'Line 1:def f():\nLine 4:def g(): pass\nEnd of matches for "def " in {path}'
    )
    assert bench.do("search_file 'def ' a.py") == found
    bench.do("open a.py")
    assert bench.do('search_file "def "') == found
    assert bench.do("search_file x") == f'No matches found for "x" in {path}'
    assert bench.do("search_file .").startswith("No matches")
    assert bench.fail("search_file x gone.py") == (
        "Usage: search_file <search_term> [<file>]\n"
        "Error: File name gone.py not found. Please provide a valid file name."
    )


def test_too_many_lines_or_files_are_counted_and_not_listed(bench: Editing) -> None:
    bench.file("many", "x\n" * 101)
    assert bench.do("search_file x many") == (
        f'More than 101 lines matched for "x" in {bench.kernel.folder}/many. Please narrow your search.'
    )
    for number in range(100):
        bench.file(f"files/{number}", "y")
    assert bench.do("search_dir y").startswith('Found 100 matches for "y" in ')
    bench.file("files/100", "y")
    assert bench.do("search_dir y") == (
        f'More than 101 files matched for "y" in {bench.kernel.folder}. Please narrow your search.'
    )
    listed = bench.do("find_file * files").splitlines()
    assert (len(listed), listed[-1]) == (102, "(and 1 more)")


def test_a_term_is_found_below_a_folder(bench: Editing) -> None:
    bench.file("b.txt", "x y\nx y\nx")
    bench.file("a/c d.txt", "x y")
    bench.file(".hidden/d.txt", "x y")
    root = bench.kernel.folder
    assert bench.do('search_dir "x y"') == (
        f'Found 3 matches for "x y" in {root}:\n{root}/a/c d.txt (1 matches)\n{root}/b.txt (2 matches)\n'
        f'End of matches for "x y" in {root}'
    )
    assert bench.do("search_dir z a") == f'No matches found for "z" in {root}/a'
    assert bench.do('search_dir("x y", "a")').startswith('Found 1 matches for "x y"')
    assert bench.fail("search_dir x gone") == "Directory gone not found"
    assert bench.fail("search_dir x b.txt") == "Directory b.txt not found"
    assert bench.fail("search_dir a b c").startswith("Usage: search_dir")


def test_a_file_is_found_by_its_name(bench: Editing) -> None:
    for name in ("a/run.py", "b/c/run.py", "b/run.sh"):
        bench.file(name, "")
    root = bench.kernel.folder
    assert bench.do("find_file run.py") == (
        f'Found 2 matches for "run.py" in {root}:\n{root}/a/run.py\n{root}/b/c/run.py'
    )
    assert bench.do("find_file run.* b").count("\n") == 2
    assert bench.do("find_file none") == f'No matches found for "none" in {root}'


# Edits


def test_an_edit_replaces_whole_lines_and_shows_what_is_there_now(bench: Editing) -> None:
    path = bench.file("a.txt", 5)
    bench.do("open a.txt")
    assert bench.do("edit 2:3\nnew\nend_of_edit") == (
        f"[File: {bench.kernel.folder}/a.txt (4 lines total)]\n1:line 1\n2:new\n3:line 4\n4:line 5\n"
        "File updated. Please review the changes and make sure they are correct (correct indentation, "
        "no duplicate lines, etc). Edit the file again if necessary."
    )
    bench.do("edit 1:1\nend_of_edit")
    assert path.read_text() == "new\nline 4\nline 5\n"
    bench.do("edit 3:99\n\nlast\nend_of_edit")
    assert path.read_text() == "new\nline 4\n\nlast\n"


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "2:2\nx\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "2:2\nx", b"a\r\nx\nc\r\n"),
        (b"a\nb", "2:2\nx\ny", b"a\nx\ny"),
        (b"a\r\nb", "2:2\nx\ny", b"a\r\nx\r\ny"),
        (b"a\nb", "1:1\nx", b"x\nb"),
        (b"caf\xe9\n\xff\n\x0cb\n", "2:2\nna\u00efve", b"caf\xe9\nna\xc3\xafve\n\x0cb\n"),
        (b"a\rb\nc\n", "1:1\nx", b"x\nc\n"),
        (b"", "1:1\nx", b"x\n"),
        (b"a", "1:1", b""),
    ],
)
def test_no_byte_outside_of_the_edited_lines_changes_and_line_ends_stay(
    bench: Editing, before: bytes, edit: str, after: bytes
) -> None:
    path = bench.file("a", before)
    bench.do("open a")
    bench.do(f"edit {edit}\nend_of_edit")
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("span", "why"),
    [
        ("8", "numbers of two lines"),
        ("a.py 1:1", "numbers of two lines"),
        ("", "numbers of two lines"),
        ("0:0", "from 1 to 5"),
        ("6:6", "from 1 to 5"),
        ("4:3", "not be less"),
        ("9999999999:1", "numbers of two lines"),
    ],
)
def test_an_edit_of_lines_that_are_not_there_is_refused(bench: Editing, span: str, why: str) -> None:
    path = bench.file("a", 5)
    bench.do("open a")
    before = path.read_bytes()
    refused = bench.fail(f"edit {span}\nx\nend_of_edit")
    assert refused.startswith("Usage: edit <start_line>:<end_line>\nError: ")
    assert why in refused
    assert path.read_bytes() == before


def test_an_edit_that_brings_in_a_syntax_error_is_shown_and_not_made(bench: Editing) -> None:
    path = bench.file("a.py", "".join(f"x{number} = {number}\n" for number in range(1, 21)))
    before = path.read_bytes()
    bench.do("open a.py")
    refused = bench.fail("edit 10:10\nx10 = (\nend_of_edit")
    assert path.read_bytes() == before
    assert re.search(
        r"\n- E999 SyntaxError: '\(' was never closed \(line 10, as Python 3\.\d+ reads it\)\n", refused
    )
    would_be, is_now = re.findall(r"-{49}\n(.*?)\n-{49}", refused, re.DOTALL)
    assert "\n10:x10 = (\n" in would_be
    assert "\n10:x10 = 10\n" in is_now
    assert "(3 more lines above)\n4:" in would_be
    assert refused.endswith("will lead to the same error.")
    assert bench.shown("goto 1") == (1, 20)


@pytest.mark.parametrize(
    ("before", "first", "last", "after", "is_refused"),
    [
        ("x = 1\n", 1, 1, "x = (\n", True),
        ("def f():\n    pass\n", 2, 2, "def f():\n\treturn 1\n  return 2\n", True),
        ("x = 1\ny = 2\n", 1, 1, "if x:\ny = 2\n", True),
        ("x = 1\n", 1, 1, "return 1\n", True),
        ("x = 1\n", 1, 1, "x = undefined\n", False),
        ("x = 1\n", 1, 1, "x = '\\d'\n", False),
        ("print 1\nx = 1\n", 2, 2, "print 1\nx = 2\n", False),
        ("print 1\nx = 1\n", 1, 1, "print 2\nx = 1\n", True),
        ("print 1\nx = 1\n", 1, 2, "x = 2\nprint 1\n", False),
        ("!ls\n%cd a\nx = 1\n", 1, 1, "# !ls\n%cd a\nx = 1\n", False),
        ("!ls\nx = 1\n", 2, 2, "!ls\nx = (\n", False),
        ("x = 1\n!ls\n", 1, 1, "x = (\n!ls\n", True),
        ("x = 1\n", 1, 1, "x = 'a\0b'\n", True),
        ("x = 1\n", 1, 1, "x = " + "-" * 200_000 + "1\n", False),
        ("x = 1\n", 1, 1, "x = (\n" + "#" * 2**20, False),
    ],
)
def test_an_edit_is_refused_for_errors_that_it_introduces(
    before: str, first: int, last: int, after: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that was wrong before, an error behind the first is not seen."""
    # Only a large file needs a process with limits.
    if len(after) < 1000:
        monkeypatch.setattr(bounded, "done", lambda job, **given: bounded.JOBS[job](**given))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = introduced_error(before.encode(), after.encode(), first, last)
    assert (error is not None) == is_refused


def test_a_check_executes_nothing_and_other_files_are_not_checked(bench: Editing) -> None:
    for name, text in (("a.py", f"open({str(bench.folder / 'ran')!r}, 'w')"), ("a.sh", "echo (")):
        path = bench.file(name, "\n")
        bench.do(f"open {name}")
        bench.do(f"edit 1:1\n{text}\nend_of_edit")
        assert path.read_text() == f"{text}\n"
    assert not (bench.folder / "ran").exists()
