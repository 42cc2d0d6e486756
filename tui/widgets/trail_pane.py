"""The trail of a decision in a pane: its card, and under it parts that open and close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.content import Content
from textual.geometry import Size
from textual.message import Message

from engine.errors import PaperdeskError
from tui.desk.desk_app import DeskApp, ShowsFailures
from tui.text.plain_text import Line
from tui.widgets.border_text import set_title
from tui.widgets.clickable import clickable
from tui.widgets.newest_reading import newest_reading
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records
    from tui.view.desk_port import Source

    Reading = Callable[[Records, ClosesOf], Mapping[str, Any]]
    """Reads the document of `paperdesk why` of a decision, or of several owners' at once."""

NARROWEST = 34
"""Columns of a decision's card at least."""
SMALL = 24
"""Rows of a screen on which a card has no more rows than it needs, that what followed is in sight with it."""
INKS = {
    "strong": "bold",
    "heading": "bold $primary",
    "quiet": "$foreground 55%",
    "warn": "$warning",
    "up": "$success",
    "down": "$error-lighten-1",
}


def inked(lines: Iterable[Line]) -> Content:
    """Lines with their inks, as one text without markup."""
    return Content("\n").join([Content.styled(text, INKS.get(ink, "")) for text, ink in lines])


def trail_of(records: Records, closes: ClosesOf, *, decisions: Sequence[Decision]) -> Mapping[str, Any]:
    """The document of `paperdesk why` of some decisions of one symbol and session, with the closes that followed."""
    from engine.reports.documents.trail import why_document

    return why_document(records, decisions, market=closes(records, (decisions[0].key.symbol,)))


class TrailPane(ShowsFailures, TextPane):
    """Decisions of one symbol and session, each with its card and its parts; `trail` is their document, None before one
    is shown."""

    FITS: ClassVar[bool] = True
    """True where the table of agents is cut, that all parts are in sight."""

    class Shown(Message):
        """A decision that was asked for is read."""

    def __init__(self, *, id: str, classes: str = "") -> None:
        super().__init__(title="Why", id=id, classes=classes)
        self.trail: Mapping[str, Any] | None = None
        self.parts: dict[int, str] = {}
        """The names of the parts by their number."""
        self.open: set[str] = set()
        """The names of those that are open."""
        self._last = 1
        """The part that was opened or closed last."""
        self._first: tuple[str, ...] = ()
        """The names of parts of which the first there is stands at the top of each decision; empty for its card."""
        self._to_bring: tuple[str, ...] = ()
        """Those of which the first there is comes to the top once it is laid out."""
        self._wants_trail = False
        """False once other things are shown: a decision that is still being read then is left out."""

    def read(self, source: Source, document: Reading) -> None:
        """Show a decision of a record from its top, once it is read."""
        self._wants_trail = True
        self._read(source, document)

    @newest_reading
    async def _read(self, source: Source, document: Reading) -> None:
        opened = cast("DeskApp", self.app).snapshot().opened
        assert opened is not None  # a record of it is shown
        try:
            trail = await opened.ask.read(source, document)
        except PaperdeskError as error:
            self.show_error(str(error))
            return
        if not self._wants_trail:
            return
        self.trail = trail
        (shown, *_) = self.trail["decisions"]
        set_title(self, f"Why {shown['symbol']} {shown['session']}")
        self._to_bring = self._first
        self._lay_out()
        self.scroll_home(animate=False)
        self.post_message(self.Shown())

    def show_error(self, text: str) -> None:
        """Show a text in the place of a decision."""
        self.trail = None
        self.show(Content.styled(text, "$warning"), top=True)

    def on_resize(self) -> None:
        """Fit the card, and the parts that are open."""
        self._lay_out()

    @newest_reading
    async def _lay_out(self) -> None:
        """Show what is open of the trail, and bring the part that is wanted to the top."""
        trail, opened, room = self.trail, self.open, self._room
        if trail is None or room.width < NARROWEST:
            return
        # Prompts are long: they are wrapped beside the screen.
        card = room.height if self.app.size.height > SMALL else 0
        blocks, parts = await asyncio.to_thread(self._drawn, trail, room, card)
        if trail is not self.trail or opened is not self.open or room != self._room:
            self._lay_out()  # what has changed meanwhile, of which what is wanted is brought to the top
            return
        self.parts = parts
        self.show_blocks(blocks)
        self._bring(self.blocks)

    @property
    def _room(self) -> Size:
        return Size(self.text_width, self.size.height)

    def _drawn(self, trail: Mapping[str, Any], room: Size, card: int) -> tuple[list[Content], dict[int, str]]:
        """The blocks of a trail whose cards may have so many rows, and the names of its parts by their number."""
        from tui.text.trail_summary import WHOLE, first_lines
        from tui.text.trail_text import folds

        blocks: list[Content] = []
        parts: dict[int, str] = {}
        for shown in trail["decisions"]:
            found = list(folds(shown))
            rows = room.height - len(found) - 1 if self.FITS else WHOLE
            blocks.append(inked([*first_lines(trail, shown, room.width, rows, card), ("", "")]))
            for number, fold in enumerate(found, len(parts) + 1):
                parts[number], opened = fold.name, fold.name in self.open
                mark = "▾" if opened else "▸"
                title = Content.assemble(f"{number} {mark} ", (fold.name, "bold"), (f"  {fold.about}", INKS["quiet"]))
                blocks.append(clickable(title, f"focused.fold({number})"))
                if opened:
                    blocks.append(inked(fold.lines(room.width)))
        return blocks, parts

    def _bring(self, shown: list[Content]) -> None:
        """Bring the part that is wanted to the top, once what stands under it in the blocks is wrapped so far."""
        number = next((number for number, name in self.parts.items() if name in self._to_bring), 0)
        if not number or shown is not self.blocks:
            return
        row = self.first_row(next(n for n, block in enumerate(shown) if block.plain.startswith(f"{number} ")))
        if self.wrapped or row + self.size.height <= self.virtual_size.height:
            self.scroll_to(y=row, animate=False, force=True)  # the scrollbar comes with the next layout
            self._to_bring = ()
        else:
            self.call_after_refresh(self._bring, shown)

    def open_only(self, *names: str) -> None:
        """Close all parts but those of these names; the first of them comes to the top."""
        self._first = names
        if self.open != set(names):
            self.open, self._to_bring = set(names), names
            self._lay_out()

    def action_fold(self, number: int) -> None:
        """Open a part by its number, or close it; 0 stands for the one that was opened or closed last."""
        self._last = number = number or self._last
        if name := self.parts.get(number):
            self.open = self.open ^ {name}
            self._to_bring = (name,) if name in self.open else ()
            self._lay_out()

    def action_folds(self) -> None:
        """Open all parts, or close all where all are open."""
        every = set(self.parts.values())
        self.open, self._to_bring = set() if every <= self.open else every, ()
        self._lay_out()
