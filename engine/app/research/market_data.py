"""Market data of a run or of a desk: loaded whole from a source, and fetched into the data folder where only the new
is asked for and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.account.activity import Actions
from engine.account.reconciliation import journal_snapshot
from engine.app.research.run_spec import preset_of
from engine.clock import OffsetClock
from engine.domain.fetched import Fetched
from engine.domain.macro import MacroSeries
from engine.domain.market import CorporateAction, PriceHistory, Symbol, is_crypto, parse_symbol
from engine.domain.run import DataSpec, RunSpec
from engine.errors import DataError, MalformedData, MissingData, PaperdeskError, StaleData, UsageError
from engine.journal.reader import JournalReader
from engine.market.as_of import Market, MarketAsOf, load_market
from engine.market.price_faults import DayState, ImpossibleRows, PriceFault, check_coverage, day_state, refuse_faults
from engine.market.trading_hours import LONGEST_REST
from engine.ports import Calendar, Clock, MarketSource
from engine.reports.documents.records import Records
from engine.services import FetchOptions, Services

HISTORY = timedelta(days=600)
"""The period over which a daily run needs prices without a gap: the chart, and the sessions before it that its averages
need."""


async def load_run(services: Services, spec: RunSpec) -> Market:
    """The market of a run's window. Raises what the source raises."""
    source = services.open_source(spec.data, spec.last)
    macro = {} if spec.preset is None else await load_macro(services, spec.data, spec.last)
    begin = spec.warm_up_from or spec.first
    market = await load_window(source, services.calendar_for, spec.symbols, begin, spec.last, macro=macro)
    preset = None if spec.warm_up_from is None else preset_of(spec)
    if preset is None or not preset.reference_funds:
        return market
    holdings = await source.holdings()
    return replace(market, holdings={fund: holdings[fund] for fund in preset.reference_funds if fund in holdings})


async def load_window(
    source: MarketSource,
    calendar_for: Callable[[Symbol], Calendar],
    symbols: Sequence[Symbol],
    first: date,
    last: date,
    *,
    macro: Mapping[str, MacroSeries] | None = None,
) -> Market:
    """All data of some symbols, with macro series that are loaded already. Raises MalformedData where bars and actions
    contradict each other by `last`, StaleData where the data of a symbol ends before it, unless the symbol itself has
    stopped trading, which is no fault of the data."""
    market = await load_market(source, source, symbols, calendar_for, macro=macro)
    refuse_faults(market.faults, last)
    for symbol, history in market.histories.items():
        covered = check_coverage(history, market.calendars[symbol], first, last)
        if covered.ends_early and not await _stopped_trading(source, symbol, covered.last):
            raise StaleData(
                f"{symbol}: its bars end on {covered.last}, before {last}: fetch newer ones, or end the window then"
            )
    return market


async def load_desk(
    services: Services,
    session: date,
    held: Sequence[Symbol],
    late: Collection[Symbol] = (),
    *,
    prices_only: bool = False,
) -> Market:
    """The data of a desk's symbols, and of those that it holds or has ordered beside them; of `late` symbols as far as
    there is any. Its faults are, beside those of bars and actions, the desk's symbols whose data does not reach the
    session where that of others does, has a gap that the session's decision would rest on, cannot be read, or says that
    nothing was traded. With `prices_only` without news, filings and macro series, which take most of the time. Raises
    MissingData and MalformedData where no symbol of the desk, or none of one that it holds, has bars."""
    bars = _SoundBars(services.open_source(services.data, session))
    symbols = []
    for one in dict.fromkeys((*services.symbols, *held)):
        readable = len(await bars.history(one)) > 0
        if readable:
            symbols.append(one)
        elif one not in late and (one not in services.symbols or len(bars.unread) == len(services.symbols)):
            raise bars.unread[one]
    macro = {} if prices_only else await load_macro(services, services.data, session)
    texts = None if prices_only else bars.source
    market = await load_market(bars, texts, symbols, services.calendar_for, macro=macro)
    unread = (PriceFault(one, session, str(error)) for one, error in bars.unread.items() if one not in late)
    return replace(market, faults=(*market.faults, *unread, *_day_faults(services, market, session, late)))


