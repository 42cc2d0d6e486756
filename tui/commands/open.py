"""`paperdesk open` (desk): open the app at a past decision."""

from __future__ import annotations

import click

from engine.errors import UsageError
from tui.app.deep_link import Link, link_of
from tui.settings.invocation import Invocation, command
from tui.view.desk_port import Source


@command("open", "--json")
@click.argument("place", metavar="SYMBOL@SESSION[#PART]")
def open_command(invocation: Invocation, place: str) -> None:
    """Opens the app at the state right after a decision of the desk, or of a backtest with --run (default if the desk
    has no decisions: the latest backtest that has any).

    PART is why (the decision's trail, the default), desk, chart, agents or memory. Reports and notifications print this
    command beside every decision. In the app `\\` returns to the present.

    \b
    Examples:
      paperdesk open ORVL@2025-03-12
      paperdesk open ORVL@2025-03-12#chart
      paperdesk open ORVL@2025-03-12 --run backtest-20250701-120000-ab12
    """
    from engine.clock import LiveClock

    link = link_of(place)
    if link.session > LiveClock().now().date():
        raise UsageError(f"{place}: {link.session} is in the future")
    found = _found(invocation, link)
    from tui.commands import app

    app.run(invocation, link=found)


def _found(invocation: Invocation, link: Link) -> Link:
    """The place with the record that holds its decision. Raises MissingData where none does."""
    from engine.reports.documents.trail import decided

    with invocation.records(decisions=True) as records:
        made = decided(records, link.symbol, link.session)[0]
        backtest = records.run if records.is_backtest else None
        name = records.title if backtest is None else backtest
        return link.within(Source(name, records.required.path, backtest), made.key.symbol)
