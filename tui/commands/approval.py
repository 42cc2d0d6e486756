"""`paperdesk approve` (controls): approve waiting orders and send them.
`paperdesk veto` (controls): reject waiting orders.
`paperdesk undo` (controls): undo an approval, veto or edit of an order that is not sent yet.
`paperdesk cancel` (controls): cancel open orders at the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.domain.order import OrderSize
from engine.domain.text import counted
from engine.reports import amounts
from tui.commands.options import size_of, size_options
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.plain_text import facts, one_line
from tui.text.run_text import effect_facts, halt_words, moment, order_words, terms

if TYPE_CHECKING:
    from engine.app.orders.approvals import Answer

Document = Mapping[str, Any]


@command("approve", "--run")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
@click.option("--all", "everything", is_flag=True, help="All waiting orders.")
@size_options
def approve_command(
    invocation: Invocation,
    order_ids: tuple[str, ...],
    *,
    everything: bool,
    quantity: Decimal | None,
    amount: Decimal | None,
) -> int:
    """Approves waiting orders (broker.mode = ask) and sends them at once if they may be sent.

    A symbol means all its waiting orders. Without an argument it lists waiting orders with the reason, the effect on
    the portfolio and the expiry: an order expires unsent when the session after its own has closed. Every check of a
    daily run is repeated before an order is sent. Exits with 1 if a named order can no longer be sent.

    A different size is checked against the cash floor and the free shares before it is accepted; the journal keeps the
    original size. An order for an amount stays an amount: shares are converted at the last close.

    \b
    Examples:
      paperdesk approve
      paperdesk approve growth-20250314-1-AAPL-B-1
      paperdesk approve AAPL MSFT
      paperdesk approve AAPL --quantity 25
      paperdesk approve --all --json
    """
    size = size_of(quantity, amount)
    if size is not None and (everything or len(order_ids) != 1):
        raise click.UsageError("a size needs one order: name it")
    return _answer(invocation, "approve", order_ids, everything=everything, size=size)


@command("veto", "--run")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
@click.option("--all", "everything", is_flag=True, help="All waiting orders.")
@click.option("--reason", metavar="TEXT", default="", help="Reason, recorded in the journal.")
def veto_command(invocation: Invocation, order_ids: tuple[str, ...], everything: bool, reason: str) -> int:
    """Rejects waiting orders (broker.mode = ask): they are never sent.

    A symbol means all its waiting orders. Without an argument it lists them. A veto takes effect at once, even for a
    run in progress. Exits with 1 if a named order was already sent.

    \b
    Examples:
      paperdesk veto AAPL --reason "too much of one thing"
      paperdesk veto --all
    """
    return _answer(invocation, "veto", order_ids, everything=everything, reason=reason)


@command("undo", "--run")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
@click.option("--all", "everything", is_flag=True, help="All orders with something to undo.")
def undo_command(invocation: Invocation, order_ids: tuple[str, ...], everything: bool) -> int:
    """Undoes the last approval, veto or edit of orders that are not sent yet; repeat it to go further back.

    Answers normally take effect at once, so undo works while the desk is halted, while a run is in progress, or within
    the app's waiting time (app.undo_seconds). Without an argument it lists orders with something to undo. After undoing
    a veto an order waits again, even if it had been approved before. Exits with 1 if a named order was already sent or
    has ended.

    \b
    Examples:
      paperdesk undo AAPL
      paperdesk undo --all --json
    """
    return _answer(invocation, "undo", order_ids, everything=everything)


def _answer(
    invocation: Invocation,
    answer: Answer,
    order_ids: Sequence[str],
    *,
    everything: bool,
    reason: str = "",
    size: OrderSize | None = None,
) -> int:
    """Answer orders and print the state that each came to; without orders list those that wait. Returns the
    exit code. Raises UsageError, MissingData, and after an approval what a daily run raises: the approval is written
    all the same."""
    from engine.app.orders.approvals import answer_orders, waiting_orders
    from engine.app.orders.controls import approval_desk
    from engine.clock import LiveClock
    from engine.reports.documents.controls import answered_document

    if order_ids and everything:
        raise click.UsageError("name orders or pass --all, not both")
    invocation.begun_desk()
    desk = approval_desk(invocation.services())
    if not order_ids and not everything:
        waiting = waiting_orders(desk, answer)
        show_document(waiting, lambda: _waiting_lines(waiting, answer, desk.now))
        return 0
    wanted, now = None if everything else order_ids, desk.now or LiveClock().now()
    done = asyncio.run(answer_orders(desk, answer, wanted, now=now, reason=reason, size=size))
    document = answered_document(desk.desk, desk.state(), done.orders)
    show_document(document, lambda: _answered_lines(document, answer))
    if done.error is not None:
        raise done.error
    return int(done.refused)


def _answered_lines(document: Document, answer: Answer) -> Iterator[str]:
    yield from _stand_lines(document)
    if not document["orders"]:
        yield _none(document, answer)
    yield from _halted_line(document)


def _stand_lines(document: Document) -> Iterator[str]:
    return (f"{terms(order)}: {order['stands']}" for order in document["orders"])


def _waiting_lines(document: Document, answer: Answer, now: datetime | None) -> Iterator[str]:
    waiting = document["waiting"]
    yield from _halted_line(document)
    if not waiting:
        yield _none(document, answer)
        return
    undoes = answer == "undo"
    wanted = "whose last answer or edit can be taken back" if undoes else "to approve or veto"
    yield standard_output().bold(f"{counted(len(waiting), 'order')} of the desk {document['desk']} {wanted}")
    for order in waiting:
        yield from _order_lines(order, now)
    verbs = ("undo",) if undoes else ("approve", "veto")
    yield ", ".join(f"paperdesk {verb} SYMBOL or ORDER_ID (or --all)" for verb in verbs)


def _none(document: Document, answer: Answer) -> str:
    lacks = "has an answer to take back" if answer == "undo" else "waits for approval"
    return f"no order of the desk {document['desk']} {lacks}"


def _halted_line(document: Document) -> Iterator[str]:
    if document["halted"] is not None:
        since = halt_words(document["halted"])
        yield f"{standard_output().bold('HALTED')} {since}: nothing is sent until paperdesk resume"


def _order_lines(order: Document, now: datetime | None) -> Iterator[str]:
    stays = ""
    if order["stays_until"] is not None:
        until = datetime.fromisoformat(order["stays_until"])
        left = "" if now is None else f", {amounts.about(until - now)} more"
        stays = f"until {moment(order['stays_until'])}{left}"
    yield order["id"]
    pairs = [
        ("Order", terms(order)),
        ("Why", one_line(order["reason"])),
        *effect_facts(order["effect"]),
        ("Stays", stays),
    ]
    yield from (f"  {line}" for line in facts(pairs, min(standard_output().width, 100) - 2, label=7))


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
    show_document(document, lambda: _stand_lines(document))
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
