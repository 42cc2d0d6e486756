"""`paperdesk parity` (desk): replay a recorded day of the desk and compare."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MissingData
from tui.commands.journals import NOT_RUN, looked_at
from tui.commands.run_options import DAY
from tui.console import Console, show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.lab.decision_changes import Comparison, Field
    from engine.lab.parity import Parity

_WIDEST = 120


@click.command("parity")
@click.argument("session", type=DAY, metavar="SESSION", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
    from connectors.wiring.parity import check_parity

    with looked_at(invocation) as (desk, look):
        if look is None:
            raise MissingData(f"there is no day to replay: {NOT_RUN.format(desk=desk)}")
        if look.kind == "backtest":
            raise click.UsageError(f"--run {look.run} is a backtest: only days of the desk are replayed")
        found = check_parity(look.reader, session, invocation.load().config, look.run)
        head = look.named()
    if as_json:
        show(json.dumps({**head, **_document(found)}, indent=2, allow_nan=False))
    else:
        show("\n".join(_lines(found, standard_output())))
    click.get_current_context().exit(0 if found.same else 1)


def _lines(found: Parity, console: Console) -> Iterator[str]:
    from tui.commands.run_text import decided_by
    from tui.text_table import facts, table, wrapped

    width = min(console.width, _WIDEST)
    verdict = "every decision and order is the same" if found.same else "not the same"
    yield console.bold(f"Parity of {found.session}: {verdict}")
    decisions, differing = len(found.comparisons), len(found.differing)
    ids = [change.what for change in found.order_changes]
    yield from facts(
        [
            ("Then", f"{decided_by(found.run)}, run {found.run.id}"),
            ("Replayed", f"{found.label}, from the inputs that were kept"),
            ("Decisions", f"{decisions - differing} of {decisions} the same"),
            ("Orders", _orders(found.orders, ids)),
            ("Data today", "" if found.data else "as they were seen"),
        ],
        width,
    )
    if found.differing:
        yield ""
        yield console.bold("Decisions that differ")
        rows = [_row(one) for one in found.differing]
        yield from table(("SYMBOL", "OWNER", "THEN", "REPLAYED", "WHAT DIFFERS"), rows, width=width)
    if found.order_changes:
        yield ""
        yield console.bold("Orders that differ")
        rows = [(change.what, _plain(change.stood), _plain(change.now)) for change in found.order_changes]
        yield from table(("ORDER", "THEN", "REPLAYED"), rows, width=width)
    if found.data:
        yield ""
        yield console.bold("Where today's data are not what was seen")
        for sentence in found.data:
            first, *others = wrapped(sentence, width - 4)
            yield f"  - {first}"
            yield from (f"    {line}" for line in others)


def _orders(orders: int, differing: Sequence[str]) -> str:
    if not orders and not differing:
        return "none then, and none now"
    return f"{orders} then, {len(differing)} differ" if differing else f"{orders} of {orders} the same"


def _row(one: Comparison) -> tuple[str, ...]:
    from tui.commands.redecision import action

    either = one.stood or one.now
    assert either is not None  # a comparison has a side
    key = either.decision.key
    sides = ["not decided" if side is None else action(side.decision) for side in (one.stood, one.now)]
    owner = "" if key.owner == "desk" else key.owner
    return key.symbol, owner, *sides, ", ".join(change.what for change in one.decision)


def _plain(value: Field) -> str:
    return (value if isinstance(value, str) else ", ".join(value)) or "none"


def _document(found: Parity) -> dict[str, Any]:
    return {
        "run": found.run.id,
        "session": str(found.session),
        "then": {"label": found.run.label, "name": found.run.name},
        "replayed": {"label": found.label},
        "same": found.same,
        "decisions": [_decision(one) for one in found.comparisons],
        "orders": found.orders,
        "order_changes": [
            {"order": change.what, "then": _plain(change.stood), "replayed": _plain(change.now)}
            for change in found.order_changes
        ],
        "data": list(found.data),
    }


def _decision(one: Comparison) -> dict[str, Any]:
    from engine.reports.documents.row_json import decision

    either = one.stood or one.now
    assert either is not None  # a comparison has a side
    return {
        "symbol": either.decision.key.symbol,
        "owner": either.decision.key.owner,
        "same": one.same,
        "same_throughout": one.same_throughout,
        "differs": [change.what for change in one.decision],
        "then": None if one.stood is None else decision(one.stood.decision),
        "replayed": None if one.now is None else decision(one.now.decision),
    }
