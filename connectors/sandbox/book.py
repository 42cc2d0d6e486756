"""The account's books in one SQLite file: cash, positions, orders, activities, equity by close, in exact Decimals."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import FIXED_FIELDS, stable_id
from engine.domain.json_text import from_json, to_json
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import CENT, EXACT, ZERO, Portfolio, Position, Side
from engine.domain.text import plain
from engine.errors import ConfigError

SCHEMA = 1

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE orders (seq INTEGER PRIMARY KEY, client_order_id TEXT NOT NULL UNIQUE, document TEXT NOT NULL) STRICT;
CREATE TABLE activities (seq INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE closes (session TEXT PRIMARY KEY, equity TEXT NOT NULL) STRICT;
"""
_WRITES = {
    "facts": "INSERT OR REPLACE INTO facts VALUES (?, ?)",
    "orders": "INSERT INTO orders VALUES (?, ?, ?) ON CONFLICT (seq) DO UPDATE SET document = excluded.document",
    "activities": "INSERT INTO activities VALUES (?, ?)",
    "closes": "INSERT OR REPLACE INTO closes VALUES (?, ?)",
}
_HALF = Decimal("0.5")
_MAINTENANCE = Decimal("0.3")


class Store:
    """The file of the books; ':memory:' loses them at the end. Belongs to one thread."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it. Raises ConfigError for a file of another kind."""
        if path != ":memory:":
            Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing so; only the machine's own end could take the last moments.
            self._db.execute("PRAGMA synchronous = NORMAL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if not version:
                self._db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot keep the sandbox's books ({error}): name another file") from None
        if version not in (0, SCHEMA):
            raise ConfigError(f"{path} was written by another version of the sandbox: name another file")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def save(self, rows: Mapping[str, Iterable[tuple[object, ...]]]) -> None:
        """Write changed rows by table: all or none."""
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            for table, changed in rows.items():
                self._db.executemany(_WRITES[table], changed)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows of a table, by its key."""
        return self._db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of the account in USD, as of a Regulation T account, under their names on the wire.

    equity: cash and all positions.
    short_market_value: negative.
    initial_margin, maintenance_margin: required.
    buying_power: for shares, less open purchases.
    non_marginable_buying_power: for crypto, which cannot be bought on margin, less open purchases.
    """

    cash: Decimal
    equity: Decimal
    long_market_value: Decimal
    short_market_value: Decimal
    initial_margin: Decimal
    maintenance_margin: Decimal
    buying_power: Decimal
    non_marginable_buying_power: Decimal


class Book:
    """The account's state and history. Changes are in memory until `commit` writes them together."""

    def __init__(self, store: Store, cash: Decimal) -> None:
        """Open the books of the store, or new ones with `cash`."""
        self._store = store
        facts = {name: json.loads(value) for name, value in store.rows("facts")}
        self.is_new = "cash" not in facts
        held = {s: Position(Decimal(q), Decimal(c)) for s, (q, c) in facts.get("positions", {}).items()}
        self.portfolio = Portfolio(Decimal(facts.get("cash", plain(cash))), held)
        self.initial_cash = Decimal(facts.get("initial_cash", plain(cash)))
        self.configurations: dict[str, Any] = facts.get("configurations", dict(FIXED_FIELDS["configurations"]))
        self.facts: dict[str, Any] = facts
        """Further values by name; written with the rest."""
        self.orders = [from_json(SandboxOrder, text) for _, _, text in store.rows("orders")]
        self.by_id = {order.id: order for order in self.orders}
        self.by_client_id = {order.client_order_id: order for order in self.orders}
        self.activities: list[dict[str, Any]] = [json.loads(text) for _, text in store.rows("activities")]
        self.closes = {date.fromisoformat(day): Decimal(equity) for day, equity in store.rows("closes")}
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
        """Add an activity; all but a fill are at the beginning of their date."""
        number = len(self.activities) + 1
        name = stable_id("activity", self.facts.get("account", ""), number)
        if kind == "FILL":
            begun = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
        else:
            begun = f"{moment:%Y%m%d}" + "0" * 9
            values = {"date": moment.date().isoformat(), "status": "executed"} | values
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

    def figures(self, prices: Mapping[Symbol, Decimal]) -> Figures:
        """The account at given prices; every market value is rounded to a cent by itself, as positions are shown."""
        long = short = initial = maintenance = reserved = ZERO
        for symbol, position in self.portfolio.positions.items():
            value = market_value(position.quantity, prices[symbol])
            long, short = (long + value, short) if value > 0 else (long, short + value)
            initial += abs(value) * (1 if is_crypto(symbol) else _HALF)
            maintenance += abs(value) * (1 if is_crypto(symbol) else _MAINTENANCE)
        for order in self.open_orders():
            if order.side is Side.BUY and order.notional is not None:
                reserved += order.notional - order.cost
            elif order.side is Side.BUY:
                reserved += EXACT.multiply(order.remaining, order.limit_price or prices[order.symbol])
        cash = self.portfolio.cash
        equity = cash + long + short
        free = equity - initial
        return Figures(
            cash=cash,
            equity=equity,
            long_market_value=long,
            short_market_value=short,
            initial_margin=initial.quantize(CENT),
            maintenance_margin=maintenance.quantize(CENT),
            buying_power=max(ZERO, 2 * free - reserved).quantize(CENT),
            non_marginable_buying_power=max(ZERO, free - reserved).quantize(CENT),
        )

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
            {
                "facts": [(name, json.dumps(value, default=float)) for name, value in self.facts.items()],
                "orders": [(order.seq, order.client_order_id, to_json(order)) for order in self._changed.values()],
                "activities": [(self._saved_activities + n, json.dumps(one)) for n, one in enumerate(fresh, 1)],
                "closes": [(day.isoformat(), plain(self.closes[day])) for day in self._new_closes],
            }
        )
        self._changed.clear()
        self._saved_activities = len(self.activities)
        self._new_closes.clear()


def market_value(quantity: Decimal, price: Decimal) -> Decimal:
    """A position's value, rounded to a cent."""
    return EXACT.multiply(quantity, price).quantize(CENT, context=EXACT)
