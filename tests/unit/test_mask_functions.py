"""Masking functions: which text goes, which stays, and what is refused."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.errors import SuperError
from pytest_super.functions.masking import mask_file, masked_files, write_masked
from pytest_super.functions.source import PythonSource, SourceError

STUB = 'raise NotImplementedError("this function is masked")'


def masked(text: str, *targets: str, **options: Any) -> str:
    return mask_file(PythonSource.read("file.py", text.encode()), targets, **options).data.decode()


# What stays and what goes

BODIES = {
    "signature of many lines": (
        "@cache\ndef f(\n    a: int,  # the first\n    b=lambda: {1: 2},\n) -> dict[int, int]:  # a header\n"
        "    # a comment\n    x = 1\n\n    return {a: x}  # the end\n    # deeper\n# not deeper\ny = 2\n",
        "@cache\ndef f(\n    a: int,  # the first\n    b=lambda: {1: 2},\n) -> dict[int, int]:  # a header\n"
        f"    {STUB}\n# not deeper\ny = 2\n",
    ),
    "docstring": (
        'def f():\n    """Say\n    so.\n    """  # noqa\n    # a comment\n    return 1\n',
        f'def f():\n    """Say\n    so.\n    """  # noqa\n    {STUB}\n',
    ),
    "a statement after the docstring": (
        'def f():\n    """Say so."""; return 1  # now\n',
        f'def f():\n    """Say so."""\n    {STUB}\n',
    ),
    "all on one line": ("def f(x): return x  # all\ny = 1\n", f"def f(x):\n    {STUB}\ny = 1\n"),
    "a docstring on the header's line": (
        "def f(): 'Say so.'; return 1\n",
        f"def f():\n    'Say so.'\n    {STUB}\n",
    ),
    "tabs": ("class A:\n\tdef f(self):\n\t\treturn 1\n", f"class A:\n\tdef f(self):\n\t\t{STUB}\n"),
    "CRLF": ("def f():\r\n    return 1\r\n", f"def f():\r\n    {STUB}\r\n"),
    "CR": ("def f():\r    return 1\rx = 1\r", f"def f():\r    {STUB}\rx = 1\r"),
    "no final newline": ("def f():\n    return 1", f"def f():\n    {STUB}"),
    "form feed": ("x = 1\n\x0c\ndef f():\n    return '\x0c'\n", f"x = 1\n\x0c\ndef f():\n    {STUB}\n"),
    "separators that end no line": (
        "s = '\u2028'\ndef f():\n    return 1\n",
        f"s = '\u2028'\ndef f():\n    {STUB}\n",
    ),
    "a coroutine": ("async def f():\n    await g()\n", f"async def f():\n    {STUB}\n"),
    "a generator": ("def f():\n    yield 1\n", f"def f():\n    {STUB}\n    yield\n"),
    "a generator by a default value inside": (
        "def f():\n    def g(x=(yield)): pass\n",
        f"def f():\n    {STUB}\n    yield\n",
    ),
    "a function around a generator": (
        "def f():\n    def g(): yield\n    return g\n",
        f"def f():\n    {STUB}\n",
    ),
}


@pytest.mark.parametrize(("text", "expected"), BODIES.values(), ids=BODIES)
def test_a_body_becomes_a_stub_and_all_other_characters_stay(text: str, expected: str) -> None:
    assert masked(text, "f") == expected


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-8"])
def test_encodings_and_byte_order_marks_stay(encoding: str) -> None:
    declared = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    text = f"{declared}x = 'ä'\ndef f(a='ö'): return 'ü'\ny = 'ß'\n"
    new = mask_file(PythonSource.read("file.py", text.encode(encoding)), ["f"]).data
    assert new == text.replace(" return 'ü'", f"\n    {STUB}").encode(encoding)


STUBS = [
    ("none", "def f(a): x", "f", "return None"),
    ("zero", "def f(a): x", "f", "return 0"),
    ("first", "def f(a, /, b): x", "f", "return a"),
    ("first", "def f(): x", "f", "return None"),
    ("first", "class A:\n def f(self, b): x", "f", "return b"),
    ("first", "class A:\n @staticmethod\n def f(b): x", "f", "return b"),
]


@pytest.mark.parametrize(("stub", "text", "target", "expected"), STUBS)
def test_a_stub_can_return_something_trivial(stub: Any, text: str, target: str, expected: str) -> None:
    assert masked(text, target, stub=stub).splitlines()[-1].strip() == expected


KINDS = "def f(a): yield a\nasync def g(a): yield a\nasync def h(a): await a\ndef i(a): return a\n"


@pytest.mark.parametrize("stub", ["raise", "none", "zero", "first"])
def test_generators_and_coroutines_stay_what_they_are(stub: Any) -> None:
    spaces: list[dict[str, Any]] = [{}, {}]
    for text, space in zip((KINDS, masked(KINDS, "f", "g", "h", "i", stub=stub)), spaces, strict=True):
        exec(text, space)
    kinds = (inspect.isgeneratorfunction, inspect.isasyncgenfunction, inspect.iscoroutinefunction)
    for name in "fghi":
        assert [is_kind(spaces[0][name]) for is_kind in kinds] == [
            is_kind(spaces[1][name]) for is_kind in kinds
        ]


# Names

NESTED = """\
class A:
    def f(self): return 1

    @property
    def p(self): return 1

    @p.setter
    def p(self, value): self.x = value

    class B:
        def f(self): return 2

