"""The daily run: settle what has passed, decide for the last completed session, hand the orders over; once.

A run that was killed goes on where it stopped: closed sessions are closed, decisions that stand are not asked for
again, orders that were handed over are not handed over twice. Source: papers.md D2, D4.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.market import Symbol
from engine.errors import StaleData, UsageError
from engine.market.trading_hours import decision_time, previous_session, session_to_decide
from engine.session.context import DeskRunResult, SessionContext
from engine.session.earlier_runs import close_abandoned, decided_until, skip_missed
from engine.session.inputs import parts_of
from engine.session.outcomes import learn
from engine.session.recorder import JournalRecorder
from engine.session.running import begin, decide_and_trade, end, value_of


async def run_daily(setting: SessionContext) -> DeskRunResult:
    """One daily run. Raises UsageError for a session that the books, or the time, have passed, StaleData where a
    symbol's bars do not reach the session, and what the venue raises: BooksDisagree, TryAgainLater, NetworkError,
    CredentialsRefused, ConfigError."""
    _check(setting)
    close_abandoned(setting)
    skipped = skip_missed(setting)
    begin(setting)
    settled = await setting.venue.settle(setting.session)
    notebook = learn(setting, settled)
    known = setting.market.at(decision_time(setting.calendar, setting.session))

    async def decide() -> CycleResult:
        return await _decide(setting, notebook, known.close)

    verdict, handed = await decide_and_trade(setting, decide, known.close)
    books = setting.venue.books
    assert books is not None  # settle() opens them
    return end(setting, settled, verdict, handed, books.value, skipped)


def _check(setting: SessionContext) -> None:
    session, books = setting.session, setting.venue.books
    if books is not None and books.session > session:
        raise UsageError(
            f"the books of {setting.desk} are closed up to {books.session}: {session} can no longer be decided"
        )
    if setting.venue.real_time:
        latest = session_to_decide(setting.calendar, setting.symbols, None, setting.wall.now())
        if latest != session:
            raise UsageError(
                f"--session {session} has passed at the broker: {latest} is the last completed session, and the only "
                "one that can be traded"
            )
    for symbol in setting.symbols:
        history = setting.market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            ends = f"end on {history.session(-1)}" if len(history) else "are none"
            raise StaleData(
                f"{symbol}: its bars {ends}, and {session} is to be decided: fetch newer ones and run again"
            )


async def _decide(setting: SessionContext, notebook: TradingHistory, close: Callable[[Symbol], Decimal]) -> CycleResult:
    session, market, venue = setting.session, setting.market, setting.venue
    before = previous_session(setting.calendar, session)
    turn = Turn(
        run=setting.run,
        desk=setting.desk,
        session=session,
        number=setting.number,
        symbols=setting.symbols,
        market=market.at(decision_time(setting.calendar, session)),
        news_after=decided_until(setting, before),
        portfolio=venue.portfolio,
        value=value_of(setting, close),
        notebook=notebook,
        reserved=venue.means.reserved,
        queued=venue.means.queued,
        step=setting.calendar.number(session),
        whole_shares=await venue.whole_shares(setting.symbols),
    )
    verdict = await setting.cycle.run(turn)
    with setting.journal.together():
        setting.journal.inputs(setting.run, turn.number, parts_of(turn, market, setting.cycle.bars))
        JournalRecorder(setting.journal, setting.run, setting.desk, setting.wall).decided(verdict)
    return verdict
