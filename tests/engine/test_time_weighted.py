"""Money that comes and goes is no profit: changes, falls and metrics of a desk are those of what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.account.time_weighted import measured, net_deposits
from engine.conventions.catalog import CONVENTIONS, convention
from engine.domain.market import Exchanges
from engine.domain.order import Fill, Portfolio, Position, Side
from engine.domain.run import Adoption, CashFlow, EquityPoint, RunPart, carried_forward
from engine.reports.performance import Measure, profit

NEW_YORK = Exchanges().of("AAA")
FIRST = date(2024, 2, 5)
DAYS = [FIRST + timedelta(days=n) for n in range(12)]
MONEY = st.integers(-90_000_00, 900_000_00).map(lambda cents: Decimal(cents) / 100)
MOVES = st.lists(st.integers(-40, 60), min_size=3, max_size=len(DAYS))


def transfer(day: date, amount: Decimal) -> CashFlow:
    return CashFlow(session=day, symbol="", kind="transfer", amount=amount)


def lived(
    prices: Sequence[Decimal], shares: Decimal, flows: Sequence[CashFlow] = (), adoptions: Sequence[Adoption] = ()
) -> tuple[EquityPoint, ...]:
    """A desk that holds shares from its first close on, with cash beside them."""
    books, points = Portfolio(Decimal(100_000), {"AAA": Position(shares, prices[0])} if shares else {}), []
    for day, price in zip(DAYS, prices, strict=False):
        happened = [flow for flow in flows if flow.session == day], [one for one in adoptions if one.session == day]
        books = carried_forward(books, (), *happened)
        told = {"AAA": price} if books.positions else {}
        points.append(EquityPoint(day, books.value(told), books, told))
    return tuple(points)


def walk(moves: Sequence[int]) -> list[Decimal]:
    prices = [Decimal(100)]
    for move in moves[1:]:
        prices.append(round(prices[-1] * (1 + Decimal(move) / 100), 4))
    return prices


@given(st.dictionaries(st.sampled_from(DAYS), MONEY, max_size=6), st.sampled_from(("transfer", "adoption")))
def test_a_desk_that_holds_nothing_earns_nothing_whatever_comes_or_goes(come: dict[date, Decimal], how: str) -> None:
    flows = [transfer(day, amount) for day, amount in come.items()] if how == "transfer" else []
    adoptions = [
        Adoption(session=d, symbol="", before=Decimal(5), after=5 + amount, price=Decimal(0), reason="a wire")
        for d, amount in come.items()
    ]
    adoptions = adoptions if how == "adoption" else []
    points = lived([Decimal(1)] * len(DAYS), Decimal(0), flows, adoptions)
    for row in measured(points, net_deposits(points, flows, adoptions)):
        assert row.change in (None, 0) and row.growth == 1 and row.fall == 0
    if all(point.value > 0 for point in points):
        run_part = RunPart(
            initial_value=Decimal(100_000),
            equity=points,
            fills=(),
            cash_flows=tuple(flows),
            decisions=(),
            adoptions=tuple(adoptions),
        )
        metrics = Measure(convention("desk"), ["AAA"], NEW_YORK).of_run(run_part)
        assert (metrics["total_return"], metrics["max_drawdown"], metrics["win_rate"]) == (0, 0, 0)


@given(MOVES, st.integers(1, 500).map(Decimal), st.data())
def test_a_deposit_changes_no_return_of_a_desk_that_invests_it_as_the_rest(
    moves: list[int], shares: Decimal, data: st.DataObject
) -> None:
    """All of the money is in shares; what comes at a close is, too, from that close on."""
    prices = walk(moves)
    day = data.draw(st.integers(1, len(prices) - 1))
    bought = data.draw(st.integers(1, 1000).map(Decimal))
    books = [
        Portfolio(Decimal(0), {"AAA": Position(shares + (bought if n >= day else 0), price)})
        for n, price in enumerate(prices)
    ]
    with_it = tuple(
        EquityPoint(DAYS[n], b.value({"AAA": p}), b, {"AAA": p})
        for n, (b, p) in enumerate(zip(books, prices, strict=True))
    )
    without = lived(prices, shares)
    without = tuple(
        replace(p, portfolio=replace(p.portfolio, cash=Decimal(0)), value=p.value - 100_000) for p in without
    )
    flows = [transfer(DAYS[day], with_it[day].value - without[day].value)]
    ours, theirs = measured(with_it, net_deposits(with_it, flows)), measured(without)
    # Values are rounded to cents, which is much of the value of one cheap share.
    cent = 0.01 / float(min(point.value for point in without))
    for mine, plain in zip(ours[1:], theirs[1:], strict=True):
        assert mine.change is not None and plain.change is not None
        assert float(mine.change) == pytest.approx(float(plain.change), abs=2 * cent)
        assert float(mine.fall) == pytest.approx(float(plain.fall), abs=2 * cent * len(prices))
    assert float(ours[day].change or 0) == pytest.approx(float(theirs[day].change or 0), abs=1e-12)


@given(MOVES, st.integers(1, 900).map(Decimal), MONEY, st.data())
def test_what_comes_leaves_every_return_up_to_its_day_as_it_was(
    moves: list[int], shares: Decimal, amount: Decimal, data: st.DataObject
) -> None:
    prices = walk(moves)
    day = data.draw(st.integers(1, len(prices) - 1))
    flows = [transfer(DAYS[day], amount)]
    points, plain = lived(prices, shares, flows), lived(prices, shares)
    ours, theirs = measured(points, net_deposits(points, flows)), measured(plain)
    assert [row.change for row in ours[: day + 1]] == [row.change for row in theirs[: day + 1]]
    # Later the money that came stands by and earns nothing: the shares earn what they did, on more.
    for number in range(day + 1, len(points)):
        earned = points[number].value - points[number - 1].value
        assert earned == plain[number].value - plain[number - 1].value
        if points[number - 1].value > 0:
            assert ours[number].change == points[number].value / points[number - 1].value - 1


@given(MOVES, st.integers(1, 900).map(Decimal))
def test_without_money_that_moves_everything_is_plain(moves: list[int], shares: Decimal) -> None:
    points = lived(walk(moves), shares)
    highest = Decimal(0)
    for row in measured(points, (), Decimal(90_000)):
        highest = max(highest, row.point.value, Decimal(90_000))
        assert row.growth == row.point.value / 90_000
        assert float(row.fall) == float(row.point.value / highest - 1)


@pytest.mark.parametrize("name", sorted(CONVENTIONS))
def test_every_convention_measures_what_was_decided(name: str) -> None:
    """The same shares in an account from which half of the money went, and into which as much came."""
    prices = walk([0, 3, -2, 5, 1, -4, 2, 2, 0, -1, 3, 1])
    books = [
        Portfolio(Decimal(0), {"AAA": Position(Decimal(count), Decimal(100))})
        for count in (800, 800, 800, 400, 400, 400, 400, 900, 900, 900, 900, 900)
    ]
    points = tuple(
        EquityPoint(d, b.value({"AAA": p}), b, {"AAA": p}) for d, b, p in zip(DAYS, books, prices, strict=True)
    )
    flows = (transfer(DAYS[3], -400 * prices[3]), transfer(DAYS[7], 500 * prices[7]))
    plain = tuple(EquityPoint(d, 800 * p, replace(books[0]), {"AAA": p}) for d, p in zip(DAYS, prices, strict=True))
    measure = Measure(convention(name), ["AAA"], NEW_YORK)
    ours = measure.of_run(RunPart(initial_value=points[0].value, equity=points[1:], fills=(), cash_flows=flows))
    theirs = measure.of_run(RunPart(initial_value=plain[0].value, equity=plain[1:]))
    assert ours.keys() == theirs.keys()
    for metric, value in theirs.items():
        assert ours[metric] == (None if value is None else pytest.approx(value, abs=1e-9)), metric


def test_shares_that_were_brought_in_are_nobodys_profit() -> None:
    """Ten come at 100 and are worth 110 in the end; five are taken over by a person and gone again."""
    flows = (CashFlow(session=DAYS[1], symbol="AAA", kind="transfer", amount=Decimal(0), quantity=Decimal(10)),)
    adoptions = (
        Adoption(
            session=DAYS[1], symbol="BBB", before=Decimal(0), after=Decimal(5), price=Decimal(40), reason="by hand"
        ),
        Adoption(
            session=DAYS[2], symbol="BBB", before=Decimal(5), after=Decimal(0), price=Decimal(0), reason="by hand"
        ),
    )
    books = Portfolio(Decimal(1000))
    points = [EquityPoint(DAYS[0], books.value({}), books, {})]
    for day, prices in (
        (DAYS[1], {"AAA": Decimal(100), "BBB": Decimal(42)}),
        (DAYS[2], {"AAA": Decimal(105)}),
        (DAYS[3], {"AAA": Decimal(110)}),
    ):
        books = carried_forward(
            books, (), [f for f in flows if f.session == day], [a for a in adoptions if a.session == day]
        )
        points.append(EquityPoint(day, books.value(prices), books, prices))
    rows = measured(points, net_deposits(points, flows, adoptions))
    assert [row.deposits for row in rows] == [0, 1210, -210, 0]
    assert [float(row.change or 0) for row in rows] == pytest.approx([0, 0, 50 / 2210, 50 / 2050])
    run_part = RunPart(
        initial_value=Decimal(1000), equity=tuple(points), fills=(), cash_flows=flows, decisions=(), adoptions=adoptions
    )
    assert (profit(run_part, "AAA"), profit(run_part, "BBB")) == (100, 0)
    of_symbol = Measure(convention("desk"), ["AAA", "BBB"], NEW_YORK).of_symbol(run_part, "AAA")
    assert of_symbol["total_return"] == pytest.approx(0.1)


def test_an_account_that_was_empty_begins_with_what_comes() -> None:
    """Nothing, then a thousand, with which ten are bought that rise by a tenth; then all of it is taken out."""
    empty, filled = (
        Portfolio(Decimal(0)),
        Portfolio(Decimal(0)).filled(
            Fill(order_id="o", symbol="AAA", side=Side.BUY, session=DAYS[1], quantity=Decimal(10), price=Decimal(100))
        ),
    )
    held = replace(filled, cash=Decimal(0))
    points = [
        EquityPoint(DAYS[0], Decimal(0), empty, {}),
        EquityPoint(DAYS[1], Decimal(1000), held, {"AAA": Decimal(100)}),
        EquityPoint(DAYS[2], Decimal(1100), held, {"AAA": Decimal(110)}),
        EquityPoint(DAYS[3], Decimal(0), empty, {}),
        EquityPoint(DAYS[4], Decimal(0), empty, {}),
        EquityPoint(DAYS[5], Decimal(500), Portfolio(Decimal(500)), {}),
    ]
    flows = [transfer(DAYS[1], Decimal(1000)), transfer(DAYS[3], Decimal(-1100)), transfer(DAYS[5], Decimal(500))]
    rows = measured(points, net_deposits(points, flows))
    assert [row.change for row in rows] == [None, 0, Decimal("0.1"), 0, None, 0]
    assert rows[-1].growth == Decimal("1.1") and all(row.fall == 0 for row in rows)
