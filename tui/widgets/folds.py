"""Parts of a page that open and close: a title with a number, and lines that are made when it is first opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from textual import events, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui.desk.desk_app import ShowsFailures
from tui.text.plain_text import Line

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


class FoldTitle(Static, can_focus=True):
    """The title of a fold: a click opens or closes it."""

    def on_click(self, event: events.Click) -> None:
        """Open the fold, or close it."""
        event.stop()
        assert isinstance(self.parent, Fold)
        self.parent.toggle()


class Fold(ShowsFailures, Vertical):
    """A part of a page under its title; closed at first."""

    class Written(Message):
        """The lines of a fold that was opened stand on the page."""

        def __init__(self, fold: Fold) -> None:
            super().__init__()
            self.fold = fold

    def __init__(self, number: int, name: str, about: str, lines: Callable[[int], Iterable[Line]]) -> None:
        super().__init__()
        self.number, self.name_shown, self._about, self._lines = number, name, about, lines
        self.open = False
        self.text = Content("")
        self._width = 0

    def compose(self) -> ComposeResult:
        """Mount the title and the place of the lines."""
        yield FoldTitle(self._title(), markup=False)
        body = Static(markup=False)
        body.display = False
        yield body

    def _title(self) -> Content:
        mark = "▾" if self.open else "▸"
        return Content.assemble(
            f"{self.number} {mark} ", (self.name_shown, "bold"), (f"  {self._about}", "$foreground 55%")
        )

    def toggle(self, *, opened: bool | None = None) -> None:
        """Open it where it is closed, else close it; with `opened` as that says."""
        wanted = not self.open if opened is None else opened
        if wanted == self.open:
            return
        self.open = wanted
        self.query_one(FoldTitle).update(self._title())
        body = self.query(Static).last()
        body.display = self.open
        if self.open:
            self._write(body, self._page_width())

    def on_resize(self) -> None:
        """Wrap the lines to another width."""
        if self.open and self._page_width() != self._width:
            self._write(self.query(Static).last(), self._page_width())

    def _page_width(self) -> int:
        return self.container_size.width

    @work(exclusive=True, exit_on_error=False)
    async def _write(self, body: Static, width: int) -> None:
        if width == self._width:
            self.post_message(self.Written(self))
            return
        # Prompts are long: they are wrapped beside the screen.
        self._width = width
        self.text = await asyncio.to_thread(lambda: inked(self._lines(width)))
        body.update(self.text)
        self.call_after_refresh(self.post_message, self.Written(self))
