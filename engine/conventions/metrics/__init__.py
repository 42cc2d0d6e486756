"""Metrics by convention: each a named set of formulas over one track record; an undefined metric is None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine.conventions.metrics.desk import desk
from engine.conventions.metrics.papers import arena, finagent, finvision, investorbench, tradinggpt
from engine.conventions.metrics.track import Metrics, Track

METRICS: Mapping[str, Callable[[Track], Metrics]] = MappingProxyType(
    {formulas.__name__: formulas for formulas in (desk, finvision, finagent, investorbench, tradinggpt, arena)}
)
"""Formulas of every convention by name; each returns all of its metrics, in the order of its tables."""

__all__ = ["METRICS", "Metrics", "Track"]
