"""What a changed file can have besides the bodies of its masked functions."""

import pytest

from pytest_super.functions.splicing import Spliced, spliced

ORIGINAL = '''\
"""A module."""
from __future__ import annotations
import os, json
import scipy.stats
from functools import lru_cache

LIMIT = 3


def total(values):
    count = 0
    return sum(values) + count


class Stats(Base):
    scale = 1

    def mean(self, values):
        """The mean."""
        raise NotImplementedError

    def other(self):
        return self.shape


if __name__ == "__main__":
    print(Stats().mean([1, 2]))
'''
STUB = "        raise NotImplementedError\n"
TARGET = "Stats.mean"


def changed(text: str) -> Spliced:
    return spliced("a.py", ORIGINAL.encode(), text.encode(), [TARGET])


def added(text: str) -> Spliced:
    """With a text between the imports and the rest."""
    return changed(ORIGINAL.replace("LIMIT = 3\n", f"LIMIT = 3\n{text}\n"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import numpy as np, json", ["np"]),
        ("from math import fsum, sqrt as root", ["fsum", "root"]),
        ("from .utils import helper", ["helper"]),
        ("import scipy.special", ["scipy"]),
        ("EPS = -1e-9", ["EPS"]),
        ("A, B = (1, 2)", ["A", "B"]),
        ("TABLE: dict[str, list[int]] = {'a': [1], 'b': {2}}", ["TABLE"]),
        ("PI = os.path", ["PI"]),
        ("def helper(x: list[int] | None, *, n=LIMIT, eps=1e-9) -> float:\n    return print(x)", ["helper"]),
        ("@lru_cache(maxsize=None)\ndef helper(n): return n", ["helper"]),
        ("import functools as ft\n@ft.cache\ndef helper(n): return n", ["ft", "helper"]),
        ("import re\nWORD = re.compile('a+')", ["re", "WORD"]),
        # It is a name inside of a function of the original.
        ("def count(): return 1", ["count"]),
    ],
)
def test_what_only_defines_a_new_name_is_taken_over(text: str, names: list[str]) -> None:
    found = added(text)
    assert (found.taken, found.left_out, found.is_alike) == (names, [], "json" not in text)
    compile(found.data, "a.py", "exec")


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("print('mean = 3.0')", "line 8"),
        ("import atexit\natexit.register(print, 1)", "line 9"),
        ("@print\ndef helper(): pass", "helper"),
        ("@lru_cache(print(1))\ndef helper(): pass", "helper"),
        ("@lru_cache(print)\ndef helper(): pass", "helper"),
        ("def helper(x=print(1)): pass", "helper"),
        ("class Helper:\n    print(1)", "Helper"),
        ("def total(values): return 3.0", "total"),
        ("LIMIT = 4", "LIMIT"),
        ("from builtins import print", "from builtins import print"),
        ("import sys as json", "import sys as json"),
        ("from evil import *", "from evil import *"),
        ("from __future__ import division", "from __future__ import division"),
        ("def sum(values): return 3.0", "sum"),
        ("def __getattr__(name): return 3.0", "__getattr__"),
        ("X = print(1)", "X"),
        ("X = [print(n) for n in range(3)]", "X"),
        ("X = total([1])", "X"),
        ("X = lambda one=print(1): one", "X"),
        ("os.environ['X'] = '1'", "line 8"),
        ("NEW, os.path = 1, 2", "line 8"),
        ("LIMIT += 1", "line 8"),
        ("for NEW in [1]: pass", "line 8"),
        ("if print(1):\n    NEW = 1", "line 8"),
        ("if True:\n    NEW = 1\n    print(1)", "line 8"),
        ("try:\n    import evil as json\nexcept ImportError:\n    import json", "line 8"),
        ("try:\n    import evil\nexcept ImportError as json:\n    pass", "line 8"),
    ],
)
def test_anything_else_is_left_out_and_named(text: str, left_out: str) -> None:
    found = added(text)
    assert left_out in found.left_out
    assert not found.is_alike
    without = [name for name in found.taken if name != "atexit"]
    assert without == []
    assert b"print(1)" not in found.data


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("import math\nmath = os\nX = math.system('')", ["math"]),
        ("math = os\nX = math.system('')", ["X"]),
        ("def cache(one): return one\nfrom functools import cache\n@cache\ndef helper(): pass", ["helper"]),
        ("try:\n    import math\nexcept ImportError:\n    math = os\nX = math.system('')", ["X"]),
        ("def evil(): return 1\nX = evil()", ["X"]),
        # Operators of some libraries' objects run commands.
        ("from commands import run, ls\nX = ls & run", ["X"]),
        ("if True:\n    from commands import run, ls\nX = ls & run", ["X"]),
    ],
)
def test_no_name_with_another_meaning_is_called(text: str, left_out: list[str]) -> None:
    assert set(left_out) <= set(added(text).left_out)


