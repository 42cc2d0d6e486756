"""The rule rows of the papers by the real engine: broker, fees, bases and metrics, not a replay beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.decision import Action, Decision, DecisionKey, Proposal
from engine.domain.market import UNKNOWN, ActionKind, Bar, CorporateAction, PriceHistory, from_nano
from engine.domain.order import Portfolio
from engine.domain.run import EquityPoint, Result, RunPart, RunSpec
from engine.lab.published_tables import agent_spec, measured, published, run_rule
from engine.market.as_of import Market
from engine.market.trading_hours import exchange_calendar
from engine.reports.comparison import compare
from engine.simulation.price_basis import adjusted_by_actions
from tests.engine.desks import bar
from tests.engine.paper_reference import SPY_DIVIDENDS

RULES = ("buy-and-hold", "macd", "kdj-rsi", "z-score")


def adjusted(history: PriceHistory) -> list[Decimal | None]:
    return [None if v == UNKNOWN else from_nano(v) for v in history.adj_close]


DAYS = [date(2024, 1, day) for day in (2, 3, 4, 5, 8)]


def test_unknown_adjusted_closes_are_made_from_dividends_and_splits() -> None:
    history = PriceHistory.of("X", [bar(d, c, c) for d, c in zip(DAYS, ("100", "100", "96", "48", "50"), strict=True)])
    actions = [
        CorporateAction("X", DAYS[2], ActionKind.DIVIDEND, Decimal(4)),
        CorporateAction("X", DAYS[3], ActionKind.SPLIT, Decimal(2)),
    ]
    made = adjusted_by_actions(history, actions, DAYS[-1])
    assert adjusted(made) == [Decimal(48), Decimal(48), Decimal(48), Decimal(48), Decimal(50)]


def test_known_adjusted_closes_stay_and_anchor_those_before() -> None:
    closes = [bar(d, c, c, a) for d, c, a in zip(DAYS, (100, 100, 96, 96), (None, None, 48, 48), strict=False)]
    actions = [CorporateAction("X", DAYS[2], ActionKind.DIVIDEND, Decimal(4))]
    made = adjusted_by_actions(PriceHistory.of("X", closes), actions, DAYS[-1])
    assert adjusted(made) == [Decimal(48)] * 4


def test_without_known_actions_nothing_is_made_up() -> None:
    history = PriceHistory.of("X", [bar(day, 100, 100) for day in DAYS])
    assert adjusted(adjusted_by_actions(history, None, DAYS[-1])) == [None] * 5
    assert adjusted(adjusted_by_actions(history, [], DAYS[3])) == [Decimal(100)] * 4


def test_the_etf_row_comes_out_with_dividends_reinvested(real_data: Path) -> None:
    from tests.engine.paper_reference import load

    history = load(real_data, "SPY")
    blank = PriceHistory.of(
        "SPY", [Bar(session=b.session, open=b.open, high=b.high, low=b.low, close=b.close) for b in history]
    )
    actions = [CorporateAction("SPY", day, ActionKind.DIVIDEND, value) for day, value in SPY_DIVIDENDS.items()]
    market = Market(
        histories={"SPY": blank}, actions={"SPY": actions}, news={}, filings={}, calendars={"SPY": exchange_calendar()}
    )
    table = published("investorbench")[2]
    ours = {("SPY", "buy-and-hold"): measured(run_rule(table, "SPY", "buy-and-hold", market), "SPY", table.convention)}
    cells = {cell.metric: cell for cell in compare(ours, table)}
    assert cells["CR"].as_printed and cells["MDD"].as_printed
    assert cells["AV"].ours == pytest.approx(46.20, abs=0.01)
    # Where the folder knows of no actions, the table's own dividends serve, and come to the same.
    unknown = Market(
        histories={"SPY": blank}, actions={"SPY": None}, news={}, filings={}, calendars={"SPY": exchange_calendar()}
    )
    again = run_rule(table, "SPY", "buy-and-hold", unknown)
    assert measured(again, "SPY", table.convention) == ours["SPY", "buy-and-hold"]


def test_by_decisions_a_buy_is_long_a_sale_short_a_hold_flat_and_an_abstention_as_before() -> None:
    actions = [Action.BUY, Action.HOLD, Action.SELL, Action.ABSTAIN, Action.BUY, Action.BUY]
    days = [date(2023, 4, 5) + timedelta(days=n) for n in range(len(actions))]
    # The price grows by a tenth a day, so that each day counts ln 1.1 times its side; the last decision earns nothing.
    prices = [Decimal(100) * Decimal("1.1") ** n for n in range(len(actions))]
    books = Portfolio(Decimal(1000))
    points = tuple(
        EquityPoint(d, Decimal(1000), books, {"BTC-USD": price}) for d, price in zip(days, prices, strict=True)
    )
    decisions = tuple(
        # The limits made a HOLD of it: what counts is what the agent asked for.
        Decision(
            key=DecisionKey("r", d, 1, "BTC-USD", "desk"),
            action=Action.HOLD,
            size=Decimal(0),
            proposal=Proposal(a, 0, None, ""),
        )
        for d, a in zip(days, actions, strict=True)
    )
    spec = RunSpec(symbols=("BTC-USD",), first=days[0], last=days[-1], preset="finmem", convention="investorbench")
    result = Result(spec=spec, test=RunPart(initial_value=Decimal(1000), equity=points, decisions=decisions))
    found = measured(result, "BTC-USD", "investorbench")
    assert found["CR"] == pytest.approx(100 * math.log(1.1) * (1 + 0 - 1 - 1 + 1))
    undecided = replace(result, test=replace(result.test, decisions=()))
    unpriced = replace(result, test=replace(result.test, equity=(replace(points[0], prices={}), *points[1:])))
    for lacking in (undecided, unpriced):  # the book stayed at its cash, which is another figure
        assert set(measured(lacking, "BTC-USD", "investorbench").values()) == {None}


def test_the_runs_of_agents_are_the_tables() -> None:
    stocks, crypto, etf = published("investorbench")
    spec = agent_spec(crypto, "BTC-USD", "finmem", seed=3, sample=2)
    assert (spec.warm_up_from, spec.first, spec.last) == (date(2023, 2, 11), date(2023, 4, 5), date(2023, 11, 5))
    assert (spec.preset, spec.convention, spec.symbols) == ("finmem", "investorbench", ("BTC-USD",))
    assert (spec.seed, spec.sample) == (3, 2)
    assert agent_spec(etf, "SPY", "finmem").warm_up_from == date(2019, 7, 29)
    assert agent_spec(stocks, "MSFT", "finmem").last == date(2021, 5, 6)