def _day_faults(services: Services, market: Market, session: date, late: Collection[Symbol]) -> Iterator[PriceFault]:
    """The faults of a desk's symbols at a session, by what their data is on it and on the days before."""
    own = {one: market.histories[one] for one in services.symbols if one in market.histories and one not in late}
    states = {one: day_state(history, market.calendars[one], session) for one, history in own.items()}
    for symbol, history in own.items():
        first = max(session - HISTORY, min(history.session(0), session))
        try:
            check_coverage(history, market.calendars[symbol], first, session)
        except (MissingData, MalformedData) as error:
            yield PriceFault(symbol, session, str(error))
        if states[symbol] is DayState.UNTRADED:
            text = f"{symbol} did not trade in the session of {session} (its volume is 0): its orders wait, and "
            yield PriceFault(symbol, session, text + "nothing is decided on it", halted=True)
        elif states[symbol] is DayState.LATE and not set(states.values()) <= {DayState.LATE, None}:
            text = f"{symbol}: its bars end on {history.session(-1)}, and {session} is to be decided: fetch newer ones"
            yield PriceFault(symbol, session, f"{text} and run again")


@dataclass(frozen=True, slots=True)
class _SoundBars:
    """Bars of a source without their impossible rows; none of a symbol whose bars cannot be read, which is in
    `unread` with the reason."""

    source: MarketSource
    unread: dict[Symbol, DataError] = field(default_factory=dict)
    _read: dict[Symbol, PriceHistory] = field(default_factory=dict)

    async def symbols(self) -> Sequence[Symbol]:
        """As the source has them."""
        return await self.source.symbols()

    async def history(self, symbol: Symbol) -> PriceHistory:
        """The possible bars of a symbol."""
        if symbol not in self._read:
            try:
                self._read[symbol] = await self.source.history(symbol)
            except ImpossibleRows as error:
                self._read[symbol] = error.history
            except (MissingData, MalformedData) as error:
                self.unread[symbol], self._read[symbol] = error, PriceHistory.of(symbol, ())
        return self._read[symbol]

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """As the source has them."""
        return await self.source.actions(symbol)


def known_closes(services: Services, records: Records, symbols: Sequence[Symbol]) -> MarketAsOf | None:
    """The prices of symbols up to the last close of the records' books, from the data of their run; a symbol whose
    prices cannot be had is left out. None before the first close."""
    points = records.required.equity(records.world)
    if not points or not symbols:
        return None
    last = points[-1].session
    spec = None if records.run is None else records.required.run(records.run).spec
    market = load_prices(services, services.data if spec is None else spec.data, symbols, last)
    calendars = market.calendars.values()
    closed = (one.sessions(last - LONGEST_REST, last)[-1] for one in calendars)
    return market.at(max(one.closes_at(day) for one, day in zip(calendars, closed, strict=True)))


def load_prices(services: Services, data: DataSpec, symbols: Sequence[Symbol], through: date) -> Market:
    """The prices and corporate actions of symbols; a symbol whose prices cannot be had is left out."""
    found: dict[Symbol, tuple[PriceHistory, Sequence[CorporateAction] | None]] = {}

    async def read() -> None:
        source = services.open_source(data, through)
        for symbol in symbols:
            with suppress(PaperdeskError):
                found[symbol] = await source.history(symbol), await source.actions(symbol)

    with suppress(PaperdeskError):
        asyncio.run(read())
    return Market(
        histories={symbol: history for symbol, (history, _) in found.items()},
        actions={symbol: actions for symbol, (_, actions) in found.items()},
        news={},
        filings={},
        calendars={symbol: services.calendar_for(symbol) for symbol in symbols},
    )


async def known_actions(services: Services, through: date, symbols: Sequence[Symbol]) -> Actions:
    """The corporate actions of symbols by the desk's data; a symbol of which it has none is left out."""
    source, found = services.open_source(services.data, through), dict[Symbol, Sequence[CorporateAction] | None]()
    for symbol in symbols:
        with suppress(MissingData):
            found[symbol] = await source.actions(symbol)
    return found


async def broker_closes(services: Services, symbols: Sequence[Symbol], day: date) -> Mapping[Symbol, Decimal]:
    """The closes of symbols on one of the last two days by the data of the desk's broker, as far as it has them. Raises
    what its service raises."""
    source = None if services.broker is None else services.broker.open_data()
    if source is None:
        return {}
    found: dict[Symbol, Decimal] = {}
    async with aclosing(source) as asked:
        for crypto in (False, True):
            some = [symbol for symbol in symbols if is_crypto(symbol) is crypto]
            found |= await asked.closes(some, day) if some else {}
    return found


def held_symbols(reader: JournalReader | None) -> tuple[Symbol, ...]:
    """The symbols that a desk holds, also since its last close by an adoption or a trade, or has ordered; none without
    a journal."""
    if reader is None:
        return ()
    ordered = [entry.order.symbol for entry in reader.orders(open_only=True)]
    since = journal_snapshot(reader).portfolio().positions
    return tuple(dict.fromkeys((*(holding.symbol for holding in reader.positions()), *since, *ordered)))


