"""Confirmations: a question before the desk halts or resumes, or an order is approved or vetoed. It says PAPER, and
only a key of its own answers it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.reports.documents import row_json
from engine.reports.documents.control_state import ControlState, OpenOrder
from tui import amounts
from tui.backtest_run import RUNNING
from tui.plain_text import cut, one_line
from tui.run_text import halt_words, terms
from tui.snapshot import Snapshot
from tui.widgets.agent_panes import OFFLINE

LEAVE = ("escape", "n", "q")
REASON = 240
"""Characters of an order's reason that a confirmation shows."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before something is done; `choices` are keys with what they do."""

    title: str
    text: str
    choices: tuple[tuple[str, str], ...]


def halt_confirmation(controls: ControlState) -> Confirmation:
    """Before the kill switch is used: to halt a desk, or to resume one that is halted."""
    sent = sum(not order.waits and order.until is None for order in controls.orders)
    unsent = sum(order.until is not None for order in controls.orders)
    halt = row_json.halt(controls.halted)
    if halt is None:
        text = "No order is sent any more, by this app or by any run, until the desk is resumed."
        count = f"{_count(sent)} with the broker already, and not canceled." if sent else ""
        title, action = "Halt the desk?", "halt"
    else:
        text = f"HALTED {halt_words(halt)}"
        count = f"{_count(unsent)} not sent yet." if unsent else ""
        title, action = "Resume the desk?", "resume"
    return Confirmation(title, "\n\n".join(part for part in (text, count) if part), (("y", action),))


def quit_confirmation(view: Snapshot) -> Confirmation | None:
    """Before the app is left while models that may cost something are at work; None where nothing is lost."""
    lines = []
    if view.busy and view.desk.cost != 0:
        left = len(view.desk.symbols) - view.desk.decided
        lines.append(
            f"A cycle is at work: {view.desk.decided} of {len(view.desk.symbols)} symbols are decided, its models "
            f"took {amounts.cost(view.desk.cost)} so far. They are kept; the next run decides the other {left}."
        )
    lines += [
        f"The backtest {one.name} is at work ({one.fraction:.0%}): its sessions so far are kept, "
        f"paperdesk backtest --resume {one.spec.run} goes on."
        for one in view.backtests
        if one.status == RUNNING and one.label and one.label != OFFLINE
    ]
    return Confirmation("Quit?", "\n\n".join(lines), (("y", "quit"),)) if lines else None


def order_confirmation(order: OpenOrder, controls: ControlState, now: datetime, *, approve: bool) -> Confirmation:
    """Before an order is approved or vetoed; with several that wait, for all of them at once too."""
    text = terms(row_json.order(order.order))
    if reason := one_line(order.order.reason):
        text += f"\n{cut(reason, REASON)}"
    if order.until is not None:
        text += f"\n\nIt can be sent until {row_json.minute(order.until)}, {amounts.about(order.until - now)} more."
    if not approve:
        text += "\n\nA vetoed order is never sent."
    else:
        text += "\n\nIt is checked once more against the limits and then sent."
        text += " The desk is HALTED: it is sent when the desk is resumed." if controls.halted is not None else ""
    action, waiting = "approve" if approve else "veto", len(controls.waiting)
    every = (("A", f"{action} all {waiting}"),) if waiting > 1 else ()
    return Confirmation(f"{action.capitalize()}?", text, (("y", action), *every))


def _count(orders: int) -> str:
    return "1 order is" if orders == 1 else f"{orders} orders are"


class ConfirmScreen(ModalScreen[str]):
    """A question over another screen. Ends with the key that was chosen, or with an empty text."""

    def __init__(self, confirmation: Confirmation) -> None:
        super().__init__()
        self._confirmation = confirmation

    def compose(self) -> ComposeResult:
        """Mount the question and its answers."""
        with Vertical() as box:
            box.border_title = Content(f"PAPER  {self._confirmation.title}")
            yield Static(self._confirmation.text, markup=False)
            parts: list[tuple[str, str]] = []
            for key, action in (*self._confirmation.choices, ("esc", "cancel")):
                parts += [(f"{key} ", "bold $primary"), (f"{action}   ", "")]
            yield Static(Content.assemble(*parts), id="choices", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Choose, or leave; no other key does anything here."""
        event.stop()
        pressed = event.character or event.key
        if pressed in {key for key, _ in self._confirmation.choices}:
            self.dismiss(pressed)
        elif event.key in LEAVE:
            self.dismiss("")
