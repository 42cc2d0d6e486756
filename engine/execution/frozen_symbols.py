"""Symbols of a desk that are frozen: their bars and actions contradict each other, and nothing is traded on them.

A frozen symbol is not decided and gets no order; its position stays as it was, at its last price from before. The other
symbols go on, and the run ends with 65. What is kept of a run says how to go on once the data is mended: corporate
actions that came due meanwhile reach the position with the first session afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from engine.domain.json_text import plain_of, to_json, typed
from engine.domain.market import CorporateAction, Symbol
from engine.domain.run import RunKind, RunOutcome
from engine.errors import MalformedData

if TYPE_CHECKING:
    from engine.journal.reader import JournalReader
    from engine.journal.writer import JournalWriter
    from engine.market.price_faults import PriceFault

_DOCUMENT = "frozen"


@dataclass(frozen=True, slots=True)
class FrozenSymbol:
    """A frozen symbol; `since` is the last session that its position has been through, None where the desk had no
    books yet, and `why` says what has to be mended."""

    symbol: Symbol
    since: date | None
    why: str


def frozen_in(reader: JournalReader, run: str) -> tuple[FrozenSymbol, ...]:
    """The symbols that a run of a desk has frozen."""
    text = reader.document(run, _DOCUMENT)
    return () if text is None else typed(tuple[FrozenSymbol, ...], json.loads(text))


def reasons(frozen: Iterable[FrozenSymbol]) -> dict[Symbol, str]:
    """The faults that have to be mended, by symbol."""
    return {one.symbol: one.why for one in frozen}


def frozen_before(reader: JournalReader, run: str, session: date) -> tuple[FrozenSymbol, ...]:
    """The symbols that the daily run before a run of a session had frozen."""
    runs = [
        one
        for one in reader.runs(RunKind.DAILY)
        if one.id != run and one.session and one.session <= session and one.outcome is not RunOutcome.SKIPPED
    ]
    return frozen_in(reader, max(runs, key=lambda one: one.session or session).id) if runs else ()


def freeze(
    journal: JournalWriter, reader: JournalReader, run: str, session: date, faults: Iterable[PriceFault]
) -> tuple[FrozenSymbol, ...]:
    """The symbols that a run freezes for faults up to its session, kept in the journal. What a run that was killed had
    frozen stays so: the books may have been closed without it."""
    begun = frozen_in(reader, run)
    known = {one.symbol: one for one in (*frozen_before(reader, run, session), *begun)}
    points = reader.equity()
    closed = points[-1].session if points else None
    found = {one.symbol: one for one in begun}
    for fault in faults:
        if fault.session <= session and fault.symbol not in found:
            earlier = known.get(fault.symbol)
            since = closed if earlier is None else earlier.since
            found[fault.symbol] = FrozenSymbol(fault.symbol, since, fault.text)
    frozen = tuple(found.values())
    if frozen and not begun:
        journal.document(run, _DOCUMENT, to_json(plain_of(frozen)))
    return frozen


def late_actions(
    actions: Mapping[Symbol, Sequence[CorporateAction] | None], thawed: Iterable[FrozenSymbol], closed: date
) -> Mapping[Symbol, Sequence[CorporateAction] | None]:
    """The actions with those that came due while a symbol was frozen moved behind the last closed session."""
    due = {one.symbol: one.since for one in thawed if one.since is not None}
    late = closed + timedelta(days=1)
    return {
        symbol: known
        and [
            replace(one, ex_date=late) if symbol in due and due[symbol] < one.ex_date <= closed else one
            for one in known
        ]
        for symbol, known in actions.items()
    }


def frozen_error(whys: Mapping[Symbol, str]) -> MalformedData:
    """The error that a run with frozen symbols ends with."""
    names = f"{', '.join(whys)} {'is' if len(whys) == 1 else 'are'} frozen, without an order and with the position kept"
    return MalformedData(f"{names}: {'; '.join(whys.values())}")
