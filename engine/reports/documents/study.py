"""A study as `paperdesk study` prints it: a row for each run, and the rows that were decided otherwise on the same
symbols and window, paired."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from engine.conventions.families import discoveries
from engine.conventions.metrics import later_difference, paired_difference
from engine.domain.run import RunSpec
from engine.errors import PaperdeskError
from engine.reports.documents.backtest import returns_of
from engine.reports.documents.row_json import TOKENS, Row
from engine.reports.documents.side_by_side import cutoff_month, every_two, masked_name

SCHEMA = 1
Decided = tuple[str, str | None, int | None]
DECIDED = ("name", "model", "mask")
"""Keys of an arm: its preset or strategy, its models, and the mask of what they read."""
OMITTED_SETTINGS = frozenset({"preset_text", "briefing"})
"""Settings that a row leaves out: whole texts."""
LUCK = ("trials", "psr", "deflated_sharpe", "minimum_track_record", "value_at_risk")
"""Figures of luck in a flat row."""


@dataclass(frozen=True, slots=True)
class PlayedRow:
    """A run of a study: its description, its document, or (where that is None) the error for which it has none."""

    spec: RunSpec
    document: Mapping[str, Any] | None
    trouble: PaperdeskError | None = None


def study_document(name: str, played: Sequence[PlayedRow], *, runs: int, notes: Sequence[str]) -> Row:
    """The document of a study of so many runs, of which those in `played` have come to their end."""
    return {
        "schema": SCHEMA,
        "study": name,
        "runs": runs,
        "rows": [_row(one) for one in played],
        "pairs": _pairs(played),
        "cutoffs": list(_cutoffs(played)),
        "notes": list(notes),
        "interrupted": len(played) < runs,
    }


def _row(played: PlayedRow) -> Row:
    spec, found = played.spec, played.document or {}
    use = found.get("model") or {}
    cutoff, settings = use.get("training_cutoff"), found.get("settings", {})
    return {
        "run": spec.run,
        **dict(zip(DECIDED, _decided_by(spec), strict=True)),
        "symbols": list(spec.symbols),
        "from": spec.first.isoformat(),
        "to": spec.last.isoformat(),
        "seed": spec.seed,
        "repeat": spec.sample + 1,
        "sessions": found.get("sessions"),
        "currency": found.get("currency"),
        "convention": spec.convention,
        "final_value": found.get("final_value"),
        "trades": len(found["trades"]) if found else None,
        "metrics": found.get("metrics", {}),
        "luck": found.get("luck"),
        "abstentions": use.get("abstentions"),
        **{name: use.get(name) for name in TOKENS[:2]},
        "cost": use.get("cost"),
        "training_cutoff": cutoff,
        "past_cutoff": _past(spec, cutoff),
        "settings": {name: value for name, value in settings.items() if name not in OMITTED_SETTINGS},
        "fingerprint": found.get("fingerprint"),
        "note": None if played.trouble is None else str(played.trouble),
    }


def _decided_by(spec: RunSpec) -> Decided:
    """The preset or strategy, the models that answer it, and the mask of what they read (None: a rule reads none)."""
    models = spec.model or ", ".join(dict.fromkeys(dict(spec.models).values()))
    return spec.preset or spec.strategy or "", models or None, None if spec.preset is None else spec.options.mask or 0


def _past(spec: RunSpec, cutoff: str | None) -> bool | None:
    """True for a window after the month until which its models know the world, False for one that is not wholly so;
    None where no month is known."""
    month = cutoff_month(cutoff)
    return None if month is None else f"{spec.first:%Y-%m}" > month


def _cutoffs(played: Sequence[PlayedRow]) -> Iterator[Row]:
    """Daily returns in windows wholly after the month until which models know the world, less those in windows wholly
    up to it, of whoever decided in both on the same symbols; by the mean of seeds and repeats. Of windows that overlap
    the first counts, so that no day does twice."""
    spans: dict[tuple[Any, ...], tuple[_Windows, _Windows]] = {}
    for one in played:
        spec, found = one.spec, one.document or {}
        month = cutoff_month((found.get("model") or {}).get("training_cutoff"))
        if month is None or f"{spec.first:%Y-%m}" <= month < f"{spec.last:%Y-%m}":
            continue
        before, after = spans.setdefault((_decided_by(spec), spec.symbols, month), ({}, {}))
        part = after if f"{spec.first:%Y-%m}" > month else before
        window = spec.first, spec.last
        if not any(first <= spec.last and spec.first <= last for first, last in part.keys() - {window}):
            part.setdefault(window, []).append(returns_of(found))
    for (decided, symbols, month), parts in spans.items():
        daily = [np.array([day for runs in part.values() for day in np.mean(runs, axis=0)]) for part in parts]
        if (later := later_difference(*daily)) is not None:
            yield {
                **dict(zip(DECIDED, decided, strict=True)),
                "symbols": list(symbols),
                "training_cutoff": month,
                "before": paired_difference(daily[0]),
                "after": paired_difference(daily[1]),
                **later,
            }


_Windows = dict[tuple[date, date], list[list[float]]]
"""The daily returns of runs by their windows."""


def _pairs(played: Sequence[PlayedRow]) -> list[Row]:
    """Every two that decided on the same symbols, window and sessions, by the mean of their seeds and repeats. What is
    better over several symbols and windows than chance explains is a discovery."""
    cells: dict[tuple[Any, ...], dict[Decided, list[list[float]]]] = {}
    for one in played:
        if (found := one.document) is not None and (returns := returns_of(found)):
            key = (one.spec.symbols, one.spec.first, one.spec.last, found["first_session"], len(returns))
            cells.setdefault(key, {}).setdefault(_decided_by(one.spec), []).append(returns)
    pairs = [pair for key, arms in cells.items() for pair in _paired(key, arms)]
    tested: dict[tuple[str, str], list[Row]] = {}
    for pair in pairs:
        if pair["p"] is not None:
            tested.setdefault((arm_name(pair["first"]), arm_name(pair["other"])), []).append(pair)
    for own in tested.values():
        for pair, counts in zip(own, discoveries([each["p"] for each in own]), strict=True):
            pair["discovery"] = counts
    return pairs


def _paired(key: tuple[Any, ...], arms: Mapping[Decided, Sequence[Sequence[float]]]) -> Iterator[Row]:
    names, daily = list(arms), [dict(enumerate(np.mean(runs, axis=0).tolist())) for runs in arms.values()]
    symbols, first, last, *_ = key
    for place, number, gaps, tested in every_two(daily):
        yield {
            "first": dict(zip(DECIDED, names[place], strict=True)),
            "other": dict(zip(DECIDED, names[number], strict=True)),
            "symbols": list(symbols),
            "from": first.isoformat(),
            "to": last.isoformat(),
            **paired_difference(gaps),
            **tested,
            "discovery": None,
        }


def arm_name(arm: Mapping[str, Any]) -> str:
    """A preset or strategy with the models that answer it, as one name."""
    named = f"{arm['name']} ({arm['model']})" if arm["model"] else str(arm["name"])
    return masked_name(named, arm["mask"] or None)


def flat_rows(document: Mapping[str, Any]) -> list[Row]:
    """The rows with a key for each figure, all of them in every row: metrics by their names, those of luck as
    `luck_NAME`; without settings."""
    rows = document["rows"]
    metrics = dict.fromkeys(name for row in rows for name in row["metrics"])
    return [_flat(row, metrics) for row in rows]


def _flat(row: Mapping[str, Any], metrics: Mapping[str, None]) -> Row:
    luck, last = row["luck"] or {}, ("fingerprint", "note")
    return {
        **{name: value for name, value in row.items() if name not in ("metrics", "luck", "settings", *last)},
        "symbols": " ".join(row["symbols"]),
        **metrics,
        **row["metrics"],
        **{f"luck_{name}": luck.get(name) for name in LUCK},
        **{name: row[name] for name in last},
    }


def flat_pairs(document: Mapping[str, Any]) -> list[Row]:
    """The pairs with names in place of what was decided by: `other` is held against `against`."""
    return [
        {
            "other": arm_name(pair["other"]),
            "against": arm_name(pair["first"]),
            **{name: value for name, value in pair.items() if name not in ("first", "other")},
            "symbols": " ".join(pair["symbols"]),
        }
        for pair in document["pairs"]
    ]


def study_csv(document: Mapping[str, Any]) -> str:
    """The flat rows as comma-separated values; what is not known is empty."""
    rows, out = flat_rows(document), io.StringIO()
    writer = csv.DictWriter(out, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
