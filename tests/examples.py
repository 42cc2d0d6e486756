"""How many examples a property is tried on: few in `make test`, all of them in `make test-long`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

LONG = "long"
"""Name of the profile of `make test-long`."""


def examples(count: int, **more: Any) -> settings:
    """Settings of a property that deserves another number of examples than most: a fifth of it in `make test`."""
    return settings(max_examples=count if settings.get_current_profile_name() == LONG else max(4, count // 5), **more)
