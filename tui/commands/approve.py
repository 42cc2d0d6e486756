"""`paperdesk approve` (controls): let orders that wait for approval be sent."""

from __future__ import annotations

import click

from tui.commands.approvals import answer
from tui.commands.options import json_option
from tui.invocation import Invocation, desk_options


@click.command("approve")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID]...")
@click.option("--all", "everything", is_flag=True, help="Every order that waits.")
@json_option
@desk_options
def command(invocation: Invocation, order_ids: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Approves orders of a desk that asks (broker.mode = ask), and sends them at once where they may be.

    Without an order it lists those that wait, why, and how long each stays: until the session after its own is
    completed. Every check of a daily run is made again before an order is sent. The exit code is 1 where an order that
    was named can no longer be sent.

    \b
    Examples:
      paperdesk approve
      paperdesk approve growth-20250314-1-AAPL-B-1
      paperdesk approve --all --json
    """
    return answer(invocation, "approve", order_ids, everything, as_json)
