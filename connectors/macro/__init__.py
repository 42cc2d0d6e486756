"""Macro series from FRED, with their vintages."""

from __future__ import annotations

from connectors.macro.fred import FredMacro

__all__ = ["FredMacro"]
