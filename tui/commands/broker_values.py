"""The desk's closes beside the broker's own values of its account, for the commands that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from tui.invocation import Invocation

if TYPE_CHECKING:
    from engine.account.equity_check import CloseComparison
    from engine.domain.run import EquityPoint
    from engine.journal.reader import JournalReader


@dataclass(frozen=True, slots=True)
class BrokerValues:
    """The closes that both sides know, by session; `note` says why the broker's are not there."""

    by_session: Mapping[date, CloseComparison] = field(default_factory=dict)
    note: str = ""

    @property
    def differing(self) -> tuple[CloseComparison, ...]:
        """Those whose values differ by more than rounding."""
        return tuple(one for one in self.by_session.values() if one.differs)

    def in_words(self) -> str:
        """In how many sessions they differ, and where most; empty where they agree."""
        from tui import amounts

        if not self.differing:
            return self.note
        most = max(self.differing, key=lambda one: abs(one.difference))
        count = len(self.by_session)
        return (
            f"at {len(self.differing)} of {count} close{'' if count == 1 else 's'} the broker's prices make another "
            f"value, the furthest off on {most.session}: {amounts.gain(most.difference)} "
            f"({10_000 * most.difference / most.journal:+.1f} basis points)"
        )


def broker_values_of(invocation: Invocation, reader: JournalReader, points: Sequence[EquityPoint]) -> BrokerValues:
    """The broker's side of a desk's closes; none, without a note, for a desk of the simulated market. What keeps the
    broker from answering is a note: the journal's side can be shown without."""
    if not points or reader.account() is None:
        return BrokerValues()
    import asyncio

    from engine.account.equity_check import beside
    from engine.app.reconciliation import broker_values
    from engine.errors import PaperdeskError

    try:
        theirs = asyncio.run(broker_values(invocation.services(), points[0].session, points[-1].session))
    except PaperdeskError as error:
        return BrokerValues(note=f"the broker's values are not shown: {error}")
    return BrokerValues({one.session: one for one in beside(points, theirs)})


def value_row(one: CloseComparison | None) -> dict[str, Any]:
    """The broker's side of a close as JSON's own types; null where it is not known."""
    from engine.domain.decimal_text import money

    if one is None:
        return {"broker_value": None, "broker_difference": None}
    return {"broker_value": money(one.broker), "broker_difference": money(one.difference)}
