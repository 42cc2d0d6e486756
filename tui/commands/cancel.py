"""`paperdesk cancel` (controls): cancel open orders at the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import click

from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.run_text import order_words, terms

Document = Mapping[str, Any]


@command("cancel", "--run")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
def cancel_command(invocation: Invocation, order_ids: tuple[str, ...]) -> int:
    """Cancels open orders at the broker and books the outcome.

    A symbol means all its open orders. Without an argument it lists orders that can be canceled. Partial fills stay. On
    the simulated market an order can be canceled until the session in which it fills opens. Use `paperdesk veto` for an
    order that is not sent yet. Exits with 1 if a named order is not canceled, and with a daily run's code if the broker
    does not answer or account and books disagree.

    \b
    Examples:
      paperdesk cancel
      paperdesk cancel AAPL
      paperdesk cancel growth-20250314-1-AAPL-B-1 --json
    """
    from engine.app.orders.own_orders import cancel_orders, open_sent_orders

    invocation.begun_desk()
    services = invocation.services()
    if not order_ids:
        sent = open_sent_orders(services)
        show_document(sent, lambda: _sent_lines(sent))
        return 0
    done = asyncio.run(cancel_orders(services, order_ids))
    document = done.document
    show_document(document, lambda: [f"{terms(order)}: {order['stands']}" for order in document["orders"]])
    if done.error is not None:
        raise done.error
    return int(any(order["refused"] for order in document["orders"]))


def _sent_lines(document: Document) -> Iterator[str]:
    sent = document["sent"]
    if not sent:
        yield f"no order of the desk {document['desk']} is sent and open"
        return
    yield standard_output().bold(f"Open orders of the desk {document['desk']} that were sent")
    for order in sent:
        yield f"{order['id']}  {order_words(order)}"
    yield "paperdesk cancel SYMBOL or ORDER_ID"
