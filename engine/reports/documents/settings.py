"""Settings of runs held against each other, one by one, whatever they are nested in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.reports.documents.row_json import Row

_TEXTS = {"preset_text": "preset"}
"""Settings that are JSON in a text, with the name that their own settings go by."""


def run_settings(document: Mapping[str, Any]) -> Row:
    """Everything that decided a backtest, and whether it was stopped."""
    model, warm_up = document["model"], document["warm_up"]
    return {
        "decided_by": document.get("strategy") or document.get("preset"),
        "symbols": document["symbols"],
        "convention": document["convention"],
        "warm_up_from": None if warm_up is None else warm_up["first_session"],
        **document["settings"],
        "models_used": None if model is None else model["spec"],
        "interrupted": document["interrupted"],
    }


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Row]:
    """The settings in which two runs differ, by name (`preset.sizing.cash_floor`), with both values; null stands for
    one that a run did not keep. A mapping or a preset that one of them did not keep at all is one setting."""
    was, now = dict(_flat(before, now)), dict(_flat(now, before))
    names = dict.fromkeys((*was, *now))
    rows = ({"setting": name, "before": was.get(name), "now": now.get(name)} for name in names)
    return [row for row in rows if row["before"] != row["now"]]


def _flat(settings: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every single setting by its whole name, as far as the other side is as deep."""
    for name, value in settings.items():
        beside = other.get(name)
        if name in _TEXTS and value is not None and beside is not None:
            name, value, beside = _TEXTS[name], json.loads(value), json.loads(beside)
        if isinstance(value, Mapping) and isinstance(beside, Mapping):
            yield from _flat(value, beside, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every single setting by its whole name, as text; one that a run did not keep, or that is empty, is left out."""
    for name, value in settings.items():
        if value in (None, "", {}, []):
            continue
        if name in _TEXTS:
            name, value = _TEXTS[name], json.loads(value)
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{name}", text
