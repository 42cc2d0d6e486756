"""The rules answer every agent through the same door as a model: always validly, always the same."""

from __future__ import annotations

import string
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from engine.agents.agent import Report
from engine.agents.chart import CHART, ChartReading, ChartView, Reading
from engine.agents.decision import DECISION, DecisionView
from engine.agents.figures import Facts, unresolved_figures
from engine.agents.news import NEWS, NewsDigest, NewsLine, NewsView
from engine.agents.reflections import (
    PERFORMANCE,
    SIGNALS,
    PerformanceReflection,
    PerformanceView,
    SignalReflection,
    SignalView,
)
from engine.domain.decision import Action, Outcome, SizingRule
from engine.domain.market import Bar, PriceHistory
from engine.domain.model_call import FailureKind, Message, ModelRequest
from engine.domain.order import PositionContext
from engine.market.chart_specs import indicator_table, kline_chart, signal_chart
from engine.offline.model import OfflineModel
from engine.preset import load_preset
from tests.engine.agents.samples import FIGURES, Desk, decision_view, holding, outcome

DAY = date(2023, 6, 1)
SIZING = load_preset("finvision").sizing
PRICES = st.lists(st.floats(0.01, 50_000).map(lambda x: round(x, 2)), min_size=1, max_size=90)
WORDS = st.text(string.ascii_letters + " .,-%0123456789<>&\n'", max_size=60)
ACTIONS = st.sampled_from(list(Action))


def history(closes: list[float]) -> PriceHistory:
    last = len(closes) - 1
    prices = [Decimal(str(close)) for close in closes]
    return PriceHistory.of(
        "MSFT",
        [
            Bar(
                session=DAY - timedelta(days=last - n),
                open=p,
                high=p * 2,
                low=p / 2,
                close=p,
                adj_close=None,
                volume=None,
            )
            for n, p in enumerate(prices)
        ],
    )


async def answer_twice(agent: Any, view: Any) -> Any:
    """The answer of the rules, which has to come at the first attempt and be the same the second time."""
    desk = Desk(OfflineModel())
    first, second = await desk.asker.ask(agent, view), await desk.asker.ask(agent, view)
    assert first.answer is not None, first.abstained_because
    assert first.attempts == 1
    assert first == second
    assert [r.outcome for r in desk.records] == ["answered"] * 2
    return first


@given(st.lists(st.tuples(WORDS, WORDS), max_size=6))
async def test_any_news_gets_a_valid_digest(texts: list[tuple[str, str]]) -> None:
    items = tuple(NewsLine(DAY, headline, summary) for headline, summary in texts)
    await answer_twice(NEWS, NewsView("MSFT", DAY, "desk", items))


@given(PRICES)
async def test_any_prices_get_a_valid_reading(closes: list[float]) -> None:
    bars = history(closes)
    view = ChartView("MSFT", DAY, "desk", kline_chart("MSFT", bars, 60), indicator_table(bars))
    await answer_twice(CHART, view)


OUTCOMES = st.lists(
    st.builds(
        Outcome,
        decision_session=st.just(DAY),
        session=st.just(DAY),
        symbol=st.just("MSFT"),
        owner=st.just("desk"),
        action=ACTIONS,
        size=st.decimals(0, 10, places=1),
        close=st.decimals("0.01", 9999, places=2),
        reward=st.decimals("-0.2", "0.2", places=6),
        cumulative=st.decimals("-0.9", "3", places=6),
        key_factors=WORDS,
    ),
    max_size=12,
).map(tuple)


@given(OUTCOMES, st.sampled_from(["short", "medium"]))
async def test_any_past_gets_a_valid_reflection(
    outcomes: tuple[Outcome, ...], term: Literal["short", "medium"]
) -> None:
    await answer_twice(PERFORMANCE, PerformanceView("MSFT", DAY, "desk", term, outcomes))


@given(PRICES, st.lists(st.tuples(st.integers(0, 40), ACTIONS), max_size=12))
async def test_any_signals_get_a_valid_reflection(closes: list[float], signals: list[tuple[int, Action]]) -> None:
    dated = [(DAY - timedelta(days=ago), action) for ago, action in signals]
    view = SignalView("MSFT", DAY, "desk", signal_chart("MSFT", history(closes), 30, dated))
    await answer_twice(SIGNALS, view)


