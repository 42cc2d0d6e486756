"""Strategies that answer target weights, are fitted and keep state, in markets small enough to do by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from engine.domain.market import Bar, PriceHistory, from_nano
from engine.domain.run import ExecutionRules, Result, RunSpec
from engine.errors import DataError, MissingData, UsageError
from engine.lab import rule_backtest
from engine.lab.audit import Certificate, RuleSubject, audit
from engine.lab.rule_backtest import run_strategy
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock
from engine.strategies.strategy import StrategyView, TrainingHistory

START = date(2024, 1, 1)
FREE = ExecutionRules(slippage_bp=Decimal(0))


def day(number: int) -> date:
    return START + timedelta(days=number)


def market(**opens: list[int]) -> Market:
    """A bar a day whose prices are all the same."""
    histories = {
        symbol: PriceHistory.of(
            symbol,
            [
                Bar(session=day(n), open=p, high=p, low=p, close=p, volume=Decimal(10**6))
                for n, p in enumerate(map(Decimal, prices))
            ],
        )
        for symbol, prices in opens.items()
    }
    clocks = dict.fromkeys(histories, AroundTheClock())
    actions = dict.fromkeys(histories, ())
    return Market(histories=histories, actions=actions, news={}, filings={}, calendars=clocks)


@dataclass
class Answers:
    """Answers what it is told to, by session, and keeps what it was shown."""

    name: ClassVar[str] = "answers"

    by_session: Mapping[int, Mapping[str, float]]
    views: list[StrategyView] = field(default_factory=list)

    def weights(self, view: StrategyView) -> Mapping[str, float] | None:
        self.views.append(view)
        return self.by_session.get((view.session - START).days)


@dataclass
class Learner(Answers):
    """Keeps what it was fitted on."""

    training: list[TrainingHistory] = field(default_factory=list)

    def fit(self, history: TrainingHistory) -> None:
        self.training.append(history)


def spec(where: Market, first: int, last: int, warm_up: int | None = None) -> RunSpec:
    return RunSpec(
        symbols=tuple(where.histories),
        first=day(first),
        last=day(last),
        warm_up_from=None if warm_up is None else day(warm_up),
        strategy="cash",
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a strategy that exists already, with 1,000 and without costs."""

    def runs(strategy: Any, where: Market, first: int, last: int, warm_up: int | None = None) -> Result:
        monkeypatch.setattr(rule_backtest, "make_strategy", lambda name, params: strategy)
        return run_strategy(spec(where, first, last, warm_up), where, FREE, Decimal(1000))

    return runs


def trades(result: Result) -> list[tuple[int, str, str, Decimal, str]]:
    return [
        ((f.session - START).days, f.symbol, f.side.value, f.quantity.normalize(), f.reason) for f in result.test.fills
    ]


def test_weights_are_reached_at_the_next_open_and_kept_until_others_come(run: Any) -> None:
    where = market(AAA=[10, 10, 20, 20, 20, 20], BBB=[5, 5, 5, 5, 5, 5])

    result = run(Answers({0: {"AAA": 0.5, "BBB": 0.25}, 2: {"AAA": 0.5}, 4: {"AAA": 0.0}}), where, 1, 5)

    # 500 and 250 of 1,000; after the doubling of AAA half of 1,500 is 750, which BBB is left out of.
    assert trades(result) == [
        (1, "AAA", "BUY", Decimal(50), "answers: rebalance"),
        (1, "BBB", "BUY", Decimal(50), "answers: rebalance"),
        (3, "AAA", "SELL", Decimal("12.5"), "answers: rebalance"),
        (5, "AAA", "SELL", Decimal("37.5"), "answers: sell"),
    ]


def test_what_sales_have_to_pay_for_is_bought_at_the_next_decision(run: Any) -> None:
    where = market(AAA=[10] * 5, BBB=[5] * 5)

    result = run(Answers({0: {"AAA": 1.0}, 1: {"AAA": 0.0, "BBB": 1.0}}), where, 1, 4)

    assert [trade[:4] for trade in trades(result)] == [
        (1, "AAA", "BUY", Decimal(100)),
        (2, "AAA", "SELL", Decimal(100)),
    ]


def test_the_view_shows_the_close_before_and_the_books(run: Any) -> None:
    where, asked = market(AAA=[10, 10, 20, 30], BBB=[5, 5, 5, 5]), Answers({0: {"AAA": 0.5}})

    run(asked, where, 1, 3)

    shown = [(v.session, v.value, dict(v.held), v.market.close("AAA")) for v in asked.views]
    assert shown == [
        (day(0), Decimal(1000), {}, Decimal(10)),
        (day(1), Decimal(1000), {"AAA": 0.5}, Decimal(10)),
        (day(2), Decimal(1500), {"AAA": pytest.approx(2 / 3)}, Decimal(20)),
    ]
    with pytest.raises(MissingData):
        asked.views[0].market.close("CCC")


