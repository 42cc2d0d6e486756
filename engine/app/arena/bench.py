"""`bench arena`: the tables of Agent Trading Arena with our arms beside them.

`bench arena --data`: the arena's portfolio agent on real prices, beside the rules that the paper compares it with.

Source: Agent Trading Arena §5.1 to §5.3, Tables 4, 6, 7 and 8 [R6, R8].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import product
from statistics import fmean
from types import MappingProxyType
from typing import Any

from engine.app.arena.arena import arena_forecast, repeat_documents, run_repeats
from engine.app.arena.record import ArenaSpec
from engine.app.bench.bench import models_used, unresolved_figures
from engine.app.bench.forecast import Estimate, Forecast
from engine.app.bench.jobs import Job, agents_of, run_jobs
from engine.app.bench.learned import CONTROL, SEEDS, about, compared_with_holding, train, without_extra
from engine.app.bench.plan import strategy_titles
from engine.app.records.trial_index import check_trial_index, count_trials, result_trial
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop, check_spec, new_run_id, with_costs
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, Result, RunPart, RunSpec, TrialKind
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.published_tables import paper_file
from engine.lab.rule_backtest import run_strategy
from engine.market.as_of import Market
from engine.preset import Preset, load_preset
from engine.reports.comparison import median_repeat, spreads
from engine.reports.documents.research import model_use_rows
from engine.reports.documents.row_json import Row
from engine.reports.performance import Measure
from engine.services import Services

SCHEMA = 1
INPUTS = ("text", "charts", "both")
WINDOWS = (5, 10, 15, 20)
"""Windows of Table 6, in days; those of Table 5 are of the usual one."""
USUAL_WINDOW = 10
PERCENT = {"TR": "total_return", "Mean": "mean_return", "Std": "standard_deviation", "WR": "win_rate"}
UNEVEN = 0.02
"""Greatest relative distance of a printed Sharpe ratio from Mean / Std; beyond it the row is marked."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Repeats of an arena for one row of ours: in `table`, asked of `model`."""

    table: int
    row: str
    model: str
    spec: ArenaSpec


def arms_of(services: Services, models: Sequence[str], repeats: int, *, windows: bool) -> Sequence[Arm]:
    """An arm for each input with and without reflection, and a duel; of each model. With `windows` also an arm for each
    input and each other window, in the order of Table 6."""
    name, days = new_run_id("bench-arena", services.clock.now()), int(paper_file("arena")["days"])
    arms = []
    for number, model in enumerate(models, 1):
        base = ArenaSpec(run=f"{name}-{number}", agents="trader", days=days, model=model, repeats=repeats)
        for shown in INPUTS:
            changed = replace(base, run=f"{base.run}-{shown}", changes={"input": shown, "reflects": False})
            arms.append(Arm(5, f"{model}, {shown}, no reflection", model, changed))
        for shown, window in product(INPUTS, WINDOWS if windows else (USUAL_WINDOW,)):
            changes = {"input": shown, "reflects": True}
            if window == USUAL_WINDOW:
                changed = replace(base, run=f"{base.run}-{shown}-reflection", changes=changes)
                arms.append(Arm(5, f"{model}, {shown}, reflection", model, changed))
            else:
                changed = replace(base, run=f"{base.run}-{shown}-{window}", changes={**changes, "window": window})
                arms.append(Arm(6, f"{model}, {input_arm(shown, window)}", model, changed))
        duel = replace(base, run=f"{base.run}-duel", agents="duel", changes={"reflects": False})
        arms.append(Arm(9, model, model, duel))
    return arms


def input_arm(shown: str, window: int) -> str:
    """An arm of Table 6 in words."""
    return f"{shown}, {window} days"


def arms_forecast(services: Services, arms: Sequence[Arm]) -> Forecast | None:
    """The forecast of all arms; None where nobody is asked who might charge for it."""
    sums: dict[str, Estimate] = {}
    for arm in arms:
        found = arena_forecast(services, arm.spec)
        for text, one in ({} if found is None else found.models).items():
            sums.setdefault(text, Estimate()).add(one)
    return Forecast(sums, sum(arm.spec.repeats for arm in arms)) if sums else None


