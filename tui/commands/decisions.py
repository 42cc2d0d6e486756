"""`paperdesk decisions` (desk): list decisions.
`paperdesk orders` (desk): list the desk's orders and their fills.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.domain.order import YOU
from engine.domain.text import state_words
from engine.reports.amounts import price, quantity, size
from engine.reports.settings_text import changed_text
from engine.reports.table import Column
from engine.reports.tables import REQUESTED, SESSION, SIDE, SYMBOL
from tui.commands.options import DAY, at_option, check_order, limit_option, lines_shown
from tui.settings.invocation import Invocation, command
from tui.text.console import NONE_FITS, listing, show_records, standard_output
from tui.text.plain_text import wrapped
from tui.text.run_text import opinions_line, order_words, reason_words

if TYPE_CHECKING:
    from engine.reports.documents.records import At, Records

DECISIONS = (
    SESSION,
    Column("CYCLE", lambda made: made["cycle"] if made["cycle"] > 1 else ""),
    SYMBOL,
    Column("OWNER", "owner"),
    Column("ACTION", "action"),
    Column("SIZE", "size", size),
    Column("LIMITS", lambda made: "cut" if made["cut"] else "", drop_order=2),
    Column("OPINIONS", opinions_line, drop_order=3),
    Column(
        "REASON", lambda made: reason_words(made["action"], made["reason"].strip().partition("\n")[0]), stretch=True
    ),
)
ORDERS = (
    SESSION,
    SYMBOL,
    SIDE,
    REQUESTED,
    Column("STATE", "state"),
    Column("FILLED", "filled", quantity),
    Column("PRICE", "price", price, drop_order=1),
    Column("ON", "on", drop_order=2),
)


@command("decisions")
@click.option("--symbol", metavar="SYMBOL", help="Filter by symbol.")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First decision session.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last decision session.")
@click.option(
    "--action",
    type=click.Choice(["buy", "sell", "hold", "abstain"], case_sensitive=False),
    help="Filter by action (ABSTAIN is separate from HOLD).",
)
@limit_option("last")
@click.option("--warm-up", is_flag=True, help="Decisions of a backtest's warm-up instead of its test.")
@click.option("--owners", is_flag=True, help="Score owners' opinions and agents' reports instead.")
@at_option
def decisions_command(
    *,
    invocation: Invocation,
    symbol: str | None,
    first: date | None,
    last: date | None,
    action: str | None,
    limit: int | None,
    warm_up: bool,
    owners: bool,
    at: At,
) -> None:
    """Lists the desk's decisions, or the latest backtest's if the desk has not run yet.

    The date is the decision session, the last one whose data was read. SIZE is in percent of the portfolio; a cut
    decision was reduced by the limits. `paperdesk why SYMBOL DATE` explains one.

    With --owners a table shows each owner's hit rate after 1, 5 and 20 sessions, its average gain when right against
    its average loss when wrong (slugging), and the rank correlation of signed size and return; abstentions are counted
    separately. Stated confidence is calibrated against outcomes, and agents' reports that take a side are scored too.
    Intervals are 95 %.

    \b
    Examples:
      paperdesk decisions
      paperdesk decisions --symbol ORVL --from 2025-03-01 --action buy
      paperdesk decisions --run backtest-20250701-120000-ab12 --limit 0
      paperdesk decisions --owners
    """
    check_order(first, last)
    if owners:
        if action is not None or limit is not None:
            raise click.UsageError("--owners scores all opinions: leave out --action and --limit")
        narrow = {"symbol": symbol, "first": first, "until": last, "warm_up": warm_up}
        _show_owners(invocation, narrow, at)
        return
    with invocation.records(at, decisions=True) as records:
        from engine.reports.documents.decisions import decisions_document

        document = decisions_document(
            records,
            symbol=symbol,
            first=first,
            until=last,
            action=action,
            warm_up=warm_up,
            last=lines_shown(limit),
        )
    show_records(records, document, lambda: _decision_lines(records, document))


def _show_owners(invocation: Invocation, narrow: Mapping[str, Any], at: At) -> None:
    with invocation.records(at, decisions=True) as records:
        from engine.app.research.market_data import known_closes
        from engine.reports.documents.owners import owners_document

        def closes(read: Records, symbols: Sequence[str]) -> Any:
            return known_closes(invocation.services(), read, symbols)

        document = owners_document(records, closes, **narrow)

    def lines() -> Iterator[str]:
        from tui.text.owners_text import owner_lines

        console = standard_output()
        yield from map(console.inked, owner_lines(document, records.title, console.width, console.room))

    show_records(records, document, lines)


def _decision_lines(records: Records, document: Mapping[str, Any]) -> Iterator[str]:
    console, shown = standard_output(), document["decisions"]
    yield console.bold(f"Decisions of {records.title}")
    if records.note:
        yield records.note
    several = len({made["owner"] for made in shown}) > 1
    columns = [one for one in DECISIONS if several or one.title != "OWNER"]
    yield from listing(columns, shown, document["count"], NONE_FITS)
    sessions = {made["run"]: made["session"] for made in shown}
    for run, changed in document["changed"].items():
        yield from wrapped(f"settings changed for {sessions[run]}, {changed_text(changed)}", min(console.width, 110))


@command("orders")
@click.option("--symbol", metavar="SYMBOL", help="Filter by symbol.")
@click.option("--open", "open_only", is_flag=True, help="Only open orders.")
@limit_option("last")
@at_option
def orders_command(*, invocation: Invocation, symbol: str | None, open_only: bool, limit: int | None, at: At) -> None:
    """Lists orders with their state and fills, by decision session; each fills at the next open.

    \b
    Examples:
      paperdesk orders --open
      paperdesk orders --symbol ORVL --json
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.decisions import orders_document

        document = orders_document(records, symbol=symbol, open_only=open_only, last=lines_shown(limit))
    filtered = symbol is not None or open_only
    show_records(records, document, lambda: _order_lines(records.title, document, filtered))


def _order_lines(title: str, document: Mapping[str, Any], filtered: bool) -> Iterator[str]:
    yield standard_output().bold(f"Orders of {title}")
    orders = document["orders"]
    yield from listing(ORDERS, [*map(_filled, orders)], document["count"], NONE_FITS if filtered else "none")
    for order in orders:
        if order["detail"] or order["edited_from"]:
            yield from wrapped(f"{order['session']} {order_words(order)}", standard_output().width)


def _filled(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """An order with what came of it."""
    fills = [(Decimal(fill["quantity"]), Decimal(fill["price"])) for fill in order["fills"]]
    shares = sum((quantity for quantity, _ in fills), Decimal(0))
    paid = sum((quantity * price for quantity, price in fills), Decimal(0))
    state = state_words(order["state"]) + (", yours" if order["owner"] == YOU else "")
    on = order["fills"][-1]["session"] if fills else ""
    return {**order, "state": state, "filled": shares or "", "price": paid / shares if shares else "", "on": on}
