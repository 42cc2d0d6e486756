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

from engine.domain.run import RunKind, RunOutcome
from engine.messages import events
from engine.messages.events import TYPES, Event, OrderFilled, from_plain, to_plain

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    date: st.dates(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    Decimal: DECIMALS,
    RunKind: st.sampled_from(RunKind),
    RunOutcome: st.sampled_from(RunOutcome),
    Decimal | None: st.none() | DECIMALS,
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    tuple[Decimal, ...]: st.lists(DECIMALS).map(tuple),
    tuple[tuple[str, Decimal, Decimal], ...]: st.lists(st.tuples(st.text(), DECIMALS, DECIMALS)).map(tuple),
}


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


def test_money_is_text_on_the_way() -> None:
    filled = OrderFilled(
        run="r",
        time=datetime(2024, 3, 1, 21, tzinfo=UTC),
        order_id="o",
        session=date(2024, 3, 1),
        symbol="AAA",
        side="BUY",
        quantity=Decimal("0.1"),
        price=Decimal("1E+3"),
        fee=Decimal("0.00"),
    )
    assert to_plain(filled) == {
        "type": "OrderFilled",
        "run": "r",
        "time": "2024-03-01T21:00:00+00:00",
        "order_id": "o",
        "session": "2024-03-01",
        "symbol": "AAA",
        "side": "BUY",
        "quantity": "0.1",
        "price": "1E+3",
        "fee": "0.00",
    }
