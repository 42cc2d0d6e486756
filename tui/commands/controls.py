"""`paperdesk halt` (controls): stop the desk from sending orders, at once.
`paperdesk pause` (controls): start no new cycle until the desk is resumed.
`paperdesk resume` (controls): end a halt and a pause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import click

from engine.domain.text import counted
from tui.commands.due import operator_time
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.run_text import halt_words, terms

Document = Mapping[str, Any]


@command("halt", "--run")
@click.option("--reason", metavar="TEXT", default="", help="Reason, recorded in the journal.")
def halt_command(invocation: Invocation, reason: str) -> None:
    """The kill switch: the desk sends no orders until `paperdesk resume`.

    It takes effect at once, even for a run in another process or before the desk's first run. Orders already at the
    broker stay there; `paperdesk cancel` cancels them. A second halt changes nothing.

    \b
    Examples:
      paperdesk halt
      paperdesk halt --reason "earnings tonight" --desk growth
    """
    from engine.app.orders.controls import halt_desk

    document = halt_desk(invocation.begun_desk(), operator_time(invocation), reason)
    show_document(document, lambda: _held_lines(document, "halted", _flag(invocation)))


@command("pause", "--run")
@click.option("--reason", metavar="TEXT", default="", help="Reason, recorded in the journal.")
def pause_command(invocation: Invocation, reason: str) -> None:
    """No run of the desk starts a new cycle until `paperdesk resume`.

    A run settles its books, decides nothing and exits with 0; its session stays due. A cycle in progress finishes its
    current answer: in the app it then waits for the end of the pause; a `--daily` or `--watch` run ends, and the next
    one continues from the recorded answers. Orders already decided are still sent; use `paperdesk halt` to stop them.

    \b
    Examples:
      paperdesk pause
      paperdesk pause --reason "on holiday" --desk growth
    """
    from engine.app.orders.controls import pause_desk

    document = pause_desk(invocation.begun_desk(), operator_time(invocation), reason)
    show_document(document, lambda: _held_lines(document, "paused", _flag(invocation)))


@command("resume", "--run")
@click.option("--only", type=click.Choice(["halt", "pause"]), help="End only this one (default: both).")
def resume_command(invocation: Invocation, only: Literal["halt", "pause"] | None) -> None:
    """Ends a halt and a pause. Without either it changes nothing.

    Nothing is sent or decided at once: held-back orders are sent by the next `paperdesk --daily` or `paperdesk
    approve`, as long as their session is the last one, and the next run starts a cycle.

    \b
    Examples:
      paperdesk resume
      paperdesk resume --only pause
      paperdesk resume --desk growth --json
    """
    from engine.app.orders.controls import resume_desk

    document = resume_desk(invocation.begun_desk(), operator_time(invocation), only)
    show_document(document, lambda: _resume_lines(document, only))


def _flag(invocation: Invocation) -> str:
    return "" if invocation.desk is None else f" --desk {invocation.desk}"


def _held_lines(document: Document, state: str, flag: str) -> Iterator[str]:
    """A halt or a pause, and for a halt the orders that it keeps back."""
    already, since = "" if document["changed"] else " already", halt_words(document[state])
    yield f"{standard_output().bold(state.upper())}: the desk {document['desk']} is {state}{already}, {since}"
    for part, kept in (("not_sent", "not sent, kept back"), ("sent", "with the broker already, not called back")):
        yield from _orders(document.get(part, ()), kept)
    if state == "halted" and not (document["not_sent"] or document["sent"]):
        yield "no order waits, and none is with the broker"
    yield f"resume with: paperdesk resume{flag}"


def _resume_lines(document: Document, only: str | None) -> Iterator[str]:
    desk = f"the desk {document['desk']}"
    names = {"halt": "halted", "pause": "paused"}
    asked = [word for name, word in names.items() if only in (None, name)]
    ended = [word for word in asked if document[f"was_{word}"] is not None]
    for word in ended:
        yield f"{desk} resumed; it was {word} {halt_words(document[f'was_{word}'])}"
    if not ended:
        yield f"{desk} is not {' or '.join(asked)}"
    for word in names.values():
        if document[word] is not None:
            yield f"{desk} is still {word}, {halt_words(document[word])}"
    yield from _orders(document["not_sent"], "not sent yet")


def _orders(orders: Sequence[Document], state: str) -> Iterator[str]:
    if orders:
        yield f"{counted(len(orders), 'order')} {state}:"
        yield from (f"  {terms(order)}" for order in orders)
