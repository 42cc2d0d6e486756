"""The ticket of an order of the operator's own, over another screen: side, symbol, size, and what it would do."""

from __future__ import annotations

from typing import ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.domain.market import parse_symbol
from engine.domain.order import Side
from engine.errors import PaperdeskError, UsageError
from engine.messages.commands import PlaceOrder
from engine.reports.documents.order_effect import Ticket
from tui.desk.desk_app import DeskApp, ShowsFailures
from tui.screens.dialog import Dialog, facts_width
from tui.text.plain_text import facts, one_line
from tui.text.run_text import effect_facts
from tui.view.order_size import SIZE_HINT, order_size
from tui.widgets.clickable import clickable, clickable_keys

KEYS = [
    ("enter sends", "send"),
    ("esc cancels", "leave"),
    ("tab next field", "app.focus_next"),
    ("space side", "other_side"),
]
LOW = [(0, "-low"), (20, "-high")]
"""Classes by the rows of the terminal, as the style sheet knows them."""


class Field(Input):
    """A field of a ticket: a symbol or a size has no spaces, so that space chooses the other side."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "screen.other_side", "Other side", show=False, priority=True)
    ]


class OrderTicket(ShowsFailures, Dialog[PlaceOrder]):
    """A ticket that says PAPER. Ends with the order once its limits allow it, with None on escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", show=False),
        Binding("enter", "send", "Send", show=False, priority=True),
    ]

    def __init__(self, symbol: str) -> None:
        super().__init__()
        self.VERTICAL_BREAKPOINTS = LOW
        self._symbol, self._side = symbol, Side.BUY
        self._sending = False

    def compose(self) -> ComposeResult:
        """Mount the fields and a place for what the order would do."""
        with Vertical() as box:
            box.border_title = Content("PAPER  Order of your own")
            for label, field in (
                ("Side", Static(self._sides(), id="side", markup=False)),
                ("Symbol", Field(self._symbol, id="symbol", compact=True)),
                ("Size", Field(placeholder=SIZE_HINT, id="size", compact=True)),
            ):
                with Horizontal():
                    yield Static(label, classes="label")
                    yield field
            yield Static("", id="effect", markup=False)
            yield Static(clickable_keys(KEYS), id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin with the size."""
        self.query_one("#size", Input).focus()

    @property
    def wanted(self) -> PlaceOrder:
        """The order as it is typed. Raises ValueError that says what is missing, UsageError for what is no symbol."""
        symbol = self.query_one("#symbol", Input).value
        if not symbol.strip():
            raise ValueError("which symbol?")
        size = order_size(self.query_one("#size", Input).value)
        return PlaceOrder(parse_symbol(symbol), self._side, size)

    @on(Input.Changed)
    def _changed(self) -> None:
        self._sending = False
        self._look()

    def action_send(self) -> None:
        """End with the order, unless the limits refuse it."""
        self._sending = True
        self._look()

    def action_other_side(self) -> None:
        """Choose the other side."""
        self._side = Side.SELL if self._side is Side.BUY else Side.BUY
        self.query_one("#side", Static).update(self._sides())
        self._changed()

    def _sides(self) -> Content:
        chosen = ((f"[{side}]", "bold") if side is self._side else (f" {side} ", "$foreground 50%") for side in Side)
        return clickable(Content.assemble(*chosen), "other_side")

    @work(exclusive=True, exit_on_error=False)
    async def _look(self) -> None:
        """Show what the order would do; where it is to be sent, and may be, end with it."""
        try:
            wanted = self.wanted
            if (opened := cast("DeskApp", self.app).bridge.present().opened) is None:
                raise UsageError("the desk is still opening")
            ticket = await opened.ask.forecast(wanted)
        except (ValueError, PaperdeskError) as error:
            asked = self._sending or self.query_one("#size", Input).value.strip()
            self._say(one_line(str(error)) if asked else "")
            return
        assert ticket is not None
        self._say(_text(ticket, facts_width(self.app.size.width)))
        if self._sending and not ticket.refused:
            self.dismiss(wanted)

    def _say(self, text: str) -> None:
        self.query_one("#effect", Static).update(text)


def _text(ticket: Ticket, width: int) -> str:
    """The effect of an order, and what the limits say of it."""
    lines = list(facts(effect_facts(ticket.effect), width, label=8))
    limits = f"NOT TAKEN: {ticket.refused}" if ticket.refused else "within the cash floor and the free shares"
    return "\n".join([*lines, "", limits])
