"""Tables as files state them: personas that ask a model, presets of the cycle, and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from engine.arena.data_files import data_file_names, read_data_file
from engine.arena.traders import RULES
from engine.errors import PaperdeskError, UsageError
from engine.preset import load_preset
from engine.settings.values import Frozen
from engine.strategies.catalog import make_strategy, strategy_class
from engine.strategies.strategy import Fitted, Strategy

TABLES = Path(__file__).parent / "tables"
DEFAULT_TABLE = "nine"


PERSONA = ("profession", "horizon", "input", "window", "reflects", "strategy")
"""The keys of a persona's seat alone."""


class AgentSeat(Frozen):
    """An agent at the table: a rule, a preset, or a persona that asks a model where it is neither.

    rule: a control by its name, or a strategy of backtests by name or FILE.py:CLASS.
    params: of the strategy.
    preset: a preset of the cycle by name or TOML file, which decides every morning as a desk does.
    model: the persona's, or of all agents of the preset; None: the run's.
    baseline: asks the run's baseline model, that the others are measured against.
    profession, horizon, input, window, reflects, strategy: of the persona.
    """

    name: str = Field(min_length=1, max_length=24, pattern=r"^[A-Za-z0-9 ._-]+$")
    rule: str | None = None
    params: dict[str, str | int | Decimal] = {}
    preset: str | None = None
    model: str | None = None
    baseline: bool = False
    profession: str = Field("a trader", max_length=80)
    horizon: int = Field(1, ge=1, le=50)
    input: Literal["text", "charts", "both"] = "text"
    window: int = Field(10, ge=2, le=60)
    reflects: bool = True
    strategy: str = Field("Try to make as much profit as possible.", max_length=1_200)

    @property
    def is_persona(self) -> bool:
        """True for one that is neither a rule nor a preset."""
        return self.rule is None and self.preset is None

    @property
    def is_control(self) -> bool:
        """True for a rule of the arena's own."""
        return self.rule in RULES

    @model_validator(mode="after")
    def _can_sit(self) -> AgentSeat:
        if self.rule is not None and self.preset is not None:
            raise ValueError("a seat has a rule or a preset, not both")
        odd = [] if self.is_persona else sorted(self.model_fields_set.intersection(PERSONA))
        if odd:
            raise ValueError(f"{odd[0]} belongs to a persona, not to a rule or a preset")
        if self.params and (self.rule is None or self.is_control):
            raise ValueError("params belong to a strategy of backtests")
        try:
            if self.preset is not None:
                load_preset(self.preset)
            elif self.rule is not None and not self.is_control:
                seat_strategy(self.rule, self.params)
        except PaperdeskError as error:
            raise ValueError(str(error)) from None
        return self


def seat_strategy(rule: str, params: Mapping[str, object]) -> Strategy:
    """The strategy of a seat's rule. Raises UsageError for one that there is not, for parameters that it has not, and
    for one that has to be fitted: nothing comes before an arena."""
    try:
        strategy_class(rule)
    except UsageError as error:
        raise UsageError(f"no rule {rule} of the arena ({', '.join(RULES)}), and {error}") from None
    strategy = make_strategy(rule, {name: str(value) for name, value in params.items()})
    if isinstance(strategy, Fitted):
        raise UsageError(f"strategy {rule} is fitted before it trades, and nothing comes before an arena")
    return strategy


class Seating(Frozen):
    """The agents of a table, each name once."""

    agents: tuple[AgentSeat, ...] = Field(min_length=2, max_length=500)

    @model_validator(mode="after")
    def _named_once(self) -> Seating:
        names = [agent.name for agent in self.agents]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice[0]} sits at the table twice")
        return self


def table_names() -> Sequence[str]:
    """Names of the tables that ship."""
    return data_file_names(TABLES)


def load_seating(name: str) -> Seating:
    """A table by name or TOML file. Raises UsageError for an unknown name or a faulty file."""
    return read_data_file(Seating, name, TABLES, "table")
