"""Write orders with their states, trades and the books at each close, and a broker's account beside them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from engine.domain.brokerage import Activity
from engine.domain.order import MOVES, Fill, Order, OrderState
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.errors import InvariantBroken
from engine.journal.entries import BoundAccount, OrderEntry, OrderMove
from engine.journal.rows import position_rows, row_of
from engine.journal.store import Condition, RowStore


class BookWriter(RowStore):
    """The tables of orders, fills, cash flows, equity, positions and a broker's account."""

    def order_intended(self, entry: OrderEntry) -> bool:
        """An order is about to be sent; False where the journal has it already (an id is burnt for ever: go on from
        its present state). Raises InvariantBroken for another order under the same id."""
        row, before = (
            row_of(entry, "order", "decided", "ended") | row_of(entry.order, "state"),
            self._find("orders", {"id": entry.order.id}),
        )
        if before is not None:
            terms = [column for column in row if column not in ("run", "owner", "time")]
            return self._same("orders", {column: row[column] for column in terms}, before)
        self._owners[entry.order.id] = entry.owner
        move = OrderMove(entry.order.id, entry.time, entry.order.state)
        self._write(("orders", row), ("order_states", row_of(move)))
        return True

    def order_moved(self, order: Order, time: datetime, *, filled: Decimal = Decimal(0), detail: str = "") -> None:
        """An order entered its present state. Raises InvariantBroken where the journal's state of it cannot go
        there."""
        self._write_if("order_states", row_of(OrderMove(order.id, time, order.state, filled, detail)), _legal(order))

    def order_submitting(self, order: Order, time: datetime, *, seen: int) -> bool:
        """An order is about to be sent; False where a command came after the number `seen`, which has to be read before
        anything is sent. Raises InvariantBroken as `order_moved` does."""
        legal, last = _legal(order), "(SELECT coalesce(max(seq), 0) FROM commands)"
        unchanged = Condition(f"{legal.sql} AND {last} = ?", (*legal.values, seen))
        if self._insert_now_if("order_states", row_of(OrderMove(order.id, time, order.state)), unchanged):
            return True
        if self._last("commands") == seen:
            raise InvariantBroken(legal.complaint)
        return False

    def fill(self, run: str, fill: Fill, execution: str | None = None) -> bool:
        """A trade happened. `execution` is the broker's id of it, where there is one: an execution that is reported
        twice is written once (False)."""
        reported = {"order_id": fill.order_id, "execution": execution}
        if execution is not None and self._find("fills", reported) is not None:
            return False
        row = {"run": run, "part": self._part(run), "execution": execution, "owner": self._owner(fill.order_id)}
        self._write(("fills", row_of(fill) | row))
        return True

    def cash_flow(self, run: str, flow: CashFlow, execution: str | None = None) -> None:
        """Cash, or shares, moved without a trade. `execution` is the broker's id of it, where there is one."""
        self._write(("cash_flows", row_of(flow) | {"run": run, "part": self._part(run), "execution": execution}))

    def session_settled(self, run: str, point: EquityPoint) -> bool:
        """A session's books are closed; False where they were closed alike already. A desk whose owners have books of
        their own closes each of them, and all together under no book's name."""
        key = {"run": run, "session": point.session, "book": point.book}
        of_book = key | {"owner": point.book}
        money = {"value": point.value, "cash": point.portfolio.cash, "money_step": point.portfolio.money_step}
        row = of_book | money | {"part": self._part(run)}
        before = self._find("equity", key)
        if before is not None:
            return self._same("equity", row, before)
        self._write(("equity", row), *(("positions", position | of_book) for position in position_rows(point)))
        return True

    def account_bound(self, account: BoundAccount) -> None:
        """The desk trades in this account from now on."""
        self._write(("accounts", row_of(account)))

    def broker_order(self, order_id: str, broker_id: str) -> bool:
        """The broker has an order under an id of its own; False where that is known."""
        return self._write_once("broker_orders", {"broker_id": broker_id, "order_id": order_id}, ("broker_id",))

    def activity(self, run: str, activity: Activity, booked: bool) -> None:
        """The account's history has a new activity; `booked` where a trade or a cash flow is made of it. Raises
        InvariantBroken for one that is on record."""
        self._write(("activities", row_of(activity) | {"run": run, "booked": booked}))

    def adopted(self, run: str, adoption: Adoption, time: datetime) -> None:
        """A person took the broker's side in a difference."""
        self._write(("adoptions", row_of(adoption) | {"run": run, "time": time}))

    def _owner(self, order_id: str) -> str:
        """The owner who decided an order; empty where no one did, or the journal does not have it."""
        if order_id not in self._owners:
            order = self._find("orders", {"id": order_id})
            self._owners[order_id] = "" if order is None else order["owner"]
        return self._owners[order_id]


def _legal(order: Order) -> Condition:
    """The condition that the journal's state of an order can go to its present one."""
    before = [state.value for state in OrderState if order.state in MOVES[state]]
    return Condition(
        f"""(SELECT state FROM order_states WHERE order_id = ? ORDER BY seq DESC LIMIT 1)
        IN ({", ".join("?" * len(before))})""",
        (order.id, *before),
        f"order {order.id} is not in the journal, or cannot become {order.state} from its present state",
    )
