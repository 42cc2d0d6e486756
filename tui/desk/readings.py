"""The answers to the questions of screens: documents of a record, prices, a forecast, in threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from engine.errors import MissingData
from engine.market.live_prices import continued
from engine.messages.commands import PlaceOrder
from engine.reports.documents.runs import StoredKind
from tui.view.desk_port import OpenedDesk
from tui.view.market_reading import market_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date, datetime

    from engine.app.open_desk import OpenDesk
    from engine.domain.chart import ChartSpec
    from engine.domain.live import MinuteBar
    from engine.domain.market import KnownSymbol
    from engine.messages.commands import ResizeOrder
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.order_effect import Ticket
    from engine.reports.documents.records import Records
    from engine.reports.documents.runs import StoredRun
    from engine.reports.documents.set_up import Finding
    from tui.desk.live import LiveBoard
    from tui.view.desk_port import Document, Source
    from tui.view.market_view import MarketView

T = TypeVar("T")


class Readings:
    """The port of an open desk, `past` in a recorded history, which has no feed and fetches nothing. A method raises
    what it reads raises."""

    def __init__(self, desk: OpenDesk, board: LiveBoard | None, *, past: bool) -> None:
        self._desk, self._board, self._past = desk, board, past

    async def read(self, source: Source, document: Callable[[Records, ClosesOf], T]) -> T:
        """A document of a journal."""
        return await asyncio.to_thread(source.read, lambda records: document(records, self._desk.closes))

    async def runs(self, kind: StoredKind) -> Sequence[StoredRun]:
        """The stored runs of a kind."""
        from engine.app.runs import Wanted, stored_runs

        return await asyncio.to_thread(stored_runs, Wanted(kind=kind))

    async def run(self, run: str, *others: str) -> Document:
        """The document of a stored run, or of a comparison."""
        from engine.app.arena.record import is_begun, load_document
        from engine.app.runs import Wanted, compare_runs, named_runs, stored_runs
        from engine.reports.stored import stored_document

        def read() -> Document:
            if others:
                return compare_runs(named_runs(stored_runs(Wanted(kind=StoredKind.BACKTEST)), (run, *others)))
            return load_document(run) if is_begun(run) else stored_document(run)

        return await asyncio.to_thread(read)

    async def memory(
        self, run: str | None, session: date | None = None, *, undecided: bool = False, one: str = ""
    ) -> Document:
        """The memories at a moment, or every change of one."""
        if one:
            return await asyncio.to_thread(self._desk.lifeline, run, one)
        return await asyncio.to_thread(self._desk.memories, run, session, undecided=undecided)

    async def checks(self) -> Sequence[Finding]:
        """The findings of the doctor that ask no service. A large journal takes longer than the app has to end, so in a
        thread that its end does not wait for."""
        found: Future[Sequence[Finding]] = Future()

        def look() -> None:
            found.set_running_or_notify_cancel()
            try:
                found.set_result(self._desk.findings())
            except Exception as error:  # raised where it is awaited
                found.set_exception(error)

        Thread(target=look, daemon=True).start()
        return await asyncio.wrap_future(found)

    async def symbols(self) -> Sequence[KnownSymbol]:
        """Every symbol that the desk knows of."""
        return await asyncio.to_thread(self._desk.symbol_index.all)

    async def prices(self, symbols: Sequence[str], now: datetime, *, fetch: bool = False) -> MarketView | None:
        """Quotes and charts of other symbols."""

        def read() -> MarketView | None:
            if fetch and (self._past or not self._desk.bring_watched(symbols, now)):
                return None
            return market_view(self._desk.symbol_index.market(symbols, now), symbols, now)

        return await asyncio.to_thread(read)

    async def minutes(self, symbol: str, now: datetime) -> Sequence[MinuteBar]:
        """The minutes of the session."""
        if self._past:
            raise MissingData("a recorded history has daily bars only: \\ returns to the present")
        known = await asyncio.to_thread(self._desk.session_minutes.bars, symbol, now)
        bars = continued(known, () if self._board is None else self._board.minutes.bars(symbol))
        if not bars:
            raise MissingData(f"no minute of the session has a price of {symbol} yet")
        return bars

    async def forecast(self, wanted: PlaceOrder | ResizeOrder) -> Ticket | None:
        """The ticket of an order of the operator's own, or whether an edit is allowed."""
        desk, board = self._desk, self._board
        if not isinstance(wanted, PlaceOrder):
            await asyncio.to_thread(desk.edit, wanted.order_id, wanted.size)
            return None
        prices = {} if board is None else board.view(tuple(desk.symbols), desk.clock.now()).prices
        return await asyncio.to_thread(desk.ticket, wanted, prices.get(wanted.symbol))

    async def paint(self, chart: ChartSpec) -> bytes:
        """A chart as a PNG."""
        return await asyncio.to_thread(self._desk.paint, chart)


def opened_desk(desk: OpenDesk, board: LiveBoard | None, *, past: bool) -> OpenedDesk:
    """An open desk as screens know it now, or in the `past` of a record; cheap."""
    return OpenedDesk(
        ask=Readings(desk, board, past=past),
        name=desk.desk,
        symbols=tuple(desk.symbols),
        mode=desk.mode,
        label=desk.label,
        knows_prices=desk.knows_prices,
        usd_per_day=desk.usd_per_day,
        costs=desk.costs,
        default_backtest=desk.default_backtest,
        default_costs=desk.default_costs,
        schedule=desk.schedule,
        is_demo=desk.is_demo,
        moves_on=desk.moves_on,
        undo_seconds=desk.undo_seconds,
        notify=desk.notify,
        benchmark=desk.benchmark,
        unrehearsed=desk.rehearsal.reason,
    )
