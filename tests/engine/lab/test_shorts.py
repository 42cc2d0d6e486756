"""Short positions in backtests: bounded at every decision, bought back when the book cannot carry them, paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import Action, SizingRule
from engine.domain.market import CorporateAction
from engine.domain.model_call import ModelRequest
from engine.domain.order import ZERO, Portfolio, Side
from engine.domain.run import EquityPoint, ExecutionRules, FillAt
from engine.market.as_of import Market
from engine.preset import Preset
from engine.settings.values import Band
from engine.simulation.simulated_broker import BORROW_COST, FORCED_COVER
from tests.engine.desks import (
    DECISION_ONLY,
    EXAMPLE_CASH,
    WEEKDAYS,
    Played,
    assert_books_add_up,
    bars,
    market_of,
    play,
    split,
    trade,
)
from tests.examples import examples

D = Decimal
DAYS = WEEKDAYS.sessions(date(2024, 3, 1), date(2024, 4, 30))
FIRST = DAYS[1]


def preset_of(least: int = 100, *, allowed: bool = True, whole: bool = False, rate: str = "0") -> Preset:
    """A preset of one question whose trades are of at least so many percent."""
    band = Band(smallest=D(least), largest=D(100))
    changes = {
        "allow_short": allowed,
        "borrow_rate": D(rate),
        "cash_floor": ZERO,
        "whole": whole,
        "buy": {SizingRule.STRONG_UPTREND: band},
        "sell": {SizingRule.REVERSAL: band},
    }
    return DECISION_ONLY.model_copy(update={"sizing": DECISION_ONLY.sizing.model_copy(update=changes)})


def run(
    market: Market, script: Callable[[ModelRequest], Any], preset: Preset, fill_at: FillAt = FillAt.NEXT_OPEN
) -> Played:
    last = max(history.session(-1) for history in market.histories.values())
    sizing = preset.sizing
    rules = ExecutionRules(
        slippage_bp=ZERO, allow_short=sizing.allow_short, borrow_rate=sizing.borrow_rate, fill_at=fill_at
    )
    return asyncio.run(play(market, FIRST, last, script, preset=preset, rules=rules))


def sells(request: ModelRequest) -> Any:
    return trade(request, "SELL", 10, "reversal")


def test_shorts_stop_at_the_equity_and_are_bought_back_once_it_is_below_them() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:5], [100, 100, 120, 125, 125])})
    played = run(market, sells, preset_of())
    run_part = played.result.test

    # 1,000 shares are short of 100,000. At 120 the equity is 80,000 and they are worth 120,000.
    (sold, covered, again) = run_part.fills[:3]
    assert (sold.side, sold.quantity, sold.price) == (Side.SELL, 1000, 100)
    assert (covered.session, covered.side, covered.quantity, covered.price) == (DAYS[3], Side.BUY, 1000, 125)
    assert covered.reason == FORCED_COVER
    assert [point.value for point in run_part.equity] == [100_000, 80_000, 75_000, 75_000]
    # What was decided at that close was refused: the shorts were above the equity already.
    refused = next(made for made in run_part.decisions if made.key.session == DAYS[2])
    assert refused.action is Action.HOLD
    assert "80000.00" in refused.cut
    assert again.session == DAYS[4]
    assert any(FORCED_COVER in note for note in played.result.notes)


def test_a_second_symbol_is_sold_short_only_up_to_what_the_first_has_left() -> None:
    market = market_of({s: bars(s, DAYS[:3], [100] * 3) for s in ("AAA", "BBB")})
    run_part = run(market, sells, preset_of(60)).result.test

    assert [(fill.symbol, fill.quantity) for fill in run_part.fills] == [("AAA", 600), ("BBB", 400)]
    cut = next(made.cut for made in run_part.decisions if made.key.symbol == "BBB")
    assert "60 to 40 %: short positions may be worth no more than the equity, 100000.00" in cut


def test_borrowed_shares_cost_a_yearly_rate_for_every_night() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:8], [100] * 8)})
    run_part = run(market, sells, preset_of(50, rate="0.0365")).result.test

    costs = {flow.session: flow.amount for flow in run_part.cash_flows if flow.kind == BORROW_COST}
    # 50,000 from Monday to Tuesday; then what the equity allows, over a weekend for three nights.
    assert costs[DAYS[2]] == D("-5.00")
    assert (costs[DAYS[3]], DAYS[6].weekday()) == (D("-10.00"), 0)
    assert costs[DAYS[6]] == 3 * costs[DAYS[3]]
    assert_books_add_up(run_part, market, shorts=True)


def test_what_shorts_brought_is_no_money_to_spend_and_buying_back_takes_the_whole() -> None:
    market = market_of({s: bars(s, DAYS[:6], [100] * 6) for s in ("AAA", "BBB")})

    def script(request: ModelRequest) -> Any:
        if request.symbol == "AAA" and request.session < DAYS[3]:
            return sells(request)
        return trade(request, "BUY", 10, "strong uptrend")

    run_part = run(market, script, preset_of(90)).result.test

    first, *_, last = run_part.equity
    assert first.portfolio.quantity("AAA") == -900
    # 190,000 are in cash, of which 90,000 have to stay for the shorts.
    assert all(point.portfolio.quantity("BBB") <= 1000 for point in run_part.equity)
    assert last.portfolio.quantity("AAA") >= 0
    assert all(point.portfolio.cash >= 0 for point in run_part.equity)


def test_a_short_that_is_not_allowed_is_told_on_the_decision() -> None:
    market = market_of({"AAA": bars("AAA", DAYS[:4], [100] * 4)})
    run_part = run(market, sells, preset_of(allowed=False)).result.test

    assert not run_part.fills
    assert {made.action for made in run_part.decisions} == {Action.HOLD}
    assert all(made.cuts for made in run_part.decisions)


MOVES = st.sampled_from([D("0.45"), D("0.8"), D("0.97"), D(1), D("1.03"), D("1.2"), D("1.7"), D("2.6")])
SAID = st.sampled_from([("BUY", 10, "strong uptrend"), ("SELL", 10, "reversal"), ("HOLD", 0, "uncertainty")])


@dataclass(frozen=True)
class World:
    """Prices (open and close) and splits by symbol, what the model says in turn, and the preset."""

    prices: Mapping[str, Sequence[tuple[Decimal, Decimal]]]
    splits: Mapping[str, Sequence[CorporateAction]]
    said: tuple[tuple[str, int, str], ...]
    preset: Preset = field(repr=False)
    fill_at: FillAt

    @property
    def market(self) -> Market:
        histories = {symbol: bars(symbol, DAYS[: len(rows)], rows) for symbol, rows in self.prices.items()}
        return market_of(histories, self.splits)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    days = DAYS[: draw(st.integers(4, 12))]
    every, actions = {}, {}
    for symbol in ("AAA", "BBB"):
        price, prices = D(draw(st.integers(5, 300))), []
        for _ in days:
            opened = max((price * draw(MOVES)).quantize(D("0.01")), D("0.05"))
            price = max((opened * draw(MOVES)).quantize(D("0.01")), D("0.05"))
            prices.append((opened, price))
        every[symbol] = prices
        on = draw(st.sampled_from([None, *days[2:]]))
        actions[symbol] = () if on is None else (split(symbol, on, draw(st.sampled_from(["3", "0.3", "0.142857"]))),)
    preset = preset_of(draw(st.sampled_from([5, 40, 100])), whole=draw(st.booleans()), rate=draw(RATES))
    said = tuple(draw(st.lists(SAID, min_size=3, max_size=16)))
    return World(every, actions, said, preset, draw(st.sampled_from(FILLS)))


RATES = st.sampled_from(["0", "0.03", "0.9"])
FILLS = (FillAt.NEXT_OPEN, FillAt.NEXT_OPEN, FillAt.SAME_CLOSE)


@examples(60)
@given(worlds())
def test_equity_ends_below_zero_by_one_gap_at_most_whatever_is_answered(world: World) -> None:
    turns, market = iter(range(10**6)), world.market
    played = run(
        market,
        lambda asked: trade(asked, *world.said[next(turns) % len(world.said)]),
        world.preset,
        world.fill_at,
    )
    run_part = played.result.test
    assert_books_add_up(run_part, market, shorts=True)
    for before, after in pairwise(run_part.equity):
        shorts = before.portfolio.short_value(before.prices)
        covered = {fill.symbol for fill in run_part.fills if fill.session == after.session and _forced(fill.reason)}
        held = {symbol for symbol, position in before.portfolio.positions.items() if position.quantity < 0}
        assert covered == (held if shorts > min(before.value, before.portfolio.cash) else set())
        if after.value < 0:
            assert shorts <= before.value or not after.portfolio.short_value(after.prices)
    if world.fill_at is FillAt.NEXT_OPEN:
        begun = EquityPoint(DAYS[0], EXAMPLE_CASH, Portfolio(EXAMPLE_CASH), {})
        for point, verdict in zip([begun, *run_part.equity], played.kept.verdicts, strict=False):
            _assert_bounded(market, point, {order.symbol: order for order in verdict.orders})


def _forced(reason: str) -> bool:
    return reason == FORCED_COVER


def _assert_bounded(market: Market, point: EquityPoint, orders: Mapping[str, Any]) -> None:
    """What is short by now and by the orders is worth the equity at most; nothing more is sold short above it."""
    shorts, more, spent = ZERO, ZERO, ZERO
    for symbol, history in market.histories.items():
        close = history.bar(history.rows_through(point.session) - 1).close
        held, order = point.portfolio.quantity(symbol), orders.get(symbol)
        shorts += max(-held, ZERO) * close
        if order is not None and order.side is Side.SELL:
            more += max(order.quantity - max(held, ZERO), ZERO) * close
        elif order is not None and held < 0:
            assert order.quantity <= -held
        elif order is not None:
            spent += order.notional
    assert not more or shorts + more <= point.value + D("0.01")
    assert not spent or point.portfolio.cash - shorts - spent >= -D("0.01")
