"""The trail of a decision on a page of its own: its card, the rest in parts; n and p go through the decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from tui.screens.reading import ReadingScreen
from tui.settings.keys import pane_bindings
from tui.view.desk_port import Source
from tui.widgets.border_text import set_title
from tui.widgets.clickable import clickable_keys
from tui.widgets.trail_pane import TrailPane, trail_of

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.records import Records

    Wanted = Decision | str | Callable[[Records], Decision]
    """A decision, the symbol whose latest it is, or how it is found in the records; that raises MissingData."""


class TrailScreen(ReadingScreen):
    """The trail of one decision.

    `order` is where n and p go: the decisions as a table shows them; without one all of the record, latest session
    first. `shown` is told of every decision that is gone to.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("trail")]
    KEYS = (
        ("n next", "decision(1)"),
        ("p previous", "decision(-1)"),
        ("number opens", "focused.fold(0)"),
        ("o all", "focused.folds"),
        ("v picture", "image"),
        ("esc back", "leave"),
    )

    def __init__(
        self,
        source: Source,
        wanted: Wanted,
        *,
        order: Sequence[Decision] = (),
        shown: Callable[[Decision], None] | None = None,
    ) -> None:
        super().__init__("Why", Content("reading the journal"))
        self._source = source
        self._wanted = wanted
        self._order = order
        self._tell = shown
        self._decision: Decision | None = None

    def compose(self) -> ComposeResult:
        """Mount the page."""
        page = TrailPane(id="page")
        page.border_subtitle = clickable_keys(self.KEYS, 2)
        page.show(self.text)
        yield page

    @property
    def page(self) -> TrailPane:
        """The page."""
        return self.query_one(TrailPane)

    def on_mount(self) -> None:
        """Read the decision that is wanted."""
        self.page.read(self._source, self._found)

    def _found(self, records: Records, closes: ClosesOf) -> Mapping[str, Any]:
        """The document of the decision that is wanted; which one it is, and those around it, is kept."""
        from engine.reports.documents.decisions import latest_first
        from engine.reports.documents.trail import latest

        if isinstance(self._wanted, str):
            self._wanted = latest(records, self._wanted)[0]
        elif callable(self._wanted):
            self._wanted = self._wanted(records)
        self._decision = self._wanted
        self._order = self._order or latest_first(records)
        return trail_of(records, closes, decisions=[self._decision])

    @on(TrailPane.Shown)
    def _shown(self) -> None:
        if self._decision is None:
            return
        if self._tell is not None:
            self._tell(self._decision)
        place = self._order.index(self._decision) + 1 if self._decision in self._order else 0
        set_title(self.page, f"Why {self._decision.key.symbol}  {place:,}/{len(self._order):,}")

    def text_to_copy(self) -> str:
        """The card, and what is open."""
        return self.page.as_text()

    def action_decision(self, step: int) -> None:
        """Go to the next decision of the order, or the one before."""
        if self._wanted not in self._order:
            return
        place = self._order.index(self._wanted) + step  # also of one that is still read
        if 0 <= place < len(self._order):
            self._wanted = self._order[place]
            self.on_mount()
        else:
            self.notify(f"this is the {'last' if step > 0 else 'first'} decision here", timeout=2)

    def action_image(self) -> None:
        """Show the chart as the model was shown it."""
        from tui.screens.chart_image import show_image

        if self._decision is not None:
            show_image(self, self._source, self._decision)
