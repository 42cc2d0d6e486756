"""Descriptions of runs: the one that a configuration proposes, the check of one, its costs."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.config import Config
from engine.conventions.catalog import convention
from engine.domain.execution import ExecutionRules
from engine.domain.run import RunSpec
from engine.errors import UsageError
from engine.lab.window import execution_rules
from engine.market.trading_hours import FIRST_SESSION
from engine.services import Services
from engine.strategies.catalog import make_strategy

DEMO_WINDOW = (date(2024, 11, 1), date(2025, 1, 2), date(2025, 6, 30))
"""Warm-up from, first and last session of the demo desk's backtest."""

WARM_UP, TEST = 40, 120
"""Sessions of warm-up and test that are proposed for a data folder: its last ones."""


def new_run_id(kind: str, now: datetime) -> str:
    """An id that sorts by time and that no two runs share."""
    return f"{kind}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def default_spec(services: Services) -> RunSpec:
    """The backtest that a configuration proposes: the desk's preset and symbols over a fixed window of the demo market,
    or the last sessions of its data folder. Raises UsageError without symbols, MissingData without data."""
    config, data, symbols = services.config, services.data, services.symbols
    if not symbols:
        raise UsageError("no symbols; give --symbols A,B or set desk.symbols in the configuration")
    warm_up_from, first, last = DEMO_WINDOW if data.folder is None else asyncio.run(_last_sessions(services))
    return RunSpec(
        symbols=symbols,
        first=first,
        last=last,
        warm_up_from=warm_up_from,
        preset=config.desk.preset,
        data=data,
        convention=config.metrics.convention,
        seed=config.desk.seed,
    )


async def _last_sessions(services: Services) -> tuple[date, date, date]:
    source = services.open_source(services.data, FIRST_SESSION)
    histories = [await source.history(symbol) for symbol in services.symbols]
    last = min(history.session(-1) for history in histories)
    calendar = services.desk_calendar(services.symbols)
    sessions = calendar.sessions(last - timedelta(days=2 * (WARM_UP + TEST)), last)[-(WARM_UP + TEST) :]
    return sessions[0], sessions[min(WARM_UP, len(sessions) - 1)], sessions[-1]


def check_spec(spec: RunSpec, now: datetime) -> None:
    """Raises UsageError for a description that cannot mean a run."""
    if (spec.preset is None) == (spec.strategy is None):
        raise UsageError("a run has either a preset (agents) or a strategy (rules); give one of --preset, --strategy")
    if spec.strategy is not None and (spec.model or spec.without):
        raise UsageError("--model and --without belong to a preset of agents; a strategy asks nobody")
    if spec.preset is not None and spec.params:
        raise UsageError("--param belongs to a --strategy; a preset is changed in its own file")
    if not spec.symbols:
        raise UsageError("no symbols; give --symbols A,B or set desk.symbols in the configuration")
    twice = next((s for n, s in enumerate(spec.symbols) if s in spec.symbols[:n]), None)
    if twice:
        raise UsageError(f"--symbols names {twice} twice")
    if spec.first > spec.last:
        raise UsageError(f"--from {spec.first} is after --to {spec.last}")
    if spec.warm_up_from is not None and spec.warm_up_from >= spec.first:
        raise UsageError(f"--warm-up-from {spec.warm_up_from} is not before --from {spec.first}")
    if min(spec.first, spec.warm_up_from or spec.first) <= FIRST_SESSION:
        raise UsageError(f"the calendars begin on {FIRST_SESSION}; choose a later --from")
    if spec.last > now.date():
        raise UsageError(f"--to {spec.last} lies in the future; today is {now:%Y-%m-%d}")
    if spec.cash is not None and spec.cash <= 0:
        raise UsageError(f"--cash {spec.cash}: it must be above zero")
    for flag, cost in (("--commission", spec.commission), ("--slippage", spec.slippage_bp)):
        if cost is not None and cost < 0:
            raise UsageError(f"{flag} {cost}: a cost is not below zero")
    if spec.strategy is not None:
        make_strategy(spec.strategy, dict(spec.params))
    convention(spec.convention)


def with_costs(spec: RunSpec, config: Config) -> tuple[ExecutionRules, Decimal]:
    """The rules and the starting cash of a run: the configuration's under the desk's own convention, the paper's
    under a paper's, each overridden by the run's own."""
    known = convention(spec.convention)
    if known.name == "desk":
        own = config.execution
        known = replace(
            known,
            starting_cash=config.desk.cash,
            execution=replace(
                known.execution,
                slippage_bp=own.slippage_bp,
                commission_rate=own.commission,
                commission_per_order=own.commission_per_order,
                commission_per_share=own.commission_per_share,
                volume_cap=own.volume_cap,
                fractional=own.fractional,
            ),
        )
    return execution_rules(spec, known), known.starting_cash if spec.cash is None else spec.cash