CHART_WORDS = st.sampled_from(
    [
        "Strong uptrend",
        "Uptrend: rising",
        "Downtrend",
        "Strong downtrend",
        "Buy: bullish crossover",
        "Sell now",
        "Oversold dip",
        "Overbought at upper band",
        "No buy yet",
        "None",
        "bearish RSI 28.4",
    ]
)
READING = st.builds(Reading, trend=CHART_WORDS, signal=CHART_WORDS)
DIGESTS = st.builds(
    NewsDigest,
    summary=st.just(["Sales grew 12.5% in the cloud."]),
    positive=st.lists(st.just("Sales grew 12.5%"), max_size=1),
    negative=st.lists(st.just("Costs rose 3.75%"), max_size=1),
    sentiment=st.sampled_from(["bullish", "bearish", "neutral"]),
    reason=st.just("Of 3 items 2 speak for it."),
    unrelated=st.integers(0, 3),
)
PERFORMANCES = st.builds(
    PerformanceReflection,
    effectiveness=st.sampled_from(["Effective: 3 of 4 right", "Ineffective: 0 of 3 right", "Mixed"]),
    key_factors=st.just("dip"),
    return_trend=st.sampled_from(["Falling: cumulative -2.13%", "Rising: cumulative +3.75%"]),
)
SIGNAL_REVIEWS = st.builds(
    SignalReflection,
    trend_against_signals=st.just("The price rose 4.25%."),
    effectiveness=st.sampled_from(["Ineffective: 0 of 2 buys right.", "Effective: 2 of 2 buys right."]),
    missed=st.lists(
        st.sampled_from(["Missed a rise of 5.5% from May on.", "Sold too early on 2023-05-02.", "Bought too early."]),
        max_size=3,
    ),
)
HOLDINGS = st.builds(
    lambda shares, cash, gain, streak: PositionContext(
        shares=shares,
        price=Decimal("180.25"),
        average_cost=Decimal("180.25") / (1 + gain) if shares else Decimal(0),
        value=shares * Decimal("180.25") + cash,
        cash=cash,
        gains_in_a_row=streak,
    ),
    st.sampled_from([Decimal(0), Decimal("0.5"), Decimal(300)]),
    st.sampled_from([Decimal(1), Decimal(2500), Decimal(90000)]),
    st.sampled_from([Decimal("-0.21"), Decimal(0), Decimal("0.0512"), Decimal("0.4")]),
    st.integers(0, 9),
)
VIEWS = st.builds(
    DecisionView,
    symbol=st.just("MSFT"),
    session=st.just(DAY),
    owner=st.just("desk"),
    holding=HOLDINGS,
    figures=st.just(FIGURES),
    news=st.none() | DIGESTS,
    chart=st.none() | st.builds(ChartReading, macd=READING, kdj_rsi=READING, bollinger=st.none() | READING),
    short_term=st.none() | PERFORMANCES,
    medium_term=st.none() | PERFORMANCES,
    signals=st.none() | SIGNAL_REVIEWS,
    outcomes=OUTCOMES,
    sizing=st.just(SIZING),
    absent=st.lists(st.sampled_from(["news: there was none", "chart: abstained"]), max_size=2).map(tuple),
    reports=st.lists(
        st.builds(Report, st.just("volume"), st.just(("Pressure: buying.", "Reason: 1.25 times.")), st.integers(-1, 1)),
        max_size=3,
    ).map(tuple),
)


@given(VIEWS)
async def test_any_view_gets_a_decision_inside_the_rules(view: DecisionView) -> None:
    reply = await answer_twice(DECISION, view)
    answer, cash = reply.answer, view.holding.cash_fraction
    if answer.recommendation == "BUY":
        band = SIZING.buy[answer.rule]
        assert band.cash_above is not None and cash > band.cash_above
        assert answer.position_size <= band.largest
        assert cash - Decimal(answer.position_size) / 100 >= SIZING.cash_floor
    if answer.recommendation == "SELL":
        band = SIZING.sell[answer.rule]
        assert view.holding.shares > 0
        assert band.smallest <= answer.position_size <= band.largest
        if answer.rule is SizingRule.GAIN_OVER_COST:
            assert view.holding.unrealized_fraction > SIZING.gain_over_cost
        if answer.rule is SizingRule.GAINS_IN_A_ROW:
            assert view.holding.gains_in_a_row >= SIZING.gains_in_a_row
    assert unresolved_figures(answer.explanation, [Facts(reply.inputs)]) == ()


def reading(trend: str, signal: str = "None", extra: str = "None") -> ChartReading:
    plain = Reading(trend=trend, signal=extra)
    return ChartReading(macd=Reading(trend=trend, signal=signal), kdj_rsi=plain, bollinger=plain)


UP, DOWN = reading("Strong uptrend", "Buy"), reading("Strong downtrend", "Sell")
GOOD_NEWS = NewsDigest(
    summary=["Cloud sales grew."],
    positive=["Cloud sales grew 27%"],
    negative=[],
    sentiment="bullish",
    reason="Sales.",
    unrelated=0,
)


async def decided(**view: Any) -> Any:
    return (await answer_twice(DECISION, decision_view(**view))).answer


async def test_it_buys_strength_sells_a_turn_and_otherwise_holds() -> None:
    up, down, nothing = await decided(chart=UP), await decided(chart=DOWN), await decided()
    assert (up.recommendation, up.rule) == ("BUY", SizingRule.STRONG_UPTREND)
    assert (down.recommendation, down.rule) == ("SELL", SizingRule.REVERSAL)
    assert (nothing.recommendation, nothing.rule) == ("HOLD", SizingRule.UNCERTAINTY)
    flat = await decided(chart=DOWN, holding=holding(shares="0"))
    assert flat.recommendation == "HOLD"


