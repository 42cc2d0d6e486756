"""Strategies: causal, quick, made from text with clear complaints, and able to say why."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import Bar, PriceHistory
from engine.errors import UsageError
from engine.strategies.benchmark import RandomTrader
from engine.strategies.catalog import make_strategy, strategy_class, strategy_names
from engine.strategies.strategy import Signal, crossings, parameters

FINAGENT_LIKE = [
    ("macd", {"fast": "6", "slow": "14", "rows": "15"}),
    ("kdj-rsi", {"lines": "mean", "rows": "15", "overbought": "55", "oversold": "45"}),
]
EVERY = [(name, {}) for name in strategy_names() if hasattr(strategy_class(name), "signals")] + FINAGENT_LIKE


def history(closes: list[float], symbol: str = "ACME", first: date = date(2020, 1, 2)) -> PriceHistory:
    """Bars with a range of two per cent around each close, one per day."""
    bars = []
    for day, close in enumerate(closes):
        price = Decimal(f"{close:.4f}")
        high, low = price * Decimal("1.01"), price * Decimal("0.99")
        bars.append(Bar(session=first + timedelta(days=day), open=price, high=high, low=low, close=price))
    return PriceHistory.of(symbol, bars)


def walk(rows: int, seed: int = 3) -> PriceHistory:
    random = np.random.default_rng(seed)
    return history([float(p) for p in 50 * np.exp(np.cumsum(random.normal(0, 0.02, rows)))])


@pytest.mark.parametrize(("name", "params"), EVERY)
@given(moves=st.lists(st.integers(-6, 6), max_size=70), data=st.data())
def test_a_signal_never_depends_on_later_rows(
    name: str, params: dict[str, str], moves: list[int], data: st.DataObject
) -> None:
    # Small whole moves, so that equal prices, touches and flat stretches come up often.
    bars = history([100.0 + float(total) for total in np.maximum(np.cumsum([0, *moves]), -99)])
    strategy = make_strategy(name, params)
    cut = data.draw(st.integers(0, len(bars)))
    whole = strategy.signals(bars)
    assert whole.shape == (len(bars),)
    np.testing.assert_array_equal(whole[:cut], strategy.signals(bars.slice(0, cut)))
    if cut:
        assert strategy.explain(bars, cut - 1) == strategy.explain(bars.slice(0, cut), -1)


@pytest.mark.parametrize(("name", "params"), EVERY)
def test_every_signal_is_explained_in_one_sentence(name: str, params: dict[str, str]) -> None:
    bars, strategy = walk(260), make_strategy(name, params)
    for row in (0, 40, 259):
        said = strategy.explain(bars, row)
        assert said.endswith(".") and "\n" not in said and "nan" not in said


def test_crossings_go_through_zero_but_not_back_from_it() -> None:
    first = np.array([np.nan, -1.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, -1.0, -1.0])
    assert crossings(first, np.zeros(10)).tolist() == [0, 0, 0, 1, 0, 0, 0, 0, -1, 0]


def test_sma_cross_trades_where_the_averages_cross() -> None:
    bars = history([10, 10, 10, 10, 13, 13, 13, 13, 7, 7])
    signals = make_strategy("sma-cross", {"fast": "2", "slow": "4"}).signals(bars)
    # Fast 2 / slow 4: equal until the jump at row 4 (11.5 against 10.75); after the fall 10 against 11.5.
    assert signals.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, Signal.OUT, 0]
    dipped = history([10, 10, 10, 9, 9, 13, 13])
    rising = make_strategy("sma-cross", {"fast": "2", "slow": "4"}).signals(dipped)
    assert rising.tolist() == [0, 0, 0, 0, 0, Signal.LONG, 0]


def test_z_score_buys_below_and_sells_above() -> None:
    signals = make_strategy("z-score", {"window": "3"}).signals(history([10, 10, 9, 10, 13, 13, 13]))
    # Three values of which one stands apart: the last is 1.15 deviations away.
    assert signals.tolist() == [0, 0, Signal.LONG, 0, Signal.OUT, 0, 0]


def test_macd_is_silent_until_its_averages_have_run_in() -> None:
    assert not make_strategy("macd").signals(walk(35)).any()
    assert make_strategy("macd").signals(walk(400)).any()


def test_a_windowed_rule_sees_only_its_last_rows() -> None:
    near, far = walk(60), history([*([1000.0] * 30), *[float(b.close) for b in walk(60)]])
    for name, params in FINAGENT_LIKE:
        strategy = make_strategy(name, params)
        np.testing.assert_array_equal(strategy.signals(far)[45:], strategy.signals(near)[15:])


def test_equal_weight_rebalances_as_months_begin() -> None:
    bars = history([10.0] * 100, first=date(2021, 1, 15))
    signals = make_strategy("equal-weight", {"months": "3"}).signals(bars)
    due = [bars.session(row) for row in np.flatnonzero(signals == Signal.REBALANCE)]
    assert due == [date(2021, 4, 1)]
    assert (signals[signals != Signal.REBALANCE] == Signal.ENTER).all()


def test_the_random_trader_turns_over_what_it_is_asked_to() -> None:
    bars = walk(2520 * 8)
    for wanted in (6.0, 24.0):
        signals = RandomTrader(turnover=wanted, seed=5).signals(bars)
        sides = signals[signals != Signal.KEEP]
        changes = int((sides[1:] != sides[:-1]).sum())
        assert changes / (len(bars) / 252) == pytest.approx(wanted, rel=0.1)
        assert 0.45 < (sides == Signal.OUT).mean() < 0.55
    assert not RandomTrader(turnover=0.0).signals(bars).any()


def test_random_traders_differ_by_seed_and_symbol_and_not_by_what_came_before() -> None:
    bars, other = walk(500), history([float(b.close) for b in walk(500)], symbol="OTHER")
    tossed = RandomTrader(turnover=60).signals(bars)
    assert (tossed != RandomTrader(turnover=60, seed=1).signals(bars)).mean() > 0.2
    assert (tossed != RandomTrader(turnover=60).signals(other)).mean() > 0.2
    np.testing.assert_array_equal(RandomTrader(turnover=60).signals(bars.slice(100, 500)), tossed[100:])


@pytest.mark.parametrize(
    ("name", "params", "complaint"),
    [
        ("sma-crss", {}, "did you mean sma-cross?"),
        ("macd", {"slw": "20"}, "no parameter slw (did you mean slow?); it takes fast, slow, signal, rows"),
        ("macd", {"fast": "ten"}, "fast must be a whole number, not 'ten'"),
        ("macd", {"fast": "6.5"}, "fast must be a whole number"),
        ("macd", {"fast": "1"}, "fast must lie between 2 and 50, not 1"),
        ("macd", {"fast": "30", "slow": "20"}, "fast (30) must be smaller than slow (20)"),
        ("z-score", {"threshold": "nan"}, "threshold must lie between 0.1 and 4"),
        ("z-score", {"threshold": "inf"}, "threshold must lie between"),
        ("kdj-rsi", {"lines": "median"}, "lines must be one of recursive, mean"),
        ("kdj-rsi", {"rows": "14"}, "rows must be 0 or more than 14"),
        ("buy-and-hold", {"fast": "3"}, "takes no parameters"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, params: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        make_strategy(name, params)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_parameters_say_what_they_are_and_hold_at_their_bounds() -> None:
    for name in strategy_names():
        for parameter in parameters(strategy_class(name)):
            assert parameter.doc
            if not parameter.choices:
                assert parameter.low is not None and parameter.high is not None
                assert parameter.low <= float(parameter.default) <= parameter.high
    assert make_strategy("kdj-rsi", {"overbought": "72"}) == make_strategy("kdj-rsi", {"overbought": "72.0"})
