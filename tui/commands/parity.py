"""`paperdesk parity` (desk): replay a recorded day of the desk and compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import click

from engine.errors import MissingData
from tui.commands.options import DAY, json_option
from tui.console import Console, show_json, show_lines, standard_output
from tui.invocation import Invocation, desk_options

_WIDEST = 120


@click.command("parity")
@click.argument("session", type=DAY, metavar="SESSION", required=False)
@json_option
@desk_options
def command(invocation: Invocation, session: date | None, as_json: bool) -> None:
    """Replays a day of the desk on the backtest clock, from its inputs as they were seen and with recorded answers
    alone, and holds decisions and orders against those of that day.

    SESSION is the decision session (default: the last one decided). Where today's data are not what was seen, restated
    bars or late news, that is said too. Ends with 1 where a decision or an order differs. Nothing is written.

    \b
    Examples:
      paperdesk parity
      paperdesk parity 2025-03-14
      paperdesk parity 2025-03-14 --json
    """
    from engine.app.redecision import check_parity
    from engine.reports.documents.parity import parity_document

    with invocation.records() as records:
        if records.reader is None:
            raise MissingData(f"there is no day to replay: {records.absence}")
        if records.kind == "backtest":
            raise click.UsageError(f"--run {records.run} is a backtest: only days of the desk are replayed")
        found = check_parity(invocation.services(), records.reader, session, records.run)
        document = parity_document(records, found)
    if as_json:
        show_json(document)
    else:
        show_lines(_lines(document, standard_output()))
    click.get_current_context().exit(0 if document["same"] else 1)


def _lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    from tui.run_text import decided_by
    from tui.text_table import facts, table, wrapped

    width = min(console.width, _WIDEST)
    verdict = "every decision and order is the same" if document["same"] else "not the same"
    yield console.bold(f"Parity of {document['session']}: {verdict}")
    decisions = document["decisions"]
    differing = [one for one in decisions if not one["same"]]
    yield from facts(
        [
            ("Then", f"{decided_by(document['then'])}, run {document['run']}"),
            ("Replayed", f"{document['replayed']['label']}, from the inputs that were kept"),
            ("Decisions", f"{len(decisions) - len(differing)} of {len(decisions)} the same"),
            ("Orders", _orders(document["orders"], len(document["order_changes"]))),
            ("Data today", "" if document["data"] else "as they were seen"),
        ],
        width,
    )
    if differing:
        yield ""
        yield console.bold("Decisions that differ")
        head = ("SYMBOL", "OWNER", "THEN", "REPLAYED", "WHAT DIFFERS")
        yield from table(head, [_row(one) for one in differing], width=width)
    if document["order_changes"]:
        yield ""
        yield console.bold("Orders that differ")
        rows = [(change["order"], change["then"], change["replayed"]) for change in document["order_changes"]]
        yield from table(("ORDER", "THEN", "REPLAYED"), rows, width=width)
    if document["data"]:
        yield ""
        yield console.bold("Where today's data are not what was seen")
        for sentence in document["data"]:
            first, *others = wrapped(sentence, width - 4)
            yield f"  - {first}"
            yield from (f"    {line}" for line in others)


def _orders(orders: int, differing: int) -> str:
    if not orders and not differing:
        return "none then, and none now"
    return f"{orders} then, {differing} differ" if differing else f"{orders} of {orders} the same"


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from tui.run_text import action_words

    sides = ["not decided" if one[side] is None else action_words(one[side]) for side in ("then", "replayed")]
    owner = "" if one["owner"] == "desk" else one["owner"]
    return one["symbol"], owner, *sides, ", ".join(one["differs"])
