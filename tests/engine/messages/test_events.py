"""Every event goes to JSON and comes back equal."""

from __future__ import annotations

import json
import typing
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.decision import Cut, Decision, DecisionKey, Opinion, Proposal
from engine.domain.model_call import Usage
from engine.domain.order import Fill, Order, Portfolio, Position, Side
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.messages import events
from engine.messages.events import (
    TYPES,
    DecisionMade,
    Event,
    OpinionFormed,
    OrderFilled,
    OrderMoved,
    SessionSettled,
    from_plain,
    to_plain,
)
from engine.reports.documents import row_json
from tests.decided import decided, settled

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
TIMES = st.datetimes(timezones=st.just(UTC))
KEYS = st.builds(DecisionKey)
OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    date: st.dates(),
    datetime: TIMES,
    Decimal: DECIMALS,
    RunKind: st.sampled_from(RunKind),
    Usage: st.builds(Usage),
    RunOutcome: st.sampled_from(RunOutcome),
    Decimal | None: st.none() | DECIMALS,
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    Opinion: st.builds(Opinion, key=KEYS, size=DECIMALS, confidence=st.none() | DECIMALS),
    Decision: st.builds(
        Decision,
        key=KEYS,
        size=DECIMALS,
        proposal=st.builds(Proposal),
        cuts=st.lists(st.builds(Cut, asked=DECIMALS, allowed=DECIMALS)).map(tuple),
    ),
    Order: st.builds(Order, quantity=DECIMALS, notional=st.none()),
    Fill: st.builds(Fill, quantity=DECIMALS, price=DECIMALS, fee=DECIMALS, time=st.none() | TIMES),
    EquityPoint: st.builds(
        EquityPoint,
        value=DECIMALS,
        portfolio=st.builds(
            Portfolio,
            cash=DECIMALS,
            positions=st.dictionaries(st.text(), st.builds(Position, quantity=DECIMALS, average_cost=DECIMALS)),
        ),
        prices=st.dictionaries(st.text(), DECIMALS),
    ),
}
NOW, DAY = datetime(2024, 3, 1, 21, tzinfo=UTC), date(2024, 3, 1)
MADE = decided("AAA", "BUY", Decimal("5.0"), DAY, reason="so", cuts=(Cut("band", Decimal(9), Decimal(5), "the band"),))
ORDER = Order(id="o", symbol="AAA", side=Side.BUY, session=DAY, notional=Decimal(100))
FILL = Fill(
    order_id="o",
    symbol="AAA",
    side=Side.BUY,
    session=DAY,
    quantity=Decimal("0.1"),
    price=Decimal("1E+3"),
    fee=Decimal("0.00"),
)
BOOKS = settled(
    DAY,
    Decimal("105.0"),
    Decimal(5),
    {"AAA": Position(Decimal(2), Decimal(40))},
    {"AAA": Decimal(50), "BBB": Decimal(7)},
)


def any_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{f.name: OF_TYPE[hints[f.name]] for f in fields(kind)})


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES.keys())
def test_every_event_survives_json(kind: type[Event]) -> None:
    @given(any_of(kind))
    def survives(event: Event) -> None:
        back = from_plain(json.loads(json.dumps(to_plain(event), allow_nan=False)))
        assert back == event
        assert type(back) is kind
        assert [type(getattr(back, f.name)) for f in fields(kind)] == [
            type(getattr(event, f.name)) for f in fields(kind)
        ]
        # Digits are kept too: 1.0 is no 1.00 in the books.
        assert to_plain(back) == to_plain(event)

    survives()


def test_every_event_is_known_by_its_name() -> None:
    declared = {k for k in vars(events).values() if isinstance(k, type) and issubclass(k, Event) and k is not Event}
    assert set(TYPES.values()) == declared
    assert [name for name, kind in TYPES.items() if not kind.durable] == ["AgentSaid"]


def test_an_event_of_an_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="Rumoured"):
        from_plain({"type": "Rumoured"})


@pytest.mark.parametrize(
    ("event", "printed"),
    [
        (
            OpinionFormed("r", NOW, MADE.opinion),
            {"session": "2024-03-01", "symbol": "AAA", "owner": "desk", "action": "BUY", "size": "9", "reason": "so"},
        ),
        (
            DecisionMade("r", NOW, MADE),
            {
                **{"session": "2024-03-01", "symbol": "AAA", "owner": "desk", "action": "BUY", "size": "5.0"},
                **{"reason": "so", "cut": "9 to 5 %: the band"},
            },
        ),
        (
            OrderMoved("r", NOW, ORDER, "halted"),
            {
                **{"order_id": "o", "session": "2024-03-01", "symbol": "AAA", "side": "BUY", "state": "intended"},
                "detail": "halted",
            },
        ),
        (
            OrderFilled("r", NOW, FILL),
            {
                **{"order_id": "o", "session": "2024-03-01", "symbol": "AAA", "side": "BUY"},
                **{"quantity": "0.1", "price": "1E+3", "fee": "0.00"},
            },
        ),
        (
            SessionSettled("r", NOW, BOOKS, Decimal(-5)),
            {
                **{"session": "2024-03-01", "value": "105.0", "cash": "5"},
                **{"positions": [["AAA", "2", "50"]], "brought": "-5", "costs": ["40"]},
            },
        ),
    ],
)
def test_an_event_is_printed_flat_with_exact_decimals(event: Event, printed: dict[str, object]) -> None:
    kind = type(event).__name__
    assert row_json.event(event) == {"type": kind, "run": "r", "time": "2024-03-01T21:00:00+00:00", **printed}
