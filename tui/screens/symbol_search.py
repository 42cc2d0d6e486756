"""The search for a symbol, over another screen: by symbol or company, those that begin with what is typed first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.domain.market import KnownSymbol
from engine.errors import PaperdeskError
from tui.screens.pick import PickScreen
from tui.text.plain_text import one_line
from tui.view.snapshot import Snapshot
from tui.widgets.clickable import clickable_keys
from tui.widgets.table import Cell, Column, Row, Table

COLUMNS = (
    Column("SYM", max_width=12),
    Column("NAME", stretch=True, min_width=8),
    Column("FOUND IN", max_width=24, drop_order=1),
)
OPENING = 0.05
"""Seconds between two looks whether the desk is open."""
NONE_FITS = "no known symbol matches:\nadd more with paperdesk fetch or import"


class SymbolSearchScreen(PickScreen[str]):
    """A line to type, and the symbols that fit it. Ends with the chosen one, with None on escape."""

    # A character comes before the line that is typed.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("plus", "add", "Add to the group", show=False, priority=True)]
    COLUMNS = COLUMNS
    EMPTY = "loading symbols"

    def __init__(self, present: Callable[[], Snapshot], *, group: str, add: Callable[[str], str] | None) -> None:
        """`group` is the group of the watchlist that `add` adds a symbol to; it returns the reason where that cannot
        be, else an empty text. None where nothing may be changed."""
        super().__init__()
        self._present, self._group, self._add = present, group, add
        self._known: Sequence[KnownSymbol] = ()
        self._found = False

    def _keys(self) -> Content:
        """Name the keys that work: only a symbol that was found is shown, or added."""
        adds = [(f"+ adds it to the group {self._group}", "add")] if self._add is not None else []
        found = [("enter shows it", "choose"), *adds] if self._found else []
        return clickable_keys([*found, ("esc leaves", "leave")])

    def on_mount(self) -> None:
        """Read the symbols beside the screen."""
        self.query_one(Vertical).border_title = Content("Search a symbol")
        self.query_one(Input).placeholder = "symbol or company"
        self.query_one("#complaint", Static).update(self._keys())
        self._read()

    @work(exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        try:
            while (view := self._present()).opened is None and not view.trouble:
                await asyncio.sleep(OPENING)
            self._known = () if view.opened is None else await view.opened.ask.symbols()
        except PaperdeskError as error:
            self._say(str(error))
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        """List the symbols that fit, the cursor on the best one."""
        table = self.query_one(Table)
        found = matching(self._known, self.query_one(Input).value)
        rows = [
            Row(
                one.symbol,
                (Cell(one.symbol, "strong"), Cell(one_line(one.name)), Cell(", ".join(one.sources), "muted")),
            )
            for one in found
        ]
        table.show(rows, NONE_FITS if self._known else None)
        if rows:
            table.point_at(rows[0].key)
        if self._found is not bool(rows):  # else what was said last stays
            self._found = bool(rows)
            self.query_one("#complaint", Static).update(self._keys())

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        self.dismiss(event.key)

    @on(Input.Submitted)
    def action_choose(self) -> None:
        """End with the symbol under the cursor."""
        if symbol := self.query_one(Table).cursor_key:
            self.dismiss(symbol)

    def action_add(self) -> None:
        """Add the symbol under the cursor to the group."""
        symbol = self.query_one(Table).cursor_key
        if self._add is None:
            self._say("read-only")
        elif symbol:
            self._say(self._add(symbol) or f"{symbol} is in the group {self._group}")
            self._read()

    def _say(self, text: str) -> None:
        self.query_one("#complaint", Static).update(one_line(text))


def matching(symbols: Sequence[KnownSymbol], text: str) -> list[KnownSymbol]:
    """The symbols that have a text in them, or in their company's name: first those whose symbol begins with it, then
    those where a word of the name does, then the others; within each as given. An empty text fits all."""
    wanted = " ".join(text.upper().split())
    ranked = ((_rank(one, wanted), one) for one in symbols)
    found = [(rank, one) for rank, one in ranked if rank is not None]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _rank(one: KnownSymbol, wanted: str) -> int | None:
    """0 for the best fit; None for none."""
    symbol, name = one.symbol.upper(), one.name.upper()
    fits = (symbol.startswith(wanted), f" {name}".find(f" {wanted}") >= 0, wanted in symbol or wanted in name)
    return fits.index(True) if True in fits else None
