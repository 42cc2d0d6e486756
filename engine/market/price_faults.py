"""The data doctor: bars and corporate actions held against each other, before anything is traded on them.

Bars are to be as traded. Then a split shows as a jump of its ratio at the open of its ex-date, and a jump of such a
ratio has a split. Where one is without the other, a position would be multiplied or lose its worth in silence.

Coverage of a window by a symbol's bars: a gap is an error, a late start and an early end are values.

The state of a symbol's data on a day: one judgement, on which imports, fetches, backtests, audits and runs act.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context
from enum import StrEnum
from itertools import pairwise

import numpy as np

from engine.domain.market import NANO, PRICES, ActionKind, CorporateAction, PriceHistory, Symbol, from_nano, is_crypto
from engine.domain.text import first_few
from engine.errors import MalformedData, MissingData, StaleData, UsageError
from engine.market.implied_actions import USUAL_RATIOS, Implied, implied_actions
from engine.ports import Calendar

NEAR = 0.10
"""Distance from a usual ratio, as a part of it, within which a jump is taken for a split."""
HALF_AS_MANY = 1.5
NEAR_HALF_AS_MANY = 0.02
"""The ratio 3:2, which real moves come close to: NFLX closed at 0.649 on 2022-04-20 and NIO at 1.537 on 2019-12-30. 4:3
and 5:4 are moves of a day."""
SMALLEST_RATIO = 1.2
"""Smallest ratio of a split, or of its inverse, that can be told from the move of a day; smaller ones are not held
against the bars."""
TOLERANCE = 1.25
"""Factor by which the open of an ex-date may differ from the close before, on the basis of the split. Of a ratio so
small that no jump lies within the factor too, the nearer one counts."""
SPIKE = 10
"""Factor by which a price has to be away from the close before and the open after to be a spike, and a jump at an open
to need an action whatever its ratio is."""

_TOLD = 8
"""Faults of a symbol that are told whole; of more the days are."""
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_EVEN)
_MOVES = (1 / HALF_AS_MANY * (1 + NEAR_HALF_AS_MANY), HALF_AS_MANY * (1 - NEAR_HALF_AS_MANY))
"""Moves at an open between which nothing is a jump."""


@dataclass(frozen=True, slots=True)
class PriceFault:
    """A session at which a symbol's bars and actions contradict each other, or whose bar did not come; `text` says
    what, where and how to mend it. `halted`: nothing was traded in the session, so no bar is missing. Of a
    contradiction `problem` is what and where, and `remedies` are the action that mends it and the row that confirms its
    move."""

    symbol: Symbol
    session: date
    text: str
    halted: bool = False
    problem: str = ""
    remedies: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Bars, actions and adj_close of a symbol held against each other.

    faults: contradictions, in order of session.
    moves: sentences on jumps that no action says why, by session: adj_close knows the actions, and of none there, so
        they are moves of the price.
    implied: actions that adj_close implies.
    """

    faults: tuple[PriceFault, ...]
    moves: Mapping[date, str]
    implied: Implied

    def notes(self, first: date, last: date) -> Iterator[str]:
        """Sentences on the bars from first to last that a reader has to know."""
        yield from self.implied.notes(first, last)
        yield from (text for day, text in self.moves.items() if first <= day <= last)


def price_faults(history: PriceHistory, actions: Sequence[CorporateAction] | None) -> tuple[PriceFault, ...]:
    """The faults of a comparison."""
    return compare(history, actions).faults


def compare(history: PriceHistory, actions: Sequence[CorporateAction] | None) -> Comparison:
    """All faults of a symbol, its impossible rows and bars that are not daily among them. Crypto has no splits, so its
    jumps are moves; so are those of a share where its adj_close knows other actions, and none there.

    A move that was real is no fault where an action of the kind `confirmed` has it as its value, within TOLERANCE.
    """
    left_out = [PriceFault(history.symbol, day, text) for day, text in history.impossible.items()]
    if is_sparse(history):
        text = f"{history.symbol}: weekly or monthly bars, no two within four days of each other: import daily ones"
        left_out.append(PriceFault(history.symbol, history.session(0), text))
    implied, moves = implied_actions(history, actions), dict[date, str]()
    faults = sorted((*left_out, *_faults(implied, actions or (), moves)), key=lambda fault: fault.session)
    return Comparison(faults=tuple(faults), moves=moves, implied=implied)


