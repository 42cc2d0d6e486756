"""A preset of the cycle at the table: every morning is a session of its desk, on the arena's public record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine.arena.public_data import PublicData, session_of
from engine.arena.seat_account import SeatAccount
from engine.arena.targets import SeatAnswer, SeatDecision
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, TradingHistory
from engine.domain.decision import DESK, Decision
from engine.domain.model_call import AnswerRecord
from engine.domain.order import Side
from engine.market.trading_hours import FIRST_SESSION, decision_time
from engine.messages.answer_text import answer_text
from engine.preset import Preset
from engine.session.context import Moment, RunState, SessionContext
from engine.session.loop import run_session

UNFED = {
    "filing-summary": "filings",
    "macro": "macro series",
    "commentary": "commentary of funds",
}
"""Steps that read what an arena does not have."""


_BEGIN = datetime.combine(FIRST_SESSION, datetime.min.time(), tzinfo=UTC)


def unfed(preset: Preset) -> str:
    """The steps of a preset that find nothing to read in an arena, in one line; empty where there are none."""
    steps = [step for step in preset.steps if step in UNFED]
    lacks = ", ".join(UNFED[step] for step in steps)
    return f"an arena has no {lacks}: nothing to read for {', '.join(steps)}" if steps else ""


@dataclass(slots=True, kw_only=True)
class CycleDecider:
    """The desk of a preset at the table (Decider).

    run: id of the arena.
    name: of the seat.
    cycle: the preset's round of decisions.
    answers: what its models have answered since the last decision.
    """

    run: str
    name: str
    cycle: Cycle
    answers: list[AnswerRecord]
    _clock: BacktestClock = field(default_factory=lambda: BacktestClock(_BEGIN))
    _state: RunState = field(default_factory=lambda: RunState(TradingHistory()))

    async def decide(self, day: int, data: PublicData, account: SeatAccount) -> Sequence[SeatDecision]:
        """Settle the day before, learn from it, and decide on every stock. Raises what the models raise."""
        calendar, read = data.calendar, session_of(day - 1)
        now, before = decision_time(calendar, read), decision_time(calendar, session_of(day - 2))
        self._clock.advance(now)
        context = SessionContext(
            run=self.run,
            desk=self.name,
            symbols=tuple(data.market.histories),
            market=data.market,
            calendar=calendar,
            cycle=self.cycle,
            venue=account,
            clock=self._clock,
        )
        done = await run_session(context, Moment(session=read, now=now, news_after=before), self._state)
        self._state = done.state
        answers, self.answers[:] = tuple(self.answers), ()
        return tuple(_decisions(day, done.result, answers))


def _decisions(day: int, result: CycleResult, answers: Sequence[AnswerRecord]) -> Iterator[SeatDecision]:
    ordered = {one.symbol: int(one.quantity or 0) * (1 if one.side is Side.BUY else -1) for one in result.orders}
    for made in result.decisions:
        yield SeatDecision(
            day=day,
            stock=made.key.symbol,
            owner=made.key.owner,
            action=made.action,
            size=made.size,
            shares=ordered.get(made.key.symbol, 0),
            reason=made.reason,
            cut=made.cut,
            answers=tuple(_answers(made, answers)),
        )


def _answers(made: Decision, answers: Sequence[AnswerRecord]) -> Iterator[SeatAnswer]:
    """The answers that a decision rests on: its owner's, and everybody's where opinions were combined."""
    for one in answers:
        key = one.key
        if key.symbol == made.key.symbol and made.key.owner in (key.owner, DESK) and one.outcome != "sent back":
            text = one.reason if one.answer is None else answer_text(one.answer)
            yield SeatAnswer(one.step, key.owner, text)
