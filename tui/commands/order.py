"""`paperdesk order` (controls): place an order of your own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.domain.market import parse_symbol
from engine.domain.order import OrderSize, OrderState, Side
from engine.errors import NO
from tui.commands.options import AMOUNT
from tui.settings.invocation import Invocation, command
from tui.text.console import as_json, show, show_document, standard_output
from tui.text.plain_text import facts
from tui.text.run_text import effect_facts, order_words, terms

if TYPE_CHECKING:
    from engine.messages.commands import PlaceOrder
    from engine.services import Services

Document = Mapping[str, Any]


@command("order", "--run")
@click.argument("side", type=click.Choice(["BUY", "SELL"], case_sensitive=False))
@click.argument("symbol")
@click.option("--quantity", type=AMOUNT, metavar="N", help="So many shares, at the last price.")
@click.option("--amount", type=AMOUNT, metavar="USD", help="Shares for this amount, costs included.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def order_command(
    *,
    invocation: Invocation,
    side: str,
    symbol: str,
    quantity: Decimal | None,
    amount: Decimal | None,
    yes: bool,
) -> int:
    """Places an order of your own, in paper money: you are its owner, in the journal and wherever orders are shown.

    It is held against the desk's limits before it is taken: the cash floor, shares that are free beside open orders,
    and whether the symbol is traded. It says what it would do first, and asks on a terminal; elsewhere it needs --yes.
    A buy goes as an amount, so that it never costs more than is reserved for it: shares count at the last price, and
    where only whole shares are traded they are rounded down. It fills as the desk's orders do: at the next open, or at
    once where the market is open at a broker. Nobody has to approve it; a halted desk takes none, and one that only
    observes neither. The exit code is 1 where it is refused, or ended without having been sent.

    Where it stays unknown whether it arrived (75, 74), the same line again looks it up and never orders twice.

    \b
    Examples:
      paperdesk order BUY AAPL --amount 5000
      paperdesk order SELL AAPL --quantity 10 --yes --json
    """
    if quantity is None and amount is None:
        raise click.UsageError("say how much: --quantity N or --amount USD")
    if quantity is not None and amount is not None:
        raise click.UsageError("--quantity and --amount both say how much: give one of them")
    if not yes and (as_json() or not sys.stdin.isatty()):
        raise click.UsageError("nobody can be asked here: say --yes")
    from engine.app.orders.controls import controlled_journal
    from engine.messages.commands import PlaceOrder

    controlled_journal(invocation.begun_desk())
    size = OrderSize(amount or quantity or Decimal(0), money=quantity is None)
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