def refuse_faults(faults: Sequence[PriceFault], last: date) -> None:
    """Raise MalformedData over all faults up to a session, those of a symbol together with the ways to mend them."""
    found = [fault for fault in faults if fault.session <= last]
    by_symbol = {symbol: [one for one in found if one.symbol == symbol] for symbol in {one.symbol: 0 for one in found}}
    if found:
        raise MalformedData("; ".join(_told(own) for own in by_symbol.values()))


def _told(faults: Sequence[PriceFault]) -> str:
    """The faults of a symbol in a sentence."""
    if len(faults) == 1:
        return faults[0].text
    symbol = faults[0].symbol
    problems = [fault.problem or fault.text.removeprefix(f"{symbol}: ") for fault in faults]
    if len(faults) > _TOLD:
        problems[_TOLD:] = [f"and likewise on {', '.join(str(fault.session) for fault in faults[_TOLD:])}"]
    mending = list(dict.fromkeys(fault.remedies[0] for fault in faults[:_TOLD] if fault.remedies[0]))
    confirming = [fault.remedies[1] for fault in faults[:_TOLD] if fault.remedies[1]]
    ways = f"; import other bars, {', '.join(mending)}, or confirm the moves that were real by {', '.join(confirming)}"
    told = f"{symbol}: {len(faults)} faults: {'; '.join(problems)}"
    return f"{told}{ways} in actions/{symbol}.csv" if confirming else told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """A bar against the close before.

    history, row: the bar.
    ratio: new shares for an old one at its open; 1 without a split.
    basis: the close before in nano-units, on the basis of the bar by the actions of its open.
    confirmed: the move that a person has confirmed; None without one.
    """

    history: PriceHistory
    row: int
    ratio: float
    basis: float
    confirmed: float | None

    @property
    def gap(self) -> float:
        """The open over the close before, as the bars have them."""
        return self.history.open[self.row] / (self.basis * self.ratio)

    def fault(self, move: float, problem: str, missing: str) -> Iterator[PriceFault]:
        """The fault, unless its move is confirmed; `problem` and `missing` are a part of its text each."""
        if self.confirmed is not None and _within(move / self.confirmed, TOLERANCE):
            return
        symbol, session = self.history.symbol, self.history.session(self.row)
        row = f"{session},{ActionKind.CONFIRMED},{_plain(move)}"
        text = (
            f"{symbol}: {problem}; import other bars, {missing}, or confirm the move by {row} in actions/{symbol}.csv"
        )
        yield PriceFault(symbol, session, text, problem=problem, remedies=(missing, row))


def _faults(implied: Implied, actions: Sequence[CorporateAction], moves: dict[date, str]) -> Iterator[PriceFault]:
    history = implied.history
    due: dict[int, list[CorporateAction]] = {}
    for action in actions:
        row = history.rows_through(date.fromordinal(action.ex_date.toordinal() - 1))
        due.setdefault(row, []).append(action)
    spiked = -1
    split = [history.index(one.ex_date) for one in implied.missing if one.kind is ActionKind.SPLIT]
    for row in _suspects(history, due, split):
        opening = _opening(history, row, due.get(row, ()))
        if opening.ratio != 1:
            yield from _split_fault(opening)
        elif row - 1 == spiked:
            continue  # the way back from a spike
        elif name := _spike(opening, due.get(row + 1, ())):
            spiked = row
            yield from _spike_fault(opening, name)
        elif not is_crypto(history.symbol):
            yield from _jump_fault(opening, implied, moves)


