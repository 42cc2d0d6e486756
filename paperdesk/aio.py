"""The functions of the library that take long, to be awaited: `await paperdesk.aio.backtest(...)`."""

from __future__ import annotations

from paperdesk import calls
from paperdesk.threads import awaited

__all__ = ["audit", "backtest", "compare", "study", "tune"]

backtest = awaited(calls.backtest)
audit = awaited(calls.audit)
compare = awaited(calls.compare)
study = awaited(calls.study)
tune = awaited(calls.tune)
