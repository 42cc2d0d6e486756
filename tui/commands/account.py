"""`paperdesk equity` (desk): print the desk's value at each close.
`paperdesk reconcile` (controls): compare the broker's account with the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.reports.amounts import gain, money, number, percent
from engine.reports.table import Column, sign_ink
from engine.reports.tables import SESSION
from tui.commands.options import DAY, at_option, check_order, limit_option, lines_shown, option_of
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import check_asks
from tui.text.console import NONE_FITS, as_json, listing, show, show_document, show_records, standard_output
from tui.text.plain_text import one_line, table, wrapped

if TYPE_CHECKING:
    from engine.reports.documents.account import BrokerValues
    from engine.reports.documents.records import At, Records

Document = Mapping[str, Any]
CHANGING = ("--adopt", "--rebuild")


@command("equity")
@click.option("--from", "first", type=DAY, metavar="DATE", help="First session.")
@click.option("--to", "last", type=DAY, metavar="DATE", help="Last session.")
@limit_option("last")
@at_option
def equity_command(*, invocation: Invocation, first: date | None, last: date | None, limit: int | None, at: At) -> None:
    """Prints value and cash at each close, with the change from the previous close and the drawdown; on a terminal also
    as curves. Deposits and withdrawals (transfers, adopted differences) count toward neither.

    For a desk at a broker it also shows the broker's own value, and any difference beyond rounding: holdings are equal,
    but a broker values them at its own prices. Cash movements without a trade are listed below: dividends, fees,
    interest, transfers.

    \b
    Examples:
      paperdesk equity
      paperdesk equity --run backtest-20250701-120000-ab12 --json
    """
    check_order(first, last)
    with invocation.records(at=at) as records:
        from engine.reports.documents.account import closes, equity_document

        values = _broker_values(invocation, records)
        shown = lines_shown(limit)
        document = equity_document(records, first=first, until=last, last=shown, broker=values)
        filtered = bool(closes(records))
    show_records(records, document, lambda: _equity_lines(records.title, document, values, filtered))


@command("reconcile", "--run")
@click.option("--adopt", is_flag=True, help="Adopt the broker's figures in every difference, recorded with the reason.")
@click.option("--rebuild", is_flag=True, help="Recover missing journal entries from the account.")
@option_of(CHANGING, "--dry-run", is_flag=True, help="Show the changes without writing them.")
@option_of(("--adopt",), "--reason", metavar="TEXT", default="", help="Reason, recorded in the journal.")
@option_of(CHANGING, "--yes", is_flag=True, help="Skip confirmation.")
def reconcile_command(
    *, invocation: Invocation, adopt: bool, rebuild: bool, dry_run: bool, reason: str, yes: bool
) -> int:
    """Compares the broker's account with the journal: cash, positions, open orders. Writes nothing unless told to.

    Exit codes are the daily run's: 0 if they agree, 75 if account entries still to come may explain the difference
    (cash, trades of the desk's own orders, a split), else 79. A desk with a difference does not trade until they agree.

    --adopt takes the broker's figures after confirmation; without a terminal it needs --yes. An entry that arrives
    later is not counted twice. Trades of the desk's own orders are not adopted while their entries are still to come.

    --rebuild is for a lost journal, or one older than the account: it recovers the desk's orders by their ids, and
    trades and books from the account's history. Items that are not the desk's are listed. A broker does not hold
    opinions and memories: restore a backup first to keep them.

    \b
    Examples:
      paperdesk reconcile
      paperdesk reconcile --adopt --reason "sold by hand at the broker"
      paperdesk reconcile --adopt --reason "a transfer" --yes --json
      paperdesk reconcile --rebuild --dry-run
    """
    why = " ".join(reason.split())
    if adopt and rebuild:
        raise click.UsageError("--adopt and --rebuild are two steps: recover first, adopt what is left")
    if adopt and not dry_run and not why:
        raise click.UsageError("--adopt needs --reason TEXT, which is recorded in the books")
    check_asks(yes or dry_run or not adopt, "check with `paperdesk reconcile`, then pass --adopt --yes")
    from engine.app.desk.reconciliation import adopt_account, rebuild_account, reconcile
    from engine.app.orders.controls import controlled_journal
    from engine.reports.documents.account import BrokerValues, reconciliation_document

    controlled_journal(invocation.desk_name)
    services = invocation.services()
    done = asyncio.run(rebuild_account(services, dry_run=dry_run) if rebuild else reconcile(services))
    document = reconciliation_document(done.desk, done.report, done.error, BrokerValues())
    if adopt and not (document["agree"] and document["begun"]):
        if not (as_json() or dry_run):
            show("\n".join(_reconciliation_lines(document)))
        if not (yes or dry_run) and not click.confirm(
            f"PAPER: take the broker's side in the journal of {done.desk}?", err=True
        ):
            show("nothing was adopted")
            return int(document["exit_code"])
        done = asyncio.run(adopt_account(services, why, dry_run=dry_run))
    with invocation.records() as records:
        values = _broker_values(invocation, records)
    document = reconciliation_document(
        done.desk, done.report, done.error, values, adopted=done.adopted, recovered=done.recovered, dry_run=dry_run
    )
    show_document(document, lambda: [*_changed(document), *_reconciliation_lines(document), *_value_lines(values)])
    return int(document["exit_code"])


def _broker_values(invocation: Invocation, records: Records) -> BrokerValues:
    """The broker's side of a desk's closes; none, without a note, for a desk of the simulated market. What keeps the
    broker from answering is a note: the journal's side can be shown without."""
    from engine.reports.documents.account import BrokerValues, broker_values, closes, in_an_account

    points = closes(records)
    if not points or not in_an_account(records):
        return BrokerValues()
    from engine.app.desk.reconciliation import broker_values as ask

    try:
        by_session = asyncio.run(ask(invocation.services(), points[0].session, points[-1].session))
    except PaperdeskError as error:
        return BrokerValues(note=f"the broker's values are not shown: {error}")
    return broker_values(records, by_session)


def _value_lines(values: BrokerValues) -> Iterator[str]:
    """The number of closes that are not compared, and of those whose values differ with the furthest; nothing where
    all agree."""
    texts, count = [values.note], len(values.by_session)
    if crypto := sum(one.crypto for one in values.by_session.values()):
        texts.append(
            f"at {crypto} of {counted(count, 'close')} crypto is held, which the broker values at the exchange's "
            "close, or now, and the desk at the end of the UTC day: these values are not compared"
        )
    if values.differing:
        most = max(values.differing, key=lambda one: abs(one.difference))
        texts.append(
            f"at {len(values.differing)} of {counted(count - crypto, 'close')} the broker's prices make another "
            f"value, the furthest off on {most.session}: {gain(most.difference)} "
            f"({10_000 * most.difference / most.journal:+.1f} basis points)"
        )
    for text in filter(None, texts):
        yield from wrapped(text, standard_output().width)


def _equity_lines(title: str, document: Document, values: BrokerValues, filtered: bool) -> Iterator[str]:
    from tui.text.equity_curves import equity_curves

    shown = document["equity"]
    yield standard_output().bold(f"Value of {title} by session")
    none = NONE_FITS if filtered else "no session yet"
    yield from listing(_equity_columns(values), shown, document["count"], none)
    yield from equity_curves(shown, standard_output()) if shown else ()
    for flow in (flow for row in shown for flow in row["cash_flows"]):
        subject = " ".join(filter(None, (flow["kind"], flow["symbol"])))
        yield f"{flow['session']}  {subject} {gain(number(flow['amount']))}"
    yield from _value_lines(values)


def _equity_columns(values: BrokerValues) -> Sequence[Column]:
    differing = {str(one.session) for one in values.differing}
    return (
        SESSION,
        Column("VALUE", "value", money),
        Column("BROKER", lambda row: row["broker_value"] or "", money, drop_order=2),
        Column("DIFFERS", lambda row: row["broker_difference"] if row["session"] in differing else "", gain),
        Column("CASH", "cash", money, drop_order=3),
        Column("HELD", lambda row: len(row["positions"]), str, drop_order=4),
        Column("DEPOSITS", lambda row: number(row["brought_in"]) or "", gain, drop_order=1),
        Column("CHANGE", "change", percent, sign_ink),
        Column("DRAWDOWN", "drawdown", "{:.2%}".format),
    )


def _changed(document: Document) -> Iterator[str]:
    adopted, recovered = ("would adopt", "would recover") if document["dry_run"] else ("adopted", "recovered")
    for one in document["adopted"]:
        yield f"{adopted} {one['what']}: {_amount(one['before'])} -> {_amount(one['after'])}"
    for one in document["recovered"]:
        yield f"{recovered} {one['id']}: {one['side']} {one['symbol']}, {one['state']}"


def _reconciliation_lines(document: Document) -> Iterator[str]:
    console, differences = standard_output(), document["differences"]
    yield console.bold(f"Desk {document['desk']} and the account {document['account']}") + console.dim("   paper money")
    differing = {one["what"] for one in differences}
    sides = {"cash": document["cash"], **document["positions"]}
    rows = [
        (what, _amount(side["journal"]), _amount(side["broker"]), "<- differs" if what in differing else "")
        for what, side in sides.items()
    ]
    yield from table(("", "JOURNAL", "BROKER", "DIFFERS"), rows, {"JOURNAL", "BROKER"}, console.room)
    yield from (f"{one['what']}: {one_line(one['note'] or '')}" for one in differences if one["difference"] is None)
    for one in document["expected"]:
        yield f"{one['what']}: {one['difference']} at the broker, a fee of a crypto trade that is not entered yet"
    for one in document["strange"]:
        yield f"not this desk's: order {one['id']}, {one['side']} {one['symbol']}, {one['state']}"
    if differences:
        yield f"they differ in {counted(len(differences), 'point')}: nothing is traded until they agree"
        yield from wrapped(document["detail"], console.width)
    elif document["begun"]:
        yield "they agree"
    if not document["begun"]:
        yield "the journal has nothing of this account yet: the desk's first run opens its books with the cash"


def _amount(text: str | None) -> str:
    amount = number(text)
    if amount is None:
        return "-"
    return f"{amount.normalize():,f}" if amount else "0"
