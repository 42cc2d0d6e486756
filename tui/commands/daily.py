"""`paperdesk --daily`: one headless run for the last completed session, for all symbols or for one; a second one has
nothing to do, at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from engine.app.desk.demo_history import LAST, begin
from engine.app.records.desk_journal import DeskJournal
from engine.domain.order import YOU
from engine.domain.run import RunTrigger
from engine.domain.text import listed
from engine.errors import DataError, DeskHalted, PaperdeskError, TryAgainLater, UsageError
from engine.messages.events import Noticed, RunFinished, StepStarted
from engine.reports import amounts
from engine.reports.documents.row_json import cutoff_words
from engine.reports.documents.session import raise_frozen, session_document
from engine.reports.settings_text import as_of_text
from engine.reports.table import Column
from tui.commands.due import due_session
from tui.commands.options import DAY
from tui.settings.invocation import DEFAULT_DESK, Invocation
from tui.text.console import as_json, show_document, show_json, standard_output
from tui.text.plain_text import facts, one_line, table_of
from tui.text.run_text import decided_by, halt_words, model_words, opinions_line, order_words, trade_words

if TYPE_CHECKING:
    from engine.messages.events import Event
    from engine.services import Services

NOTHING_TO_DO = "nothing to do"

Document = Mapping[str, Any]
_DIFFERENCES = (Column("", "what"), *(Column(side, side, str) for side in ("journal", "broker", "difference")))


def run(invocation: Invocation, session: str | None, symbol: str | None = None) -> None:
    """Run the desk for a session, or a run of one symbol alone, unless it has been, and print the run."""
    if invocation.run is not None:
        raise UsageError("--run names an existing run, but --daily starts a new one: leave one of them out")
    requested = None if session is None else DAY.convert(session, None, None)
    symbol = None if symbol is None else symbol.strip().upper()
    # Without a configuration the defaults hold; reading and checking them takes longer than seeing a finished run.
    services = invocation.services() if invocation.configured else None
    # A desk whose first session is asked for, and lies before the recorded history, begins there with cash alone.
    if requested is None or requested > LAST:
        invocation.begun_desk() if services is None else begin(services)
    with DeskJournal(DEFAULT_DESK if services is None else services.desk) as journal:
        # A desk without a journal has no session that is quickly known to be due.
        due = due_session(services, requested) if journal.path.is_file() else None
        # Who waits for a call after every run gets one from the long way, which ends as quickly for a person.
        quick = due is not None and symbol is None and not (services and services.config.notify.ping)
        run_id, outcome = _finished(journal, due) if quick and due else None, NOTHING_TO_DO
        error: PaperdeskError | None = None
        if run_id is None:
            try:
                run_id, outcome, error = _run(services or invocation.services(), journal, requested, due, symbol)
            except DeskHalted:
                _show_differences(journal)
                raise
        assert journal.reader is not None  # the run is in it
        document = session_document(journal.reader, journal.desk, run_id, outcome)
        show_document(document, lambda: lines(document, symbol))
        raise_frozen(document)
        if error is not None:
            raise error


def _finished(journal: DeskJournal, session: date) -> str | None:
    """The run of a session that was done before; None where that takes longer to see. Nobody waits here for a lock: a
    run that is done stays done."""
    try:
        reader = journal.reader
        return None if reader is None else reader.finished_run(session)
    except (DataError, TryAgainLater):
        return None


def _run(
    services: Services, journal: DeskJournal, requested: date | None, due: date | None, only: str | None
) -> tuple[str, str, PaperdeskError | None]:
    """The run, its outcome (`done`, `waiting` (for approval), `halted`, `paused` or `nothing to do`), and the error
    that it ended with although it did what it could."""
    import asyncio

    from engine.app.desk.context import Finished
    from engine.app.desk.notification import run_and_notify

    services = replace(services, trigger=RunTrigger.TERMINAL if _in_terminal() else RunTrigger.CRON)
    done = asyncio.run(run_and_notify(services, requested, publish=on_event(), journal=journal, due=due, only=only))
    return done.run, NOTHING_TO_DO if isinstance(done, Finished) else done.outcome, done.error


def _in_terminal() -> bool:
    return sys.stdin.isatty() or sys.stdout.isatty() or sys.stderr.isatty()


def on_event() -> Callable[[Event], None]:
    """Print to standard error what a person should know, and on a terminal the step at work, on a line that the next
    one replaces."""
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""

    def publish(event: Event) -> None:
        if isinstance(event, Noticed) and event.level != "info":
            click.echo(f"{clear}paperdesk: {event.level}: {one_line(event.text)}", err=True)
        elif isinstance(event, StepStarted) and clear:
            click.echo(f"{clear}{event.symbol}: {event.step} ...", nl=False, err=True)
        elif isinstance(event, RunFinished) and clear:
            click.echo(clear, nl=False, err=True)

    return publish


def _show_differences(journal: DeskJournal) -> None:
    """Print the differences between broker and journal that halted the latest run: JSON to standard output, the table
    for a person to standard error."""
    reader = journal.reader
    entry = None if reader is None else reader.latest_run()
    if reader is None or entry is None:
        return
    document = session_document(reader, journal.desk, entry.id)
    if as_json():
        show_json(document)
    else:
        click.echo("\n".join(difference_lines(document["differences"])), err=True)


def difference_lines(differences: Sequence[Document]) -> list[str]:
    """Both sides of every difference (as row_json has them), a line each."""
    table = table_of(_DIFFERENCES, [one for one in differences if not one["note"]])
    return [*table, *(f"{one['what']}: {one['note']}" for one in differences if one["note"])]


def lines(document: Document, symbol: str | None = None) -> Iterator[str]:
    """The lines of a run's document."""
    console, session, desk = standard_output(), document["session"], document["desk"]
    if document["halted"] is not None:
        yield f"{console.bold('HALTED')} {halt_words(document['halted'])}"
        yield "No order is sent until `paperdesk resume`."
    if document["paused"] is not None:
        yield f"{console.bold('PAUSED')} {halt_words(document['paused'])}: no cycle begins until `paperdesk resume`."
    if document["outcome"] == NOTHING_TO_DO:
        what = f"decided {symbol}" if symbol else "decided"
        yield f"Nothing to do: the desk {desk} has {what} for {session} already (run {document['run']})."
        if symbol is None:
            yield "See `paperdesk status`, `paperdesk decisions`, `paperdesk orders`."
        return
    width = min(console.width, 100)
    alone = f", {document['symbol']} alone" if document["symbol"] else ""
    yield console.bold(f"Desk {desk}, session {session}{alone}") + console.dim("   paper money")
    decider = decided_by({"label": document["label"], "name": document["preset"], "decider": "preset"})
    yield from facts([("Decided by", f"{decider}{cutoff_words(document['model'])}")], width)
    yield ""
    yield from _decisions(document["decisions"], width)
    yield ""
    yield from facts(list(_facts(document)), width)


