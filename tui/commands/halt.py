"""`paperdesk halt` (controls): stop the desk from sending orders, at once."""

from __future__ import annotations

import json

import click

from tui.commands.desk_hand import OpenOrders, counted, halted_json, hand_on, listed, open_orders, since_words
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options


@click.command("halt")
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever looks at the desk later.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, reason: str, as_json: bool) -> None:
    """The kill switch: from now on the desk sends no order, until `paperdesk resume`.

    It holds at once, also for a run that is at work in another process and before a desk's first run. Orders that the
    broker has already are not called back. A second halt changes nothing.

    \b
    Examples:
      paperdesk halt
      paperdesk halt --reason "earnings tonight" --desk growth
    """
    from engine.clock import LiveClock
    from engine.execution.controls import halt

    hand = hand_on(invocation)
    halted, changed = halt(hand.journal, LiveClock().now(), " ".join(reason.split()))
    orders = open_orders(hand.journal)
    if as_json:
        from engine.reports.documents import row_json

        waiting = {
            "not_sent": [row_json.order(entry.order) for entry in orders.kept],
            "sent": [row_json.order(entry.order) for entry in orders.sent],
        }
        document = {**hand.head, "changed": changed, "halted": halted_json(halted), **waiting}
        show(json.dumps(document, indent=2, allow_nan=False))
        return
    already = "" if changed else " already"
    show(f"{standard_output().bold('HALTED')}: the desk {hand.desk} is halted{already}, {since_words(halted)}")
    show("\n".join(_waiting(orders)))
    show(f"go on with: paperdesk resume{'' if invocation.desk is None else f' --desk {hand.desk}'}")


def _waiting(orders: OpenOrders) -> list[str]:
    if not orders.kept and not orders.sent:
        return ["no order waits, and none is with the broker"]
    lines = []
    if orders.kept:
        lines += [f"{counted(orders.kept)} not sent, kept back:", *listed(orders.kept)]
    if orders.sent:
        lines += [f"{counted(orders.sent)} with the broker already, not called back:", *listed(orders.sent)]
    return lines
