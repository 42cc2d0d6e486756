"""`paperdesk equity` (desk): print the desk's value at each close."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.broker_values import BrokerValues, broker_values_of, value_row
from tui.commands.journals import NOT_RUN, looked_at
from tui.commands.run_options import DAY
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options
from tui.text_table import table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.account.time_weighted import Measured
    from engine.domain.run import CashFlow, EquityPoint

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

    Of a desk in an account at a broker it shows the broker's own value as well, and how far it is off where rounding
    does not explain it: both sides hold the same, but a broker values it at prices of its own. Cash that moved without
    a trade is named below: dividends, fees, interest, transfers.

    \b
    Examples:
      paperdesk equity
      paperdesk equity --run backtest-20250701-120000-ab12 --json
    """
    if first and last and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    from engine.account.time_weighted import NetDeposit, brought_in, measured

    points: tuple[EquityPoint, ...] = ()
    brought: tuple[NetDeposit, ...] = ()
    began: Decimal | None = None
    flows: tuple[CashFlow, ...] = ()
    theirs = BrokerValues()
    with looked_at(invocation) as (desk, look):
        head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        if look is not None:
            head = look.named()
            points = look.reader.equity(look.run, look.part)
            flows = look.reader.cash_flows(look.run if look.kind == "backtest" else None, look.part)
            if look.kind == "backtest":
                began = look.reader.stretches(look.run or "").get(look.part)
            else:
                brought = brought_in(look.reader.equity(), look.reader.cash_flows(), look.reader.adoptions())
                theirs = broker_values_of(invocation, look.reader, points)
    rows = [row for row in measured(points, brought, began) if first is None or row.point.session >= first]
    rows = [row for row in rows if last is None or row.point.session <= last]
    most = limit if limit is not None else 0 if as_json else LIMIT
    shown = rows[-most:] if most else rows
    moved = _by_close(points, flows)
    if as_json:
        from engine.domain.decimal_text import money
        from engine.reports.documents import row_json

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
                    "cash_flows": [row_json.cash_flow(flow) for flow in moved.get(row.point.session, ())],
                    **value_row(theirs.by_session.get(row.point.session)),
                }
                for row in shown
            ],
            "broker_note": theirs.note or None,
        }
        show(json.dumps(document, indent=2, allow_nan=False))
    elif look is None:
        show(NOT_RUN.format(desk=desk))
    else:
        from tui import amounts

        lines = [standard_output().bold(f"Value of {look.title} by session")]
        lines += (
            _table(shown, theirs) if rows else ["none that fits; leave out a filter" if points else "no session yet"]
        )
        if len(shown) < len(rows):
            lines.append(f"the last {len(shown)} of {len(rows)}; --limit 0 shows all")
        lines += [
            f"{flow.session}  {' '.join(filter(None, (flow.kind, flow.symbol)))} {amounts.gain(flow.amount)}"
            for row in shown
            for flow in moved.get(row.point.session, ())
        ]
        lines += wrapped(theirs.in_words(), standard_output().width) if theirs.in_words() else []
        show("\n".join(lines))


def _by_close(points: Sequence[EquityPoint], flows: Sequence[CashFlow]) -> dict[date, list[CashFlow]]:
    """Cash flows by the close whose books are the first to have them; shares that a split brought are none."""
    found: dict[date, list[CashFlow]] = {}
    for flow in flows:
        close = next((point.session for point in points if point.session >= flow.session), None)
        if close is not None and flow.amount:
            found.setdefault(close, []).append(flow)
    return found


def _table(rows: list[Measured], theirs: BrokerValues) -> list[str]:
    from tui import amounts

    def cells(row: Measured) -> tuple[str, ...]:
        day = row.point.session
        broker = theirs.by_session.get(day)
        return (
            str(day),
            amounts.money(row.point.value),
            "" if broker is None else amounts.money(broker.broker),
            amounts.gain(broker.difference) if broker is not None and broker.differs else "",
            amounts.money(row.point.portfolio.cash),
            str(len(row.point.portfolio.positions)),
            amounts.gain(row.brought) if row.brought else "",
            amounts.percent(None if row.change is None else float(row.change)),
            f"{100 * float(row.fall):.2f}%",
        )

    head = ("SESSION", "VALUE", "BROKER", "DIFFERS", "CASH", "HELD", "BROUGHT IN", "CHANGE", "DRAWDOWN")
    return list(table(head, [cells(row) for row in rows], set(head[1:]), standard_output().width))
