"""A backtest of agents with a scripted model: whatever it answers, the books add up and the limits hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.decision import DecisionView
from engine.agents.reflections import PerformanceView
from engine.domain.decision import Action
from engine.domain.market import CorporateAction, NewsItem
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.domain.order import Side
from engine.domain.run import ExecutionRules, FillAt
from engine.errors import MissingData, UsageError
from engine.market.as_of import Market
from engine.messages.events import DecisionMade, SessionOpened, SessionSettled
from engine.preset import load_preset
from engine.reports.documents.backtest import fingerprint
from engine.simulation.simulated_broker import STOPPED_TRADING
from tests.engine.desks import (
    FREE,
    WEEKDAYS,
    Played,
    assert_books_add_up,
    bars,
    dividend,
    hold,
    market_of,
    play,
    split,
    trade,
)
from tests.examples import examples

FINVISION = load_preset("finvision")
FIRST = date(2024, 3, 4)
DAYS = WEEKDAYS.sessions(date(2024, 3, 1), date(2024, 4, 30))
"""A Friday, then the sessions that are traded."""
BUY, SELL, HOLD, ABSTAIN = Action.BUY, Action.SELL, Action.HOLD, Action.ABSTAIN


def flat(symbols: Sequence[str], count: int = 6, price: object = 100) -> Market:
    return market_of({s: bars(s, DAYS[:count], [price] * count) for s in symbols})


def always(action: str, size: int, rule: str) -> Callable[[ModelRequest], Any]:
    return lambda request: trade(request, action, size, rule)


def by_session(plan: Mapping[date, tuple[str, int, str]]) -> Callable[[ModelRequest], Any]:
    """Trades by decision session, holds on others."""

    def script(request: ModelRequest) -> Any:
        planned = plan.get(request.session)
        return hold(request) if planned is None else trade(request, *planned)

    return script


# Whatever the model says


@dataclass(frozen=True)
class World:
    """A market with what a model says in it, decision by decision."""

    market: Market
    last: date
    rules: ExecutionRules
    said: tuple[Any, ...]
    warm_up: bool


SAID = st.one_of(
    st.tuples(st.just("BUY"), st.integers(1, 10), st.sampled_from(["strong uptrend", "dip in an uptrend"])),
    st.tuples(
        st.just("SELL"),
        st.integers(1, 10),
        st.sampled_from(["reversal", "gain over 5 %", "gains three sessions running"]),
    ),
    st.just(("HOLD", 0, "uncertainty")),
    st.tuples(st.sampled_from(["BUY", "SELL"]), st.sampled_from([0, 11, 1000, -5]), st.just("reversal")),
    st.none(),
)
MOVE = st.sampled_from(["0.5", "0.9", "0.99", "1", "1.01", "1.07", "1.6"])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(3, 8))
    days, histories, actions = DAYS[: count + 1], {}, {}
    for symbol in ("AAA", "BBB", "CCC")[: draw(st.integers(1, 3))]:
        price = Decimal(draw(st.sampled_from(["0.37", "12.345", "100", "4321.99"])))
        ends = draw(st.sampled_from([count + 1] * 4 + [3]))
        begins = draw(st.sampled_from([0] * 4 + [2])) if symbol != "AAA" else 0
        rows, done = [], []
        for n, day in enumerate(days):
            if n and draw(st.integers(0, 7)) == 0:
                ratio = draw(st.sampled_from(["2", "1.5", "0.1", "7"]))
                price /= Decimal(ratio)
                done.append(split(symbol, day, ratio))
            if n and draw(st.integers(0, 7)) == 0:
                done.append(dividend(symbol, day, draw(st.sampled_from(["0.01", "0.333", "2"]))))
            opened = max(price * Decimal(draw(MOVE)), Decimal("0.01")).quantize(Decimal("0.0001"))
            price = max(opened * Decimal(draw(MOVE)), Decimal("0.01")).quantize(Decimal("0.0001"))
            rows.append((day, (opened, price)))
        rows = rows[begins:ends]
        histories[symbol] = bars(symbol, [day for day, _ in rows], [pair for _, pair in rows])
        actions[symbol] = [a for a in done if rows[0][0] < a.ex_date <= rows[-1][0]]
    rules = ExecutionRules(
        fill_at=draw(st.sampled_from(FillAt)),
        slippage_bp=draw(st.sampled_from([Decimal(0), Decimal(5), Decimal(250)])),
        commission_rate=draw(st.sampled_from([Decimal(0), Decimal("0.003")])),
        commission_per_order=draw(st.sampled_from([Decimal(0), Decimal("1.99")])),
        commission_per_share=draw(st.sampled_from([Decimal(0), Decimal("0.01")])),
        fractional=draw(st.booleans()),
    )
    said = tuple(draw(st.lists(SAID, min_size=5, max_size=20)))
    return World(market_of(histories, actions), days[-1], rules, said, draw(st.booleans()))


def run(world: World) -> Played:
    turns = iter(range(10**6))
    decided: dict[tuple[date, str], Any] = {}

    def script(request: ModelRequest) -> Any:
        key = (request.session, request.symbol)
        if key not in decided:
            decided[key] = world.said[next(turns) % len(world.said)]
        said = decided[key]
        return said and trade(request, *said)

    first = DAYS[2] if world.warm_up else FIRST
    warm_up_from = FIRST if world.warm_up else None
    return asyncio.run(play(world.market, first, world.last, script, rules=world.rules, warm_up_from=warm_up_from))


@examples(80)
@given(worlds())
def test_books_add_up_and_limits_hold_whatever_is_answered(world: World) -> None:
    played = run(world)
    initial_values = [s for s in (played.result.warm_up, played.result.test) if s is not None]

    for run_part in initial_values:
        assert_books_add_up(run_part, world.market, world.rules.fractional)
        assert len(run_part.decisions) == len(run_part.equity) * len(world.market.histories)
    verdicts = iter(played.kept.verdicts)
    same = world.rules.fill_at is FillAt.SAME_CLOSE
    for run_part in initial_values:
        cash, held = run_part.initial_value, {}
        for point in run_part.equity:
            verdict = next(verdicts)
            decided = verdict.decisions[0].key.session
            assert decided == point.session if same else decided < point.session
            flows = [f for f in run_part.cash_flows if f.session == point.session]
            fills = [f for f in run_part.fills if f.session == point.session]
            paid = sum((f.amount for f in flows), Decimal(0))
            if same:
                cash += paid
                held = _after_splits(world, held, point.session)
            _assert_limits(world, verdict, cash, held, decided)
            if not same:
                held = _after_splits(world, held, point.session)
            bought = Decimal(0)
            for fill in fills:
                sign = 1 if fill.side is Side.BUY else -1
                amount = (fill.quantity * fill.price).quantize(Decimal("0.01"))
                bought += amount + fill.fee if fill.side is Side.BUY else 0
                held[fill.symbol] = held.get(fill.symbol, Decimal(0)) + sign * fill.quantity
            reserved = sum((o.notional or Decimal(0) for o in verdict.orders), Decimal(0))
            assert bought <= reserved, "a purchase cost more than was reserved for it"
            cash, held = point.portfolio.cash, {s: p.quantity for s, p in point.portfolio.positions.items()}


def _after_splits(world: World, held: dict[str, Decimal], day: date) -> dict[str, Decimal]:
    after = dict(held)
    for symbol, known in world.market.actions.items():
        for action in known or ():
            if action.ex_date == day and action.kind == "split" and symbol in after:
                after[symbol] *= action.value
    return after


def _assert_limits(world: World, verdict: Any, cash: Decimal, held: Mapping[str, Decimal], decided: date) -> None:
    closes = {}
    for symbol, history in world.market.histories.items():
        rows = history.rows_through(decided)
        if rows:
            closes[symbol] = history.bar(rows - 1).close
    value = cash + sum((q * closes[s] for s, q in held.items()), Decimal(0))
    reserved = sum((o.notional or Decimal(0) for o in verdict.orders), Decimal(0))
    # The value is rounded to the cent in the books.
    assert not reserved or cash - reserved >= (value - Decimal("0.01")) * FINVISION.sizing.cash_floor
    orders = {o.symbol: o for o in verdict.orders}
    assert [d.key.symbol for d in verdict.decisions] == list(world.market.histories)
    for decision in verdict.decisions:
        symbol = decision.key.symbol
        assert (decision.action in (BUY, SELL)) == (symbol in orders)
        if decision.action is BUY:
            assert 1 <= decision.size <= 10
        elif decision.action is SELL:
            quantity = orders[symbol].quantity
            assert quantity is not None
            assert 0 < quantity <= held.get(symbol, 0)
            assert decision.size <= 10
            assert decision.size >= 1 or quantity >= held[symbol] - Decimal("0.000000001")
        else:
            assert decision.size == 0
        assert decision.abstained == (decision.proposal.action is ABSTAIN)


@examples(15)
@given(worlds())
def test_two_runs_are_the_same_run(world: World) -> None:
    one, two = run(world), run(world)

    assert fingerprint(one.result.test) == fingerprint(two.result.test)
    assert one.result == two.result
    assert one.kept.outcomes == two.kept.outcomes
    assert one.events == two.events


def raw(text: str) -> ModelResult:
    """What a connector makes of text that is no JSON object."""
    return ModelResult(model="scripted", failure=ModelFailure(FailureKind.MALFORMED, "it is no JSON object"), text=text)


BAD = {
    "prose": lambda request: raw("I would buy a lot of it, if I were you."),
    "half JSON": lambda request: raw('{"symbol": "AAA", "recommendation": "BU'),
    "nothing": lambda request: None,
    "an empty object": lambda request: {},
    "a size of 1000": lambda request: trade(request, "BUY", 1000, "strong uptrend"),
    "a size of -5": lambda request: trade(request, "SELL", -5, "reversal"),
    "a size in words": lambda request: trade(request, "BUY", 5, "strong uptrend", position_size="five"),
    "half a percent": lambda request: trade(request, "BUY", 5, "strong uptrend", position_size=4.5),
    "another ticker": lambda request: trade(request, "BUY", 5, "strong uptrend", symbol="ZZZ"),
    "an unknown action": lambda request: trade(request, "SHORT", 5, "reversal"),
    "an unknown rule": lambda request: trade(request, "BUY", 5, "a hunch"),
    "a rule of the other side": lambda request: trade(request, "BUY", 5, "reversal"),
    "no grounds": lambda request: trade(request, "BUY", 5, "strong uptrend", explanation="  \n "),
    "a hold with a size": lambda request: trade(request, "HOLD", 5, "uncertainty"),
    "one field too many": lambda request: trade(request, "BUY", 5, "strong uptrend", leverage=20),
    "a list": lambda request: ModelResult(model="scripted", answer=[1, 2], text="[1, 2]"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_a_bad_answer_is_an_abstention_and_the_run_goes_on(answer: Callable[[ModelRequest], Any]) -> None:
    bad = DAYS[1]
    good = by_session({DAYS[0]: ("BUY", 10, "strong uptrend"), DAYS[2]: ("SELL", 10, "reversal")})
    market = flat(["AAA", "BBB"])

    def script(request: ModelRequest) -> Any:
        return answer(request) if (request.session, request.symbol) == (bad, "AAA") else good(request)

    played = await play(market, FIRST, DAYS[5], script)

    decisions = played.result.test.decisions
    assert [(d.key.session, d.key.symbol) for d in decisions if d.abstained] == [(bad, "AAA")]
    (abstained,) = [d for d in decisions if d.abstained]
    assert (abstained.action, abstained.size, abstained.cuts) == (ABSTAIN, 0, ())
    assert abstained.reason == abstained.proposal.abstained_because != ""
    # The position stays, and the next decision is taken as if nothing had been.
    assert [d.action for d in decisions if d.key.symbol == "AAA"] == [BUY, ABSTAIN, SELL, HOLD, HOLD]
    assert played.result.test.equity[1].portfolio.quantity("AAA") == 100
    outcomes = [a.outcome for a in played.answers if a.key.session == bad and a.key.symbol == "AAA"]
    # What came is sent back once with the complaint; where nothing came there is nothing to repair.
    assert outcomes == (["abstained"] if answer is BAD["nothing"] else ["sent back", "abstained"])
    assert_books_add_up(played.result.test, market)


async def test_a_repaired_answer_counts() -> None:
    tries: list[date] = []

    def script(request: ModelRequest) -> Any:
        tries.append(request.session)
        good = trade(request, "BUY", 5, "strong uptrend")
        return {} if tries.count(request.session) == 1 and request.session == DAYS[0] else good

    played = await play(flat(["AAA"]), FIRST, FIRST, script)

    assert [d.action for d in played.result.test.decisions] == [BUY]
    assert [a.outcome for a in played.answers] == ["sent back", "answered"]


# Rewards, by hand


async def test_outcomes_reckoned_over_a_split_and_a_dividend() -> None:
    prices = [100, (100, 110), (55, 56), (55, "55.5"), (60, 58)]
    actions: dict[str, list[CorporateAction]] = {"AAA": [split("AAA", DAYS[2], "2"), dividend("AAA", DAYS[3], "1")]}
    market = market_of({"AAA": bars("AAA", DAYS[:5], prices)}, actions)
    script = by_session({DAYS[0]: ("BUY", 10, "strong uptrend"), DAYS[3]: ("SELL", 5, "reversal")})

    played = await play(market, FIRST, DAYS[4], script)

    # 10 % of 100,000 buy 100 shares at 100, worth 11,000 at the close: +1,000 on 100,000.
    # 200 shares at 56 after the split: +200 on 101,000.
    # 200 shares at 55.5 and a dividend of 200: +100 on 101,200.
    # 5 % of 101,300 at 55.5 are 91.261261261 shares, sold at 60 for 5,475.67566; the other 108.738738739 close at
    # 58: 6,306.846846862; together 682.522506862 above the 11,100 before.
    rows = played.kept.outcomes
    rewards = [Decimal("0.01"), Decimal("0.00198020"), Decimal("0.00098814"), Decimal("0.00673764")]
    assert [r.reward for r in rows] == rewards
    cumulative = [r.cumulative for r in rows]
    assert cumulative == [Decimal("0.01"), Decimal("0.012"), Decimal("0.013"), Decimal("0.01982523")]
    assert [r.action for r in rows] == [BUY, HOLD, HOLD, SELL]
    assert [r.close for r in rows] == [110, 56, Decimal("55.5"), 58]
    assert [(r.decision_session, r.session) for r in rows] == list(pairwise(DAYS[:5]))
    assert [p.value for p in played.result.test.equity] == [101_000, 101_200, 101_300, Decimal("101982.53")]
    assert_books_add_up(played.result.test, market)


async def test_what_a_decision_earned_is_read_by_the_next_one_and_by_none_before() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:5], [100, (100, 110), 110, 99, 99])})
    played = await play(market, FIRST, DAYS[4], by_session({DAYS[0]: ("BUY", 10, "strong uptrend")}))

    views = [r.view for r in played.model.requests if isinstance(r.view, DecisionView)]
    seen = {v.session: [(o.decision_session, o.session) for o in v.outcomes] for v in views}
    assert seen == {DAYS[n]: [(DAYS[k], DAYS[k + 1]) for k in range(n)] for n in range(4)}
    assert views[1].outcomes[0].reward == Decimal("0.01")
    assert (views[1].holding.shares, views[1].holding.average_cost) == (100, 100)
    assert (views[1].holding.unrealized, views[1].holding.unrealized_fraction) == (1000, Decimal("0.1"))


# Conventions


async def test_the_default_decides_after_the_close_and_fills_at_the_next_open() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:3], [100, (80, 90), (70, 60)])})

    played = await play(market, FIRST, DAYS[2], always("BUY", 5, "strong uptrend"))

    test = played.result.test
    assert [d.key.session for d in test.decisions] == [DAYS[0], DAYS[1]]
    assert [(f.session, f.price) for f in test.fills] == [(DAYS[1], 80), (DAYS[2], 70)]
    assert [p.session for p in test.equity] == [DAYS[1], DAYS[2]]


async def test_a_same_close_convention_decides_and_fills_inside_the_window() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:4], [100, (80, 90), (70, 99), (70, 110)])})
    rules = replace(FREE, fill_at=FillAt.SAME_CLOSE)

    played = await play(market, FIRST, DAYS[3], by_session({DAYS[1]: ("BUY", 10, "strong uptrend")}), rules=rules)

    test = played.result.test
    assert [d.key.session for d in test.decisions] == list(DAYS[1:4])
    assert [(f.session, f.price) for f in test.fills] == [(DAYS[1], 90)]
    assert [p.value for p in test.equity] == [100_000, 101_000, Decimal("102222.22")]
    # Bought at 90, the decision earned what came until the next close, 99; the last one's is not known yet.
    assert [(o.decision_session, o.session, o.reward) for o in played.kept.outcomes] == [
        (DAYS[1], DAYS[2], Decimal("0.01")),
        (DAYS[2], DAYS[3], Decimal("0.01210121")),
    ]
    assert_books_add_up(test, market)


async def test_the_test_starts_afresh_books_and_record() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:6], [100, 100, 110, 121, 121, 133])})
    script = always("BUY", 10, "strong uptrend")

    played = await play(market, DAYS[4], DAYS[5], script, warm_up_from=DAYS[1])

    warm_up, test = played.result.warm_up, played.result.test
    assert warm_up is not None
    assert played.kept.parts == ["warm-up", "test"]
    assert [p.session for p in warm_up.equity] == list(DAYS[1:4])
    assert [p.session for p in test.equity] == list(DAYS[4:6])
    assert warm_up.equity[-1].portfolio.quantity("AAA") > 0
    views = {r.session: r.view for r in played.model.requests}
    first = views[DAYS[3]]
    assert (first.holding.shares, first.holding.cash, first.holding.value) == (0, 100_000, 100_000)
    # What training earned stands in no record of the test, whose returns begin at zero.
    assert first.outcomes == ()
    (only,) = [o for o in played.kept.outcomes if o.decision_session == DAYS[3]]
    earned = [o for o in played.kept.outcomes if o.decision_session < DAYS[3]]
    assert only.cumulative == only.reward and earned[-1].cumulative > 0
    assert [o.decision_session for o in views[DAYS[2]].outcomes] == list(DAYS[0:2])
    assert test.initial_value == warm_up.initial_value == 100_000
    opened = [e for e in played.events if isinstance(e, SessionOpened)]
    assert [(e.part, e.index, e.total) for e in opened] == [
        ("warm-up", 1, 5),
        ("warm-up", 2, 5),
        ("warm-up", 3, 5),
        ("test", 4, 5),
        ("test", 5, 5),
    ]
    # The warm-up alone is what a run of its sessions would have been.
    alone = await play(market, DAYS[1], DAYS[3], script)
    assert fingerprint(alone.result.test) == fingerprint(warm_up)


async def test_the_reflections_read_short_and_medium_terms_of_the_past() -> None:
    reflecting = FINVISION.without(("news", "chart", "signal-reflection"))
    market = flat(["AAA"], 30)

    def script(request: ModelRequest) -> Any:
        return hold(request) if request.purpose == "decision" else None

    played = await play(market, FIRST, DAYS[29], script, preset=reflecting)

    views = [r.view for r in played.model.requests if isinstance(r.view, PerformanceView)]
    assert [v.term for v in views if v.session == DAYS[0]] == []
    assert {v.term: len(v.outcomes) for v in views if v.session == DAYS[28]} == {"short": 5, "medium": 20}
    assert {v.term: len(v.outcomes) for v in views if v.session == DAYS[3]} == {"short": 3, "medium": 3}
    last = next(r.view for r in played.model.requests if r.session == DAYS[28] and r.purpose == "decision")
    assert len(last.outcomes) == 10
    # An agent that gives no answer is absent from the decision's view, with its reason.
    assert any("cut off: nothing came" in part for part in last.absent)
    assert not [d for d in played.result.test.decisions if d.abstained]


async def test_an_ablation_asks_no_reflection() -> None:
    ablated = load_preset("finvision-no-reflection")

    played = await play(
        flat(["AAA"], 8), FIRST, DAYS[7], lambda r: hold(r) if r.purpose == "decision" else None, preset=ablated
    )

    assert {r.purpose for r in played.model.requests} == {"chart", "decision"}


# What a market does


async def test_a_symbol_that_stops_trading_is_sold_at_its_last_close_and_then_abstained_on() -> None:
    gone = bars("BBB", DAYS[:4], [100, 100, 100, (100, 80)])
    market = market_of({"AAA": bars("AAA", DAYS[:7], [100] * 7), "BBB": gone})

    played = await play(market, FIRST, DAYS[6], by_session({DAYS[0]: ("BUY", 10, "strong uptrend")}))

    test = played.result.test
    assert [(f.session, f.symbol, f.price) for f in test.fills if f.reason == STOPPED_TRADING] == [(DAYS[3], "BBB", 80)]
    assert [d.key.session for d in test.decisions if d.abstained] == list(DAYS[4:6])
    assert {"BBB", str(DAYS[5])} <= set(test.decisions[-1].reason.split())
    assert [n for n in played.result.notes if "BBB" in n]
    (loss,) = [o for o in played.kept.outcomes if o.symbol == "BBB" and o.session == DAYS[3]]
    assert loss.reward == Decimal("-0.02")
    assert_books_add_up(test, market)


async def test_a_symbol_that_begins_late_is_abstained_on_until_it_has_a_bar() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:5], [100] * 5), "BBB": bars("BBB", DAYS[2:5], [50] * 3)})

    played = await play(market, FIRST, DAYS[4], always("BUY", 5, "strong uptrend"))

    bought = [(f.session, f.symbol) for f in played.result.test.fills if f.symbol == "BBB"]
    assert bought == [(DAYS[3], "BBB"), (DAYS[4], "BBB")]
    assert [d.key.session for d in played.result.test.decisions if d.abstained] == [DAYS[0], DAYS[1]]


async def test_symbols_are_decided_and_paid_for_in_their_order_whoever_answers_first() -> None:
    symbols = ("CCC", "AAA", "BBB")
    market = flat(symbols, 12)

    class Slow:
        """Answers in another order than it was asked."""

        spec = label = "slow"
        sees = True

        def __init__(self) -> None:
            self.requests: list[ModelRequest] = []

        async def answer(self, request: ModelRequest, on_delta: object = None) -> ModelResult:
            self.requests.append(request)
            for _ in range({"CCC": 30, "AAA": 5, "BBB": 1}[request.symbol]):
                await asyncio.sleep(0)
            return ModelResult(model="slow", answer=trade(request, "BUY", 10, "strong uptrend"))

    script = always("BUY", 10, "strong uptrend")
    slow = await play(market, FIRST, DAYS[11], script, symbols=symbols, model=Slow())  # type: ignore[arg-type]
    quick = await play(market, FIRST, DAYS[11], script, symbols=symbols)

    assert [d.key.symbol for d in slow.result.test.decisions[:3]] == list(symbols)
    assert slow.result.test == quick.result.test
    # Nine purchases of 10 % leave the floor; the tenth, cut to nothing, is the last symbol's no sooner than the rest.
    assert [(f.session, f.symbol) for f in slow.result.test.fills][-1] == (DAYS[3], "BBB")
    made = [e.decision.key.symbol for e in slow.events if isinstance(e, DecisionMade)]
    assert made == list(symbols) * 11


async def test_a_stop_keeps_the_sessions_that_were_done() -> None:
    settled: list[int] = []
    market = flat(["AAA"], 10)
    whole = await play(market, FIRST, DAYS[9], always("BUY", 5, "strong uptrend"))

    def stop() -> bool:
        settled.append(1)
        return len(settled) > 3

    part = await play(market, FIRST, DAYS[9], always("BUY", 5, "strong uptrend"), stop=stop)

    assert part.result.interrupted
    assert not whole.result.interrupted
    assert part.result.test.equity == whole.result.test.equity[:3]
    assert part.result.test.fills == whole.result.test.fills[:3]


async def test_a_coin_beside_a_share_is_decided_on_sessions_and_reads_its_last_whole_day() -> None:
    every_day = [date(2024, 2, 26) + timedelta(n) for n in range(20)]
    coin = bars("WRNN-USD", every_day, [(100 + n, 100 + n + 0.5) for n in range(20)])
    market = market_of({"AAA": bars("AAA", DAYS[:6], [100] * 6), "WRNN-USD": coin})

    played = await play(market, FIRST, DAYS[5], by_session({DAYS[0]: ("BUY", 10, "strong uptrend")}))

    test = played.result.test
    assert not [d for d in test.decisions if d.abstained]
    views = {(r.symbol, r.session): r.view for r in played.model.requests}
    # Friday's close comes before the coin's Friday is over.
    assert views["WRNN-USD", DAYS[0]].holding.price == coin.bar(every_day.index(date(2024, 2, 29))).close
    assert views["WRNN-USD", DAYS[1]].holding.price == coin.bar(every_day.index(date(2024, 3, 3))).close
    (bought,) = [f for f in test.fills if f.symbol == "WRNN-USD"]
    assert (bought.session, bought.price) == (FIRST, coin.bar(every_day.index(FIRST)).open)
    assert_books_add_up(test, market)


async def test_news_of_a_weekend_reaches_monday_and_each_item_one_decision() -> None:
    closes = [WEEKDAYS.closes_at(day) for day in DAYS[:4]]
    times = {
        "before Friday's close": closes[0] - timedelta(hours=1),
        "with Friday's close": closes[0],
        "with Friday's decision": closes[0] + timedelta(seconds=1),
        "after it": closes[0] + timedelta(seconds=2),
        "on Sunday": datetime(2024, 3, 3, 23, 59, 59, 999_000, tzinfo=UTC),
        "on Monday": closes[1] - timedelta(hours=5),
        "on Tuesday": closes[2],
    }
    news = [
        NewsItem(id=str(n), symbol="AAA", date=t.date(), available_at=t, summary=text)
        for n, (text, t) in enumerate(times.items())
    ]
    market = replace(flat(["AAA"], 4), news={"AAA": news})
    reading = FINVISION.without(("chart", "reflections"))

    played = await play(market, FIRST, DAYS[3], lambda r: hold(r) if r.purpose == "decision" else None, preset=reading)

    asked = {
        r.session: [i.text.partition(": ")[2] for i in r.view.items]
        for r in played.model.requests
        if r.purpose == "news"
    }
    assert asked == {
        DAYS[0]: ["before Friday's close", "with Friday's close", "with Friday's decision"],
        DAYS[1]: ["after it", "on Sunday", "on Monday"],
        DAYS[2]: ["on Tuesday"],
    }


# Windows that cannot be


async def test_impossible_windows_are_refused() -> None:
    market = flat(["AAA"], 5)
    with pytest.raises(UsageError):
        await play(market, date(2024, 3, 2), date(2024, 3, 3), hold)
    with pytest.raises(UsageError):
        await play(market, FIRST, DAYS[3], hold, warm_up_from=date(2024, 3, 2))
    holey = market_of({"AAA": bars("AAA", [*DAYS[:2], *DAYS[3:5]], [100] * 4)})
    with pytest.raises(MissingData, match=str(DAYS[2])):
        await play(holey, FIRST, DAYS[4], hold)


async def test_every_session_is_told_with_books_that_add_up() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:6], [100, 101, 103, 99, 98, 97])})

    played = await play(market, FIRST, DAYS[5], always("BUY", 5, "strong uptrend"))

    settled = [e for e in played.events if isinstance(e, SessionSettled)]
    assert [e.books.session for e in settled] == list(DAYS[1:6])
    assert tuple(e.books for e in settled) == played.result.test.equity
