"""The chart that a model was shown, beside its reading: as pixels where the terminal can, in half cells where
textual-image alone can, else as a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen

from engine.errors import PaperdeskError
from tui.desk.desk_app import DeskApp
from tui.screens.reading import ReadingScreen
from tui.settings.pixels import can_show, image_widget
from tui.text.plain_text import printable
from tui.view.desk_port import Source
from tui.widgets.agent_panes import styled_answer
from tui.widgets.clickable import clickable_keys
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from engine.domain.decision import Decision


class ChartImageScreen(ReadingScreen):
    """A picture and what was read from it; y copies the path of its file."""

    KEYS = (
        ("j down", "focused.scroll_lines(2)"),
        ("k up", "focused.scroll_lines(-2)"),
        ("y copy the path", "copy"),
        ("esc back", "leave"),
    )

    def __init__(self, title: str, path: Path, reading: str) -> None:
        super().__init__(title, styled_answer(printable(reading).strip() or "No answer about it was used."))
        self._path = path

    def compose(self) -> ComposeResult:
        """Mount the picture, or the place of its file, and the reading."""
        with Horizontal() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = clickable_keys(self.KEYS, 2)
            shows = can_show()
            if shows:
                yield image_widget(self._path, cast("DeskApp", self.app).pixels, id="pixels")
            page = TextPane(title="", id="page")
            more = "" if shows else "\nIt is shown here where textual-image is installed."
            page.show(Content.assemble(f"The picture is {self._path}{more}\n\n", self.text))
            yield page

    def text_to_copy(self) -> str:
        """The path of the picture."""
        return str(self._path)


def show_image(screen: Screen[Any], source: Source, decision: Decision) -> None:
    """Paint the first chart that a model was shown for a decision, and open it; what stands in the way is said."""
    screen.run_worker(_paint(screen, source, decision), group="picture", exclusive=True, exit_on_error=False)


async def _paint(screen: Screen[Any], source: Source, decision: Decision) -> None:
    from engine.reports.documents.questions import charts_read

    app, symbol, session = cast("DeskApp", screen.app), decision.key.symbol, decision.key.session
    opened = app.snapshot().opened
    assert opened is not None  # its record is shown
    screen.notify(f"drawing the chart of {session}", timeout=2)
    try:
        read = await opened.ask.read(source, lambda records, _: charts_read(records, decision))
        if not read:
            screen.notify(f"no agent was shown a chart for {symbol} on {session}", timeout=4, markup=False)
            return
        chart, reading = read[0]
        image = await opened.ask.paint(chart)
        path = await asyncio.to_thread(app.keep_image, f"{symbol}-{session}.png", image)
    except (PaperdeskError, OSError) as error:
        screen.notify(str(error), markup=False, severity="error", timeout=6)
        return
    screen.app.push_screen(ChartImageScreen(chart.title, path, reading))