def _suspects(history: PriceHistory, due: Iterable[int], split: Iterable[int | None]) -> Sequence[int]:
    """Rows with an action, a jump at the open, a price far from the close before, or a split that adj_close implies."""
    columns = history.close[:-1], history.open[1:], history.high[1:], history.low[1:]
    before, opened, high, low = (np.asarray(column, np.float64) for column in columns)
    moves, (lowest, highest) = opened / before, _MOVES
    far = (moves <= lowest) | (moves >= highest) | (high >= before * SPIKE) | (low * SPIKE <= before)
    rows = {*(np.flatnonzero(far) + 1).tolist(), *due, *split}
    return sorted(row for row in rows if row is not None and 0 < row < len(history))


def _opening(history: PriceHistory, row: int, actions: Sequence[CorporateAction]) -> _Opening:
    found = {action.kind: float(action.value) for action in actions}
    ratio, before = found.get(ActionKind.SPLIT, 1.0), history.close[row - 1]
    # A dividend of more than the share was worth is no basis for anything.
    paid = min(found.get(ActionKind.DIVIDEND, 0.0) * NANO, before * 0.9)
    return _Opening(
        history=history,
        row=row,
        ratio=ratio,
        basis=(before - paid) / ratio,
        confirmed=found.get(ActionKind.CONFIRMED),
    )


def _split_fault(opening: _Opening) -> Iterator[PriceFault]:
    ratio, gap = opening.ratio, opening.gap
    named, day = _named(ratio), opening.history.session(opening.row)
    if is_crypto(opening.history.symbol):
        problem = f"a split of {named} on {day}, and crypto has no splits"
        yield from opening.fault(gap, problem, "take the split out of the actions")
        return
    nearer = max(ratio, 1 / ratio) ** 0.5
    if nearer**2 < SMALLEST_RATIO or _within(gap * ratio, min(TOLERANCE, nearer)):
        return
    if _within(gap, min(TOLERANCE, nearer)):
        problem = f"the split of {named} on {day} shows no jump (the open is {_plain(gap)} of the close before), so "
        problem += "the bars are adjusted already"
        yield from opening.fault(gap, problem, "take the split out of the actions")
    else:
        problem = f"the split of {named} on {day} does not fit the bars: the open is {_plain(gap)} of the close before"
        yield from opening.fault(gap, problem, "correct the split in the actions")


def _spike(opening: _Opening, after: Sequence[CorporateAction]) -> str | None:
    """The price of a bar that is far from the close before and, where there is a bar after, from its open too."""
    history, row = opening.history, opening.row
    near = [opening.basis]
    if row + 1 < len(history):
        following = _opening(history, row + 1, after)
        near.append(history.open[row + 1] * history.close[row] / following.basis)
    elif not _within(opening.gap, SPIKE):
        return None  # a jump at the last open may be a split that is missing
    for name in PRICES:
        price = getattr(history, name)[row]
        if price >= max(near) * SPIKE or price * SPIKE <= min(near):
            return name
    return None


def _spike_fault(opening: _Opening, name: str) -> Iterator[PriceFault]:
    move = getattr(opening.history, name)[opening.row] / opening.basis
    day = opening.history.session(opening.row)
    problem = f"the {name} of {day} is {_plain(move)} times the close before and far from its neighbours, a spike"
    yield from opening.fault(move, problem, "correct the bar")


def _jump_fault(opening: _Opening, implied: Implied, moves: dict[date, str]) -> Iterator[PriceFault]:
    move = opening.history.open[opening.row] / opening.basis
    day = opening.history.session(opening.row)
    missing = implied.at(day)
    ratio = _usual_ratio(move) if missing is None else float(missing.value)
    if (ratio is None and _within(move, SPIKE)) or (missing is not None and missing.kind is ActionKind.DIVIDEND):
        return
    problem = f"the open of {day} is {_plain(move)} of the close before and no action says why"
    if _within(move, SPIKE) and implied.is_level(opening.row):
        moves[day] = (
            f"{opening.history.symbol}: {problem}; adj_close knows of none either, so it is taken for a real move"
        )
        return
    if ratio is None:
        yield from opening.fault(move, problem, "add the missing action")
        return
    split = _plain(ratio)
    problem += f", as at a split of {_named(ratio)} that is missing"
    problem += "" if missing is None else " and by which adj_close steps"
    yield from opening.fault(move, problem, f"add the missing action {day},{ActionKind.SPLIT},{split}")


