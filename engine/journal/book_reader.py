"""Read orders, trades and the books at each close, and the account at a broker that they are compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, datetime

from engine.domain.market import Symbol
from engine.domain.order import Fill, Order, OrderState, is_final
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.errors import MissingData
from engine.journal.database import reading
from engine.journal.entries import BoundAccount, Holding, OrderEntry, OrderMove
from engine.journal.row_reader import RowReader, where
from engine.journal.rows import command_of, equity_of, value_of
from engine.messages.commands import Edit, OrderCommand, in_force

_UNFILLED = ", ".join(f"'{state}'" for state in (OrderState.REJECTED, OrderState.CANCELED, OrderState.EXPIRED))
ORDERS = f"""
    SELECT orders.*, state.state,
    CASE WHEN state.state IN ({_UNFILLED}) THEN coalesce(state.detail, '') ELSE '' END AS ended
    FROM orders
    JOIN order_states AS state ON state.seq = (SELECT max(seq) FROM order_states WHERE order_id = orders.id)"""
"""Every order in its present state, which is its last, with the reason where that is an end before all was filled."""


# Times are texts that sort; those of a broker's fills are by its clock, which may be minutes from the desk's.
EARLY_FILLS = """
    SELECT seq FROM fills WHERE fills.time < (
        SELECT CASE WHEN fills.execution IS NULL THEN min(time)
        ELSE replace(datetime(min(time), '-5 minutes'), ' ', 'T') END
        FROM order_states WHERE order_id = fills.order_id AND state = 'submitting')"""
"""Trades that happened before their orders were sent: there can be none."""


class BookReader(RowReader):
    """The tables of orders, fills, cash flows, equity, positions and a broker's account. `book` narrows to the book of
    one owner, empty means the desk's one book or all of its books together, None every book."""

    def orders(
        self, run: str | None = None, symbol: str | None = None, session: date | None = None, open_only: bool = False
    ) -> tuple[OrderEntry, ...]:
        """Orders in their present state and size, by decision session; `open_only` leaves out those that nothing can
        follow."""
        final = ", ".join(f"'{state}'" for state in OrderState if is_final(state))
        orders = f"{ORDERS} AND state.state NOT IN ({final})" if open_only else ORDERS
        narrow, values = where({"run": run, "symbol": symbol, "session": session})
        edits = self._edits()
        entries = (
            value_of(OrderEntry, row, decided=None)
            for row in self._rows(f"{orders}{narrow} ORDER BY orders.rowid", *values)
        )
        return tuple(
            replace(entry, order=edits[entry.order.id].applied(entry.order), decided=entry.order)
            if entry.order.id in edits
            else entry
            for entry in entries
        )

    def order(self, order_id: str) -> Order | None:
        """An order in its present state, in the size that was decided; None where there is none of that id."""
        found = self._rows(f"{ORDERS} WHERE orders.id = ?", order_id)
        return value_of(OrderEntry, found[0], decided=None).order if found else None

    def edited(self, order: Order) -> Order:
        """An order in the size that an operator has given it, or as it is."""
        edit = self._edits().get(order.id)
        return order if edit is None else edit.applied(order)

    def order_commands(self, order_ids: Collection[str] | None = None) -> tuple[tuple[datetime, OrderCommand], ...]:
        """Every command about an order, in the order in which they were given, each with its time; `order_ids` narrows
        to these orders."""
        kinds, ids = [kind.__name__ for kind in OrderCommand.__subclasses__()], tuple(order_ids or ())
        narrow = f"type IN ({', '.join('?' * len(kinds))})"
        if order_ids is not None:
            narrow += f" AND json_extract(json, '$.order_id') IN ({', '.join('?' * len(ids))})"
        given = map(command_of, self._rows(f"SELECT * FROM commands WHERE {narrow} ORDER BY seq", *kinds, *ids))
        return tuple((time, command) for time, command in given if isinstance(command, OrderCommand))

    def _edits(self) -> Mapping[str, Edit]:
        """The last edit that holds of every order that has one, by order id."""
        if not self._rows("SELECT 1 FROM commands WHERE type = ? LIMIT 1", Edit.__name__):
            return {}
        held = ((name, command) for name, given in in_force(self.order_commands()).items() for _, command in given)
        return {name: command for name, command in held if isinstance(command, Edit)}

    def order_moves(self, order_id: str) -> tuple[OrderMove, ...]:
        """The life of an order, state by state."""
        return self._values(OrderMove, "order_states", {"order_id": order_id})

    def sent_at(self, order_id: str) -> datetime:
        """When an order was last about to be sent, UTC. Raises MissingData for one that never was."""
        sent = [move.time for move in self.order_moves(order_id) if move.state is OrderState.SUBMITTING]
        if not sent:
            raise MissingData(f"the order {order_id} was never sent")
        return sent[-1]

    def orders_sent(self) -> frozenset[str]:
        """The ids of orders that were ever submitted, or were about to be."""
        sent = "SELECT DISTINCT order_id FROM order_states WHERE state = 'submitting'"
        return frozenset(row["order_id"] for row in self._rows(sent))

    def fills(
        self, run: str | None = None, order_id: str | None = None, part: str | None = None, *, book: str | None = ""
    ) -> tuple[Fill, ...]:
        """Trades of the account, or those allocated to an owner's `book`; of all of them with None."""
        return self._values(Fill, "fills", {"run": run, "order_id": order_id, "part": part, "book": book})

    def early_fills(self) -> tuple[Fill, ...]:
        """Trades of before their orders were sent."""
        return tuple(value_of(Fill, row) for row in self._rows(f"SELECT * FROM fills WHERE seq IN ({EARLY_FILLS})"))

    def fills_entered(self, run: str) -> tuple[Fill, ...]:
        """The account's trades of a run but for those that were booked ahead of it."""
        ahead = "SELECT 1 FROM activities WHERE id = fills.execution AND activities.run <> fills.run"
        rows = f"SELECT * FROM fills WHERE run = ? AND book = '' AND NOT EXISTS ({ahead}) ORDER BY rowid"
        return tuple(value_of(Fill, row) for row in self._rows(rows, run))

    def dated_fills(self, symbol: Symbol) -> tuple[tuple[datetime, Fill], ...]:
        """Trades of a symbol at a broker, each after its time (UTC) there."""
        rows = self._rows(
            "SELECT fills.*, activities.time AS moment FROM fills JOIN activities ON activities.id = fills.execution"
            " WHERE fills.symbol = ? AND fills.book = '' ORDER BY fills.rowid",
            symbol,
        )
        return tuple((datetime.fromisoformat(row["moment"]), value_of(Fill, row)) for row in rows)

    def cash_flows(
        self, run: str | None = None, part: str | None = None, *, book: str | None = ""
    ) -> tuple[CashFlow, ...]:
        """Cash, or shares, that moved without a trade in the account, or in an owner's `book`; in all with None."""
        return self._values(CashFlow, "cash_flows", {"run": run, "part": part, "book": book})

    def equity(self, run: str | None = None, part: str | None = None, book: str | None = "") -> tuple[EquityPoint, ...]:
        """The books at each close, positions and prices included."""
        narrow, values = where({"run": run, "part": part, "book": book})
        points = self._rows(f"SELECT * FROM equity{narrow} ORDER BY rowid", *values)
        held: dict[tuple[str, str, str], list[Holding]] = {}
        for holding in self.holdings(run, book=book):
            held.setdefault((holding.run, holding.session.isoformat(), holding.book), []).append(holding)
        return tuple(equity_of(row, held.get((row["run"], row["session"], row["book"]), ())) for row in points)

    def closed_session(self) -> date | None:
        """The last session whose books are closed, or None."""
        last = self._rows("SELECT max(session) AS session FROM equity WHERE book = ''")[0]["session"]
        return None if last is None else date.fromisoformat(last)

    def holdings(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        book: str | None = "",
    ) -> tuple[Holding, ...]:
        """Every price that the books knew at closes, with the quantity held (0 where flat)."""
        narrow = {"run": run, "symbol": symbol, "book": book, "session >=": first, "session <=": last}
        return self._values(Holding, "positions", narrow)

    def positions(self) -> tuple[Holding, ...]:
        """The holdings at the last close, of all books together."""
        last = "SELECT run, session FROM equity WHERE book = '' ORDER BY session DESC, rowid DESC LIMIT 1"
        for close in self._rows(last):
            held = self.holdings(close["run"], first=close["session"], last=close["session"])
            return tuple(holding for holding in held if holding.quantity)
        return ()

    def account(self) -> BoundAccount | None:
        """The account that the desk trades in, or None for one that never had any."""
        found = self._values(BoundAccount, "accounts")
        return found[-1] if found else None

    def broker_orders(self) -> dict[str, str]:
        """Our ids of orders by the broker's."""
        return {row["broker_id"]: row["order_id"] for row in self._rows("SELECT * FROM broker_orders")}

    def activities(self) -> dict[str, datetime]:
        """The account activity that is on record: time by id."""
        times = {}
        for row in self._rows("SELECT id, time FROM activities"):
            with reading(row):
                times[row["id"]] = datetime.fromisoformat(row["time"])
        return times

    def adoptions(self) -> tuple[Adoption, ...]:
        """Differences in which a person took the broker's side."""
        return self._values(Adoption, "adoptions")
