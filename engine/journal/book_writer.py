"""Write orders with their states, trades and the books at each close, and a broker's account beside them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from engine.domain.brokerage import Activity
from engine.domain.order import MOVES, Fill, Order, OrderState
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.journal import account_rows, book_rows
from engine.journal.codec import moment
from engine.journal.entries import BoundAccount, OrderEntry, OrderMove
from engine.journal.row_writer import RowWriter
from engine.journal.store import Condition


class BookWriter(RowWriter):
    """The tables of orders, fills, cash flows, equity, positions and a broker's account."""

    def order_intended(self, entry: OrderEntry) -> bool:
        """An order is about to be sent; False where the journal has it already (an id is burnt for ever: go on from
        its present state). Raises InvariantBroken for another order under the same id."""
        row, before = book_rows.order_row(entry), self._store.find("orders", {"id": entry.order.id})
        if before is not None:
            terms = [column for column in row if column not in ("run", "owner", "time")]
            return self._store.same("orders", {column: row[column] for column in terms}, before)
        self._owners[entry.order.id] = entry.owner
        move = OrderMove(entry.order.id, entry.time, entry.order.state)
        self._store.write(("orders", row), ("order_states", book_rows.move_row(move)))
        return True

    def order_moved(self, order: Order, time: datetime, *, filled: Decimal = Decimal(0), detail: str = "") -> None:
        """An order entered its present state. Raises InvariantBroken where the journal's state of it cannot go
        there."""
        before = [state.value for state in OrderState if order.state in MOVES[state]]
        legal = Condition(
            f"""(SELECT state FROM order_states WHERE order_id = ? ORDER BY seq DESC LIMIT 1)
            IN ({", ".join("?" * len(before))})""",
            (order.id, *before),
            f"order {order.id} is not in the journal, or cannot become {order.state} from its present state",
        )
        move = OrderMove(order.id, time, order.state, filled, detail)
        self._store.write_if("order_states", book_rows.move_row(move), legal)

    def fill(self, run: str, fill: Fill, execution: str | None = None) -> bool:
        """A trade happened. `execution` is the broker's id of it, where there is one: an execution that is reported
        twice is written once (False)."""
        reported = {"order_id": fill.order_id, "execution": execution}
        if execution is not None and self._store.find("fills", reported) is not None:
            return False
        row = book_rows.fill_row(fill) | {"run": run, "part": self._part(run), "execution": execution}
        self._store.write(("fills", row | {"owner": self._owner(fill.order_id)}))
        return True

    def cash_flow(self, run: str, flow: CashFlow, execution: str | None = None) -> None:
        """Cash, or shares, moved without a trade. `execution` is the broker's id of it, where there is one."""
        row = book_rows.cash_flow_row(flow) | {"run": run, "part": self._part(run), "execution": execution}
        self._store.write(("cash_flows", row))

    def session_settled(self, run: str, point: EquityPoint) -> bool:
        """A session's books are closed; False where they were closed alike already. A desk whose owners have books of
        their own closes each of them, and all together under no book's name."""
        key = {"run": run, "session": point.session.isoformat(), "book": point.book}
        row = book_rows.equity_row(point) | key | {"part": self._part(run)}
        before = self._store.find("equity", key)
        if before is not None:
            return self._store.same("equity", row, before)
        self._store.write(("equity", row), *(("positions", p | key) for p in book_rows.position_rows(point)))
        return True

    def account_bound(self, account: BoundAccount) -> None:
        """The desk trades in this account from now on."""
        self._store.write(("accounts", account_rows.bound_row(account)))

    def broker_order(self, order_id: str, broker_id: str) -> bool:
        """The broker has an order under an id of its own; False where that is known."""
        return self._store.write_once("broker_orders", {"broker_id": broker_id, "order_id": order_id}, ("broker_id",))

    def activity(self, run: str, activity: Activity, booked: bool) -> None:
        """The account's history has a new activity; `booked` where a trade or a cash flow is made of it. Raises
        InvariantBroken for one that is on record."""
        self._store.write(("activities", account_rows.activity_row(activity) | {"run": run, "booked": int(booked)}))

    def adopted(self, run: str, adoption: Adoption, time: datetime) -> None:
        """A person took the broker's side in a difference."""
        row = account_rows.adoption_row(adoption) | {"run": run, "time": moment(time)}
        self._store.write(("adoptions", row))

    def _owner(self, order_id: str) -> str:
        """The owner who decided an order; empty where no one did, or the journal does not have it."""
        if order_id not in self._owners:
            order = self._store.find("orders", {"id": order_id})
            self._owners[order_id] = "" if order is None else order["owner"]
        return self._owners[order_id]
