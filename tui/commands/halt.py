"""`paperdesk halt` (controls): stop the desk from sending orders, at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from tui.commands.controlled import controlled_journal
from tui.commands.options import json_option
from tui.console import show_json, show_lines, standard_output
from tui.invocation import Invocation, desk_options
from tui.run_text import counted, halt_words, terms


@click.command("halt")
@click.option("--reason", metavar="TEXT", default="", help="Why, for whoever looks at the desk later.")
@json_option
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
    from engine.reports.documents.controls import halt_document

    journal = controlled_journal(invocation)
    _, changed = halt(journal, LiveClock().now(), " ".join(reason.split()))
    document = halt_document(invocation.desk_name, journal, changed=changed)
    if as_json:
        show_json(document)
    else:
        show_lines(_lines(document, "" if invocation.desk is None else f" --desk {invocation.desk}"))


def _lines(document: Mapping[str, Any], flag: str) -> Iterator[str]:
    already, since = "" if document["changed"] else " already", halt_words(document["halted"])
    yield f"{standard_output().bold('HALTED')}: the desk {document['desk']} is halted{already}, {since}"
    unsent, sent = document["not_sent"], document["sent"]
    if unsent:
        yield f"{counted(unsent)} not sent, kept back:"
        yield from (f"  {terms(order)}" for order in unsent)
    if sent:
        yield f"{counted(sent)} with the broker already, not called back:"
        yield from (f"  {terms(order)}" for order in sent)
    if not unsent and not sent:
        yield "no order waits, and none is with the broker"
    yield f"go on with: paperdesk resume{flag}"
