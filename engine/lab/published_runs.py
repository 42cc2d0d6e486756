"""Our runs for a paper's tables: each symbol alone over the table's window, under the paper's convention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from engine.account.track_record import daily_returns, track_of
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.briefing import Briefing, ExpertNote
from engine.domain.exchanges import LISTED
from engine.domain.market import Symbol
from engine.domain.run import Result, RunSpec
from engine.errors import UsageError
from engine.lab.published_tables import PublishedTable
from engine.lab.rule_backtest import run_strategy
from engine.market.as_of import Market
from engine.simulation.price_basis import adjusted_by_actions
from engine.strategies.catalog import make_strategy, strategy_class, tuned_params
from engine.strategies.strategy import nearest, parameters


@dataclass(frozen=True, slots=True)
class Override:
    """One `--param`: `strategy` is None where it holds for every strategy of the table that takes `key`."""

    strategy: str | None
    key: str
    value: str


def overrides(params: Sequence[tuple[str, str]], strategies: Sequence[str]) -> tuple[Override, ...]:
    """`--param` texts (`key=value` or `strategy.key=value`) checked against the strategies of a bench. Raises
    UsageError for a parameter that none of them takes."""
    found = []
    for text, value in params:
        name, dot, key = text.rpartition(".")
        if dot and name not in strategies:
            raise UsageError(f"--param {text}: this bench has no rule {name}{nearest(name, strategies)}")
        chosen = [name] if dot else list(strategies)
        taken = {parameter.name for rule in chosen for parameter in parameters(strategy_class(rule))}
        key = key.replace("-", "_")
        if key not in taken:
            known = ", ".join(sorted(taken)) or "no parameters"
            raise UsageError(f"--param {text}: no rule here takes {key}{nearest(key, taken)}; there are {known}")
        found.append(Override(name if dot else None, key, value))
    return tuple(found)


def rule_params(strategy: str, symbol: Symbol, changes: Sequence[Override]) -> dict[str, str]:
    """The parameters that the authors tuned for a symbol, with the user's changes. Raises UsageError for a value out of
    bounds."""
    takes = {parameter.name for parameter in parameters(strategy_class(strategy))}
    params = dict(tuned_params(strategy, symbol))
    for change in changes:
        if change.strategy in (None, strategy) and change.key in takes:
            params[change.key] = change.value
    make_strategy(strategy, params)
    return params


def run_rule(
    table: PublishedTable, symbol: Symbol, strategy: str, market: Market, changes: Sequence[Override] = ()
) -> Result:
    """A rule's run on one symbol over a table's window, by the table's convention. Raises what `run_strategy`
    raises."""
    spec = RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        strategy=strategy,
        params=tuple(rule_params(strategy, symbol, changes).items()),
        convention=table.convention,
    )
    return run_strategy(spec, adjusted_market(table, symbol, market))


def adjusted_market(table: PublishedTable, symbol: Symbol, market: Market) -> Market:
    """The market of one symbol. Where adj_close is unknown it is made from the corporate actions, if they are known, or
    else from the dividends that the table names."""
    known = market.actions[symbol]
    named = tuple(paid for paid in table.dividends if paid.symbol == symbol)
    history = adjusted_by_actions(market.histories[symbol], known if known is not None else named or None, table.last)
    return replace(market, histories={symbol: history})


def agent_spec(
    table: PublishedTable,
    symbol: Symbol,
    preset: str,
    *,
    training: bool = True,
    guidance: tuple[ExpertNote, ...] = (),
    **rest: Any,
) -> RunSpec:
    """The run of a preset on one symbol as a table's agents were run: warm-up, window and convention are the table's,
    and of a desk's briefing only experts' notes reach them. `rest` are further fields of the RunSpec."""
    return RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        warm_up_from=table.warm_up_from if training else None,
        preset=preset,
        convention=table.convention,
        briefing=Briefing(guidance=guidance),  # the rest of a desk's own briefing is no part of a paper
        **rest,
    )


def measured(result: Result, symbol: Symbol, name: str) -> Metrics:
    """The metrics of a run of one symbol by a convention."""
    known = convention(name)
    return known.metrics(track_of(result.test, known.periods_per_year(symbol, LISTED.of(symbol))))


def session_returns(result: Result, symbol: Symbol, name: str) -> tuple[float, ...]:
    """The returns of each session of a run of one symbol as a convention measures them: of its equity, or log returns
    of the price times what was decided; none where that cannot be had."""
    known = convention(name)
    if known.measured == "equity":
        return daily_returns(result.test)
    track = track_of(result.test, known.periods_per_year(symbol, LISTED.of(symbol)))
    if track.prices is None or track.positions is None:
        return ()
    return tuple((np.diff(np.log(track.prices)) * track.positions[:-1]).tolist())


def cumulative_returns(result: Result, symbol: Symbol, name: str) -> Mapping[date, float]:
    """The cumulative return by session of a run of one symbol, as a convention measures it. Source: FinAgent figure 4
    [A11]."""
    returns = np.array(session_returns(result, symbol, name))
    grown = np.cumprod(1 + returns) - 1 if convention(name).measured == "equity" else np.cumsum(returns)
    sessions = [point.session for point in result.test.equity]
    return dict(zip(sessions[len(sessions) - len(returns) :], grown.tolist(), strict=True))


def own_strategy_run(table: PublishedTable, symbol: Symbol, strategy: str, market: Market) -> Result:
    """The run of a strategy of the user's own, by name or FILE:CLASS, on one symbol in a table's environment, fitted on
    its training period. Raises what `run_strategy` raises."""
    spec = RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        warm_up_from=table.warm_up_from,
        strategy=strategy,
        convention=table.convention,
    )
    return run_strategy(spec, adjusted_market(table, symbol, market))
