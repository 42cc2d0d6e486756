"""The calls of the library, each in the thread that it is made in: options become a run's description as the command
line's do, a use case is called, and its document is what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from engine.domain.market import parse_symbol
from engine.errors import Interrupted, UsageError
from paperdesk.arguments import Amount, Day, amount_of, checked, day_of, named_arguments
from paperdesk.threads import stop_requested

if TYPE_CHECKING:
    import pandas as pd

    from engine.app.bench.forecast import Forecast
    from engine.domain.run import RunSpec
    from engine.services import Services
    from paperdesk.desk import Desk
    from paperdesk.results import Run, Study

F = TypeVar("F", bound=Callable[..., Any])
OFFLINE = "offline"
_DAYS = {"start": "first", "end": "last", "warm_up": "warm_up_from"}
_AMOUNTS = ("cash", "commission", "slippage_bp")


class RunArguments(TypedDict, total=False):
    """The arguments that describe a run; `backtest` explains them. None is the default of all but `model`."""

    symbols: str | Sequence[str] | None
    start: Day | None
    end: Day | None
    data: str | Path | Mapping[str, pd.DataFrame] | None
    preset: str | None
    strategy: str | type | Callable[..., Any] | None
    params: Mapping[str, object] | None
    model: str
    warm_up: Day | None
    cash: Amount | None
    commission: Amount | None
    slippage_bp: Amount | None
    convention: str | None
    seed: int | None


def _spelled_out(call: F) -> F:
    """Write the arguments of a run into the signature of a call, for `help` and notebooks."""
    signature, named = inspect.signature(call), []
    for name, hint in RunArguments.__annotations__.items():
        default = OFFLINE if name == "model" else None
        named.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint.__forward_arg__)
        )
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    call.__signature__ = signature.replace(parameters=[*own, *named])  # type: ignore[attr-defined]
    return call


@checked
@_spelled_out
def backtest(**arguments: Unpack[RunArguments]) -> Run:
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
        now = services.clock.now()
        spec = replace(_spec(services, arguments), run=new_run_id("backtest", now))
        check_spec(spec, now)
        _refuse_expensive(paid_forecast(services, [Job(settled(services, spec), None, spec.run)]), services)
        with session_progress(progress) as publish:
            try:
                run_backtest(services, spec, publish, stop_requested)
            except KeyboardInterrupt:
                raise Interrupted("interrupted: a strategy's run is kept only once it finishes") from None
    run = load(spec.run)
    if run.document["interrupted"]:
        raise Interrupted(f"interrupted; paperdesk.load({run.run!r}) has what was done")
    return run


@checked
@_spelled_out
def audit(*, cuts: int | None = 12, run: str | None = None, **arguments: Unpack[RunArguments]) -> dict[str, Any]:
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

    with named_arguments(), progress() as show:
        services = _services()
        spec = recorded_spec(run) if run is not None and not arguments else _spec(services, arguments)
        if (spec.strategy or "").startswith("<"):
            raise UsageError("an audit is bound to a file of code: name the strategy as FILE.py:NAME")

        def on_step(done: int, steps: int) -> None:
            if stop_requested():
                raise Interrupted("interrupted: an audit is whole or not at all")
            show("audit", done, steps)

        return audit_document(spec, run_audit(services, spec, cuts, on_step, of=run, stop=stop_requested))


@checked
@_spelled_out
def tune(
    *,
    test: tuple[Day, Day] | None = None,
    trials: int = 100,
    folds: int = 0,
    jobs: int = 1,
    **arguments: Unpack[RunArguments],
) -> dict[str, Any]:
    """Search a strategy's parameters on a training window, as `paperdesk tune` does; needs the extra `tune`.

    Takes the arguments of `backtest`, of which `params` are held; `test` is a later window on which the best of each
    symbol are tried, `folds` the steps of a walk forward, `jobs` the trials at a time. Returns the keys of `tune
    --json`: under `tuned` a search for each symbol, with `params`, `in_sample`, `out_of_sample`, `walk_forward` and
    `luck`. After Ctrl-C it is `interrupted`, with the best so far. Raises what `backtest` raises.
    """
    from engine.app.research.parameter_search import search_parameters
    from engine.reports.documents.research import tune_document
    from paperdesk.progress import progress

    with named_arguments(), progress() as show:
        services = _services()
        spec = _spec(services, arguments)
        if spec.strategy is None:
            raise UsageError("strategy: name the one whose parameters are searched")

        def on_trial(symbol: str, done: int, wanted: int) -> None:
            if stop_requested():
                raise KeyboardInterrupt  # as Ctrl-C ends a search on the command line
            show(symbol, done, wanted)

        if test is not None and len(test) != 2:
            raise UsageError(f"test: {test!r} is not a first and a last session")
        window = None if test is None else (day_of(test[0]), day_of(test[1]))
        search = search_parameters(
            services, spec, trials=trials, test=window, folds=folds, jobs=jobs, on_trial=on_trial
        )
        found = list(search)
        return tune_document(spec, window, found)


@checked
def study(file: str | Path, *, data: str | Path | None = None, jobs: int = 1, scheduler: str | None = None) -> Study:
    """Backtest every combination of what the `[study]` of a TOML file names, as `paperdesk study` does.

    Runs that are there already are not played again. `data` is a data folder, by default the configured one; `jobs` are
    runs at a time, in processes of their own; a `scheduler` is a Dask scheduler's address, or "local", whose workers
    play those that ask no model's service. Raises what `backtest` raises, ConfigError for a faulty file.
    """
    from engine.app.bench.forecast import paid_forecast
    from engine.app.study import prepare_study, run_study
    from paperdesk.progress import progress
    from paperdesk.results import Study
    from tui.commands.options import ABSTAIN_LIMIT

    with named_arguments(), progress() as show:
        services = replace(_services(), abstain_limit=ABSTAIN_LIMIT)
        if data is not None:
            folder = str(Path(data).expanduser().absolute())
            services = replace(services, data=replace(services.data, folder=folder))
        prepared = prepare_study(services, Path(file).expanduser())
        _refuse_expensive(paid_forecast(services, prepared.open_jobs), services)
        document = run_study(services, prepared, jobs, show, stop_requested, scheduler=scheduler)
    if document["interrupted"]:
        raise Interrupted("interrupted; the same call goes on with what is not done")
    return Study(document)


@checked
@_spelled_out
def compare(
    *, models: str | Sequence[str], repeats: int = 1, jobs: int = 1, **arguments: Unpack[RunArguments]
) -> dict[str, Any]:
    """Backtest the same agents with each of some models, as `paperdesk compare` does.

    Takes the arguments of `backtest` that belong to agents, but for `model`. `repeats` are runs of each model, whose
    noise a difference has to exceed; `jobs` as of `study`. Returns the keys of `compare --json`: `models`, `pairs`,
    `floor`. Runs that are there already are not played again. Raises what `backtest` raises.
    """
    from engine.app.bench.forecast import paid_forecast
    from engine.app.model_comparison import prepare_comparison
    from engine.app.study import run_study
    from paperdesk.progress import progress
    from tui.commands.options import ABSTAIN_LIMIT, listed

    with named_arguments(), progress() as show:
        if "model" in arguments:
            raise UsageError("model: name every model in models")
        services = replace(_services(), abstain_limit=ABSTAIN_LIMIT)
        names = listed(models) if isinstance(models, str) else [str(model) for model in models]
        prepared = prepare_comparison(services, replace(_spec(services, arguments), model=None), names, repeats)
        _refuse_expensive(paid_forecast(services, prepared.open_jobs), services)
        document = run_study(services, prepared, jobs, show, stop_requested)
    if document["interrupted"]:
        raise Interrupted("interrupted; the same call goes on with what is not done")
    return document


def _refuse_expensive(forecast: Forecast | None, services: Services) -> None:
    if forecast is not None and (reason := forecast.too_much(services.config.budget)):
        raise UsageError(f"{reason}: raise budget.ask_above in the configuration to run it")


@checked
def load(run: str | None = None) -> Run:
    """The backtest of an id, the latest where none is named. Raises MissingData, naming the latest ones."""
    from engine.reports.stored import stored_document
    from paperdesk.results import Run

    return Run(stored_document(run))


@checked
def runs() -> pd.DataFrame:
    """All runs of this machine, the latest first, a row each with the keys of `runs list --json`."""
    from engine.app.runs import stored_runs
    from engine.reports.documents.runs import runs_document
    from paperdesk.results import table

    found = stored_runs()
    return table(runs_document(found, of=found)["runs"])


@checked
def open_desk(name: str | None = None) -> Desk:
    """The configured desk, or the one of a name, to be read. Raises ConfigError."""
    from paperdesk.desk import Desk
    from tui.settings.invocation import Invocation

    return Desk(Invocation(desk=name))


def _services() -> Services:
    from tui.settings.invocation import Invocation

    return Invocation().services()


def _spec(services: Services, arguments: RunArguments) -> RunSpec:
    """The run that arguments describe, as the flags of a command do."""
    from engine.strategies.catalog import named_strategy
    from tui.commands.options import RunFlags

    given: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    strategy, data, symbols = (given.get(name) for name in ("strategy", "data", "symbols"))
    if "preset" in given and strategy is not None:
        raise UsageError("preset (agents) and strategy (rules) exclude each other: give one of them")
    if isinstance(data, Mapping):
        from paperdesk.frames import folder_of

        symbols = [parse_symbol(str(one)) for one in data] if symbols is None else symbols
        data = folder_of(services, data)
    if symbols is not None and not all(isinstance(symbol, str) for symbol in symbols):
        raise UsageError(f"symbols: {symbols!r} are not names such as AAPL")
    model = given.get("model", OFFLINE)
    flags: dict[str, Any] = {name: given[name] for name in ("preset", "convention", "seed") if name in given}
    flags |= {flag: day_of(given[name]) for name, flag in _DAYS.items() if name in given}
    flags |= {name: amount_of(name, given[name]) for name in _AMOUNTS if name in given}
    return RunFlags(
        symbols=symbols if symbols is None or isinstance(symbols, str) else ",".join(symbols),
        strategy=strategy if strategy is None or isinstance(strategy, str) else named_strategy(strategy),
        params=[f"{key}={value}" for key, value in given.get("params", {}).items()],
        model=None if strategy is not None and model == OFFLINE else model,
        folder=None if data is None else str(Path(data).expanduser().absolute()),
        **flags,
    ).spec(services)
