"""Readings of screens beside the snapshot: documents of a record, symbols, minutes, a ticket, in threads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from engine.errors import MissingData, PaperdeskError, UsageError
from engine.market.forming_minutes import continued
from tui.text.plain_text import one_line
from tui.view.market_reading import market_view
from tui.view.market_view import MarketView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from engine.domain.decision import Decision
    from engine.domain.known_symbol import KnownSymbol
    from engine.domain.live import MinuteBar
    from engine.domain.order import OrderSize
    from engine.market.point_in_time import MarketAsOf
    from engine.messages.commands import PlaceOrder
    from engine.reports.documents.decisions import FollowedDecision
    from engine.reports.documents.order_effect import Ticket
    from engine.reports.documents.records import Records
    from tui.desk.desk_follower import DeskFollower
    from tui.view.snapshot import Source

OPENING = 0.05
"""Seconds between two looks whether the desk is open."""


class Readings:
    """Reads for the screens of an app. A method raises what the document that it reads raises."""

    def __init__(self, follower: DeskFollower, in_past: Callable[[], bool]) -> None:
        """`in_past` is true while a recorded history is shown."""
        self._follower, self._in_past = follower, in_past

    async def decisions(self, source: Source) -> tuple[FollowedDecision, ...]:
        """The decisions of a journal. Raises what JournalReader raises."""
        from engine.reports.documents.decisions import followed_decisions

        return await asyncio.to_thread(source.read, lambda records: followed_decisions(records, self._closes))

    async def known_symbols(self) -> Sequence[KnownSymbol]:
        """Every symbol that the desk knows of, once it is open; none where it cannot be opened. Raises
        MalformedData."""
        while (services := self._follower.services) is None and not self._follower.trouble:
            await asyncio.sleep(OPENING)
        return () if services is None else await asyncio.to_thread(services.symbol_index.all)

    async def looked_up(self, symbols: Sequence[str], now: datetime) -> MarketView:
        """Quotes and charts of symbols that the desk does not trade at a moment."""
        services = self._follower.services
        if services is None:
            return MarketView()
        return await asyncio.to_thread(lambda: market_view(services.symbol_index.market(symbols, now), symbols, now))

    async def bring(self, symbols: Sequence[str], now: datetime) -> bool:
        """Fetch the prices of symbols that the desk does not trade; False where there is nothing to fetch. Raises as
        OpenDesk.bring_watched does."""
        services = self._follower.services
        if services is None or self._in_past():
            return False
        return await asyncio.to_thread(services.bring_watched, symbols, now)

    async def minutes(self, symbol: str, now: datetime) -> Sequence[MinuteBar]:
        """The minutes of the session that is open, or was last, as far as the feed has come. Raises MissingData where
        there are none, and what the service of the market data raises."""
        services, board = self._follower.services, self._follower.board
        if services is None or self._in_past():
            raise MissingData("a recorded history has bars by day alone: \\ goes back to the present")
        known = await asyncio.to_thread(services.session_minutes.bars, symbol, now)
        bars = continued(known, () if board is None else board.minutes.bars(symbol))
        if not bars:
            raise MissingData(f"no minute of the session has a price of {symbol} yet")
        return bars

    async def ticket(self, wanted: PlaceOrder) -> Ticket:
        """An order of the operator's own before it is given, at the price of the feed where that has one. Raises
        UsageError for one that cannot be given here."""
        services, board = self._follower.services, self._follower.board
        if services is None:
            raise UsageError("the desk is still opening")
        prices = {} if board is None else board.view(tuple(services.symbols), services.clock.now()).prices
        return await asyncio.to_thread(services.ticket, wanted, prices.get(wanted.symbol))

    async def refused_edit(self, order_id: str, size: OrderSize) -> str:
        """The reason why an order that waits keeps its size; empty where it can have this one."""
        services = self._follower.services
        if services is None:
            return ""
        try:
            await asyncio.to_thread(services.edit, order_id, size)
        except PaperdeskError as error:
            return one_line(str(error))
        return ""

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The groups of the watchlist by name. Raises MalformedData."""
        from engine.app.upkeep.watchlists import read_groups

        return read_groups()

    async def owners(self, source: Source) -> Mapping[str, Any]:
        """The opinions of every owner of a journal against what followed."""
        from engine.reports.documents.owners import owners_document

        return await asyncio.to_thread(source.read, lambda records: owners_document(records, self._closes))

    async def why(self, source: Source, wanted: Decision) -> Mapping[str, Any]:
        """The trail of a decision."""
        from engine.reports.documents.trail import why_document

        def document(records: Records) -> Mapping[str, Any]:
            return why_document(records, [wanted], market=self._closes(records, (wanted.key.symbol,)))

        return await asyncio.to_thread(source.read, document)

    async def latest(self, source: Source, symbol: str) -> Decision:
        """The latest decision for a symbol, of the first owner. Raises MissingData where there is none."""
        from engine.reports.documents.trail import latest

        return (await asyncio.to_thread(source.read, lambda records: latest(records, symbol)))[0]

    async def decided(self, source: Source) -> tuple[Decision, ...]:
        """The decisions of a journal, latest session first."""
        from engine.reports.documents.decisions import latest_first

        return await asyncio.to_thread(source.read, latest_first)

    def _closes(self, records: Records, symbols: Sequence[str]) -> MarketAsOf | None:
        """The prices behind some records; None until the desk is open."""
        services = self._follower.services
        return None if services is None else services.closes(records, symbols)
