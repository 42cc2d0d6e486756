"""The window of a run: its sessions, what the bars cover of them, and what a reader has to know about that.

Beside the loop of the agents: a rule strategy needs nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from engine.conventions.catalog import Convention, convention
from engine.domain.market import Symbol
from engine.domain.run import ExecutionRules, FillAt, PriceBasis, RunSpec
from engine.domain.text import first_few
from engine.errors import UsageError
from engine.market.as_of import Market
from engine.market.price_faults import Coverage, check_coverage
from engine.market.trading_hours import previous_session
from engine.ports import Calendar
from engine.simulation.price_basis import known_adjusted, on_basis


def windows(spec: RunSpec, calendar: Calendar) -> tuple[Sequence[date], Sequence[date]]:
    """The sessions of the warm-up (none without one) and of the test. Raises UsageError where one has none."""
    known = convention(spec.convention)
    sessions = window(calendar, spec.first, spec.last, max(known.bars_dropped_for(symbol) for symbol in spec.symbols))
    if spec.warm_up_from is None:
        return (), sessions
    return window(calendar, spec.warm_up_from, sessions[0] - timedelta(days=1), 0), sessions


def execution_rules(spec: RunSpec, convention: Convention) -> ExecutionRules:
    """A convention's rules with what the run overrides: commission (as a fraction) and slippage."""
    rules = convention.execution
    if spec.commission is not None:
        rules = replace(rules, commission_rate=spec.commission)
    if spec.slippage_bp is not None:
        rules = replace(rules, slippage_bp=spec.slippage_bp)
    return rules


def on_convention(spec: RunSpec, market: Market) -> Market:
    """The market on the price basis of a run's convention. Agents decide, fill and value on one and the same basis; an
    adjusted one already holds its splits and dividends."""
    basis = convention(spec.convention).price_basis
    if basis is PriceBasis.RAW:
        return market
    begin = spec.warm_up_from or spec.first
    histories = {}
    for symbol, history in market.histories.items():
        window = history.slice(0, history.rows_through(spec.last))
        histories[symbol] = on_basis(known_adjusted(window, begin), basis)
    return replace(market, histories=histories, actions=dict.fromkeys(histories, ()))


def desk_calendar_of(market: Market, symbols: Sequence[Symbol]) -> Calendar:
    """The calendar that a run decides on: the exchange's as soon as one symbol is a share, else every UTC day."""
    calendars = [market.calendars[symbol] for symbol in symbols]
    return next((calendar for calendar in calendars if calendar.name != "24/7"), calendars[0])


def window(calendar: Calendar, first: date, last: date, dropped: int) -> Sequence[date]:
    """The sessions from first to last, both included, less the last `dropped`. Raises UsageError where none is left."""
    sessions = calendar.sessions(first, last)
    if len(sessions) <= dropped:
        left = f" once the convention has dropped its last {dropped}" if dropped else ""
        raise UsageError(f"{calendar.name} has no session from {first} to {last}{left}; choose a longer window")
    return sessions[: len(sessions) - dropped]


def decided_sessions(calendar: Calendar, sessions: Sequence[date], rules: ExecutionRules) -> Sequence[date]:
    """The sessions that decisions read so that they trade in `sessions`: the ones before, or, where orders fill at a
    decision's own close, the same."""
    if rules.fill_at is FillAt.SAME_CLOSE:
        return sessions
    return (previous_session(calendar, sessions[0]), *sessions[:-1])


def coverage(spec: RunSpec, market: Market) -> Mapping[Symbol, Coverage]:
    """The sessions of warm-up and test that the bars of each symbol cover. Raises what `check_coverage` raises."""
    begin = spec.first if spec.warm_up_from is None else spec.warm_up_from
    return {s: check_coverage(market.histories[s], market.calendars[s], begin, spec.last) for s in spec.symbols}


def data_notes(spec: RunSpec, market: Market, covered: Mapping[Symbol, Coverage]) -> Iterator[str]:
    """Notes on the data that a reader has to know, a sentence each."""
    dropped = max(convention(spec.convention).bars_dropped_for(symbol) for symbol in spec.symbols)
    if dropped:
        count = "session" if dropped == 1 else f"{dropped} sessions"
        yield f"convention {spec.convention} leaves out the last {count} of the window until {spec.last}"
    without = [symbol for symbol in spec.symbols if market.actions.get(symbol) is None]
    if without and convention(spec.convention).price_basis is PriceBasis.RAW:
        names = ", ".join(without)
        yield f"no file of corporate actions for {names}: closes are taken as traded and no dividends are paid"
    yield from comparison_notes(spec, market)
    for symbol, covers in covered.items():
        rounded = [day for day in market.histories[symbol].rounded if day <= spec.last]
        if rounded:
            days = first_few(rounded, 1)
            yield f"{symbol}: prices outside the day's range by a rounding error were clamped to it: {days}"
        if covers.starts_late:
            yield f"{symbol} begins to trade on {covers.first}, inside the window"
        if covers.ends_early:
            yield f"{symbol} stops trading on {covers.last}, inside the window"


def comparison_notes(spec: RunSpec, market: Market) -> Iterator[str]:
    """Notes on what bars, actions and adj_close say of each other in the window, a sentence each; none where adjusted
    prices are traded at."""
    for symbol in spec.symbols if convention(spec.convention).price_basis is PriceBasis.RAW else ():
        if symbol in market.compared:
            yield from market.compared[symbol].notes(spec.warm_up_from or spec.first, spec.last)