def _usual_ratio(move: float) -> float | None:
    """The ratio of the split that a move at the open looks like: the nearest usual one, where one is near."""
    jump = max(move, 1 / move)
    near = [float(ratio) for ratio in USUAL_RATIOS if _within(jump / ratio, 1 + NEAR)]
    if _within(jump / HALF_AS_MANY, 1 + NEAR_HALF_AS_MANY):
        near = [HALF_AS_MANY]
    if not near:
        return None
    best = min(near, key=lambda ratio: max(jump / ratio, ratio / jump))
    return best if move < 1 else 1 / best


def _within(quotient: float, factor: float) -> bool:
    return 1 / factor < quotient < factor


def _named(ratio: float) -> str:
    """A ratio as people say it: 4:1, 3:2, 1:20."""
    for old in (1, 2, 3, 4):
        for new, per in ((ratio * old, old), (old, old / ratio)):
            if abs(new - round(new)) < 1e-6 and abs(per - round(per)) < 1e-6:
                return f"{round(new)}:{round(per)}"
    return f"{_plain(ratio)}:1"


def _plain(figure: float) -> str:
    return f"{_FOUR_DIGITS.create_decimal_from_float(figure).normalize():f}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """First and last session of a window with a bar; none between them is missing."""

    first: date
    last: date
    starts_late: bool
    """True where the symbol begins to trade after the window's first session."""
    ends_early: bool
    """True where the symbol stops trading before the window's last session."""


def check_coverage(history: PriceHistory, calendar: Calendar, first: date, last: date) -> Coverage:
    """Compare the bars dated from first to last (both included) with the calendar's sessions.

    Raises UsageError for a window without sessions, MissingData for sessions without a bar before the last one and
    where all bars are later, StaleData where all bars are earlier, MalformedData for an impossible row and for a bar on
    a day without a session.
    """
    sessions = calendar.sessions(first, last)
    if not sessions:
        raise UsageError(f"{calendar.name} has no session from {first} to {last}; choose a longer window")
    window = history.slice(history.rows_through(date.fromordinal(first.toordinal() - 1)), history.rows_through(last))
    if window.sessions == array("q", [day.toordinal() for day in sessions]):
        return Coverage(sessions[0], sessions[-1], starts_late=False, ends_early=False)  # the quick way of sound data
    without = days_without_bar(history, calendar, sessions)
    impossible = next((day for day, state in without.items() if state is DayState.IMPOSSIBLE), None)
    if impossible is not None:
        raise MalformedData(history.impossible[impossible])
    missing = [day for day, state in without.items() if state is DayState.MISSING]
    if missing:
        raise MissingData(missing_text(history, calendar, missing))
    if not window:
        _raise_outside(history, first, last)
    bars = set(window.sessions)
    extra = sorted(bars - {day.toordinal() for day in sessions})
    if extra:
        days = [date.fromordinal(day) for day in extra]
        raise MalformedData(
            f"{history.symbol}: bars on {_listed(days)}, which are not sessions of {calendar.name}; remove those rows"
        )
    begins, ends = window.session(0), window.session(-1)
    return Coverage(begins, ends, begins > sessions[0], ends < sessions[-1])


def missing_text(history: PriceHistory, calendar: Calendar, missing: Sequence[date]) -> str:
    """The sentence on sessions without a bar between others."""
    return (
        f"{history.symbol}: no bar for {_listed(missing)} of {calendar.name}; import the missing rows (with volume 0 "
        "where nothing was traded), or choose a window without the gap"
    )


