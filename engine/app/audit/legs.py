"""Legs of an audited run in a process of their own, each on a copy of the data folder that is cut at its decision."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.app.audit.hidden_folder import show_instead
from engine.app.audit.subjects import open_subject
from engine.app.research.market_data import load_macro
from engine.domain.market import CorporateAction, PriceHistory, Symbol
from engine.domain.run import RunSpec
from engine.errors import MissingData, PaperdeskError
from engine.lab.audit import Trace, failure
from engine.lab.opened_files import files_outside, opened_files, own_folders
from engine.market.as_of import Market, load_market
from engine.market.trading_hours import decision_time
from engine.ports import MarketSource
from engine.services import Services
from engine.settings import places


@dataclass(frozen=True, slots=True)
class LegsTask:
    """A run whose legs are played, with its whole data, which brokers fill at; its data folder, and the folder in which
    the copies come to lie."""

    services: Services
    spec: RunSpec
    market: Market
    folder: Path
    copy: Path


@dataclass(frozen=True, slots=True)
class CopiedLeg:
    """One leg on a copy: its trace, or what went wrong, and the files of the folder, and `outside` of it, that were
    opened so far, each with the line of the user's code that did it."""

    trace: Trace | str
    opened: Mapping[str, str]
    outside: Mapping[str, str]


def serve(connection: Connection, own_mounts: bool) -> None:
    """Play the legs of the task that comes first, up to the sessions that come after it, until the connection ends.
    The first answer is True where the folder is hidden from all that runs here, False where Python's opening of its
    files is refused."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A strategy that prints would write into the command's document.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        asyncio.run(_serve(connection, connection.recv(), own_mounts))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the audit has ended


async def _serve(connection: Connection, task: LegsTask, own_mounts: bool) -> None:
    services, spec, market = task.services, task.spec, task.market
    # A folder that holds recorded answers as well cannot go out of sight.
    hidden = own_mounts and not own_folders(task.folder) and show_instead(task.folder, task.copy)
    connection.send(hidden)
    if own_mounts:
        _hide_earlier_runs(task.copy)
    copied = replace(spec, data=replace(spec.data, folder=str(task.copy)))
    start: Any = None
    # The user's code is first loaded here, so that what it reads then is seen as well.
    with (
        files_outside() as outside,
        opened_files(str(task.folder), refuse=not hidden) as opened,
        open_subject(services, spec, market) as subject,
    ):
        while True:
            read: date = connection.recv()
            now = decision_time(subject.calendar, read)
            copy = _adjusted_as(market, await _load_copy(services, copied, tuple(market.holdings)))
            cut = copy if subject.as_traded else subject.market.cut(now)
            try:
                leg = await subject.leg(cut, read, start)
            except (LookupError, PaperdeskError) as error:
                connection.send(CopiedLeg(failure(error), opened, outside))
            else:
                start = leg.where
                connection.send(CopiedLeg(leg.trace, opened, outside))


def _hide_earlier_runs(copy: Path) -> None:
    """Show the copy in the place of the journals of desks and runs to whatever runs here; Python code of the user's is
    refused all of the program's own folders besides."""
    for folder in (places.desks_dir(), places.runs_dir(), places.arenas_dir()):
        if folder.is_dir():
            show_instead(folder, copy)


def _adjusted_as(whole: Market, copy: Market) -> Market:
    """The data of a copy with the adjusted closes that it was written without: the data access shows their returns
    alone, and a file that is read beside it shows none."""
    histories = {
        symbol: replace(history, adj_close=whole.histories[symbol].adj_close[: len(history)])
        for symbol, history in copy.histories.items()
    }
    return replace(copy, histories=histories)


async def _load_copy(services: Services, spec: RunSpec, funds: Sequence[str]) -> Market:
    """The data of a copy, with the holdings of some funds; a symbol that begins to trade after the cut has no bars
    yet."""
    source = services.open_source(spec.data, spec.last)
    macro = {} if spec.preset is None else await load_macro(services, spec.data, spec.last)
    holdings = await source.holdings()
    return await load_market(
        _Begun(source),
        source,
        source,
        spec.symbols,
        services.calendar_for,
        macro=macro,
        commentary=await source.commentary(),
        holdings={fund: rows for fund, rows in holdings.items() if fund in funds},
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """Bars of a source; none, in place of an error, of a symbol without any."""

    source: MarketSource

    async def symbols(self) -> Sequence[Symbol]:
        """As the source has them."""
        return await self.source.symbols()

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        try:
            return await self.source.history(symbol)
        except MissingData:
            return PriceHistory.of(symbol, ())

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """As the source has them."""
        return await self.source.actions(symbol)
