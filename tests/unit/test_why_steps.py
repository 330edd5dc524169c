"""At which step a trial was lost, by states from which gold finishes or not."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from pytest_super.authoring.why.searches import (
    ALONE,
    CannotTell,
    Lost,
    NotLost,
    OnlyAgain,
    State,
    StepAnswer,
    StepSearch,
    TryResult,
    places,
)

GOLD = (1, 2, 4)
"""The cells of gold that hit the three landmarks."""
ANSWER = 5


def answer_of(
    steps: int,
    hit_by: Sequence[int | None],
    finishes: Callable[[State], bool],
    answers: Callable[[State], str] = lambda _: "42",
    untold: Callable[[State], str] = lambda _: "",
) -> tuple[StepAnswer, int]:
    """What is found, and how many states were tried for it."""
    tried = 0
    going = StepSearch(steps=steps, hit_by=hit_by, answer=ANSWER).run()
    states = next(going)
    while True:
        tried += len(states)
        found = {
            one: TryResult(
                is_solved=finishes(one),
                untold=untold(one),
                error="cell failed",
                landmarks=GOLD,
                answer=answers(one),
            )
            for one in states
        }
        try:
            states = going.send(found)
        except StopIteration as ended:
            return ended.value, tried


@given(st.integers(1, 200), st.data())
def test_a_state_that_gold_cannot_repair_is_found_at_its_step(steps: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(1, steps))
    found, tried = answer_of(steps, [None, None, None], lambda state: state.steps < bad)
    assert found == Lost(step=bad, cell=0)
    assert tried <= 2 + (steps - 1).bit_length() + 2 * (bad == 1)


@given(st.integers(2, 200), st.data())
def test_what_was_reached_and_lost_again_is_found_from_where_it_was_reached(
    steps: int, data: st.DataObject
) -> None:
    reached = data.draw(st.integers(1, steps - 1))
    bad = data.draw(st.integers(reached + 1, steps))
    found, tried = answer_of(steps, [reached, None, None], lambda state: not state.cell or state.steps < bad)
    assert found == Lost(step=bad, cell=1)
    assert tried <= 3 + (steps - reached - 1).bit_length()


def test_a_landmark_that_was_hit_by_a_wrong_state_is_left_for_an_earlier_one() -> None:
    # Step 4 broke what cells 1 to 3 need; the agent still hit the last landmark.
    found, _ = answer_of(9, [2, 5, 7], lambda state: not state.cell or (state.steps < 4 and state.cell == 1))
    assert found == Lost(step=4, cell=1)


def test_a_trial_whose_last_state_gold_finishes_is_not_lost() -> None:
    assert answer_of(9, [2, 5, 7], lambda _: True) == (NotLost(4), 2)
    # The agent has computed the last part otherwise, so gold needs more of its own cells.
    assert answer_of(9, [2, 5, 7], lambda state: state.cell < 2) == (NotLost(1), 4)


def test_a_state_without_help_is_told_apart() -> None:
    assert answer_of(9, [None, 3, 4], lambda _: True) == (OnlyAgain(), 2)
    assert answer_of(9, [2, None, None], lambda state: not state.cell)[0] == OnlyAgain("cell failed")


def test_gold_that_fails_alone_tells_nothing() -> None:
    found, tried = answer_of(9, [1, 2, 3], lambda state: state.steps > 0)
    assert found == CannotTell("gold fails in a fresh sandbox: cell failed")
    assert tried == 1


def test_gold_that_wavers_is_tried_again_on_both_sides() -> None:
    def finishes(state: State) -> bool:
        return state == ALONE or (state.steps < 5 and not state.is_again)

    found, _ = answer_of(9, [None] * 3, finishes, answers=str)
    assert isinstance(found, CannotTell)
    assert "after the first 4 and 5 steps" in found.why
    assert answer_of(9, [None] * 3, finishes)[0] == Lost(step=5, cell=0)


@given(st.integers(0, 9))
def test_a_try_that_says_nothing_is_never_taken_for_a_miss(failed: int) -> None:
    found, _ = answer_of(
        9,
        [None] * 3,
        lambda state: state.steps < 5 and state.steps != failed,
        untold=lambda state: "the disk was full" if state.steps == failed else "",
    )
    assert found in (CannotTell("the disk was full"), Lost(step=5, cell=0))
    assert failed not in (0, 4, 5, 9) or found == CannotTell("the disk was full")


def test_a_place_needs_all_landmarks_before_it() -> None:
    assert places([2, 5, 7], GOLD, ANSWER) == {2: 1, 5: 2, 7: 4}
    # In another order, the later one counts for both.
    assert places([5, 2, 7], GOLD, ANSWER) == {5: 2, 7: 4}
    assert places([None, 2, 3], GOLD, ANSWER) == {}
    # A landmark that gold itself does not hit says nothing.
    assert places([2, None, 7], (1, None, 4), ANSWER) == {2: 1, 7: 4}
    # The cell with the answer always runs.
    assert places([2], (9,), ANSWER) == {2: ANSWER}
