"""Paperdesk as a library: backtests, audits, runs and desks from Python, by the use cases of the command line.

    import paperdesk

    run = paperdesk.backtest(symbols=["AAPL"], start="2023-06-01", end="2023-12-29", data="DIR", preset="finvision")
    run.metrics["sharpe"], run.equity, run.plot()

Functions block, in a notebook too: their work is done in a thread of its own. `paperdesk.aio` has the same ones to be
awaited. Nothing heavy is imported before the first call.
"""

from __future__ import annotations

from paperdesk.installation import refuse, shadowed

if _fault := shadowed():
    refuse(_fault)

from engine.errors import (  # after the check: it may be somebody else's engine
    BudgetReached,
    ConfigError,
    CredentialsRefused,
    DataError,
    Interrupted,
    MalformedData,
    MissingData,
    NetworkError,
    PaperdeskError,
    StaleData,
    TryAgainLater,
    UsageError,
)
from paperdesk import aio, calls
from paperdesk.calls import load, open_desk, runs
from paperdesk.threads import blocking

__all__ = [
    "BudgetReached",
    "ConfigError",
    "CredentialsRefused",
    "DataError",
    "Interrupted",
    "MalformedData",
    "MissingData",
    "NetworkError",
    "PaperdeskError",
    "StaleData",
    "TryAgainLater",
    "UsageError",
    "aio",
    "audit",
    "backtest",
    "compare",
    "load",
    "open_desk",
    "runs",
    "study",
    "tune",
]

backtest = blocking(calls.backtest)
audit = blocking(calls.audit)
compare = blocking(calls.compare)
study = blocking(calls.study)
tune = blocking(calls.tune)


def __dir__() -> list[str]:
    return __all__
