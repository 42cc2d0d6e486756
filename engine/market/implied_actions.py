"""Splits and dividends that adj_close implies, held against those of the actions.

adj_close over close is level between two actions. At an ex-date it steps: by 1 - dividend / close before, and by one
over the ratio of a split. Both figures are rounded in a file, so a level is an interval, and a step is where two of
them part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from math import gcd, log

from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction, PriceHistory
from engine.domain.text import first_few

USUAL_RATIOS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 80, 100, 150, 200)
"""Ratios of splits (new shares for an old one, or old ones for a new), near which a jump is taken for one."""
_SPLIT_RATIOS = (1.25, 4 / 3, 1.5, 2.5, *USUAL_RATIOS)
"""Ratios of splits for which a step is taken; one near none of them is a dividend."""

_SINGLE = 2.5e-7
"""Rounding of a figure that was a float of four bytes on its way, a few times, as a part of it."""
_LEAST_STEP = 2e-5
"""Steps of a smaller part of the level are noise: no dividend is as small."""
_COARSEST = NANO // 100
"""The coarsest unit that figures are taken to be rounded to, nano-units: a cent."""
_TOO_MANY = 0.25
"""The part of bars with a step from which on there are no levels."""
_NARROW = 1.02
"""Quotient of two bounds within which the ratio of a split can be told."""
_SAME = 0.2
"""Distance of a dividend that adj_close implies from one in the actions, as a part of it, within which they are one."""
_VISIBLE = 1.2
"""The smallest ratio that shows in the bars at the open of an ex-date."""
_DIGITS = range(2, 7)
"""Decimals of dividends: the fewest with which one fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """Actions that adj_close implies.

    history: the bars.
    missing: what the actions lack.
    unclear: days at which adj_close implies an action whose day or amount cannot be told, or is another than theirs.
    stepped: rows at which adj_close over close steps.
    level: False where it moves from bar to bar, so that it is made in another way and cannot be compared.
    """

    history: PriceHistory
    missing: tuple[CorporateAction, ...] = ()
    unclear: tuple[date, ...] = ()
    stepped: frozenset[int] = frozenset()
    level: bool = True

    def is_level(self, row: int) -> bool:
        """True where adj_close knows actions, and of none between a bar and the one before. One that is the close
        everywhere knows of none at all."""
        known = self.history.adj_close[row] != UNKNOWN and self.history.adj_close[row - 1] != UNKNOWN
        return known and bool(self.stepped) and row not in self.stepped

    def at(self, day: date) -> CorporateAction | None:
        """The action of a day that the actions lack."""
        return next((one for one in self.missing if one.ex_date == day), None)

    def notes(self, first: date, last: date) -> Iterator[str]:
        """Sentences on what is missing from first to last."""
        symbol = self.history.symbol
        if not self.level:
            yield f"{symbol}: adj_close over close moves from bar to bar: it is made in another way, and not compared"
        for kind in (ActionKind.DIVIDEND, ActionKind.SPLIT):
            found = [one for one in self.missing if one.kind is kind and first <= one.ex_date <= last]
            if found:
                named = first_few([f"{one.ex_date} {one.value:f}" for one in found])
                yield (
                    f"{symbol}: adj_close implies {len(found)} {kind}{'s' if len(found) > 1 else ''} that the actions "
                    f"lack ({named}): `paperdesk import actions --from-adjusted --symbol {symbol}` derives them"
                )
        unclear = [str(day) for day in self.unclear if first <= day <= last]
        if unclear:
            days = first_few(unclear)
            yield f"{symbol}: adj_close implies other actions than there are, and does not tell them: {days}"


def implied_actions(history: PriceHistory, actions: Sequence[CorporateAction] | None) -> Implied:
    """Compare the adj_close of bars with the actions; nothing where no adj_close is known."""
    if history.adj_close == history.close or history.adj_close.count(UNKNOWN) == len(history):
        return Implied(history=history)
    levels = _levels(history)
    if len(levels) > 2 + _TOO_MANY * len(history):
        return Implied(history=history, level=False)
    due: dict[int, list[CorporateAction]] = {}
    for one in actions or ():
        due.setdefault(history.rows_through(date.fromordinal(one.ex_date.toordinal() - 1)), []).append(one)
    missing: list[CorporateAction] = []
    unclear: list[date] = []
    steps = [(before, after) for before, after in pairwise(levels) if before.end == after.start]
    for before, after in steps:
        there = due.get(after.start, ())
        low, high = _unexplained(history, before, after, there)
        if low <= 1 <= high:
            continue
        action = _action(history, after.start, low, high) if _is_sure(before, after, len(history)) else None
        if action is None or any(one.kind is action.kind for one in there):
            unclear.append(history.session(after.start))
        else:
            missing.append(action)
    return Implied(
        history=history,
        missing=tuple(missing),
        unclear=tuple(unclear),
        stepped=frozenset(after.start for _, after in steps),
    )


