"""The app's own state from one opening to the next, apart from every desk's books: one small JSON file.

Losing it costs nothing that matters: a file that cannot be read is an empty one, and one that cannot be written stays.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError, DataError
from engine.settings import places

if TYPE_CHECKING:
    from collections.abc import Mapping


def section(name: str) -> dict[str, Any]:
    """A part of what was kept; empty where nothing was."""
    found = _stored().get(name)
    return dict(found) if isinstance(found, dict) else {}


def keep(name: str, values: Mapping[str, Any]) -> None:
    """Put plain values into a part of it; what is there under other names stays."""
    whole = _stored() | {name: {**section(name), **values}}
    with suppress(ConfigError, DataError):
        places.write_whole(places.app_state(), json.dumps(whole, indent=1, sort_keys=True))


def _stored() -> dict[str, Any]:
    try:
        found = json.loads(places.app_state().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
