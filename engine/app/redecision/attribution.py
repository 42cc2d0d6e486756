"""Attribution of recorded decisions: each decided again without one of its inputs, for one day or over a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from random import Random

from engine.app.bench.forecast import Forecast
from engine.app.redecision.redecision import AS_IT_WAS, Question, redecide_all, redecisions_forecast
from engine.app.research.decider import changed_preset
from engine.app.research.market_data import known_closes
from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import Symbol
from engine.errors import MissingData
from engine.lab.attribution import Attribution, arms_of, attributed
from engine.lab.decision_changes import Changes
from engine.market.point_in_time import MarketAsOf
from engine.reports.documents.closes import SymbolCloses
from engine.reports.documents.records import Records
from engine.services import Services

Decisions = Sequence[Decision]
"""The decisions of one symbol and session, one per owner."""


def sample(records: Records, symbol: Symbol | None, most: int, seed: int) -> list[Decisions]:
    """Up to `most` occasions of the records, drawn by the seed and in their order: decisions of one symbol and session.
    Raises MissingData where nothing was decided."""
    reader = records.required
    name = symbol
    if symbol is not None and not reader.decisions(records.run, symbol):
        name = symbol.upper()
    made = reader.decisions(records.run, name, part=records.part)
    grouped = [
        [*group]
        for _, group in groupby(made, lambda one: (one.key.run, one.key.session, one.key.cycle, one.key.symbol))
    ]
    if not grouped:
        raise MissingData(f"{records.title} decided nothing{'' if name is None else f' for {name}'}")
    chosen = Random(f"attribution {seed}").sample(range(len(grouped)), min(most, len(grouped)))
    return [grouped[number] for number in sorted(chosen)]


def attribution_forecast(services: Services, records: Records, occasions: Sequence[Decisions]) -> Forecast | None:
    """An estimate of what `attribute` will ask; None where nobody is asked who might charge for it. Raises as
    `redecide` does."""
    key = occasions[0][0].key
    title = f"Forecast for deciding {key.symbol} of {key.session} again without each input:"
    if len(occasions) > 1:
        title = f"Forecast for deciding {len(occasions)} times again without each input:"
    questions = [one for decisions in occasions for one in _arms(services, records, decisions)[0]]
    return redecisions_forecast(services, records.required, questions, title)


def attribute(
    services: Services,
    records: Records,
    occasions: Sequence[Decisions],
    report: Callable[[str], None] = lambda text: None,
) -> list[Attribution]:
    """Decide each occasion again with nothing left out, without each input, and without all of them. Raises as
    `redecide` does; answers that came by then are recorded."""
    arms = [_arms(services, records, decisions) for decisions in occasions]
    questions = [question for own, _, _ in arms for question in own]
    done = iter(redecide_all(services, records.required, questions, report))
    market = known_closes(services, records, [*dict.fromkeys(decisions[0].key.symbol for decisions in occasions)])
    attributions = []
    for decisions, (own, inputs, characters) in zip(occasions, arms, strict=True):
        redecided = [next(done) for _ in own]
        attributions.append(attributed(redecided, inputs, characters, _next_move(market, decisions[0].key)))
    return attributions


def _arms(
    services: Services, records: Records, decisions: Decisions
) -> tuple[list[Question], tuple[str, ...], tuple[str, ...]]:
    """The questions about one occasion, with the inputs and the characters that are left out one by one."""
    reader = records.required
    preset = changed_preset(services, reader.run(decisions[0].key.run), AS_IT_WAS)
    inputs, characters = preset.inputs, preset.characters
    return [(decisions, Changes(without=arm)) for arm in arms_of(inputs, characters)], inputs, characters


def _next_move(market: MarketAsOf | None, key: DecisionKey) -> float | None:
    """The change of the symbol's close over the session after a decision."""
    closes = SymbolCloses.of(market, key.symbol)
    return next((one.change for one in closes.after(key.session) if one.sessions == 1), None)
