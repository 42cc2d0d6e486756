"""A desk as its journal has it, to be read: the tables of `paperdesk status`, `positions`, `orders` and the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from engine.reports.documents.account import equity_document
from engine.reports.documents.decisions import decisions_document, orders_document
from engine.reports.documents.records import Records
from engine.reports.documents.status import positions_document, status_document
from paperdesk.results import DECISIONS, table
from tui.settings.invocation import Invocation

POSITIONS = ("symbol", "quantity", "price", "average_cost", "gain")
ORDERS = ("id", "session", "symbol", "side", "quantity", "notional", "state", "owner", "fills")
EQUITY = ("session", "value", "cash", "change", "drawdown")


@dataclass(frozen=True, slots=True)
class Desk:
    """A desk. Each table is read anew from the journal, with the keys of its command's JSON; amounts are float64.
    Nothing here trades."""

    _invocation: Invocation

    @property
    def name(self) -> str:
        """The desk's name."""
        return self._invocation.desk_name

    @property
    def status(self) -> pd.DataFrame:
        """One row: halt and pause, last run, value, waiting orders, counts and cost."""
        return table([self._read(status_document)])

    @property
    def positions(self) -> pd.DataFrame:
        """The positions by symbol at the last close, with what was booked since."""
        held = self._read(positions_document)["positions"]
        return table([{"symbol": symbol, **one} for symbol, one in held.items()], POSITIONS).set_index("symbol")

    @property
    def orders(self) -> pd.DataFrame:
        """All orders by decision session, each with its fills."""
        return table(self._read(orders_document)["orders"], ORDERS)

    @property
    def decisions(self) -> pd.DataFrame:
        """All decisions in the order in which they were taken."""
        return table(self._read(decisions_document)["decisions"], DECISIONS)

    @property
    def equity(self) -> pd.DataFrame:
        """Value and cash by session, with change and drawdown free of deposits and withdrawals."""
        return table(self._read(equity_document)["equity"], EQUITY).set_index("session")

    def _read(self, document: Callable[[Records], dict[str, Any]]) -> dict[str, Any]:
        with self._invocation.records() as records:
            return document(records)
