"""The calls of the library, each in the thread that it is made in: options become a run's description as the command
line's do, a use case is called, and its document is what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import Interrupted, UsageError
from paperdesk.arguments import Amount, Day, amount_of, day_of, named_arguments
from paperdesk.threads import stop_requested

if TYPE_CHECKING:
    import pandas as pd

    from engine.domain.run import RunSpec
    from engine.services import Services
    from paperdesk.desk import Desk
    from paperdesk.results import Run

Named = str | type | Callable[..., Any]

OFFLINE = "offline"


def backtest(
    *,
    symbols: str | Sequence[str] | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: str | Path | Mapping[str, pd.DataFrame] | None = None,
    preset: str | None = None,
    strategy: Named | None = None,
    params: Mapping[str, object] | None = None,
    model: str = OFFLINE,
    warm_up: Day | None = None,
    cash: Amount | None = None,
    commission: Amount | None = None,
    slippage_bp: Amount | None = None,
    convention: str | None = None,
    seed: int | None = None,
) -> Run:
    """Backtest agents or a strategy beside its baselines, and keep the run as `paperdesk backtest` does.

    What is None is the configuration's, or under a paper's convention the paper's; without a configuration the run is
    the `desk` preset on the demo market.

    Args:
        symbols: to trade, such as `["AAPL", "MSFT"]`; of DataFrames all by default.
        start, end: first and last session of the test.
        data: a data folder, or a DataFrame of daily bars by symbol: open, high, low, close, volume, and where they are
            known adj_close, dividends and stock splits, by day. Default: the configured folder, else the demo market.
        preset: agents, by name or TOML file.
        strategy: in their place a strategy by name, `FILE.py:NAME`, class, or function of a view that answers weights.
        params: the strategy's parameters by name.
        model: of every agent, such as `openai:gpt-5-mini`. The default asks nobody and costs nothing.
        warm_up: first session of the simulated trading before the test, which is not measured.
        cash: starting cash.
        commission: per trade, as a fraction.
        slippage_bp: in basis points.
        convention: of trading and metrics: desk, finvision, finagent, ...
        seed: of everything random.

    Raises UsageError for arguments that cannot mean a run, DataError for missing, stale or malformed data, ConfigError,
    CredentialsRefused, TryAgainLater for models that cannot be had, and Interrupted after Ctrl-C: what was done by then
    is kept, and `load` reads it.
    """
    from engine.app.bench.forecast import paid_forecast
    from engine.app.bench.jobs import Job
    from engine.app.research.backtest import run_backtest
    from engine.app.research.run_spec import check_spec, new_run_id, settled
    from paperdesk.progress import progress
    from tui.commands.options import ABSTAIN_LIMIT
    from tui.shell.progress import session_progress

    with named_arguments():
        services = replace(_services(), abstain_limit=ABSTAIN_LIMIT)
        spec = _spec(
            services,
            symbols=symbols,
            window=(start, end),
            data=data,
            preset=preset,
            strategy=strategy,
            params=params,
            model=model,
            warm_up_from=warm_up,
            cash=cash,
            commission=commission,
            slippage_bp=slippage_bp,
            convention=convention,
            seed=seed,
        )
        spec = replace(spec, run=new_run_id("backtest", services.clock.now()))
        check_spec(spec, services.clock.now())
        forecast = paid_forecast(services, [Job(settled(services, spec), None, spec.run)])
        if forecast is not None and (reason := forecast.too_much(services.config.budget)):
            raise UsageError(f"{reason}: raise budget.ask_above in the configuration to run it")
        with session_progress(progress) as publish:
            run_backtest(services, spec, publish, stop_requested)
    run = load(spec.run)
    if run.document["interrupted"]:
        raise Interrupted(f"interrupted; paperdesk.load({run.run!r}) has what was done")
    return run


def audit(
    *,
    symbols: str | Sequence[str] | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: str | Path | Mapping[str, pd.DataFrame] | None = None,
    preset: str | None = None,
    strategy: Named | None = None,
    params: Mapping[str, object] | None = None,
    model: str = OFFLINE,
    warm_up: Day | None = None,
    convention: str | None = None,
    seed: int | None = None,
    cuts: int | None = 12,
    run: str | None = None,
) -> dict[str, Any]:
    """Check that no decision of a run saw the future, as `paperdesk audit` does.

    Takes the arguments of `backtest`, the strategy by name or `FILE.py:NAME`: a certificate is bound to a file of code.
    `cuts` is the number of decisions that are taken again on data that ends there, None for all. `run` names the run
    that is to be checked, with its own settings where no others are given. Returns the certificate, with the keys of
    `audit --json`; its `verdict` is `clean` or `leak`. Raises what `backtest` raises.
    """
    from engine.app.audit.audit import run_audit
    from engine.app.research.backtest import recorded_spec
    from engine.reports.documents.research import audit_document
    from paperdesk.progress import progress

    if strategy is not None and not isinstance(strategy, str):
        raise UsageError("an audit is bound to a file of code: name the strategy as FILE.py:NAME")
    given = (symbols, start, end, data, preset, strategy, params, warm_up, convention, seed)
    with named_arguments(), progress() as show:
        services = _services()
        if run is not None and given == (None,) * len(given):
            spec = recorded_spec(run)
        else:
            spec = _spec(
                services,
                symbols=symbols,
                window=(start, end),
                data=data,
                preset=preset,
                strategy=strategy,
                params=params,
                model=model,
                warm_up_from=warm_up,
                convention=convention,
                seed=seed,
            )

        def on_step(done: int, steps: int) -> None:
            if stop_requested():
                raise Interrupted("interrupted: an audit is whole or not at all")
            show("audit", done, steps)

        return audit_document(spec, run_audit(services, spec, cuts, on_step, of=run))


def tune(
    strategy: Named,
    *,
    symbols: str | Sequence[str] | None = None,
    start: Day,
    end: Day,
    test: tuple[Day, Day] | None = None,
    data: str | Path | Mapping[str, pd.DataFrame] | None = None,
    params: Mapping[str, object] | None = None,
    trials: int = 100,
    warm_up: Day | None = None,
    convention: str | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Search a strategy's parameters on a training window, as `paperdesk tune` does; needs the extra `tune`.

    `params` are held, `test` is a later window on which the best of each symbol are tried. Returns the keys of
    `tune --json`: under `tuned` a search for each symbol, with `params`, `in_sample` and `out_of_sample`. After Ctrl-C
    it is `interrupted`, with the best so far. Raises what `backtest` raises.
    """
    from engine.app.research.parameter_search import search_parameters
    from engine.reports.documents.research import tune_document
    from paperdesk.progress import progress

    with named_arguments(), progress() as show:
        services = _services()
        spec = _spec(
            services,
            symbols=symbols,
            window=(start, end),
            data=data,
            strategy=strategy,
            params=params,
            warm_up_from=warm_up,
            convention=convention,
            seed=seed,
        )

        def on_trial(symbol: str, done: int, wanted: int) -> None:
            if stop_requested():
                raise KeyboardInterrupt  # as Ctrl-C ends a search on the command line
            show(symbol, done, wanted)

        window = None if test is None else (day_of(test[0]), day_of(test[1]))
        found = list(search_parameters(services, spec, trials=trials, test=window, on_trial=on_trial))
        return tune_document(spec, window, found)


