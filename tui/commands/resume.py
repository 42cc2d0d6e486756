"""`paperdesk resume` (controls): end a halt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from tui.commands.controlled import controlled_journal
from tui.commands.options import json_option
from tui.console import show_json, show_lines
from tui.invocation import Invocation, desk_options
from tui.run_text import counted, halt_words, terms


@click.command("resume")
@json_option
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
    from engine.reports.documents.controls import resume_document

    journal = controlled_journal(invocation)
    document = resume_document(invocation.desk_name, journal, resume(journal, LiveClock().now()))
    if as_json:
        show_json(document)
    else:
        show_lines(_lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["was_halted"] is None:
        yield f"the desk {document['desk']} is not halted"
    else:
        yield f"the desk {document['desk']} goes on; it was halted {halt_words(document['was_halted'])}"
    if document["not_sent"]:
        yield f"{counted(document['not_sent'])} not sent yet:"
        yield from (f"  {terms(order)}" for order in document["not_sent"])