def test_new_methods_of_the_class_of_a_masked_one_are_taken_over() -> None:
    body = "        return self.part(values)\n\n    def part(self, values):\n        return values[0]\n"
    found = changed(ORIGINAL.replace(STUB, body))
    assert (found.taken, found.left_out) == (["Stats.part"], [])
    assert b"    def part(self, values):\n        return values[0]\n" in found.data


@pytest.mark.parametrize(
    ("member", "left_out"),
    [
        ("def other(self): return 3.0", "Stats.other"),
        ("def __eq__(self, one): return True", "Stats.__eq__"),
        ("@print\n    def part(self): return 3.0", "Stats.part"),
        ("print(1)", "line 22"),
    ],
)
def test_other_members_of_its_class_are_left_out(member: str, left_out: str) -> None:
    found = changed(ORIGINAL.replace(STUB, f"{STUB}\n    {member}\n"))
    assert (found.taken, found.left_out) == ([], [left_out])
    assert found.data.decode() == ORIGINAL


@pytest.mark.parametrize(
    ("old", "new", "left_out"),
    [
        ("def mean(self, values):", "def mean(self, values=print(1)):", "Stats.mean outside of its body"),
        ("    def mean", "    @print\n    def mean", "Stats.mean outside of its body"),
        ("    print(Stats().mean([1, 2]))", "    print(1.5)", "line 26"),
        ("return sum(values) + count", "return 3.0", "total"),
    ],
)
def test_a_change_of_the_original_is_left_out(old: str, new: str, left_out: str) -> None:
    found = changed(ORIGINAL.replace(old, new))
    assert (found.taken, found.left_out) == ([], [left_out])
    assert found.data.decode() == ORIGINAL


def test_what_is_taken_over_comes_where_it_was() -> None:
    text = f"import math\n{ORIGINAL}".replace("\n\nclass", "\nSCALE = LIMIT\n\nclass") + "LAST = 1\n"
    lines = changed(text).data.decode().splitlines()
    # After what has to be first in a file, and after what it needs.
    assert lines.index("import math") == 2
    assert lines.index("LIMIT = 3") < lines.index("SCALE = LIMIT") < lines.index("class Stats(Base):")
    assert lines[-1] == "LAST = 1"


def test_a_file_without_a_last_line_end_gets_one() -> None:
    original = b"def f(): return 1; x = 2"
    found = spliced("a.py", original, b"def f(): return h()\ndef h(): return 3\n", ["f"])
    assert found.data == b"def f():\n    return h()\ndef h(): return 3\n"


def test_statements_of_one_line_stay_together() -> None:
    original = b"a = 1; b = (2,\n3)\ndef f():\n    return a\n"
    found = spliced("a.py", original, b"a = 1\nNEW = 1\nb = (2, 3)\ndef f():\n    return NEW\n", ["f"])
    assert found.data == b"a = 1; b = (2,\n3)\nNEW = 1\ndef f():\n    return NEW\n"
