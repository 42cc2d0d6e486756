"""The minutes of the session that is open, or was last, from the service that has the broker's market data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime

from engine.domain.live import MinuteBar
from engine.domain.market import Symbol
from engine.errors import MissingData
from engine.market.as_of import last_opened
from engine.services import Services

NONE = "no bars within the day here: they need live data, of a paper account or the sandbox"


class SessionMinutes:
    """Bars of a minute, requested once a minute at most."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._kept: dict[Symbol, tuple[datetime, Sequence[MinuteBar]]] = {}

    @property
    def available(self) -> bool:
        """True for a desk at a broker that brings data."""
        return self._services.broker is not None and self._services.broker.registration.brings_data

    def bars(self, symbol: Symbol, now: datetime) -> Sequence[MinuteBar]:
        """The bars from the open of the session up to `now`, by the broker's time, as it had them at the beginning of
        this minute; takes a request. Raises MissingData for a desk without live data, and before the first trade of
        the session, and what the service raises."""
        if not self.available:
            raise MissingData(NONE)
        minute = now.replace(second=0, microsecond=0)
        kept = self._kept.get(symbol)
        if kept is None or kept[0] != minute:
            calendar = self._services.calendar_for(symbol)
            begins = calendar.opens_at(last_opened(calendar, now))
            kept = self._kept[symbol] = minute, asyncio.run(self._requested(symbol, begins, now))
        if not kept[1]:
            raise MissingData("no trade in this session yet")
        return kept[1]

    async def _requested(self, symbol: Symbol, first: datetime, last: datetime) -> Sequence[MinuteBar]:
        source = None if self._services.broker is None else self._services.broker.open_data()
        assert source is not None
        async with aclosing(source) as service:
            return await service.minutes(symbol, first, last)
