"""Journal and broker side by side: what is booked under which name, what halts a desk, and what a person takes over."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox.protocol import Request, to_json
from engine.account.activity import read_activity, session_of
from engine.account.booking import Booking, adopt, cancel_ended_orders
from engine.account.broker_venue import claim_account
from engine.account.disagreement import BooksDisagree
from engine.account.reconciliation import PAUSES, ReconciliationReport, compare
from engine.domain.brokerage import Activity, ActivityKind, BrokerAccount, Difference
from engine.domain.order import Order, OrderState, OrderUpdate, Portfolio, Position, Side
from engine.domain.run import Adoption, CashFlow, RunKind, RunOutcome, carried_forward
from engine.errors import ConfigError, CredentialsRefused
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.session.context import run_id
from tests.engine.account.accounts import DAYS, XNYS, BrokerClockOf, Desk, assert_equal
from tests.engine.desks import hold, trade
from tests.snapshots import snapshot

D = Decimal


def by_hand(desk: Desk, symbol: str, side: str = "buy", **fields: str) -> dict[str, Any]:
    """An order that somebody places at the broker."""
    settings = desk.local.settings
    headers = {"apca-api-key-id": settings.key, "apca-api-secret-key": settings.secret}
    body = {"symbol": symbol, "side": side, "type": "market", "time_in_force": "day"} | fields
    answer = desk.local.answer(Request(method="POST", path="/v2/orders", query={}, headers=headers, body=to_json(body)))
    assert answer.status == 200, answer.body
    placed: dict[str, Any] = json.loads(answer.body)
    return placed


def taken_over(desk: Desk, reason: str = "bought by hand") -> tuple[ReconciliationReport, tuple[Adoption, ...]]:
    with JournalWriter(desk.journal) as journal, JournalReader(desk.journal) as reader:
        reconciler = desk.reconciler(reader)
        found = asyncio.run(reconciler.reconcile())
        found = asyncio.run(cancel_ended_orders(desk.account, reconciler, found, desk.name))
        run, clock = run_id(desk.name, desk.session), BrokerClockOf(desk.local)
        booking = Booking(journal, reader, run=run, kind="alpaca", market=desk.market, calendar=XNYS, clock=clock)
        return found, adopt(found, booking, desk.session, reason)


def differences(desk: Desk) -> dict[str, Difference]:
    with pytest.raises(BooksDisagree) as halt:
        desk.run()
    assert halt.value.exit_code == 79
    return {one.what: one for one in halt.value.differences}


# What halts, and what takes it over


def test_an_account_that_holds_shares_halts_a_new_desk_until_they_are_adopted(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    by_hand(desk, "AAA", qty="12")
    desk.next_close()

    found = differences(desk)
    assert (found["AAA"].journal, found["AAA"].broker, found["AAA"].amount) == (D(0), D(12), D(12))
    assert desk.model.requests == []

    _, adopted = taken_over(desk)
    assert [(one.symbol, one.before, one.after, one.reason) for one in adopted] == [("AAA", 0, 12, "bought by hand")]
    assert desk.run().outcome == "done"
    for _ in range(3):
        desk.next_close()
        desk.run()
        assert_equal(desk)
    assert quick_check(desk.journal) == ()


def test_an_outside_trade_halts_names_both_sides_and_is_adopted_on_the_record(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    by_hand(desk, "GONE", qty="5")
    desk.next_close()

    found = differences(desk)
    assert set(found) == {"GONE", "cash"}
    assert found["GONE"].amount == 5
    assert found["cash"].amount is not None and found["cash"].amount < -100
    with JournalReader(desk.journal) as reader:
        assert reader.latest_run(RunKind.DAILY).outcome is None  # whoever runs it writes how it ended
        assert [f for f in reader.fills() if f.symbol == "GONE"] == []
    differences(desk)  # it stays so

    _, adopted = taken_over(desk)
    assert {one.symbol for one in adopted} == {"", "GONE"}
    assert desk.run().outcome == "done"
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        points, kept = reader.equity(), reader.adoptions()
        fills, flows = reader.fills(), reader.cash_flows()
    assert {(a.symbol, a.session) for a in kept} == {("", DAYS[1]), ("GONE", DAYS[1])}
    rolled = carried_forward(points[0].portfolio, fills, flows, kept)
    assert rolled.cash == points[-1].portfolio.cash
    assert rolled.quantity("GONE") == points[-1].portfolio.quantity("GONE") == 5
    # What was taken over was not earned by a decision.
    desk.next_close()
    desk.run()
    assert_equal(desk)


def test_a_strangers_open_order_halts_and_cannot_be_adopted(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.next_close()
    placed = by_hand(desk, "GONE", qty="5", client_order_id="mine")

    found = differences(desk)
    assert set(found) == {"order mine"}
    with pytest.raises(BooksDisagree):
        taken_over(desk)

    desk.local.exchange.cancel(desk.local.exchange.book.by_id[placed["id"]])
    assert desk.run().outcome == "done"


def test_an_order_that_the_journal_calls_ended_and_the_broker_has_open_is_canceled_by_adopting(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    result = desk.run()
    order = result.orders[0]
    with JournalWriter(desk.journal) as journal:
        journal.order_moved(order.moved(OrderState.EXPIRED), BrokerClockOf(desk.local).now())
    again = run_id(desk.name, desk.session)
    with JournalWriter(desk.journal) as journal:  # as if the run had not come to its end
        journal.run_finished(again, RunOutcome.FAILED, BrokerClockOf(desk.local).now())

    assert f"order {order.id}" in differences(desk)
    taken_over(desk, "arrived late")

    assert [o["status"] for o in desk.local.state()["orders"] if o["client_order_id"] == order.id] == ["canceled"]
    desk.next_close()
    assert desk.run().outcome == "done"
    assert_equal(desk)


def test_an_order_that_the_broker_has_lost_halts_and_expires_by_adopting(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    order = desk.run().orders[0]
    book = desk.local.exchange.book
    lost = book.by_client_id.pop(order.id)
    book._open.pop(lost.seq)
    book.orders.remove(lost)
    desk.next_close()

    assert f"order {order.id}" in differences(desk)
    taken_over(desk, "the broker lost it")
    assert desk.run().outcome == "done"
    with JournalReader(desk.journal) as reader:
        (kept,) = [e.order for e in reader.orders() if e.order.id == order.id]
    assert kept.state is OrderState.EXPIRED


def test_adopting_needs_a_reason(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    by_hand(desk, "AAA", qty="1")
    desk.next_close()
    with pytest.raises(ConfigError):
        taken_over(desk, "  ")


# Whose account it is


def test_a_blocked_account_is_refused_and_nothing_is_decided(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.local.fault("account_blocked")
    with pytest.raises(CredentialsRefused, match="blocked"):
        desk.run()
    assert desk.model.requests == []
    desk.local.clear_faults()
    assert desk.run().outcome == "done"


def test_one_account_serves_one_desk(tmp_path: Path) -> None:
    first = Desk(folder=tmp_path)
    first.run()
    second = Desk(folder=tmp_path, name="other")
    second.local = first.local
    second.account.local = first.local
    first.next_close()
    with pytest.raises(ConfigError, match="desk desk"):
        second.run()
    assert first.run().outcome == "done"


def test_a_journal_of_another_account_is_refused(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    (tmp_path / "broker.db").unlink()
    elsewhere = Desk(folder=tmp_path, start=desk.start + timedelta(seconds=1))
    elsewhere.next_close()
    with pytest.raises(ConfigError, match="keys"):
        elsewhere.run()


def test_a_claim_that_was_cut_short_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "a.account"
    path.touch()
    claim_account(path, "mine", "a")
    claim_account(path, "mine", "a")
    with pytest.raises(ConfigError, match="mine"):
        claim_account(path, "yours", "a")


# What is booked, and where


def test_a_transfer_is_a_named_flow_and_no_profit(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.next_close()
    desk.local.control_request("POST", "/sandbox/transfers", {"amount": "-2500.50"})
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        (flow,) = reader.cash_flows()
    assert (flow.kind, flow.amount, flow.symbol, flow.session) == ("transfer", D("-2500.50"), "", DAYS[1])


def test_what_is_later_than_the_session_is_journalled_now_and_counted_once_in_its_own(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.next_close()
    desk.local.advance("3h")  # the evening of the first of February in New York, the second in UTC
    desk.local.control_request("POST", "/sandbox/transfers", {"amount": "1000"})
    result = desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        (flow,) = reader.cash_flows()
        fills = reader.fills()
    spent = sum((f.quantity * f.price for f in fills), D(0)).quantize(D("0.01"))
    assert flow.session == DAYS[2]
    assert result.books.portfolio.cash == D(100_000) - spent
    desk.next_close()
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        assert len(reader.cash_flows()) == 1
        before, after = reader.equity()[-2:]
    assert after.portfolio.cash != before.portfolio.cash


def test_the_first_books_begin_with_the_brokers_cash_and_what_was_before_is_not_booked(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.local.control_request("POST", "/sandbox/transfers", {"amount": "1234.56"})
    result = desk.run()
    assert result.books.portfolio.cash == D("101234.56")
    desk.next_close()
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        assert reader.cash_flows() == ()


def line(kind: ActivityKind, at: datetime, **more: Any) -> Activity:
    return Activity(id=more.pop("id", "a1"), kind=kind, time=at, **more)


def at(day: date, hour: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "session"),
    [
        (at(date(2024, 2, 2), 15), date(2024, 2, 2)),
        (at(date(2024, 2, 2), 21), date(2024, 2, 2)),
        (at(date(2024, 2, 2), 21) + timedelta(seconds=1), date(2024, 2, 5)),
        (at(date(2024, 2, 3), 12), date(2024, 2, 5)),
        (at(date(2024, 2, 5), 0), date(2024, 2, 5)),
    ],
)
def test_a_line_belongs_to_the_first_session_whose_close_is_not_before_it(moment: datetime, session: date) -> None:
    assert session_of(XNYS, moment, None) == session
    # Never to books that are closed.
    assert session_of(XNYS, moment, date(2024, 2, 7)) == date(2024, 2, 7)


def test_lines_become_trades_of_our_orders_and_named_flows(tmp_path: Path) -> None:
    order = Order(id="o", symbol="AAA", side=Side.BUY, session=DAYS[0], notional=D(100), reason="because")
    when = at(DAYS[1], 15)
    bought = line(ActivityKind.FILL, when, symbol="AAA", broker_id="b", side=Side.BUY, quantity=D(2), price=D(50))
    told = [
        bought,
        bought,
        replace(bought, id="a2", broker_id="?"),
        line(ActivityKind.OTHER, when, id="a3", amount=D("-0.07"), description="ODD: something new"),
        line(ActivityKind.FEE, when, id="a4", description="canceled"),
        line(ActivityKind.INTEREST, when, id="a5", amount=D(1)),
    ]
    lines = read_activity(told, {"b": order}.get, {"a5": when}, XNYS, None)
    assert [(f.order_id, f.quantity, f.reason, f.session) for f in lines.fills] == [("o", 2, "because", DAYS[1])]
    assert lines.flows == (
        CashFlow(session=DAYS[1], symbol="", kind="other", amount=D("-0.07"), description="ODD: something new"),
    )
    assert [one.activity.id for one in lines.all if one.entry is None] == ["a2", "a4"]
    assert len(lines.all) == 4


# Both sides compared


def account(cash: str, **held: str) -> BrokerAccount:
    positions = {symbol: Position(D(quantity), D(1)) for symbol, quantity in held.items()}
    return BrokerAccount(
        id="id", status="ACTIVE", blocked="", currency="USD", cash=D(cash), equity=D(cash), positions=positions
    )


@pytest.mark.parametrize(
    ("cash", "fresh", "halts", "rest"),
    [
        ("100.00", 0, False, "0"),
        ("100.004", 0, False, "0"),
        ("100.01", 0, True, "0"),
        ("100.01", 1, False, "0.01"),
        ("99.98", 2, False, "-0.02"),
        ("99.97", 2, True, "0"),
    ],
)
def test_cash_is_compared_to_the_cent_and_rounding_is_at_most_a_cent_a_line(
    cash: str, fresh: int, halts: bool, rest: str
) -> None:
    found, rounding = compare(Portfolio(D("100.00")), account(cash), [], fresh)
    assert [one.what for one in found] == (["cash"] if halts else [])
    assert rounding == D(rest)


def test_positions_are_compared_exactly() -> None:
    ours = Portfolio(D(1), {"AAA": Position(D("1.000000001"), D(1)), "BBB": Position(D(2), D(1))})
    found, _ = compare(ours, account("1", AAA="1", BBB="2", CCC="3"), [], 9)
    assert [(one.what, one.journal, one.broker) for one in found] == [
        ("AAA", D("1.000000001"), D(1)),
        ("CCC", D(0), D(3)),
    ]


class Rounding:
    """A broker that counts cash finer than the journal: it rounds every trade up against us."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._inner = desk, desk.account

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def account(self) -> BrokerAccount:
        found = await self._inner.account()
        fills = [one for one in self._desk.local.state()["activities"] if one["activity_type"] == "FILL"]
        return replace(found, cash=found.cash - D("0.006") * len(fills))


