"""The trail of a decision: one screen with what counts, the rest in folds; n and p go through the decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.errors import PaperdeskError
from tui.desk.desk_app import DeskApp
from tui.screens.reading import ReadingScreen
from tui.settings.keys import pane_bindings
from tui.view.desk_port import Source
from tui.widgets.clickable import clickable_keys
from tui.widgets.folds import Fold, FoldTitle, inked
from tui.widgets.trail_pane import trail_of

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
        ("enter or number opens", "fold(0)"),
        ("o all", "folds"),
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
        self._opened: Fold | None = None
        self._document: Mapping[str, Any] | None = None

    def compose(self) -> ComposeResult:
        """Mount the page: the first screen, and the folds once they are read."""
        with VerticalScroll(id="page") as page:
            page.border_title = Content(self._title)
            page.border_subtitle = clickable_keys(self.KEYS, 2)
            yield Static(self.text, markup=False)

    def write(self, text: Content) -> None:
        """Show another text on the first screen."""
        self.text = text
        self.query(Static).first().update(text)

    def on_mount(self) -> None:
        """Read the decision that is wanted."""
        self._read()

    @work(exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        opened = cast("DeskApp", self.app).snapshot().opened
        assert opened is not None  # a record of it is shown
        try:
            decision, self._order, self._document = await opened.ask.read(self._source, self._trail)
        except PaperdeskError as error:
            self.write(Content.styled(str(error), "$warning"))
            return
        self._decision = decision
        if self._tell is not None:
            self._tell(decision)
        await self._show()

    def _trail(self, records: Records, closes: ClosesOf) -> tuple[Decision, Sequence[Decision], Mapping[str, Any]]:
        """The decision that is wanted, those around it, and its document."""
        from engine.reports.documents.decisions import latest_first
        from engine.reports.documents.trail import latest

        if isinstance(self._wanted, str):
            decision = latest(records, self._wanted)[0]
        else:
            decision = self._wanted(records) if callable(self._wanted) else self._wanted
        return decision, self._order or latest_first(records), trail_of(records, closes, decision=decision)

    async def _show(self) -> None:
        from tui.text.trail_text import folds

        assert self._document is not None
        (shown,) = self._document["decisions"]
        opened = {one.name_shown for one in self.query(Fold) if one.open}
        page = self.query_one(VerticalScroll)
        await self.query(Fold).remove()
        parts = [Fold(number, *part) for number, part in enumerate(folds(shown), 1)]
        await page.mount(*parts)
        for part in parts:
            part.toggle(opened=part.name_shown in opened)
        place = self._order.index(self._decision) + 1 if self._decision in self._order else 0
        page.border_title = Content(f"Why {shown['symbol']}  {place:,}/{len(self._order):,}")
        self._fit()
        page.scroll_home(animate=False)

    def on_resize(self) -> None:
        """Fit the first screen into the page once that has its new size."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if self._document is None:
            return
        from tui.text.trail_summary import first_lines

        (shown,) = self._document["decisions"]
        page = self.query_one(VerticalScroll)
        size = page.scrollable_content_region
        folds = self.query(Fold)
        lines = list(first_lines(self._document, shown, size.width, size.height - len(folds)))
        apart = [("", "")] if len(lines) + len(folds) < size.height else []
        self.write(inked([*lines, *apart]))

    def text_to_copy(self) -> str:
        """The first screen, and what is open."""
        parts = [f"{one.name_shown}\n{one.text.plain}" for one in self.query(Fold) if one.open]
        return "\n\n".join([self.text.plain, *parts])

    # Keys

    def action_decision(self, step: int) -> None:
        """Go to the next decision of the order, or the one before."""
        if self._decision is None or self._decision not in self._order:
            return
        place = self._order.index(self._decision) + step
        if 0 <= place < len(self._order):
            self._wanted = self._order[place]
            self._read()
        else:
            self.notify(f"this is the {'last' if step > 0 else 'first'} decision here", timeout=2)

    def action_fold(self, number: int) -> None:
        """Open a part by its number, or close it; 0 stands for the one that has the focus, else the first."""
        parts = list(self.query(Fold))
        if not number:
            focused = self.focused.parent if isinstance(self.focused, FoldTitle) else None
            number = parts.index(focused) + 1 if focused in parts else 1
        if number <= len(parts):
            part = parts[number - 1]
            part.toggle()
            self.set_focus(part.query_one(FoldTitle), scroll_visible=False)
            self._opened = part if part.open else None

    @on(Fold.Written)
    def _written(self, event: Fold.Written) -> None:
        """Bring a part that a key opened to the top."""
        if event.fold is self._opened:
            self._opened = None
            page = self.query_one(VerticalScroll)
            # The page is laid out with the lines by then, and can be scrolled so far.
            self.call_after_refresh(page.scroll_to_widget, event.fold, animate=False, top=True)

    def action_folds(self) -> None:
        """Open all parts, or close all where all are open."""
        parts = list(self.query(Fold))
        opened = not all(one.open for one in parts)
        for part in parts:
            part.toggle(opened=opened)

    def action_image(self) -> None:
        """Show the chart as the model was shown it."""
        if self._decision is not None:
            self._paint(self._decision)

    @work(group="picture", exclusive=True, exit_on_error=False)
    async def _paint(self, decision: Decision) -> None:
        from tui.screens.chart_image import show_image

        await show_image(self, self._source, decision)
