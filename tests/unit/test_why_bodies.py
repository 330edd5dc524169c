"""Which bodies of a paper's item are wrong, by those with which its experiments are right or not."""

from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.authoring.why.searches import (
    BodiesAnswer,
    CannotTell,
    Kept,
    NoneWrong,
    TryResult,
    WrongBodies,
    WrongTogether,
    search_bodies,
)

NAMES = [f"model.py::f{number}" for number in range(15)]


def answer_of(
    targets: Sequence[str], is_right: Callable[[Collection[str]], bool]
) -> tuple[BodiesAnswer, int]:
    """What is found, and how often the experiments ran for it."""
    ran = 0
    going = search_bodies(targets)
    tried = next(going)
    while True:
        ran += len(tried)
        found = {one: TryResult(is_solved=is_right(one.bodies), error="a test failed") for one in tried}
        assert all(isinstance(one, Kept) for one in found)
        try:
            tried = going.send(found)
        except StopIteration as ended:
            return ended.value, ran


@given(st.integers(1, 15), st.data())
def test_every_wrong_body_is_named_however_many_there_are(n: int, data: st.DataObject) -> None:
    targets = NAMES[:n]
    wrong = data.draw(st.sets(st.sampled_from(targets), min_size=1))
    found, ran = answer_of(targets, lambda kept: not wrong & set(kept))
    assert found == WrongBodies(targets=[one for one in targets if one in wrong])
    assert ran <= n + 3


def test_bodies_that_are_wrong_only_together_are_told_apart() -> None:
    one, other, third = NAMES[:3]
    found, _ = answer_of(NAMES[:3], lambda kept: not {one, other} <= set(kept))
    assert found == WrongTogether(alone=[], others=NAMES[:3])
    found, _ = answer_of(NAMES[:3], lambda kept: third not in kept and not {one, other} <= set(kept))
    assert found == WrongTogether(alone=[third], others=[one, other])


def test_a_try_that_says_nothing_blames_no_body() -> None:
    going = search_bodies(NAMES[:3])
    tried = next(going)
    found = {
        one: TryResult(is_solved=not one.bodies, untold="a try failed" * (len(one.bodies) == 1))
        for one in tried
    }
    with pytest.raises(StopIteration) as ended:
        going.send(found)
    assert ended.value.value == CannotTell("a try failed")


def test_right_bodies_and_wrong_originals_are_no_fault_of_a_body() -> None:
    assert answer_of(NAMES[:3], lambda _: True)[0] == NoneWrong()
    assert answer_of(NAMES[:3], bool)[0] == CannotTell("the original code fails: a test failed")
