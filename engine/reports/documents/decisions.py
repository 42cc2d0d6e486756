"""Decisions and orders, a row each, as `paperdesk decisions` and `paperdesk orders` print them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.domain.decision import Decision, DecisionKey, Opinion
from engine.domain.market import Symbol
from engine.domain.order import Fill
from engine.journal.schema import WARM_UP
from engine.reports.documents import row_json
from engine.reports.documents.closes import HORIZONS, SymbolCloses
from engine.reports.documents.reasons import Voice, otherwise, voices_of
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changes_by_run

if TYPE_CHECKING:
    from engine.market.as_of import MarketAsOf

ClosesOf = Callable[[Records, Sequence[Symbol]], "MarketAsOf | None"]
"""The prices of symbols up to the last close of some records."""


def decisions_document(
    records: Records,
    *,
    symbol: str | None = None,
    first: date | None = None,
    until: date | None = None,
    action: str | None = None,
    warm_up: bool = False,
    last: int = 0,
) -> Row:
    """Decisions from session `first` to `until`, in the order in which they were taken; `last` keeps that many (0:
    all), `count` is how many fit; `warm_up` takes those of a backtest's warm-up instead of its test. `changed` has, by
    run, the settings that were not those of the run before."""
    if records.reader is None:
        return {**records.head, "count": 0, "decisions": [], "changed": {}}
    part = WARM_UP if warm_up and records.is_backtest else records.part
    made = records.reader.decisions(records.run, symbol and symbol.upper(), first, until, part)
    if action is not None:
        made = tuple(one for one in made if one.action.value == action.upper())
    shown = made[-last:]
    opinions = records.reader.opinions(records.run, symbol and symbol.upper(), first, until, part) if shown else ()
    rows = [
        {**row, "rule": one.proposal.rule, "run": one.key.run, "cycle": one.key.cycle}
        for row, one in zip(row_json.decisions(shown, opinions), shown, strict=True)
    ]
    runs = {one.key.run for one in shown}
    changed = {} if records.is_backtest else changes_by_run(records.reader, runs)
    return {**records.head, "count": len(made), "decisions": rows, "changed": changed}


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedDecision:
    """A decision and what followed.

    changes: of its symbol's close after 1, 5 and 20 of the symbol's own sessions, as fractions; None where not known
        yet.
    reward: change of the portfolio's value by the symbol until the next session's close, as a fraction; None where not
        known, and for all but the last decision of a session.
    otherwise, voices: the number that took a side that was not the decision's, of those that took one: owners where
        there are several, else agents.
    """

    decision: Decision
    changes: tuple[float | None, ...]
    reward: float | None = None
    otherwise: int = 0
    voices: int = 0


def followed_decisions(records: Records, closes_of: ClosesOf) -> tuple[FollowedDecision, ...]:
    """The decisions of the records, newest session first; where the market lacks a symbol, its closes come from the
    books. Takes as long as the journal is long."""
    if records.reader is None:
        return ()
    decisions = latest_first(records)
    symbols = tuple(dict.fromkeys(made.key.symbol for made in decisions))
    market = closes_of(records, symbols)
    closes = {symbol: symbol_closes(records, market, symbol) for symbol in symbols}
    rewards, voices = _rewards(records, decisions), _voices(records)
    followed = []
    for made in decisions:
        heard = voices(made)
        one = FollowedDecision(
            decision=made,
            changes=_changes(closes[made.key.symbol], made.key.session),
            reward=rewards.get(made.key),
            otherwise=len(otherwise(made, heard)),
            voices=len(heard),
        )
        followed.append(one)
    return tuple(followed)


def latest_first(records: Records) -> tuple[Decision, ...]:
    """The decisions of the records, newest session first."""
    made = () if records.reader is None else records.reader.decisions(records.run)
    # The journal has each session's symbols in their order: only the sessions are turned around.
    return tuple(sorted(made, key=lambda one: one.key.session, reverse=True))


def _rewards(records: Records, decisions: Sequence[Decision]) -> Mapping[DecisionKey, float]:
    """Rewards by decision: that of a session belongs to the last decision of it alone."""
    last = {(one.key.session, one.key.symbol, one.key.owner): one.key for one in decisions}
    earned = (
        (last.get((one.decision_session, one.symbol, one.owner)), one)
        for one in records.required.outcomes(records.world)
    )
    return {key: float(one.reward) for key, one in earned if key is not None}


def _voices(records: Records) -> Callable[[Decision], Sequence[Voice]]:
    """The voices about each decision, read at once."""
    opinions: defaultdict[tuple[object, ...], list[Opinion]] = defaultdict(list)
    for one in records.required.opinions(records.run):
        opinions[_cycle(one.key)].append(one)
    answers: defaultdict[tuple[object, ...], list[tuple[str, str, Mapping[str, Any]]]] = defaultdict(list)
    for said in records.required.stated_answers(records.run):
        answers[_cycle(said.key)].append((said.key.owner, said.agent, said.answer))
    return lambda made: voices_of(made, opinions[_cycle(made.key)], answers[_cycle(made.key)])


def _cycle(key: DecisionKey) -> tuple[object, ...]:
    return key.run, key.session, key.cycle, key.symbol


def symbol_closes(records: Records, market: MarketAsOf | None, symbol: str) -> SymbolCloses:
    """The closes of a symbol by a market, or by the books where the market lacks it."""
    held = records.required.holdings(records.run, symbol)
    return SymbolCloses.of(market, symbol, ((one.session, one.price) for one in held if one.price is not None))


def _changes(closes: SymbolCloses, session: date) -> tuple[float | None, ...]:
    changes = {one.sessions: one.change for one in closes.after(session)}
    return tuple(changes.get(sessions) for sessions in HORIZONS)


def orders_document(records: Records, *, symbol: str | None = None, open_only: bool = False, last: int = 0) -> Row:
    """Orders by decision session; `last` keeps that many (0: all), `count` is how many fit."""
    if records.reader is None:
        return {**records.head, "count": 0, "orders": []}
    entries = records.reader.orders(records.run, symbol and symbol.upper(), open_only=open_only)
    fills: dict[str, list[Fill]] = {}
    for fill in records.reader.fills(records.world):
        fills.setdefault(fill.order_id, []).append(fill)
    rows = [
        {
            **row_json.order(entry.order, entry.decided),
            "run": entry.run,
            "time": entry.time.isoformat(),
            "fills": [row_json.desk_fill(fill) for fill in fills.get(entry.order.id, ())],
            "detail": entry.ended or None,
        }
        for entry in entries[-last:]
    ]
    return {**records.head, "count": len(entries), "orders": rows}
