"""The ways in which a live feed arrives."""

from __future__ import annotations

from enum import StrEnum


class Delivery(StrEnum):
    """Way in which a feed arrives."""

    STREAM = "stream"
    POLLING = "polling"
    DOWN = "down"
