"""Confirmations: a question before the desk halts or resumes, the app is left, or an order is answered. It says PAPER,
and only a key of its own answers it, or a click on that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.domain.order import Order
from engine.domain.text import counted
from engine.reports import amounts
from engine.reports.documents import row_json
from engine.reports.documents.control_state import ControlState, OpenOrder, Waiting
from engine.reports.documents.order_effect import order_effect
from tui.screens.dialog import Dialog
from tui.text.plain_text import cut, facts, one_line
from tui.text.run_text import effect_facts, halt_words, terms
from tui.view.order_size import SIZE_NOTE, order_size
from tui.view.snapshot import Snapshot
from tui.widgets.agent_panes import OFFLINE
from tui.widgets.clickable import clickable
from tui.widgets.screen_bars import asks_models, model_cost

LEAVE = ("escape", "n", "q")
TICK = 0.25
"""Seconds between two looks at a question that changes."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before something is done; `choices` are keys with what they do, `leave` what escape does."""

    title: str
    text: str
    choices: tuple[tuple[str, str], ...]
    leave: str = "cancel"


TOUR_QUESTION = Confirmation(
    "Take the tour?",
    "The desk in six steps over its own screens, to the trail of a decision. Later: ^p, Tour.",
    (("y", "begin"),),
    "not now",
)


def halt_confirmation(controls: ControlState) -> Confirmation:
    """Before the kill switch is used: to halt a desk, or to resume one that is halted."""
    sent = sum(not order.waits and order.until is None for order in controls.orders)
    unsent = sum(order.until is not None for order in controls.orders)
    halt = row_json.halt(controls.halted)
    if halt is None:
        text = "No order will be sent, by this app or any run, until the desk is resumed."
        count = f"{_count(sent)} already at the broker, and not canceled." if sent else ""
        title, action = "Halt the desk?", "halt"
    else:
        text = f"HALTED {halt_words(halt)}"
        count = f"{_count(unsent)} not sent yet." if unsent else ""
        title, action = "Resume the desk?", "resume"
    return Confirmation(title, "\n\n".join(part for part in (text, count) if part), (("y", action),))


def quit_confirmation(view: Snapshot) -> Confirmation | None:
    """Before the app is left while a backtest runs, models that may cost something are at work, an order is still to be
    sent, or it is not known whether one has arrived; None where nothing is lost."""
    lines = [f"Your order {wanted.description} is not sent yet, and is dropped." for wanted in view.own_orders]
    lines += [
        f"It is unknown yet whether {one.order.side} {one.order.symbol} has arrived at the broker: "
        "it is checked at the next start."
        for one in view.controls.orders
        if one.state is Waiting.UNKNOWN
    ]
    if view.busy and asks_models(view):
        left = len(view.desk.symbols) - view.desk.decided
        lines.append(
            "A cycle is starting, without further model calls: the next run starts it again."
            if view.starting
            else f"A cycle is running: {view.desk.decided} of {len(view.desk.symbols)} symbols are decided, its models "
            f"took {model_cost(view, view.desk.cost)} so far. They are kept; the next run decides the other {left}."
        )
    lines += [
        f"The backtest {one.name} is running ({one.fraction:.0%}): finished sessions are kept, "
        f"paperdesk backtest --resume {one.spec.run} continues."
        for one in view.backtests
        if one.running
    ]
    return Confirmation("Quit?", "\n\n".join(lines), (("y", "quit"),)) if lines else None


def next_session_confirmation(controls: ControlState) -> Confirmation:
    """Before a demo goes on to its next session while orders wait, which expire with it."""
    waiting = controls.waiting
    orders = ", ".join(f"{one.order.side} {one.order.symbol}" for one in waiting)
    text = f"{counted(len(waiting), 'order')} to approve: {orders}. What is not answered expires with the next session."
    return Confirmation("Next session?", text, (("y", "go on"),))


def cycle_confirmation(symbol: str, label: str, usd_per_day: Decimal) -> Confirmation | None:
    """Before a run of one symbol by models that may cost something; None for the rules, which are free."""
    if label == OFFLINE:
        return None
    text = f"{symbol} will be decided alone by {label}, for the last completed session; the daily run leaves it out."
    return Confirmation(f"Run a cycle for {symbol}?", f"{text}\n\n{cost_limit(usd_per_day)}", (("y", "run"),))


def cost_limit(usd_per_day: Decimal) -> str:
    """The limit of what models may cost in a day (USD), in a sentence."""
    return f"Models may cost {amounts.cost(usd_per_day)} a day."


def _count(orders: int) -> str:
    return "1 order is" if orders == 1 else f"{orders} orders are"


