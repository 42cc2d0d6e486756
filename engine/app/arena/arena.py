"""An arena: its table is seated, its days are played, its record is kept.

An arena is played from its specification alone: dividends, arrivals and rules draw from its seed, and answers of models
are recorded. One that was killed is therefore resumed by playing it again: what was answered is not asked again, and
the tape is that of an unbroken run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial

from engine.app.arena.record import ArenaSpec, arena_lock, begun, keep_record
from engine.app.arena.seats import Seats
from engine.app.models.model_notes import known_of
from engine.app.models.models import open_model
from engine.app.models.preflight import Preflight
from engine.app.research.agent_run import end_session, guard_of
from engine.arena.decided_player import DecidedPlayer
from engine.arena.play import Table, play
from engine.arena.players import PersonaPlayer
from engine.arena.rules import ArenaRules
from engine.arena.seating import Seating
from engine.domain.model_call import ModelRequest
from engine.domain.model_spec import ModelKind, ReplayMode
from engine.errors import TryAgainLater
from engine.reports.documents.arena import ArenaReport, arena_document
from engine.reports.documents.row_json import Row
from engine.services import Services, SpendingLimit
from engine.session.cost_meter import CostMeter

OnDay = Callable[[Table], None]


def run_arena(
    services: Services,
    spec: ArenaSpec,
    *,
    replay: bool = False,
    budget: Decimal | None = None,
    on_day: OnDay = lambda table: None,
    stop: Callable[[], bool] = lambda: False,
) -> Row:
    """Play an arena and keep its record; `replay` asks no model beyond recorded answers, `budget` bounds the dollars of
    this call, `stop` is asked after each day. Returns the document.

    Raises UsageError for a preset or table that means nothing, ConfigError, CredentialsRefused, and TryAgainLater where
    a model cannot be had or the budget is reached: the arena can be resumed. Another process that plays it is
    TryAgainLater, too.
    """
    rules, seating, spec = spec.rules(), spec.seating(), begun(spec)
    with arena_lock(spec.run):
        keep_record(spec, None)
        try:
            document = asyncio.run(_play(services, spec, rules, seating, _Limits(replay, budget, on_day, stop)))
        except TryAgainLater as error:
            raise type(error)(f"{error}; `paperdesk arena --resume {spec.run}` goes on") from None
        keep_record(spec, document)
    return document


async def _ask_first(preflights: Sequence[Preflight], first: ModelRequest) -> None:
    for preflight in preflights:
        await preflight(first)


@dataclass(frozen=True, slots=True)
class _Limits:
    replay: bool
    budget: Decimal | None
    on_day: OnDay
    stop: Callable[[], bool]


async def _play(services: Services, spec: ArenaSpec, rules: ArenaRules, seating: Seating, limits: _Limits) -> Row:
    config = services.config
    mode = ReplayMode.REPLAY_ONLY if limits.replay else ReplayMode(config.models.replay)
    limit = services.limit if limits.budget is None else SpendingLimit.of_dollars(config.budget, limits.budget)
    meter = CostMeter("")
    async with aclosing(services.models.open(mode, limit=limit)) as opened:
        with ExitStack() as memories:
            seats = Seats(
                services=replace(services, limit=limit),
                spec=spec,
                rules=rules,
                guard=guard_of(services, ModelKind.REPLAY if limits.replay else None),
                open_model=cache(lambda text: open_model(text, config, opened)),
                count=meter.count,
                on_unanswered=meter.unanswered,
                on_use=meter.add_vectors,
                memories=memories,
            )
            taken = {seat.name: seats.take(seat) for seat in seating.agents}
            opened.ask_first(partial(_ask_first, seats.preflights))
            players, table = {name: one.player for name, one in taken.items()}, None
            async for table in play(rules, players, spec.seed, unsaid=spec.unsaid):
                limits.on_day(table)
                end_session(seats.guard, services)
                if limits.stop():
                    break
    assert table is not None
    specs = ", ".join(dict.fromkeys(spec for one in taken.values() for spec in one.models))
    until, prices_as_of = known_of(services, specs)
    return arena_document(
        ArenaReport(
            run=spec.run,
            preset=spec.preset,
            seed=spec.seed,
            table=table,
            kinds={name: one.kind for name, one in taken.items()},
            strategies={name: one.library for name, one in players.items() if isinstance(one, PersonaPlayer)},
            abstentions={name: one.abstained for name, one in taken.items()},
            decisions={name: one.decided for name, one in players.items() if isinstance(one, DecidedPlayer)},
            notes=tuple(f"{name}: {one.note}" for name, one in taken.items() if one.note),
            use=replace(meter.use, spec=specs, training_cutoff=until, prices_as_of=prices_as_of),
            interrupted=table.market.day <= rules.days,
            baseline=[seat.name for seat in seating.agents if seat.baseline],
        )
    )