async def test_it_buys_a_dip_and_secures_a_stretched_gain() -> None:
    fallen_back = ChartReading(
        macd=Reading(trend="Pullback: MACD below its signal", signal="None"),
        kdj_rsi=Reading(trend="RSI bullish", signal="None"),
        bollinger=Reading(trend="Uptrend: close above SMA 50, below SMA 10", signal="Oversold dip near lower band"),
    )
    dip = await decided(chart=fallen_back)
    assert (dip.recommendation, dip.rule) == ("BUY", SizingRule.DIP_IN_UPTREND)
    stretched = reading("Uptrend, overbought")
    taken = await decided(chart=stretched)
    assert (taken.recommendation, taken.rule) == ("SELL", SizingRule.GAIN_OVER_COST)
    again = await decided(chart=stretched, outcomes=(outcome(1, Action.SELL),))
    assert again.recommendation == "HOLD"


async def test_news_enters_the_decision_and_is_quoted() -> None:
    half = reading("Uptrend")
    without, with_news = await decided(chart=half), await decided(chart=half, news=GOOD_NEWS)
    assert (without.recommendation, with_news.recommendation) == ("BUY", "BUY")
    assert with_news.position_size > without.position_size
    assert "Cloud sales grew 27%" in with_news.explanation


async def test_what_went_wrong_lately_makes_trades_smaller() -> None:
    poor = PerformanceReflection(effectiveness="Ineffective: 0 of 3", key_factors="dip", return_trend="Falling: -2%")
    before, after = await decided(chart=UP), await decided(chart=UP, short_term=poor)
    assert after.position_size < before.position_size


async def test_selling_too_early_before_teaches_patience() -> None:
    early = SignalReflection(
        trend_against_signals="Up.", effectiveness="Mixed.", missed=["Sold too early on 2023-05-02: it then rose 4%."]
    )
    stretched = ChartReading(
        macd=Reading(trend="Uptrend, overbought", signal="None"),
        kdj_rsi=Reading(trend="overbought", signal="None"),
        bollinger=None,
    )
    assert (await decided(chart=stretched)).recommendation == "SELL"
    assert (await decided(chart=stretched, signals=early)).recommendation == "HOLD"


async def test_reports_of_own_agents_move_the_decision_by_one_point_together() -> None:
    def told(side: int) -> Report:
        return Report("volume", ("Pressure: as it is.",), side)

    mild = reading("Uptrend", "Buy")
    sizes = [
        (await decided(chart=mild, reports=reports)).position_size
        for reports in ((told(-1),), (), (told(1),), (told(1),) * 3)
    ]
    assert sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert "Pressure" in (await decided(reports=(told(0),))).explanation


async def test_a_loss_is_called_one_and_a_right_sale_right() -> None:
    losing = tuple(outcome(n, Action.BUY, "-0.01") for n in (3, 2, 1))
    told = (await answer_twice(PERFORMANCE, PerformanceView("MSFT", DAY, "desk", "short", losing))).answer
    assert all(part in told.effectiveness for part in ("Ineffective", "0 of 3", "-1.000%"))
    assert "dip" in told.key_factors and "3.000%" in told.key_factors
    sold = (outcome(1, Action.SELL, "-0.01"),)
    told = (await answer_twice(PERFORMANCE, PerformanceView("MSFT", DAY, "desk", "short", sold))).answer
    assert told.effectiveness.startswith("Effective: 1 of 1")


async def test_missed_rises_and_early_trades_are_named_with_their_dates() -> None:
    closes = [100.0, 101, 102, 103, 104, 110, 111, 105, 104, 103, 100, 99]
    bars = history(closes)
    days = [bars.session(n) for n in range(len(closes))]
    chart = signal_chart("MSFT", bars, 30, [(days[1], Action.SELL), (days[6], Action.BUY)])
    told = (await answer_twice(SIGNALS, SignalView("MSFT", DAY, "desk", chart))).answer
    assert all(part in told.missed[0] for part in ("10.00%", str(days[0]), str(days[5])))
    for day, move in ((days[6], "10.81%"), (days[1], "9.90%")):
        assert any(str(day) in missed and move in missed for missed in told.missed)
    assert "0 of 1" in told.effectiveness


async def test_a_crossover_is_read_off_the_chart() -> None:
    falling_then_up = [200.0 - n for n in range(60)] + [141 + 4 * n for n in range(3)]
    bars = history(falling_then_up)
    view = ChartView("MSFT", DAY, "desk", kline_chart("MSFT", bars, 60), indicator_table(bars))
    told = (await answer_twice(CHART, view)).answer
    assert told.macd.signal.startswith("Buy: MACD crossed above")
    assert told.macd.trend.startswith("Recovery")


async def test_what_there_is_no_rule_for_is_a_failure_and_not_an_invention() -> None:
    request = ModelRequest(
        purpose="gossip",
        symbol="MSFT",
        session=DAY,
        owner="desk",
        system="",
        messages=(Message("user", "?"),),
        view=object(),
        schema_name="X",
        schema={},
    )
    result = await OfflineModel().answer(request)
    assert result.failure is not None and result.failure.kind is FailureKind.NOT_CONFIGURED


def test_it_says_that_it_is_no_language_model() -> None:
    assert OfflineModel.spec == "offline" and "not a language model" in OfflineModel.label
