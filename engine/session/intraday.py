"""A cycle within a session: the market as it is known by now, at the prices of this moment; orders fill at once.

It rests on the last completed session, whose own cycle comes first, and is done once: one that was killed goes on with
what it saw, asks nobody again, and sends no order twice. A later cycle takes the place of what earlier ones meant to
trade and have not sent. Source: TradingGPT §3 [G7].
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.market import ActionKind, Symbol
from engine.domain.order import OrderState
from engine.errors import NetworkError, StaleData, TryAgainLater
from engine.execution.controls import approvals
from engine.execution.submission import SubmissionResult
from engine.journal.reader import JournalReader
from engine.market.as_of import last_opened
from engine.market.trading_hours import decision_time, session_after, session_to_decide, step_at
from engine.messages.events import Noticed
from engine.ports import Calendar
from engine.session.context import DeskRunResult, SessionContext
from engine.session.earlier_runs import close_abandoned, decided_until
from engine.session.inputs import TurnInputs, parts_of, seen_in
from engine.session.outcomes import filled, learn
from engine.session.recorder import JournalRecorder
from engine.session.running import begin, decide_and_trade, end, value_of

Ask = Callable[[Sequence[Symbol]], Awaitable[Mapping[Symbol, Decimal]]]
"""The prices of this moment, of those symbols that have one."""

TAKEN = (OrderState.ACKNOWLEDGED, OrderState.PARTIALLY_FILLED, OrderState.FILLED)
FILLS_WITHIN = 1.0
"""Seconds in which an order fills while the market is open, as a rule."""
GOES_ON = timedelta(minutes=15)
"""How old what a killed cycle saw may be when it goes on with it."""


async def run_within(setting: SessionContext, ask: Ask) -> DeskRunResult:
    """One cycle within the session after `setting.session`. Raises StaleData where that is not open at this moment, or
    what was seen is too old to go on with, and what the venue raises."""
    until = _open_until(setting)
    close_abandoned(setting)
    begin(setting)
    settled = await setting.venue.settle(setting.session)
    notebook = learn(setting, settled)
    seen = _seen_before(setting)
    turn = await _new_turn(setting, notebook, ask) if seen is None else _old_turn(setting, notebook, seen)
    if seen is None:
        setting.journal.inputs(setting.run, turn.number, parts_of(turn, setting.market, setting.cycle.bars))

    async def decide() -> CycleResult:
        if setting.wall.now() - turn.market.now > GOES_ON:
            raise StaleData(
                f"cycle {setting.number} after {setting.session} was cut short at {turn.market.now:%H:%M} UTC: nothing "
                "is decided on what was so then"
            )
        return await _decide(setting, turn)

    verdict, handed = await decide_and_trade(setting, decide, turn.price, until)
    await _book(setting, handed)
    with JournalReader(setting.journal.path) as reader:
        fills = reader.fills(run=setting.run)
    for fill in fills:
        setting.publish(filled(setting, fill))
    return replace(end(setting, settled, verdict, handed, value_of(setting, turn.price)), fills=fills)


async def _book(setting: SessionContext, handed: SubmissionResult) -> None:
    """Books what has filled by now, so that the journal says how the desk stands; the rest is the next run's."""
    if any(order.state in TAKEN for order in handed.orders):
        await setting.pause(FILLS_WITHIN)
        with suppress(TryAgainLater, NetworkError):
            await setting.venue.settle(setting.session)


def _open_until(setting: SessionContext) -> datetime:
    """When the session closes that is open now."""
    now, calendar, session = setting.wall.now(), setting.calendar, setting.session
    following = session_after(calendar, session)
    opens, closes = calendar.opens_at(following), calendar.closes_at(following)
    if not opens <= now < closes or session_to_decide(calendar, setting.symbols, None, now) != session:
        raise StaleData(f"the session after {session} is not open at {now:%Y-%m-%d %H:%M} UTC: no cycle within it")
    return closes


