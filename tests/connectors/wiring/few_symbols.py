"""The demo market with the symbols of a test alone, for data folders that need no more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from connectors.wiring.sources import calendars
from engine.domain.market import Symbol
from tests.data_folders import DrawnOnce


class FewSymbols(DrawnOnce):
    """The demo market of seed 7 through a day, which lists these symbols: to draw and write all takes longer than most
    tests."""

    def __init__(self, symbols: Sequence[Symbol], through: date) -> None:
        super().__init__(7, calendars(), through)
        self._few = symbols

    async def symbols(self) -> Sequence[Symbol]:
        """The few symbols, sorted."""
        return sorted(self._few)
