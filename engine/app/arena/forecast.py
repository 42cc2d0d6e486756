"""The forecast of an arena: its first days played with the offline rules in the place of its models."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from engine.app.arena.record import ArenaSpec
from engine.app.arena.seats import Seats
from engine.app.bench.forecast import (
    KINDS,
    SETTLING,
    Estimate,
    Forecast,
    Rehearsal,
    counted_embedder,
    embedder_spec,
    one_call,
)
from engine.arena.play import play
from engine.domain.model_call import Usage
from engine.domain.model_price import PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode, parse_model_spec
from engine.ports import LanguageModel
from engine.services import Services

REHEARSED = 2
"""Days that are played where nobody's questions grow with the days, as those of a preset do."""
Tally = Counter[tuple[str, str]]


def arena_forecast(services: Services, spec: ArenaSpec) -> Forecast | None:
    """An estimate of what the table will ask, recorded answers not considered; None where nobody is asked who might
    charge for it. Raises UsageError for a preset or table that means nothing."""
    config, rules, seating = services.config, spec.rules(), spec.seating()
    if spec.model == ModelKind.REPLAY or config.models.replay == ReplayMode.REPLAY_ONLY:
        return None
    played = min(rules.days, SETTLING if any(seat.preset for seat in seating.agents) else REHEARSED)
    tallies: dict[ModelSpec, Tally] = {}

    def tally(named: ModelSpec) -> Tally:
        return tallies.setdefault(named, Counter())

    @cache
    def rehearsal(text: str) -> LanguageModel:
        named = parse_model_spec(text, config.endpoints)
        return Rehearsal(tally(named), None, named, sees=services.models.sees(named))

    vectors = tally(embedder_spec(config, config.memory.embedder))
    with ExitStack() as memories:
        seats = Seats(
            services=replace(services, open_embedder=partial(counted_embedder, services.open_embedder, vectors)),
            spec=spec,
            rules=rules,
            open_model=rehearsal,
            memories=memories,
        )
        players = {seat.name: seats.take(seat).player for seat in seating.agents}

        async def rehearse() -> None:
            async for _ in play(rules.model_copy(update={"days": played}), players, spec.seed):
                pass

        if all(named.kind is ModelKind.OFFLINE for named in tallies):
            return None
        asyncio.run(rehearse())
    times, prices = spec.repeats * rules.days / played, services.models.prices()
    estimates = {
        str(named): _estimate(named, found, times, prices)
        for named, found in tallies.items()
        if named.kind is not ModelKind.OFFLINE and found
    }
    return Forecast(estimates, spec.repeats) if estimates else None


def _estimate(named: ModelSpec, tally: Tally, times: float, prices: PriceTable) -> Estimate:
    """The questions to one model in `times` what was rehearsed."""
    calls, asked, written = (times * sum(n for (_, kind), n in tally.items() if kind == wanted) for wanted in KINDS)
    price = prices.find(named.provider, named.model)
    cost = None if price is None else price.cost(Usage(round(asked), 0, round(written)))
    least = one_call(price, asked / calls) if price is not None and calls else None
    return Estimate(calls=calls, input_tokens=asked, output_tokens=written, cost=cost, one_call=least)
