"""`paperdesk orders` (desk): list the desk's orders and their fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import at_option, json_option, limit_option, lines_shown, of_all
from tui.console import show_records, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.reports.documents.records import At


@click.command("orders")
@click.option("--symbol", metavar="SYMBOL", help="Only this symbol's.")
@click.option("--open", "open_only", is_flag=True, help="Only those that something can still follow.")
@limit_option("last")
@at_option
@json_option
@desk_options
def command(
    *, invocation: Invocation, symbol: str | None, open_only: bool, limit: int | None, at: At, as_json: bool
) -> None:
    """Lists orders with their state and fills, by decision session; each waits for the open after it.

    \b
    Examples:
      paperdesk orders --open
      paperdesk orders --symbol ORVL --json
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.orders import orders_document

        document = orders_document(records, symbol=symbol, open_only=open_only, last=lines_shown(limit, as_json))
    filtered = symbol is not None or open_only
    show_records(records, document, as_json, lambda: _lines(records.title, document, filtered))


def _lines(title: str, document: Mapping[str, Any], filtered: bool) -> Iterator[str]:
    yield standard_output().bold(f"Orders of {title}")
    if not document["count"]:
        yield "none that fits; leave out a filter" if filtered else "none"
        return
    yield from _table(document["orders"])
    yield from of_all(len(document["orders"]), document["count"])


def _table(orders: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from tui import amounts
    from tui.text_table import table

    rows = []
    for order in orders:
        fills = [(Decimal(fill["quantity"]), Decimal(fill["price"])) for fill in order["fills"]]
        shares = sum((quantity for quantity, _ in fills), Decimal(0))
        paid = sum((quantity * price for quantity, price in fills), Decimal(0))
        quantity, notional = amounts.number(order["quantity"]), amounts.number(order["notional"])
        rows.append(
            (
                order["session"],
                order["symbol"],
                order["side"],
                f"${amounts.money(notional, 0)}" if quantity is None else amounts.quantity(quantity),
                order["state"],
                amounts.quantity(shares) if fills else "",
                amounts.price(paid / shares) if shares else "",
                order["fills"][-1]["session"] if fills else "",
            )
        )
    head = ("SESSION", "SYMBOL", "SIDE", "ASKED", "STATE", "FILLED", "PRICE", "ON")
    return table(head, rows, {"ASKED", "FILLED", "PRICE"}, standard_output().width)
