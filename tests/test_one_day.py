"""One day between two closes, told with real values: settle, learn, decide, submit; live on a desk and replayed.

Read it beside engine/session/loop.py and engine/cycle/cycle.py. AAA closes at 100 on Thursday, when the model buys for
10 % of 100,000; it opens at 102 on Friday and closes at 105.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.agents.ask import Asker
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.turn import TradingHistory
from engine.domain.decision import Action
from engine.domain.model_call import ModelRequest
from engine.domain.order import OrderState, Side
from engine.market.trading_hours import decision_time
from engine.messages.events import Event
from engine.session.context import Moment, RunState, SessionContext, SessionResult
from engine.session.loop import run_session
from engine.session.recorder import Recorder
from engine.session.simulated_venue import DirectSubmission, SimulatedVenue
from tests.engine.desks import DECISION_ONLY, FREE, WEEKDAYS, ScriptedModel, bars, hold, market_of, play, trade
from tests.engine.session.test_daily import Daily

THURSDAY, FRIDAY = date(2024, 3, 7), date(2024, 3, 8)
CASH = Decimal(100_000)
MARKET = market_of({"AAA": bars("AAA", WEEKDAYS.sessions(date(2024, 3, 4), FRIDAY), [98, 99, 99, 100, (102, 105)])})


def buys_on_thursday(request: ModelRequest) -> Any:
    return trade(request, "BUY", 10, "strong uptrend") if request.session == THURSDAY else hold(request)


def one_day() -> tuple[SessionResult, SessionResult, list[Event]]:
    """Thursday's and Friday's session by the loop itself."""
    events: list[Event] = []
    asker = _asker(ScriptedModel(buys_on_thursday))
    venue = SimulatedVenue(FREE, MARKET.histories, MARKET.actions, calendar=WEEKDAYS, recorder=Recorder(), cash=CASH)
    context = SessionContext(
        run="run",
        desk="desk",
        symbols=("AAA",),
        market=MARKET,
        calendar=WEEKDAYS,
        cycle=Cycle(DECISION_ONLY, asker, MARKET.calendars, events.append),
        venue=venue,
        orders=DirectSubmission(venue, Recorder()),
        clock=BacktestClock(datetime(2024, 3, 9, tzinfo=UTC)),
        publish=events.append,
    )

    async def both() -> tuple[SessionResult, SessionResult]:
        thursday = await run_session(context, _moment(THURSDAY), RunState(TradingHistory()))
        return thursday, await run_session(context, _moment(FRIDAY), thursday.state)

    return *asyncio.run(both()), events


def test_between_two_closes() -> None:
    thursday, friday, events = one_day()

    # Thursday, one second after the close: nothing to settle, the books open with cash.
    assert thursday.settled.sessions == () and thursday.turn.portfolio.cash == CASH
    assert thursday.turn.market.now == decision_time(WEEKDAYS, THURSDAY)
    assert thursday.turn.market.close("AAA") == 100, "nothing later than Thursday's close can be seen"
    (decision,) = thursday.result.decisions
    assert (decision.action, decision.size, decision.key.session) == (Action.BUY, 10, THURSDAY)
    (order,) = thursday.result.orders
    assert (order.side, order.notional, order.session) == (Side.BUY, 10_000, THURSDAY)
    assert order.id == "desk-20240307-1-AAA-B-1", "the same intention always has the same id"

    # Friday: the order filled at the open, 10,000 at 102; the books close at 105.
    (settled,) = friday.settled.sessions
    (fill,) = settled.fills
    shares = Decimal("98.039215686")
    assert (fill.price, fill.quantity, fill.session) == (102, shares, FRIDAY)
    assert settled.after.portfolio.quantity("AAA") == shares
    assert settled.after.value == Decimal("100294.12")

    # The outcome of Thursday's decision is learned before Friday's is taken: 294.12 on 100,000.
    (outcome,) = friday.turn.history.of("AAA", "desk", 5)
    assert (outcome.decision_session, outcome.session) == (THURSDAY, FRIDAY)
    assert outcome.reward == Decimal("0.00294118")
    assert friday.turn.portfolio == settled.after.portfolio and friday.turn.value == settled.after.value
    assert friday.result.orders == () and friday.state.awaiting == friday.result.decisions

    names = [type(event).__name__ for event in events if type(event).__name__ != "StepStarted"]
    assert names == ["DecisionMade", "OrderFilled", "SessionSettled", "DecisionMade"]


@pytest.mark.parametrize("runner", ["backtest", "desk"])
def test_a_backtest_and_a_desk_live_the_same_day(runner: str, tmp_path: Path) -> None:
    thursday, friday, _ = one_day()
    told = REPLAYED[runner](tmp_path)
    assert told == (
        [(d.key.session, d.action, d.size) for one in (thursday, friday) for d in one.result.decisions],
        [(f.order_id, f.session, f.quantity, f.price) for f in friday.settled.sessions[0].fills],
        friday.settled.sessions[0].after.value,
    )


def _as_backtest(tmp_path: Path) -> tuple[Any, ...]:
    later = market_of(
        {"AAA": bars("AAA", WEEKDAYS.sessions(date(2024, 3, 4), date(2024, 3, 11)), [98, 99, 99, 100, (102, 105), 106])}
    )
    result = asyncio.run(play(later, FRIDAY, date(2024, 3, 11), buys_on_thursday)).result.test
    return (
        [(d.key.session, d.action, d.size) for d in result.decisions],
        [(f"desk{f.order_id.removeprefix('test')}", f.session, f.quantity, f.price) for f in result.fills],
        result.equity[0].value,
    )


def _as_desk(tmp_path: Path) -> tuple[Any, ...]:
    desk = Daily(tmp_path / "desk.db", MARKET, FREE)
    desk.model = ScriptedModel(buys_on_thursday)
    runs = [desk.run(THURSDAY), desk.run(FRIDAY)]
    assert [order.state for order in runs[0].orders] == [OrderState.ACKNOWLEDGED]
    return (
        [(d.key.session, d.action, d.size) for run in runs for d in run.decisions],
        [(f.order_id, f.session, f.quantity, f.price) for run in runs for f in run.fills],
        runs[1].books.value,
    )


REPLAYED: dict[str, Callable[[Path], tuple[Any, ...]]] = {"backtest": _as_backtest, "desk": _as_desk}


def _asker(model: ScriptedModel) -> Asker:
    return Asker({"default": model}, {}, lambda record: None, lambda asked, text: None)


def _moment(session: date) -> Moment:
    before = WEEKDAYS.sessions(date(2024, 3, 1), session)[-2]
    return Moment(session=session, now=decision_time(WEEKDAYS, session), news_after=decision_time(WEEKDAYS, before))


def test_both_files_of_the_day_are_read_in_one_sitting() -> None:
    """README's reading order begins with them; what grows in them beyond a few pages belongs to a module beside."""
    engine = Path(__file__).resolve().parents[1] / "engine"
    files = (engine / "cycle" / "cycle.py", engine / "session" / "loop.py")
    assert sum(len(file.read_text().splitlines()) for file in files) < 400