class ConfirmScreen(Dialog[str]):
    """A question over another screen. Ends with the key that was chosen, or with an empty text."""

    def __init__(self, confirmation: Confirmation, now: Callable[[], Confirmation | None] | None = None) -> None:
        """`now` gives the question as it is at a moment, where it changes, and None once there is none any more."""
        super().__init__()
        self._confirmation, self._now = confirmation, now

    def compose(self) -> ComposeResult:
        """Mount the question and its answers."""
        with Vertical() as box:
            box.border_title = Content(f"PAPER  {self._confirmation.title}")
            yield Static(self._choices(), id="choices", markup=False)
            yield Static(self._confirmation.text, id="text", markup=False)

    def on_mount(self) -> None:
        """Follow a question that changes."""
        if self._now is not None:
            self.set_interval(TICK, self._follow)

    def _choices(self) -> Content:
        asked = self._confirmation
        choices = [*((key, does, key) for key, does in asked.choices), ("esc", asked.leave, "")]
        parts = [
            clickable(Content.assemble((f"{key} ", "bold $primary"), f"{does}   "), f"answer('{answer}')")
            for key, does, answer in choices
        ]
        return Content.assemble(*parts)

    def _follow(self) -> None:
        question = None if self._now is None else self._now()
        if question is None:
            self.dismiss("")
        elif question != self._confirmation:
            self._confirmation = question
            self.query_one("#text", Static).update(question.text)
            self.query_one("#choices", Static).update(self._choices())

    def action_answer(self, key: str) -> None:
        """End with a choice, or with an empty text."""
        self.dismiss(key)

    def on_key(self, event: events.Key) -> None:
        """Choose, or leave; no other key does anything here."""
        event.stop()
        pressed = next((key for key, _ in self._confirmation.choices if key in (event.character, event.key)), "")
        if pressed:
            self.dismiss(pressed)
        elif event.key in LEAVE:
            self.dismiss("")


def open_order(view: Snapshot, order_id: str) -> OpenOrder | None:
    """An open order by its id; None once nothing can follow it any more."""
    return next((one for one in view.controls.orders if one.order.id == order_id), None)


def order_confirmation(view: Snapshot, order_id: str, width: int, *, approve: bool) -> Confirmation | None:
    """Before an order is approved or vetoed, with facts of `width`; with several that wait, for all of them at once
    too. None for an order that does not wait any more."""
    one = open_order(view, order_id)
    if one is None or not one.waits or view.now is None:
        return None
    lines = [terms(row_json.order(one.order, one.decided))]
    if reason := one_line(one.order.reason):
        lines.append(cut(reason, 2 * width))
    known = list(facts(_effect(view, one.order), width, label=8))
    lines += ["", *known] if known else []
    if one.until is not None:
        lines += [
            "",
            f"{_left(one.until - view.now)} left, until {row_json.minute(one.until)}; then it expires unsent.",
        ]
    if not approve:
        lines.append("A vetoed order is never sent.")
    else:
        lines.append("It is checked against the limits again, then sent.")
        lines += ["The desk is HALTED: the order is sent after it is resumed."] if view.controls.halted else []
    action, waiting = "approve" if approve else "veto", len(view.controls.waiting)
    more = (("e", "edit"), *((("u", "undo edit"),) if one.undoable else ())) if approve else (("r", "with a reason"),)
    every = (("A", f"{action} all {waiting}"),) if waiting > 1 else ()
    return Confirmation(f"{action.capitalize()}?", "\n".join(lines), (("y", action), *more, *every))


def cancellation(one: OpenOrder) -> Confirmation:
    """Before an order that was sent is canceled."""
    lines = [terms(row_json.order(one.order, one.decided)), "", f"It was sent, and is {one.order.state}."]
    lines.append("Fills until then stay.")
    return Confirmation("Cancel the order?", "\n".join(lines), (("y", "cancel the order"),), leave="keep it")


def size_note(view: Snapshot, order_id: str, width: int, text: str) -> str:
    """The effect of an order at a size that is being typed, with facts of `width`; how a size is written where it is
    none yet."""
    one, note = open_order(view, order_id), SIZE_NOTE
    try:
        size = order_size(text)
    except ValueError:
        return note
    quotes = () if view.market is None else view.market.quotes
    last = next((quote.last for quote in quotes if one is not None and quote.symbol == one.order.symbol), None)
    if one is None or last is None:
        return note
    if one.order.notional is not None:
        order = replace(one.order, notional=size.number if size.money else size.number * last)
    else:
        order = replace(one.order, quantity=size.number / last if size.money else size.number)
    return "\n".join((note, *facts(_effect(view, order), width, label=8)))


def undoable_order(view: Snapshot, symbol: str) -> OpenOrder | None:
    """The order whose last answer or edit can be taken back: one of the symbol, else the first."""
    found = [one for one in view.controls.orders if one.undoable and one.state is not Waiting.LATE]
    return next((one for one in found if one.order.symbol == symbol), next(iter(found), None))


def _left(left: timedelta) -> str:
    """The time that is left to the second."""
    seconds = max(0, int(left.total_seconds()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes:02}m{seconds % 60:02}s" if hours else f"{minutes}m{seconds % 60:02}s"


def _effect(view: Snapshot, order: Order) -> list[tuple[str, str]]:
    """The effect of an order on the books that are shown, at the price that is shown, with the price's age."""
    books, quotes = view.desk.books, () if view.market is None else view.market.quotes
    quote = next((quote for quote in quotes if quote.symbol == order.symbol), None)
    if books is None or quote is None or quote.last is None or quote.session is None:
        return []
    prices = {quote.symbol: quote.last for quote in quotes if quote.last is not None}
    others = [open_one.order for open_one in view.controls.orders if open_one.order.symbol in prices]
    effect = order_effect(
        order,
        prices.__getitem__,
        quote.session,
        portfolio=books.point.portfolio,
        value=books.point.value,
        others=others,
        time=view.now if quote.live else None,
        fills_at=next((one.fills_at for one in view.controls.orders if one.order.id == order.id), None),
    )
    days = 0 if view.now is None else (view.now.date() - quote.session).days
    return effect_facts(effect, f"the close of {quote.session}" + (f", {days} days ago" if days > 1 else ""))