async def load_macro(services: Services, data: DataSpec, through: date) -> Mapping[str, MacroSeries]:
    """The macro series that a data spec names, as far as there are any, and all of its folder. Raises MalformedData
    naming file and line."""
    source = services.open_macro(data, through)
    found: dict[str, MacroSeries] = {}
    for name in dict.fromkeys((*data.macro, *await source.names())):
        with suppress(MissingData):
            found[name] = await source.series(name)
    return found


async def _stopped_trading(source: MarketSource, symbol: Symbol, day: date) -> bool:
    """True where a symbol whose bars end on a day has stopped trading: others go on, and none ends with it. Where
    several end on one day it is their data that ends."""
    goes_on = False
    for other in await source.symbols():
        history = await source.history(other)
        if other == symbol or not len(history):
            continue
        if history.session(-1) == day:
            return False
        goes_on = goes_on or history.session(-1) > day
    return goes_on


MARKET = ("bars", "actions", "news")
"""Kinds of data that come from the market data service."""
FILINGS, MACRO, ALL = "filings", "macro", "all"


async def fetch(
    services: Services,
    kind: str,
    options: FetchOptions,
    symbols: Sequence[Symbol],
    since: date | None = None,
) -> list[Fetched]:
    """Fetch one kind of data, or all that a desk needs, until it is stopped. Raises UsageError for what cannot be a
    symbol, ConfigError, CredentialsRefused, MissingData, MalformedData, NetworkError, TryAgainLater; what was written
    by then stays."""
    everything = kind == ALL
    done: list[Fetched] = []
    if everything or kind in MARKET:
        kinds = ("bars", "news") if everything else (kind,)
        done += await _market(services, kinds, options, symbols, since)
    if kind == FILINGS or (everything and services.config.filings.user_agent and not options.stop()):
        done += await services.fetch.filings(options, symbols, since)
    if kind == MACRO or (everything and services.fetch.has_macro_key and not options.stop()):
        done += await services.fetch.macro(options)
    return done


async def _market(
    services: Services,
    kinds: Sequence[str],
    options: FetchOptions,
    symbols: Sequence[Symbol],
    since: date | None,
) -> list[Fetched]:
    wanted = list(dict.fromkeys(map(parse_symbol, symbols)))
    done: list[Fetched] = []
    for symbol in wanted:
        exchange = services.config.exchanges.of(symbol)
        if not services.fetch.offers(exchange):
            raise UsageError(
                f"{symbol} trades {exchange.described}, of which the market data service has nothing: bring its files "
                "with `paperdesk import`, and fetch the others with --symbols"
            )
    async with services.fetch.market(options, await _fetch_clock(services)) as market:
        ask = {"bars": market.bars, "actions": market.actions, "news": market.news}
        for kind in kinds:
            done += await ask[kind](wanted, since)
            if options.stop():
                break
    return done


async def _fetch_clock(services: Services) -> Clock:
    """The clock by which sessions are over: this machine's, or the broker's where the configuration says so. Raises as
    the broker does."""
    if services.broker is None or not services.goes_by_broker:
        return services.clock
    async with aclosing(services.broker.open()) as broker:
        theirs = await broker.clock()
    return OffsetClock(services.clock, theirs.now - services.clock.now())


def bring_prices(services: Services) -> None:
    """Fetch the bars of symbols that have none yet, where the broker brings data: a new account has nothing to show.
    Raises MissingData for a folder without prices that somebody else has to fill, and as MarketFetch does."""
    folder = services.data_folder
    if folder is None:
        return
    prices = folder / "prices"
    missing = [symbol for symbol in services.symbols if not (prices / f"{symbol}.csv").is_file()]
    if missing and _brings_data(services):
        asyncio.run(fetch(services, "bars", FetchOptions(folder=folder), missing))
    elif missing and not prices.is_dir():
        raise MissingData(f"no prices in {folder} yet: run `paperdesk fetch` or `paperdesk import prices`")


async def bring_closes(services: Services, market: Market, symbols: Iterable[Symbol], now: datetime) -> int | None:
    """Fetch the bars of symbols whose last completed session at `now` (UTC) a market lacks, where the broker brings
    data; return how many came, None where none is missing. Raises as MarketFetch does."""
    folder = services.data_folder
    if folder is None or not _brings_data(services):
        return None
    late = []
    for symbol in symbols:
        history = market.histories.get(symbol)
        if not history or history.session(-1) < services.calendar_for(symbol).last_closed(now):
            late.append(symbol)
    if not late:
        return None
    return sum(one.added for one in await fetch(services, "bars", FetchOptions(folder=folder), late))


def _brings_data(services: Services) -> bool:
    broker = services.broker
    return services.config.data.refresh and broker is not None and broker.registration.brings_data