if True:
    def g():
        def inner(): return 3
        return inner
else:
    def g(): return 4
try:
    def h(): return 5
except ValueError:
    pass

@overload
def o(x: int) -> int: ...
@typing.overload
def o(x: str) -> str: ...
def o(x): return x

@numba.extending.overload(o)
def typed(x): return lambda x: x
"""


@pytest.mark.parametrize(
    ("target", "lost"),
    [
        ("A.f", "return 1"),
        ("B.f", None),
        ("A.B.f", "return 2"),
        ("A.p#2", "self.x = value"),
        ("g.inner", "return 3"),
        ("g#2", "return 4"),
        ("h", "return 5"),
        ("o", "return x"),
        ("typed", "return lambda x: x"),
    ],
)
def test_names_are_qualified_and_counted(target: str, lost: str | None) -> None:
    if lost is None:
        with pytest.raises(SourceError, match="there is no function"):
            masked(NESTED, target)
    else:
        new = masked(NESTED, target)
        assert NESTED.count(lost) - new.count(lost) == 1
        assert new.count(STUB) == 1


def test_the_order_of_targets_does_not_matter_and_a_repetition_neither() -> None:
    assert masked(NESTED, "h", "A.f", "g#2", "h") == masked(NESTED, "A.f", "g#2", "h")


REFUSED = {
    "not unique": ("f", NESTED, "`f` is not unique; it can be A.f (line 2), A.B.f (line 11)"),
    "equal names": ("g", NESTED, "`g` is not unique; it can be g#1 (line 14), g#2 (line 18)"),
    "unknown": ("helo", "def hello(): return 1", "there is no function `helo` in it; did you mean `hello`?"),
    "nothing": (
        "f",
        "def f():\n  'Say so.'\n  ...\n  pass",
        "file.py:1: `f` cannot be masked: it has no body",
    ),
    "abstract": ("f", "class A:\n @abc.abstractmethod\n def f(self): return 1", "it is abstract"),
    "raises": ("f", "def f(): raise ValueError", "it does nothing but raise"),
    "Python 2": ("f", 'def f():\n    print "It isn\'t"\n', "file.py:2: it is written in Python 2"),
    "syntax": ("f", "def f():\n    return (\n", "file.py:2: it cannot be parsed: '(' was never closed"),
}


@pytest.mark.parametrize(("target", "text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_target_that_cannot_be_masked_is_refused_with_the_reason(
    target: str, text: str, message: str
) -> None:
    with pytest.raises(SourceError) as error:
        masked(text, target)
    assert message in str(error.value)


def test_overlapping_targets_are_refused() -> None:
    with pytest.raises(SourceError, match=r"`g#1` and `g.inner` overlap"):
        masked(NESTED, "g.inner", "g#1")


def test_data_that_is_not_text_is_refused() -> None:
    for data in (b"x = '\xff'\n", b"x = 1\0"):
        with pytest.raises(SourceError, match=r"file.py.* cannot be parsed"):
            mask_file(PythonSource.read("file.py", data), ["f"])


# Regions

REGIONS = """\
def f(x):
    total = 0
    # region loop
    for one in x:
        # region add
        total += one
        # endregion
    # endregion
    return total
