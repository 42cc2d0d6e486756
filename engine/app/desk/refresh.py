"""Market data fetched before a daily run at a broker: what the run reads, as far as it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial

from engine.domain.fetched import Fetched
from engine.domain.live import FeedMessage, LastTrade
from engine.domain.market import Symbol
from engine.errors import MissingData, PaperdeskError, StaleData
from engine.market.price_faults import PriceFault
from engine.messages.events import Event, Noticed
from engine.ports import Clock, Pause
from engine.services import FetchOptions, MarketFetch, Services
from engine.session.context import run_id

PAUSES = (2.0, 5.0, 10.0, 20.0)
"""Seconds after which bars that the feed does not have yet are asked for again, before a daily run."""
Untraded = Callable[[Sequence[Symbol]], Awaitable[Mapping[Symbol, str]]]
"""Those of some symbols in which nothing was traded, with a line that says so."""
FILINGS_BACK = timedelta(days=400)
"""The period over which a daily run fetches filings: an annual report and what follows it."""


async def refresh(
    services: Services,
    symbols: Sequence[Symbol],
    session: date,
    clock: Clock,
    publish: Callable[[Event], None] = lambda event: None,
    *,
    pause: Pause = asyncio.sleep,
    run: str | None = None,
) -> tuple[PriceFault, ...]:
    """Fetch what a run at a broker reads: bars, actions and news of some symbols, and filings once a day where
    filings.user_agent is set. `run` is the run that warns, the session's daily run unless another is named.

    Bars of `session` have to come for the desk's own symbols, and are waited for a little. The faults are those of
    symbols without one, where others have theirs or nothing was traded. Anything else that fails is published as a
    warning. Raises StaleData where no bar comes, and as MarketFetch does for bars.
    """
    if services.data_folder is None:
        return ()
    identity = run or run_id(services.desk, session)

    def warn(text: str) -> None:
        publish(Noticed(identity, clock.now(), "warning", text))

    own = list(dict.fromkeys(services.config.desk.symbols or symbols))
    held = [symbol for symbol in dict.fromkeys(symbols) if symbol not in own]
    options = FetchOptions(folder=services.data_folder)
    async with services.fetch.market(options, clock) as market:
        done, late = await _own_bars(market, own, session, partial(_not_traded, services, session, clock), pause)
        _warn_of_differences(market, done, warn)
        try:
            _warn_of_differences(market, await market.bars(held), warn)
        except MissingData as error:
            warn(str(error))
        await _or_warn(market.news([*own, *held]), "news was not fetched", warn)
        today = clock.now().date()
        due = market.without_filings([*own, *held], today)
        if services.config.filings.user_agent:
            filings = services.fetch.filings(options, due, today - FILINGS_BACK)
            if await _or_warn(filings, "filings were not fetched", warn):
                market.note_filings(due, today)
    return late


async def _or_warn(fetched: Awaitable[list[Fetched]], failure: str, warn: Callable[[str], None]) -> bool:
    """Await a fetch that a run can do without; True where it succeeded."""
    try:
        await fetched
    except PaperdeskError as error:
        warn(f"{failure}, the desk decides on what it has: {error}")
        return False
    return True


async def _own_bars(
    market: MarketFetch, symbols: Sequence[Symbol], session: date, untraded: Untraded, pause: Pause
) -> tuple[list[Fetched], tuple[PriceFault, ...]]:
    """The bars of the desk's own symbols, and a fault of each that has none of the session where others have theirs:
    a feed that is late as a whole has to be waited for. What was not traded has no bar to wait for, once bars of others
    show that the service is up to date."""
    done, late = await _some_bars(market, symbols), market.late(symbols, session)
    impossible = {one.name: one.impossible[session] for one in done if one.name in late and session in one.impossible}
    late = [symbol for symbol in late if symbol not in impossible]
    halted = await untraded(late) if 0 < len(late) < len(symbols) else {}
    late = [symbol for symbol in late if symbol not in halted]
    for seconds in PAUSES:
        if not late:
            break
        await pause(seconds)
        done += await _some_bars(market, late)
        late = market.late(late, session)
    missing = f"{market.vendor} has no bar of {session} for"
    advice = f"yet (feed {market.feed}); run again later, or take what does not trade any more off desk.symbols"
    if late and len(late) + len(impossible) == len(symbols):
        raise StaleData(f"{missing} {', '.join(late)} {advice}")
    faults = [PriceFault(symbol, session, f"{missing} {symbol} {advice}") for symbol in late]
    faults += [PriceFault(symbol, session, why) for symbol, why in impossible.items()]
    return done, (*faults, *(PriceFault(symbol, session, why, halted=True) for symbol, why in halted.items()))


async def _not_traded(services: Services, session: date, clock: Clock, symbols: Sequence[Symbol]) -> dict[Symbol, str]:
    """The symbols whose last trade was before a session, each with a line that says so; none where the broker does not
    say."""
    feed = None if services.broker is None else services.broker.open_feed(clock)
    messages: Sequence[FeedMessage] = ()
    with suppress(PaperdeskError):  # then it counts as late
        messages = () if feed is None else await feed.latest(symbols)
    return {
        one.symbol: f"{one.symbol} was not traded in the session of {session} (its last trade is of "
        f"{one.time:%Y-%m-%d %H:%M} UTC): it is halted at its exchange, its orders wait, and nothing is decided on it"
        for one in messages
        if isinstance(one, LastTrade) and one.time < services.calendar_for(one.symbol).opens_at(session)
    }


async def _some_bars(market: MarketFetch, symbols: Sequence[Symbol]) -> list[Fetched]:
    """The bars of symbols that have any; those without are late."""
    try:
        return await market.bars(symbols)
    except MissingData:
        return []


def _warn_of_differences(market: MarketFetch, done: Sequence[Fetched], warn: Callable[[str], None]) -> None:
    for one in done:
        if one.differing:
            warn(
                f"{one.path}: {one.differing} rows differ from what {market.vendor} says now; they are kept, "
                f"`paperdesk fetch {'actions' if one.path.parent.name == 'actions' else 'bars'} --symbols {one.name} "
                "--again` replaces them"
            )
