"""The market of a desk's run: its data, the symbols that are left out, and the venue that takes its orders.

Market data fetched before a daily run at a broker: what the run reads, as far as it is there.

A desk's closes held against the broker's of the same session, symbol by symbol, before anything is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

from engine.account.broker_venue import BrokerVenue, claim_account
from engine.app.desk.context import (
    DeskAccount,
    DeskContext,
    check_calendar,
    check_one_currency,
    desk_account,
    desk_context,
    refuse_bound,
)
from engine.app.desk.settings import desk_spec
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import broker_closes, held_symbols, load_desk
from engine.app.research.run_spec import with_costs
from engine.domain.fetched import Fetched
from engine.domain.live import FeedMessage, LastTrade
from engine.domain.market import Symbol, from_nano, is_crypto
from engine.domain.run import ExecutionRules
from engine.errors import MissingData, PaperdeskError, StaleData
from engine.execution.frozen_symbols import FrozenSymbol, freeze, frozen_error, frozen_when_closed, late_actions
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.price_faults import PriceFault
from engine.market.trading_hours import decision_time
from engine.messages.events import Event, Noticed, Publish
from engine.ports import Clock, Pause
from engine.services import FetchOptions, MarketFetch, Services
from engine.session.context import run_id
from engine.session.recorder import DeskRecorder
from engine.session.simulated_venue import DeskVenue
from engine.settings import places
from engine.simulation.simulated_broker import Actions


async def load_market(context: DeskContext, run: str, warn: Publish) -> tuple[Market, tuple[PriceFault, ...]]:
    """Everything that is known of the symbols that the desk decides on or holds, brought up to date where its broker
    brings data and held against the broker's closes, and the faults of what did not come. Raises as the
    runs of run_kinds do."""
    services, config = context.services, context.services.config
    held = held_symbols(context.journal.reader)
    if context.journal.reader is not None:
        check_one_currency(services, context.journal.reader, held)
    late: tuple[PriceFault, ...] = ()
    if context.account is not None:
        await check_calendar(context.account.broker, context.calendar, context.session)
        if config.data.refresh and services.broker is not None and services.broker.registration.brings_data:
            late = await refresh(services, (*services.symbols, *held), context.session, context.clock, warn, run=run)
    market = await load_desk(services, context.session, held, [one.symbol for one in late])
    if context.account is None:
        return market, late
    faulty = {one.symbol for one in (*late, *market.faults) if one.session <= context.session}
    off = await off_prices(
        context, market, faulty, lambda text: warn(Noticed(run, context.clock.now(), "warning", text))
    )
    return replace(market, faults=(*market.faults, *off)), late


def refuse_frozen(context: DeskContext, faults: Iterable[PriceFault]) -> None:
    """Raises MalformedData where the data of the one symbol that is to be decided contradicts itself, or did not come:
    nothing is written, so that it can be decided once that is mended."""
    whys = {one.symbol: one.text for one in faults if one.symbol == context.only and one.session <= context.session}
    if whys:
        raise frozen_error(whys)


def desk_market(
    context: DeskContext, run: str, market: Market, late: Sequence[PriceFault], warn: Publish
) -> DeskMarket:
    """The market of a run without the symbols whose data contradicts itself, or did not come, each of which is warned
    of and written down."""
    journal, reader = context.journal.writer, context.journal.reader
    assert reader is not None  # the writer has created the journal
    frozen = freeze(journal, reader, run, context.session, (*late, *market.faults))
    for one in frozen:
        warn(Noticed(run, context.clock.now(), "warning", one.why if one.halted else f"frozen: {one.why}"))
    left = _without(market, frozen, context)
    return DeskMarket(context=context, run=run, market=left, frozen=frozen, journal=journal, reader=reader)


def _without(market: Market, frozen: Sequence[FrozenSymbol], context: DeskContext) -> Market:
    """The market in which frozen symbols have ended; one that was not traded has its bar, over which its orders wait.
    At a broker, where a split may have reached the position, the lower one of the last close and the one from before
    counts: an order of the others must not rest on money that is not there."""
    ends: dict[Symbol, date] = {}
    for one in frozen:
        history = market.histories.get(one.symbol)
        if history is None or (one.halted and history.index(context.session) is not None):
            continue
        first = next((fault.session for fault in market.faults if fault.symbol == one.symbol), context.session)
        end = one.since or first - timedelta(days=1)
        rows, last = history.rows_through(end), history.rows_through(context.session)
        fallen = context.account is not None and rows > 0 and history.close[last - 1] < history.close[rows - 1]
        ends[one.symbol] = context.session if not rows or fallen else end
    return market.ended(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskMarket:
    """The market of one run.

    context: the desk and the session.
    run: id of the run.
    market: data of the symbols that are decided or held.
    frozen: the symbols among them that are left out.
    journal, reader: the desk's journal, to write and to read.
    """

    context: DeskContext
    run: str
    market: Market
    frozen: tuple[FrozenSymbol, ...]
    journal: JournalWriter
    reader: JournalReader

    def recorder(self, bars: int) -> DeskRecorder:
        """The recorder of the run; of the market it keeps the last `bars` bars of a symbol."""
        context = self.context
        return DeskRecorder(
            self.journal,
            self.run,
            context.desk,
            context.clock,
            reader=self.reader,
            market=self.market,
            bars=bars,
        )

    def venue(self, recorder: DeskRecorder) -> Venue:
        """The account at the broker, or the simulated market."""
        context, market = self.context, self.market
        if context.account is not None:
            return self._broker_venue(context.account)
        refuse_bound(self.reader, context.desk)
        rules, cash = self.rules()
        return DeskVenue(
            rules,
            market.histories,
            self._due_actions(),
            calendar=context.calendar,
            recorder=recorder,
            reader=self.reader,
            clock=context.clock,
            cash=cash,
        )

    def _due_actions(self) -> Actions:
        """Corporate actions, with those that came due while a symbol was frozen that no longer is."""
        left_out, points = {one.symbol for one in self.frozen}, self.reader.equity()
        if not points:
            return self.market.actions
        closed = points[-1].session
        # What was not traded went through its actions on their days.
        before = [one for one in frozen_when_closed(self.reader, closed) if not one.halted]
        return late_actions(self.market.actions, [one for one in before if one.symbol not in left_out], closed)

    def rules(self) -> tuple[ExecutionRules, Decimal]:
        """The rules of the simulated market as configured, and the cash that a desk begins with."""
        return with_costs(desk_spec(self.context), self.context.services.config)

    def _broker_venue(self, account: DeskAccount) -> BrokerVenue:
        context, market, desk = self.context, self.market, self.context.desk
        return BrokerVenue(
            account.broker,
            context.reconciler(account),
            context.booking(account, self.run, market),
            journal=self.journal,
            reader=self.reader,
            prices=market.at(decision_time(context.calendar, context.session)).close,
            claim=lambda identity: claim_account(places.account_file(identity), desk, identity),
            desk=desk,
            currency=context.services.config.exchanges.of_portfolio(context.services.symbols).currency,
            patience=timedelta(hours=context.services.config.broker.late_entry_hours),
        )


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
        await _or_warn(market.news([*own, *held]), "news not fetched", warn)
        today = clock.now().date()
        due = market.without_filings([*own, *held], today)
        if services.config.filings.user_agent:
            filings = services.fetch.filings(options, due, today - FILINGS_BACK)
            if await _or_warn(filings, "filings not fetched", warn):
                market.note_filings(due, today)
    return late


async def _or_warn(fetched: Awaitable[list[Fetched]], failure: str, warn: Callable[[str], None]) -> bool:
    """Await a fetch that a run can do without; True where it succeeded."""
    try:
        await fetched
    except PaperdeskError as error:
        warn(f"{failure}, the desk decides with existing data: {error}")
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
    advice = f"yet (feed {market.feed}); run again later, or remove symbols that no longer trade from desk.symbols"
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
        one.symbol: f"{one.symbol} did not trade in the session of {session} (its last trade is of "
        f"{one.time:%Y-%m-%d %H:%M} UTC): it is halted at its exchange, its orders wait, and it is not decided"
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
                f"{one.path}: {one.differing} rows differ from {market.vendor}'s current data and are kept, "
                f"`paperdesk fetch {'actions' if one.path.parent.name == 'actions' else 'bars'} --symbols {one.name} "
                "--again` replaces them"
            )


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
        warn(f"the closes of {session} could not be compared with the broker's: {error}")
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