def test_parts_of_cents_are_booked_under_their_name(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.wrap = lambda inner: Rounding(desk)
    for number in range(6):
        if number:
            desk.next_close()
        assert desk.run().outcome == "done"
    with JournalReader(desk.journal) as reader:
        rests = [flow for flow in reader.cash_flows() if flow.kind == "rounding"]
        fills = reader.fills()
    theirs = D(desk.local.state()["cash"]) - D("0.006") * len(fills)
    assert rests
    assert sum(flow.amount for flow in rests) == (theirs - D(desk.local.state()["cash"])).quantize(D("0.01"))
    assert abs(snapshot(desk.journal).portfolio().cash - theirs) <= D("0.005")


# Whose history lags behind its cash


class Lagging:
    """A broker whose history knows of a trade later than its cash does."""

    def __init__(self, inner: Any, times: int) -> None:
        self._inner, self.left = inner, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def activities(self, after: datetime) -> Any:
        found = await self._inner.activities(after)
        if self.left:
            self.left -= 1
            return found[:-1]
        return found


@pytest.mark.parametrize(("times", "agrees"), [(1, True), (3, True), (99, False)])
def test_a_history_that_lags_is_waited_for_a_little(
    times: int, agrees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.account.reconciliation.PAUSES", PAUSES)
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.next_close()
    broker = Lagging(desk.account, times)
    desk.wrap = lambda inner: broker
    if agrees:
        assert desk.run().outcome == "done"
        assert desk.waited == [0.5, 1.0, 2.0, 4.0][:times]
        assert_equal(desk)
    else:
        assert "cash" in differences(desk)
        broker.left = 0
        assert desk.run().outcome == "done"
        assert_equal(desk)


def test_a_dividend_entered_days_later_is_counted_in_the_books_that_are_open(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, pay_dividends=False, script=lambda r: trade(r, "BUY", 5, "strong uptrend"))
    for number in range(4):
        if number:
            desk.next_close()
        desk.run()
    exchange = desk.local.exchange
    exchange.book.portfolio = replace(exchange.book.portfolio, cash=exchange.book.portfolio.cash + D("3.21"))
    early = datetime(2024, 2, 1, tzinfo=UTC)
    values = {"date": "2024-02-01", "net_amount": "3.21", "symbol": "AAA", "qty": "7", "status": "executed"}
    exchange.book.record("DIV", early, values)
    desk.next_close()
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        (flow,) = [flow for flow in reader.cash_flows() if flow.kind == "dividend"]
    assert (flow.amount, flow.session, flow.quantity) == (D("3.21"), DAYS[4], 0)


def test_shares_that_a_split_brought_keep_what_the_position_cost() -> None:
    ours = Portfolio(D(0), {"AAA": Position(D(3), D(10))})
    after = carried_forward(
        ours, flows=[CashFlow(session=DAYS[0], symbol="AAA", kind="split", amount=D("0.50"), quantity=D(3))]
    )
    assert after == Portfolio(D("0.50"), {"AAA": Position(D(6), D(5))})
    gone = carried_forward(
        ours, flows=[CashFlow(session=DAYS[0], symbol="AAA", kind="split", amount=D(1), quantity=D(-3))]
    )
    assert gone == Portfolio(D(1), {})


def test_a_split_that_comes_as_old_shares_gone_and_new_ones_there_keeps_the_cost() -> None:
    ours = Portfolio(D(0), {"AAA": Position(D(3), D(10))})
    told = [
        CashFlow(session=DAYS[0], symbol="AAA", kind="split", amount=D(0), quantity=D(-3)),
        CashFlow(session=DAYS[0], symbol="AAA", kind="split", amount=D(0), quantity=D(6)),
    ]
    assert carried_forward(ours, flows=told) == Portfolio(D(0), {"AAA": Position(D(6), D(5))})


def test_books_that_do_not_follow_from_the_rows_are_found(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path)
    desk.run()
    desk.next_close()
    desk.run()
    with JournalWriter(desk.journal) as journal:
        journal.cash_flow(
            run_id(desk.name, DAYS[1]), CashFlow(session=DAYS[1], symbol="", kind="fee", amount=D("-0.01"))
        )
    (fault,) = quick_check(desk.journal)
    assert str(DAYS[1]) in fault


# Runs at odd hours


class AtOnce:
    """A broker whose answer to an order says already that it filled."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def place(self, order: Order) -> OrderUpdate:
        await self._inner.place(order)
        found = await self._inner.lookup(order.id)
        assert found is not None
        return OrderUpdate(order.id, found.state, found.filled_quantity)


def test_orders_that_fill_at_once_are_final_before_their_trades_are_booked_and_lose_none(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, wrap=AtOnce)
    desk.local.advance("open")
    desk.local.advance("30m")
    first = desk.run()  # late, and still for the last completed session
    assert first.session == DAYS[0]
    assert {order.state for order in first.orders} == {OrderState.FILLED}
    with JournalReader(desk.journal) as reader:
        assert reader.fills() == ()
    desk.next_close()
    desk.run()
    assert_equal(desk)
    with JournalReader(desk.journal) as reader:
        assert {(f.symbol, f.session) for f in reader.fills()} == {("AAA", DAYS[1]), ("BBB", DAYS[1])}


def test_a_run_after_the_night_of_a_split_decides_on_the_books_of_its_session(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=lambda r: trade(r, "BUY", 5, "strong uptrend"))
    for number in range(2):
        if number:
            desk.next_close()
        desk.run()
    desk.next_close()  # the second of February, a Friday; BBB splits over the weekend
    desk.local.advance("open")
    desk.local.advance("30m")

    result = desk.run()

    assert result.session == date(2024, 2, 2)
    held = result.books.portfolio.quantity("BBB")
    assert Decimal(desk.local.state()["positions"]["BBB"]) > 2 * held
    # Five percent of the books at Friday's closes, not of shares after the split at prices before it.
    with JournalReader(desk.journal) as reader:
        friday = {e.order.symbol: e.order.notional for e in reader.orders(session=date(2024, 2, 2))}
    assert friday["AAA"] is not None
    assert abs(friday["AAA"] / result.books.value - D("0.05")) < D("0.001")
    desk.next_close()
    after = desk.run()
    assert_equal(desk)
    assert abs(after.books.value / result.books.value - 1) < D("0.05")


def test_shares_that_were_adopted_were_not_earned(tmp_path: Path) -> None:
    desk = Desk(folder=tmp_path, script=hold)
    desk.run()
    by_hand(desk, "AAA", qty="1000")
    desk.next_close()
    differences(desk)
    taken_over(desk)
    desk.run()
    with JournalReader(desk.journal) as reader:
        (row,) = [row for row in reader.outcomes() if row.symbol == "AAA"]
    assert row.reward == 0
