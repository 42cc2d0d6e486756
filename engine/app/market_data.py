"""Market data of a run or of a desk, loaded whole from the source that a data spec names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta

from engine.domain.macro import MacroSeries
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, RunSpec
from engine.errors import MissingData, StaleData
from engine.journal.reader import JournalReader
from engine.market.as_of import Market, load_market
from engine.market.coverage import check_coverage
from engine.ports import Calendar, MarketSource
from engine.services import Services

HISTORY = timedelta(days=600)
"""The period over which a daily run needs prices without a gap: the chart, and the sessions before it that its averages
need."""


async def load_run(services: Services, spec: RunSpec) -> Market:
    """The market of a run's window. Raises what the source raises."""
    source = services.open_source(spec.data, spec.last)
    macro = {} if spec.preset is None else await load_macro(services, spec.data, spec.last)
    begin = spec.warm_up_from or spec.first
    return await load_window(source, services.calendar_for, spec.symbols, begin, spec.last, macro=macro)


async def load_window(
    source: MarketSource,
    calendar_for: Callable[[Symbol], Calendar],
    symbols: Sequence[Symbol],
    first: date,
    last: date,
    *,
    macro: Mapping[str, MacroSeries] | None = None,
) -> Market:
    """All data of some symbols, with macro series that are loaded already. Raises StaleData where the data of a symbol
    ends before `last`, unless the symbol itself has stopped trading, which is no fault of the data."""
    market = await load_market(source, source, source, symbols, calendar_for, macro=macro)
    for symbol, history in market.histories.items():
        covered = check_coverage(history, market.calendars[symbol], first, last)
        if covered.ends_early and not await _stopped_trading(source, symbol, covered.last):
            raise StaleData(
                f"{symbol}: its bars end on {covered.last}, before {last}: fetch newer ones, or end the window then"
            )
    return market


async def load_desk(services: Services, session: date, held: Sequence[Symbol]) -> Market:
    """The data of a desk's symbols, and of those that it holds or has ordered beside them. Raises MissingData for a
    gap in the history that the session's decision needs."""
    source = services.open_source(services.data, session)
    macro = await load_macro(services, services.data, session)
    symbols = tuple(dict.fromkeys((*services.symbols, *held)))
    market = await load_market(source, source, source, symbols, services.calendar_for, macro=macro)
    for symbol in services.symbols:
        history = market.histories[symbol]
        if len(history):
            first = max(session - HISTORY, min(history.session(0), session))
            check_coverage(history, market.calendars[symbol], first, session)
    return market


def held_symbols(reader: JournalReader | None) -> tuple[Symbol, ...]:
    """The symbols that a desk holds or has ordered; none without a journal."""
    if reader is None:
        return ()
    ordered = [entry.order.symbol for entry in reader.orders(open_only=True)]
    return tuple(dict.fromkeys((*(holding.symbol for holding in reader.positions()), *ordered)))


async def load_macro(services: Services, data: DataSpec, through: date) -> Mapping[str, MacroSeries]:
    """The macro series that a data spec names, as far as there are any. Raises MalformedData naming file and line."""
    source = services.open_macro(data, through)
    found: dict[str, MacroSeries] = {}
    for name in data.macro:
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
