"""Paperdesk as a library: backtests, audits, runs and desks from Python, by the use cases of the command line.

    import paperdesk

    run = paperdesk.backtest(symbols=["AAPL"], start="2023-06-01", end="2023-12-29", data="DIR", preset="finvision")
    run.metrics["sharpe"], run.equity, run.plot()

Functions block, in a notebook too: their work is done in a thread of its own. `paperdesk.aio` has the same ones to be
awaited. Nothing heavy is imported before the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from paperdesk.threads import blocking

if TYPE_CHECKING:
    from paperdesk.desk import Desk
    from paperdesk.results import Run, Trail

__all__ = [
    "BudgetReached",
    "ConfigError",
    "CredentialsRefused",
    "DataError",
    "Desk",
    "Interrupted",
    "MalformedData",
    "MissingData",
    "NetworkError",
    "PaperdeskError",
    "Run",
    "StaleData",
    "Trail",
    "TryAgainLater",
    "UsageError",
    "aio",
    "audit",
    "backtest",
    "load",
    "open_desk",
    "runs",
    "tune",
]

backtest = blocking(calls.backtest)
audit = blocking(calls.audit)
tune = blocking(calls.tune)
load = blocking(calls.load)
runs = blocking(calls.runs)
open_desk = blocking(calls.open_desk)

_CLASSES = {"Run": "paperdesk.results", "Trail": "paperdesk.results", "Desk": "paperdesk.desk"}
"""Classes of results by the module that has them, which loads pandas."""


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_CLASSES[name]), name)
