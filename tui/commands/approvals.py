"""Orders that wait for approval, for `paperdesk approve` and `paperdesk veto`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tui.commands.controlled import controlled_journal
from tui.console import show_json, show_lines, standard_output
from tui.invocation import Invocation
from tui.run_text import counted, halt_words, moment, terms

if TYPE_CHECKING:
    from engine.app.approvals import Answer, ApprovalDesk


def answer(
    invocation: Invocation, given: Answer, order_ids: Sequence[str], everything: bool, as_json: bool, reason: str = ""
) -> int:
    """Approve or veto orders and print what came of each; without orders list those that wait. Returns the exit code.
    Raises UsageError, MissingData, and after an approval what a daily run raises: the approval is written all the
    same."""
    from engine.app.approvals import answer_orders
    from engine.clock import LiveClock
    from engine.reports.documents.controls import answered_document, waiting_document

    if order_ids and everything:
        raise click.UsageError("name orders or say --all, not both")
    desk = _desk(invocation)
    if not order_ids and not everything:
        document = waiting_document(desk.desk, desk.state())
        _show(document, as_json, _waiting_lines(document, desk.now))
        return 0
    wanted = None if everything else order_ids
    done = asyncio.run(answer_orders(desk, given, wanted, now=LiveClock().now(), reason=reason))
    document = answered_document(desk.desk, desk.state(), done.orders)
    _show(document, as_json, _answered_lines(document))
    if done.error is not None:
        raise done.error
    return int(done.refused)


def _show(document: Mapping[str, Any], as_json: bool, lines: Iterator[str]) -> None:
    if as_json:
        show_json(document)
    else:
        show_lines(lines)


def _answered_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{terms(order)}: {order['stands']}" for order in document["orders"])
    if not document["orders"]:
        yield _none(document)
    yield from _halt_line(document)


def _waiting_lines(document: Mapping[str, Any], now: datetime | None) -> Iterator[str]:
    waiting = document["waiting"]
    yield from _halt_line(document)
    if not waiting:
        yield _none(document)
        return
    yield standard_output().bold(f"{counted(waiting)} of the desk {document['desk']} to approve or veto")
    for order in waiting:
        yield from _order_lines(order, now)
    yield "paperdesk approve ORDER_ID (or --all), paperdesk veto ORDER_ID (or --all)"


def _none(document: Mapping[str, Any]) -> str:
    return f"no order of the desk {document['desk']} waits for approval"


def _halt_line(document: Mapping[str, Any]) -> Iterator[str]:
    if document["halted"] is not None:
        since = halt_words(document["halted"])
        yield f"{standard_output().bold('HALTED')} {since}: nothing is sent until paperdesk resume"


def _order_lines(order: Mapping[str, Any], now: datetime | None) -> Iterator[str]:
    from tui import amounts
    from tui.plain_text import one_line
    from tui.text_table import facts

    stays = ""
    if order["stays_until"] is not None:
        until = datetime.fromisoformat(order["stays_until"])
        left = "" if now is None else f", {amounts.about(until - now)} more"
        stays = f"until {moment(order['stays_until'])}{left}"
    yield order["id"]
    pairs = [("Order", terms(order)), ("Why", one_line(order["reason"])), ("Stays", stays)]
    yield from (f"  {line}" for line in facts(pairs, min(standard_output().width, 100) - 2, label=7))


def _desk(invocation: Invocation) -> ApprovalDesk:
    """The desk of a call. Raises what `controlled_journal` raises."""
    from functools import partial

    from engine.app.approvals import ApprovalDesk
    from engine.app.runs import submit_approved
    from engine.execution.controls import stays_until

    journal, services = controlled_journal(invocation), invocation.services()
    return ApprovalDesk(
        desk=services.desk,
        journal=journal,
        mode=services.config.broker.mode,
        stays_until=partial(stays_until, services.desk_calendar(services.symbols), services.symbols),
        now=None if services.goes_by_broker else services.clock.now(),
        submit=partial(submit_approved, services),
    )
