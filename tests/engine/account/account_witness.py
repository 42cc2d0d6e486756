"""Who watches a desk in its account and believes neither: looks at every order as it leaves, and after every run at
what the journal says beside what the broker has.

It reads the journal's tables and the sandbox's own books, never what the desk makes of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_DOWN, Decimal
from typing import Any

from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import Request
from engine.domain.order import CENT, ZERO, Side, is_final
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.session.context import DeskRunResult
from tests.connectors.alpaca.sandbox_markets import SPLIT_ON
from tests.engine.account.accounts import XNYS, Desk
from tests.snapshots import snapshot

SENT_NEVER = ("vetoed", "it would leave", "it would sell", "the desk observes")
"""How the reasons begin for which an order may end without having been sent."""
LAST_STATE = "SELECT state FROM order_states WHERE order_id = ? ORDER BY seq DESC LIMIT 1"


def session_of_id(order_id: str) -> date:
    """The decision's session, which an order's id names."""
    return date.fromisoformat(order_id.split("-")[1])


@dataclass(kw_only=True)
class Witness:
    """`halted` and `words` (by order id: approved or not) are what the person has said by now; `floor` is the share of
    the portfolio that has to stay cash; `mode` the desk's."""

    desk: Desk
    mode: str
    floor: Decimal
    halted: bool = False
    words: dict[str, bool] = field(default_factory=dict)
    posts: int = 0
    least_value: Decimal | None = None
    transferred: Decimal = ZERO
    """Money that had been moved in or out when the desk last read the account: what leaves later it cannot know."""
    late: set[str] = field(default_factory=set)
    """Orders that were on their way for longer than the desk waited: it may have given them up."""

    # While a run is at work

    def run_begins(self) -> None:
        """A run is about to begin: what the account is worth now is what its floor rests on."""
        self.posts, self.least_value = 0, self.value()

    def sees(self, request: Request) -> None:
        """A request has left the desk. Every order has to be one that may be sent at this moment."""
        self.least_value = min(self.least_value or ZERO, self.value())
        if request.path == "/v2/account":
            self.transferred = self._transfers()
        if request.method != "POST" or request.path != "/v2/orders":
            return
        self.posts += 1
        body, desk = request.json(), self.desk
        order_id, now = str(body["client_order_id"]), desk.local.exchange.now
        session = session_of_id(order_id)
        assert not self.halted, f"{order_id} was sent after a halt"
        assert self.mode != "observe", f"{order_id} was sent by a desk that observes"
        if self.mode == "ask":
            assert self.words.get(order_id) is True, f"{order_id} was sent, and the last word: {self.words}"
        following = next(s for s in XNYS.sessions(session, date(2024, 12, 31)) if s > session)
        assert XNYS.closes_at(session) <= now < XNYS.closes_at(following), f"{order_id} was sent at {now}"
        with closing(sqlite3.connect(desk.journal)) as journal:
            (state,) = journal.execute(LAST_STATE, (order_id,)).fetchone()
        assert state == "submitting", f"{order_id} was sent while {state}"
        if order_id not in desk.local.exchange.book.by_client_id:
            self._can_be_had(body)

    def _can_be_had(self, body: Mapping[str, Any]) -> None:
        book, order_id = self.desk.local.exchange.book, body["client_order_id"]
        if body["side"] == "sell":
            held = book.portfolio.quantity(body["symbol"])
            queued = sum((o.remaining for o in book.open_orders(body["symbol"]) if o.side is Side.SELL), ZERO)
            assert Decimal(body["qty"]) <= held - queued, f"{order_id} sells what is not held"
            return
        if "qty" in body:  # somebody sold short by hand, and the desk buys back
            assert Decimal(body["qty"]) <= -book.portfolio.quantity(body["symbol"])
            return
        reserved = sum((_to_come(order) for order in book.open_orders() if order.side is Side.BUY), ZERO)
        unknown = self.transferred - self._transfers()
        left = book.portfolio.cash + unknown - reserved - Decimal(body["notional"])
        assert self.least_value is not None
        assert left >= (self.floor * self.least_value).quantize(CENT, ROUND_DOWN), (
            f"{order_id} leaves {left} of {self.least_value}"
        )

    def _transfers(self) -> Decimal:
        activities = self.desk.local.exchange.book.activities
        return sum((Decimal(a["net_amount"]) for a in activities if a["activity_type"] in ("CSD", "CSW")), ZERO)

    def value(self) -> Decimal:
        """What the account comes to at the last close."""
        desk, portfolio = self.desk, self.desk.local.exchange.book.portfolio
        session, total = desk.session, portfolio.cash
        split_since = session < SPLIT_ON and desk.local.exchange.now >= XNYS.opens_at(SPLIT_ON)
        for symbol, position in portfolio.positions.items():
            history = desk.data.histories[symbol]
            close = history.bar(history.rows_through(session) - 1).close
            total += position.quantity * close / (2 if symbol == "BBB" and split_since else 1)
        return total

    # After everything

    def looks(self) -> None:
        """What holds at any time: one order per intention, each one's intention written down, a sound journal."""
        orders = self.ours()
        intents = [(session_of_id(o.client_order_id), o.symbol) for o in orders]
        assert len(intents) == len(set(intents)), f"an intention was traded twice: {intents}"
        with closing(sqlite3.connect(self.desk.journal)) as journal:
            known = dict(journal.execute("SELECT order_id, state FROM order_states ORDER BY seq"))  # the last counts
            twice = journal.execute(
                "SELECT session, symbol FROM orders GROUP BY session, symbol HAVING count(*) > 1"
            ).fetchall()
        assert not twice, f"meant twice: {twice}"
        for order in orders:
            assert known.get(order.client_order_id) not in (None, "intended"), f"{order.client_order_id} is a stranger"
        assert quick_check(self.desk.journal) == ()

    def run_ended(self, result: DeskRunResult, *, quiet: bool, fresh: bool) -> None:
        """A run says what it came to. `quiet`: nothing happened while it was at work; `fresh`: it has decided."""
        there = {o.client_order_id: o for o in self.ours()}
        with JournalReader(self.desk.journal) as reader:
            meant = {e.order.id: e.order for e in reader.orders(session=result.session)}
            why = {i: reader.order_moves(i)[-1].detail for i in meant}
            sent = reader.orders_sent()
        assert {o.id for o in result.orders} == set(meant)
        for order_id, order in meant.items():
            state = order.state.value
            if result.outcome == "done":
                assert state not in ("intended", "submitting", "unknown"), f"{order_id} is {state} and the run done"
            if state in ("acknowledged", "partially filled", "filled"):
                assert order_id in there, f"{order_id} is {state} here and unknown there"
            if state == "rejected" and order_id in there:
                assert there[order_id].status == "rejected", f"{order_id} lives, and the journal calls it rejected"
            if order_id in sent or order_id in there or state in ("intended", "unknown", "rejected"):
                continue
            assert is_final(order.state), f"{order_id} was never sent and is {state}"
            if state == "canceled":
                assert why[order_id].startswith(SENT_NEVER), why[order_id]
                assert not (quiet and fresh) or self.mode == "observe", (
                    f"{order_id} was canceled for nothing: {why[order_id]}"
                )
                assert why[order_id] != "vetoed" or self.words.get(order_id) is False
            if state == "expired":
                now = self.desk.local.exchange.now
                following = next(s for s in XNYS.sessions(order.session, date(2024, 12, 31)) if s > order.session)
                assert (XNYS.closes_at(following) - now).total_seconds() < 120, f"{order_id} expired before its time"
        if result.outcome == "waiting":
            assert {o.id for o in result.waiting} == {i for i, o in meant.items() if o.state.value == "intended"}
            assert not quiet or not any(order.id in self.words for order in result.waiting)
        if result.outcome == "halted":
            assert self.halted
        if quiet:
            self.agree(result)

    def agree(self, result: DeskRunResult) -> None:
        """Journal and broker, to the cent: all but what this run's own orders have filled since."""
        book, kept = self.desk.local.exchange.book, snapshot(self.desk.journal)
        cash, held = kept.portfolio().cash, {s: p.quantity for s, p in kept.portfolio().positions.items()}
        mine = {o.id for o in result.orders}
        for order in kept.orders.values():
            theirs = book.by_client_id.get(order.id)
            if theirs is not None and order.id not in mine | self.late:
                status = theirs.status if not theirs.is_open else "acknowledged"
                assert order.state.value in (status, "partially filled"), f"{order.id} is {order.state}, not {status}"
        for line in book.activities:
            if line["id"] in kept.entries:
                continue
            placed = book.by_id[line["order_id"]]
            assert placed.client_order_id in mine, f"not booked: {line}"
            sign = 1 if placed.side is Side.BUY else -1
            quantity, price = Decimal(line["qty"]), Decimal(line["price"])
            held[placed.symbol] = held.get(placed.symbol, ZERO) + sign * quantity
            cash -= sign * kept.portfolio().money(quantity * price)
        assert cash == book.portfolio.cash
        assert {s: q for s, q in held.items() if q} == {s: p.quantity for s, p in book.portfolio.positions.items()}

    def ours(self) -> list[SandboxOrder]:
        """The desk's orders at the broker, by how they are called."""
        orders = self.desk.local.exchange.book.orders
        return [o for o in orders if o.client_order_id.startswith(f"{self.desk.name}-")]


def _to_come(order: SandboxOrder) -> Decimal:
    """Cash that an open order to buy may still take; by the amount that it was given."""
    return ZERO if order.notional is None else order.notional - order.cost
