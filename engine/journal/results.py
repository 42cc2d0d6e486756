"""Values that are put together from many rows: a backtest's result and a decision's trail."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from engine.domain.decision import DecisionKey
from engine.domain.order import is_own
from engine.domain.run import Result, RunKind, RunOutcome, RunPart
from engine.errors import MissingData
from engine.journal.entries import Trail
from engine.journal.reader import JournalReader
from engine.journal.schema import TEST, WARM_UP


def result(reader: JournalReader, run: str) -> Result:
    """The result of a backtest, equal to the one that was written. Raises MissingData for a run that is no backtest or
    left no test."""
    entry, started = reader.run(run), reader.initial_values(run)
    if entry.spec is None or TEST not in started:
        raise MissingData(f"the run {run} in {reader.path} has no result: it is no backtest, or never reached its test")
    parts = {
        part: RunPart(
            initial_value=initial_value,
            equity=reader.equity(run, part),
            fills=reader.fills(run, part=part),
            cash_flows=reader.cash_flows(run, part),
            decisions=reader.decisions(run, part=part),
            opinions=reader.opinions(run, part=part),
            books=tuple(point for point in reader.equity(run, part, book=None) if point.book),
            book_fills=tuple(fill for fill in reader.fills(run, part=part, book=None) if fill.book),
        )
        for part, initial_value in started.items()
    }
    return Result(
        spec=entry.spec,
        test=parts[TEST],
        warm_up=parts.get(WARM_UP),
        model=entry.model,
        dropped=reader.dropped(run),
        notes=tuple(dict.fromkeys(note.text for note in reader.notes(run))),
        interrupted=entry.outcome is RunOutcome.INTERRUPTED,
        extra=dict(entry.extra),
    )


def trail(reader: JournalReader, key: DecisionKey) -> Trail:
    """The way to a decision, and its outcome. Raises MissingData where there is no such decision.

    A desk settles a decision in a later run than the one that took it, so outcome and closes are looked for in all
    runs of its journal; a backtest is its own world. What a session earned is the outcome of its last decision alone.
    """
    found = reader.decisions(key.run, key.symbol, key.session, key.session)
    decision = next((one for one in found if one.key == key), None)
    if decision is None:
        raise MissingData(
            f"no decision for {key.symbol} on {key.session} (run {key.run}, cycle {key.cycle}, owner {key.owner}) in "
            f"{reader.path}: paperdesk decisions lists those that were taken"
        )
    orders = tuple(
        entry
        for entry in reader.orders(symbol=key.symbol, session=key.session)
        if is_own(entry.order.id)
        or (entry.run == key.run and entry.cycle == key.cycle and entry.order.book in ("", decision.book))
    )
    opinions = reader.opinions(key.run, key.symbol, key.session, key.session)
    opinions = tuple(opinion for opinion in opinions if opinion.key.cycle == key.cycle)
    owners = [opinion.key for opinion in decision.based_on(opinions)] or [key]
    world = key.run if reader.run(key.run).kind is RunKind.BACKTEST else None
    closes: dict[date, Decimal] = {}
    for holding in reader.holdings(world, key.symbol, first=key.session):
        if holding.price is not None:
            closes[holding.session] = holding.price
    made = reader.decisions(world, key.symbol, key.session, key.session)
    overtaken = any(one.key.owner == key.owner and one.key.cycle > key.cycle for one in made)
    outcomes = [
        outcome
        for outcome in (() if overtaken else reader.outcomes(world, key.symbol, key.owner))
        if outcome.decision_session == key.session
    ]
    ordered = {entry.order.id for entry in reader.orders()}
    closing = [row.session for row in outcomes[-1:]]
    return Trail(
        decision=decision,
        answers=tuple(answer for owner in owners for answer in reader.answers(owner)),
        orders=orders,
        moves=tuple(move for order in orders for move in reader.order_moves(order.order.id)),
        fills=tuple(fill for order in orders for fill in reader.fills(order_id=order.order.id)),
        undecided=tuple(
            fill
            for fill in (reader.fills(world) if closing else ())
            if fill.symbol == key.symbol and fill.session in closing and fill.order_id not in ordered
        ),
        outcome=outcomes[-1] if outcomes else None,
        closes=tuple(sorted(closes.items())),
        recalled=tuple(one for owner in owners for one in reader.recalled(owner)),
        opinions=opinions,
        unanswered=tuple(call for owner in owners for call in reader.unanswered(owner)),
        debate=next(
            (
                one
                for one in reader.debates(key.run, key.symbol, key.session, key.session)
                if one.key.cycle == key.cycle
            ),
            None,
        ),
    )
