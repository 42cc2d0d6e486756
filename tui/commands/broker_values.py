"""The broker's own values of a desk's account, beside the desk's closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.invocation import Invocation

if TYPE_CHECKING:
    from engine.reports.documents.equity import BrokerValues
    from engine.reports.documents.records import Records


def asked_values(invocation: Invocation, records: Records) -> BrokerValues:
    """The broker's side of a desk's closes; none, without a note, for a desk of the simulated market. What keeps the
    broker from answering is a note: the journal's side can be shown without."""
    from engine.reports.documents.equity import BrokerValues, broker_values, closes, in_an_account

    points = closes(records)
    if not points or not in_an_account(records):
        return BrokerValues()
    import asyncio

    from engine.app.reconciliation import broker_values as ask
    from engine.errors import PaperdeskError

    try:
        theirs = asyncio.run(ask(invocation.services(), points[0].session, points[-1].session))
    except PaperdeskError as error:
        return BrokerValues(note=f"the broker's values are not shown: {error}")
    return broker_values(records, theirs)


def value_words(values: BrokerValues) -> str:
    """The number of sessions in which the values differ, and the furthest; empty where they agree."""
    from tui import amounts

    if not values.differing:
        return values.note
    most = max(values.differing, key=lambda one: abs(one.difference))
    count = len(values.by_session)
    return (
        f"at {len(values.differing)} of {count} close{'' if count == 1 else 's'} the broker's prices make another "
        f"value, the furthest off on {most.session}: {amounts.gain(most.difference)} "
        f"({10_000 * most.difference / most.journal:+.1f} basis points)"
    )
