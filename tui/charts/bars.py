"""Bars as text, drawn by plotext: values that stand for themselves, such as the seconds of each run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Lock
from typing import Any

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_figure = Lock()
"""plotext has one figure for the whole program; it is drawn by one thread at a time."""


def bar_plot(values: Sequence[float], labels: Sequence[str], width: int, height: int) -> list[str]:
    """Bars of the newest values that there is room for, as `height` lines of at most `width` characters, with the
    labels of the first and the last; none where there is no value or no room."""
    room = (width - 12) // 2
    if not values or room < 4 or height < 6:
        return []
    import plotext  # a third of a second: only once something is drawn

    shown, named = list(values[-room:]), list(labels[-room:])
    places = list(range(len(shown)))
    ends = dict([(0, named[0]), (len(shown) - 1, named[-1])][-1 if len(shown) < width // 6 else 0 :])
    with _figure:
        plotext.terminal.limit(False, False)
        figure: Any = plotext.figure
        figure.clear()
        figure.theme("colorless")
        figure.canvas("default")
        figure.plot_size(width, height)
        figure.draw(figure.bar(places, shown, width=0.6))
        figure.ruler("y").lim(0, max(*shown, 1.0))
        figure.ruler("x").ticks(list(ends), list(ends.values()))
        text = _ESCAPES.sub("", figure.build().string(colorless=True))
        figure.clear()
    return text.rstrip("\n").split("\n")[:height]
