"""What earlier decisions earned, worked out from the books as soon as their session is closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from engine.account.time_weighted import EXTERNAL, NetDeposit, brought_in
from engine.cycle.turn import TradingHistory
from engine.domain.order import Fill
from engine.domain.portfolio import ZERO
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.execution.venue import SettledSession
from engine.journal.reader import JournalReader
from engine.messages.events import OrderFilled, SessionSettled
from engine.session.context import SessionContext
from engine.session.reward import known_books, outcomes


def learn(setting: SessionContext, settled: Sequence[SettledSession]) -> TradingHistory:
    """What earlier decisions earned, the sessions that were just settled included."""
    notebook = TradingHistory()
    with JournalReader(setting.journal.path) as reader:
        notebook.remember(reader.outcomes())
        decided = reader.decisions()
        adopted, own = reader.adoptions(), frozenset(reader.fills(run=setting.run))
    notebook.decided(sorted(decided, key=lambda made: made.key.cycle))
    for one in settled:
        for fill in one.fills:
            if fill in own:  # others were told of by the cycle within the session that booked them
                setting.publish(filled(setting, fill))
        _publish_books(setting, one, adopted)
    known = {(row.decision_session, row.symbol, row.owner) for rows in notebook.outcomes.values() for row in rows}
    # A session's reward is its last decision's: the cycles before it were overtaken.
    last = {(d.key.session, d.key.symbol, d.key.owner): d for d in sorted(decided, key=lambda d: d.key.cycle)}
    waiting = [d for key, d in last.items() if key not in known]
    # All closes, not only those that were just settled: a run may have been killed between settling and this.
    with JournalReader(setting.journal.path) as reader:
        points, fills, flows = reader.equity(), reader.fills(), reader.cash_flows()
    for before, after in pairwise(points):
        due = [d for d in waiting if d.key.session == before.session]
        if not due:
            continue
        books = _as_seen(setting, before), _as_seen(setting, after)
        moved = [f for f in flows if before.session < f.session <= after.session]
        taken = [a for a in adopted if before.session < a.session <= after.session]
        rows = outcomes(
            due,
            *books,
            [f for f in fills if before.session < f.session <= after.session],
            [*(f for f in moved if f.kind != EXTERNAL), *_paid_for(brought_in(books, moved, taken))],
            notebook.outcomes,
        )
        setting.cycle.learn(notebook, rows)
        for row in rows:
            setting.journal.outcome(setting.run, row)
    return notebook


def _as_seen(setting: SessionContext, books: EquityPoint) -> EquityPoint:
    return known_books(setting.market, setting.calendar, setting.symbols, books.session, books.portfolio, books.prices)


def filled(setting: SessionContext, fill: Fill) -> OrderFilled:
    """That a trade happened, as an event of the run that has booked it."""
    now, side = setting.wall.now(), fill.side.value
    return OrderFilled(
        run=setting.run,
        time=now,
        order_id=fill.order_id,
        session=fill.session,
        symbol=fill.symbol,
        side=side,
        quantity=fill.quantity,
        price=fill.price,
        fee=fill.fee,
    )


def _publish_books(setting: SessionContext, settled: SettledSession, adopted: Iterable[Adoption]) -> None:
    before, books = settled.before, settled.after
    held = tuple((s, p.quantity, books.prices[s]) for s, p in books.portfolio.positions.items())
    taken = [one for one in adopted if before.session < one.session <= books.session]
    brought = sum((one.amount for one in brought_in((before, books), settled.cash_flows, taken)), ZERO)
    cash, now = books.portfolio.cash, setting.wall.now()
    setting.publish(
        SessionSettled(
            run=setting.run,
            time=now,
            session=books.session,
            value=books.value,
            cash=cash,
            positions=held,
            brought=brought,
        )
    )


def _paid_for(brought: Iterable[NetDeposit]) -> list[CashFlow]:
    """Shares that a person brought in or took over were not earned: as if they had been paid for at the close."""
    return [
        CashFlow(session=one.session, symbol=one.symbol, kind=EXTERNAL, amount=-one.amount)
        for one in brought
        if one.symbol
    ]
