"""What a desk's daily run reads of the market: its own symbols, and those that its books still hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path

from connectors.wiring.runs import default_symbols
from connectors.wiring.sources import calendars, configured_data, load_macro, open_source
from engine import places
from engine.config import Config
from engine.domain.market import Symbol
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.market.as_of import Market, load_market
from engine.market.coverage import check_coverage

HISTORY = timedelta(days=600)
"""How far back a daily run needs prices without a gap: the chart and what its averages settle on."""


def desk_symbols(config: Config) -> tuple[Symbol, ...]:
    """What the desk decides on, and what it holds or has ordered of symbols that were taken off its list."""
    held = _in_the_books(places.desk_journal(config.desk.name))
    return tuple(dict.fromkeys((*default_symbols(config), *held)))


async def load_desk(config: Config, session: date, more: Iterable[Symbol] = ()) -> Market:
    """The desk's market: its symbols, what it holds or has ordered of symbols that were taken off its list, and some
    `more`. Raises MissingData for a gap in the history that the session's decision needs."""
    data = configured_data(config)
    source, macro = open_source(data, session), await load_macro(data, session)
    decided, symbols = default_symbols(config), tuple(dict.fromkeys((*desk_symbols(config), *more)))
    market = await load_market(source, source, source, symbols, calendars(), macro=macro)
    for symbol in decided:
        history = market.histories[symbol]
        if len(history):
            first = max(session - HISTORY, min(history.session(0), session))
            check_coverage(history, market.calendars[symbol], first, session)
    return market


def _in_the_books(journal: Path) -> tuple[Symbol, ...]:
    try:
        with JournalReader(journal) as reader:
            waiting = [entry.order.symbol for entry in reader.orders(open_only=True)]
            return (*(holding.symbol for holding in reader.positions()), *waiting)
    except MissingData:
        return ()
