"""`paperdesk positions` (desk): list what the desk holds."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.journals import NOT_RUN, Look, looked_at
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.run import EquityPoint


@click.command("positions")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, as_json: bool) -> None:
    """Lists what is held at the last close: shares, average cost, price, gain, and the part of the portfolio.

    \b
    Examples:
      paperdesk positions
      paperdesk positions --run backtest-20250701-120000-ab12
    """
    with looked_at(invocation) as (desk, look):
        books = None if look is None else last_books(look)
        head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        if look is not None:
            head = look.named()
    if as_json:
        show(json.dumps({**head, **_document(books)}, indent=2, allow_nan=False))
    elif look is None:
        show(NOT_RUN.format(desk=desk))
    elif books is None:
        show(f"no session of {look.title} is closed yet")
    else:
        show("\n".join([standard_output().bold(f"Positions of {look.title} at {books.session}"), *lines_of(books)]))


def last_books(look: Look) -> EquityPoint | None:
    """The books at the last close; of a daily run, at the session that it was for."""
    points = look.reader.equity(look.run if look.kind == "backtest" else None, look.part)
    if look.kind == "daily":
        session = look.reader.run(look.run or "").session
        points = tuple(point for point in points if session is None or point.session <= session)
    return points[-1] if points else None


def _document(books: EquityPoint | None) -> dict[str, Any]:
    from engine.domain.decimal_text import money
    from engine.reports.documents.session import positions

    if books is None:
        return {"session": None, "value": None, "cash": None, "positions": {}}
    return {
        "session": str(books.session),
        "value": money(books.value),
        "cash": money(books.portfolio.cash),
        "positions": positions(books),
    }


def lines_of(books: EquityPoint) -> list[str]:
    """A table of what is held, with the cash below it."""
    from tui import amounts
    from tui.text_table import table

    rows = []
    for symbol, held in sorted(books.portfolio.positions.items()):
        price = books.prices.get(symbol)
        worth = None if price is None else price * held.quantity
        gain = None if price is None else (price - held.average_cost) * held.quantity
        cost = abs(held.average_cost * held.quantity)
        rows.append(
            (
                symbol,
                amounts.quantity(held.quantity),
                amounts.price(held.average_cost),
                amounts.price(price),
                amounts.money(worth),
                amounts.gain(gain),
                amounts.percent(gain / cost if gain is not None and cost else None),
                _part(worth, books.value),
            )
        )
    cash = books.portfolio.cash
    rows.append(("cash", "", "", "", amounts.money(cash), "", "", _part(cash, books.value)))
    rows.append(("all", "", "", "", amounts.money(books.value), "", "", ""))
    head = ("SYMBOL", "SHARES", "COST", "PRICE", "VALUE", "GAIN", "GAIN %", "PART")
    return list(table(head, rows, set(head[1:]), standard_output().width))


def _part(worth: Decimal | None, value: Decimal) -> str:
    return "" if worth is None or not value else f"{100 * worth / value:.1f}%"
