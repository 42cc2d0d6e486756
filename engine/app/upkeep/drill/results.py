"""The latest result of the drill, kept beside the journals: of the sandbox and of an account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.errors import MalformedData
from engine.reports.documents.row_json import Row
from engine.settings import places


def keep_result(document: Row) -> None:
    """Keep a drill's document in the place of the last one at the same place. Raises ConfigError or DataError for a
    file that cannot be written."""
    results = {**_stored_or_none(), document["place"]: document}
    places.write_whole(places.drill_results(), json.dumps(results, indent=1))


def stored_results() -> Mapping[str, Any]:
    """The kept documents by place; none where nothing was tried yet. Raises MalformedData for a damaged file."""
    path = places.drill_results()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise MalformedData(f"{path} cannot be read ({error}): delete it, and try `paperdesk drill` again") from None
    if not isinstance(found, dict) or not all(isinstance(one, dict) and "time" in one for one in found.values()):
        raise MalformedData(f"{path} holds no results of a drill: delete it, and try `paperdesk drill` again")
    return found


def _stored_or_none() -> Mapping[str, Any]:
    try:
        return stored_results()
    except MalformedData:
        return {}  # what nobody can read is replaced
