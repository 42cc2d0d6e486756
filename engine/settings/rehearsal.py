"""Settings of a rehearsal, which a desk has to pass before it trades an account: `[rehearsal]` of a preset."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Self

from pydantic import Field, model_validator

from engine.domain.market import Symbol
from engine.settings.values import Frozen


class Bounds(Frozen):
    """The bounds of a part, each a fraction; at least one is set."""

    min_return: Decimal | None = Field(None, gt=-1)
    """The least total return: -0.05 allows a loss of 5 %."""
    max_drawdown: Decimal | None = Field(None, ge=0, le=1)
    """The greatest fall from a peak of the value."""
    max_abstentions: Decimal | None = Field(None, ge=0, le=1)
    """The greatest share of decisions without a valid answer."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min_return is None and self.max_drawdown is None and self.max_abstentions is None:
            raise ValueError("it has no bound: set min_return, max_drawdown or max_abstentions")
        return self


class BacktestRehearsal(Bounds):
    """The backtest of a rehearsal. `first` and `last` are the sessions of filling and valuing."""

    symbols: tuple[Symbol, ...] = ()
    """Its symbols; the desk's where none are named."""
    first: date
    """First session that fills and is valued."""
    last: date
    """Last session that fills and is valued."""
    warm_up_from: date | None = None
    """First session of the warm-up; none without."""
    convention: str = "desk"
    """Its fills, costs and metrics."""


class ArenaRehearsal(Bounds):
    """The arena of a rehearsal: the desk's preset sits down at its table, with its own models and memory."""

    market: str = "constant"
    """Preset of the arena's market, by name or TOML file."""
    agents: str = "controls"
    """Table of the arena, by name or TOML file; the bounds hold for the desk that joins it."""
    days: int | None = Field(None, gt=0, le=1000)
    """Length in days; the market's where none is named."""
    seed: int = Field(0, ge=0)
    """Seed of everything that is drawn."""


class Rehearsal(Frozen):
    """The rehearsal of a preset: a backtest, an arena, or both."""

    backtest: BacktestRehearsal | None = None
    """The backtest that has to be passed."""
    arena: ArenaRehearsal | None = None
    """The arena that has to be passed."""

    @model_validator(mode="after")
    def _has_a_part(self) -> Self:
        if self.backtest is None and self.arena is None:
            raise ValueError("it has no part: set [rehearsal.backtest] or [rehearsal.arena]")
        return self
