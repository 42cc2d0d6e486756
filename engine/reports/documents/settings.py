"""The effective settings of runs, and those of two runs held against each other, whatever they are nested in."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from engine.domain.json_text import plain_of
from engine.domain.run import RunSpec
from engine.domain.text import plain
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

NOT_RECORDED = "not recorded"
_TEXTS = {"preset_text": "preset"}
"""Settings that are JSON in a text, with the name that their own settings go by."""


def run_settings(document: Mapping[str, Any]) -> Row:
    """Everything that decided a backtest, and whether it was stopped."""
    model, warm_up = document["model"], document.get("warm_up")
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
    none, as for a parameter that only the other's strategy has, `not recorded` for one that a run did not keep. A
    mapping or a preset that one of them did not keep at all is one setting."""
    was, now = dict(_flat(before, now)), dict(_flat(now, before))
    names = dict.fromkeys((*was, *now))
    apart = ((name, None if "." in name else NOT_RECORDED) for name in names if was.get(name) != now.get(name))
    return [{"setting": name, "before": was.get(name, lacks), "now": now.get(name, lacks)} for name, lacks in apart]


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


def flat_settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every single setting by its whole name, as text; one that a run did not keep, or that is empty, is left out."""
    for name, value in _flat(settings, settings):
        if value not in (None, "", {}, []):
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def spec_settings(spec: RunSpec) -> Row:
    """Data, seed, models, cash and its floor, costs, preset, briefing and versions of a run that has begun; null where
    one does not apply."""
    preset = None if spec.preset_text is None else json.loads(spec.preset_text)
    return {
        "data": f"demo market, seed {spec.data.demo_seed}" if spec.data.folder is None else spec.data.folder,
        **row_json.fields(spec, "seed", "embedder", "model"),
        "models": dict(spec.models),
        "cash": _number(spec.cash),
        "cash_floor": None if preset is None else preset["sizing"]["cash_floor"],
        **_costs(spec),
        "preset_text": spec.preset_text,
        "briefing": None if spec.briefing is None else plain_of(spec.briefing),
        "data_fingerprint": spec.data_fingerprint or None,
        "version": spec.version or None,
    }


def _costs(spec: RunSpec) -> Row:
    rules = spec.rules
    assert rules is not None
    return {
        "fills": rules.fill_at,
        "commission": plain(rules.commission_rate),
        "slippage_bp": plain(rules.slippage_bp),
        "commission_per_order": plain(rules.commission_per_order),
        "commission_per_share": plain(rules.commission_per_share),
        "volume_cap": _number(rules.volume_cap),
        "borrow_rate": plain(rules.borrow_rate),
        **row_json.fields(rules, "fractional", "allow_short"),
    }


def _number(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


KIND = "settings"
"""The kind of document under which a run keeps them."""

OF_A_SESSION = frozenset({"data_fingerprint"})
"""Settings that are another's every session."""


def settings_of(reader: JournalReader, run: str) -> Row | None:
    """The effective settings of a desk's run; None where it kept none."""
    known = reader.document_versions(run, KIND)
    return json.loads(known[-1]) if known else None


def changed_since(reader: JournalReader, run: str) -> Row | None:
    """The settings in which a run differs from the one before it, `since` that one's session; None where nothing
    changed, or one of them kept no settings."""
    seen = False
    for entry, row in _changes(reader):
        seen = seen or entry.id == run
        if seen and (row is not None or entry.id != run):
            return row if entry.id == run else None
    return None


def changes_by_run(reader: JournalReader, runs: Collection[str]) -> dict[str, Row]:
    """The changes of those of the runs that have any; no run before the first of them is read but for one."""
    found: dict[str, Row] = {}
    ahead = set(runs)
    for entry, row in _changes(reader):
        if not ahead and entry.id not in runs:
            break
        ahead.discard(entry.id)
        if row is not None and entry.id in runs:
            found.setdefault(entry.id, row)
    return found


def _changes(reader: JournalReader) -> Iterator[tuple[RunEntry, Row | None]]:
    """Every run with the changes since the version of settings before it, the latest first."""
    for (run, now), (earlier, before) in pairwise(_versions(reader)):
        changed = changed_settings(before, now)
        yield run, {"since": str(earlier.session), "settings": changed} if changed else None


def _versions(reader: JournalReader) -> Iterator[tuple[RunEntry, Row]]:
    """Every version of settings, the latest first; a run that goes on with changed settings has several."""
    for run in reversed(reader.runs()):
        for text in reversed(reader.document_versions(run.id, KIND)):
            yield run, {name: value for name, value in json.loads(text).items() if name not in OF_A_SESSION}
