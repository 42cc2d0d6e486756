"""Models, runs or owners' books side by side: the figures of each, every two of them paired day by day, and the noise
floor of repeats, below which no difference counts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from statistics import fmean, mean
from typing import Any

import numpy as np

from engine.conventions.families import family
from engine.conventions.metrics import Floats, later_difference, noise_floor, paired_difference
from engine.domain.model_call import ModelKind
from engine.domain.run import total_cost
from engine.domain.text import money, plain
from engine.reports.documents.backtest import returns_of, sessions_of
from engine.reports.documents.row_json import TOKENS, Row
from engine.reports.performance import BENCHMARK

Document = Mapping[str, Any]
COUNTS = ("calls", "cached_calls", "abstentions", "refusals", "repairs", *TOKENS[:2])
"""Figures of the use of models that add up over repeats, beside the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One of those that are compared: its name, the models that answer it (None: rules), and the document of each of
    its repeats, one at least."""

    name: str
    model: str | None
    documents: Sequence[Document]

    @property
    def daily(self) -> Mapping[str, float]:
        """The mean return of the repeats in each session that all of them have."""
        days = [_returns(one) for one in self.documents]
        return {day: fmean(one[day] for one in days) for day in days[0] if all(day in one for one in days)}

    @property
    def noise(self) -> float:
        """The variance of its mean, that of one run being 1; 0 of rules, which come out alike every time."""
        use = self.documents[0]["model"]
        return 0.0 if use is None or use["spec"] == ModelKind.OFFLINE else 1 / len(self.documents)


def masked_name(name: str, mask: int | None) -> str:
    """The name of one of several masks of a model; the model's alone where there is none."""
    return name if mask is None else f"{name}, mask {mask}"


def _returns(document: Document) -> dict[str, float]:
    return dict(zip(sessions_of(document), returns_of(document), strict=True))


def side_by_side(arms: Sequence[Arm], repeats: Iterable[Sequence[Document]] = ()) -> Row:
    """The part of a document that all comparisons share: `models` in rows, `pairs`, each with the `floor` of its noise
    by groups of `repeats` (None where nothing was repeated), the highest `floor`, a daily return, and the input
    `sensitivity` of each one's first run, where any was told."""
    groups = [[fmean(returns_of(one)) for one in group if returns_of(one)] for group in repeats]
    noise, compared = noise_floor([np.array(group) for group in groups]), every_two([arm.daily for arm in arms])
    pairs = [_pair(arms[first], arms[other], gaps, noise) | tested for first, other, gaps, tested in compared]
    floors = [pair["floor"] for pair in pairs if pair["floor"] is not None]
    told = [row for arm in arms for row in arm.documents[0].get("sensitivity", ())]
    beside = {"models": [_row(arm) for arm in arms], "pairs": pairs, "floor": max(floors, default=None)}
    return beside | ({"sensitivity": told} if told else {})


