"""`paperdesk halt` (controls): stop the desk from sending orders, at once.
`paperdesk resume` (controls): end a halt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from tui.commands.options import json_option
from tui.console import show_document, standard_output
from tui.invocation import Invocation, desk_options
from tui.run_text import counted, halt_words, terms

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
