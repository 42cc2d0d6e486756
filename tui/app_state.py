"""The app's own state from one opening to the next, apart from every desk's books: one small JSON file.

Losing it costs nothing that matters: a file that cannot be read is an empty one, and one that cannot be written stays.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine import places

if TYPE_CHECKING:
    from collections.abc import Mapping


def section(name: str) -> dict[str, Any]:
    """A part of what was kept; empty where nothing was."""
    found = _stored().get(name)
    return dict(found) if isinstance(found, dict) else {}


def keep(name: str, values: Mapping[str, Any]) -> None:
    """Put plain values into a part of it; what is there under other names stays."""
    whole = _stored() | {name: {**section(name), **values}}
    target = places.app_state()
    fresh = target.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(whole, indent=1, sort_keys=True), encoding="utf-8")
        fresh.replace(target)


def _stored() -> dict[str, Any]:
    try:
        found = json.loads(places.app_state().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
