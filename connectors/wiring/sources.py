"""Sources of market data: a data folder, or the demo market where none is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from engine import places
from engine.domain.market import Symbol
from engine.domain.run import DataSpec
from engine.market.trading_hours import calendar_for
from engine.ports import Calendar, MacroSource, MarketSource

CalendarFor = Callable[[Symbol], Calendar]


def calendars() -> CalendarFor:
    """The calendar of each symbol, its sessions kept between processes."""
    return partial(calendar_for, table=places.session_table())


def open_source(calendar_for: CalendarFor, data: DataSpec, through: date) -> MarketSource:
    """The source that a data spec names; the demo market reaches `through`. Raises MissingData for a folder that
    does not exist."""
    if data.folder is None:
        from connectors.demo.market import DemoMarket

        return DemoMarket(data.demo_seed, calendar_for, through)
    from connectors.files.market import FilesMarket

    return FilesMarket(Path(data.folder).expanduser(), calendar_for)


def open_macro(calendar_for: CalendarFor, data: DataSpec, through: date) -> MacroSource:
    """The macro series that a data spec names; the demo market reaches `through`."""
    if data.folder is None:
        from connectors.demo.market import DemoMarket

        return DemoMarket(data.demo_seed, calendar_for, through)
    from connectors.files.macro import FilesMacro

    return FilesMacro(Path(data.folder).expanduser())


def profile_of(data: DataSpec, symbol: Symbol) -> str:
    """The profile of a listing of the demo market; empty for a data folder, which has none."""
    if data.folder is not None:
        return ""
    from connectors.demo.listings import profile_of as demo_profile

    return demo_profile(symbol)
