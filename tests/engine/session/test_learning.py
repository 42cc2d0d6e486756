"""The moment at which the outcome of a decision becomes known, reckoned by hand: crypto beside a share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from engine.cycle.turn import TradingHistory
from engine.domain.decision import Action, DecisionKey, Opinion, Outcome, SizingRule
from engine.domain.order import Portfolio, Position, Side
from engine.execution.venue import SettledSession
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.preset import load_preset
from engine.session.context import RunState, SessionContext
from engine.session.outcomes import learn
from engine.session.owner_books import opened
from engine.session.recorder import Recorder
from tests.engine.desks import WEEKDAYS, bars, fill, market_of
from tests.engine.session.test_reward import MONDAY, TUESDAY, books, decision

WEDNESDAY = TUESDAY + timedelta(days=1)
DAYS = [MONDAY - timedelta(days=1), MONDAY, TUESDAY, WEDNESDAY]
MARKET = market_of(
    {
        "AAA": bars("AAA", DAYS[1:], [20, 22, 23]),
        # Its UTC day goes on while the share's exchange closes: 100, 200, 400 and 800 are known a day later.
        "CCC-USD": bars("CCC-USD", DAYS, [100, 200, (210, 400), 800]),
    }
)
BEFORE = books(MONDAY, "6000", {"AAA": ("100", "20"), "CCC-USD": ("10", "200")})
AFTER = books(TUESDAY, "3900", {"AAA": ("100", "22"), "CCC-USD": ("20", "400")})
STRETCH = SettledSession(BEFORE, AFTER, (fill("CCC-USD", Side.BUY, TUESDAY, "10", "210"),))


class Learned(Recorder):
    """Keeps what was learned."""

    def __init__(self) -> None:
        self.rows: list[Outcome] = []

    def learned(self, outcomes: Iterable[Outcome]) -> None:
        """Keep the rows."""
        self.rows += outcomes


def context(market: Market = MARKET, *, at_decisions: bool = False) -> SessionContext:
    return SessionContext(
        run="r",
        desk="d",
        symbols=("AAA", "CCC-USD"),
        market=market,
        calendar=WEEKDAYS,
        cycle=cast(Any, None),
        venue=cast(Any, None),
        recorder=Learned(),
        clock=cast(Any, None),
        marks_at_decisions=at_decisions,
    )


def at(session: date) -> datetime:
    return decision_time(WEEKDAYS, session)


def rows(held: SessionContext) -> list[tuple[str, Decimal]]:
    assert isinstance(held.recorder, Learned)
    return [(row.symbol, row.reward) for row in held.recorder.rows]


def test_a_decision_on_crypto_is_learned_once_its_day_is_over_by_the_trade_that_it_made() -> None:
    held, begun = context(), RunState(TradingHistory(), (decision("AAA", Action.HOLD), decision("CCC-USD", Action.BUY)))
    known = learn(held, begun, [STRETCH], at(TUESDAY))
    # The share earned 200 of 10,000; the coin's close of Tuesday comes after Tuesday's decision.
    assert rows(held) == [("AAA", Decimal("0.02"))]
    assert [one.key.symbol for one in known.awaiting] == ["CCC-USD"] and known.unlearned == (STRETCH,)
    done = learn(held, known, (), at(WEDNESDAY))
    # Ten coins went from 200 to 400, ten that were bought at 210 to 400: 2,000 and 1,900.
    assert rows(held) == [("AAA", Decimal("0.02")), ("CCC-USD", Decimal("0.39"))]
    assert (done.awaiting, done.unlearned) == ((), ())
    (row,) = done.history.outcomes["CCC-USD", "desk"]
    assert (row.decision_session, row.session, row.close) == (MONDAY, TUESDAY, 400)
    assert learn(held, done, (), at(WEDNESDAY)) == done


def test_books_that_are_marked_at_the_closes_of_decisions_are_learned_from_at_once() -> None:
    held, begun = context(at_decisions=True), RunState(TradingHistory(), (decision("AAA"), decision("CCC-USD")))
    done = learn(held, begun, [STRETCH], at(TUESDAY))
    assert [symbol for symbol, _ in rows(held)] == ["AAA", "CCC-USD"] and not (done.awaiting or done.unlearned)


@pytest.mark.parametrize(("symbol", "reward"), [("AAA", "0.01"), ("CCC-USD", "0.1"), ("GONE", "0")])
def test_an_opinion_earns_the_move_of_its_own_sessions_and_nothing_where_there_is_no_price(
    symbol: str, reward: str
) -> None:
    key = DecisionKey("r", MONDAY, 1, symbol, "bull")
    opinion = Opinion(key=key, action=Action.BUY, size=Decimal(10), reason="so it is", rule=SizingRule.REVERSAL)
    held = context()
    learn(held, RunState(TradingHistory(), opinions=(opinion,)), [STRETCH], at(WEDNESDAY))
    assert rows(held) == [(symbol, Decimal(reward))]


def test_the_first_books_of_owners_are_worth_what_they_hold() -> None:
    preset = load_preset("desk-debate").model_copy(update={"combine": "books"})
    shares = Portfolio(Decimal(5_000), {"AAA": Position(Decimal(50), Decimal(90))})
    points = opened(preset, MONDAY, shares, {"AAA": Decimal(100)}).points.values()
    assert float(sum(point.value for point in points)) == pytest.approx(10_000, abs=0.03), "each to the cent"
    before = next(iter(points))
    after = replace(before, session=TUESDAY, prices={"AAA": Decimal(101)})
    held, begun = context(), RunState(TradingHistory(), (replace(decision("AAA"), book=before.book),))
    learn(held, begun, [SettledSession(before, after)], at(TUESDAY))
    ((_, reward),) = rows(held)
    assert float(reward) == pytest.approx(0.005, abs=1e-6)
