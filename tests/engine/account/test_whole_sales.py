"""A sale of a whole position leaves nothing of it: in the simulated market, and in the books of several owners."""

from __future__ import annotations

import asyncio
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import SizingRule
from engine.domain.model_call import ModelRequest
from engine.domain.order import ZERO
from engine.domain.run import ExecutionRules
from engine.settings.owners import Owner
from engine.settings.values import Band
from tests.engine.desks import DECISION_ONLY, WEEKDAYS, bars, market_of, play, split, trade
from tests.examples import examples

D = Decimal
DAYS = WEEKDAYS.sessions(date(2024, 3, 1), date(2024, 3, 8))
PRICE = st.decimals("0.5", 400, places=2)
RATIO = st.sampled_from(["2", "3", "0.3", "0.142857", "1.5"])
BAND = Band(smallest=D(1), largest=D(100))
SIZING = DECISION_ONLY.sizing.model_copy(
    update={"cash_floor": ZERO, "buy": {SizingRule.STRONG_UPTREND: BAND}, "sell": {SizingRule.REVERSAL: BAND}}
)
WHOLE = SIZING.model_copy(update={"whole": True})
OWNERS = {"bull": Owner(weight=D("1.7")), "bear": Owner(weight=D("0.9"))}


@examples(40)
@given(st.lists(PRICE, min_size=6, max_size=6), st.sampled_from(DAYS[2:5]), RATIO, st.booleans(), st.booleans())
def test_a_sale_of_all_leaves_nothing_over_any_fill_and_split(
    prices: list[Decimal], on: date, ratio: str, short: bool, fractional: bool
) -> None:
    preset = DECISION_ONLY.model_copy(update={"sizing": WHOLE.model_copy(update={"allow_short": short})})
    market = market_of(
        {"AAA": bars("AAA", DAYS[:6], prices)}, {"AAA": (split("AAA", on, ratio), split("AAA", on, "0.7"))}
    )

    def script(request: ModelRequest) -> Any:
        action = {DAYS[0]: "BUY", DAYS[3]: "SELL"}.get(request.session, "HOLD")
        rule = {"BUY": "strong uptrend", "SELL": "reversal", "HOLD": "uncertainty"}[action]
        return trade(request, action, 0 if action == "HOLD" else 10, rule)

    rules = ExecutionRules(slippage_bp=D(3), fractional=fractional, allow_short=short)
    run_part = asyncio.run(play(market, DAYS[1], DAYS[5], script, preset=preset, rules=rules)).result.test

    held = run_part.equity[2].portfolio.quantity("AAA")
    if held > 0:
        assert not run_part.equity[-1].portfolio.positions


@examples(40)
@given(st.decimals("0.5", 400, places=2), st.integers(3, 97))
def test_what_crosses_between_owners_leaves_no_part_of_a_share(price: Decimal, size: int) -> None:
    preset = DECISION_ONLY.model_copy(
        update={"sizing": SIZING, "owners": OWNERS, "combine": "books", "decision": "sized"}
    )
    band = Band(smallest=D(size), largest=D(size))
    sizing = SIZING.model_copy(update={"buy": {SizingRule.STRONG_UPTREND: band}, "sell": {SizingRule.REVERSAL: BAND}})
    preset = preset.model_copy(
        update={
            "sizing": sizing.model_copy(update={"sell": {SizingRule.REVERSAL: Band(smallest=D(100), largest=D(100))}})
        }
    )
    market = market_of({"AAA": bars("AAA", DAYS[:4], [price] * 4)})

    def script(request: ModelRequest) -> Any:
        bull, first = request.owner == "bull", request.session == DAYS[0]
        if first == bull:
            return trade(request, "BUY", 10, "strong uptrend")
        return (
            trade(request, "SELL", 10, "reversal")
            if bull and request.session == DAYS[1]
            else trade(request, "HOLD", 0, "uncertainty")
        )

    rules = ExecutionRules(slippage_bp=ZERO)
    run_part = asyncio.run(play(market, DAYS[1], DAYS[3], script, preset=preset, rules=rules)).result.test
    sold = [point for point in run_part.books if point.book == "bull" and point.session == DAYS[2]]
    assert sold and not sold[0].portfolio.positions
