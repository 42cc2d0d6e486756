"""How the orders that wait for a word, and what came of one, are printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tui.commands.desk_hand import asked, counted, halted_json, moment, since_words
from tui.console import show, standard_output

if TYPE_CHECKING:
    from datetime import datetime

    from engine.execution.controls import Halted
    from tui.commands.desk_hand import Hand
    from tui.commands.words import Said
    from tui.desk_hand import HandView, OpenOrder


def print_said(hand: Hand, halted: Halted | None, said: Sequence[Said], as_json: bool) -> None:
    """Prints what came of a word on orders."""
    if as_json:
        from engine.reports.documents import row_json

        rows = [{**row_json.order(one.order), "stands": one.stands, "refused": one.refused} for one in said]
        for row in rows:
            del row["state"]  # as it was before; `stands` says how it is
        document = {**hand.head, "halted": halted_json(halted), "orders": rows}
        show(json.dumps(document, indent=2, allow_nan=False))
        return
    lines = [f"{asked(one.order)}: {one.stands}" for one in said] or [_none(hand)]
    show("\n".join([*lines, *_halt_line(halted)]))


def print_waiting(hand: Hand, view: HandView, now: datetime | None, as_json: bool) -> None:
    """Prints the orders that wait for a word, with how long each stays; `now` is None where the time is the
    broker's."""
    if as_json:
        from engine.reports.documents import row_json

        rows = [
            {
                **row_json.order(one.order),
                "reason": one.order.reason,
                "stays_until": None if one.until is None else one.until.isoformat(),
            }
            for one in view.waiting
        ]
        document = {**hand.head, "halted": halted_json(view.halted), "waiting": rows}
        show(json.dumps(document, indent=2, allow_nan=False))
        return
    lines = [*_halt_line(view.halted)]
    if view.waiting:
        lines.append(standard_output().bold(f"{counted(view.waiting)} of the desk {hand.desk} to approve or veto"))
        for one in view.waiting:
            lines += _waiting_lines(one, now)
        lines.append("paperdesk approve ORDER_ID (or --all), paperdesk veto ORDER_ID (or --all)")
    else:
        lines.append(_none(hand))
    show("\n".join(lines))


def _none(hand: Hand) -> str:
    return f"no order of the desk {hand.desk} waits for approval"


def _halt_line(halted: Halted | None) -> Iterator[str]:
    if halted is not None:
        yield f"{standard_output().bold('HALTED')} {since_words(halted)}: nothing is sent until paperdesk resume"


def _waiting_lines(one: OpenOrder, now: datetime | None) -> list[str]:
    from tui import amounts
    from tui.plain_text import one_line
    from tui.text_table import facts

    stays = ""
    if one.until is not None:
        left = "" if now is None else f", {amounts.about(one.until - now)} more"
        stays = f"until {moment(one.until)}{left}"
    pairs = [("Order", asked(one.order)), ("Why", one_line(one.order.reason)), ("Stays", stays)]
    lines = facts(pairs, min(standard_output().width, 100) - 2, label=7)
    return [one.order.id, *(f"  {line}" for line in lines)]
