"""A run's books as a track record."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from engine.account.track_record import symbol_track, track_of
from engine.conventions.catalog import convention
from engine.domain.order import Fill, Portfolio, Position, Side
from engine.domain.run import CashFlow, EquityPoint, RunPart

D = Decimal
DAYS = [date(2024, 1, day) for day in (2, 3, 4)]


def two_symbols() -> RunPart:
    """10 A bought at 50 on the first day, 2 of them sold at 60 on the last; 4 B held throughout from 25."""
    fills = (
        Fill(order_id="1", symbol="A", side=Side.BUY, session=DAYS[0], quantity=D(10), price=D(50), fee=D(1)),
        Fill(order_id="2", symbol="B", side=Side.BUY, session=DAYS[0], quantity=D(4), price=D(25)),
        Fill(order_id="3", symbol="A", side=Side.SELL, session=DAYS[2], quantity=D(2), price=D(60), fee=D(1)),
    )
    flows = (CashFlow(session=DAYS[1], symbol="B", kind="dividend", amount=D(3)),)
    books = [(D(399), 10, D(50), D(25)), (D(402), 10, D(55), D(20)), (D(521), 8, D(60), D(30))]
    points = []
    for day, (cash, shares, a, b) in zip(DAYS, books, strict=True):
        portfolio = Portfolio(cash, {"A": Position(D(shares), D(50)), "B": Position(D(4), D(25))})
        prices = {"A": a, "B": b}
        points.append(EquityPoint(day, portfolio.value(prices), portfolio, prices))
    return RunPart(initial_value=D(1000), equity=tuple(points), fills=fills, cash_flows=flows)


def test_the_track_of_a_run() -> None:
    track = track_of(two_symbols(), 252, model_cost=D(5))
    assert track.equity.tolist() == [1000, 999, 1032, 1121]
    assert track.invested is not None and track.invested.tolist() == [600, 630, 600]
    assert track.traded == 500 + 100 + 120
    assert track.prices is None and track.positions is None
    metrics = convention("desk").metrics(track)
    assert metrics["total_return"] == pytest.approx(0.121)
    assert metrics["net_of_model_cost"] == pytest.approx(0.116)


def test_the_parts_of_the_symbols_add_up_to_the_whole() -> None:
    run_part = two_symbols()
    a, b = (symbol_track(run_part, symbol, D(500), 252) for symbol in ("A", "B"))
    assert a.equity.tolist() == [500, 499, 549, 598]
    assert b.equity.tolist() == [500, 500, 483, 523]
    assert (a.equity + b.equity).tolist() == track_of(run_part, 252).equity.tolist()
    assert a.positions is None  # nothing says what was decided; what is held is another thing


def test_the_benchmark_is_compared() -> None:
    run_part = two_symbols()
    track = track_of(run_part, 252, benchmark=run_part)
    assert convention("desk").metrics(track)["excess_return"] == 0.0


def test_a_run_of_no_sessions_has_no_metrics() -> None:
    assert set(convention("desk").metrics(track_of(RunPart(initial_value=D(1000)), 252)).values()) == {None}
