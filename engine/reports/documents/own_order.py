"""An order of the operator's own as `paperdesk order` prints it and the app's ticket shows it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain.order import Order
from engine.reports.documents import row_json
from engine.reports.documents.order_effect import OrderEffect, effect_row
from engine.reports.documents.row_json import Row

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An order of the operator's own before it is taken, or as it was taken.

    order: in its present state; one that was not taken is merely intended, and in no journal.
    effect: on the portfolio, at the last price.
    refused: why it is not taken, in a sentence; empty where it is.
    detail: what the venue said of it, empty for nothing.
    """

    order: Order
    effect: OrderEffect
    refused: str = ""
    detail: str = ""


def ticket_document(desk: str, ticket: Ticket, *, taken: bool) -> Row:
    """A ticket as JSON; `taken` where the order is in the journal."""
    return {
        "schema": SCHEMA,
        "desk": desk,
        "taken": taken,
        "refused": ticket.refused or None,
        "order": row_json.order(ticket.order),
        "detail": ticket.detail or None,
        "effect": effect_row(ticket.effect),
    }
