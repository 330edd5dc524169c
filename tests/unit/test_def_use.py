"""Which cells a proposal runs before the masked ones: those that share no name with them."""

import pytest

from pytest_super.authoring.masking.def_use import independent_cells, names_of


def runs_before(cells: list[str], *masked: int) -> list[int]:
    """The cells that run before the masked ones, by number, from 1; the last cell is the goal."""
    indices = {number - 1 for number in masked}
    found = independent_cells([names_of(cell) for cell in cells], indices, len(cells) - 1)
    return [index + 1 for index in found]


def has_to_wait(masked: str, later: str) -> bool:
    return runs_before([masked, later, "0"], 1) == []


def test_all_cells_before_the_mask_run_before_it() -> None:
    assert runs_before(["1/0", "!make", "y = 2", "x = y", "x"], 4) == [1, 2, 3]


def test_what_needs_the_masked_cell_waits_and_so_does_what_needs_that() -> None:
    assert runs_before(["x = 1", "y = x + 1", "w = 5", "z = y", "z + w"], 1) == [3]


@pytest.mark.parametrize(
    ("masked", "later"),
    [
        ("x = 1", "y = x"),
        ("x = 1", "def f(): return x"),
        ("x = 1", "def f(a=x): pass"),
        ("x = 1", "class C:\n    y = x"),
        ("x = 1", "x += 1"),
        ("x = 1", "x.a = 2"),
        ("x[0].a = 1; z = 1", "y = x"),
        ("del x[0]; z = 1", "y = x"),
        ("import x.y", "x.z()"),
        ("from m import n as x", "x()"),
        ("for x in z: pass", "print(x)"),
        ("def x(): pass", "x()"),
        ("match z:\n    case {'a': x}: pass", "print(x)"),
        ("y = x", "x = 1"),
        ("x = 1", "x = 2"),
    ],
)
def test_a_cell_that_shares_a_name_with_the_masked_one_waits(masked: str, later: str) -> None:
    assert has_to_wait(masked, later)


@pytest.mark.parametrize(
    ("masked", "later"),
    [
        ("x = 1", "y = 2"),
        ("x = 1", "def f(x):\n    y = x\n    return y"),
        ("x = 1", "f = lambda x: x"),
        ("x = 1", "a.x = 2"),
        ("text = '''\n! no shell line\n% no magic'''", "n = 7\\\n  % 3"),
    ],
)
def test_what_only_looks_alike_is_not_shared(masked: str, later: str) -> None:
    assert not has_to_wait(masked, later)


@pytest.mark.parametrize(
    "masked", ["!pip install m", "print(x)", "model.fit(x)", "this is no Python", "x = !ls"]
)
def test_every_cell_waits_for_a_masked_one_whose_work_no_name_shows(masked: str) -> None:
    assert has_to_wait(masked, "y = 1")


@pytest.mark.parametrize(
    "shell", ["!make", "%pip install m", "%%bash\nmake", "files = !ls", "if z:\n    !make"]
)
def test_a_shell_cell_after_the_mask_waits_with_all_that_come_after_it(shell: str) -> None:
    assert runs_before(["x = 1", "y = 2", shell, "z = 3", "0"], 1) == [2]


def test_shell_lines_and_magics_do_not_hide_the_names_of_a_cell() -> None:
    names = names_of("%matplotlib inline\nx = y\nfiles = !ls \\\n  {z}\nif x:\n    !make")
    assert names.loads == {"x", "y"}
    assert names.binds == {"x", "files"}
