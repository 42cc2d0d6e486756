"""`paperdesk order` (controls): place an order of your own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.domain.market import parse_symbol
from engine.domain.order import OrderState, Side
from engine.errors import NO
from tui.commands.options import size_of, size_options
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import check_asks
from tui.text.console import show, show_document, standard_output
from tui.text.plain_text import facts
from tui.text.run_text import effect_facts, order_words, terms

if TYPE_CHECKING:
    from engine.messages.commands import PlaceOrder
    from engine.services import Services

Document = Mapping[str, Any]


@command("order", "--run")
@click.argument("side", type=click.Choice(["BUY", "SELL"], case_sensitive=False))
@click.argument("symbol")
@size_options
@click.option("--yes", is_flag=True, help="Skip confirmation.")
def order_command(
    *,
    invocation: Invocation,
    side: str,
    symbol: str,
    quantity: Decimal | None,
    amount: Decimal | None,
    yes: bool,
) -> int:
    """Places a paper-money order of your own, with owner `you` in the journal and in every list.

    Checked against the desk's limits before submission: the cash floor, the shares not committed to open orders, and
    whether the symbol is tradable. It shows the effect and asks for confirmation; without a terminal it needs --yes. A
    buy is sent as an amount, so it never costs more than reserved: shares are converted at the last price and rounded
    down if only whole shares trade. It fills like the desk's orders: at the next open, or at once if a broker's market
    is open. It needs no approval. Rejected in observe mode; while halted only orders that reduce a position are taken.
    Exits with 1 if it is refused or ends unsent.

    If it is unknown whether the order arrived (75, 74), repeat the command: it looks the order up and never sends it
    twice.

    \b
    Examples:
      paperdesk order BUY AAPL --amount 5000
      paperdesk order SELL AAPL --quantity 10 --yes --json
    """
    size = size_of(quantity, amount)
    if size is None:
        raise click.UsageError("give a size: --quantity N or --amount USD")
    check_asks(yes)
    from engine.app.orders.controls import controlled_journal
    from engine.messages.commands import PlaceOrder

    controlled_journal(invocation.begun_desk())
    wanted, services = PlaceOrder(parse_symbol(symbol), Side(side.upper()), size), invocation.services()
    if not yes and not _agreed(services, wanted):
        return NO
    return _place(services, wanted)


def _agreed(services: Services, wanted: PlaceOrder) -> bool:
    """Show the order, and ask; false where it is refused, or not wanted."""
    from engine.app.orders.own_orders import ticket_now
    from engine.reports.documents.order_effect import ticket_document

    document = ticket_document(services.desk, ticket_now(services, wanted), taken=False)
    show("\n".join(_lines(document)))
    if document["refused"]:
        return False
    if click.confirm("PAPER: send it?", err=True):
        return True
    show("nothing was ordered")
    return False


def _place(services: Services, wanted: PlaceOrder) -> int:
    from engine.app.orders.own_orders import place_order
    from engine.reports.documents.order_effect import ticket_document

    ticket = asyncio.run(place_order(services, wanted))
    document = ticket_document(services.desk, ticket, taken=not ticket.refused)
    show_document(document, lambda: _lines(document))
    ended = (OrderState.CANCELED, OrderState.EXPIRED, OrderState.REJECTED)
    return NO if ticket.refused or ticket.order.state in ended else 0


def _lines(document: Document) -> Iterator[str]:
    console, order = standard_output(), document["order"]
    yield console.bold("PAPER") + f"  {terms(order)}, desk {document['desk']}"
    yield from facts(effect_facts(document["effect"]), min(console.width, 100))
    if document["refused"]:
        yield f"{console.bold('NOT TAKEN')}: {document['refused']}"
    elif document["taken"]:
        yield order_words({**order, "detail": document["detail"]})
