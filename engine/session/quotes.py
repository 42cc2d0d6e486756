"""Prices of a moment within a session, and the symbols that can be decided on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from engine.domain.market import ActionKind, Symbol
from engine.market.as_of import last_opened
from engine.session.context import Quotes, SessionContext


async def quoted(
    context: SessionContext, symbols: Sequence[Symbol], quotes: Quotes
) -> tuple[tuple[Symbol, ...], Mapping[Symbol, Decimal]]:
    """The symbols that can be decided within a session, and the prices of this moment. A symbol that splits today is
    left out: bars and books are on the basis of before until its close is known."""
    wanted = tuple(dict.fromkeys((*symbols, *context.venue.portfolio.positions)))
    split = {symbol for symbol in wanted if _splits_today(context, symbol)}
    prices = await quotes([symbol for symbol in wanted if symbol not in split])
    for symbol in wanted:
        if symbol in split:
            context.warn(f"{symbol} splits in this session: it is decided again when its close is known")
        elif symbol not in prices:
            context.warn(f"{symbol} has no price at this moment: its last close is taken")
    return tuple(symbol for symbol in symbols if symbol not in split), prices


def _splits_today(context: SessionContext, symbol: Symbol) -> bool:
    """True where shares are counted anew since the last close."""
    calendar = context.market.calendars.get(symbol, context.calendar)
    now = context.clock.now()
    closed, opened = calendar.last_closed(now), last_opened(calendar, now)
    known = context.market.actions.get(symbol) or ()
    return any(one.kind is ActionKind.SPLIT and closed < one.ex_date <= opened for one in known)
