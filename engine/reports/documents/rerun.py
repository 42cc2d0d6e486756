"""A run beside its repetition: the settings that changed since, and the first results that came out otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from engine.reports.documents.row_json import Row

SCHEMA = 1
PARTS = ("decisions", "trades", "equity")


def rerun_document(before: Mapping[str, Any], again: Mapping[str, Any]) -> Row:
    """The documents of a run and of its repetition, compared."""
    return {
        "schema": SCHEMA,
        "run": again["run"],
        "of": before["run"],
        "same": _same(before, again),
        "fingerprints": [before["fingerprint"], again["fingerprint"]],
        "settings": [
            {"setting": name, "before": was, "now": now} for name, was, now in _changed(before, again) if was != now
        ],
        "first_differences": list(_first_differences(before, again)),
    }


def _same(before: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """True where both the test and the warm-up came out alike."""
    return before["fingerprint"] == again["fingerprint"] and not any(_first_differences(before, again))


def _changed(before: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Settings, models and stop of both runs, a setting that one of them did not keep as null."""
    for name in again["settings"]:
        yield name, before["settings"].get(name), again["settings"][name]
    was, now = (None if one["model"] is None else one["model"]["spec"] for one in (before, again))
    yield "model", was, now
    yield "interrupted", before["interrupted"], again["interrupted"]


def _first_differences(before: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Row]:
    """By part of the run and kind of result, the first row that is not as it was; opinions and owners do not count."""
    for part, was, now in (("warm-up", before["warm_up"], again["warm_up"]), ("test", before, again)):
        for kind in PARTS:
            found = _first((was or {}).get(kind, ()), (now or {}).get(kind, ()))
            if found is not None:
                yield {"part": part, "kind": kind, "session": found["session"], "symbol": found.get("symbol")}


def _first(was: Sequence[Row], now: Sequence[Row]) -> Row | None:
    """The first of two sequences of rows that is not the same in both."""
    pairs = ((one, other) for one, other in zip_longest(was, now) if _plain(one) != _plain(other))
    one, other = next(pairs, (None, None))
    return one or other


def _plain(row: Row | None) -> Row | None:
    return row and {name: value for name, value in row.items() if name not in ("opinions", "owner")}
