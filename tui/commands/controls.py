"""`paperdesk halt` (controls): stop the desk from sending orders, at once.
`paperdesk resume` (controls): end a halt.
`paperdesk approve` (controls): let orders that wait for approval be sent.
`paperdesk veto` (controls): keep orders that wait for approval from being sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import json_option
from tui.console import show_document, standard_output
from tui.invocation import Invocation, desk_options
from tui.run_text import counted, halt_words, moment, terms

if TYPE_CHECKING:
    from engine.app.approvals import Answer

Document = Mapping[str, Any]


@click.command("halt")
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever looks at the desk later.")
@json_option
@desk_options
def halt_command(invocation: Invocation, reason: str, as_json: bool) -> None:
    """The kill switch: from now on the desk sends no order, until `paperdesk resume`.

    It holds at once, also for a run that is at work in another process and before a desk's first run. Orders that the
    broker has already are not called back. A second halt changes nothing.

    \b
    Examples:
      paperdesk halt
      paperdesk halt --reason "earnings tonight" --desk growth
    """
    from engine.app.controls import halt_desk
    from engine.clock import LiveClock

    invocation.refuse_run()
    document = halt_desk(invocation.desk_name, LiveClock().now(), reason)
    flag = "" if invocation.desk is None else f" --desk {invocation.desk}"
    show_document(document, as_json, lambda: _halt_lines(document, flag))


@click.command("resume")
@json_option
@desk_options
def resume_command(invocation: Invocation, as_json: bool) -> None:
    """Ends a halt: what `paperdesk halt` stopped may go on. A desk that is not halted stays as it is.

    It sends nothing by itself: orders that were kept back are sent by the next `paperdesk --daily` or
    `paperdesk approve`, while their session is the last one.

    \b
    Examples:
      paperdesk resume
      paperdesk resume --desk growth --json
    """
    from engine.app.controls import resume_desk
    from engine.clock import LiveClock

    invocation.refuse_run()
    document = resume_desk(invocation.desk_name, LiveClock().now())
    show_document(document, as_json, lambda: _resume_lines(document))


@click.command("approve")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
@click.option("--all", "everything", is_flag=True, help="Every order that waits.")
@json_option
@desk_options
def approve_command(invocation: Invocation, order_ids: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Approves orders of a desk that asks (broker.mode = ask), and sends them at once where they may be.

    A symbol stands for every order of it that waits. Without an order it lists those that wait, why, and how long each
    stays: until the session after its own is completed. Every check of a daily run is made again before an order is
    sent. The exit code is 1 where an order that was named can no longer be sent.

    \b
    Examples:
      paperdesk approve
      paperdesk approve growth-20250314-1-AAPL-B-1
      paperdesk approve AAPL MSFT
      paperdesk approve --all --json
    """
    return _answer(invocation, "approve", order_ids, everything=everything, as_json=as_json)


@click.command("veto")
@click.argument("order_ids", nargs=-1, metavar="[ORDER_ID|SYMBOL]...")
@click.option("--all", "everything", is_flag=True, help="Every order that waits.")
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever looks at the order later.")
@json_option
@desk_options
def veto_command(
    invocation: Invocation, order_ids: tuple[str, ...], everything: bool, reason: str, as_json: bool
) -> int:
    """Vetoes orders of a desk that asks (broker.mode = ask): they are never sent.

    A symbol stands for every order of it that waits. Without an order it lists those that wait. A veto holds at once,
    also for a run that is at work; the exit code is 1 where an order that was named was sent before.

    \b
    Examples:
      paperdesk veto AAPL --reason "too much of one thing"
      paperdesk veto --all
    """
    return _answer(invocation, "veto", order_ids, everything=everything, as_json=as_json, reason=reason)


