"""The trail of one decision over the screen at hand; the prompts on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from engine.errors import PaperdeskError
from tui.bridge import Source
from tui.screens.reading import ReadingScreen

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from tui.app import PaperdeskApp
    from tui.lines import Line

_STYLES = {
    "strong": "bold",
    "heading": "bold $primary",
    "quiet": "$foreground 55%",
    "warn": "$warning",
    "up": "$success",
    "down": "$error-lighten-1",
}


class TrailScreen(ReadingScreen):
    """One decision, or the latest for a symbol."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o", "prompts", "Prompts", show=False)]
    KEYS = "j k scroll  o prompts  y copy  esc back"

    def __init__(self, source: Source, wanted: Decision | str) -> None:
        symbol = wanted if isinstance(wanted, str) else wanted.key.symbol
        super().__init__(f"Why {symbol}", Content("reading the journal"))
        self._source = source
        self._wanted = wanted
        self._document: Mapping[str, Any] | None = None
        self._prompts = False

    def on_mount(self) -> None:
        """Read beside the screen."""
        self._read()

    @work(exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        app: PaperdeskApp = self.app  # type: ignore[assignment]
        try:
            self._document = await app.bridge.why(self._source, self._wanted)
        except PaperdeskError as error:
            self.write(Content.styled(str(error), "$warning"))
            return
        self._show()

    def on_resize(self, event: events.Resize) -> None:
        """Lines are wrapped to the page."""
        self._show()

    def _show(self) -> None:
        if self._document is None:
            return
        from tui.trail_text import prompt_lines, why_lines

        width = self.query_one(VerticalScroll).scrollable_content_region.width
        self.write(_content((prompt_lines if self._prompts else why_lines)(self._document, width)))

    def action_prompts(self) -> None:
        """The prompts of the agents, or back to the trail."""
        self._prompts = not self._prompts
        self._show()
        self.action_edge(False)


def _content(lines: Iterable[Line]) -> Content:
    return Content("\n").join([Content.styled(text, _STYLES.get(ink, "")) for text, ink in lines])
