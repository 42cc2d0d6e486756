"""`paperdesk veto` (controls): keep orders that wait for approval from being sent."""

from __future__ import annotations

import click

from tui.commands.approvals import answer
from tui.commands.options import json_option
from tui.invocation import Invocation, desk_options


@click.command("veto")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID]...")
@click.option("--all", "everything", is_flag=True, help="Every order that waits.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever looks at the order later.")
@json_option
@desk_options
def command(invocation: Invocation, order_ids: tuple[str, ...], everything: bool, reason: str, as_json: bool) -> int:
    """Vetoes orders of a desk that asks (broker.mode = ask): they are never sent.

    Without an order it lists those that wait. A veto holds at once, also for a run that is at work; the exit code is 1
    where an order that was named was sent before.

    \b
    Examples:
      paperdesk veto growth-20250314-1-AAPL-B-1 --reason "too much of one thing"
      paperdesk veto --all
    """
    return answer(invocation, "veto", order_ids, everything, as_json, reason)
