"""`paperdesk status` (desk): show the state of the desk on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tui.commands.options import at_option, json_option
from tui.console import show_records, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.reports.documents.records import At, Records


@click.command("status")
@at_option
@json_option
@desk_options
def command(invocation: Invocation, at: At, as_json: bool) -> None:
    """Says how the desk stands: whether it is halted, its last run, its value, what waits, what it holds and cost.

    \b
    Examples:
      paperdesk status
      paperdesk status --desk growth --json
      paperdesk status --run backtest-20250701-120000-ab12
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.status import status_document

        document = status_document(records, None if records.run or at is not None else _last_completed(invocation))
    show_records(records, document, as_json, lambda: _lines(records, document))


def _last_completed(invocation: Invocation) -> date | None:
    """The last completed session of the desk; None where that is not quickly known."""
    from engine.errors import PaperdeskError
    from tui.commands.due import desk_time, due_session, symbols_of

    services = invocation.services() if invocation.configured else None
    services = invocation.services() if invocation.configured else None
    try:
        now = desk_time(services)
    except PaperdeskError:  # no keys here: the records can be shown without
        return None
    return None if now is None else due_session(symbols_of(services), now=now)


def _lines(records: Records, document: Mapping[str, Any]) -> Iterator[str]:
    from tui.commands.positions import position_lines
    from tui.run_text import halt_words
    from tui.text_table import facts

    console, title = standard_output(), records.title
    yield console.bold(f"{title[0].upper()}{title[1:]}") + console.dim("   paper money")
    pairs = []
    if document["halted"] is not None:
        pairs.append(("HALTED", f"{halt_words(document['halted'])}\nno order is sent: paperdesk resume"))
    pairs += _run_facts(document["last_run"], "Last run" if records.run is None else "Run")
    if document["due"] is not None:
        pairs.append(("Due", f"{document['due']} is completed and not decided yet: paperdesk --daily"))
    pairs += _facts(document)
    yield from facts(pairs, min(console.width, 100))
    if document["session"] is not None:
        yield ""
        yield from position_lines(document)


def _run_facts(run: Mapping[str, Any] | None, title: str) -> Iterator[tuple[str, str]]:
    if run is None:
        return
    from tui.run_text import decided_by

    yield "Decided by", decided_by(run)
    target = f"for {run['session']}, " if run["session"] else ""
    at = f"{datetime.fromisoformat(run['ended'] or run['started']):%Y-%m-%d %H:%M} UTC"
    ended = {
        None: f"begun {at} and not finished: it is at work, or was killed and goes on with the next one",
        "done": f"done {at}",
    }.get(run["outcome"], f"{run['outcome']} {at}")
    why = f": {run['detail']}" if run["detail"] and run["outcome"] != "done" else ""
    yield title, f"{target}{ended}{why} ({run['id']})"


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from tui import amounts
    from tui.run_text import order_words

    if document["session"] is not None:
        yield "Value", _value(document)
    yield "Waiting", "\n".join(map(order_words, document["open_orders"])) or "no order"
    counts, model = document["counts"], document["model"]
    yield "So far", f"{counts['decisions']:,} decisions, {counts['orders']:,} orders, {counts['fills']:,} fills"
    silent, cost = f"{model['abstentions']:,} without an answer", amounts.cost(amounts.number(model["cost"]))
    yield "Models", f"{model['calls']:,} calls, {silent}, {cost}" if model["calls"] else ""


def _value(document: Mapping[str, Any]) -> str:
    from tui import amounts

    change, whole, brought = document["change"], document["total_return"], Decimal(document["brought_in"])
    parts = [
        f"{amounts.money(Decimal(document['value']))} at {document['session']}",
        "" if change is None else f"{amounts.percent(change)} on the session",
        f"{amounts.percent(whole)} since the start" if whole is not None and document["initial_value"] else "",
        f"without {amounts.gain(brought)} that was brought in or taken out" if brought else "",
    ]
    return ", ".join(filter(None, parts))