@dataclass(slots=True)
class _Level:
    """Bars from start (included) to end (excluded), the bounds between which adj_close over close lies in all of them,
    and those of the last one by itself."""

    start: int
    end: int
    low: float
    high: float
    last: tuple[float, float]


def _levels(history: PriceHistory) -> list[_Level]:
    off_close, off_adjusted = _unit(history.close) / 2, _unit(history.adj_close) / 2
    levels: list[_Level] = []
    level = None
    for row, (close, adjusted) in enumerate(zip(history.close, history.adj_close, strict=True)):
        if adjusted == UNKNOWN:
            level = None
            continue
        ratio = adjusted / close
        off = ratio * (off_close / close + off_adjusted / adjusted + 2 * _SINGLE)
        low, high = ratio - off, ratio + off
        if level is None or low > level.high * (1 + _LEAST_STEP) or high < level.low * (1 - _LEAST_STEP):
            level = _Level(row, row + 1, low, high, (low, high))
            levels.append(level)
            continue
        level.end, level.last = row + 1, (low, high)
        if low <= level.high and high >= level.low:
            level.low, level.high = max(low, level.low), min(high, level.high)
    return levels


def _unit(column: Sequence[int]) -> int:
    """The unit that the figures of a column are rounded to, nano-units: the largest power of ten that is in all."""
    common, unit = gcd(*(nano for nano in column if nano != UNKNOWN)), _COARSEST
    while common % unit:
        unit //= 10
    return unit


def _is_sure(before: _Level, after: _Level, bars: int) -> bool:
    """True where the day of a step is sure: the bar before it cannot belong to the level after it. Where adj_close of
    the last of all bars is above the close, as it never was, the file itself is wrong."""
    low, high = before.last
    wrong = after.end == bars and after.low > 1 + _LEAST_STEP and before.low < 1 + _LEAST_STEP
    return (low > after.high or high < after.low) and not wrong


def _unexplained(
    history: PriceHistory, before: _Level, after: _Level, actions: Sequence[CorporateAction]
) -> tuple[float, float]:
    """Bounds of the level before over the level after, without what the actions say: less than 1 at a dividend or a
    split, more at a reverse split, around 1 where the actions have it all."""
    split = next((float(one.value) for one in actions if one.kind is ActionKind.SPLIT), 1.0)
    paid = next((float(one.value) for one in actions if one.kind is ActionKind.DIVIDEND), 0.0)
    part = paid * NANO / history.close[after.start - 1]
    told = max(1 - part, 1e-9) / split
    low, high = before.low / after.high / told, before.high / after.low / told
    # A dividend may be rounded otherwise on its way into adj_close.
    if low - _SAME * part <= 1 <= high + _SAME * part:
        return min(low, 1.0), max(high, 1.0)
    return low, high


def _action(history: PriceHistory, row: int, low: float, high: float) -> CorporateAction | None:
    """The action of a step between two bounds; None where none fits."""
    day = history.session(row)
    for ratio in _SPLIT_RATIOS:
        for new in (ratio, 1 / ratio):
            if low <= 1 / new <= high < low * _NARROW and _jumps(history, row, new):
                return CorporateAction(history.symbol, day, ActionKind.SPLIT, Decimal(repr(round(new, 6))))
    close = history.close[row - 1] / NANO
    least, most = close * (1 - high), close * (1 - low)
    if not 0 < least <= most < 2 * least or not _jumps(history, row, 1 / high):
        return None
    middle = (least + most) / 2
    value = next((one for digits in _DIGITS if least <= (one := round(middle, digits)) <= most), round(middle, 6))
    return CorporateAction(history.symbol, day, ActionKind.DIVIDEND, Decimal(repr(value)))


def _jumps(history: PriceHistory, row: int, ratio: float) -> bool:
    """True where the open of a bar is nearer to the close before on the basis of a ratio than without, or the ratio too
    small to tell."""
    gap = log(history.open[row] / history.close[row - 1])
    return 1 / _VISIBLE < ratio < _VISIBLE or abs(gap + log(ratio)) < abs(gap)
