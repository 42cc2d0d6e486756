"""Owners in the cycle: what their agents are told, their own memory and past, their opinions beside the decision, and
books of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from engine.agents.ask import Asker
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, OpenOrders, TradingHistory, Turn
from engine.domain.decision import Action, DecisionKey, Opinion
from engine.domain.model_call import ModelRequest
from engine.domain.order import Portfolio, Position, Side
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.messages.events import DecisionMade, Event, OpinionFormed
from engine.preset import Preset, load_preset
from tests.engine.desks import DECISION_ONLY, WEEKDAYS, ScriptedModel, bars, hold, market_of, outcome, trade

DAYS = WEEKDAYS.sessions(date(2024, 1, 2), date(2024, 3, 29))
SESSION = DAYS[-1]
MARKET = market_of({symbol: bars(symbol, DAYS, [100 + n % 7 for n in range(len(DAYS))]) for symbol in ("AAA", "BBB")})
TRAITS = {
    "bull": {"risk": "risk-seeking", "preference": "aggressive", "character": "You look for reasons to buy."},
    "bear": {"risk": "risk-averse", "horizon": 20, "sectors": ["bakeries"], "profile": "Bread is dear."},
    "quant": {"weight": 3},
}


def preset(base: Preset = DECISION_ONLY, **changes: Any) -> Preset:
    return Preset.model_validate(base.model_dump() | {"owners": TRAITS} | changes)


def turn(portfolio: Portfolio | None = None, market: Market = MARKET, **more: Any) -> Turn:
    held, now = portfolio or Portfolio(Decimal(100_000)), decision_time(WEEKDAYS, SESSION)
    known = market.at(now)
    plain = {
        "run": "r",
        "desk": "desk",
        "session": SESSION,
        "number": 1,
        "symbols": tuple(market.histories),
        "market": known,
        "news_after": decision_time(WEEKDAYS, DAYS[-2]),
        "portfolio": held,
        "value": held.value({symbol: known.close(symbol) for symbol in held.positions}),
        "history": TradingHistory(),
    }
    return Turn(**(plain | more))


async def decided(
    model: ScriptedModel, chosen: Preset, occasion: Turn | None = None
) -> tuple[CycleResult, list[Event]]:
    events: list[Event] = []
    asker = Asker({"default": model}, {}, lambda record: None, lambda asked, text: None)
    return await Cycle(chosen, asker, MARKET.calendars, events.append).run(occasion or turn()), events


def bulls_buy(request: ModelRequest) -> Any:
    action = {"bull": ("BUY", 8, "strong uptrend"), "quant": ("BUY", 5, "dip in an uptrend")}.get(request.owner)
    return hold(request) if action is None else trade(request, *action)


async def test_every_owners_opinion_is_kept_beside_one_decision_per_symbol() -> None:
    result, events = await decided(ScriptedModel(bulls_buy), preset())

    assert [(o.key.symbol, o.key.owner, o.action, o.size) for o in result.opinions] == [
        (symbol, owner, action, size)
        for symbol in ("AAA", "BBB")
        for owner, action, size in (("bull", Action.BUY, 8), ("bear", Action.HOLD, 0), ("quant", Action.BUY, 5))
    ]
    # The weightier rule is the quant's, whose band ends at 5; (8 + 3 * 5) / 4 is 5.75.
    assert [(d.key.symbol, d.key.owner, d.action, d.proposal.size, d.size) for d in result.decisions] == [
        ("AAA", "desk", Action.BUY, 6, 5),
        ("BBB", "desk", Action.BUY, 6, 5),
    ]
    assert [(order.id, order.book) for order in result.orders] == [
        ("desk-20240329-1-AAA-B-1", ""),
        ("desk-20240329-1-BBB-B-1", ""),
    ]
    told = [event for event in events if isinstance(event, OpinionFormed | DecisionMade)]
    expected = [OpinionFormed(one.key.run, told[0].time, one) for one in result.opinions]
    assert told == [*expected, *(DecisionMade(one.key.run, told[0].time, one) for one in result.decisions)]
    assert set(result.recollections) == {opinion.key for opinion in result.opinions}


async def test_one_owner_decides_in_its_own_name() -> None:
    for combined in ("vote", "weighted", "books"):
        alone = preset(owners=["anna"], combine=combined)
        result, events = await decided(ScriptedModel(lambda r: trade(r, "BUY", 8, "strong uptrend")), alone)

        assert {made.key.owner for made in result.decisions} == {"anna"}
        assert not [event for event in events if isinstance(event, OpinionFormed)]
        assert [made.opinion for made in result.decisions] == list(result.opinions)
        assert [order.id for order in result.orders] == ["desk-20240329-1-AAA-B-1", "desk-20240329-1-BBB-B-1"]


@pytest.mark.parametrize("base", ["finvision", "desk"])
async def test_an_owners_traits_reach_its_decision(base: str) -> None:
    model = ScriptedModel(lambda request: hold(request))
    await decided(model, preset(DECISION_ONLY.model_copy(update={"decision": load_preset(base).decision})))

    asked = {request.owner: request for request in model.requests if request.symbol == "AAA"}
    assert {owner: request.view.preference for owner, request in asked.items()} == {
        "bull": "aggressive",
        "bear": "moderate",
        "quant": "moderate",
    }
    bull, bear, quant = (asked[owner] for owner in TRAITS)
    for request, told in (
        (bull, ("You are a risk-seeking investor", "You look for reasons to buy.", "You are an aggressive trader")),
        (bear, ("You are a risk-averse investor", "bakeries.", "over about 20 sessions")),
    ):
        assert all(text in request.system for text in told)
    assert "consumer staples" not in bear.system, "its own sectors are in place of its character's"
    assert "Bread is dear." in bear.messages[0].text and "Bread is dear." not in bull.messages[0].text
    assert quant.view.character == "" and "investor" not in quant.system


async def test_an_owners_traits_reach_its_immediate_reflection() -> None:
    model = ScriptedModel(lambda request: None)
    chosen = preset(load_preset("tradinggpt-single").without(("intelligence", "macro", "memory", "extended")))
    await decided(model, chosen)

    asked = {request.owner: request for request in model.requests if request.symbol == "AAA"}
    assert "You are a risk-seeking investor" in asked["bull"].system
    assert "You are an aggressive trader" in asked["bull"].system
    assert "You are a risk-averse investor" in asked["bear"].system
    assert "You are a risk-neutral investor" in asked["quant"].system, "the preset's"
    assert "Bread is dear." in asked["bear"].messages[0].text


async def test_an_owner_reads_its_own_past_alone() -> None:
    rows = [outcome(DAYS[-2], SESSION, "0.01", owner=owner, key_factors=owner) for owner in ("bull", "desk")]
    model = ScriptedModel(lambda request: hold(request))
    await decided(model, preset(), turn(history=TradingHistory().with_outcomes(rows)))

    read = {r.owner: [o.key_factors for o in r.view.outcomes] for r in model.requests if r.symbol == "AAA"}
    assert read == {"bull": ["bull"], "bear": [], "quant": []}


async def test_each_owner_of_a_book_decides_on_it() -> None:
    books = {
        "bull": Portfolio(Decimal(50_000)),
        "bear": Portfolio(Decimal(20_000), {"AAA": Position(Decimal(100), Decimal(90))}),
        "quant": Portfolio(Decimal(2_000)),
    }
    total = Portfolio(Decimal(72_000), {"AAA": Position(Decimal(100), Decimal(90))})

    def script(request: ModelRequest) -> Any:
        if request.symbol == "BBB":
            return hold(request)
        return (
            trade(request, "SELL", 10, "reversal")
            if request.owner == "bear"
            else trade(request, "BUY", 10, "strong uptrend")
        )

    occasion = turn(total, books=books, open_orders={"bear": OpenOrders(Decimal(4_000), {"AAA": Decimal(95)})})
    model = ScriptedModel(script)
    result, _ = await decided(model, preset(combine="books"), occasion)

    held = {request.owner: request.view.holding for request in model.requests if request.symbol == "AAA"}
    price = MARKET.at(decision_time(WEEKDAYS, SESSION)).close("AAA")
    assert {owner: (one.cash, one.shares, one.value) for owner, one in held.items()} == {
        "bull": (50_000, 0, 50_000),
        "bear": (16_000, 100, 20_000 + 100 * price),
        "quant": (2_000, 0, 2_000),
    }
    assert [(made.key.owner, made.book) for made in result.decisions if made.key.symbol == "AAA"] == [
        ("bull", "bull"),
        ("bear", "bear"),
        ("quant", "quant"),
    ]
    orders = {order.book: order for order in result.orders}
    assert (orders["bull"].side, orders["bull"].notional) == (Side.BUY, 5_000)
    assert (orders["bear"].side, orders["bear"].quantity) == (Side.SELL, 5), "95 of its 100 are queued"
    assert orders["quant"].notional == 200
    assert orders["bear"].id == "desk-20240329-1-AAA-bear-S-1"


def test_history_is_a_value() -> None:
    empty = TradingHistory()
    key = DecisionKey("r", SESSION, 1, "AAA", "bull")
    opinion = Opinion(key=key, action=Action.BUY, size=Decimal(5), reason="first")
    later = replace(opinion, key=replace(key, cycle=2), reason="second")
    history = empty.with_opinions([opinion]).with_opinions([later])

    assert not empty.opinions and not empty.outcomes
    assert list(history.opinions.values()) == [later], "a later cycle takes the place of one of the same session"
