"""The books of this moment: the last close with what was booked since, in documents, also of the past."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

from engine.account.books import since_close
from engine.domain.order import Fill, Portfolio, Position, Side
from engine.domain.run import CashFlow, EquityPoint
from engine.reports.documents.book import book_of
from engine.reports.documents.records import records_at, records_in
from engine.reports.documents.status import positions_document, status_document
from tests.engine.account.accounts import DAYS, Desk
from tests.engine.desks import fill

CLOSE, OPEN = date(2024, 2, 2), date(2024, 2, 5)
LAST = EquityPoint(
    CLOSE,
    Decimal(2000),
    Portfolio(Decimal(1000), {"BBB": Position(Decimal(10), Decimal(80))}),
    {"BBB": Decimal(100)},
)


def bought(symbol: str, quantity: int, price: int) -> Fill:
    return fill(symbol, Side.BUY, OPEN, str(quantity), str(price))


def flow(kind: str, amount: int = 0, quantity: int = 0, session: date = OPEN) -> CashFlow:
    return CashFlow(
        session=session, symbol="BBB" if quantity else "", kind=kind, amount=Decimal(amount), quantity=Decimal(quantity)
    )


def test_documents_have_what_was_booked_and_the_past_what_was_known_then(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.local.advance("open")
    desk.local.advance("10m")
    desk.book()
    state, fills = desk.local.state(), {}
    with records_in(desk.journal, "desk") as records:
        document, status, book = positions_document(records), status_document(records), book_of(records, None, ())
        for fill in records.required.fills():
            fills[fill.symbol] = fill
        last = records.required.last_event()
        with records_at(records, last) as now, records_at(records, last - len(fills)) as before:
            assert positions_document(now)["positions"] == document["positions"]
            was = positions_document(before)
    assert {symbol: one["quantity"] for symbol, one in document["positions"].items()} == state["positions"]
    assert len(fills) == 2 and document["cash"] == status["cash"]
    assert Decimal(document["cash"]) == Decimal(state["cash"])
    assert status["open_orders"] == [] and status["positions"] == document["positions"]
    assert (document["session"], document["since"]) == (str(DAYS[0]), {"session": str(DAYS[1]), "fills": 2})
    worth = sum((round(fill.quantity * fill.price, 2) for fill in fills.values()), Decimal(state["cash"]))
    assert abs(Decimal(document["value"]) - worth) <= Decimal("0.01")
    assert (was["positions"], was["since"]) == ({}, None)
    assert book.cash == Decimal(state["cash"]) and {one.symbol for one in book.positions} == set(fills)
    assert book.sessions == [DAYS[0]]  # the curve is one of closes


def test_nothing_since_is_nothing() -> None:
    assert since_close(LAST, [], [flow("dividend", 3, session=CLOSE)]) is None


def test_a_split_changes_shares_and_no_value_and_a_deposit_is_no_profit() -> None:
    since = since_close(LAST, [bought("BBB", 2, 52)], [flow("split", quantity=10)])
    assert since is not None and since.books.portfolio.quantity("BBB") == 22
    assert since.books.value == Decimal(1000) - 104 + 22 * 52
    since = since_close(LAST, [], [flow("split", quantity=10), flow("transfer", 500)])
    assert since is not None and since.books.prices == {"BBB": Decimal(50)}
    assert (since.books.value, since.deposits, since.fills) == (Decimal(2500), Decimal(500), 0)
