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


def first_part(regions: Collection[Region], others: Collection[Region] = ()) -> list[Region]:
    """Regions that are painted at once: the largest, and more as long as no more than CELLS change inside the rectangle
    around them, all of which is drawn for them. `others` have changed before and are not painted yet."""
    part, drawn = list[Region](), {*regions, *others}
    for region in sorted(regions, key=lambda region: (-region.area, region)):
        around = Region.from_union([*part, region])
        if not part or sum(one.intersection(around).area for one in drawn) <= CELLS:
            part.append(region)
    return part


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
    """A screen whose changed regions are painted some at a time, those that changed last first. All of them show one
    state: the widgets have changed before, and what is painted a moment later is the same then."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = DrawsInside()
        self._unpainted: list[Region] = []
        """The regions that are left of earlier changes."""
        self._due = False
        """True while they wait for their timer."""

    def _compositor_refresh(self) -> None:
        changed = self._compositor._dirty_regions
        if self.app.is_headless or self is not self.app.screen or self._compositor.size.region in changed:
            self._unpainted = []  # nobody waits, or all of it is painted
        elif self.desk_app.key_first.comes:
            self._compositor.update_widgets(self._dirty_widgets)
            self._dirty_widgets.clear()
            self._unpainted = list({*changed, *self._unpainted})
            changed.clear()
            self._paint_soon()
            return
        elif changed or self._unpainted:
            now = first_part(changed or self._unpainted, self._unpainted)
            self._unpainted = [one for one in {*changed, *self._unpainted} if one not in now]
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
