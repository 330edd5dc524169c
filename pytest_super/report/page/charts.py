"""The geometry of the page's charts, in the units of their viewBox. The templates draw them as SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from pytest_super.gate.errors import ROUNDING
from pytest_super.report.page.figures import Level
from pytest_super.report.page.stored import GOING_ON, ShownTrial
from pytest_super.words import shortened

# On a telephone a unit is almost a pixel, so that texts can be read there without scrolling.
WIDTH = 400
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 44
PLOT = WIDTH - LEFT - RIGHT
# The bars begin here: names of sets and categories come before.
NAMES = 124
ROW = 26
SCATTER_HEIGHT = 240
# Points that are closer than this are drawn as one.
GRID = 6
LONGEST_NAME = 19
# Of a metric, below an axis.
LONGEST_LABEL = 40


@dataclass(frozen=True, kw_only=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The value of one row, with the whiskers of its interval."""

    name: str
    y: float
    width: float
    low: float | None
    high: float | None
    level: Level


@dataclass(frozen=True, kw_only=True)
class Bars:
    label: str
    """What their length shows."""
    height: float
    bars: list[Bar]
    ticks: list[Tick]


@dataclass(frozen=True, kw_only=True)
class Point:
    x: float
    y: float
    outcome: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """Trials by two of their numbers."""

    x_label: str
    y_label: str
    points: list[Point]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    height: int = SCATTER_HEIGHT


def bars_of(levels: Sequence[Level], headline: str) -> Bars:
    scale = WIDTH - NAMES - RIGHT - 40
    bars = [
        Bar(
            name=shortened(level.name, LONGEST_NAME),
            y=TOP + ROW * number,
            width=rounded(scale * level.value),
            low=None if level.bounds is None else rounded(NAMES + scale * level.bounds[0]),
            high=None if level.bounds is None else rounded(NAMES + scale * level.bounds[1]),
            level=level,
        )
        for number, level in enumerate(levels)
    ]
    ticks = [Tick(at=rounded(NAMES + scale * part / 4), text=f"{part / 4:g}") for part in range(5)]
    label = f"mean {shortened(headline, LONGEST_LABEL)}"
    return Bars(label=label, height=TOP + ROW * len(bars) + BOTTOM, bars=bars, ticks=ticks)


Reader = tuple[str, "Callable[[ShownTrial], float | None]"]
"""The label of an axis, and how its value is read; None where a trial has none."""


def cost_against_headline(trials: Sequence[ShownTrial], headline: str) -> Scatter | None:
    """The price of a trial, or its tokens where no price is known, and its headline metric."""
    value: Reader = (shortened(headline, LONGEST_LABEL), lambda one: one.result.headline_value)
    cost: Reader = ("tokens", lambda one: float(one.result.tokens) or None)
    if any(one.result.cost_usd is not None for one in trials):
        cost = ("cost in US dollars", lambda one: one.result.cost_usd)
    return scatter_of(trials, cost, value)


def compute_against_steps(trials: Sequence[ShownTrial]) -> Scatter | None:
    steps: Reader = ("steps", lambda one: float(one.result.steps))
    return scatter_of(trials, steps, ("compute time in seconds", lambda one: one.result.compute_seconds))


def scatter_of(trials: Sequence[ShownTrial], x: Reader, y: Reader) -> Scatter | None:
    """Draw trials by two values; None if no trial has both."""
    known = [
        (one, first, second)
        for one in trials
        if one.outcome != GOING_ON and (first := x[1](one)) is not None and (second := y[1](one)) is not None
    ]
    if not known or min(min(first, second) for _, first, second in known) < 0:
        return None
    x_top, x_steps = axis(max(first for _, first, _ in known))
    y_top, y_steps = axis(max(second for _, _, second in known))
    depth = SCATTER_HEIGHT - TOP - BOTTOM

    def across(value: float) -> float:
        return LEFT + PLOT * value / x_top

    def down(value: float) -> float:
        return TOP + depth * (1 - value / y_top)

    drawn: dict[tuple[float, float, str], list[str]] = {}
    for one, first, second in known:
        title = f"{one.result.name}: {short_number(first)}, {short_number(second)}, {one.outcome}"
        drawn.setdefault((on_grid(across(first)), on_grid(down(second)), one.outcome), []).append(title)
    return Scatter(
        x_label=x[0],
        y_label=y[0],
        points=[
            Point(x=at, y=height, outcome=outcome, title=titled(titles))
            for (at, height, outcome), titles in drawn.items()
        ],
        x_ticks=[Tick(at=rounded(across(one)), text=short_number(one)) for one in x_steps],
        y_ticks=[Tick(at=rounded(down(one)), text=short_number(one)) for one in y_steps],
    )


def axis(largest: float) -> tuple[float, list[float]]:
    """The end of an axis from 0, and its ticks at round numbers."""
    if largest <= 0:
        return 1.0, [0.0, 1.0]
    power = 10.0 ** floor(log10(largest))
    step = next(power * part for part in (0.2, 0.5, 1, 2) if largest / (power * part) <= 5 + ROUNDING)
    count = max(ceil(largest / step - ROUNDING), 1)
    return step * count, [step * number for number in range(count + 1)]


def titled(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]}; and {len(texts) - 1} more here"


def on_grid(value: float) -> float:
    return float(round(value / GRID) * GRID)


def rounded(value: float) -> float:
    return round(value, 1)


def short_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