def test_a_fit_sees_the_training_part_and_nothing_later(run: Any) -> None:
    where, learner = market(AAA=list(range(10, 22))), Learner({5: {"AAA": 1.0}})

    result = run(learner, where, 6, 10, warm_up=2)

    (history,) = learner.training
    assert (history.first, history.last, history.symbols) == (day(2), day(5), ("AAA",))
    bars = history.bars("AAA")
    assert (bars.session(0), bars.session(-1), len(bars)) == (day(2), day(5), 4)
    assert history.market.last_session("AAA") == day(5)
    assert [view.session for view in learner.views] == [day(n) for n in range(5, 10)]
    assert result.warm_up is None
    assert result.notes == ("fitted on 2024-01-03 to 2024-01-06, which it did not trade",)
    assert trades(result)[0][:2] == (6, "AAA")


def test_a_strategy_that_is_fitted_needs_a_training_part(run: Any) -> None:
    with pytest.raises(UsageError, match="--warm-up-from"):
        run(Learner({}), market(AAA=[10] * 5), 1, 4)


def test_state_is_kept_from_the_warm_up_and_the_books_are_not(run: Any) -> None:
    where, asked = market(AAA=[10] * 8), Answers({1: {"AAA": 1.0}})

    result = run(asked, where, 5, 7, warm_up=2)

    assert [view.session for view in asked.views] == [day(n) for n in (1, 2, 3, 4, 5, 6)]
    assert [dict(view.held) for view in asked.views[2:4]] == [{"AAA": 1.0}, {}]
    assert (len(result.warm_up.fills), trades(result)) == (1, [])


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ({"AAA": 0.7, "BBB": 0.4}, "they are more than 1 in sum (1.1)"),
        ({"AAA": -0.1}, "a weight is below 0 (-0.1)"),
        ({"CCC": 0.1}, "CCC is not among the symbols of the run"),
    ],
)
def test_weights_that_no_portfolio_can_have_are_refused(run: Any, weights: dict[str, float], complaint: str) -> None:
    with pytest.raises(DataError) as raised:
        run(Answers({2: weights}), market(AAA=[10] * 5, BBB=[10] * 5), 1, 4)

    assert str(raised.value) == f"strategy answers: its weights after 2024-01-03 are invalid: {complaint}"


def test_ten_weights_of_a_tenth_are_one_in_sum(run: Any) -> None:
    where = market(**{f"S{n}": [10] * 3 for n in range(10)})

    result = run(Answers({0: dict.fromkeys(where.histories, 0.1)}), where, 1, 2)

    assert {trade[3] for trade in trades(result)} == {Decimal(10)} and len(result.test.fills) == 10


class Sees:
    """Holds AAA while something that it looks up says that the next close is higher."""

    name = "sees"

    def weights(self, view: StrategyView) -> Mapping[str, float]:
        following = self.following(view)
        return {"AAA": float(following is not None and following > view.market.close("AAA"))}

    def following(self, view: StrategyView) -> Decimal | None:
        return from_nano(view.market.bars("AAA", 3).close[0])


class Peeks(Sees):
    def following(self, view: StrategyView) -> Decimal | None:
        return view.market.peek("AAA")


class FitsOnTheWhole(Sees):
    """Reaches behind its training history for the last close of all."""

    def fit(self, history: TrainingHistory) -> None:
        self.last = history.market._market.histories["AAA"].close[-1]

    def following(self, view: StrategyView) -> Decimal | None:
        return from_nano(self.last)


@pytest.mark.parametrize(("strategy", "verdict"), [(Sees, "clean"), (Peeks, "leak"), (FitsOnTheWhole, "leak")])
async def test_the_audit_catches_a_strategy_that_sees_the_future(
    monkeypatch: pytest.MonkeyPatch, strategy: type[Sees], verdict: str
) -> None:
    monkeypatch.setattr(rule_backtest, "make_strategy", lambda name, params: strategy())
    prices = [10 + (n * n) % 7 for n in range(40)]
    where = market(AAA=prices, BBB=prices[::-1])

    certificate: Certificate = await audit(RuleSubject(spec(where, 20, 39, 5), where, FREE, Decimal(1000)), 6)

    assert certificate.outcome == verdict, certificate.findings
    assert certificate.compared > 6
    assert bool(certificate.inputs["bars"].items) == (strategy is not FitsOnTheWhole)
