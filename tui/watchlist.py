"""The watchlist of the Desk: the symbols of one group, those that the desk does not trade with their last close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui import app_state
from tui.market_view import Quote

if TYPE_CHECKING:
    from engine.market.point_in_time import MarketAsOf

DESK = "desk"
"""The group of the desk's own symbols."""
STATE, GROUP = "watchlist", "group"
"""Part and name under which the group that was shown last is kept."""


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """A group of symbols; `others` are quotes of those that the desk does not trade."""

    name: str = DESK
    symbols: tuple[str, ...] = ()
    others: tuple[Quote, ...] = ()

    def quotes(self, traded: Sequence[Quote]) -> list[Quote]:
        """The quotes of the group in its order; of the desk's own group those that it trades."""
        if self.name == DESK:
            return list(traded)
        known = {quote.symbol: quote for quote in (*self.others, *traded)}
        return [known.get(symbol, Quote(symbol, None, None)) for symbol in self.symbols]

    def beyond(self, traded: Sequence[Quote]) -> list[str]:
        """The symbols that the desk does not trade."""
        own = {quote.symbol for quote in traded}
        return [symbol for symbol in self.symbols if symbol not in own]

    def with_closes(self, closes: MarketAsOf | None, traded: Sequence[Quote]) -> WatchedGroup:
        """The group with the last closes of the symbols that the desk does not trade, as far as there are any."""
        found = [] if closes is None else [_quote(closes, one) for one in self.beyond(traded) if closes.count(one)]
        return replace(self, others=tuple(found))


def last_group() -> str:
    """The name of the group that was shown last."""
    name = app_state.section(STATE).get(GROUP)
    return name if isinstance(name, str) else DESK


def keep_group(name: str) -> None:
    """Keep the group that is shown for the next opening."""
    app_state.keep(STATE, {GROUP: name})


def changes_of(text: str, shown: str) -> tuple[str, list[str], list[str]]:
    """The group of a line such as `core: NVDA -AAPL`, by default the one that is shown, the symbols to add and those to
    take out. Raises ValueError that says how it is written."""
    name, colon, rest = text.rpartition(":")
    group, symbols = name.strip() if colon else shown, rest.split()
    if not symbols:
        raise ValueError("write symbols, such as NVDA -AAPL")
    if group == DESK:
        raise ValueError("the desk's own symbols are desk.symbols in the configuration; name a group, as core: NVDA")
    return group, [one for one in symbols if one[0] != "-"], [one[1:] for one in symbols if one[0] == "-"]


def _quote(closes: MarketAsOf, symbol: str) -> Quote:
    bars = closes.bars(symbol, 2)
    change = bars.close[-1] / bars.close[-2] - 1 if len(bars) > 1 else None
    return Quote(symbol, closes.close(symbol), change, bars.session(-1))
