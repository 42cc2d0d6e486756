"""A recorded day beside its replay, decision by decision and order by order; and today's data beside what was seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import isnan
from typing import Any, TypeVar

from engine.cycle.recall import YEAR
from engine.domain.market import UNKNOWN, CorporateAction, PriceHistory, Symbol, from_nano
from engine.journal.entries import RunEntry
from engine.lab.decision_changes import Change, Comparison
from engine.market.as_of import Market
from engine.session.recorded_inputs import TurnInputs

T = TypeVar("T")
_COLUMNS = ("open", "high", "low", "close", "adj_close")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The result of a replay of a day.

    run: the run that was replayed.
    session: the session that it decided on.
    label: the label of the model that answered.
    comparisons: both sides of every decision.
    orders: the number of recorded orders.
    order_changes: orders that are on one side alone or differ.
    data: sentences on today's data that are not what was seen, which changes nothing of the replay.
    """

    run: RunEntry
    session: date
    label: str
    comparisons: tuple[Comparison, ...]
    orders: int
    order_changes: tuple[Change, ...]
    data: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """Decisions that came out otherwise."""
        return tuple(one for one in self.comparisons if not one.same)

    @property
    def same(self) -> bool:
        """True where every decision and every order is the same."""
        return not self.differing and not self.order_changes


def data_changes(seen: TurnInputs, today: Market, now: datetime) -> Iterator[str]:
    """Sentences on data that are read today and are not what was seen at a moment, for each symbol and kind."""
    known = today.cut(now)
    for symbol, history in seen.market.histories.items():
        if symbol not in known.histories:
            yield f"{symbol}: there are no data of it any more"
            continue
        yield from _bars(symbol, history, known.histories[symbol])
        yield from _actions(symbol, history, seen.market.actions.get(symbol), known.actions.get(symbol))
        for kind, since in (("news", seen.news_after), ("filings", now - YEAR)):
            before = {item.id: item for item in getattr(seen.market, kind).get(symbol, ())}
            items = getattr(known, kind).get(symbol, ())
            after = {item.id: item for item in items if item.available_at > since}
            yield from _items(f"{symbol}: {kind}", before, after)
    said: dict[Hashable, Any] = {item.id: item for item in seen.market.commentary}
    told: dict[Hashable, Any] = {item.id: item for item in known.commentary if item.available_at > now - YEAR}
    yield from _items("commentary of funds", said, told)
    for name, series in seen.market.macro.items():
        new = known.macro.get(name)
        dates = {one.date for one in series.observations}
        figures = () if new is None else tuple(one for one in new.observations if one.date >= min(dates))
        if figures != series.observations:
            yield f"{name}: its figures are told otherwise"


def _bars(symbol: Symbol, seen: PriceHistory, today: PriceHistory) -> Iterator[str]:
    begin = seen.sessions[0] if len(seen) else 0
    today = today.slice(today.rows_through(date.fromordinal(max(begin - 1, 1))), len(today))
    missing = sorted(set(seen.sessions) - set(today.sessions))
    added = sorted(set(today.sessions) - set(seen.sessions))
    if missing:
        yield f"{symbol}: {_days(missing)} missing today"
    if added:
        yield f"{symbol}: {_days(added)} new, and had not been seen"
    restated = [found for found in (_restated(seen, row, today) for row in range(len(seen))) if found]
    if restated:
        more = f", and {len(restated) - 1} more sessions" if len(restated) > 1 else ""
        yield f"{symbol}: restated, {restated[-1]}{more}"


def _restated(seen: PriceHistory, row: int, today: PriceHistory) -> str:
    """The first difference in a bar; empty where there is none, or no bar today."""
    session = seen.session(row)
    place = today.index(session)
    if place is None:
        return ""
    for column in _COLUMNS:
        old, new = getattr(seen, column)[row], getattr(today, column)[place]
        if old != new:
            return f"{column} of {session} was {_price(old)} and is {_price(new)}"
    then, now = seen.volume[row], today.volume[place]
    if then != now and not (isnan(then) and isnan(now)):
        return f"volume of {session} was {then:g} and is {now:g}"
    return ""


def _price(nano: int) -> str:
    return "unknown" if nano == UNKNOWN else f"{from_nano(nano).normalize():f}"


def _days(ordinals: Sequence[int]) -> str:
    last = date.fromordinal(ordinals[-1])
    return f"the bar of {last} is" if len(ordinals) == 1 else f"{len(ordinals)} bars up to {last} are"


def _actions(
    symbol: Symbol,
    history: PriceHistory,
    seen: Sequence[CorporateAction] | None,
    today: Sequence[CorporateAction] | None,
) -> Iterator[str]:
    begin = history.session(0) if len(history) else date.max
    now = None if today is None else [action for action in today if action.ex_date > begin]
    if (None if seen is None else [*seen]) != now:
        yield f"{symbol}: its splits and dividends are told otherwise"


def _items(what: str, seen: Mapping[Hashable, T], today: Mapping[Hashable, T]) -> Iterator[str]:
    late = [item for name, item in today.items() if name not in seen]
    gone = [item for name, item in seen.items() if name not in today]
    other = [item for name, item in today.items() if name in seen and seen[name] != item]
    if late:
        yield f"{what}: {_first(late)} came late, dated as if it had been known"
    if gone:
        yield f"{what}: {_first(gone)} is gone"
    if other:
        yield f"{what}: {_first(other)} reads otherwise"


def _first(items: Iterable[object]) -> str:
    """The first of some items by its title, and how many there are beside it."""
    first, *others = items
    title = str(getattr(first, "headline", None) or getattr(first, "summary", ""))
    return f'"{title[:60]}"' + (f" and {len(others)} more" if others else "")