def _answer(
    invocation: Invocation,
    answer: Answer,
    order_ids: Sequence[str],
    *,
    everything: bool,
    as_json: bool,
    reason: str = "",
) -> int:
    """Approve or veto orders and print the state that each came to; without orders list those that wait. Returns the
    exit code. Raises UsageError, MissingData, and after an approval what a daily run raises: the approval is written
    all the same."""
    from engine.app.approvals import answer_orders
    from engine.app.controls import approval_desk
    from engine.clock import LiveClock
    from engine.reports.documents.controls import answered_document, waiting_document

    if order_ids and everything:
        raise click.UsageError("name orders or say --all, not both")
    invocation.refuse_run()
    desk = approval_desk(invocation.services())
    if not order_ids and not everything:
        waiting = waiting_document(desk.desk, desk.state())
        show_document(waiting, as_json, lambda: _waiting_lines(waiting, desk.now))
        return 0
    wanted = None if everything else order_ids
    done = asyncio.run(answer_orders(desk, answer, wanted, now=LiveClock().now(), reason=reason))
    document = answered_document(desk.desk, desk.state(), done.orders)
    show_document(document, as_json, lambda: _answered_lines(document))
    if done.error is not None:
        raise done.error
    return int(done.refused)


def _halt_lines(document: Document, flag: str) -> Iterator[str]:
    already, since = "" if document["changed"] else " already", halt_words(document["halted"])
    yield f"{standard_output().bold('HALTED')}: the desk {document['desk']} is halted{already}, {since}"
    parts = (("not_sent", "not sent, kept back"), ("sent", "with the broker already, not called back"))
    for part, state in parts:
        yield from _orders(document[part], state)
    if not any(document[part] for part, _ in parts):
        yield "no order waits, and none is with the broker"
    yield f"go on with: paperdesk resume{flag}"


def _resume_lines(document: Document) -> Iterator[str]:
    if document["was_halted"] is None:
        yield f"the desk {document['desk']} is not halted"
    else:
        yield f"the desk {document['desk']} goes on; it was halted {halt_words(document['was_halted'])}"
    yield from _orders(document["not_sent"], "not sent yet")


def _orders(orders: Sequence[Document], state: str) -> Iterator[str]:
    if orders:
        yield f"{counted(orders)} {state}:"
        yield from (f"  {terms(order)}" for order in orders)


def _answered_lines(document: Document) -> Iterator[str]:
    yield from (f"{terms(order)}: {order['stands']}" for order in document["orders"])
    if not document["orders"]:
        yield _none(document)
    yield from _halted_line(document)


def _waiting_lines(document: Document, now: datetime | None) -> Iterator[str]:
    waiting = document["waiting"]
    yield from _halted_line(document)
    if not waiting:
        yield _none(document)
        return
    yield standard_output().bold(f"{counted(waiting)} of the desk {document['desk']} to approve or veto")
    for order in waiting:
        yield from _order_lines(order, now)
    yield "paperdesk approve SYMBOL or ORDER_ID (or --all), paperdesk veto SYMBOL or ORDER_ID (or --all)"


def _none(document: Document) -> str:
    return f"no order of the desk {document['desk']} waits for approval"


def _halted_line(document: Document) -> Iterator[str]:
    if document["halted"] is not None:
        since = halt_words(document["halted"])
        yield f"{standard_output().bold('HALTED')} {since}: nothing is sent until paperdesk resume"


def _order_lines(order: Document, now: datetime | None) -> Iterator[str]:
    from tui import amounts
    from tui.plain_text import facts, one_line

    stays = ""
    if order["stays_until"] is not None:
        until = datetime.fromisoformat(order["stays_until"])
        left = "" if now is None else f", {amounts.about(until - now)} more"
        stays = f"until {moment(order['stays_until'])}{left}"
    yield order["id"]
    pairs = [("Order", terms(order)), ("Why", one_line(order["reason"])), ("Stays", stays)]
    yield from (f"  {line}" for line in facts(pairs, min(standard_output().width, 100) - 2, label=7))