def run_arena_bench(
    services: Services,
    arms: Sequence[Arm],
    *,
    jobs: int,
    report: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> Row:
    """Play all arms and return the document: printed tables, our rows, what cannot be had. Raises as `run_repeats`."""
    ours: list[Row] = []
    done = 0
    for arm in arms:
        if stop():
            break
        report(f"arena {arm.row}")
        whole = run_repeats(services, arm.spec, jobs=jobs, stop=stop)
        if whole is None or whole["interrupted"]:
            break
        done += 1
        ours += _duel_rows(arm, whole) if arm.table == 9 else _trader_rows(arm, repeat_documents(arm.spec))
    paper = paper_file("arena")
    return {
        "schema": SCHEMA,
        "bench": "arena",
        "days": int(paper["days"]),
        "tables": [printed_table(table) for table in paper["table"]],
        "ours": ours,
        "absent": list(paper["absent"]),
        "repeats": arms[0].spec.repeats,
        "runs": [arm.spec.run for arm in arms[:done]],
        "interrupted": done < len(arms),
    }


def printed_table(table: Mapping[str, Any]) -> Row:
    """A printed table; `uneven` names its rows whose Sharpe ratio is not Mean / Std, each with that quotient."""
    rows = [
        {"row": name, "figures": dict(zip(table["columns"], map(str, rest), strict=True))}
        for name, *rest in table["rows"]
    ]
    return {
        "table": table["number"],
        "title": table["title"],
        "columns": table["columns"],
        "rows": [one | {"uneven": _uneven(one["figures"])} for one in rows],
    }


def _uneven(figures: Mapping[str, str]) -> float | None:
    if not {"Mean", "Std", "SR"} <= figures.keys():
        return None
    quotient, printed = float(figures["Mean"]) / float(figures["Std"]), float(figures["SR"])
    # Half a digit of a printed figure is no fault.
    near = abs(quotient - printed) <= max(UNEVEN * abs(printed), 0.002)
    return None if near else quotient


def _trader_rows(arm: Arm, documents: Sequence[Mapping[str, Any]]) -> Sequence[Row]:
    """Means over the repeats of the trader's figures; with reflection also a row of table 6, and with text and charts
    one of table 3."""
    traders = [next(one for one in document["agents"] if one["name"] == "ArenaTrader") for document in documents]
    figures = {name: _mean([one["metrics"][key] for one in traders], 100) for name, key in PERCENT.items()}
    figures["SR"] = _mean([one["metrics"]["sharpe"] for one in traders])
    rows: list[Row] = [{"table": arm.table, "row": arm.row, "figures": figures}]
    if arm.table == 5 and arm.spec.changes["reflects"]:
        row = f"{arm.model}, {input_arm(arm.spec.changes['input'], USUAL_WINDOW)}"
        rows.append({"table": 6, "row": row, "figures": figures})
    if arm.spec.changes == {"input": "both", "reflects": True}:
        trend = _mean([one["market"]["average_trend"] for one in documents], 100)
        difference = _mean([one["metrics"]["difference"] for one in traders], 100)
        rows.append({"table": 3, "row": arm.model, "figures": {"Trend": trend, **figures, "Difference": difference}})
    return rows


def _duel_rows(arm: Arm, whole: Row) -> Sequence[Row]:
    agents = {one["name"]: one for one in whole["agents"]}
    return [
        {
            "table": 9,
            "row": f"{arm.model}, {name.lower()}",
            "figures": {"TR": agents[name]["relative"]["return"], "SR": agents[name]["relative"]["sharpe"]},
        }
        for name in ("Text", "Charts")
    ]


def _mean(values: Sequence[float | None], times: float = 1.0) -> float | None:
    known = [one for one in values if one is not None]
    return times * fmean(known) if known else None


CONVENTION = "arena"
VALIDATION = timedelta(days=33)
"""Length of the validation before the test: the paper's begins on 2024-08-01 for a test from 2024-09-03."""
RULES = (("Buy & Hold", "buy-and-hold"), ("SMA", "price-cross"), ("ZMR", "zone-reversal"), ("MACD", "macd"))
LEARNED = ("StockFormer", "TimesNet", "StockMixer")
ABLATIONS = (("without charts", "vision"), ("without reflection", "portfolio-reflection"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PricesBench:
    """A requested comparison on real prices.

    first, last: of the test, both included.
    models: that answer the agent, a row each; none: rules alone.
    ablations: True for rows without charts, without reflection, and of each input and window as well.
    presets, strategies: the user's own, by name or file; presets in the place of the arena's agent.
    learned: True for the paper's learned rows as well.
    """

    data: DataSpec
    symbols: tuple[Symbol, ...]
    first: date
    last: date
    models: tuple[str, ...]
    ablations: bool = False
    presets: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    learned: bool = False


def requested_bench(
    services: Services,
    folder: str,
    *,
    symbols: Sequence[Symbol] | None,
    window: tuple[date, date] | None,
    models: Sequence[str],
    ablations: bool,
    presets: Sequence[str] = (),
    strategies: Sequence[str] = (),
    learned: bool = False,
) -> PricesBench:
    """The comparison with the paper's symbols and window where none are named: those of its CSI stocks for some of
    them. Raises UsageError for a window that there cannot be."""
    paper = _table(4, symbols or ())
    first, last = window or (paper["first"], paper["last"])
    bench = PricesBench(
        data=replace(services.data, folder=folder),
        symbols=tuple(symbols or paper["symbols"]),
        first=first,
        last=last,
        models=tuple(models),
        ablations=ablations,
        presets=tuple(presets),
        strategies=tuple(strategies),
        learned=learned,
    )
    check_spec(_spec(bench, strategy="cash"), services.clock.now())
    check_trial_index()
    return bench


def agent_jobs(services: Services, bench: PricesBench) -> list[Job]:
    """A run of the agent for each model, and for each of its ablations."""
    run = new_run_id("bench-arena", services.clock.now())
    rows = [
        (preset, model, *variant)
        for preset, model in product(bench.presets or ("arena",), bench.models)
        for variant in (_variants(load_preset(preset)) if bench.ablations else [("", {})])
    ]
    return [
        Job(
            replace(_spec(bench, preset=preset), model=model, run=f"{run}-{number}", **changes),
            None,
            f"{load_preset(preset).name}, {model}{f', {title}' if title else ''}",
            keep=True,
        )
        for number, (preset, model, title, changes) in enumerate(rows, 1)
    ]


def _variants(preset: Preset) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The agent as it is, without a step that it has, and (one that decides on the portfolio) with every other input
    and window of Table 6; each with what it changes in the run, which keeps the whole preset."""
    yield "", {}
    for title, step in ABLATIONS:
        if step in preset.steps:
            yield title, {"without": (step,)}
    for shown, window in product(INPUTS, WINDOWS) if preset.decision == "portfolio" else ():
        portfolio = preset.portfolio.model_copy(update={"input": shown, "window": window})
        if portfolio != preset.portfolio:
            text = preset.model_copy(update={"portfolio": portfolio}).model_dump_json()
            yield input_arm(shown, window), {"preset_text": text}


def run_prices_bench(
    services: Services,
    bench: PricesBench,
    jobs: Sequence[Job],
    report: Callable[[str], None] = lambda text: None,
    stop: Stop = lambda: False,
) -> Row:
    """Play the rules, then the agent; printed rows stand beside ours where window and symbols are the paper's. Raises
    what loading the data and a run raise."""
    try:
        market = asyncio.run(load_run(services, _spec(bench, strategy="cash")))
    except StaleData as error:
        raise StaleData(f"{error}, or choose an available window with --from and --to") from None
    validated = _validated(services, bench, market)
    best = validated["window"]
    results: dict[str, Result] = {}
    rules = dict(RULES)
    own = {one if title in rules else title: one for one, title in strategy_titles(bench.strategies).items()}
    for title, strategy in (rules | own).items():
        if title != "SMA":
            results[title] = _rule(services, bench, market, strategy)
        elif best is not None:
            results[title] = _rule(services, bench, market, strategy, {"window": str(best)})
    learned = (
        _learned(services, bench, market, results["Buy & Hold"], report=report, stop=stop)
        if bench.learned
        else Learned()
    )
    measure = _measure(services, bench)
    ours = [_row(4, title, measure.of_run(result.test)) for title, result in results.items()]
    ours += learned.rows
    trend = _trend(results["Buy & Hold"].test)
    played = run_jobs(services, jobs, 1, stop, lambda job, count: report(f"{job.title}: {count} of {len(jobs)}"))
    made = {number: one.result for number, one in sorted(played.items()) if one.result is not None}
    for number, result in made.items():
        ours += _agent_rows(bench, jobs[number], measure.of_run(result.test), trend)
    paper, two = _table(4, bench.symbols), len(bench.symbols) == 2
    same = (set(bench.symbols), bench.first, bench.last) == (set(paper["symbols"]), paper["first"], paper["last"])
    return {
        "schema": SCHEMA,
        "bench": "arena",
        "symbols": list(bench.symbols),
        "first_session": str(bench.first),
        "last_session": str(bench.last),
        "sessions": len(next(iter(results.values())).test.equity),
        "columns": paper["columns"],
        "validation": validated,
        "printed": printed_table(paper) if same else None,
        "tables": [_beside(6, same and paper is _table(4)), *([_beside(8, _is_csi(bench))] if two else [])],
        "ours": sorted(ours, key=_place),
        "notes": [*_notes(bench, paper, same, validated, any(one["table"] == 6 for one in ours)), *learned.notes],
        "models": model_use_rows(models_used(one.model for one in made.values()), unresolved_figures(made.values())),
        "runs": [job.spec.run for number, job in enumerate(jobs) if number in played],
        "interrupted": len(played) < len(jobs) or learned.unfinished,
    }


@dataclass(slots=True)
class Learned:
    """Learned rows of Table 4, what a reader has to know of each, and whether some are missing after a stop."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unfinished: bool = False


def _learned(
    services: Services,
    bench: PricesBench,
    market: Market,
    held: Result,
    *,
    report: Callable[[str], None],
    stop: Stop,
) -> Learned:
    """The learned rows, each followed by its control. They are trained for as long before the test as the paper's, by
    its table 7."""
    paper = _table(4, bench.symbols)
    begin = bench.first - (paper["first"] - paper["trained_from"])
    found, known, measure = Learned(), convention(CONVENTION), _measure(services, bench)
    periods = known.periods_per_year(bench.symbols[0], measure.exchange)
    for title in LEARNED:
        if (reason := without_extra(title)) is not None:
            found.notes.append(f"{title}: {reason}")
            continue

        def run(params: Mapping[str, str], title: str = title) -> Result:
            told = f"{title}, {', '.join(params.values())}"
            report(told)
            heard = about(told, report)
            return _rule(services, bench, market, title.lower(), params, begin=begin, report=heard)

        try:
            trained = train(run, stop)
        except (MissingData, UsageError) as error:
            found.notes.append(f"{title}: {error}")
            continue
        if trained is None:
            found.unfinished = True
            break
        repeats = [measure.of_run(result.test) for result in trained.seeds]
        best = trained.seeds[median_repeat(repeats)]
        for name, result in ((title, best), (f"{title}, {CONTROL}", trained.control)):
            found.rows.append(_row(4, name, measure.of_run(result.test)))
            found.notes.append(f"{name}: {compared_with_holding(result, held, known, periods)}; {result.notes[-1]}")
        spread = spreads(repeats)["TR"]
        found.notes.append(
            f"{title} is the median of {SEEDS} seeds by SR; TR from {spread.low:.3f} to {spread.high:.3f}"
        )
    return found


def _agent_rows(bench: PricesBench, job: Job, figures: Metrics, trend: Mapping[str, float]) -> Iterator[Row]:
    """The rows of a run of an agent: with another input or window it has one of Table 6 alone."""
    preset = agents_of(job.spec)
    if job.spec.preset_text is None:
        yield _row(4, job.title, figures)
        if len(bench.symbols) == 2:
            yield _row(8, job.title, {**trend, "TR": figures["TR"], "SR": figures["SR"]})
    if preset.decision == "portfolio" and not job.spec.without:
        arm = input_arm(preset.portfolio.input, preset.portfolio.window)
        yield _row(6, f"{preset.name}, {job.spec.model}, {arm}", figures)


def _place(one: Row) -> tuple[int, str, int, int]:
    """The place of a row of ours: by table, in Table 6 by agent, input and window as the paper's are."""
    if one["table"] != 6:
        return one["table"], "", 0, 0
    agent, shown, window = one["row"].rsplit(", ", 2)
    return 6, agent, INPUTS.index(shown), int(window.split()[0])


def _row(table: int, title: str, figures: Mapping[str, float | None]) -> Row:
    return {"table": table, "row": title, "figures": dict(figures)}


def _trend(held: RunPart) -> Mapping[str, float]:
    """The mean, the least and the greatest change of the stocks over the window, in percent."""
    first, last = held.equity[0].prices, held.equity[-1].prices
    changes = [100 * float(last[symbol] / price - 1) for symbol, price in first.items()]
    return {"Average": fmean(changes), "Min": min(changes), "Max": max(changes)}


def _beside(number: int, comparable: bool) -> Row:
    """A printed table, without its rows where ours are of other prices."""
    printed = printed_table(_table(number))
    return printed if comparable else printed | {"rows": []}


def _validated(services: Services, bench: PricesBench, market: Market) -> Row:
    """The window of the moving average that returned most in the sessions before the test; None for the return of one
    that the bars do not reach for in their first session, and for the best of none."""
    first, last = bench.first - VALIDATION, bench.first - timedelta(days=1)
    before = replace(bench, first=first, last=last)
    measure = _measure(services, bench)
    reach = min(market.histories[symbol].rows_through(first) for symbol in bench.symbols)
    returns = {
        window: measure.of_run(_rule(services, before, market, "price-cross", {"window": str(window)}).test)["TR"]
        for window in WINDOWS
        if window <= reach
    }
    known = {window: figure for window, figure in returns.items() if figure is not None}
    return {
        "strategy": "price-cross",
        "first": str(first),
        "last": str(last),
        "TR": {str(window): returns.get(window) for window in WINDOWS},
        "window": max(known, key=lambda window: (known[window], -window), default=None),
    }


def _measure(services: Services, bench: PricesBench) -> Measure:
    exchange = services.config.exchanges.of_portfolio(bench.symbols)
    return Measure(convention(CONVENTION), bench.symbols, exchange)


def _rule(
    services: Services,
    bench: PricesBench,
    market: Market,
    strategy: str,
    params: Mapping[str, str] = MappingProxyType({}),
    *,
    begin: date | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Result:
    spec = replace(_spec(bench, strategy=strategy), params=tuple(params.items()), warm_up_from=begin)
    result = run_strategy(spec, market, *with_costs(spec, services.config), report)
    count_trials([result_trial(TrialKind.BENCH, result, services.clock.now())])
    return result


def _spec(bench: PricesBench, *, strategy: str | None = None, preset: str | None = None) -> RunSpec:
    return RunSpec(
        symbols=bench.symbols,
        first=bench.first,
        last=bench.last,
        data=bench.data,
        convention=CONVENTION,
        strategy=strategy,
        preset=preset,
    )


def _table(number: int, symbols: Sequence[Symbol] = ()) -> Mapping[str, Any]:
    """The printed table of a number; of several the one whose stocks some symbols are, else the first."""
    tables: Sequence[Mapping[str, Any]] = paper_file("arena")["table"]
    found = [table for table in tables if table["number"] == number]
    return next((table for table in found if symbols and set(symbols) <= set(table["symbols"])), found[0])


def _is_csi(bench: PricesBench) -> bool:
    return all(symbol.endswith((".SS", ".SZ")) for symbol in bench.symbols)


def _notes(
    bench: PricesBench, paper: Mapping[str, Any], same: bool, validated: Mapping[str, Any], has_arms: bool
) -> list[str]:
    notes = []
    if not same:
        paper_window = f"{', '.join(paper['symbols'])}, {paper['first']} to {paper['last']}"
        notes.append(
            f"The paper's rows of Tables 4 and 6 are of another window or other symbols ({paper_window}) and are left "
            "out."
        )
    if unknown := [window for window, figure in validated["TR"].items() if figure is None]:
        left_out = "; its row is left out" if validated["window"] is None else ""
        notes.append(
            f"SMA: the bars before {validated['first']} are too few to validate a window of {', '.join(unknown)} "
            f"sessions{left_out}."
        )
    notes.append(
        "The paper prints neither the bounds of ZMR nor how many shares a rule trades: bounds of 3 % around the mean "
        "of 10 sessions and an equal share for each stock are ours."
    )
    if has_arms and not bench.ablations:
        notes.append("Table 6 has the agent's own input and window alone: --ablations plays all of them.")
    if len(bench.symbols) == 2:
        left_out = "" if _is_csi(bench) else " Its rows are left out: your stocks are not of the CSI."
        notes.append(
            "Table 8: our trend is the mean, the least and the greatest change of the two stocks over the window. The "
            "paper names neither its two CSI stocks nor how it measures their trend, whose average is not the middle "
            f"of the two.{left_out}"
        )
    if "offline" in bench.models:
        alike = " Rules read figures whatever is shown, so that their arms of Table 6 differ by the window alone."
        notes.append(
            "offline is rules, not a language model: its row shows that the agent runs, not what it is worth."
            f"{alike if has_arms else ''}"
        )
    return notes
