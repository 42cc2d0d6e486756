"""A screen that paints a large change in parts, so that a key which comes meanwhile waits for one of them at most."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip

from tui.screens.snapshot_screen import SnapshotScreen

CELLS = 1800
"""Changed cells that are drawn at once, about 6 ms: a chart of 120 x 40 with some lines of tables."""
BETWEEN = 0.004
"""Seconds from one part to the next, in which a key is read and answered."""


def first_part(regions: Sequence[Region], waiting: Collection[Region] = ()) -> list[Region]:
    """Regions that are painted at once: the first, and more as long as no more than CELLS change inside the rectangle
    around them, all of which is drawn for them, also what else is `waiting` there."""
    part, drawn = list[Region](), {*regions, *waiting}
    for region in regions:
        around = Region.from_union([*part, region])
        if not part or sum(one.intersection(around).area for one in drawn) <= CELLS:
            part.append(region)
    return part


def _largest_first(regions: Collection[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (-region.area, region))


class DrawsInside(Compositor):
    """Draws only widgets inside of the rectangle that is painted. Textual draws all whose container lies in it: what
    changed in those would be drawn before the answer to a key."""

    def _render_chops(self, crop: Region, is_rendered_line: Callable[[int], bool]) -> Sequence[Mapping[int, Strip]]:
        placed, _ = self.visible_widgets, self.cuts  # the cuts are those of all widgets, and kept
        self._visible_widgets = {widget: at for widget, at in placed.items() if crop.overlaps(at[0])}
        try:
            return super()._render_chops(crop, is_rendered_line)
        finally:
            self._visible_widgets = placed


class PaintsInParts(SnapshotScreen):
    """A screen whose changed regions are painted some at a time: the answer to a key first, else those that have waited
    longest, of one change the largest. All of them show one state: the widgets have changed before, and what is
    painted a moment later is the same then. Where they change again meanwhile, none is left behind by those that
    follow."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = DrawsInside()
        self._unpainted: list[Region] = []
        """The regions that are left of earlier changes, in the order in which they are painted."""
        self._due = False
        """True while they wait for their timer."""

    def _compositor_refresh(self) -> None:
        changed, keys = self._compositor._dirty_regions, self.desk_app.key_first
        if self.app.is_headless or self is not self.app.screen or self._compositor.size.region in changed:
            self._unpainted = []  # nobody waits, or all of it is painted
        elif keys.comes:
            self._compositor.update_widgets(self._dirty_widgets)
            self._dirty_widgets.clear()
            self._unpainted = list(dict.fromkeys((*self._unpainted, *_largest_first(changed))))
            changed.clear()
            self._paint_soon()
            return
        elif changed or self._unpainted:
            new = _largest_first(changed)
            answer = new if keys.waits else []
            waiting = list(dict.fromkeys((*answer, *self._unpainted, *new)))
            now = first_part(answer or waiting, waiting)
            self._unpainted = [one for one in waiting if one not in now]
            changed.clear()
            changed.update(now)
            self._paint_soon()
        super()._compositor_refresh()

    def _paint_soon(self) -> None:
        if self._unpainted and not self._due:
            self._due = True
            self.set_timer(BETWEEN, self._paint_rest)

    def _paint_rest(self) -> None:
        self._due = False
        if not self._unpainted or not self.is_current:
            return
        # In a batch of changes what is painted is dropped.
        if self.desk_app.key_first.waits or self.app._batch_count:
            self._paint_soon()
        else:
            self._compositor.update_widgets(self._dirty_widgets)  # painting forgets them
            self._compositor_refresh()
