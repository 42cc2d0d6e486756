"""Sessions with numbers that can be followed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pytest

from engine.domain.market import ActionKind, CorporateAction, PriceHistory
from engine.domain.order import Order, OrderState, OrderUpdate, Portfolio, Position, Side
from engine.domain.run import CashFlow, ExecutionRules, FillAt
from engine.errors import InvariantBroken, MissingData
from engine.simulation.simulated_broker import STOPPED_TRADING, SimulatedBroker
from tests.engine.desks import bar, fill

D = Decimal
MON, TUE, WED, THU, FRI = (date(2024, 1, n) for n in range(8, 13))
FREE = ExecutionRules(slippage_bp=D(0))


def history(symbol: str, *bars: tuple[date, str, str]) -> PriceHistory:
    """Bars from (session, open, close), volume 1,000."""
    return PriceHistory.of(symbol, [bar(*each) for each in bars])


AAA = history("AAA", (MON, "10", "10"), (TUE, "10", "11"), (WED, "12", "12.5"), (THU, "12", "13"), (FRI, "13", "13"))


def broker(
    rules: ExecutionRules = FREE,
    cash: str = "1000",
    held: str = "",
    actions: Sequence[CorporateAction] = (),
    bars: PriceHistory = AAA,
    last: date | None = FRI,
) -> SimulatedBroker:
    positions = {"AAA": Position(D(held), D(10))} if held else {}
    return SimulatedBroker(rules, Portfolio(D(cash), positions), {"AAA": bars}, {"AAA": actions}, closed=MON, last=last)


def buy(notional: str, session: date = MON, name: str = "b") -> Order:
    return Order(id=name, symbol="AAA", side=Side.BUY, session=session, notional=D(notional), reason="because")


def sell(quantity: str, session: date = MON, name: str = "s") -> Order:
    return Order(id=name, symbol="AAA", side=Side.SELL, session=session, quantity=D(quantity))


def test_a_buy_decided_after_the_close_fills_at_the_next_open_and_is_marked_at_the_close() -> None:
    desk = broker(ExecutionRules(slippage_bp=D(10), commission_per_order=D("0.50")))

    assert desk.submit(buy("500")) == OrderUpdate("b", OrderState.ACKNOWLEDGED)
    opened = desk.open_session(TUE)
    point, closed = desk.close_session(TUE)

    # 499.50 / 10.01 = 49.900099900...
    bought = fill("AAA", Side.BUY, TUE, "49.900099900", "10.01", order_id="b", fee=D("0.50"), reason="because")
    assert opened.fills == (bought,)
    assert opened.updates == (OrderUpdate("b", OrderState.FILLED, D("49.900099900")),)
    assert closed == ((), (), ())
    assert point.portfolio.cash == D("500.00")
    assert point.prices == {"AAA": D(11)}
    assert point.value == D("500.00") + D("548.90")  # 49.9000999 x 11 = 548.9010989


def test_a_paper_may_fill_at_the_close_that_it_decided_on() -> None:
    desk = broker(ExecutionRules(fill_at=FillAt.SAME_CLOSE, slippage_bp=D(0)))
    desk.open_session(TUE)
    desk.submit(buy("110", TUE))

    _, closed = desk.close_session(TUE)

    assert [(f.session, f.price) for f in closed.fills] == [(TUE, D(11))]


def test_an_order_cannot_fill_in_the_session_that_it_was_decided_on() -> None:
    desk = broker(ExecutionRules())
    desk.submit(buy("100", TUE))

    with pytest.raises(InvariantBroken, match="cannot fill"):
        desk.open_session(TUE)
        desk.close_session(TUE)


def test_a_split_scales_position_and_pending_order_and_pays_the_rest_in_cash() -> None:
    halved = history("AAA", (MON, "30", "30"), (TUE, "20", "21"))
    split = CorporateAction("AAA", TUE, ActionKind.SPLIT, D("1.5"))
    desk = broker(ExecutionRules(slippage_bp=D(0), fractional=False), "0", "5", [split], halved, TUE)
    desk.submit(sell("3"))

    opened = desk.open_session(TUE)
    point, _ = desk.close_session(TUE)

    # 5 x 1.5 = 7.5 shares: half a share at the open is 10.00. 3 x 1.5 = 4.5: four are sold, for 80.
    assert opened.cash_flows == (CashFlow(session=TUE, symbol="AAA", kind="cash in lieu", amount=D("10.00")),)
    assert [f.quantity for f in opened.fills] == [D(4)]
    assert point.portfolio.positions == {"AAA": Position(D(3), D(10) / D("1.5"))}
    assert point.value == D(90) + 3 * 21


def test_a_dividend_is_paid_on_what_was_held_before_the_open() -> None:
    paid = CorporateAction("AAA", TUE, ActionKind.DIVIDEND, D("0.22"))
    desk = broker(cash="100", held="7", actions=[paid])
    desk.submit(buy("100"))
    desk.submit(sell("7"))

    opened = desk.open_session(TUE)

    assert opened.cash_flows == (CashFlow(session=TUE, symbol="AAA", kind="dividend", amount=D("1.54")),)
    assert [f.side for f in opened.fills] == [Side.BUY, Side.SELL]
    assert desk.portfolio.cash == D("71.54")


def test_split_and_dividend_on_one_day_pay_per_new_share() -> None:
    actions = [
        CorporateAction("AAA", TUE, ActionKind.DIVIDEND, D("0.10")),
        CorporateAction("AAA", TUE, ActionKind.SPLIT, D(2)),
    ]
    desk = broker(cash="0", held="7", actions=actions)

    assert [f.amount for f in desk.open_session(TUE).cash_flows] == [D("1.40")]


def test_actions_that_the_starting_books_have_been_through_are_not_applied_again() -> None:
    done = CorporateAction("AAA", MON, ActionKind.SPLIT, D(2))
    desk = broker(held="7", actions=[done])

    desk.open_session(TUE)

    assert desk.portfolio.quantity("AAA") == D(7)


def test_an_ex_date_between_sessions_counts_at_the_next_one() -> None:
    late = CorporateAction("AAA", WED, ActionKind.DIVIDEND, D(1))
    desk = broker(held="7", actions=[late])
    desk.open_session(TUE)
    desk.close_session(TUE)

    assert desk.open_session(THU).cash_flows == (
        CashFlow(session=THU, symbol="AAA", kind="dividend", amount=D("7.00")),
    )


def test_a_short_position_pays_the_dividend_even_out_of_no_cash() -> None:
    rules = ExecutionRules(slippage_bp=D(0), allow_short=True)
    desk = broker(rules, "1", "-4", [CorporateAction("AAA", TUE, ActionKind.DIVIDEND, D("0.50"))])

    desk.open_session(TUE)

    paid = next(flow.amount for flow in desk.cash_flows if flow.kind == "dividend")
    assert paid == D("-2.00")


def test_a_halted_symbol_expires_the_order_and_keeps_its_last_close() -> None:
    halted = history("AAA", (MON, "10", "10"), (WED, "12", "12"))
    desk = broker(held="5", bars=halted, last=WED)
    desk.submit(sell("5"))

    opened = desk.open_session(TUE)
    point, _ = desk.close_session(TUE)

    assert opened.updates == (
        OrderUpdate("s", OrderState.EXPIRED, D(0), "AAA did not trade on 2024-01-09; day orders expire"),
    )
    assert point.prices == {"AAA": D(10)}
    assert desk.cancel("s") == opened.updates[0]


def test_a_symbol_that_stops_trading_is_sold_at_its_last_close_without_costs() -> None:
    gone = history("AAA", (MON, "10", "10"), (TUE, "9", "8.40"))
    desk = broker(ExecutionRules(commission_per_order=D(5)), "10", "5", bars=gone)
    desk.open_session(TUE)

    point, closed = desk.close_session(TUE)

    sold = fill("AAA", Side.SELL, TUE, "5", "8.4", order_id="stopped-20240109-AAA", reason=STOPPED_TRADING)
    assert closed.fills == (sold,)
    assert point.portfolio == Portfolio(D("52.00"))
    assert point.value == D("52.00")
    (note,) = desk.notes
    assert all(part in note for part in ("AAA", "8.4", "2024-01-09"))
    desk.submit(buy("10", TUE))
    assert desk.open_session(WED).updates[0].state is OrderState.EXPIRED


def test_without_a_window_nobody_knows_that_a_symbol_will_stop() -> None:
    gone = history("AAA", (MON, "10", "10"), (TUE, "9", "8"))
    desk = broker(held="5", bars=gone, last=None)
    desk.open_session(TUE)

    point, _ = desk.close_session(TUE)

    assert point.portfolio.quantity("AAA") == D(5)


def test_the_volume_cap_fills_in_part_and_the_rest_expires() -> None:
    desk = broker(ExecutionRules(slippage_bp=D(0), volume_cap=D("0.03")))
    desk.submit(buy("500"))

    opened = desk.open_session(TUE)

    assert [f.quantity for f in opened.fills] == [D(30)]
    assert [(u.state, u.filled_quantity) for u in opened.updates] == [
        (OrderState.PARTIALLY_FILLED, D(30)),
        (OrderState.EXPIRED, D(30)),
    ]
    assert desk.portfolio.cash == D(700)


def test_no_more_is_sold_than_is_held() -> None:
    desk = broker(cash="0", held="5")
    desk.submit(sell("8", name="first"))
    desk.submit(sell("8", name="second"))

    updates = desk.open_session(TUE).updates

    assert [(u.order_id, u.state) for u in updates] == [
        ("first", OrderState.PARTIALLY_FILLED),
        ("first", OrderState.EXPIRED),
        ("second", OrderState.REJECTED),
    ]
    assert updates[0].detail == "only 5 held"
    assert desk.portfolio == Portfolio(D("50.00"))


def test_where_shorting_is_allowed_a_sell_goes_below_zero() -> None:
    desk = broker(ExecutionRules(slippage_bp=D(0), allow_short=True), "0", "5")
    desk.submit(sell("8"))

    desk.open_session(TUE)

    assert desk.portfolio.positions["AAA"] == Position(D(-3), D(10))
    assert desk.portfolio.cash == D(80)


def test_a_buy_without_the_cash_is_rejected_with_the_reason() -> None:
    desk = broker(cash="100")
    desk.submit(buy("80", name="first"))
    desk.submit(buy("80", name="second"))

    updates = desk.open_session(TUE).updates

    assert updates[1] == OrderUpdate("second", OrderState.REJECTED, D(0), "it needs 80.00 at 10 and cash is 20.00")
    assert desk.portfolio.cash == D(20)


def test_covering_a_short_may_take_cash_below_zero() -> None:
    desk = broker(ExecutionRules(slippage_bp=D(0), allow_short=True), "0", "-5")
    desk.submit(Order(id="c", symbol="AAA", side=Side.BUY, session=MON, quantity=D(5)))

    desk.open_session(TUE)

    assert desk.portfolio == Portfolio(D("-50.00"))


@pytest.mark.parametrize(
    ("order", "detail"),
    [
        (Order(id="x", symbol="ZZZ", side=Side.BUY, session=MON, notional=D(5)), "ZZZ is not traded here"),
        (
            Order(id="x", symbol="AAA", side=Side.BUY, session=MON, notional=D(0)),
            "an order needs a quantity or notional above zero",
        ),
        (
            Order(id="x", symbol="AAA", side=Side.SELL, session=MON, quantity=D(-1)),
            "an order needs a quantity or notional above zero",
        ),
    ],
)
def test_an_impossible_order_is_rejected_at_once(order: Order, detail: str) -> None:
    assert broker().submit(order) == OrderUpdate("x", OrderState.REJECTED, D(0), detail)


def test_too_little_money_for_a_share_is_rejected() -> None:
    desk = broker(ExecutionRules(slippage_bp=D(0), fractional=False))
    desk.submit(buy("9.99"))

    (update,) = desk.open_session(TUE).updates

    assert (update.state, update.filled_quantity) == (OrderState.REJECTED, D(0))


def test_a_canceled_order_does_not_fill() -> None:
    desk = broker()
    desk.submit(buy("100"))

    canceled = desk.cancel("b")

    assert canceled is not None and canceled.state is OrderState.CANCELED
    assert desk.open_session(TUE).fills == ()
    assert desk.cancel("b") == canceled
    assert desk.cancel("never seen") is None


def test_sessions_open_and_close_in_order() -> None:
    desk = broker()
    with pytest.raises(InvariantBroken):
        desk.close_session(TUE)
    desk.open_session(TUE)
    with pytest.raises(InvariantBroken):
        desk.open_session(WED)
    desk.close_session(TUE)
    with pytest.raises(InvariantBroken):
        desk.open_session(TUE)


def test_a_position_without_prices_is_said_at_once() -> None:
    with pytest.raises(MissingData, match="BBB"):
        SimulatedBroker(FREE, Portfolio(D(1), {"BBB": Position(D(1), D(1))}), {"AAA": AAA})


def test_two_splits_on_one_day_leave_nothing_of_a_whole_sale() -> None:
    splits = [CorporateAction("AAA", TUE, ActionKind.SPLIT, D(ratio)) for ratio in ("0.142857", "0.7")]
    desk = broker(ExecutionRules(slippage_bp=D(0), allow_short=True), "0", "3.000000011", splits)
    desk.submit(sell("3.000000011"))

    desk.open_session(TUE)

    assert not desk.portfolio.positions
