"""A desk's closes held against the broker's of the same session, symbol by symbol, before anything is decided."""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Decimal

from engine.app.desk.context import DeskContext, desk_account, desk_context
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import broker_closes, held_symbols, load_desk
from engine.domain.market import Symbol, from_nano, is_crypto
from engine.errors import PaperdeskError
from engine.market.as_of import Market
from engine.market.price_faults import PriceFault
from engine.services import Services

FROZEN = Decimal("0.05")
"""The part of the broker's close by which a symbol's own may differ, at most, for it to be decided on; more where the
tolerance is."""


async def off_prices(
    context: DeskContext, market: Market, faulty: Collection[Symbol], warn: Callable[[str], None]
) -> tuple[PriceFault, ...]:
    """The faults of symbols whose close of the context's session is far off the broker's; one that is off by more than
    the tolerance is warned of, as are closes that cannot be asked for. Symbols that are faulty already are left out."""
    services, session = context.services, context.session
    ours: dict[Symbol, Decimal] = {}
    for symbol, history in market.histories.items():
        row = history.index(session)
        if row is not None and symbol not in faulty:
            ours[symbol] = from_nano(history.close[row])
    try:
        theirs = await broker_closes(services, list(ours), session) if ours else {}
    except PaperdeskError as error:
        warn(f"the closes of {session} are not compared with the broker's: {error}")
        return ()
    tolerance, faults = Decimal(str(services.config.broker.price_tolerance)), list[PriceFault]()
    for symbol, close in theirs.items():
        gap = (ours[symbol] - close) / close
        if abs(gap) <= tolerance:
            continue
        feed = "its own for crypto" if is_crypto(symbol) else services.config.broker.feed
        text = f"{symbol}: its close of {session} is {ours[symbol]:f} in the data and {close:f} at the broker (feed "
        text += f"{feed}), {gap:+.1%} off"
        if abs(gap) <= max(FROZEN, tolerance):
            warn(f"{text}: compare with `paperdesk fetch bars`, or raise broker.price_tolerance for another feed")
        else:
            advice = "fetch the bars again (`paperdesk fetch bars --again`), or correct those of the data folder"
            faults.append(PriceFault(symbol, session, f"{text}: {advice}"))
    return tuple(faults)


async def prices_now(services: Services, warn: Callable[[str], None]) -> tuple[PriceFault, ...]:
    """The faults that a run of the desk would find now, between two of them; the next one freezes their symbols. Raises
    what the data and the broker raise."""
    assert services.broker is not None
    with DeskJournal(services.desk) as journal:
        async with desk_account(services, services.broker) as account:
            context = desk_context(services, journal, account=account)
            market = await load_desk(services, context.session, held_symbols(journal.reader), prices_only=True)
            return await off_prices(context, market, {one.symbol for one in market.faults}, warn)
