"""Paper tables as data: the printed rows, or the symbols and metrics of a window for which none are printed.

The figures are in `paper_tables/*.toml`, digit by digit, with a note where a row cannot be had and why;
`engine.reports.comparison` puts ours beside them.

The agents of a paper's tables as data: the preset that is run, its printed variants and models.

They are in `paper_tables/*.toml` beside the printed rows.

Our runs for a paper's tables: each symbol alone over the table's window, under the paper's convention.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.account.track_record import daily_returns, track_of
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.market import LISTED, ActionKind, CorporateAction, Symbol
from engine.domain.run import Briefing, ExpertNote, Result, RunSpec
from engine.errors import UsageError
from engine.lab.rule_backtest import run_strategy
from engine.market.as_of import Market
from engine.program_files import program_text
from engine.simulation.price_basis import adjusted_by_actions
from engine.strategies.catalog import tuned_params

BENCHES = ("finvision", "finagent", "investorbench", "tradinggpt")
"""The benches of papers' windows; each is also the name of its convention."""
UNPRINTED = "tradinggpt"
"""The one whose paper prints no results: it runs on any symbols."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One printed figure.

    symbol: the symbol.
    strategy: one of our rules; None where the row is a model's.
    model: a model or an agent; None where the row is a rule's.
    metric: name of the metric.
    paper: the printed value, in the paper's unit; None where it prints none.
    note: the reason why ours differs or cannot be computed.
    """

    symbol: Symbol
    strategy: str | None
    model: str | None
    metric: str
    paper: Decimal | None
    note: str | None = None

    @property
    def who(self) -> str:
        """The strategy or the model."""
        return self.strategy or self.model or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of a paper.

    name: paper and number.
    convention: its formulas and execution rule, which also say which sessions of the test are valued.
    first, last: the test period that the paper gives.
    cells: the printed figures.
    warm_up_from: the beginning of the training before it; None where there is none.
    averaged: the symbols that its averages are taken over, group by group.
    dividends: those that a row reinvests where the prices are not adjusted.
    """

    name: str
    convention: str
    first: date
    last: date
    cells: tuple[PublishedCell, ...]
    warm_up_from: date | None
    averaged: tuple[tuple[Symbol, ...], ...] = ()
    dividends: tuple[CorporateAction, ...] = ()

    @property
    def begin(self) -> date:
        """The first session of all, of the training or else of the test."""
        return self.warm_up_from or self.first

    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols of the table in its order."""
        return tuple(dict.fromkeys(cell.symbol for cell in self.cells))

    def strategies(self) -> tuple[str, ...]:
        """The rule strategies of the table in its order."""
        return tuple(dict.fromkeys(cell.strategy for cell in self.cells if cell.strategy))

    def models(self) -> tuple[str, ...]:
        """The rows of models and agents in the table's order."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells if cell.model))

    def metrics(self) -> tuple[str, ...]:
        """The metrics of the table in its order."""
        return tuple(dict.fromkeys(cell.metric for cell in self.cells))


def published(bench: str) -> tuple[PublishedTable, ...]:
    """The printed tables of a bench, in the paper's order. Raises UsageError for one without printed rows."""
    if bench not in BENCHES:
        raise UsageError(f"no published tables for {bench}; available: {', '.join(BENCHES)}")
    return _tables(bench)


@cache
def paper_file(bench: str) -> Mapping[str, Any]:
    """The data file of a bench that there is."""
    text = program_text(Path(__file__).parent / "paper_tables" / f"{bench}.toml")
    # Decimal keeps the digits as printed, trailing zeros included.
    return tomllib.loads(text, parse_float=Decimal)


@cache
def _tables(bench: str) -> tuple[PublishedTable, ...]:
    data = paper_file(bench)
    return tuple(_table(data, table) for table in data["table"])


def _table(paper: Mapping[str, Any], table: Mapping[str, Any]) -> PublishedTable:
    window = table.get("window", paper["window"])
    cells = [cell for row in table.get("row", ()) for cell in _cells(row, paper.get("note", []))]
    cells += _unprinted(table.get("symbols", ()), table.get("unprinted", ()))
    name = f"{paper['paper']} {'' if 'unprinted' in table else 'Table '}{table['name']}"
    return PublishedTable(
        name=name,
        convention=paper["convention"],
        first=window["first"],
        last=window["last"],
        cells=tuple(cells),
        warm_up_from=window["warm_up_from"],
        averaged=tuple(map(tuple, table.get("averaged", ()))),
        dividends=tuple(CorporateAction(kind=ActionKind.DIVIDEND, **paid) for paid in table.get("dividend", ())),
    )


def elsewhere(
    table: PublishedTable,
    symbols: Sequence[Symbol],
    window: tuple[date, date] | None,
    warm_up_from: date | None,
) -> PublishedTable:
    """A table without printed figures on other symbols (empty: its own), or in another window, which has the training
    that is named and else none."""
    first, last = window or (table.first, table.last)
    return replace(
        table,
        cells=tuple(_unprinted(symbols or table.symbols(), table.metrics())),
        first=first,
        last=last,
        warm_up_from=warm_up_from or (table.warm_up_from if window is None else None),
    )


