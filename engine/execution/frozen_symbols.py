"""Symbols of a desk that are frozen: their bars and actions contradict each other, or their last bar did not come where
others have theirs, or nothing was traded in them. Nothing is traded on them.

A frozen symbol is not decided and gets no order; its position stays as it was, at its last price from before. The other
symbols go on, and the run ends with 65, unless the symbols are halted at their exchange. What is kept of a run says how
to go on once the data is mended: corporate actions that came due meanwhile reach the position with the first session
afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING

from engine.domain.json_text import plain_of, to_json, typed
from engine.domain.market import ActionKind, CorporateAction, Symbol
from engine.domain.run import RunKind
from engine.errors import MalformedData

if TYPE_CHECKING:
    from engine.journal.reader import JournalReader
    from engine.journal.writer import JournalWriter
    from engine.market.price_faults import PriceFault

_DOCUMENT = "frozen"


@dataclass(frozen=True, slots=True)
class FrozenSymbol:
    """A frozen symbol; `since` is the last session that its position has been through, None where the desk had no
    books yet, and `why` says what has to be mended; of a `halted` one nothing has to."""

    symbol: Symbol
    since: date | None
    why: str
    halted: bool = False


def frozen_in(reader: JournalReader, run: str) -> tuple[FrozenSymbol, ...]:
    """The symbols that a run of a desk has frozen."""
    text = reader.document(run, _DOCUMENT)
    return () if text is None else typed(tuple[FrozenSymbol, ...], json.loads(text))


def reasons(frozen: Iterable[FrozenSymbol]) -> dict[Symbol, str]:
    """The faults that have to be mended, by symbol."""
    return {one.symbol: one.why for one in frozen if not one.halted}


def frozen_when_closed(reader: JournalReader, closed: date) -> tuple[FrozenSymbol, ...]:
    """The symbols that were frozen when the books were closed: by the runs after the close of that session, whatever
    became of them afterwards."""
    runs = (one.id for kind in (RunKind.DAILY, RunKind.SYMBOL) for one in reader.runs(kind) if one.session == closed)
    return tuple({one.symbol: one for run in runs for one in frozen_in(reader, run)}.values())


def freeze(
    journal: JournalWriter, reader: JournalReader, run: str, session: date, faults: Iterable[PriceFault]
) -> tuple[FrozenSymbol, ...]:
    """The symbols that a run freezes for faults up to its session, kept in the journal. What a run that was killed had
    frozen stays so: the books may have been closed without it."""
    begun, points = frozen_in(reader, run), reader.equity()
    closed = points[-1].session if points else None
    known = {one.symbol: one for one in (() if closed is None else frozen_when_closed(reader, closed))}
    found = {one.symbol: one for one in begun}
    for fault in faults:
        if fault.session <= session and fault.symbol not in found:
            earlier = known.get(fault.symbol)
            since = closed if earlier is None else earlier.since
            found[fault.symbol] = FrozenSymbol(fault.symbol, since, fault.text, fault.halted)
    frozen = tuple(found.values())
    if frozen and not begun:
        journal.document(run, _DOCUMENT, to_json(plain_of(frozen)))
    return frozen


def late_actions(
    actions: Mapping[Symbol, Sequence[CorporateAction] | None], thawed: Iterable[FrozenSymbol], closed: date
) -> Mapping[Symbol, Sequence[CorporateAction] | None]:
    """The actions with those that came due while a symbol was frozen moved behind the last closed session, where splits
    come first: what was paid before a split is per new share there."""
    late, moved = closed + timedelta(days=1), dict(actions)
    for frozen in thawed:
        known = actions.get(frozen.symbol) or ()
        due = [one for one in known if frozen.since is not None and frozen.since < one.ex_date <= closed]
        splits = [one for one in due if one.kind is ActionKind.SPLIT]
        for one in due:
            after = [] if one in splits else [split.value for split in splits if split.ex_date > one.ex_date]
            value = one.value / prod(after, start=Decimal(1))
            known = [replace(one, ex_date=late, value=value) if other is one else other for other in known]
        moved[frozen.symbol] = known
    return moved


def frozen_error(whys: Mapping[Symbol, str]) -> MalformedData:
    """The error that a run with frozen symbols ends with."""
    names = f"{', '.join(whys)} {'is' if len(whys) == 1 else 'are'} frozen, without an order and with the position kept"
    return MalformedData(f"{names}: {'; '.join(whys.values())}")
