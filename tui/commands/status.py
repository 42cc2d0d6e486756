"""`paperdesk status` (desk): show the state of the desk on one screen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from engine.domain.run import RunKind, RunOutcome
from tui.commands.journals import NOT_RUN, Look, looked_at
from tui.console import Console, show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.account.time_weighted import Measured
    from engine.domain.run import EquityPoint
    from engine.journal.entries import OrderEntry, RunEntry


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, as_json: bool) -> None:
    """Says how the desk stands: whether it is halted, its last run, its value, what waits, what it holds and cost.

    \b
    Examples:
      paperdesk status
      paperdesk status --desk growth --json
      paperdesk status --run backtest-20250701-120000-ab12
    """
    with looked_at(invocation) as (desk, look):
        state = None if look is None else _State(look)
    due = None if look is not None and look.run is not None else _undecided(invocation, state)
    if as_json:
        head: dict[str, Any] = {"schema": 1, "desk": desk, "kind": "desk", "run": None}
        if look is not None:
            head = look.named()
        show(json.dumps({**head, **_document(state), "due": due and str(due)}, indent=2, allow_nan=False))
    elif look is None or state is None:
        show(NOT_RUN.format(desk=desk))
    else:
        show("\n".join(_lines(look, state, due, standard_output())))


class _State:
    """What there is to say about a desk or a run, read at once."""

    def __init__(self, look: Look) -> None:
        from engine.account.time_weighted import brought_in, measured
        from engine.execution.controls import halted
        from tui.commands.positions import last_books

        reader = look.reader
        whole = look.run if look.kind == "backtest" else None
        self.run: RunEntry | None = reader.latest_run() if look.run is None else reader.run(look.run)
        self.runs = reader.runs() if look.run is None else ()
        self.books: EquityPoint | None = last_books(look)
        self.points: Sequence[EquityPoint] = reader.equity(whole, look.part)
        if self.books is not None:
            self.points = [point for point in self.points if point.session <= self.books.session]
        self.halted = None if look.kind == "backtest" else halted(reader)
        self.waiting: Sequence[OrderEntry] = reader.orders(look.run, open_only=True)
        self.counts = reader.counts(look.run)
        self.initial = reader.stretches(look.run or "").get(look.part) if look.kind == "backtest" else None
        if self.initial is None and self.points:
            self.initial = self.points[0].value
        if look.kind == "backtest":
            self.rows: Sequence[Measured] = measured(self.points, began=self.initial)
        else:
            brought = brought_in(reader.equity(), reader.cash_flows(), reader.adoptions())
            self.rows = measured(self.points, brought)
        self.use = reader.calls(look.run)


def _undecided(invocation: Invocation, state: _State | None) -> date | None:
    """The last completed session where the desk has not decided for it; None where that is not quickly known."""
    from engine.errors import PaperdeskError
    from tui.commands.due import desk_now, desk_of, due_session

    try:
        now = desk_now(invocation)
    except PaperdeskError:  # no keys here: how the desk stands can be said without
        now = None
    last = None if now is None else due_session(desk_of(invocation)[1], now=now)
    if last is None:
        return None
    done = () if state is None else state.runs
    kind, outcome = RunKind.DAILY, RunOutcome.DONE
    ran = any(run.session == last and run.kind is kind and run.outcome is outcome for run in done)
    return None if ran else last


def _document(state: _State | None) -> dict[str, Any]:
    if state is None:
        nothing = dict.fromkeys(("halted", "last_run", "brought_in", "total_return", "value", "cash", "model"))
        return {**nothing, "positions": {}, "open_orders": []}
    from decimal import Decimal

    from engine.domain.decimal_text import money
    from engine.reports.documents import row_json
    from engine.reports.documents.session import positions
    from tui.commands.desk_hand import halted_json

    run, books = state.run, state.books
    return {
        "halted": halted_json(state.halted),
        "last_run": None if run is None else _run(run),
        "session": None if books is None else str(books.session),
        "initial_value": None if state.initial is None else money(state.initial),
        "brought_in": money(sum((row.brought for row in state.rows), Decimal(0))),
        "total_return": float(state.rows[-1].growth - 1) if state.rows else None,
        "value": None if books is None else money(books.value),
        "cash": None if books is None else money(books.portfolio.cash),
        "positions": {} if books is None else positions(books),
        "open_orders": [row_json.order(entry.order) for entry in state.waiting],
        "counts": {name: state.counts[name] for name in ("decisions", "orders", "fills", "answers")},
        "model": {
            "calls": len(state.use),
            "abstentions": sum(call.abstained for call in state.use),
            "cost": _cost(state, money),
        },
    }


def _run(run: RunEntry) -> dict[str, Any]:
    return {
        "id": run.id,
        "kind": run.kind,
        "name": run.name,
        "label": run.label,
        "session": run.session and str(run.session),
        "started": run.started.isoformat(),
        "ended": run.ended and run.ended.isoformat(),
        "outcome": run.outcome,
        "detail": run.detail,
    }


def _lines(look: Look, state: _State, due: date | None, console: Console) -> Iterator[str]:
    from decimal import Decimal

    from tui import amounts
    from tui.commands.desk_hand import since_words
    from tui.commands.positions import lines_of
    from tui.commands.run_text import decided_by, order_words
    from tui.text_table import facts

    yield console.bold(f"{look.title[0].upper()}{look.title[1:]}") + console.dim("   paper money")
    pairs = []
    run, books = state.run, state.books
    if state.halted is not None:
        pairs.append(("HALTED", f"{since_words(state.halted)}\nno order is sent: paperdesk resume"))
    if run is not None:
        pairs += [("Decided by", decided_by(run)), ("Last run" if look.run is None else "Run", _run_words(run))]
    if due is not None:
        pairs.append(("Due", f"{due} is completed and not decided yet: paperdesk --daily"))
    if books is not None:
        last = state.rows[-1] if state.rows else None
        change = amounts.percent(last.change) if last and last.change is not None and len(state.rows) > 1 else ""
        whole = amounts.percent(last.growth - 1) if last and state.initial else ""
        said = [f"{change} on the session" if change else "", f"{whole} since the start" if whole else ""]
        brought = sum((row.brought for row in state.rows), Decimal(0))
        said.append(f"without {amounts.gain(brought)} that was brought in or taken out" if brought else "")
        pairs.append(("Value", ", ".join([f"{amounts.money(books.value)} at {books.session}", *filter(None, said)])))
    pairs.append(("Waiting", "\n".join(order_words(entry.order) for entry in state.waiting) or "no order"))
    counts = state.counts
    pairs.append(
        ("So far", f"{counts['decisions']:,} decisions, {counts['orders']:,} orders, {counts['fills']:,} fills")
    )
    silent = sum(call.abstained for call in state.use)
    spent = f"{len(state.use):,} calls, {silent:,} without an answer, {amounts.cost(_total(state))}"
    pairs.append(("Models", spent if state.use else ""))
    yield from facts(pairs, min(console.width, 100))
    if books is not None:
        yield ""
        yield from lines_of(books)


def _run_words(run: RunEntry) -> str:
    when = f"for {run.session}, " if run.session else ""
    at = f"{run.ended or run.started:%Y-%m-%d %H:%M} UTC"
    ended = {
        None: f"begun {at} and not finished: it is at work, or was killed and goes on with the next one",
        RunOutcome.DONE: f"done {at}",
    }.get(run.outcome, f"{run.outcome} {at}")
    why = f": {run.detail}" if run.detail and run.outcome is not RunOutcome.DONE else ""
    return f"{when}{ended}{why} ({run.id})"


def _total(state: _State) -> Any:
    from decimal import Decimal

    costs = [Decimal(0) if call.cached else call.cost for call in state.use]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _cost(state: _State, money: Any) -> str | None:
    total = _total(state)
    return None if total is None else str(money(total))
