"""`paperdesk status` (desk): show the state of the desk on one screen.
`paperdesk positions` (desk): list open positions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.domain.text import counted
from engine.errors import PaperdeskError
from tui.commands.options import at_option
from tui.settings.invocation import Invocation, command
from tui.text.console import as_json, show_records, standard_output

if TYPE_CHECKING:
    from engine.ports import Calendar
    from engine.reports.documents.records import At, Records

Document = Mapping[str, Any]
SHOWN = 60
"""Sessions of the curve under a status."""
UNFINISHED = ": running, or killed and resumed by the next run"
MODES = {"ask": "ask: an order is sent once it is approved", "observe": "observe: no order is sent"}
"""Modes that keep orders back, in words."""


@command("status")
@at_option
def status_command(invocation: Invocation, at: At) -> None:
    """Shows the state of the desk: halt or pause, last run, value, waiting orders, positions and model cost; on a
    terminal also the equity curve. In JSON `model` has calls, tokens, `cached_share` (the part of the input that the
    vendor read from its cache), `tier` and `cost`, in all and by `agents`, `models` and `months` (UTC, YYYY-MM).

    \b
    Examples:
      paperdesk status
      paperdesk status --desk growth --json
      paperdesk status --run backtest-20250701-120000-ab12
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.account import equity_document
        from engine.reports.documents.status import late_orders, open_answers, status_document

        now = _status_context(invocation) if records.run is None and at is None else StatusContext()
        document = status_document(records, now.due, now.calendar, now.time)
        mode = now.mode or (document["settings"] or {}).get("mode", "")
        late = late_orders(records, now.calendar, now.symbols, now.time)
        waiting = _waiting(document, open_answers(records), late, mode)
        drawn = standard_output().is_terminal and not as_json()
        closes: Sequence[Document] = equity_document(records, last=SHOWN)["equity"] if drawn else ()

    def lines() -> Iterator[str]:
        yield from _status_lines(records, document, waiting, now, mode)
        if len(closes) > 1:
            from tui.text.equity_curves import VALUE, equity_curves

            yield ""
            yield from equity_curves(closes, standard_output(), (VALUE,))

    show_records(records, document, lines)


@command("positions")
@at_option
def positions_command(invocation: Invocation, at: At) -> None:
    """Lists open positions at the last close, including trades since: shares, average cost, price, gain and portfolio
    weight.

    \b
    Examples:
      paperdesk positions
      paperdesk positions --run backtest-20250701-120000-ab12
    """
    with invocation.records(at=at) as records:
        from engine.reports.documents.status import positions_document

        document = positions_document(records)
    show_records(records, document, lambda: _positions_lines(records.title, document))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusContext:
    """The desk's time, and what it is to do by it; nothing where that is not quickly known, or not shown.

    due: the last completed session.
    calendar: of the desk's sessions; None where none can be missed.
    symbols: the desk's.
    time: of the desk, UTC.
    demo: True for a demo desk.
    mode: the mode in force; empty where that of the last run counts.
    """

    due: date | None = None
    calendar: Calendar | None = None
    symbols: Sequence[str] = ()
    time: datetime | None = None
    demo: bool = False
    mode: str = ""


def _status_context(invocation: Invocation) -> StatusContext:
    from engine.app.desk.demo_history import is_demo
    from tui.commands.due import clock_time, desk_symbols, due_session, quick_calendar

    services = invocation.services() if invocation.configured else None
    mode = "auto" if services is None else str(services.config.broker.mode)
    try:
        now = clock_time(services)
        return StatusContext(
            due=due_session(services, now=now),
            calendar=quick_calendar(services),
            symbols=desk_symbols(services),
            time=now,
            demo=services is None or is_demo(services),
            mode=mode,
        )
    except PaperdeskError:  # no keys here: the records can be shown without
        return StatusContext(mode=mode)


def _status_lines(
    records: Records, document: Document, waiting: Iterable[Document], now: StatusContext, mode: str
) -> Iterator[str]:
    from engine.reports.documents.rehearsal import rehearsal_words
    from tui.text.plain_text import facts
    from tui.text.run_text import halt_words

    console, title = standard_output(), records.title
    yield console.bold(f"{title[0].upper()}{title[1:]}") + console.dim("   paper money")
    pairs = []
    if document["halted"] is not None:
        pairs.append(("HALTED", f"{halt_words(document['halted'])}\nno order is sent: paperdesk resume"))
    if document["paused"] is not None:
        pairs.append(("PAUSED", f"{halt_words(document['paused'])}\nno cycle begins: paperdesk resume"))
    pairs += [("Frozen", f"no order, the position is kept: {why}") for why in document["frozen"].values()]
    runs, last = (document["operation"] or {"runs": ()})["runs"], document["last_run"]
    code = next((one["exit_code"] for one in runs if last is not None and one["id"] == last["id"]), None)
    title = "Last run" if records.run is None else "Run"
    pairs += _run_facts(document["last_run"], code, title, then=records.at is not None)
    pairs += [("Mode", MODES.get(mode, "")), *_settings_facts(document)]
    if document["rehearsal"] is not None:
        pairs.append(("Rehearsal", rehearsal_words(document["rehearsal"])))
    if document["due"] is not None:
        but = f" but for {', '.join(document['decided_alone'])}" if document["decided_alone"] else ""
        pairs.append(("Due", f"{document['due']} is completed and not decided yet{but}: paperdesk --daily"))
    if document["missed"]:
        pairs.append(("Missed", f"no daily run for {', '.join(document['missed'])}"))
    # A demo's clock rests between sessions: its last minute is always that of the last run.
    pairs += _facts(document, waiting, rates=not now.demo)
    yield from facts(pairs, min(console.width, 100))
    if document["session"] is not None:
        yield ""
        yield from _position_table(document)


