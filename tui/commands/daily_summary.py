"""What a daily run came to, read from the desk's journal: as one JSON document and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from engine.desk.hand import halted
from engine.domain.decimal_text import money, plain
from engine.domain.order import OrderState
from engine.domain.run import EquityPoint
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports import row_json
from tui import amounts
from tui.commands.daily import NOTHING_TO_DO
from tui.commands.desk_hand import halted_json, since_words
from tui.commands.run_text import decided_by, first_line, model_words, order_words, trade_words
from tui.console import Console, show, standard_output
from tui.text_table import facts

SCHEMA = 1


def print_run(journal: Path, desk: str, run: str, outcome: str, as_json: bool) -> None:
    """Prints a daily run; `outcome` is `done`, `waiting` (for approval), `halted` or `nothing to do`."""
    with JournalReader(journal) as reader:
        document = daily_document(reader, desk, run, outcome)
        if as_json:
            show(json.dumps(document, indent=2, allow_nan=False))
        else:
            show("\n".join(_lines(reader, desk, run, outcome, document, standard_output())))


def print_differences(journal: Path, desk: str, as_json: bool) -> None:
    """Prints in what broker and journal disagree, as the run that was halted by it wrote it down: JSON to standard
    output, the table for a person to standard error."""
    with JournalReader(journal) as reader:
        entry = reader.latest_run("daily")
        if entry is None:
            return
        if as_json:
            show(json.dumps(daily_document(reader, desk, entry.id, entry.outcome or ""), indent=2, allow_nan=False))
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


def daily_document(reader: JournalReader, desk: str, run: str, outcome: str) -> dict[str, Any]:
    """A daily run as JSON's own types. `fills` and `cash_flows` are those since the run before it, `orders` wait for
    the next open, `waiting` are those of them that are not handed over (they wait for approval, or for the end of a
    halt), `skipped` are sessions that passed without a run, `halted` says how the desk stands now, `differences` in
    what broker and journal disagreed."""
    entry = reader.run(run)
    books, bound, orders = _books(reader, entry), reader.account(), reader.orders(run)
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": run,
        "session": str(entry.session),
        "outcome": outcome,
        "halted": halted_json(halted(reader)),
        "broker": {
            "kind": entry.extra.get("broker", "simulated"),
            "account": None if bound is None else bound.account,
        },
        "mode": entry.extra.get("mode", "auto"),
        "preset": entry.name,
        "label": entry.label,
        "decisions": [row_json.decision(made) for made in reader.decisions(run)],
        "orders": [row_json.order(known.order) for known in orders],
        "waiting": [known.order.id for known in orders if known.order.state is OrderState.INTENDED],
        "differences": list(entry.extra.get("differences", ())),
        "fills": [row_json.trade(fill) for fill in reader.fills(run)],
        "cash_flows": [row_json.cash_flow(flow) for flow in reader.cash_flows(run)],
        "skipped": [str(day) for day in _skipped(reader, entry)],
        "value": None if books is None else money(books.value),
        "cash": None if books is None else money(books.portfolio.cash),
        "positions": {} if books is None else positions(books),
        "model": None if entry.model is None else row_json.model_use(entry.model),
    }


def positions(books: EquityPoint) -> dict[str, dict[str, str | None]]:
    """What is held, by symbol."""
    return {
        symbol: {
            "quantity": plain(held.quantity),
            "price": money(books.prices[symbol]) if symbol in books.prices else None,
            "average_cost": money(round(held.average_cost, 6)),
        }
        for symbol, held in sorted(books.portfolio.positions.items())
    }


def _books(reader: JournalReader, entry: RunEntry) -> EquityPoint | None:
    """The books at the close that the run decided on."""
    return next((point for point in reversed(reader.equity()) if point.session == entry.session), None)


def _skipped(reader: JournalReader, entry: RunEntry) -> Iterator[Any]:
    """Sessions without a run between this run and the one before it."""
    earlier = [run for run in reader.runs("daily") if run.session and entry.session and run.session < entry.session]
    before = max((run.session for run in earlier if run.session and run.outcome != "skipped"), default=None)
    for run in earlier:
        if run.outcome == "skipped" and run.session and (before is None or run.session > before):
            yield run.session


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
    books = _books(reader, entry)
    orders = [order_words(known.order) for known in reader.orders(run)]
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
    return f"{len(waiting)} for a word of yours: `paperdesk approve` or `paperdesk veto`, then `paperdesk --daily`"


def held_words(books: EquityPoint) -> Iterator[str]:
    """What is held, a line per symbol."""
    for symbol, held in sorted(books.portfolio.positions.items()):
        price = books.prices.get(symbol)
        yield f"{symbol}: {amounts.quantity(held.quantity)} at {amounts.price(price)}"