def _decisions(decisions: Sequence[Document], width: int) -> Iterator[str]:
    if not decisions:
        yield "  nothing is decided"
    longest = max((len(made["symbol"]) for made in decisions), default=0)
    for made in decisions:
        size = f"{amounts.size(made['size'])} %" if made["size"] else ""
        yield f"  {made['symbol']:<{longest}}  {made['action']:<7} {size:>5}".rstrip()
        lines = [(f"    {label}", text) for label, _, text in (line.partition(": ") for line in made["card"])]
        yield from facts([*lines, ("    By", opinions_line(made))], width, label=17)


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    since = [trade_words(fill) + (", yours" if fill["owner"] == YOU else "") for fill in document["fills"]]
    since += [
        f"{flow['session']} {flow['symbol'] or 'the account'}: {flow['kind']} "
        f"{amounts.gain(amounts.number(flow['amount']))}"
        for flow in document["cash_flows"]
    ]
    yield "Account", document["broker"]["account"] or ""
    alone = ", ".join(document["decided_alone"])
    yield "Left out", f"{alone}: decided already, in a run of its own" if alone else ""
    yield "Orders", "\n".join(map(order_words, document["orders"])) or "none"
    yield "Waiting", _waiting(document)
    as_of = as_of_text(document)
    yield "As of", as_of
    yield "Since last", "\n".join(since) or ("no fills by then" if as_of else "no fills")
    yield "Skipped", listed(document["skipped"])
    yield "Frozen", ", ".join(document["frozen"])
    if document["value"] is not None:
        value, cash = (amounts.money(amounts.number(document[name])) for name in ("value", "cash"))
        yield "Value", f"{value}, of it cash {cash}"
        yield "Positions", "\n".join(_positions(document["positions"])) or "none"
    yield "Model", model_words(document["model"])


def _waiting(document: Document) -> str:
    waiting = document["waiting"]
    if not waiting or document["halted"] is not None:
        return ""
    return f"{len(waiting)} for approval: `paperdesk approve` sends, `paperdesk veto` withdraws"


def _positions(held: Mapping[str, Document]) -> Iterator[str]:
    for symbol, position in held.items():
        price = amounts.price(amounts.number(position["price"]))
        yield f"{symbol}: {amounts.quantity(Decimal(position['quantity']))} at {price}"
