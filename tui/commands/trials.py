"""`paperdesk trials` (research): list the looks at windows that deflate every result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import click

from engine.domain.text import counted
from engine.reports.amounts import percent
from engine.reports.table import Column, sign_ink
from tui.commands.options import COUNT, DAY, both_ends, lines_shown, symbol_list
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.plain_text import beginning, of_all, table_of


@command("trials")
@click.option("--symbols", metavar="A,B", help="Trials that looked at one of these symbols.")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First session of the window.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last session of the window.")
@click.option("--limit", type=COUNT, metavar="N", help="The latest N (default: 20; 0 and --json: all).")
def trials_command(
    *, invocation: Invocation, symbols: str | None, first: date | None, last: date | None, limit: int | None
) -> None:
    """Lists what was looked at on this machine: backtests, tuning trials, ablations, redecisions, audits and rows of
    tables, those of removed runs included.

    With a window it lists the trials whose windows overlap it by more than half of the shorter one: those that the
    `luck` of a result there counts. Trials with equal settings count once.

    \b
    Examples:
      paperdesk trials
      paperdesk trials --symbols AAPL --from 2023-06-01 --to 2023-12-29
    """
    from engine.reports.documents.luck import counted_trials, trials_document

    window = both_ends(first, last)
    document = trials_document(counted_trials(() if symbols is None else symbol_list(symbols), window))
    show_document(document, lambda: _lines(document, lines_shown(limit)))


COLUMNS = (
    Column("TIME", lambda one: one["time"][:16].replace("T", " ")),
    Column("KIND", "kind"),
    Column("NAME", "name"),
    Column("SYMBOLS", lambda one: beginning(",".join(one["symbols"]), 24)),
    Column("WINDOW", lambda one: f"{one['first']} to {one['last']}"),
    Column("RETURN", lambda one: "" if one["total_return"] is None else one["total_return"], percent, sign_ink),
    Column("RUN", "run"),
)


def _lines(document: Mapping[str, Any], limit: int) -> Iterator[str]:
    trials = document["trials"]
    if not trials:
        yield "no trial yet; `paperdesk backtest` counts one"
        return
    shown = trials[: limit or None]
    console = standard_output()
    yield from table_of(COLUMNS, shown, console.room, paint=console.inked)
    yield from of_all(len(shown), len(trials))
    yield f"{counted(document['count'], 'different trial')}; equal settings count once"
