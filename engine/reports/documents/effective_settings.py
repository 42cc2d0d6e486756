"""The effective settings of a run as JSON: those of its description, whoever made it."""

from __future__ import annotations

import json
from decimal import Decimal

from engine.domain.decimal_text import plain
from engine.domain.json_text import plain_of
from engine.domain.run import RunSpec
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row


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
