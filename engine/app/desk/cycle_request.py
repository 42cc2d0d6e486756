"""A cycle that an open desk or a watch asks for, as a value that a process of its own can be given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial

from engine.app.desk.context import Finished
from engine.app.desk.notification import notify_of, run_and_notify
from engine.app.desk.run_kinds import run_daily, run_intraday
from engine.app.models.gated_model import PAUSE_SECONDS, Gate, Gated
from engine.app.records.desk_journal import DeskJournal
from engine.app.records.own_process import in_own_process
from engine.clock import SyncedClock
from engine.domain.market import Symbol
from engine.domain.run import RunTrigger
from engine.errors import ConfigError, PaperdeskError
from engine.execution.controls import pause_of
from engine.market.live_prices import LivePrices
from engine.messages.events import Publish
from engine.ports import LanguageModel
from engine.services import Services
from engine.session.context import DeskRunResult
from engine.settings import places


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRequest:
    """A cycle that is asked for: for the last completed session, or within the one after it.

    only: the one symbol that is decided; None for all of them.
    session: the one to which a demo desk's clock was moved; None where the clock says it.
    notify: True where its end is notified to whoever is configured.
    last_error: the error that was notified last; None where there was none.
    within: the session that a cycle within the following one rests on, and the cycle's number; None after a close.
    prices: the last prices of the feed, for a cycle within a session.
    """

    only: Symbol | None = None
    session: date | None = None
    notify: bool = False
    last_error: str | None = None
    within: tuple[date, int] | None = None
    prices: LivePrices = field(default_factory=LivePrices)


CycleRunner = Callable[[Services, CycleRequest, Publish, Gate], Awaitable[DeskRunResult | Finished]]
"""A way to run a cycle; the gate is awaited before every question to a model. Raises as the runs of run_kinds do."""


async def run_here(services: Services, request: CycleRequest, publish: Publish, gate: Gate) -> DeskRunResult | Finished:
    """Run a cycle on the caller's loop. Raises as engine.app.desk.run_kinds does."""

    def through(model: LanguageModel) -> LanguageModel:
        return Gated(model, gate)

    if request.within is not None:
        session, number = request.within

        async def run(on_event: Publish, journal: DeskJournal) -> DeskRunResult | Finished:
            return await run_intraday(
                services, session, number, on_event, through=through, prices=request.prices, journal=journal
            )

        return await notify_of(services, run, publish, session=session)
    if request.notify:
        return await run_and_notify(services, publish=publish, through=through, last_error=request.last_error)
    return await run_daily(services, publish=publish, through=through, due=request.session, only=request.only)


def unless_changed(
    run_cycle: CycleRunner, changed: Callable[[], str], error: type[PaperdeskError] = ConfigError
) -> CycleRunner:
    """A way to run a cycle that raises an `error` where the configuration has `changed` since the desk was opened, with
    that text: nobody would expect it to go by the old one. It is notified like a run that failed."""

    async def run(services: Services, request: CycleRequest, publish: Publish, gate: Gate) -> DeskRunResult | Finished:
        if not (text := changed()):
            return await run_cycle(services, request, publish, gate)

        async def refuse(on_event: Publish, journal: DeskJournal) -> DeskRunResult | Finished:
            raise error(text)

        if not request.notify:
            raise error(text)
        return await notify_of(services, refuse, publish, last_error=request.last_error)

    return run


@dataclass(frozen=True, slots=True)
class CycleProcess:
    """A way to run a cycle in a process of its own, where nothing that it computes keeps a screen waiting.

    open_services: gives the configured desk there; can be pickled.
    """

    open_services: Callable[[], Services]

    async def __call__(
        self, services: Services, request: CycleRequest, publish: Publish, gate: Gate
    ) -> DeskRunResult | Finished:
        """Run a cycle by the clock of `services`. The process waits at pauses by itself: `gate` is this process's, and
        is not asked. Raises as `run_here` and `in_own_process` do."""
        work = partial(_run_there, self.open_services, services.clock.now(), services.trigger, request)
        return await in_own_process(work, publish, "a cycle")


async def _run_there(
    open_services: Callable[[], Services],
    now: datetime,
    trigger: RunTrigger | None,
    request: CycleRequest,
    publish: Publish,
) -> DeskRunResult | Finished:
    opened = open_services()
    clock = SyncedClock(opened.clock)
    clock.sync(now)
    services = replace(opened, clock=clock, trigger=trigger)

    async def gate() -> None:
        while pause_of(places.desk_journal(services.desk)) is not None:
            await asyncio.sleep(PAUSE_SECONDS)

    return await run_here(services, request, publish, gate)
