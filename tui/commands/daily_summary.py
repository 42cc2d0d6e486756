"""What a daily run came to, read from the desk's journal: as one JSON document and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from engine.app.session_report import document_of
from engine.domain.run import EquityPoint, RunKind
from engine.execution.controls import halted
from engine.journal.reader import JournalReader
from tui import amounts
from tui.commands.daily import NOTHING_TO_DO
from tui.commands.desk_hand import since_words
from tui.commands.run_text import decided_by, first_line, model_words, order_words, trade_words
from tui.console import Console, show, standard_output
from tui.text_table import facts


def print_run(journal: Path, desk: str, run: str, outcome: str, as_json: bool) -> None:
    """Prints a daily run; `outcome` is `done`, `waiting` (for approval), `halted` or `nothing to do`."""
    with JournalReader(journal) as reader:
        document = document_of(reader, desk, run, outcome)
        if as_json:
            show(json.dumps(document, indent=2, allow_nan=False))
        else:
            show("\n".join(_lines(reader, desk, run, outcome, document, standard_output())))


def print_differences(journal: Path, desk: str, as_json: bool) -> None:
    """Prints in what broker and journal disagree, as the run that was halted by it wrote it down: JSON to standard
    output, the table for a person to standard error."""
    with JournalReader(journal) as reader:
        entry = reader.latest_run(RunKind.DAILY)
        if entry is None:
            return
        if as_json:
            show(json.dumps(document_of(reader, desk, entry.id), indent=2, allow_nan=False))
        else:
            click.echo("\n".join(difference_lines(entry.extra.get("differences", ()))), err=True)


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


def _lines(
    reader: JournalReader, desk: str, run: str, outcome: str, document: Mapping[str, Any], console: Console
) -> Iterator[str]:
    entry = reader.run(run)
    stopped = halted(reader)
    if stopped is not None:
        yield f"{console.bold('HALTED')} {since_words(stopped)}"
        yield "No order is sent until `paperdesk resume`."
    if outcome == NOTHING_TO_DO:
        yield f"Nothing to do: the desk {desk} has decided for {entry.session} already (run {run})."
        yield "See `paperdesk status`, `paperdesk decisions`, `paperdesk orders`."
        return
    width = min(console.width, 100)
    yield console.bold(f"Desk {desk}, session {entry.session}") + console.dim("   paper money")
    yield from facts([("Decided by", decided_by(entry))], width)
    yield ""
    decisions = reader.decisions(run)
    longest = max((len(made.key.symbol) for made in decisions), default=0)
    for made in decisions:
        size = f"{amounts.size(made.size)} %" if made.size else ""
        head = f"  {made.key.symbol:<{longest}}  {made.action.value:<7} {size:>5}  "
        yield (head + first_line(made.reason, width - len(head))).rstrip()
        if made.cut:
            yield from facts([("    cut:", made.cut)], width, label=9)
    yield ""
    books = next((point for point in reversed(reader.equity()) if point.session == entry.session), None)
    details = {one["id"]: one["detail"] for one in document["orders"]}
    orders = [order_words(known.order, details[known.order.id]) for known in reader.orders(run)]
    fills = [trade_words(fill) for fill in reader.fills(run)]
    fills += [
        f"{flow.session} {flow.symbol or 'the account'}: {flow.kind} {amounts.gain(flow.amount)}"
        for flow in reader.cash_flows(run)
    ]
    pairs = [
        ("Account", document["broker"]["account"] or ""),
        ("Orders", "\n".join(orders) or "none"),
        ("Waiting", _waiting(document)),
        ("Since last", "\n".join(fills) or "no fills"),
        ("Skipped", ", ".join(document["skipped"])),
    ]
    if books is not None:
        pairs += [
            ("Value", f"{amounts.money(books.value)}, of it cash {amounts.money(books.portfolio.cash)}"),
            ("Positions", "\n".join(held_words(books)) or "none"),
        ]
    pairs.append(("Model", model_words(entry.model)))
    yield from facts(pairs, width)


def _waiting(document: Mapping[str, Any]) -> str:
    waiting = document["waiting"]
    if not waiting or document["halted"] is not None:
        return ""
    return f"{len(waiting)} for a word of yours: `paperdesk approve` sends, `paperdesk veto` withdraws"


def held_words(books: EquityPoint) -> Iterator[str]:
    """What is held, a line per symbol."""
    for symbol, held in sorted(books.portfolio.positions.items()):
        price = books.prices.get(symbol)
        yield f"{symbol}: {amounts.quantity(held.quantity)} at {amounts.price(price)}"
