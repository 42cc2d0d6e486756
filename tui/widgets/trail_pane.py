"""The first screen of a decision's trail, fitted into a pane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.content import Content

from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.clickable import clickable
from tui.widgets.folds import inked
from tui.widgets.text_lines import TextPane

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records


def trail_of(records: Records, closes: ClosesOf, *, decision: Decision) -> Mapping[str, Any]:
    """The document of `paperdesk why` of one decision, with the closes that followed."""
    from engine.reports.documents.trail import why_document

    return why_document(records, [decision], market=closes(records, (decision.key.symbol,)))


class TrailPane(TextPane):
    """The first screen of a decision's trail; `trail` is its document, None before one is shown."""

    def __init__(self, *, id: str, classes: str = "") -> None:
        super().__init__(title="Why", id=id, classes=classes)
        self.trail: Mapping[str, Any] | None = None

    def show_trail(self, document: Mapping[str, Any]) -> None:
        """Show the decision of a document of `paperdesk why`, from its top."""
        self.trail = document
        (shown,) = document["decisions"]
        set_title(self, f"Why {shown['symbol']} {shown['session']}")
        set_subtitle(self, clickable(Content("enter shows all"), "why"))
        self.on_resize()
        self.scroll_home(animate=False)

    def show_error(self, text: str) -> None:
        """Show a text in the place of a decision."""
        self.trail = None
        self.show(Content.styled(text, "$warning"), top=True)

    def on_resize(self) -> None:
        """Choose as many lines as there is room for."""
        from tui.text.trail_summary import FEWEST_ROWS, LABEL, first_lines

        if self.trail is not None and self.text_width > LABEL:
            (shown,) = self.trail["decisions"]
            rows = max(FEWEST_ROWS, self.size.height)
            self.show(inked(first_lines(self.trail, shown, self.text_width, rows)))