def _seen_before(setting: SessionContext) -> TurnInputs | None:
    """What this very cycle saw before it was killed."""
    with JournalReader(setting.journal.path) as reader:
        inputs = reader.inputs(setting.run, setting.number)
    calendars = setting.market.calendars

    def calendar_of(symbol: Symbol) -> Calendar:
        return calendars.get(symbol, setting.calendar)

    return seen_in(inputs, calendar_of) if inputs else None


async def _new_turn(setting: SessionContext, notebook: TradingHistory, ask: Ask) -> Turn:
    session, venue, calendar = setting.session, setting.venue, setting.calendar
    wanted = tuple(dict.fromkeys((*setting.symbols, *venue.portfolio.positions)))
    split = {symbol for symbol in wanted if _splits(setting, symbol)}
    prices = await ask([symbol for symbol in wanted if symbol not in split])
    for symbol in wanted:
        if symbol in split:
            _warn(setting, f"{symbol} splits in this session: it is decided again when its close is known")
        elif symbol not in prices:
            _warn(setting, f"{symbol} has no price at this moment: its last close is taken")
    now = setting.wall.now()
    turn = Turn(
        run=setting.run,
        desk=setting.desk,
        session=session,
        number=setting.number,
        symbols=tuple(symbol for symbol in setting.symbols if symbol not in split),
        market=setting.market.at(now),
        news_after=decided_until(setting, session),
        portfolio=venue.portfolio,
        value=Decimal(0),
        notebook=notebook,
        reserved=venue.means.reserved,
        queued=venue.means.queued,
        step=step_at(calendar, session, now),
        whole_shares=await venue.whole_shares(setting.symbols),
        prices=prices,
    )
    return replace(turn, value=value_of(setting, turn.price))


def _old_turn(setting: SessionContext, notebook: TradingHistory, seen: TurnInputs) -> Turn:
    """The turn as it was: the same questions have the same answers, which are paid already."""
    session, now = setting.session, seen.now or decision_time(setting.calendar, setting.session)
    turn = Turn(
        run=setting.run,
        desk=setting.desk,
        session=session,
        number=setting.number,
        symbols=seen.symbols,
        market=seen.market.at(now),
        news_after=seen.news_after,
        portfolio=seen.portfolio,
        value=Decimal(0),
        notebook=notebook,
        reserved=seen.reserved,
        queued=seen.queued,
        step=step_at(setting.calendar, session, now),
        whole_shares=seen.whole_shares,
        prices=seen.prices,
    )
    return replace(turn, value=seen.portfolio.value({s: turn.price(s) for s in seen.portfolio.positions}))


async def _decide(setting: SessionContext, turn: Turn) -> CycleResult:
    verdict = await setting.cycle.run(turn)
    with setting.journal.together():
        _take_the_place(setting)
        JournalRecorder(setting.journal, setting.run, setting.desk, setting.wall).decided(verdict, setting.number)
    return verdict


def _take_the_place(setting: SessionContext) -> None:
    """Ends what earlier cycles of the session meant to trade, have not sent, and nobody has approved."""
    with JournalReader(setting.journal.path) as reader:
        waiting = reader.orders(session=setting.session, open_only=True)
        words = approvals(reader)
    for entry in waiting:
        order, word = entry.order, words.get(entry.order.id)
        if entry.cycle >= setting.number or order.state is not OrderState.INTENDED or (word and word.approved):
            continue
        detail = f"cycle {setting.number} of the session has decided since"
        setting.journal.order_moved(order.moved(OrderState.EXPIRED), setting.wall.now(), detail=detail)


def _splits(setting: SessionContext, symbol: Symbol) -> bool:
    """Whether shares are counted anew since the last close: bars and books are on the basis of before until then."""
    calendar = setting.market.calendars.get(symbol, setting.calendar)
    now = setting.wall.now()
    closed, opened = calendar.last_closed(now), last_opened(calendar, now)
    known = setting.market.actions.get(symbol) or ()
    return any(one.kind is ActionKind.SPLIT and closed < one.ex_date <= opened for one in known)


def _warn(setting: SessionContext, text: str) -> None:
    setting.publish(Noticed(setting.run, setting.wall.now(), "warning", text))
