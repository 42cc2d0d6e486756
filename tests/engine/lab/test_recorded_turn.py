"""An old decision's occasion: a part of a batch is cut as it was in the whole, and what was not known stays unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from engine.agents.ask import Asker
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, TradingHistory
from engine.domain.decision import Action
from engine.domain.model_call import ModelRequest
from engine.domain.order import Portfolio, Position
from engine.journal.entries import RunEntry
from engine.lab.recorded_turn import RecordedTurn, close_inputs, decide_again
from engine.market.trading_hours import decision_time
from tests.engine.desks import DECISION_ONLY, WEEKDAYS, ScriptedModel, bars, hold, market_of, trade

DAYS = WEEKDAYS.sessions(date(2024, 3, 1), date(2024, 3, 8))
SYMBOLS = ("AAA", "BBB", "CCC", "DDD")
MARKET = market_of({symbol: bars(symbol, DAYS, [100] * len(DAYS)) for symbol in SYMBOLS})
WISHES: Mapping[str, tuple[str, int, str]] = {
    "AAA": ("BUY", 9, "strong uptrend"),
    "BBB": ("SELL", 4, "reversal"),
    "CCC": ("BUY", 7, "strong uptrend"),
    "DDD": ("BUY", 6, "strong uptrend"),
}


def wished(request: ModelRequest) -> Any:
    wish = WISHES.get(request.symbol)
    return hold(request) if wish is None else trade(request, *wish)


def cycle() -> Cycle:
    asker = Asker({"default": ScriptedModel(wished)}, {}, lambda record: None, lambda asked, text: None)
    return Cycle(DECISION_ONLY, asker, MARKET.calendars)


def recorded(cash: str) -> RecordedTurn:
    session = DAYS[-1]
    portfolio = Portfolio(Decimal(cash), {"BBB": Position(Decimal(100_000 - int(cash)) / 100, Decimal(90))})
    return RecordedTurn(
        run=RunEntry(id="run", kind="daily", name="test", started=decision_time(WEEKDAYS, session)),
        desk="test",
        session=session,
        cycle=1,
        calendar=WEEKDAYS,
        inputs=close_inputs(SYMBOLS, portfolio, MARKET, WEEKDAYS, session),
        history=TradingHistory(),
        orders=(),
    )


def decided(turn: RecordedTurn, symbol: str | None = None) -> CycleResult:
    return asyncio.run(decide_again(turn, cycle(), symbol=symbol))


@pytest.mark.parametrize("cash", ["22000", "26000", "33000", "90000"])
def test_a_symbol_alone_is_decided_as_in_its_batch(cash: str) -> None:
    whole = decided(recorded(cash))
    orders = {order.symbol: order for order in whole.orders}
    for made in whole.decisions:
        symbol = made.key.symbol
        alone = decided(replace(recorded(cash), orders=whole.orders), symbol)
        assert alone.decisions == (made,)
        assert alone.orders == ((orders[symbol],) if symbol in orders else ())


def test_what_the_others_had_taken_is_what_makes_it_so() -> None:
    """With 22 % in cash the first purchase leaves 3 % above the floor: the second is cut to it, the third refused."""
    whole = decided(recorded("22000"))
    by_symbol = {made.key.symbol: made for made in whole.decisions}
    assert by_symbol["AAA"].size == 9
    assert by_symbol["CCC"].size == 3
    assert by_symbol["DDD"].action is Action.HOLD
    whole_turn = recorded("22000")
    unaware = decided(replace(whole_turn, inputs=replace(whole_turn.inputs, symbols=("CCC",))))
    assert unaware.decisions[0].size == 7
