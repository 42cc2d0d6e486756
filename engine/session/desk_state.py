"""The state of a desk before a run, folded once from its journal."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

from engine.cycle.turn import TradingHistory
from engine.execution.venue import SettledSession
from engine.journal.reader import JournalReader
from engine.session.context import RunState


def desk_state(reader: JournalReader) -> RunState:
    """Decisions and outcomes of all runs so far; the decisions that wait for their outcome; and the sessions that were
    closed since, where an earlier run was killed between settling them and learning."""
    decided = sorted(reader.decisions(), key=lambda made: made.key.cycle)
    history = TradingHistory().with_outcomes(reader.outcomes()).with_opinions(made.opinion for made in decided)
    known = {(row.decision_session, row.symbol, row.owner) for rows in history.outcomes.values() for row in rows}
    last = {(made.key.session, made.key.symbol, made.key.owner): made for made in decided}
    awaiting = tuple(made for key, made in last.items() if key not in known)
    return RunState(history, awaiting, _unlearned(reader, {made.key.session for made in awaiting}))


def _unlearned(reader: JournalReader, awaiting: set[date]) -> tuple[SettledSession, ...]:
    stretches = [pair for pair in pairwise(reader.equity()) if pair[0].session in awaiting]
    if not stretches:
        return ()
    fills, flows, adoptions = reader.fills(), reader.cash_flows(), reader.adoptions()
    return tuple(
        SettledSession(
            before,
            after,
            tuple(one for one in fills if before.session < one.session <= after.session),
            tuple(one for one in flows if before.session < one.session <= after.session),
            tuple(one for one in adoptions if before.session < one.session <= after.session),
        )
        for before, after in stretches
    )
