"""`paperdesk positions` (desk): list what the desk holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import at_option, json_option
from tui.console import show_records, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.reports.documents.records import At


@click.command("positions")
@at_option
@json_option
@desk_options
def command(invocation: Invocation, at: At, as_json: bool) -> None:
    """Lists what is held at the last close: shares, average cost, price, gain, and the part of the portfolio.

    \b
    Examples:
      paperdesk positions
      paperdesk positions --run backtest-20250701-120000-ab12
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.positions import positions_document

        document = positions_document(records)
    show_records(records, document, as_json, lambda: _lines(records.title, document))


def _lines(title: str, document: Mapping[str, Any]) -> Iterator[str]:
    if document["session"] is None:
        yield f"no session of {title} is closed yet"
        return
    yield standard_output().bold(f"Positions of {title} at {document['session']}")
    yield from position_lines(document)


def position_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """A table of what a document's `positions` hold, with its `cash` and `value` below."""
    from tui import amounts
    from tui.text_table import table

    value, cash = Decimal(document["value"]), Decimal(document["cash"])
    rows = []
    for symbol, held in document["positions"].items():
        quantity, cost, price = (amounts.number(held[name]) for name in ("quantity", "average_cost", "price"))
        assert quantity is not None and cost is not None  # a position has both
        worth = None if price is None else price * quantity
        gain = None if worth is None else worth - cost * quantity
        paid = abs(cost * quantity)
        rows.append(
            (
                symbol,
                amounts.quantity(quantity),
                amounts.price(cost),
                amounts.price(price),
                amounts.money(worth),
                amounts.gain(gain),
                amounts.percent(gain / paid if gain is not None and paid else None),
                _part(worth, value),
            )
        )
    rows.append(("cash", "", "", "", amounts.money(cash), "", "", _part(cash, value)))
    rows.append(("all", "", "", "", amounts.money(value), "", "", ""))
    head = ("SYMBOL", "SHARES", "COST", "PRICE", "VALUE", "GAIN", "GAIN %", "PART")
    yield from table(head, rows, set(head[1:]), standard_output().width)
    for owner, book in document.get("per_owner", {}).items():
        figures = [amounts.money(amounts.number(book[name])) for name in ("value", "cash")]
        yield f"book of {owner}: {figures[0]}, of it cash {figures[1]}"


def _part(worth: Decimal | None, value: Decimal) -> str:
    return "" if worth is None or not value else f"{100 * worth / value:.1f}%"
