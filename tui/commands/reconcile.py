"""`paperdesk reconcile` (controls): compare the broker's account with the journal."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DeskHalted
from tui.commands.broker_values import BrokerValues, broker_values_of, value_row
from tui.commands.desk_hand import hand_on
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options
from tui.text_table import wrapped

if TYPE_CHECKING:
    from decimal import Decimal

    from engine.app.reconciliation import Reconciled
    from engine.domain.brokerage import Difference
    from engine.domain.run import Adoption


@click.command("reconcile")
@click.option("--adopt", is_flag=True, help="Take the broker's side in every difference, recorded with the reason.")
@click.option("--reason", metavar="TEXT", default="", help="With --adopt: why, for whoever reads the books later.")
@click.option("--yes", is_flag=True, help="With --adopt: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, adopt: bool, reason: str, yes: bool, as_json: bool) -> int:
    """Compares the broker's account with the journal: cash, positions, open orders. Writes nothing by itself.

    The exit code is 0 where they agree and 79 where they differ; a desk that differs trades nothing until they agree.
    --adopt takes the broker's side once it is confirmed; on a terminal it asks, elsewhere it needs --yes.

    \b
    Examples:
      paperdesk reconcile
      paperdesk reconcile --adopt --reason "sold by hand at the broker"
      paperdesk reconcile --adopt --reason "a transfer" --yes --json
    """
    if not adopt and (reason or yes):
        raise click.UsageError("--reason and --yes belong to --adopt")
    why = " ".join(reason.split())
    if adopt and not why:
        raise click.UsageError("--adopt needs --reason TEXT: it stands in the books")
    if adopt and not yes and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("nobody can be asked here: look with paperdesk reconcile, then say --adopt --yes")
    from engine.app.reconciliation import adopt_account, reconcile

    hand_on(invocation)
    services = invocation.services()
    done = asyncio.run(reconcile(services))
    adopted: Sequence[Adoption] = ()
    if adopt and (done.found.differences or done.found.kept.bound is None):
        if not as_json:
            show("\n".join(_lines(done)))
        if not yes and not click.confirm(f"PAPER: take the broker's side in the journal of {done.desk}?", err=True):
            show("nothing was adopted")
            return DeskHalted.exit_code
        adopted = asyncio.run(adopt_account(services, why)).adopted
        done = asyncio.run(reconcile(services))
    _print(done, adopted, _values(invocation, done.desk), as_json)
    return DeskHalted.exit_code if done.found.differences else 0


def _values(invocation: Invocation, desk: str) -> BrokerValues:
    """The broker's own values at the closes that the journal has: told, and nothing that halts."""
    from engine import places
    from engine.errors import MissingData
    from engine.journal.reader import JournalReader

    try:
        with JournalReader(places.desk_journal(desk)) as reader:
            return broker_values_of(invocation, reader, reader.equity())
    except MissingData:
        return BrokerValues()


def _print(done: Reconciled, adopted: Sequence[Adoption], values: BrokerValues, as_json: bool) -> None:
    found = done.found
    if not as_json:
        for one in adopted:
            show(f"adopted {one.symbol or 'cash'}: {_amount(one.before)} became {_amount(one.after)}")
        lines = _lines(done)
        lines += wrapped(values.in_words(), standard_output().width) if values.in_words() else []
        show("\n".join(lines))
        return
    from engine.domain.decimal_text import plain
    from engine.reports.documents import row_json

    document: dict[str, Any] = {
        "schema": 1,
        "desk": done.desk,
        "account": found.account.id,
        "agree": not found.differences,
        "differences": [row_json.difference(one) for one in found.differences],
        "adopted": [
            {"what": one.symbol or "cash", "before": plain(one.before), "after": plain(one.after)} for one in adopted
        ],
        "values": [{"session": str(one.session), **value_row(one)} for one in values.differing],
    }
    show(json.dumps(document, indent=2, allow_nan=False))


def _lines(done: Reconciled) -> list[str]:
    from tui.text_table import table

    found, console = done.found, standard_output()
    head = console.bold(f"Desk {done.desk} and the account {found.account.id}") + console.dim("   paper money")
    ours = found.kept.portfolio(found.lines)
    differing = {one.what for one in found.differences}
    begun = found.kept.bound is not None
    rows = [("cash", _amount(ours.cash if begun else None), _amount(found.account.cash), _mark("cash" in differing))]
    for symbol in sorted(ours.positions.keys() | found.account.positions.keys()):
        theirs = found.account.positions.get(symbol)
        held = None if theirs is None else theirs.quantity
        rows.append(
            (symbol, _amount(ours.quantity(symbol) if begun else None), _amount(held), _mark(symbol in differing))
        )
    lines = [head, *table(("", "JOURNAL", "BROKER", "DIFFERS"), rows, {"JOURNAL", "BROKER"}, console.width)]
    lines += [f"{one.what}: {_words(one)}" for one in found.differences if one.amount is None]
    if begun or found.differences:
        lines.append(_verdict(len(found.differences)))
    if not begun:
        lines.append("the journal has nothing of this account yet: the desk's first run opens its books with the cash")
    return lines


def _verdict(differences: int) -> str:
    if not differences:
        return "they agree"
    points = "1 point" if differences == 1 else f"{differences} points"
    return f"they differ in {points}: nothing is traded until they agree (--adopt takes the broker's side)"


def _mark(differs: bool) -> str:
    return "<- differs" if differs else ""


def _words(one: Difference) -> str:
    from tui.plain_text import one_line

    return one_line(one.note)


def _amount(amount: Decimal | None) -> str:
    if amount is None:
        return "-"
    return f"{amount.normalize():,f}" if amount else "0"
