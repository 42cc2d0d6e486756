"""Descriptions of runs: the one that a configuration proposes, its check, its costs, and what completes it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from engine.conventions.catalog import convention
from engine.domain.model_call import ModelKind
from engine.domain.order import ZERO
from engine.domain.run import ExecutionRules, RunSpec
from engine.domain.text import plain
from engine.errors import UsageError
from engine.lab.window import execution_rules
from engine.market.trading_hours import FIRST_SESSION
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import spec_settings
from engine.services import Services
from engine.settings.config import LARGEST_CASH, Config
from engine.settings.user_code import Kind, code_files
from engine.strategies.catalog import make_strategy, ships, strategy_class
from engine.strategies.strategy import parameters

if TYPE_CHECKING:
    from engine.preset import Preset

DEMO_WINDOW = (date(2024, 11, 1), date(2025, 1, 2), date(2025, 6, 30))
"""Warm-up from, first and last session of the demo desk's backtest."""

WARM_UP_SESSIONS, TEST_SESSIONS = 40, 120
"""Sessions of warm-up and test that are proposed for a data folder: its last ones."""

Stop = Callable[[], bool]
"""A question, before each session, whether to stop."""

NO_SYMBOLS = "no symbols; give --symbols A,B or set desk.symbols in the configuration"


def new_run_id(kind: str, now: datetime) -> str:
    """An id that sorts by time and that no two runs share."""
    return f"{kind}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def default_spec(services: Services) -> RunSpec:
    """The backtest that a configuration proposes: the desk's preset and symbols over a fixed window of the demo market,
    or the last sessions of its data folder. Raises UsageError without symbols, MissingData without data."""
    config, data, symbols = services.config, services.data, services.symbols
    if not symbols:
        raise UsageError(NO_SYMBOLS)
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
    both = WARM_UP_SESSIONS + TEST_SESSIONS
    sessions = calendar.sessions(last - timedelta(days=2 * both), last)[-both:]
    return sessions[0], sessions[min(WARM_UP_SESSIONS, len(sessions) - 1)], sessions[-1]


def check_spec(spec: RunSpec, now: datetime) -> None:
    """Raises UsageError for a description that cannot mean a run."""
    fault = next((text for wrong, text in _faults(spec, now) if wrong), None)
    if fault is not None:
        raise UsageError(fault)
    if spec.strategy is not None:
        make_strategy(spec.strategy, dict(spec.params))
    convention(spec.convention)


def _faults(spec: RunSpec, now: datetime) -> Iterator[tuple[object, str]]:
    """Checks of a description, the first ones first: something that is true where it is wrong, and the complaint."""
    agents, first, start = spec.preset is not None, spec.first, spec.warm_up_from or spec.first
    repeated = next((s for n, s in enumerate(spec.symbols) if s in spec.symbols[:n]), None)
    yield (
        agents == (spec.strategy is not None),
        "a run has either a preset (agents) or a strategy (rules); give one of --preset, --strategy",
    )
    yield (
        not agents and (spec.model or spec.without or spec.batch or spec.options.mask),
        "--model, --without, --batch and --mask belong to a preset of agents; a strategy uses no model",
    )
    yield agents and spec.params, "--param belongs to a --strategy; a preset is changed in its own file"
    yield not spec.symbols, NO_SYMBOLS
    yield repeated, f"--symbols names {repeated} twice"
    yield first > spec.last, f"--from {first} is after --to {spec.last}"
    yield spec.warm_up_from and start >= first, f"--warm-up-from {spec.warm_up_from} is not before --from {first}"
    yield min(first, start) <= FIRST_SESSION, f"the calendars begin on {FIRST_SESSION}; choose a later --from"
    yield spec.last > now.date(), f"--to {spec.last} is in the future; today is {now:%Y-%m-%d}"
    yield (
        spec.cash is not None and not 0 < spec.cash <= LARGEST_CASH,
        f"--cash {spec.cash}: it must be above zero and at most {LARGEST_CASH:,}",
    )
    for flag, cost in (("--commission", spec.commission), ("--slippage", spec.slippage_bp)):
        yield cost is not None and cost < 0, f"{flag} {cost}: a cost is not below zero"