def _row(arm: Arm) -> Row:
    first, uses = arm.documents[0], [one["model"] or {} for one in arm.documents]
    cutoff = uses[0].get("training_cutoff")
    cost = total_cost(Decimal(use["cost"]) if use.get("cost") else None for use in uses)
    metrics = dict.fromkeys(name for one in arm.documents for name in one["metrics"])
    agreement, compared = _agreement(combinations(arm.documents, 2))
    return {
        "name": arm.name,
        "decided_by": first.get("strategy") or first.get("preset"),
        "model": arm.model,
        "mask": first.get("settings", {}).get("mask") or 0,
        "runs": [one.get("run") for one in arm.documents],
        **{name: first[name] for name in ("sessions", "first_session", "last_session", "currency", "convention")},
        "final_value": money(round(mean(Decimal(one["final_value"]) for one in arm.documents), 2)),
        "total_return": fmean(_grown(_returns(one).values()) for one in arm.documents),
        "metrics": {name: _mean(one["metrics"].get(name) for one in arm.documents) for name in metrics},
        "luck": first.get("luck"),
        **{name: _sum(use.get(name) for use in uses) for name in COUNTS},
        "cost": None if cost is None else plain(cost),
        "unresolved_figures": _sum(one.get("unresolved_figures") for one in arm.documents),
        "agreement": agreement,
        "agreement_of": compared,
        "training_cutoff": cutoff,
        **_around_cutoff(arm, cutoff_month(cutoff)),
        "daily": arm.daily,
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _grown(returns: Iterable[float]) -> float:
    return math.prod(1 + one for one in returns) - 1


def cutoff_month(text: str | None) -> str | None:
    """The month (YYYY-MM) until which the models of a run know the world, of several the latest; None where that of any
    is unknown, and for the rules."""
    months = re.findall(r"(?<!\S)\d{4}-\d{2}(?!\S)", text or "")
    return max(months) if months and len(months) == len((text or "").split(", ")) else None


def _around_cutoff(arm: Arm, month: str | None) -> Row:
    """The sessions up to a month and those after it; null where it is unknown. `past_cutoff` is the difference of what
    each day was over buy and hold, after less before."""
    names = ("before_cutoff", "after_cutoff", "past_cutoff")
    if month is None:
        return dict.fromkeys(names)
    own, document = arm.daily, arm.documents[0]
    held = _returns(_benchmark_document(document)) if BENCHMARK in document.get("baselines", {}) else {}
    parts = [[day for day in own if (day[:7] > month) is later] for later in (False, True)]
    over = [np.array([own[day] - held[day] for day in part if day in held]) for part in parts]
    rows = [
        {
            "sessions": len(part),
            "total_return": _grown(own[day] for day in part) if part else None,
            "over_buy_and_hold": paired_difference(gaps) if len(gaps) else None,
        }
        for part, gaps in zip(parts, over, strict=True)
    ]
    return dict(zip(names, (*rows, later_difference(*over)), strict=True))


def repeats_part(documents: Sequence[Document], count: int) -> Row:
    """The part that `count` repeats of a run add to the document of the first one: `repeats` in one row, `pairs` with
    buy and hold, and `floor`. There is one document of a run that comes out alike every time."""
    own = Arm(name=documents[0]["run"], model=(documents[0]["model"] or {}).get("spec"), documents=documents)
    held = Arm(name=BENCHMARK, model=None, documents=[_benchmark_document(documents[0])])
    every = documents if len(documents) > 1 else [*documents] * count
    beside = side_by_side([held, own], [every])
    return {"repeats": beside["models"][1], "pairs": beside["pairs"], "floor": beside["floor"]}


def _benchmark_document(document: Document) -> Document:
    """Buy and hold over the sessions of a run in the form of a run of its own."""
    beside = document["baselines"][BENCHMARK]
    days = sessions_of(document)
    equity = [{"session": day, "value": value} for day, value in zip(days, beside["equity"], strict=True)]
    nothing = dict.fromkeys(("run", "model", "luck", "unresolved_figures"))
    return {**document, **nothing, "strategy": BENCHMARK, "decisions": [], **beside, "equity": equity}


def every_two(daily: Sequence[Mapping[Any, float]]) -> Iterator[tuple[int, int, Floats, Row]]:
    """Every two of some daily returns by session: their numbers, the second less the first in the sessions of both, and
    `p`, `adjusted` and `superior`: tests of all against that first one, taken together, on the sessions that all have,
    None of fewer than 20."""
    shared = [day for day in daily[0] if all(day in one for one in daily)]
    for place, first in enumerate(daily):
        others = daily[place + 1 :]
        tested = family(np.array([[one[day] - first[day] for day in shared] for one in others])) if others else None
        for number, other in enumerate(others):
            gaps = np.array([other[day] - first[day] for day in first if day in other])
            found = dict.fromkeys(("p", "adjusted", "superior"))
            if tested is not None:
                found = {"p": tested.single[number], "adjusted": tested.adjusted[number], "superior": tested.superior}
            yield place, place + 1 + number, gaps, found


def _pair(first: Arm, other: Arm, gaps: Floats, noise: float | None) -> Row:
    tested = paired_difference(gaps)
    value, noisy, needed = tested["mean"], False, None
    floor = None if noise is None else noise * math.sqrt(first.noise + other.noise)
    if noise is not None and floor is not None and value is not None and abs(value) <= floor:
        sides = (first.noise > 0) + (other.noise > 0)
        noisy, needed = True, math.ceil(sides * (noise / value) ** 2) if value and floor else None
    agreement, compared = _agreement((one, another) for one in first.documents for another in other.documents)
    return {
        "first": first.name,
        "other": other.name,
        "value": value,
        "daily": tested,
        **{name: tested[name] for name in ("sessions", "low", "high", "sessions_needed")},
        "distinguishable": False if noisy else tested["distinguishable"],
        "floor": floor,
        "below_floor": None if floor is None or value is None else noisy,
        "runs_needed": needed,
        "agreement": agreement,
        "compared": compared,
    }


def _agreement(pairs: Iterable[tuple[Document, Document]]) -> tuple[float | None, int]:
    """The share of decisions (by session, symbol and owner) in which two runs take the same action, over pairs of them,
    and how many those are; None where nothing was decided in both."""
    same = [
        decided[key] == beside[key]
        for one, other in pairs
        for decided, beside in [(_actions(one), _actions(other))]
        for key in decided.keys() & beside.keys()
    ]
    return (fmean(same) if same else None), len(same)


def _actions(document: Document) -> Mapping[tuple[str, ...], str]:
    return {(one["session"], one["symbol"], one["owner"]): one["action"] for one in document.get("decisions", ())}
