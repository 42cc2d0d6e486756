"""adj_close as it was known at the last visible bar: by the actions until then, or by the returns of the file."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from engine.domain.market import ActionKind, Bar, CorporateAction, PriceHistory
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, exchange_calendar

XNYS = exchange_calendar("XNYS")
DAYS = XNYS.sessions(date(2024, 1, 2), date(2024, 3, 28))
SPLIT, PAID = DAYS[20], DAYS[40]
ACTIONS = (
    CorporateAction("AAA", SPLIT, ActionKind.SPLIT, Decimal(2)),
    CorporateAction("AAA", PAID, ActionKind.DIVIDEND, Decimal(5)),
)


def market(actions: tuple[CorporateAction, ...] | None, *, known: bool = True) -> Market:
    """100 until a split of 2 for 1, 50 then, and 45 from a dividend of 5 on; adj_close as of the last row, and a split
    of ten for one beyond it."""
    bars = []
    for day in DAYS:
        close = Decimal(100 if day < SPLIT else 50 if day < PAID else 45)
        adjusted = Decimal("4.5") if known else None
        bars.append(Bar(session=day, open=close, high=close, low=close, close=close, adj_close=adjusted))
    histories = {"AAA": PriceHistory.of("AAA", bars)}
    return Market(histories=histories, actions={"AAA": actions}, news={}, filings={}, calendars={"AAA": XNYS})


@pytest.mark.parametrize("actions", [ACTIONS, None])
@pytest.mark.parametrize("number", [5, 19, 20, 30, 39, 40, 50])
def test_the_last_adjusted_close_is_the_close_and_the_rest_is_what_was_known(
    actions: tuple[CorporateAction, ...] | None, number: int
) -> None:
    access = market(actions).at(decision_time(XNYS, DAYS[number]))
    bars = access.bars("AAA", 60)
    assert bars.adj_close[-1] == bars.close[-1]
    # By the actions and by the column alike the holder has neither won nor lost.
    assert {bar.adj_close for bar in bars} == {bars.bar(-1).close}
    cut = market(actions).cut(access.now).at(access.now).bars("AAA", 60)
    assert cut.adj_close == bars.adj_close


def test_it_is_unknown_where_neither_actions_nor_the_column_are_known() -> None:
    access = market(None, known=False).at(decision_time(XNYS, DAYS[30]))
    assert {bar.adj_close for bar in access.bars("AAA", 20)} == {None}
    assert access.bars("AAA", 20).session(-1) == DAYS[30] > SPLIT + timedelta(days=1)
