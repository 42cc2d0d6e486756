"""Rule strategies over the simulated broker: small markets by hand, and the papers' markets on real prices."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.conventions.catalog import convention
from engine.domain.market import ActionKind, CorporateAction, PriceHistory
from engine.domain.order import Side
from engine.domain.run import ExecutionRules, Result, RunPart, RunSpec
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.rule_backtest import Prices, RuleRun, run_strategy
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, calendar_for
from engine.simulation.simulated_broker import STOPPED_TRADING
from engine.strategies.catalog import make_strategy, tuned_params
from engine.strategies.strategy import Signal, Signals, Strategy
from tests.engine.desks import bar
from tests.engine.paper_reference import load, replay

D = Decimal
START = date(2024, 1, 1)
FREE = D(0)


def day(n: int) -> date:
    return START + timedelta(days=n)


def history(symbol: str, closes: Sequence[str | int], missing: Sequence[int] = ()) -> PriceHistory:
    """A bar a day from day 0 on; it opens at the last close, a thousand shares change hands."""
    days = [n for n in range(len(closes)) if n not in missing]
    return PriceHistory.of(symbol, [bar(day(n), closes[max(n - 1, 0)], closes[n]) for n in days])


def market(*histories: PriceHistory, actions: Sequence[CorporateAction] = ()) -> Market:
    known = {h.symbol: [a for a in actions if a.symbol == h.symbol] for h in histories}
    clock = {h.symbol: AroundTheClock() for h in histories}
    return Market(histories={h.symbol: h for h in histories}, actions=known, news={}, filings={}, calendars=clock)


def run(strategy: str, where: Market, first: int, last: int, **options: object) -> Result:
    spec = RunSpec(
        symbols=tuple(where.histories),
        first=day(first),
        last=day(last),
        strategy=strategy,
        cash=D(1000),
        slippage_bp=FREE,
    )
    return run_strategy(replace(spec, **options), where)  # type: ignore[arg-type]


def trades(result: Result) -> list[tuple[int, str, str, Decimal, Decimal]]:
    return [
        ((f.session - START).days, f.symbol, f.side.value, f.quantity.normalize(), f.price) for f in result.test.fills
    ]


class Says:
    """A strategy that says what it is told to, by row."""

    name = "says"

    def __init__(self, *signals: Signal) -> None:
        self._signals = signals

    def signals(self, history: PriceHistory) -> Signals:
        return np.array(self._signals[: len(history)], np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        return ""


def books(
    strategy: Strategy, sessions: Sequence[date], where: Market, rules: ExecutionRules, **options: Any
) -> RunPart:
    """What a strategy trades with 1,000 in consecutive sessions of a market."""
    run = RuleRun(
        spec=RunSpec(symbols=tuple(where.histories), first=sessions[0], last=sessions[-1]),
        convention=replace(convention("desk"), **options),
        rules=rules,
        cash=D(1000),
        calendar=next(iter(where.calendars.values())),
        sessions=sessions,
    )
    return run.trade(strategy, sessions, where, Prices(histories=where.histories, actions=None)).test


def say(
    where: PriceHistory, signals: Sequence[Signal], first: int, last: int, **rules: object
) -> list[tuple[int, Side, Decimal]]:
    """The trades of a strategy that says this from day 0 on, over a window."""
    costs = ExecutionRules(slippage_bp=FREE, **rules)  # type: ignore[arg-type]
    run_part = books(Says(*signals), [day(n) for n in range(first, last + 1)], market(where), costs)
    return [((f.session - START).days, f.side, f.quantity.normalize()) for f in run_part.fills]


def test_buy_and_hold_reads_the_session_before_the_window_and_fills_at_its_first_open() -> None:
    result = run("buy-and-hold", market(history("AAA", [10, 20, 25, 30]), history("BBB", [5, 5, 4, 4])), 1, 3)

    # Each symbol has 500: 50 shares at 10 and 100 at 5.
    assert trades(result) == [(1, "AAA", "BUY", D(50), D(10)), (1, "BBB", "BUY", D(100), D(5))]
    assert [f.order_id for f in result.test.fills] == ["run-20240101-1-AAA-B-1", "run-20240101-1-BBB-B-1"]
    assert [(p.session, p.value) for p in result.test.equity] == [
        (day(1), D(1000) + 500),
        (day(2), D(1250) + 400),
        (day(3), D(1500) + 400),
    ]
    assert result.test.initial_value == D(1000)


def test_a_crossing_trades_at_the_next_open_and_puts_all_of_the_proceeds_back_in() -> None:
    closes = [12, 11, 10, 13, 13, 6, 6, 6, 12, 12]
    result = run("sma-cross", market(history("AAA", closes)), 1, 9, params=(("fast", "2"), ("slow", "3")))

    # Above after day 3, bought at day 4's open (13); below after day 5, sold at 6; above after day 8.
    assert trades(result) == [
        (4, "AAA", "BUY", D("76.923076923"), D(13)),
        (6, "AAA", "SELL", D("76.923076923"), D(6)),
        (9, "AAA", "BUY", D("38.461666666"), D(12)),
    ]


def test_cash_does_nothing() -> None:
    result = run("cash", market(history("AAA", [10, 20, 30])), 1, 2)

    assert (result.test.fills, result.test.equity[-1].value) == ((), D(1000))


def test_a_signal_before_the_decision_of_the_first_session_is_past() -> None:
    keep, buy, sell = Signal.KEEP, Signal.ENTER, Signal.OUT
    flat = history("AAA", [10] * 6)

    assert say(flat, [buy, keep, keep, keep, keep, keep], 2, 5) == []
    assert say(flat, [keep, buy, keep, sell, keep, keep], 2, 5) == [(2, Side.BUY, D(100)), (4, Side.SELL, D(100))]


def test_what_a_last_session_says_is_not_traded_any_more() -> None:
    assert say(history("AAA", [10] * 4), [Signal.KEEP, Signal.KEEP, Signal.KEEP, Signal.ENTER], 1, 3) == []


def test_a_halt_expires_the_order_and_the_wish_is_asked_again() -> None:
    halted = history("AAA", [10, 10, 10, 10, 10], missing=[2])
    enters = Says(Signal.KEEP, Signal.ENTER, Signal.KEEP, Signal.KEEP)
    run_part = books(enters, [day(n) for n in (1, 2, 3, 4)], market(halted), ExecutionRules(slippage_bp=FREE))

    assert [(f.session, f.quantity) for f in run_part.fills] == [(day(3), D(100))]


def test_what_the_volume_cap_left_is_bought_in_the_following_sessions() -> None:
    enter = [Signal.ENTER] * 6

    bought = say(history("AAA", [10] * 6), enter, 1, 5, volume_cap=D("0.045"))

    assert bought == [(1, Side.BUY, D(45)), (2, Side.BUY, D(45)), (3, Side.BUY, D(10))]


def test_a_repeated_long_buys_with_idle_cash_only_where_the_convention_adds() -> None:
    closes = history("AAA", [600, 600, 300, 300, 300])
    long = Says(*[Signal.LONG] * 5)
    bought = {}
    for adds in (False, True):
        rules = ExecutionRules(slippage_bp=FREE, fractional=False)
        run_part = books(long, [day(n) for n in (1, 2, 3, 4)], market(closes), rules, adds_to_positions=adds)
        bought[adds] = [(f.session, f.quantity) for f in run_part.fills]

    assert bought[False] == [(day(1), D(1))]
    assert bought[True] == [(day(1), D(1)), (day(3), D(1))]


def test_a_split_changes_shares_and_no_signal() -> None:
    split = CorporateAction("AAA", day(5), ActionKind.SPLIT, D(2))
    on_old_shares = [12, 12, 11, 10, 13, 13, 6, 6, 6, 12, 12]
    price = [D(p) / (2 if n >= 5 else 1) for n, p in enumerate(on_old_shares[1:])]
    opened = [D(p) / (2 if n >= 5 else 1) for n, p in enumerate(on_old_shares[:-1])]
    bars = [bar(day(n), o, c) for n, (o, c) in enumerate(zip(opened, price, strict=True))]
    where = market(PriceHistory.of("AAA", bars), actions=[split])

    result = run("sma-cross", where, 1, 9, params=(("fast", "2"), ("slow", "3")))

    # The crossings of the test above; 76.923076923 shares have become twice as many, at half the price.
    assert trades(result) == [
        (4, "AAA", "BUY", D("76.923076923"), D(13)),
        (6, "AAA", "SELL", D("153.846153846"), D(3)),
        (9, "AAA", "BUY", D("76.923333333"), D(6)),
    ]


def test_dividends_are_paid_and_stay_with_their_symbol() -> None:
    paid = CorporateAction("AAA", day(2), ActionKind.DIVIDEND, D("0.5"))
    where = market(history("AAA", [10] * 4), history("BBB", [10] * 4), actions=[paid])

    result = run("buy-and-hold", where, 1, 3)

    assert [(f.symbol, f.kind, f.amount) for f in result.test.cash_flows] == [("AAA", "dividend", D("25.00"))]
    assert result.test.equity[-1].value == D(1025)


def test_equal_weight_puts_the_shares_right_as_a_month_begins_out_of_its_sales() -> None:
    # BBB triples on 30 January; the decision of 1 February sells on the 2nd, and buys on the 3rd with the proceeds.
    flat, tripled = [10] * 36, [10] * 29 + [30] * 7
    result = run("equal-weight", market(history("AAA", flat), history("BBB", tripled)), 1, 35)

    assert trades(result) == [
        (1, "AAA", "BUY", D(50), D(10)),
        (1, "BBB", "BUY", D(50), D(10)),
        (32, "BBB", "SELL", D("16.666666666"), D(30)),
        (33, "AAA", "BUY", D(50), D(10)),
    ]
    last = result.test.equity[-1]
    values = [p.quantity * last.prices[s] for s, p in last.portfolio.positions.items()]
    assert max(values) - min(values) < D("0.02")


def test_the_random_trader_follows_the_runs_seed() -> None:
    where = market(history("AAA", [10 + n % 7 for n in range(120)]))

    first, again, other = (run("random", where, 1, 119, seed=seed, params=(("turnover", "60"),)) for seed in (1, 1, 2))

    assert first.test == again.test
    assert trades(first) != trades(other)
    assert len(first.test.fills) > 4


def test_a_symbol_that_stops_trading_is_sold_and_said() -> None:
    where = market(history("AAA", [10] * 6), history("GONE", [5, 5, 4]))

    result = run("buy-and-hold", where, 1, 5)

    assert [(f.session, f.symbol, f.price, f.reason) for f in result.test.fills][2:] == [
        (day(2), "GONE", D(4), STOPPED_TRADING)
    ]
    assert any("GONE" in note and "stop" in note for note in result.notes)
    assert result.test.equity[-1].value == D(500) + D(400)


def test_the_warm_up_has_books_of_its_own() -> None:
    result = run("buy-and-hold", market(history("AAA", [10, 10, 20, 20, 40])), 3, 4, warm_up_from=day(1))

    assert result.warm_up is not None
    assert [p.session for p in result.warm_up.equity] == [day(1), day(2)]
    assert result.warm_up.equity[-1].value == D(2000)
    assert [p.value for p in result.test.equity] == [D(1000), D(2000)]


def test_a_desk_of_shares_and_coins_reads_the_coins_last_completed_day() -> None:
    """The decision after Monday's close in New York sees the coin's Sunday and fills on Tuesday."""
    share = PriceHistory.of("AAA", [bar(d, 10, 10) for d in _weekdays(date(2024, 6, 3), 8)])
    coin_days = [date(2024, 6, 1) + timedelta(days=n) for n in range(12)]
    coin = PriceHistory.of("BTC-USD", [bar(d, 10, 10) for d in coin_days])
    calendars = {symbol: calendar_for(symbol) for symbol in ("AAA", "BTC-USD")}
    sunday = [Signal.ENTER if d == date(2024, 6, 9) else Signal.KEEP for d in coin_days]

    class SundaysCoin(Says):
        def signals(self, history: PriceHistory) -> Signals:
            return super().signals(history) if history.symbol == "BTC-USD" else np.zeros(len(history), np.int8)

    where = replace(market(share, coin), calendars=calendars)
    run_part = books(SundaysCoin(*sunday), _weekdays(date(2024, 6, 4), 7), where, ExecutionRules())

    assert [(f.symbol, f.session) for f in run_part.fills] == [("BTC-USD", date(2024, 6, 11))]


def test_closed_sessions_are_derived_once_per_calendar() -> None:
    """Two crypto pairs beside a share: one derivation for each decision, not one for each pair."""
    moments: list[datetime] = []

    class Counting(AroundTheClock):
        def last_closed(self, now: datetime) -> date:
            moments.append(now)
            return super().last_closed(now)

    days = [date(2024, 6, 1) + timedelta(days=n) for n in range(14)]
    bars = [bar(d, 10, 10) for d in days]
    shares = [one for one in bars if one.session in _weekdays(days[0], 10)]
    pairs = ("BTC-USD", "ETH-USD")
    where = market(PriceHistory.of("AAA", shares), *(PriceHistory.of(pair, bars) for pair in pairs))
    around = Counting()
    where = replace(where, calendars={"AAA": calendar_for("AAA"), **dict.fromkeys(pairs, around)})
    sessions = _weekdays(date(2024, 6, 4), 7)
    books(Says(*[Signal.ENTER] * len(days)), sessions, where, ExecutionRules())

    assert len(moments) == len(set(moments)) == len(sessions)


def _weekdays(first: date, count: int) -> list[date]:
    days = (first + timedelta(days=n) for n in range(3 * count))
    return [d for d in days if d.weekday() < 5][:count]


@given(
    st.lists(st.integers(50, 200), min_size=25, max_size=40),
    st.integers(15, 24),
    st.sampled_from(["sma-cross", "macd", "kdj-rsi", "z-score", "random", "equal-weight", "buy-and-hold"]),
)
def test_what_is_traded_by_a_session_does_not_depend_on_later_bars(closes: list[int], cut: int, name: str) -> None:
    params = {"sma-cross": (("fast", "2"), ("slow", "4")), "z-score": (("window", "5"),)}.get(name, ())
    whole = history("AAA", closes)

    result = run(name, market(whole), 1, len(closes) - 1, params=params)
    early = run(name, market(whole.slice(0, cut)), 1, cut - 1, params=params)

    count = len(early.test.equity)
    assert result.test.equity[:count] == early.test.equity
    assert [f for f in result.test.fills if f.session <= early.test.equity[-1].session] == list(early.test.fills)


def test_a_result_travels_between_processes() -> None:
    result = run("buy-and-hold", market(history("AAA", [10, 20, 30])), 1, 2)

    assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"strategy": "sma-crss"}, UsageError, "sma-cross"),
        ({"params": (("fsat", "3"),)}, UsageError, "fast"),
        ({"convention": "finagnt"}, UsageError, "finagent"),
        ({"cash": D(0)}, UsageError, "above zero"),
        ({"last": day(1), "convention": "finvision"}, UsageError, "has no session"),
        ({"convention": "finagent"}, MissingData, "AAA 2024-01-02: adj_close is unknown"),
        ({"first": day(60), "last": day(61)}, StaleData, "AAA: its bars end on 2024-02-09"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(options: dict[str, object], error: type[Exception], says: str) -> None:
    base = RunSpec(symbols=("AAA",), first=day(1), last=day(39), strategy="sma-cross")

    with pytest.raises(error) as raised:
        run_strategy(replace(base, **options), market(history("AAA", [10] * 40)))  # type: ignore[arg-type]

    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("symbol", ["AAPL", "AMZN", "GOOGL", "MSFT", "TSLA"])
@pytest.mark.parametrize("name", ["buy-and-hold", "macd", "kdj-rsi", "z-score"])
def test_the_broker_trades_finagents_market_as_the_reference_in_floats_does(
    real_data: Path, symbol: str, name: str
) -> None:
    """The reference reproduces the published rows (test_paper_rows); so do we, to a millionth of its equity."""
    first, last = date(2023, 6, 1), date(2023, 12, 29)
    bars, params = load(real_data, symbol), tuned_params(name, symbol)
    where = Market(
        histories={symbol: bars}, actions={symbol: None}, news={}, filings={}, calendars={symbol: calendar_for(symbol)}
    )
    spec = RunSpec(
        symbols=(symbol,), first=first, last=last, strategy=name, params=tuple(params.items()), convention="finagent"
    )

    result = run_strategy(spec, where)

    expected = replay(bars, make_strategy(name, params), convention("finagent"), first, last)
    ours = [float(result.test.initial_value), *(float(point.value) for point in result.test.equity)]
    np.testing.assert_allclose(ours, expected.track.equity, rtol=1e-6)
    assert len(result.test.fills) == len(expected.trades)
