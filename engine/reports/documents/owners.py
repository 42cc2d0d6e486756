"""The opinions of every owner against what followed, as `paperdesk decisions --owners` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from engine.conventions.metrics import Skill, calibration, skill
from engine.domain.decision import DIRECTIONS, Advice, Debate, Opinion
from engine.domain.market import Symbol
from engine.journal.entries import StatedAnswer
from engine.journal.schema import WARM_UP
from engine.reports.documents import row_json
from engine.reports.documents.closes import HORIZONS, SymbolCloses
from engine.reports.documents.decisions import ClosesOf, symbol_closes
from engine.reports.documents.reasons import side_of
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row

WHOLE = 100.0
"""The size of an opinion that names none, as percent of the portfolio."""


Place = tuple[date, Symbol]
"""The session and the symbol of an opinion."""


@dataclass(slots=True)
class _Held:
    """The opinions of one owner, the last of each session and symbol, with its first advice where it debated."""

    opinions: dict[Place, Opinion] = field(default_factory=dict)
    first: dict[Place, Advice] = field(default_factory=dict)
    changed: int = 0


def owners_document(
    records: Records,
    closes_of: ClosesOf,
    *,
    symbol: str | None = None,
    first: date | None = None,
    until: date | None = None,
    warm_up: bool = False,
) -> Row:
    """The opinions of every owner, and the decisions that they were combined into, from session `first` to `until`:
    how many, how many abstained, how good they were after 1, 5 and 20 of the symbol's sessions, and how well
    calibrated; and of the agents whose reports take a side, how often that was right."""
    if records.reader is None:
        return {**records.head, "per_owner": {}, "per_agent": []}
    part = WARM_UP if warm_up and records.is_backtest else records.part
    name = symbol and symbol.upper()
    opinions = list(records.reader.opinions(records.run, name, first, until, part))
    known = {one.key for one in opinions}
    made = records.reader.decisions(records.run, name, first, until, part)
    opinions += [one.opinion for one in made if one.key not in known]
    debates = records.reader.debates(records.run, name, first, until)
    owners = _by_owner(opinions, debates)
    symbols = tuple(dict.fromkeys(one.key.symbol for one in opinions))
    market = closes_of(records, symbols) if symbols else None
    closes = {one: symbol_closes(records, market, one) for one in symbols}
    keys = {one.key for one in opinions}
    stated = [one for one in records.reader.stated_answers(records.run, name, first, until) if one.key in keys]
    return {
        **records.head,
        "per_owner": {owner: _row(held, closes) for owner, held in owners.items()},
        "per_agent": [_agent_row(of, sides, closes) for of, sides in _by_agent(stated).items()],
    }


def _by_agent(answers: Iterable[StatedAnswer]) -> Mapping[tuple[str, str], Mapping[Place, int]]:
    """The side of each owner's agents that state one, the last of each session and symbol."""
    agents: dict[tuple[str, str], dict[Place, int]] = {}
    for one in answers:
        side = side_of(one.answer)
        if side is not None:
            agents.setdefault((one.key.owner, one.agent), {})[one.key.session, one.key.symbol] = side
    return agents


def _agent_row(of: tuple[str, str], sides: Mapping[Place, int], closes: Mapping[Symbol, SymbolCloses]) -> Row:
    """The reports of one agent: how often the side that they take was right; of those without a side none is judged."""
    owner, agent = of
    skills = [
        (horizon, _skill({place: float(side) for place, side in sides.items()}, closes, horizon))
        for horizon in HORIZONS
    ]
    return {
        "owner": owner,
        "agent": agent,
        "reports": len(sides),
        "sided": sum(bool(side) for side in sides.values()),
        "horizons": [
            {"sessions": horizon, **row_json.fields(one, "n", "hit_rate", "hit_interval")} for horizon, one in skills
        ],
    }


def _by_owner(opinions: Sequence[Opinion], debates: Sequence[Debate]) -> Mapping[str, _Held]:
    owners: dict[str, _Held] = {}
    for one in opinions:
        owners.setdefault(one.key.owner, _Held()).opinions[one.key.session, one.key.symbol] = one
    for debate in debates:
        for owner, held in owners.items():
            place, given = (debate.key.session, debate.key.symbol), debate.of(owner)
            if place in held.opinions and debate.decides and given and given[0].advice is not None:
                held.first[place] = given[0].advice
                held.changed += debate.changed(owner)
    return owners


def _row(held: _Held, closes: Mapping[Symbol, SymbolCloses]) -> Row:
    voiced = {place: one for place, one in held.opinions.items() if not one.abstained}
    stated = [float(one.confidence) for one in voiced.values() if one.confidence is not None]
    sizes = {place: _signed(one) for place, one in voiced.items()}
    before = {place: float(advice.level) for place, advice in held.first.items()}
    return {
        "opinions": len(held.opinions),
        "abstentions": len(held.opinions) - len(voiced),
        "debated": len(held.first),
        "changed": held.changed,
        "confidence": sum(stated) / len(stated) if stated else None,
        "horizons": [
            {
                "sessions": horizon,
                **row_json.fields(_skill(sizes, closes, horizon)),
                "before_debate": row_json.fields(_skill(before, closes, horizon), "n", "hit_rate", "rank_correlation")
                if before
                else None,
                "calibration": _calibration(voiced, closes, horizon),
            }
            for horizon in HORIZONS
        ],
    }


def _calibration(voiced: Mapping[Place, Opinion], closes: Mapping[Symbol, SymbolCloses], horizon: int) -> Row | None:
    """Stated confidence against outcomes, over the opinions that took a side; None where none stated any."""
    judged = [
        (float(one.confidence), DIRECTIONS[one.action] * change > 0)
        for (session, symbol), one in voiced.items()
        if one.confidence is not None
        and one.action in DIRECTIONS
        and (change := _change(closes[symbol], session, horizon)) is not None
    ]
    found = calibration(np.array([one for one, _ in judged], dtype=float), np.array([one for _, one in judged], bool))
    return None if found is None else row_json.fields(found)


def _signed(opinion: Opinion) -> float:
    return DIRECTIONS.get(opinion.action, 0) * (float(opinion.size) or WHOLE)


def _skill(sizes: Mapping[Place, float], closes: Mapping[Symbol, SymbolCloses], horizon: int) -> Skill:
    known = [
        (size, change, closes[symbol].calendar.number(session))
        for (session, symbol), size in sorted(sizes.items())
        if (change := _change(closes[symbol], session, horizon)) is not None
    ]
    signed, changes, sessions = np.array(known, dtype=float).reshape(-1, 3).T
    return skill(signed, changes, sessions.astype(np.intp), horizon)


def _change(closes: SymbolCloses, session: date, horizon: int) -> float | None:
    return next((one.change for one in closes.after(session) if one.sessions == horizon), None)
