"""One cycle: steps by preset, what each agent is told, who is asked when another fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.agents.ask import Asker
from engine.agents.decision import DecisionView
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.decision import Action
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, PriceHistory
from engine.domain.model_call import AnswerRecord, ModelRequest, ModelResult
from engine.domain.order import Portfolio, Position
from engine.errors import ConfigError, InvariantBroken, PaperdeskError
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.messages.events import DecisionMade, Event, StepStarted
from engine.offline.model import OfflineModel
from engine.preset import Preset, load_preset
from tests.engine.desks import DECISION_ONLY, WEEKDAYS, ScriptedModel, bars, hold, market_of, split, trade

FINVISION = load_preset("finvision")
DAYS = WEEKDAYS.sessions(date(2024, 1, 2), date(2024, 3, 29))
SESSION = DAYS[-1]


def turn(market: Market, session: date = SESSION, portfolio: Portfolio | None = None, **more: Any) -> Turn:
    now, held = decision_time(WEEKDAYS, session), portfolio or Portfolio(Decimal(100_000))
    seen = market.at(now)
    return Turn(
        run="r",
        desk="desk",
        session=session,
        number=1,
        symbols=tuple(market.histories),
        market=seen,
        news_after=decision_time(WEEKDAYS, DAYS[DAYS.index(session) - 1]),
        portfolio=held,
        value=held.value({s: seen.close(s) for s in held.positions}),
        history=TradingHistory(),
        **more,
    )


async def cycle(
    model: Any, occasion: Turn, market: Market, preset: Preset = DECISION_ONLY
) -> tuple[CycleResult, list[Event], list[AnswerRecord]]:
    events: list[Event] = []
    answers: list[AnswerRecord] = []
    asker = Asker({"default": model}, {}, answers.append, lambda asked, text: None)
    verdict = await Cycle(preset, asker, market.calendars, events.append).run(occasion)
    return verdict, events, answers


def market(**closes: list[Any]) -> Market:
    return market_of({s: bars(s, DAYS[-len(c) :], c) for s, c in closes.items()})


@pytest.mark.parametrize(
    ("closes", "streak"),
    [([10, 11, 12, 13], 3), ([10, 11, 12, 12], 0), ([13, 10, 11, 12], 2), ([10], 0), ([12, 11, 10], 0)],
)
async def test_the_streak_of_gains_that_the_decision_reads(closes: list[int], streak: int) -> None:
    model = ScriptedModel(hold)
    known = market(AAA=closes)
    await cycle(model, turn(known), known)

    (request,) = model.requests
    assert isinstance(request.view, DecisionView)
    assert request.view.holding.gains_in_a_row == streak


async def test_a_streak_does_not_break_at_a_split() -> None:
    known = market(AAA=[100, 102, 104, 53])
    known = replace(known, actions={"AAA": [split("AAA", SESSION, "2")]})
    model = ScriptedModel(hold)
    await cycle(model, turn(known), known)

    assert model.requests[0].view.holding.gains_in_a_row == 3


async def test_the_decision_reads_the_portfolio_as_it_stands() -> None:
    known = market(AAA=[100, 120], BBB=[50, 40])
    held = Portfolio(Decimal(7000), {"AAA": Position(Decimal(100), Decimal(100))})
    model = ScriptedModel(hold)
    await cycle(model, turn(known, portfolio=held, reserved=Decimal(500)), known)

    holdings = {r.symbol: r.view.holding for r in model.requests}
    assert holdings["AAA"].shares == 100
    assert (holdings["AAA"].price, holdings["AAA"].average_cost, holdings["AAA"].value) == (120, 100, 19_000)
    assert (holdings["AAA"].unrealized, holdings["AAA"].unrealized_fraction) == (2000, Decimal("0.2"))
    # What open buys may still take is not there to be spent.
    assert (holdings["AAA"].cash, holdings["AAA"].cash_fraction) == (6500, Decimal(6500) / 19_000)
    assert (holdings["BBB"].shares, holdings["BBB"].average_cost, holdings["BBB"].unrealized_fraction) == (0, 0, 0)


async def test_reserved_cash_and_queued_shares_are_kept_out_of_new_orders() -> None:
    known = market(AAA=[100, 100], BBB=[100, 100])
    held = Portfolio(Decimal(15_000), {"BBB": Position(Decimal(850), Decimal(100))})

    def script(request: ModelRequest) -> Any:
        if request.symbol == "AAA":
            return trade(request, "BUY", 10, "strong uptrend")
        return trade(request, "SELL", 10, "reversal")

    occasion = turn(known, portfolio=held, reserved=Decimal(3000), queued={"BBB": Decimal(800)})
    verdict, _, _ = await cycle(ScriptedModel(script), occasion, known)

    buy, sell = verdict.orders
    # 15,000 less 3,000 reserved, less the floor of 10,000.
    assert buy.notional == 2000
    assert sell.quantity == 50


async def test_steps_run_in_the_order_of_the_story() -> None:
    known = market(AAA=[100 + n % 7 for n in range(60)])
    verdict, events, answers = await cycle(
        ScriptedModel(lambda r: hold(r) if r.purpose == "decision" else None), turn(known), known, FINVISION
    )

    assert [e.step for e in events if isinstance(e, StepStarted)] == ["chart", "decision"]
    assert [a.agent for a in answers] == ["chart", "decision"]
    made = [r.decision for r in events if isinstance(r, DecisionMade)]
    assert tuple(made) == verdict.decisions
    assert [(d.action, d.size, d.key.session) for d in made] == [(Action.HOLD, 0, SESSION)]


async def test_what_is_switched_off_or_missing_is_told_to_the_decision() -> None:
    known = market(AAA=[100] * 60)
    model = ScriptedModel(lambda r: hold(r) if r.purpose == "decision" else None)
    await cycle(model, turn(known), known, FINVISION.without(("chart",)))

    absent = " / ".join(model.requests[-1].view.absent)
    for part in ("news: there was none", "chart: switched off", "short-term reflection: there is no past yet"):
        assert part in absent


async def test_cuts_of_rule_and_of_limits_stand_in_order_on_the_decision() -> None:
    known = market(AAA=[100, 100])
    held = Portfolio(Decimal(10_800), {"AAA": Position(Decimal(300), Decimal(100))})
    known_value = Decimal(40_800)
    script = ScriptedModel(lambda r: trade(r, "BUY", 2, "strong uptrend"))
    verdict, _, _ = await cycle(script, turn(known, portfolio=held), known)

    (decision,) = verdict.decisions
    assert [(c.rule, c.asked, c.allowed) for c in decision.cuts] == [("band", 2, 5)]
    assert decision.size == 5
    assert verdict.orders[0].notional == known_value * 5 / 100
    assert verdict.orders[0].reason == "strong uptrend"

    low = Portfolio(Decimal(3500), {"AAA": Position(Decimal(300), Decimal(100))})
    verdict, _, _ = await cycle(script, turn(known, portfolio=low), known)
    (decision,) = verdict.decisions
    assert (decision.action, decision.size, verdict.orders) == (Action.HOLD, 0, ())
    assert decision.proposal.action is Action.BUY
    assert [(c.rule, c.asked, c.allowed) for c in decision.cuts] == [("band", 2, 5), ("cash floor", 5, 0)]
    assert "stays cash" in decision.cut


async def test_made_up_figures_are_marked() -> None:
    known = market(AAA=[100, 123.45])
    script = ScriptedModel(
        lambda r: trade(r, "HOLD", 0, "uncertainty", explanation="At 123.45 it is dear; 987.65 is the goal.")
    )
    verdict, _, _ = await cycle(script, turn(known), known)

    assert verdict.decisions[0].unresolved_figures == ("987.65",)


@pytest.mark.parametrize(("error", "answered"), [(ConfigError, True), (InvariantBroken, False)])
async def test_where_one_raises_only_an_answer_that_is_paid_for_is_waited_for(
    error: type[PaperdeskError], answered: bool
) -> None:
    known = market(AAA=[1, 2], BBB=[1, 2])
    asked, failed, ended = asyncio.Event(), asyncio.Event(), list[str]()

    class Model:
        spec = label = "m"
        sees = True

        async def answer(self, request: ModelRequest, on_delta: object = None) -> ModelResult:
            if request.symbol == "AAA":
                await asked.wait()
                failed.set()
                raise error("it takes no temperature")
            asked.set()
            try:
                await failed.wait()
                for _ in range(100 if answered else 100_000):  # a cancellation takes a few turns of the loop
                    await asyncio.sleep(0)
                ended.append("answered")
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return ModelResult(model="m", answer=hold(request))

    with pytest.raises(error):
        await cycle(Model(), turn(known), known)
    assert ended == ["answered" if answered else "cancelled"]
    assert len(asyncio.all_tasks()) == 1


class Tape:
    """A market that grows a close at a time while it is read (MarketAsOf): it has prices, and nothing else."""

    def __init__(self, symbol: str) -> None:
        self.symbols = (symbol,)
        self._closes: dict[date, int] = {}

    def append(self, session: date, close: int) -> None:
        self._closes[session] = close

    @property
    def now(self) -> datetime:
        return decision_time(WEEKDAYS, max(self._closes))

    def last_session(self, symbol: str) -> date:
        return max(self._closes)

    def close(self, symbol: str) -> Decimal:
        return Decimal(self._closes[max(self._closes)])

    def count(self, symbol: str) -> int:
        return len(self._closes)

    def bars(self, symbol: str, count: int) -> PriceHistory:
        last = list(self._closes)[-count:]
        return bars(symbol, last, [self._closes[session] for session in last])

    def adjusted(self, symbol: str, count: int) -> PriceHistory:
        return self.bars(symbol, count)

    def hindsight(self, symbol: str, count: int, until: datetime) -> PriceHistory:
        return self.bars(symbol, count)

    def news(self, symbol: str, after: datetime) -> Sequence[NewsItem]:
        return ()

    def filings(self, symbol: str, after: datetime) -> Sequence[Filing]:
        return ()

    def commentary(self, after: datetime) -> Sequence[NewsItem]:
        return ()

    def macro(self, after: datetime | None) -> Sequence[MacroRelease]:
        return ()

    def peek(self, symbol: str) -> Decimal | None:
        return None


async def test_a_market_that_grows_is_read_like_one_that_is_loaded() -> None:
    closes = [100 + n % 7 + n for n in range(len(DAYS))]
    loaded, tape = market(AAA=closes), Tape("AAA")
    for session, close in zip(DAYS, closes, strict=True):
        tape.append(session, close)
        if session in DAYS[-3:]:
            arrays = turn(loaded, session)
            growing, model = replace(arrays, market=tape), OfflineModel()
            (expected, _, _), (found, _, _) = (
                await cycle(model, arrays, loaded, FINVISION),
                await cycle(model, growing, loaded, FINVISION),
            )
            assert found == expected
            assert not found.decisions[0].abstained
