"""Rules for macro releases: the side of a rise of each series, and the change from which on it counts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.offline.reading import Reading, read

_POINTS: Mapping[str, tuple[int, float]] = {"ICSA": (-1, 2.5), "AWHMAN": (1, 0.6)}
"""By series: the side of a rise for shares, and the smallest change in percent that counts."""

_FIGURE = re.compile(r"(?:^|\()([A-Z0-9_]+)\)?: \S+ for \S+, ([+-]\d+\.\d+)% against")


def read_figure(text: str) -> Reading:
    """The reading of a release: it has a side where its series is known and has moved enough."""
    reading = read(text)
    found = _FIGURE.search(text)
    sign, least = _POINTS.get(found[1], (0, 0.0)) if found else (0, 0.0)
    change = float(found[2]) if found else 0.0
    side = sign * ((change >= least) - (change <= -least))
    return Reading(reading.sentences, tuple(0.0 if n else float(side) for n in range(len(reading.sentences))))
