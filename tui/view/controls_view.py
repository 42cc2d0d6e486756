"""Halt, pause and open orders of a journal, as screens show them at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from engine.domain.run import TradingMode

if TYPE_CHECKING:
    from engine.domain.market import Symbol
    from engine.ports import Calendar
    from engine.reports.documents.control_state import ControlState
    from engine.reports.documents.records import Records


def controls_at(
    records: Records,
    *,
    mode: TradingMode,
    calendar: Calendar | None,
    symbols: Sequence[Symbol],
    now: datetime,
    real_time: bool = False,
) -> ControlState:
    """The controls as records have them; `calendar` is the exchange's, None where every symbol trades around the
    clock, `now` is UTC. Raises what JournalReader raises."""
    from engine.execution.controls import OrderTimes
    from engine.market.trading_hours import AroundTheClock
    from engine.reports.documents.controls import control_state

    return control_state(
        records.reader,
        asks=mode is TradingMode.ASK,
        times=OrderTimes(calendar or AroundTheClock(), symbols, real_time),
        now=now,
    )