def _raise_outside(history: PriceHistory, first: date, last: date) -> None:
    if history and history.session(-1) < first:
        raise StaleData(f"{history.symbol}: its bars end on {history.session(-1)}, before {first}; fetch newer ones")
    begins = f"begin on {history.session(0)}" if history else "are none"
    raise MissingData(f"{history.symbol}: no bar from {first} to {last} (its bars {begins}); choose another window")


def _listed(days: Sequence[date]) -> str:
    noun = "session" if len(days) == 1 else f"{len(days)} sessions:"
    return f"{noun} {first_few(days)}"


_NOISE = 100_000
"""The part of a price, one in so many, within which a price outside of its bar's range is rounding."""
_SPARSE = 8
"""Bars from which on it can be told that a file has none of each day."""
_APART = 4
"""Days between two bars of consecutive sessions, at most, over a long weekend."""


class ImpossibleRows(MalformedData):
    """Rows of a symbol's bars cannot be; `history` has the others, and theirs as its `impossible`."""

    def __init__(self, history: PriceHistory) -> None:
        first, *others = history.impossible.items()
        more = f" (and those of {', '.join(str(day) for day, _ in others)})" if others else ""
        super().__init__(first[1] + more)
        self.history = history


class DayState(StrEnum):
    """The state of a symbol's data on a session of its calendar."""

    USABLE = "usable"
    UNTRADED = "untraded"
    """Its volume is zero in a series that has volumes: there is no price to trade at."""
    LATE = "late"
    """The bars end before it."""
    MISSING = "missing"
    """No bar, and a later one."""
    IMPOSSIBLE = "impossible"
    """A row that no market can have made."""


def day_state(history: PriceHistory, calendar: Calendar, session: date) -> DayState | None:
    """The state of a symbol's data on a day; None where nothing is expected of it: the calendar has no such session, or
    it is before the first bar."""
    if session in history.impossible:
        return DayState.IMPOSSIBLE
    row = history.index(session)
    if row is not None:
        return DayState.UNTRADED if is_untraded(history, row) else DayState.USABLE
    rows = history.rows_through(session)
    if not calendar.sessions(session, session) or (len(history) and not rows):
        return None
    return DayState.LATE if rows == len(history) else DayState.MISSING


def days_without_bar(history: PriceHistory, calendar: Calendar, sessions: Sequence[date]) -> dict[date, DayState]:
    """Those of some sessions that are late, missing or impossible, in their order."""
    bars = set(history.sessions)
    open_days = (day for day in sessions if day.toordinal() not in bars)
    states = ((day, day_state(history, calendar, day)) for day in open_days)
    return {day: state for day, state in states if state is not None}


def is_untraded(history: PriceHistory, row: int) -> bool:
    """True where nothing was traded in a bar: its volume is zero, and others of the series have one."""
    return history.volume[row] == 0 and any(volume > 0 for volume in history.volume)


def is_sparse(history: PriceHistory) -> bool:
    """True for weekly or monthly bars: no two of them, of eight or more, lie within four days."""
    days = history.sessions
    return len(days) >= _SPARSE and all(after - day > _APART for day, after in pairwise(days))


def is_noise(distance: int, price: int) -> bool:
    """True where a distance of prices is less than a hundred-thousandth of a price, any unit."""
    return distance * _NOISE < price


def bar_fault(opened: int, high: int, low: int, close: int) -> str:
    """The rule that the prices of a bar (nano-units, above zero) break by more than rounding; empty for none."""
    if not is_noise(low - high, low):
        return f"high {from_nano(high):f} is below low {from_nano(low):f}"
    for name, price in (("open", opened), ("close", close)):
        if not is_noise(max(price - high, low - price), price):
            return f"{name} {from_nano(price):f} is not between low {from_nano(low):f} and high {from_nano(high):f}"
    return ""


def without_noise(opened: int, high: int, low: int, close: int) -> tuple[int, int, int, int]:
    """The open, high, low and close of a bar, those outside of its range by rounding put onto its bounds."""
    low, high = min(low, high), max(low, high)
    return min(max(opened, low), high), high, low, min(max(close, low), high)
