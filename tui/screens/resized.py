"""A screen whose widgets are all told their size once they are shown, which they fit their text to."""

from __future__ import annotations

from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget


class ResizesWhatIsShown(Screen[None]):
    """A screen that sends Resize to every widget which a layout shows. Textual compares with its last map of all
    widgets, and makes that anew between two layouts where somebody asks for a region after something was scrolled: a
    widget that was displayed meanwhile is on it, and would be taken for one that knows its size."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: set[Widget] = set()
        """The widgets of the last layout."""

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        placed = self._compositor._full_map
        for widget in placed.keys() - self._laid_out:
            del placed[widget]
        super()._refresh_layout(size, scroll)
        if self._compositor._full_map is not placed:  # else it has only scrolled
            self._laid_out = set(self._compositor._full_map)
