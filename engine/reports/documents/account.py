"""Value by session and the account at a broker, as `paperdesk equity` and `paperdesk reconcile` print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from engine.account.books import Since, since_close
from engine.account.disagreement import BooksDisagree, EntryAwaited
from engine.account.reconciliation import ReconciliationReport
from engine.account.time_weighted import CloseComparison, Measured, beside, is_external, measured, net_deposits
from engine.domain.brokerage import BrokerOrder
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.domain.text import money, plain
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


@dataclass(frozen=True, slots=True)
class BrokerValues:
    """A desk's closes beside the broker's own values of its account, by session; `note` says why there are none."""

    by_session: Mapping[date, CloseComparison] = field(default_factory=dict)
    note: str = ""

    @property
    def differing(self) -> tuple[CloseComparison, ...]:
        """Closes whose values differ by more than rounding."""
        return tuple(one for one in self.by_session.values() if one.differs)


def equity_document(
    records: Records,
    *,
    first: date | None = None,
    until: date | None = None,
    last: int = 0,
    broker: BrokerValues | None = None,
) -> Row:
    """Closes from session `first` to `until`; `last` keeps that many (0: all), `count` is how many fit."""
    broker = broker or BrokerValues()
    points, owners = closes(records), _owner_values(records)
    rows, initial = measured_closes(records, points)
    fitting = [row for row in rows if _within(row.point.session, first, until)]
    moved = _by_close(points, () if records.reader is None else records.reader.cash_flows(records.world, records.part))
    return {
        **records.head,
        "initial_value": None if initial is None else money(initial),
        "count": len(fitting),
        "equity": [
            {
                **row_json.point(row.point),
                "brought_in": money(row.deposits),
                "change": None if row.change is None else float(row.change),
                "drawdown": float(row.fall),
                "cash_flows": [row_json.cash_flow(flow) for flow in moved.get(row.point.session, ())],
                **broker_row(broker.by_session.get(row.point.session)),
                **owners.get(row.point.session, {}),
            }
            for row in fitting[-last:]
        ],
        "broker_note": broker.note or None,
    }


def closes(records: Records) -> tuple[EquityPoint, ...]:
    """The books at every close of the records."""
    return () if records.reader is None else records.reader.equity(records.run, records.part)


def _owner_values(records: Records) -> dict[date, Row]:
    """Value and cash of the owners' books by session; nothing where the desk has one book."""
    found: dict[date, Row] = {}
    for point in () if records.reader is None else records.reader.equity(records.run, records.part, book=None):
        if point.book:
            values = {"value": money(point.value), "cash": money(point.portfolio.cash)}
            found.setdefault(point.session, {"per_owner": {}})["per_owner"][point.book] = values
    return found


def measured_closes(records: Records, points: Sequence[EquityPoint]) -> tuple[list[Measured], Decimal | None]:
    """Closes with their time-weighted changes, and the value that they begin with: a backtest's cash, else the first
    close."""
    reader, begins = records.reader, points[0].value if points else None
    if reader is None:
        return [], None
    if records.is_backtest:
        cash = reader.initial_values(records.run or "").get(records.part)
        return measured(points, began=cash), begins if cash is None else cash
    flows, adoptions = [one for one in reader.cash_flows() if is_external(one)], reader.adoptions()
    every = reader.equity() if flows or adoptions else ()  # all that a desk ever closed takes longest to read
    return measured(points, net_deposits(every, flows, adoptions)), begins


def booked_since(records: Records, last: EquityPoint | None) -> Since | None:
    """Everything that was booked in a desk's account since its last close, in a simulated one between the trades of a
    session and its close; None where nothing was, and for records that are not all of a desk's."""
    reader = records.reader
    if reader is None or last is None or records.kind != "desk":
        return None
    return since_close(last, reader.fills(), reader.cash_flows(), reader.adoptions())


def in_an_account(records: Records) -> bool:
    """True where the closes are those of an account at a broker, which has values of its own for them."""
    return not records.is_backtest and records.reader is not None and records.reader.account() is not None


def broker_values(records: Records, theirs: Mapping[date, Decimal]) -> BrokerValues:
    """The closes that both sides know; `theirs` are the broker's values by session."""
    return BrokerValues({one.session: one for one in beside(closes(records), theirs)})


def broker_row(one: CloseComparison | None) -> Row:
    """The broker's side of a close; null where it is not known."""
    if one is None:
        return {"broker_value": None, "broker_difference": None}
    return {"broker_value": money(one.broker), "broker_difference": money(one.difference)}


def _within(session: date, first: date | None, until: date | None) -> bool:
    return (first is None or session >= first) and (until is None or session <= until)


def _by_close(points: Sequence[EquityPoint], flows: Sequence[CashFlow]) -> dict[date, list[CashFlow]]:
    """Cash flows by the close whose books are the first to have them; shares that a split brought are none."""
    found: dict[date, list[CashFlow]] = {}
    for flow in flows:
        close = next((point.session for point in points if point.session >= flow.session), None)
        if close is not None and flow.amount:
            found.setdefault(close, []).append(flow)
    return found


SCHEMA = 1


def reconciliation_document(
    desk: str,
    report: ReconciliationReport,
    error: BooksDisagree | EntryAwaited | None,
    values: BrokerValues,
    *,
    adopted: Iterable[Adoption] = (),
    recovered: Iterable[BrokerOrder] = (),
    dry_run: bool = False,
) -> Row:
    """Both sides and their differences; `begun` is false for a journal that has nothing of the account yet. `awaited`
    says of what an entry may still come, by difference, and until when. `strange` are orders in the account that are
    not this desk's."""
    ours, theirs = report.journal.portfolio(report.activity), report.account
    begun = report.journal.bound is not None
    held = {symbol: position.quantity for symbol, position in theirs.positions.items()}
    awaited = error if isinstance(error, EntryAwaited) else None
    return {
        "schema": SCHEMA,
        "desk": desk,
        "account": theirs.id,
        "begun": begun,
        "agree": error is None,
        "exit_code": 0 if error is None else error.exit_code,
        "cash": _sides(ours.cash if begun else None, theirs.cash),
        "positions": {
            symbol: _sides(ours.quantity(symbol) if begun else None, held.get(symbol))
            for symbol in sorted(ours.positions.keys() | held.keys())
        },
        "differences": [row_json.difference(one) for one in report.differences],
        "expected": [row_json.difference(one) for one in report.expected],
        "awaited": {} if awaited is None else awaited.awaited,
        "awaited_until": None if awaited is None else awaited.until.isoformat(),
        "detail": None if error is None else str(error),
        "adopted": [{"what": one.symbol or "cash", **row_json.fields(one, "before", "after")} for one in adopted],
        "recovered": [_order_row(one) for one in recovered],
        "strange": [_order_row(one) for one in report.strange],
        "dry_run": dry_run,
        "values": [{"session": str(one.session), **broker_row(one)} for one in values.differing],
    }


def _order_row(one: BrokerOrder) -> Row:
    names = ("symbol", "side", "quantity", "notional", "state", "filled_quantity")
    return {"id": one.order_id, **row_json.fields(one, *names)}


def _sides(journal: Decimal | None, broker: Decimal | None) -> Row:
    sides = {"journal": journal, "broker": broker}
    return {side: None if amount is None else plain(amount) for side, amount in sides.items()}


def books_document(report: ReconciliationReport) -> Row:
    """Cash by journal and broker, and in what both sides differ."""
    ours = report.journal.portfolio(report.activity)
    return {
        "journal_cash": money(ours.cash),
        "broker_cash": money(report.account.cash),
        "differences": [row_json.difference(one) for one in report.differences],
    }