def _unprinted(symbols: Sequence[Symbol], metrics: Sequence[str]) -> list[PublishedCell]:
    """Cells of buy and hold."""
    return [
        PublishedCell(symbol=symbol, strategy="buy-and-hold", model=None, metric=metric, paper=None)
        for symbol in symbols
        for metric in metrics
    ]


def _cells(row: Mapping[str, Any], notes: list[dict[str, Any]]) -> list[PublishedCell]:
    strategy, model = row.get("strategy"), row.get("model")
    return [
        PublishedCell(
            symbol=symbol,
            strategy=strategy,
            model=model,
            metric=metric,
            paper=value,
            note=_note(notes, symbol, strategy, model, metric),
        )
        for symbol, figures in row.items()
        if symbol not in ("strategy", "model")
        for metric, value in figures.items()
    ]


def _note(notes: list[dict[str, Any]], symbol: str, strategy: str | None, model: str | None, metric: str) -> str | None:
    found = [
        note["text"]
        for note in notes
        if note.get("symbol", symbol) == symbol
        and metric in note.get("metrics", [metric])
        and _is(note.get("strategy"), strategy, "model" in note)
        and _is(note.get("model"), model, "strategy" in note)
    ]
    return "; ".join(found) or None


def _is(wanted: str | None, actual: str | None, other_kind: bool) -> bool:
    """True where a note's strategy (or model) fits: `*` is any, and none given is any unless the other is given."""
    if wanted is None:
        return actual is None or not other_kind
    return actual is not None and wanted in ("*", actual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A row beside the paper's agent, run in the same environment.

    row: its name.
    without: steps that it leaves out.
    symbols: those that it is run on, empty for all of the table.
    training: False where it begins with the test.
    preset: another preset that is run in the agent's place; None: the agent's own.
    note: remark on every figure of ours.
    """

    row: str
    without: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    training: bool = True
    preset: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PrintedModel:
    """A model of a paper's table. `size` is in billions of parameters, None where its maker names none; `specs` are the
    model specs that mean it. Source: InvestorBench Table 1 [I10]."""

    name: str
    kind: str
    size: Decimal | None = None
    specs: tuple[str, ...] = ()

    @property
    def size_class(self) -> str | None:
        """Small up to 10 billion parameters, medium up to 65, large above. Source: InvestorBench figure 3 [I10]."""
        if self.size is None:
            return None
        return "small" if self.size <= 10 else "medium" if self.size <= 65 else "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAgents:
    """The agents of a bench.

    preset: the preset that is run.
    row: the printed row that it is compared with; None where a row is a model, and the agent the same in all.
    beside: agents of other papers that the paper compares it with, of which we have presets.
    ablations: the printed ablations.
    models: the models of its rows.
    """

    preset: str
    row: str | None
    beside: tuple[Variant, ...]
    ablations: tuple[Variant, ...]
    models: tuple[PrintedModel, ...]

    def row_of(self, spec: str, variant: Variant | None = None) -> str:
        """The name of the row that a model's answers make, of the whole agent or a variant."""
        if self.row is not None:
            return self.row if variant is None else variant.row
        name = next((model.name for model in self.models if spec in model.specs), spec)
        return name if variant is None else f"{name}, {variant.row}"


def published_agents(bench: str) -> PublishedAgents:
    """The agents of a bench that has printed rows."""
    plain = paper_file(bench)["agents"]
    models = tuple(
        PrintedModel(m["name"], m["kind"], None if "size" not in m else Decimal(m["size"]), tuple(m.get("specs", ())))
        for m in plain.get("model", ())
    )
    return PublishedAgents(
        preset=plain["preset"],
        row=plain.get("row"),
        beside=tuple(map(_variant, plain.get("beside", ()))),
        ablations=tuple(map(_variant, plain.get("ablation", ()))),
        models=models,
    )


def _variant(entry: Mapping[str, Any]) -> Variant:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Variant(**plain)


def run_rule(
    table: PublishedTable,
    symbol: Symbol,
    strategy: str,
    market: Market,
    params: Mapping[str, str] = MappingProxyType({}),
) -> Result:
    """A rule's run on one symbol over a table's window, by the table's convention, with the parameters that its authors
    tuned, or others in their place. Raises what `run_strategy` raises."""
    spec = RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        strategy=strategy,
        params=tuple({**tuned_params(strategy, symbol), **params}.items()),
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
        briefing=Briefing(
            guidance=guidance, currency=LISTED.of(symbol).currency
        ),  # the rest of a desk's own briefing is no part of a paper
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


def own_strategy_run(
    table: PublishedTable,
    symbol: Symbol,
    strategy: str,
    market: Market,
    *,
    params: Mapping[str, str] = MappingProxyType({}),
    report: Callable[[str], None] = lambda text: None,
) -> Result:
    """The run of a strategy, by name or FILE:CLASS, on one symbol in a table's environment, fitted on its training
    period; `report` hears how far that is. Raises what `run_strategy` raises."""
    spec = RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        warm_up_from=table.warm_up_from,
        strategy=strategy,
        params=tuple(params.items()),
        convention=table.convention,
    )
    return run_strategy(spec, adjusted_market(table, symbol, market), report=report)
