"""A desk as its journal has it, to be read: the tables of `paperdesk status`, `positions`, `orders` and the others."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

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
        from engine.reports.documents.status import status_document

        with self._invocation.records() as records:
            return table([status_document(records)])

    @property
    def positions(self) -> pd.DataFrame:
        """The positions by symbol at the last close, with what was booked since."""
        from engine.reports.documents.status import positions_document

        with self._invocation.records() as records:
            held = positions_document(records)["positions"]
        return table([{"symbol": symbol, **one} for symbol, one in held.items()], POSITIONS).set_index("symbol")

    @property
    def orders(self) -> pd.DataFrame:
        """All orders by decision session, each with its fills."""
        from engine.reports.documents.decisions import orders_document

        with self._invocation.records() as records:
            return table(orders_document(records)["orders"], ORDERS)

    @property
    def decisions(self) -> pd.DataFrame:
        """All decisions in the order in which they were taken."""
        from engine.reports.documents.decisions import decisions_document

        with self._invocation.records() as records:
            return table(decisions_document(records)["decisions"], DECISIONS)

    @property
    def equity(self) -> pd.DataFrame:
        """Value and cash by session, with change and drawdown free of deposits and withdrawals."""
        from engine.reports.documents.account import equity_document

        with self._invocation.records() as records:
            return table(equity_document(records)["equity"], EQUITY).set_index("session")