def load(run: str | None = None) -> Run:
    """The backtest of an id, the latest where none is named. Raises MissingData, naming the latest ones."""
    from engine.reports.stored import stored_document
    from paperdesk.results import Run

    return Run(stored_document(run))


def runs() -> pd.DataFrame:
    """All runs of this machine, the latest first, a row each with the keys of `runs list --json`."""
    from engine.app.runs import stored_runs
    from engine.reports.documents.runs import runs_document
    from paperdesk.results import table

    found = stored_runs()
    return table(runs_document(found, of=found)["runs"])


def open_desk(name: str | None = None) -> Desk:
    """The configured desk, or the one of a name, to be read. Raises ConfigError."""
    from paperdesk.desk import Desk
    from tui.settings.invocation import Invocation

    return Desk(Invocation(desk=name))


def _services() -> Services:
    from tui.settings.invocation import Invocation

    return Invocation().services()


def _spec(
    services: Services,
    *,
    window: tuple[Day | None, Day | None],
    symbols: str | Sequence[str] | None,
    data: str | Path | Mapping[str, pd.DataFrame] | None,
    strategy: Named | None,
    params: Mapping[str, object] | None,
    warm_up_from: Day | None,
    preset: str | None = None,
    model: str = OFFLINE,
    cash: Amount | None = None,
    commission: Amount | None = None,
    slippage_bp: Amount | None = None,
    convention: str | None,
    seed: int | None,
) -> RunSpec:
    """The run that arguments describe, as the flags of a command do."""
    from engine.strategies.catalog import named_strategy
    from tui.commands.options import RunFlags

    if preset is not None and strategy is not None:
        raise UsageError("preset (agents) and strategy (rules) exclude each other: give one of them")
    if isinstance(data, Mapping):
        from paperdesk.frames import folder_of

        symbols, data = symbols if symbols is not None else list(data), folder_of(services, data)
    first, last, begins = (None if day is None else day_of(day) for day in (*window, warm_up_from))
    flags = RunFlags(
        symbols=symbols if symbols is None or isinstance(symbols, str) else ",".join(symbols),
        first=first,
        last=last,
        warm_up_from=begins,
        preset=preset,
        strategy=strategy if strategy is None or isinstance(strategy, str) else named_strategy(strategy),
        params=[f"{key}={value}" for key, value in (params or {}).items()],
        model=None if strategy is not None and model == OFFLINE else model,
        folder=None if data is None else str(Path(data).expanduser().absolute()),
        convention=convention,
        seed=seed,
        cash=amount_of("cash", cash),
        commission=amount_of("commission", commission),
        slippage_bp=amount_of("slippage_bp", slippage_bp),
    )
    return flags.spec(services)
