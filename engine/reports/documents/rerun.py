"""A run beside its repetition: the settings that changed since, and the first results that came out otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changed_settings, run_settings

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
        "settings": changed_settings(run_settings(before), run_settings(again)),
        "first_differences": list(_first_differences(before, again)),
    }


def _same(before: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """True where both the test and the warm-up came out alike."""
    return before["fingerprint"] == again["fingerprint"] and not any(_first_differences(before, again))


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
