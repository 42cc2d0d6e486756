"""`paperdesk equity` (desk): print the desk's value at each close."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from tui.commands.broker_values import asked_values, value_words
from tui.commands.options import DAY, at_option, check_order, json_option, limit_option, lines_shown, of_all
from tui.console import show_records, standard_output
from tui.invocation import Invocation, desk_options
from tui.text_table import table, wrapped

if TYPE_CHECKING:
    from engine.reports.documents.equity import BrokerValues
    from engine.reports.documents.records import At


@click.command("equity")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First session.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last session.")
@limit_option("last")
@at_option
@json_option
@desk_options
def command(
    *, invocation: Invocation, first: date | None, last: date | None, limit: int | None, at: At, as_json: bool
) -> None:
    """Prints value and cash at each close, with the change since the close before and the fall from the highest. What
    was brought in or taken out (transfers, adopted differences) counts for neither.

    Of a desk in an account at a broker it shows the broker's own value as well, and how far it is off where rounding
    does not explain it: both sides hold the same, but a broker values it at prices of its own. Cash that moved without
    a trade is named below: dividends, fees, interest, transfers.

    \b
    Examples:
      paperdesk equity
      paperdesk equity --run backtest-20250701-120000-ab12 --json
    """
    check_order(first, last)
    with invocation.records(at=at) as records:
        from engine.reports.documents.equity import closes, equity_document

        theirs = asked_values(invocation, records)
        document = equity_document(records, first=first, until=last, last=lines_shown(limit, as_json), broker=theirs)
        filtered = bool(closes(records))
    show_records(records, document, as_json, lambda: _lines(records.title, document, theirs, filtered))


def _lines(title: str, document: Mapping[str, Any], theirs: BrokerValues, filtered: bool) -> Iterator[str]:
    from tui import amounts

    console, shown = standard_output(), document["equity"]
    yield console.bold(f"Value of {title} by session")
    if shown:
        yield from _table(shown, theirs)
    else:
        yield "none that fits; leave out a filter" if filtered else "no session yet"
    yield from of_all(len(shown), document["count"])
    for flow in (flow for row in shown for flow in row["cash_flows"]):
        subject = " ".join(filter(None, (flow["kind"], flow["symbol"])))
        yield f"{flow['session']}  {subject} {amounts.gain(amounts.number(flow['amount']))}"
    if words := value_words(theirs):
        yield from wrapped(words, console.width)


def _table(rows: Sequence[Mapping[str, Any]], theirs: BrokerValues) -> Iterator[str]:
    from tui import amounts

    differing = {str(one.session) for one in theirs.differing}

    def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
        broker, brought = amounts.number(row["broker_value"]), amounts.number(row["brought_in"])
        return (
            row["session"],
            amounts.money(amounts.number(row["value"])),
            "" if broker is None else amounts.money(broker),
            amounts.gain(amounts.number(row["broker_difference"])) if row["session"] in differing else "",
            amounts.money(amounts.number(row["cash"])),
            str(len(row["positions"])),
            amounts.gain(brought) if brought else "",
            amounts.percent(row["change"]),
            f"{100 * row['drawdown']:.2f}%",
        )

    head = ("SESSION", "VALUE", "BROKER", "DIFFERS", "CASH", "HELD", "BROUGHT IN", "CHANGE", "DRAWDOWN")
    return table(head, [cells(row) for row in rows], set(head[1:]), standard_output().width)
