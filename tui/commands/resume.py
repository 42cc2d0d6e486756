"""`paperdesk resume` (controls): end a halt."""

from __future__ import annotations

import json

import click

from tui.commands.desk_hand import OpenOrders, counted, halted_json, hand_on, listed, open_orders, since_words
from tui.console import show
from tui.invocation import Invocation, desk_options


@click.command("resume")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, as_json: bool) -> None:
    """Ends a halt: what `paperdesk halt` stopped may go on. A desk that is not halted stays as it is.

    It sends nothing by itself: orders that were kept back are sent by the next `paperdesk --daily` or
    `paperdesk approve`, while their session is the last one.

    \b
    Examples:
      paperdesk resume
      paperdesk resume --desk growth --json
    """
    from engine.clock import LiveClock
    from engine.execution.controls import resume

    hand = hand_on(invocation)
    before = resume(hand.journal, LiveClock().now())
    orders = open_orders(hand.journal) if hand.journal.exists() else OpenOrders()
    if as_json:
        from engine.reports.documents import row_json

        kept = [row_json.order(entry.order) for entry in orders.kept]
        document = {**hand.head, "changed": before is not None, "was_halted": halted_json(before), "not_sent": kept}
        show(json.dumps(document, indent=2, allow_nan=False))
        return
    if before is None:
        show(f"the desk {hand.desk} is not halted")
    else:
        show(f"the desk {hand.desk} goes on; it was halted {since_words(before)}")
    if orders.kept:
        show("\n".join([f"{counted(orders.kept)} not sent yet:", *listed(orders.kept)]))
