"""The treatment of a desk's orders: its configuration says which of three."""

from __future__ import annotations

from enum import StrEnum


class TradingMode(StrEnum):
    """The configured treatment of a desk's orders: AUTO sends them, ASK waits for approval, OBSERVE sends none."""

    AUTO = "auto"
    ASK = "ask"
    OBSERVE = "observe"
