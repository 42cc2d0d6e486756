"""`paperdesk equity`: the desk's value at each close."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.journals import NOT_RUN, looked_at
from tui.commands.run_options import DAY
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.run import EquityPoint
    from engine.reports.time_weighted import Measured

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""


@click.command("equity")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First session.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last session.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The last N (default: 20; 0 and --json: all).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, first: date | None, last: date | None, limit: int | None, as_json: bool) -> None:
    """Prints value and cash at each close, with the change since the close before and the fall from the highest. What
    was brought in or taken out (transfers, adopted differences) counts for neither.

    \b
    Examples:
      paperdesk equity
      paperdesk equity --run backtest-20250701-120000-ab12 --json
    """
    if first and last and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    from engine.reports.time_weighted import Brought, brought_in, measured

    points: tuple[EquityPoint, ...] = ()
    brought: tuple[Brought, ...] = ()
    began: Decimal | None = None
    with looked_at(invocation) as (desk, look):
        head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        if look is not None:
            head = look.named()
            points = look.reader.equity(look.run, look.part)
            if look.kind == "backtest":
                began = look.reader.stretches(look.run or "").get(look.part)
            else:
                brought = brought_in(look.reader.equity(), look.reader.cash_flows(), look.reader.adoptions())
    rows = [row for row in measured(points, brought, began) if first is None or row.point.session >= first]
    rows = [row for row in rows if last is None or row.point.session <= last]
    most = limit if limit is not None else 0 if as_json else LIMIT
    shown = rows[-most:] if most else rows
    if as_json:
        from engine.domain.decimal_text import money
        from engine.reports import row_json

        initial = began if began is not None else points[0].value if points else None
        document = {
            **head,
            "initial_value": None if initial is None else money(initial),
            "count": len(rows),
            "equity": [
                {
                    **row_json.point(row.point),
                    "brought_in": money(row.brought),
                    "change": None if row.change is None else float(row.change),
                    "drawdown": float(row.fall),
                }
                for row in shown
            ],
        }
        show(json.dumps(document, indent=2, allow_nan=False))
    elif look is None:
        show(NOT_RUN.format(desk=desk))
    else:
        lines = [standard_output().bold(f"Value of {look.title} by session")]
        lines += _table(shown) if rows else ["none that fits; leave out a filter" if points else "no session yet"]
        if len(shown) < len(rows):
            lines.append(f"the last {len(shown)} of {len(rows)}; --limit 0 shows all")
        show("\n".join(lines))


def _table(rows: list[Measured]) -> list[str]:
    from tui import amounts
    from tui.text_table import table

    moved = any(row.brought for row in rows)
    cells = [
        (
            str(row.point.session),
            amounts.money(row.point.value),
            amounts.money(row.point.portfolio.cash),
            str(len(row.point.portfolio.positions)),
            *([amounts.gain(row.brought) if row.brought else ""] if moved else []),
            amounts.percent(None if row.change is None else float(row.change)),
            f"{100 * float(row.fall):.2f}%",
        )
        for row in rows
    ]
    head = ("SESSION", "VALUE", "CASH", "HELD", *(["BROUGHT IN"] if moved else []), "CHANGE", "DRAWDOWN")
    return list(table(head, cells, set(head[1:]), standard_output().width))
