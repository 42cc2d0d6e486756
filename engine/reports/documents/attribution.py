"""The change that each input made in decisions, as `paperdesk why --attribute` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from engine.lab.decision_changes import Attributed, Attribution, Effect, input_worths, signed_size
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.session.cost_meter import CostMeter


def attribution_document(records: Records, attribution: Attribution) -> Row:
    """The attribution of a symbol's decisions of one session, one for each owner."""
    unchanged = attribution.unchanged
    return {
        **records.head,
        "run": unchanged.run.id,
        "symbol": unchanged.symbol,
        "session": str(unchanged.session),
        **_decider([attribution]),
        "decisions": [_attributed(one) for one in attribution.decisions],
        "model": _use(attribution.decisions),
    }


def run_attribution_document(records: Records, attributions: Sequence[Attribution], seed: int) -> Row:
    """The attribution of decisions that `seed` drew from a run or a desk: a row per input, and each decision."""
    decisions = [one for each in attributions for one in each.decisions]
    return {
        **records.head,
        "sample": len(attributions),
        "seed": seed,
        **_decider(attributions),
        "inputs": input_worths(decisions),
        "decisions": [_attributed(one) for one in decisions],
        "model": _use(decisions),
    }


def _decider(attributions: Sequence[Attribution]) -> Row:
    notes = dict.fromkeys(note for one in attributions for note in one.unchanged.notes)
    return {
        "preset": attributions[-1].unchanged.preset,
        "label": attributions[-1].unchanged.label,
        "notes": list(notes),
    }


def _attributed(one: Attributed) -> Row:
    key = one.then.key
    return {
        **row_json.fields(key, "run", "session", "symbol", "owner"),
        "action": one.then.action.value,
        "size": float(one.then.size),
        "signed_size": _number(signed_size(one.then)),
        "next_move": one.move,
        "unchanged": _effect(one, one.unchanged),
        "inputs": [_effect(one, effect) for effect in one.inputs],
        "characters": [_effect(one, effect) for effect in one.characters],
        "everything": _effect(one, one.everything),
        "sum": _number(one.summed),
        "remainder": _number(one.remainder),
    }


def _effect(one: Attributed, effect: Effect) -> Row:
    """A row: sizes and their change in percent of the portfolio, `return_effect` as a fraction."""
    now = effect.now
    return {
        "without": list(effect.without),
        "action": None if now is None else now.action.value,
        "size": None if now is None else float(now.size),
        "signed_size": _number(signed_size(now)),
        "change": _number(effect.change),
        "changed": effect.changed,
        "return_effect": one.effect_on_return(effect),
        "reason": "" if now is None else now.reason,
        **row_json.fields(effect.use, "calls", "cached_calls", "cost"),
    }


def _use(decisions: Iterable[Attributed]) -> Row:
    """Calls and cost of all redecisions; `cost` is null where one is not known."""
    meter = CostMeter("")
    for one in decisions:
        for effect in (one.unchanged, *one.inputs, *one.characters, one.everything):
            meter.add(effect.use)
    return row_json.fields(meter.use, "calls", "cached_calls", "cost")


def _number(size: Decimal) -> float:
    return float(size) + 0.0
