"""`paperdesk reconcile` (controls): compare the broker's account with the journal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DeskHalted
from tui.commands.broker_values import asked_values, value_words
from tui.commands.controlled import controlled_journal
from tui.commands.options import json_option
from tui.console import show, show_json, show_lines, standard_output
from tui.invocation import Invocation, desk_options
from tui.text_table import wrapped

if TYPE_CHECKING:
    from engine.domain.run import Adoption


@click.command("reconcile")
@click.option("--adopt", is_flag=True, help="Take the broker's side in every difference, recorded with the reason.")
@click.option("--reason", metavar="TEXT", default="", help="With --adopt: why, for whoever reads the books later.")
@click.option("--yes", is_flag=True, help="With --adopt: do not ask.")
@json_option
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
    from engine.reports.documents.equity import BrokerValues
    from engine.reports.documents.reconciliation import reconciliation_document

    controlled_journal(invocation)
    services = invocation.services()
    done = asyncio.run(reconcile(services))
    document = reconciliation_document(done.desk, done.found, (), BrokerValues())
    adopted: tuple[Adoption, ...] = ()
    if adopt and not (document["agree"] and document["begun"]):
        if not as_json:
            show_lines(_lines(document))
        if not yes and not click.confirm(f"PAPER: take the broker's side in the journal of {done.desk}?", err=True):
            show("nothing was adopted")
            return DeskHalted.exit_code
        adopted = asyncio.run(adopt_account(services, why)).adopted
        done = asyncio.run(reconcile(services))
    with invocation.records() as records:
        values = asked_values(invocation, records)
    document = reconciliation_document(done.desk, done.found, adopted, values)
    if as_json:
        show_json(document)
    else:
        words = value_words(values)
        told = wrapped(words, standard_output().width) if words else []
        show_lines([*_adopted(document), *_lines(document), *told])
    return 0 if document["agree"] else DeskHalted.exit_code


def _adopted(document: Mapping[str, Any]) -> Iterator[str]:
    for one in document["adopted"]:
        yield f"adopted {one['what']}: {_amount(one['before'])} became {_amount(one['after'])}"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    from tui.plain_text import one_line
    from tui.text_table import table

    console, differences = standard_output(), document["differences"]
    yield console.bold(f"Desk {document['desk']} and the account {document['account']}") + console.dim("   paper money")
    differing = {one["what"] for one in differences}
    sides = {"cash": document["cash"], **document["positions"]}
    rows = [
        (what, _amount(side["journal"]), _amount(side["broker"]), "<- differs" if what in differing else "")
        for what, side in sides.items()
    ]
    yield from table(("", "JOURNAL", "BROKER", "DIFFERS"), rows, {"JOURNAL", "BROKER"}, console.width)
    yield from (f"{one['what']}: {one_line(one['note'] or '')}" for one in differences if one["difference"] is None)
    if differences:
        points = "1 point" if len(differences) == 1 else f"{len(differences)} points"
        yield f"they differ in {points}: nothing is traded until they agree (--adopt takes the broker's side)"
    elif document["begun"]:
        yield "they agree"
    if not document["begun"]:
        yield "the journal has nothing of this account yet: the desk's first run opens its books with the cash"


def _amount(text: str | None) -> str:
    from tui import amounts

    amount = amounts.number(text)
    if amount is None:
        return "-"
    return f"{amount.normalize():,f}" if amount else "0"
