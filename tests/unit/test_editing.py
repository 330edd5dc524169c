"""The edit action: what it changes, what it never changes, and its feedback."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_super.kernel.files import READ_LIMIT
from pytest_super.testing import FakeFiles
from pytest_super.trial.editing import LARGEST, EditError, edit, edit_file


def replace_once(data: bytes, before: str, after: str) -> bytes:
    return edit(data, before, after)[0]


class Disk(FakeFiles):
    """Files in memory. `errors` contains the errors that reading or writing a name raises."""

    def __init__(self, **files: bytes) -> None:
        super().__init__()
        self.errors: dict[tuple[str, str], OSError] = {}
        for name, data in files.items():
            super().write(name.replace("_", "."), data)
        self.writes = 0

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self.fail("read", path)
        return super().read(path, limit)

    def write(self, path: str, data: bytes) -> None:
        self.writes += 1
        self.fail("write", path)
        super().write(path, data)

    def contents(self) -> dict[str, bytes]:
        return {entry.name: self.read(entry.name) for entry in self.entries()}

    def fail(self, how: str, path: str) -> None:
        if error := self.errors.get((how, path)):
            raise error

    def edit(self, path: str, before: str, after: str) -> tuple[str, str]:
        return edit_file(self, path, before, after)  # type: ignore[arg-type]


def told(data: bytes, before: str, after: str = "new\n") -> str:
    """The feedback on an edit of a file with this data."""
    return Disk(f_py=data).edit("f.py", before, after)[0]


# What changes, and what does not

KEPT = {
    "CRLF": b"a = 1\r\nb = 2\r\nc = 3\r\n",
    "mixed line ends": b"a = 1\r\nb = 2\nc = 3\r\n",
    "latin-1": b"# caf\xe9\nb = 2\n# na\xefve\n",
    "no final newline": b"a = 1\nb = 2",
    "form feeds": b"\x0c\nb = 2\n\x0c\n",
    "Unicode line ends": "a\u2028c\nb = 2\n\x85\x0b\x1c\n".encode(),
    "lone carriage returns": b"a\rb\nb = 2\n\rc",
    "NUL bytes": b"\x00\nb = 2\n\x00",
    "a byte order mark": b"\xef\xbb\xbfa\nb = 2\n",
    "blank lines with spaces": b"  \t\n\nb = 2\n   \n\n",
    "8 MB": b"x = 'some line of a file'\n" * 170_000 + b"b = 2\n" + b"y = 'another line'\n" * 230_000,
}


@pytest.mark.parametrize("end", ["", "\n"], ids=["text", "lines"])
@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT)
def test_no_other_byte_changes(data: bytes, end: str) -> None:
    assert replace_once(data, "b = 2" + end, "b = 3" + end) == data.replace(b"b = 2", b"b = 3")


@pytest.mark.parametrize("end", ["", "\n"], ids=["text", "lines"])
def test_new_lines_end_as_the_lines_in_their_place_do(end: str) -> None:
    data = b"a = 1\r\nb = 2\r\nc = 3\r\n"
    assert replace_once(data, "b = 2" + end, "x\ny\nz" + end) == b"a = 1\r\nx\r\ny\r\nz\r\nc = 3\r\n"
    assert replace_once(b"a\r\nb\n\r\nc\r\nd", "a\nb\n\nc" + end, "a\nB\n\nc" + end) == b"a\r\nB\n\r\nc\r\nd"


def test_text_over_several_lines_is_found_where_they_end_in_crlf() -> None:
    assert replace_once(b"a = 1\r\nb = 2\r\n", "1\nb", "1\nx\nb") == b"a = 1\r\nx\r\nb = 2\r\n"
    assert replace_once(b"a\r\nb\r\n", "\nb", "!") == b"a!\r\n"
    assert "multiple (2)" in told(b"a\r\nb\r\na\nb", "a\nb")


def test_new_lines_at_an_end_without_newline_end_as_the_line_above_does() -> None:
    assert replace_once(b"a\r\nb", "b\n", "b\nc\n") == b"a\r\nb\r\nc"
    assert replace_once(b"a\nb", "b\n", "b\nc\n") == b"a\nb\nc"
    assert replace_once(b"a", "a\n", "b\nc\n") == b"b\nc"


def test_line_ends_that_are_spelled_out_are_taken_as_they_are() -> None:
    assert replace_once(b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "a\nb\n") == b"a\nb\nc\r\n"
    assert replace_once(b"a\nb\n", "a\n", "x\r\ny\n") == b"x\r\ny\nb\n"
    with pytest.raises(EditError):
        replace_once(b"a\nb\n", "a\r\nb\r\n", "c\n")


def test_text_may_be_part_of_a_line_and_must_stand_once() -> None:
    assert replace_once(b"    steps = 50.\n", "steps = 50.", "steps = 10.") == b"    steps = 10.\n"
    assert "multiple (2) occurrences" in told(b"a = 1\nb = 2\n", " = ", "=")
    assert "multiple (2) occurrences" in told(b"aaa", "aa", "b")


def test_lines_are_whole_lines_with_their_indentation() -> None:
    assert replace_once(b"x = 1\nx = 10\nxx = 1\n", "x = 1\n", "x = 2\n") == b"x = 2\nx = 10\nxx = 1\n"
    with pytest.raises(EditError, match="Did you mean"):
        replace_once(b"    x = 1\n", "x = 1\n", "x = 2\n")


def test_a_blank_line_is_equal_to_one_of_spaces() -> None:
    assert replace_once(b"a\n \t\nb\n", "a\n\nb\n", "c\n") == b"c\n"
    assert replace_once(b"a\n\nb\n", "a\n   \nb\n", "c\n") == b"c\n"
    assert replace_once(b"a\n \r\nb\n", "a\n\nb\n", "c\nd\ne\n") == b"c\nd\r\ne\n"


@pytest.mark.parametrize("data", [b"a\nb\nc\n", b"a\r\nb\r\nc\r\n"])
def test_lines_that_give_way_to_nothing_are_deleted(data: bytes) -> None:
    assert replace_once(data, "b\n", "") == b"".join(data.splitlines(keepends=True)[::2])
    assert replace_once(b"a\nb", "b\n", "") == b"a\n"
    assert replace_once(b"a\nb\nc\n", "b", "") == b"a\n\nc\n"


def test_lines_stay_lines_when_the_last_newline_is_forgotten() -> None:
    assert replace_once(b"a\nb\nc\n", "b\n", "x\ny") == b"a\nx\ny\nc\n"


@pytest.mark.parametrize("before", ["", "\n", " \n\t\n"])
def test_an_edit_without_text_to_replace_makes_or_fills_a_file_and_changes_no_other(before: str) -> None:
    disk = Disk(empty_py=b"", full_py=b"a\n", blank_py=b"\n\n\n")
    for name in ("empty.py", "new.py"):
        feedback, outcome = disk.edit(name, before, "a\nb\n")
        assert (outcome, disk.read(name)) == ("ok", b"a\nb\n")
        assert feedback.endswith(":\na\nb\n")
    for name in ("full.py", "blank.py"):
        feedback, outcome = disk.edit(name, before, "b\n")
        assert (outcome, "No lines to replace were given" in feedback) == ("error", True)
    assert (disk.read("full.py"), disk.read("blank.py")) == (b"a\n", b"\n\n\n")


# Feedback


def test_the_new_lines_are_shown_between_those_around_them() -> None:
    data = "".join(f"line {number}\n" for number in range(30)).encode()
    shown = told(data, "line 15\n", "    new\n").split(":\n", 1)[1].split("\n")
    above, below = range(8, 15), range(16, 22)
    assert shown == [*(f"line {n}" for n in above), "    new", *(f"line {n}" for n in below)]
    assert told(data, "line 15", "    new") == told(data, "line 15\n", "    new\n")
    deleted = ["line 14", *(f"line {n}" for n in range(16, 22))]
    assert told(data, "line 15\n", "").endswith("\n".join(deleted))


def test_what_is_not_found_is_said_with_what_differs_in_spaces_only() -> None:
    feedback = told(b"def f():\n\tx = 1  \n\n\ty = 2\n", "x = 1\n\ny = 2\n")
    assert feedback == (
        "Could not find the following lines to replace in the file content:\n```\nx = 1\n\ny = 2\n```\n"
        "Did you mean to replace the following lines (notice leading/trailing whitespaces difference)?\n"
        "```\n\tx = 1  \n\n\ty = 2\n```"
    )


def test_the_place_where_most_lines_match_is_shown() -> None:
    data = b"a\nb\n\nz\n\na\nb\n\nc\ny\n"
    assert told(data, "a\nb\n\nc\nx\n").endswith("Here are partially matched lines:\n```\na\nb\n\nc\ny\n```")
    assert told(data, "w\na\nx\n").endswith("```\n\na\nb\n```")
    assert "partially" not in told(data, "w\n\nx\n")


def test_two_of_several_occurrences_are_shown_with_the_lines_around_them() -> None:
    feedback = told(b"1\n2\n3\nx\n4\n5\n6\nx\n7\nx\n", "x\n")
    assert "multiple (3) occurrences" in feedback
    assert "Occurrence 1:\n```\n\n2\n3\nx\n4\n5\n```\nOccurrence 2:\n```\n\n5\n6\nx\n7\nx\n```" in feedback
    assert "Occurrence 3" not in feedback


def test_lines_that_stand_everywhere_are_not_counted_to_the_end() -> None:
    assert "multiple (at least 100) occurrences" in told(b"x\n" * 100_000, "x\n")


def test_a_file_that_cannot_be_edited_is_one_clear_line() -> None:
    disk = Disk(locked_py=b"a\n")
    disk.errors = {
        ("read", "folder"): IsADirectoryError(21, "Is a directory", "folder"),
        ("write", "locked.py"): PermissionError(13, "Permission denied", "locked.py"),
        ("write", "no/f.py"): FileNotFoundError(2, "No such file or directory", "no/f.py"),
        ("read", "a\x00b"): OSError("embedded\nnull byte"),
    }
    assert disk.edit("gone.py", "a\n", "b\n") == ("ERROR: File gone.py does not exist.", "error")
    assert disk.edit("folder", "a\n", "b\n")[0] == "ERROR: File folder cannot be edited: Is a directory."
    assert disk.edit("locked.py", "a\n", "b\n")[0].endswith("locked.py cannot be edited: Permission denied.")
    assert disk.edit("no/f.py", "", "b\n")[0].endswith("cannot be edited: No such file or directory.")
    assert disk.edit("a\x00b", "a\n", "b\n")[0].endswith("cannot be edited: embedded null byte.")
    assert disk.contents() == {"locked.py": b"a\n"}


def test_a_file_that_is_too_large_is_refused() -> None:
    disk = Disk(f_py=b"a\n" + b"x" * LARGEST)
    told = "ERROR: File f.py is too large to edit: more than 32 MiB."
    assert disk.edit("f.py", "a\n", "b\n") == (told, "error")
    assert disk.writes == 0


def test_half_a_surrogate_pair_is_refused() -> None:
    assert "surrogate" in told(b"a\n", "a\n", "\ud800\n")
    assert "surrogate" in told(b"a\n", "\udcff\n")


LONG = "x" * 2_000_000
BULKY = {
    "a long line is edited": (f"{LONG}\n{LONG}a = 1{LONG}\n{LONG}", "a = 1", "a = 2"),
    "many lines are new": ("a\n", "a\n", "line\n" * 500_000),
    "a long line stands twice": (f"{LONG}\n{LONG}", f"{LONG}\n", "a\n"),
    "long lines are not found": ("a\n", f"{LONG}\n{LONG}\n", "a\n"),
    "long lines are near misses": (f"  {LONG}\n\t{LONG}", f"{LONG}\n", "a\n"),
    "a long line matches in part": (f"{LONG}\nb\n", f"{LONG}\na\n", "a\n"),
    "a file of four-byte characters": ("\U0001f600" * 100_000 + "a", "a", "b"),
}


@pytest.mark.parametrize(("file", "before", "after"), BULKY.values(), ids=BULKY)
def test_feedback_is_bounded(file: str, before: str, after: str) -> None:
    assert len(told(file.encode(), before, after)) < 50_000


# Each would take many minutes or hours if one step took quadratic time.
HOSTILE = {
    "spaces within a line": (b"a" + b" " * 2_000_000 + b"b", "a  b\n"),
    "blank lines": (b" \n" * 200_000, "\n" * 50_000 + "a\n"),
    "equal lines": (b"a\n" * 200_000, "a\n" * 50_000 + "b\n"),
    "almost the text everywhere": (b"a" * 2_000_000, "a" * 400_000 + "b"),
    "carriage returns": (b"\r" * 2_000_000, "\ra\n"),
    "lines that end in CRLF": (b"a\r\n" * 200_000, "a\n" * 50_000 + "b"),
    "near misses everywhere": (b" a\n" * 200_000, "a\n" * 20_000),
}


@pytest.mark.parametrize(("data", "before"), HOSTILE.values(), ids=HOSTILE)
def test_no_file_makes_a_search_quadratic(data: bytes, before: str) -> None:
    assert told(data, before).startswith("Could not find")


# What holds for any file

CHARACTERS = "ab \t\r\n\x0c\u2028é}"
files = st.lists(st.sampled_from([*(c.encode() for c in CHARACTERS), b"\r\n", b"\xe9"])).map(b"".join)
texts = st.text(CHARACTERS, max_size=8)


@given(files, files, texts, texts)
def test_an_edit_changes_only_the_bytes_of_its_match(above: bytes, below: bytes, old: str, new: str) -> None:
    assume(old.strip() and not old.endswith("\n"))
    # A carriage return before a newline of the text belongs to the match.
    assume(not (old.startswith("\n") and above.endswith(b"\r")))
    data = above + old.encode() + below
    try:
        edited = replace_once(data, old, new)
    except EditError:
        flat = data.replace(b"\r\n", b"\n")
        assert any(text.find(old.encode(), text.find(old.encode()) + 1) > 0 for text in (flat, data))
        return
    assert edited.startswith(above)
    assert edited.removeprefix(above).endswith(below)
    middle = edited[len(above) : len(edited) - len(below)]
    assert middle.replace(b"\r\n", b"\n") == new.encode().replace(b"\r\n", b"\n")


# The last line is not empty, because without a line end it would not exist.
lines = st.tuples(st.lists(st.text("ab \t\x0c\u2028é}", max_size=3), max_size=4), st.sampled_from("ab"))
parts = lines.map(lambda drawn: [*drawn[0], drawn[1]])


@given(st.data(), parts, parts, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_an_edit_and_its_reverse_leave_the_file_as_it_was(
    data: st.DataObject, file: list[str], new: list[str], end: str, is_terminated: bool
) -> None:
    first = data.draw(st.integers(0, len(file) - 1))
    last = data.draw(st.integers(first + 1, len(file)))
    content, expected = (
        (end.join(all_lines) + end * is_terminated).encode()
        for all_lines in (file, file[:first] + new + file[last:])
    )
    before, after = ("".join(f"{line}\n" for line in part) for part in (file[first:last], new))
    # Without a line end in the file, the kind of line end is unknown.
    assume(before.strip(" \t\n") and b"\n" in content and b"\n" in expected)
    try:
        assert replace_once(content, before, after) == expected
        assert replace_once(expected, after, before) == content
    except EditError as error:
        assume(not str(error).startswith("Found multiple"))
        raise


@given(files, texts, texts)
def test_a_refusal_touches_nothing(data: bytes, old: str, new: str) -> None:
    disk = Disk(f_py=data)
    _, outcome = disk.edit("f.py", old, new)
    assert disk.writes == (outcome == "ok")
    assert outcome == "ok" or disk.contents() == {"f.py": data}
