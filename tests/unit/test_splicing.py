"""The bodies of functions from one version of a file in another, and which functions use which."""

import ast
import contextlib
import functools
import json.decoder
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from pytest_super.functions.masking import mask_file
from pytest_super.functions.source import PythonSource, SourceError, definitions
from pytest_super.functions.spans import parts_of
from pytest_super.functions.splicing import spliced
from pytest_super.functions.uses import call_edges

ORIGINAL = b'''\
import os


@decorator
def f(x, y=1):  # keep
    """Doc."""
    return x

class A:
    def g(self): return 2

def h():
    a = 1
    # region part
    b = 2
    # endregion
    return a + b
'''


def test_only_bodies_come_from_the_changed_file() -> None:
    changed = b'''\
from evil import *
def f(*args):
  """Other."""
  # How.
  total = args[0]
  return total
  # Done.
class A:
    flag = 1
    def g(self):
        x = """a
b"""
        return x
'''
    assert spliced("a.py", ORIGINAL, changed, ["f", "A.g"]).data.decode() == (
        ORIGINAL.decode()
        .replace("    return x\n", "    total = args[0]\n    return total\n    # Done.\n")
        .replace("def g(self): return 2\n", 'def g(self):\n        x = """a\nb"""\n        return x\n')
    )


def test_a_region_comes_from_between_its_marks() -> None:
    changed = b"def h():\n    # region part\n    b = 7\n    c = 8\n    # endregion\n    return 0\n"
    wanted = ORIGINAL.replace(b"    b = 2\n", b"    b = 7\n    c = 8\n")
    assert spliced("a.py", ORIGINAL, changed, ["h@part"]).data == wanted


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (b"def g(): pass\n", "the function `f` is not there"),
        (b"def f(:\n", "cannot be parsed"),
        (b'def f(x):\n  a = """x\n  y"""\n  return a\n', "cannot be indented otherwise"),
    ],
)
def test_bodies_that_cannot_be_found_or_moved_are_refused(changed: bytes, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        spliced("a.py", ORIGINAL, changed, ["f"])


def test_line_ends_and_encoding_are_those_of_the_original() -> None:
    original = "# coding: latin-1\r\ndef f():\r\n    return 'é'".encode("latin-1")
    assert spliced("a.py", original, "def f():\n    return 'ü'\n".encode(), ["f"]).data == (
        "# coding: latin-1\r\ndef f():\r\n    return 'ü'".encode("latin-1")
    )
    with pytest.raises(SourceError, match="characters that iso-8859-1 has not"):
        spliced("a.py", original, "def f():\n    return '€'\n".encode(), ["f"])


@pytest.mark.parametrize("module", [ast, contextlib, functools, json.decoder])
def test_every_body_that_is_put_back_is_the_original(module: ModuleType) -> None:
    path = Path(str(module.__file__))
    data = path.read_bytes()
    masked = mask_file(PythonSource.read(path.name, data), maskable(path.name, data), nested=True)
    names = [one.name for one in masked.functions]
    assert names
    # The stubs of the masked file are bodies, too.
    for changed in (data, masked.data):
        found = spliced(path.name, data, changed, names)
        assert (found.is_alike, found.taken, found.left_out) == (True, [], [])
        assert ast.dump(ast.parse(found.data)) == ast.dump(ast.parse(changed))


def maskable(name: str, data: bytes) -> list[str]:
    source = PythonSource.read(name, data)
    found = []
    for one in definitions(source):
        with suppress(SourceError):
            parts_of(source, one)
            found.append(one.name)
    return found


def test_edges_are_found_by_names(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def f():\n    return helper()\nclass C:\n    def m(self):\n        return 1\n"
    )
    (tmp_path / "b.py").write_text("import a\ndef helper():\n    return a.C().m()\ndef alone(): return f\n")
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "cyclic.py").write_text("def p(): return q()\ndef q(): return p()\n")
    assert call_edges(tmp_path, ["a.py::f", "a.py::C.m"]) == (0, 1)
    assert call_edges(tmp_path, ["a.py::f", "b.py::helper", "a.py::C.m"]) == (2, 3)
    assert call_edges(tmp_path, ["cyclic.py::p", "cyclic.py::q"]) == (2, 2)
    assert call_edges(tmp_path, ["b.py::alone"]) == (0, 0)
