"""`paperdesk decisions` (desk): list what was decided."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from tui.commands.journals import NOT_RUN, looked_at
from tui.commands.run_options import DAY
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.journal.reader import JournalReader

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""


@click.command("decisions")
@click.option("--symbol", metavar="SYMBOL", help="Only this symbol's.")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First decision session.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last decision session.")
@click.option(
    "--action",
    type=click.Choice(["buy", "sell", "hold", "abstain"], case_sensitive=False),
    help="Only these; an abstention is no HOLD.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The last N (default: 20; 0 and --json: all).")
@click.option("--warm-up", is_flag=True, help="Those of a backtest's warm-up instead of its test.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(
    invocation: Invocation,
    symbol: str | None,
    first: date | None,
    last: date | None,
    action: str | None,
    limit: int | None,
    warm_up: bool,
    as_json: bool,
) -> None:
    """Lists what was decided: by the desk, or, where it has not run yet, in the latest backtest.

    The date is the decision session: the last one whose data was read. SIZE is in percent of the portfolio; what was
    cut was changed by the limits. `paperdesk why SYMBOL DATE` prints how one came about.

    \b
    Examples:
      paperdesk decisions
      paperdesk decisions --symbol ORVL --from 2025-03-01 --action buy
      paperdesk decisions --run backtest-20250701-120000-ab12 --limit 0
    """
    if first and last and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    with looked_at(invocation, has_decisions) as (desk, look):
        if look is None:
            found: list[Decision] = []
            head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        else:
            part = "warm-up" if warm_up and look.kind == "backtest" else look.part
            symbol = None if symbol is None else symbol.upper()
            found = list(look.reader.decisions(look.run, symbol, first, last, part))
            head = look.named()
        if action is not None:
            found = [made for made in found if made.action.value == action.upper()]
    most = limit if limit is not None else 0 if as_json else LIMIT
    shown = found[-most:] if most else found
    if as_json:
        from engine.reports.documents import row_json

        rows = [{**row_json.decision(made), "rule": made.proposal.rule, "run": made.key.run} for made in shown]
        show(json.dumps({**head, "count": len(found), "decisions": rows}, indent=2, allow_nan=False))
    elif look is None:
        show(NOT_RUN.format(desk=desk))
    else:
        show("\n".join(_lines(shown, len(found), look.title, look.note)))


def has_decisions(reader: JournalReader) -> bool:
    """Whether a journal has any decision."""
    return reader.counts()["decisions"] > 0


def _lines(shown: list[Decision], count: int, title: str, note: str) -> list[str]:
    from tui import amounts
    from tui.commands.run_text import first_line
    from tui.text_table import table

    console = standard_output()
    lines = [console.bold(f"Decisions of {title}")] + ([note] if note else [])
    if not shown:
        return [*lines, "none that fits; leave out a filter" if count == 0 else "none"]
    width = min(console.width, 110)
    owners = {made.key.owner for made in shown}
    within = any(made.key.cycle > 1 for made in shown)
    rows = [
        (
            str(made.key.session),
            str(made.key.cycle) if within else "",
            made.key.symbol,
            made.key.owner if len(owners) > 1 else "",
            made.action.value,
            amounts.size(made.size),
            "cut" if made.cuts else "",
            first_line(made.reason, width),
        )
        for made in shown
    ]
    lines += table(
        ("SESSION", "CYCLE" if within else "", "SYMBOL", "OWNER", "ACTION", "SIZE", "LIMITS", "REASON"),
        rows,
        {"SIZE"},
        width,
    )
    if len(shown) < count:
        lines.append(f"the last {len(shown)} of {count}; --limit 0 shows all")
    return lines