def with_costs(spec: RunSpec, config: Config) -> tuple[ExecutionRules, Decimal]:
    """The rules and the starting cash of a run: those that it has kept, else the configuration's under the desk's own
    convention, the paper's under a paper's, each overridden by the run's own. A preset says whether its agents sell
    short, and what that costs."""
    rules, cash = _costs_of(spec, config)
    preset = preset_of(spec)
    allow_short, borrow_rate = (
        (False, ZERO) if preset is None else (preset.sizing.allow_short, preset.sizing.borrow_rate)
    )
    return replace(rules, allow_short=allow_short, borrow_rate=borrow_rate), cash


def _costs_of(spec: RunSpec, config: Config) -> tuple[ExecutionRules, Decimal]:
    if spec.rules is not None and spec.cash is not None:
        return spec.rules, spec.cash
    known = convention(spec.convention).for_symbols(spec.symbols)
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


def settled(services: Services, spec: RunSpec) -> RunSpec:
    """The spec of a run, completed by the configuration so that it can be run again without it. Raises UsageError for
    symbols that cannot be in one portfolio, and as `configured_briefing` does."""
    sessions = services.desk_calendar(spec.symbols).sessions(spec.first, spec.last)
    if spec.preset is not None:
        from engine.app.models.models import configured_briefing
        from engine.preset import load_preset

        # The briefing comes first: what the run leaves out may be a tool of it.
        briefing = spec.briefing
        if briefing is None:
            briefing = configured_briefing(services, spec.data, spec.symbols)
        spec = replace(
            spec,
            briefing=briefing,
            embedder=spec.embedder or services.config.memory.embedder,
            preset_text=spec.preset_text or load_preset(spec.preset).model_dump_json(),
        )
    rules, cash = with_costs(spec, services.config)
    # A window ends with a session of its calendar, whatever day is named for it.
    last = sessions[-1] if sessions else spec.last
    spec = replace(spec, last=last, rules=rules, cash=cash, version=version("paperdesk"))
    return replace(spec, params=all_params(spec)) if spec.preset is None else _with_models(spec, services.config)


def user_code(spec: RunSpec) -> tuple[Path, ...]:
    """The files of the user's code that a run has loaded up to now: its strategy, or agents of its preset with their
    prompts, and what lies beside and was imported."""
    preset = preset_of(spec)
    if preset is None:
        return code_files([] if spec.strategy is None or ships(spec.strategy) else [spec.strategy], Kind.STRATEGY)
    prompts = (agent.prompt for agent in preset.registered.values() if agent.see is not None)
    return (*code_files(preset.load, Kind.AGENT), *(path.resolve() for path in prompts if path.is_file()))


def _with_models(spec: RunSpec, config: Config) -> RunSpec:
    """The spec with the models that answer its agents: `model` where it is one, else `models` by agent."""
    preset = preset_of(spec)
    if spec.model is not None or preset is None:
        return spec
    from engine.app.models.models import chosen_models

    models = chosen_models(preset, config, recorded=spec.models)[1]
    named = set(models.values())
    if ModelKind.REPLAY in named:
        return spec  # no model, and refused as one where the models are opened
    return replace(spec, model=named.pop()) if len(named) == 1 else replace(spec, models=tuple(models.items()))


def cost_settings(services: Services, spec: RunSpec) -> Row:
    """Fills, costs, cash and its floor that a run would have, without what else settles it. Raises UsageError for a
    convention or a preset that there is not."""
    rules, cash = with_costs(spec, services.config)
    preset = preset_of(spec)
    floor = None if preset is None else plain(preset.sizing.cash_floor)
    return {**spec_settings(replace(spec, rules=rules, cash=cash)), "cash_floor": floor}


def all_params(spec: RunSpec) -> tuple[tuple[str, str], ...]:
    """Every parameter of a rule strategy, as given, by the run's seed, or by default."""
    known = parameters(strategy_class(spec.strategy or ""))
    defaults = {one.name: str(spec.seed if one.name == "seed" else one.default) for one in known}
    return tuple({**defaults, **dict(spec.params)}.items())


def preset_of(spec: RunSpec) -> Preset | None:
    """The preset of a run as its agents follow it; None for a rule strategy. Raises UsageError for a preset or a step
    that there is not."""
    if spec.preset is None:
        return None
    from engine.preset import briefed, load_preset, recorded_preset

    preset = load_preset(spec.preset) if spec.preset_text is None else recorded_preset(spec.preset_text)
    return briefed(preset, spec.briefing).without(spec.without)
