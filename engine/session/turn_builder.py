"""The one builder of a cycle's input, for every kind of run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from engine.cycle.turn import Turn
from engine.domain.market import ActionKind, Symbol
from engine.market.as_of import last_opened
from engine.market.trading_hours import step_at
from engine.messages.events import Noticed
from engine.session.context import Moment, Quotes, RunState, SessionContext


async def build_turn(context: SessionContext, moment: Moment, state: RunState) -> Turn:
    """The turn of a moment: the market as of then, the books after settling, and the past of the run."""
    symbols, prices = moment.symbols or context.symbols, moment.prices
    if moment.quotes is not None:
        symbols, prices = await _quoted(context, symbols, moment.quotes)
    now = moment.now or context.clock.now()
    market, portfolio, power = context.market.at(now), context.venue.portfolio, context.venue.buying_power
    held = {symbol: prices[symbol] if symbol in prices else market.close(symbol) for symbol in portfolio.positions}
    within_session = moment.cycle > 1
    return Turn(
        run=context.run,
        desk=context.desk,
        session=moment.session,
        number=moment.cycle,
        symbols=symbols,
        market=market,
        news_after=moment.news_after,
        portfolio=portfolio,
        value=portfolio.value(held),
        history=state.history,
        reserved=power.reserved,
        queued=power.queued,
        books=state.books.portfolios,
        open_orders=state.books.open_orders,
        step=step_at(context.calendar, moment.session, now)
        if within_session
        else context.calendar.number(moment.session),
        hindsight_until=moment.hindsight_until,
        taken=moment.taken,
        whole_shares=await context.venue.whole_shares(context.symbols),
        prices=prices,
    )


async def _quoted(
    context: SessionContext, symbols: Sequence[Symbol], quotes: Quotes
) -> tuple[tuple[Symbol, ...], Mapping[Symbol, Decimal]]:
    """The symbols that can be decided within a session, and the prices of this moment. A symbol that splits today is
    left out: bars and books are on the basis of before until its close is known."""
    wanted = tuple(dict.fromkeys((*symbols, *context.venue.portfolio.positions)))
    split = {symbol for symbol in wanted if _splits_today(context, symbol)}
    prices = await quotes([symbol for symbol in wanted if symbol not in split])
    for symbol in wanted:
        if symbol in split:
            _warn(context, f"{symbol} splits in this session: it is decided again when its close is known")
        elif symbol not in prices:
            _warn(context, f"{symbol} has no price at this moment: its last close is taken")
    return tuple(symbol for symbol in symbols if symbol not in split), prices


def _splits_today(context: SessionContext, symbol: Symbol) -> bool:
    """True where shares are counted anew since the last close."""
    calendar = context.market.calendars.get(symbol, context.calendar)
    now = context.clock.now()
    closed, opened = calendar.last_closed(now), last_opened(calendar, now)
    known = context.market.actions.get(symbol) or ()
    return any(one.kind is ActionKind.SPLIT and closed < one.ex_date <= opened for one in known)


def _warn(context: SessionContext, text: str) -> None:
    context.publish(Noticed(context.run, context.clock.now(), "warning", text))
