"""A step of the tour: a box with a few words, away from the pane that it points at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset, Region
from textual.widgets import Static

from tui.screens.dialog import Dialog
from tui.settings.keys import pane_bindings
from tui.widgets.clickable import clickable_keys

if TYPE_CHECKING:
    from tui.desk.tour_steps import Step

FOLLOWS = 0.25
"""Seconds between two looks at where the pane is: it moves with the size of the terminal."""


class TourScreen(Dialog[int]):
    """One step over the screen that it is about. Ends with 1 for the next step, -1 for the one before, 0 to leave."""

    AUTO_FOCUS: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("tour")]

    def __init__(self, step: Step, number: int, count: int, place: Callable[[], Region] | None) -> None:
        """`place` is where the pane is on the screen; None where the whole page is meant."""
        super().__init__()
        self._step, self._number, self._count, self._place = step, number, count, place

    def compose(self) -> ComposeResult:
        """Mount the box, and a mark at the pane."""
        with Vertical(id="step") as box:
            box.border_title = Content(f"Tour {self._number}/{self._count}  {self._step.title}")
            yield Static(self._step.text, markup=False)
            following = "enter ends it" if self._number == self._count else "enter next"
            back = [] if self._number == 1 else [("p back", "answer(-1)")]
            keys = clickable_keys([(following, "answer(1)"), *back, ("esc leave", "answer(0)")])
            yield Static(keys, id="keys", markup=False)
        if self._place is not None:
            yield Static(
                f" {'v' if self.app.has_class('-plain') else '▼'} {self._step.title} ", id="mark", markup=False
            )

    def on_mount(self) -> None:
        """Point at the pane, wherever it goes."""
        self._point()
        self.set_interval(FOLLOWS, self._point)

    def on_resize(self) -> None:
        """Point at the pane where it is now."""
        self.call_after_refresh(self._point)

    def _point(self) -> None:
        if self._place is None:
            return
        region = self._place()
        mark, low = self.query_one("#mark"), region.y + region.height / 2 < self.size.height / 2
        text = len(str(mark.render()))
        if region.height == 1:  # the bar of the past at the foot: above it, where the events leave room
            mark.styles.width = text
            mark.styles.offset = Offset(max(0, self.size.width - text - 2), max(0, region.y - 1))
        else:  # in the border of the pane, over its own title
            mark.styles.width = max(text, region.width - 4)
            mark.styles.offset = Offset(min(region.x + 2, max(0, self.size.width - 30)), max(0, region.y))
        self.set_class(not low, "-above")

    def action_answer(self, by: int) -> None:
        """Go on (1), back (-1), or leave (0)."""
        if by != -1 or self._number > 1:
            self.dismiss(by)
