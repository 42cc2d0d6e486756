"""A daily run as `paperdesk --daily` prints it: as one JSON document or as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from engine.app.desk_journal import DeskJournal
from engine.domain.run import RunKind
from engine.reports.documents.session import session_document
from tui import amounts
from tui.commands.daily import NOTHING_TO_DO
from tui.console import Console, show_json, show_lines, standard_output
from tui.run_text import decided_by, first_line, halt_words, model_words, opinions_line, order_words, trade_words
from tui.text_table import facts


def print_run(journal: DeskJournal, run: str, outcome: str, as_json: bool) -> None:
    """Print a daily run; `outcome` is `done`, `waiting` (for approval), `halted` or `nothing to do`."""
    assert journal.reader is not None  # the run is in it
    document = session_document(journal.reader, journal.desk, run, outcome)
    if as_json:
        show_json(document)
    else:
        show_lines(_lines(document, standard_output()))


def print_differences(journal: DeskJournal, as_json: bool) -> None:
    """Print the differences between broker and journal that halted the latest run: JSON to standard output, the table
    for a person to standard error."""
    reader = journal.reader
    entry = None if reader is None else reader.latest_run(RunKind.DAILY)
    if reader is None or entry is None:
        return
    document = session_document(reader, journal.desk, entry.id)
    if as_json:
        show_json(document)
    else:
        click.echo("\n".join(difference_lines(document["differences"])), err=True)


def difference_lines(differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """Both sides of every difference (as row_json has them), a line each."""
    if not differences:
        return []
    rows = [("", "journal", "broker", "difference")]
    rows += [
        (
            one["what"],
            *(("nothing" if one[side] is None else one[side]) for side in ("journal", "broker", "difference")),
        )
        for one in differences
        if not one["note"]
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    notes = [f"{one['what']}: {one['note']}" for one in differences if one["note"]]
    return (lines if len(rows) > 1 else []) + notes


def _lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    session, desk = document["session"], document["desk"]
    if document["halted"] is not None:
        yield f"{console.bold('HALTED')} {halt_words(document['halted'])}"
        yield "No order is sent until `paperdesk resume`."
    if document["outcome"] == NOTHING_TO_DO:
        yield f"Nothing to do: the desk {desk} has decided for {session} already (run {document['run']})."
        yield "See `paperdesk status`, `paperdesk decisions`, `paperdesk orders`."
        return
    width = min(console.width, 100)
    yield console.bold(f"Desk {desk}, session {session}") + console.dim("   paper money")
    decider = decided_by({"label": document["label"], "name": document["preset"], "decider": "preset"})
    yield from facts([("Decided by", decider)], width)
    yield ""
    yield from _decisions(document["decisions"], width)
    yield ""
    yield from facts(list(_facts(document)), width)


def _decisions(decisions: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    longest = max((len(made["symbol"]) for made in decisions), default=0)
    for made in decisions:
        size = f"{amounts.size(made['size'])} %" if made["size"] else ""
        head = f"  {made['symbol']:<{longest}}  {made['action']:<7} {size:>5}  "
        yield (head + first_line(made["reason"], width - len(head))).rstrip()
        yield from facts([("    cut:", made["cut"] or ""), ("    by:", opinions_line(made))], width, label=9)


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    since = [trade_words(fill) for fill in document["fills"]]
    since += [
        f"{flow['session']} {flow['symbol'] or 'the account'}: {flow['kind']} "
        f"{amounts.gain(amounts.number(flow['amount']))}"
        for flow in document["cash_flows"]
    ]
    yield "Account", document["broker"]["account"] or ""
    yield "Orders", "\n".join(map(order_words, document["orders"])) or "none"
    yield "Waiting", _waiting(document)
    yield "Since last", "\n".join(since) or "no fills"
    yield "Skipped", ", ".join(document["skipped"])
    if document["value"] is not None:
        value, cash = (amounts.money(amounts.number(document[name])) for name in ("value", "cash"))
        yield "Value", f"{value}, of it cash {cash}"
        yield "Positions", "\n".join(_positions(document["positions"])) or "none"
    yield "Model", model_words(document["model"])


def _waiting(document: Mapping[str, Any]) -> str:
    waiting = document["waiting"]
    if not waiting or document["halted"] is not None:
        return ""
    return f"{len(waiting)} for approval: `paperdesk approve` sends, `paperdesk veto` withdraws"


def _positions(held: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for symbol, position in held.items():
        quantity, price = amounts.number(position["quantity"]), amounts.number(position["price"])
        assert quantity is not None  # a position has one
        yield f"{symbol}: {amounts.quantity(quantity)} at {amounts.price(price)}"
