"""The watchlist of the Desk: the symbols of one group, those that the desk does not trade with their last close."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tui.settings import app_state
from tui.view.market_view import MarketView, Quote

DESK = "desk"
"""The group of the desk's own symbols."""
FIRST_GROUP = "core"
"""The group that is made where there is none."""
STATE, GROUP = "watchlist", "group"
"""Part and name under which the group that was shown last is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedGroup:
    """A group of symbols, and one beside it that was searched.

    name: the group's.
    symbols: of the group; none of the desk's own, which follow the desk.
    searched: the symbol beside them; empty for none.
    looked_up: quotes and charts of those that the desk does not trade, once they are read.
    """

    name: str = DESK
    symbols: tuple[str, ...] = ()
    searched: str = ""
    looked_up: MarketView = field(default_factory=MarketView)

    def quotes(self, traded: Sequence[Quote]) -> list[Quote]:
        """The quotes of the group in its order, then that of the symbol beside it."""
        known = {quote.symbol: quote for quote in (*self.looked_up.quotes, *traded)}
        own = [quote.symbol for quote in traded] if self.name == DESK else self.symbols
        every = dict.fromkeys((*own, self.searched) if self.searched else own)
        return [known.get(symbol, Quote(symbol, None, None)) for symbol in every]

    def beyond(self, traded: Sequence[Quote]) -> list[str]:
        """The symbols that the desk does not trade."""
        own = {quote.symbol for quote in traded}
        return [quote.symbol for quote in self.quotes(traded) if quote.symbol not in own]


def present_group(groups: Collection[str]) -> str:
    """The group that a searched symbol is added to: the one that was shown last, else the first there is, else a new
    one."""
    last = last_group()
    return last if last in groups else next(iter(groups), FIRST_GROUP)


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
        raise ValueError("the desk's own symbols are set in desk.symbols; name a group, such as core: NVDA")
    return group, [one for one in symbols if one[0] != "-"], [one[1:] for one in symbols if one[0] == "-"]
