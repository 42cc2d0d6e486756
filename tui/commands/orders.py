"""`paperdesk orders` (desk): list the desk's orders and their fills."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.journals import NOT_RUN, looked_at
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.domain.order import Fill
    from engine.journal.entries import OrderEntry

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""


@click.command("orders")
@click.option("--symbol", metavar="SYMBOL", help="Only this symbol's.")
@click.option("--open", "open_only", is_flag=True, help="Only those that something can still follow.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The last N (default: 20; 0 and --json: all).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, symbol: str | None, open_only: bool, limit: int | None, as_json: bool) -> None:
    """Lists orders with their state and fills, by decision session; each waits for the open after it.

    \b
    Examples:
      paperdesk orders --open
      paperdesk orders --symbol ORVL --json
    """
    found: tuple[OrderEntry, ...] = ()
    fills: dict[str, list[Fill]] = {}
    with looked_at(invocation) as (desk, look):
        head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        if look is not None:
            head = look.named()
            found = look.reader.orders(look.run, None if symbol is None else symbol.upper(), open_only=open_only)
            # A daily run's orders fill in a later run.
            for fill in look.reader.fills(look.run if look.kind == "backtest" else None):
                fills.setdefault(fill.order_id, []).append(fill)
    most = limit if limit is not None else 0 if as_json else LIMIT
    shown = found[-most:] if most else found
    if as_json:
        from engine.reports.documents import row_json

        rows = [
            {
                **row_json.order(entry.order),
                "run": entry.run,
                "time": entry.time.isoformat(),
                "fills": [row_json.trade(fill) for fill in fills.get(entry.order.id, ())],
            }
            for entry in shown
        ]
        show(json.dumps({**head, "count": len(found), "orders": rows}, indent=2, allow_nan=False))
    elif look is None:
        show(NOT_RUN.format(desk=desk))
    else:
        lines = [standard_output().bold(f"Orders of {look.title}")]
        if not found:
            lines.append("none" if symbol is None and not open_only else "none that fits; leave out a filter")
        else:
            lines += _table(shown, fills)
        if len(shown) < len(found):
            lines.append(f"the last {len(shown)} of {len(found)}; --limit 0 shows all")
        show("\n".join(lines))


def _table(shown: Sequence[OrderEntry], fills: dict[str, list[Fill]]) -> list[str]:
    from tui import amounts
    from tui.text_table import table

    rows = []
    for entry in shown:
        order = entry.order
        done = fills.get(order.id, [])
        shares = sum((fill.quantity for fill in done), Decimal(0))
        paid = sum((fill.quantity * fill.price for fill in done), Decimal(0))
        rows.append(
            (
                str(order.session),
                order.symbol,
                order.side.value,
                f"${amounts.money(order.notional, 0)}" if order.quantity is None else amounts.quantity(order.quantity),
                order.state.value,
                amounts.quantity(shares) if done else "",
                amounts.price(paid / shares) if shares else "",
                str(done[-1].session) if done else "",
            )
        )
    head = ("SESSION", "SYMBOL", "SIDE", "ASKED", "STATE", "FILLED", "PRICE", "ON")
    return list(table(head, rows, {"ASKED", "FILLED", "PRICE"}, standard_output().width))