def _run_facts(run: Document | None, code: int | None, title: str, *, then: bool) -> Iterator[tuple[str, str]]:
    if run is None:
        return
    from tui.text.run_text import decided_by

    yield "Decided by", decided_by(run)
    target = f"for {run['session']}, " if run["session"] else ""
    at = f"{datetime.fromisoformat(run['ended'] or run['started']):%Y-%m-%d %H:%M} UTC"
    ended = {
        None: f"begun {at} and not finished" + (" then" if then else UNFINISHED),
        "done": f"done {at}",
    }.get(run["outcome"], f"{run['outcome']} {at}")
    why = f": {run['detail']}" if run["detail"] and run["outcome"] != "done" else ""
    yield title, f"{target}{ended}{why} ({run['id']}{f', exit code {code}' if code else ''})"


def _settings_facts(document: Document) -> Iterator[tuple[str, str]]:
    from engine.reports.settings_text import changed_text, costs_text

    if document["settings"] is not None:
        yield "Costs", costs_text(document["settings"])
    if document["changed"] is not None:
        yield "Changed", changed_text(document["changed"])


def _waiting(document: Document, answers: Mapping[str, bool], late: Container[str], mode: str) -> list[Document]:
    """The open orders, each that was not sent with the operator's answer in the place of its state; `late` has the ids
    of those that are not sent any more."""
    found: list[Document] = []
    for order in document["open_orders"]:
        answer, state = answers.get(order["id"]), order["state"]
        if state == "intended" and order["id"] in late:
            state = "too late, the next run ends it"
        elif state == "intended" and answer is not None:
            state = "approved, not sent yet" if answer else "vetoed, and still to be ended"
        elif state == "intended":
            state = "waits for approval: paperdesk approve" if mode == "ask" else "not sent yet"
        found.append({**order, "state": state})
    return found


def _facts(document: Document, waiting: Iterable[Document], *, rates: bool) -> Iterator[tuple[str, str]]:
    from engine.reports.documents.row_json import breakdowns, use_words
    from tui.text.run_text import order_words

    if document["session"] is not None:
        yield "Value", _value(document)
    yield "Waiting", "\n".join(map(order_words, waiting)) or "no order"
    if rates and (operation := document["operation"]) is not None:
        from engine.reports.documents.operations import rate_words

        yield "Rates", "\n".join(rate_words(one) for one in operation["rates"] if one["requests"] or one["limited"])
    counts, model = document["counts"], document["model"]
    yield "Total", ", ".join(counted(counts[f"{name}s"], name) for name in ("decision", "order", "fill"))
    yield "Models", use_words(model) if model["calls"] else ""
    yield from breakdowns(model)


def _value(document: Document) -> str:
    from engine.reports import amounts

    change, whole, deposits = document["change"], document["total_return"], Decimal(document["brought_in"])
    value = f"{amounts.money(Decimal(document['value']))} at {document['session']}{_since_words(document)}"
    # What was booked since is in the value, and not in the changes.
    up_to = "" if document["since"] is None else "up to that close "
    parts = [
        "" if change is None else f"{amounts.percent(change)} on the session",
        f"{amounts.percent(whole)} since the start" if whole is not None and document["initial_value"] else "",
        f"without deposits and withdrawals of {amounts.gain(deposits)}" if deposits else "",
    ]
    changes = ", ".join(filter(None, parts))
    return f"{value}, {up_to}{changes}" if changes else value


def _positions_lines(title: str, document: Document) -> Iterator[str]:
    if document["session"] is None:
        yield f"no session of {title} is closed yet"
        return
    yield standard_output().bold(f"Positions of {title} at {document['session']}{_since_words(document)}")
    yield from _position_table(document)
    if document["since"] is not None and document["since"]["fills"]:
        yield "prices are those of the close; of a symbol traded since, its last trade's"
    if document["yours"]:
        yield f"orders of your own are in {', '.join(document['yours'])}"
    yield from (f"frozen, no order is given: {why}" for why in document["frozen"].values())


def _position_table(document: Document) -> Iterator[str]:
    """A table of what a document's `positions` hold, with its `cash` and `value`, and the owners' books, below."""
    from engine.reports import amounts
    from engine.reports.tables import POSITIONS, worth
    from tui.text.plain_text import table_of

    value, cash = Decimal(document["value"]), Decimal(document["cash"])

    def part(amount: Decimal | None) -> Decimal | None:
        return None if amount is None or not value else amount / value

    held = [
        {**one, "symbol": symbol, "cost": one["average_cost"], "share": part(worth(one))}
        for symbol, one in document["positions"].items()
    ]
    of_cash = "" if part(cash) is None else f"{part(cash):.1%}"
    ends = [
        ("cash", "", "", "", amounts.money(cash), of_cash, "", ""),
        ("all", "", "", "", amounts.money(value), "", "", ""),
    ]
    console = standard_output()
    yield from table_of(POSITIONS, held, console.room, after=ends, paint=console.inked)
    for owner, book in document.get("per_owner", {}).items():
        figures = [amounts.money(Decimal(book[name])) for name in ("value", "cash")]
        yield f"book of {owner}: {figures[0]}, of it cash {figures[1]}"


def _since_words(document: Document) -> str:
    """The bookings after the close, in a few words."""
    since = document["since"]
    if since is None:
        return ""
    trades = counted(since["fills"], "trade")
    return f", with {trades if since['fills'] else 'what was booked'} since"