"""


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("f@loop", f"    # region loop\n    {STUB}\n    # endregion\n"),
        ("f@loop.add", f"add\n        {STUB}\n        # e"),
    ],
)
def test_a_region_is_masked_between_its_marks(target: str, lines: str) -> None:
    new = masked(REGIONS, target)
    assert lines in new
    assert "total = 0" in new
    assert "return total" in new


REFUSED_REGIONS = {
    "unknown": (
        REGIONS,
        "f@lop",
        "`f` has no lines between `# region lop` and `# endregion`; did you mean `loop`?",
    ),
    "nested": (REGIONS, ("f@loop", "f@add"), "`f@loop` and `f@loop.add` overlap"),
    "not ended": (
        "def f():\n    # region a\n    return 1\n",
        "f@a",
        "file.py:2: the region `a` has no `# endregion`",
    ),
    "not begun": (
        "def f():\n    return 1\n    # endregion\n",
        "f@a",
        "file.py:3: this `# endregion` ends no region",
    ),
    "no code": (
        "def f():\n    # region a\n    # b\n    # endregion\n    x\n",
        "f@a",
        "there is no code in the region",
    ),
    "half a statement": (
        "def f():\n    # region a\n    if x:\n        y\n        # endregion\n        z\n",
        "f@a",
        "file.py: masking `f@a` would change other statements, too",
    ),
}


@pytest.mark.parametrize(("text", "targets", "message"), REFUSED_REGIONS.values(), ids=REFUSED_REGIONS)
def test_a_region_that_cannot_be_masked_is_refused(
    text: str, targets: str | tuple[str, ...], message: str
) -> None:
    with pytest.raises(SourceError) as error:
        masked(text, *([targets] if isinstance(targets, str) else targets))
    assert message in str(error.value)


def test_a_mark_in_a_text_is_none_and_a_generator_stays_one() -> None:
    text = 'def f():\n    """\n    # region a\n    """\n    # region b\n    yield 1\n    # endregion\n'
    assert masked(text, "f@b").endswith(f"    # region b\n    {STUB}\n    yield\n    # endregion\n")
    with pytest.raises(SourceError, match="has no lines between `# region a`"):
        masked(text, "f@a")


# Folders


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("def f(): return 1\n")
    (folder / "b.py").write_text("def g(): return 2\n")
    (folder / "b.py").chmod(0o755)
    (folder / "old.py").write_text("print 'Python 2'\n")
    (folder / "link").symlink_to("src")
    return folder


def test_a_copy_is_masked_and_the_original_stays(repository: Path, tmp_path: Path) -> None:
    output = tmp_path / "masked"
    write_masked(repository, output, masked_files(repository, ["src/a.py::f", "b.py::g"]))
    assert (repository / "b.py").read_text() == "def g(): return 2\n"
    assert STUB in (output / "src" / "a.py").read_text()
    assert (output / "b.py").stat().st_mode & 0o777 == 0o755
    assert (output / "link").is_symlink()
    assert (output / "old.py").read_bytes() == (repository / "old.py").read_bytes()


def test_without_an_output_the_folder_itself_is_changed(repository: Path) -> None:
    write_masked(repository, None, masked_files(repository, ["link/a.py::f"]))
    assert STUB in (repository / "src" / "a.py").read_text()
    assert (repository / "link").is_symlink()
    assert sorted(path.name for path in repository.iterdir()) == ["b.py", "link", "old.py", "src"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("b.ipynb::g", "a notebook cannot be masked: write its functions to a .py file"),
        ("b.py", "write a target as path/to/file.py::Class.method"),
        ("/b.py::g", "must be relative to the folder"),
        ("src/../../b.py::g", "must be relative to the folder"),
        ("src/b.py::g", "has no such file; did you mean `src/a.py`?"),
        ("src::g", "cannot be read: Is a directory"),
        ("outside.py::g", "a link to a file outside"),
        ("old.py::g", "old.py:1: it is written in Python 2"),
    ],
)
def test_one_wrong_target_is_refused_with_all_others(
    repository: Path, tmp_path: Path, target: str, message: str
) -> None:
    (tmp_path / "outside.py").write_text("def g(): return 1\n")
    (repository / "outside.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(SuperError, match=message):
        masked_files(repository, ["b.py::g", target])


def test_the_command_prints_what_it_masked(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["mask", str(repository), "--target=src/a.py::f", f"--output={tmp_path / 'new'}"]
    assert main([*command]) == 0
    assert capsys.readouterr().out.startswith("src/a.py::f: 1 line masked (sha256 ")
    assert main([*command]) != 0
    assert f"{tmp_path / 'new'} exists" in capsys.readouterr().err


def test_the_command_changes_a_folder_only_if_it_is_told_to(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (repository / "src/a.py").read_bytes()
    command = ["mask", str(repository), "--target=src/a.py::f"]
    for options in ([], ["--in-place", f"--output={tmp_path / 'new'}"]):
        assert main([*command, *options]) == 1
        assert "state one of --output=DIR, for a masked copy, and --in-place" in capsys.readouterr().err
        assert (repository / "src/a.py").read_bytes() == before
        assert not (tmp_path / "new").exists()
    assert main([*command, "--in-place"]) == 0
    assert b"NotImplementedError" in (repository / "src/a.py").read_bytes()
