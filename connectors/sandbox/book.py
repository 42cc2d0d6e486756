"""The account's books: cash, positions, orders, activities and equity by close, in exact Decimals, and on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import stable_id
from connectors.sandbox.store import Store
from engine.domain.decimal_text import plain
from engine.domain.market import Symbol
from engine.domain.order import Side
from engine.domain.portfolio import EXACT, ZERO, Portfolio, Position

CONFIGURATIONS: Mapping[str, Any] = {
    "trade_confirm_email": "all",
    "suspend_trade": False,
    "no_shorting": False,
    "fractional_trading": True,
    "max_margin_multiplier": "2",
    "max_options_trading_level": 0,
    "ptp_no_exception_entry": False,
    "disable_overnight_trading": False,
}
"""Configurations of a new account."""


class Book:
    """The account's state and history. Changes are in memory until `commit` writes them together."""

    def __init__(self, store: Store, cash: Decimal) -> None:
        """Open the books of the store, or new ones with `cash`."""
        self._store = store
        facts = store.facts()
        self.is_new = "cash" not in facts
        held = {s: Position(Decimal(q), Decimal(c)) for s, (q, c) in facts.get("positions", {}).items()}
        self.portfolio = Portfolio(Decimal(facts.get("cash", plain(cash))), held)
        self.initial_cash = Decimal(facts.get("initial_cash", plain(cash)))
        self.configurations: dict[str, Any] = facts.get("configurations", dict(CONFIGURATIONS))
        self.facts: dict[str, Any] = facts
        """Further values by name; written with the rest."""
        self.orders = [SandboxOrder.of_row(text) for text in store.orders()]
        self.by_id = {order.id: order for order in self.orders}
        self.by_client_id = {order.client_order_id: order for order in self.orders}
        self.activities = store.activities()
        self.closes = {date.fromisoformat(day): Decimal(value) for day, value in store.closes()}
        self._open = {order.seq: order for order in self.orders if order.is_open}
        self._changed: dict[int, SandboxOrder] = {}
        self._saved_activities = len(self.activities)
        self._new_closes: list[date] = []

    def add(self, order: SandboxOrder) -> None:
        """Add a new order."""
        self.orders.append(order)
        self.by_id[order.id] = order
        self.by_client_id[order.client_order_id] = order
        self.mark_changed(order)

    def mark_changed(self, order: SandboxOrder) -> None:
        """Note that an order has changed."""
        self._changed[order.seq] = order
        if order.is_open:
            self._open[order.seq] = order
        else:
            self._open.pop(order.seq, None)

    def record(self, kind: str, moment: datetime, values: dict[str, Any]) -> None:
        """Add an activity; one without a time of day is at the beginning of its date."""
        number = len(self.activities) + 1
        begun = (
            f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}" if kind == "FILL" else f"{moment:%Y%m%d}" + "0" * 9
        )
        name = stable_id("activity", self.facts.get("account", ""), number)
        self.activities.append({"id": f"{begun}::{name}", "activity_type": kind} | values)

    def record_close(self, session: date, equity: Decimal) -> None:
        """Record the equity at a session's close."""
        self.closes[session] = equity
        self._new_closes.append(session)

    def open_orders(self, symbol: Symbol | None = None) -> list[SandboxOrder]:
        """Orders that are not final, oldest first."""
        return [order for order in self._open.values() if symbol in (None, order.symbol)]

    def held_for_orders(self, symbol: Symbol, price: Decimal) -> Decimal:
        """Shares reserved by open sell orders; those by notional at the current price."""
        total = ZERO
        for order in self.open_orders(symbol):
            if order.side is Side.SELL:
                total += order.remaining
                if order.notional is not None and price:
                    total += EXACT.divide(order.notional - order.cost, price)
        return total

    def commit(self) -> None:
        """Write all changes atomically."""
        self.facts |= {
            "cash": plain(self.portfolio.cash),
            "initial_cash": plain(self.initial_cash),
            "configurations": self.configurations,
            "positions": {s: [plain(p.quantity), str(p.average_cost)] for s, p in self.portfolio.positions.items()},
        }
        fresh = self.activities[self._saved_activities :]
        self._store.save(
            self.facts,
            [(order.seq, order.client_order_id, order.row()) for order in self._changed.values()],
            [(self._saved_activities + n, json.dumps(one)) for n, one in enumerate(fresh, 1)],
            [(day.isoformat(), plain(self.closes[day])) for day in self._new_closes],
        )
        self._changed.clear()
        self._saved_activities = len(self.activities)
        self._new_closes.clear()
