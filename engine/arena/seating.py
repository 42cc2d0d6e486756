"""Tables as files state them: personas that ask a model, and rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from engine.arena.data_files import data_file_names, read_data_file
from engine.arena.traders import RULES
from engine.settings import Frozen

TABLES = Path(__file__).parent / "tables"
DEFAULT_TABLE = "nine"


class AgentSeat(Frozen):
    """An agent at the table.

    rule: a control of this name; a persona that asks a model where there is none.
    model: the persona's model; None: the run's.
    baseline: asks the run's baseline model, that the others are measured against.
    profession, horizon, input, window, reflects, strategy: of the persona.
    """

    name: str = Field(min_length=1, max_length=24, pattern=r"^[A-Za-z0-9 ._-]+$")
    rule: str | None = None
    model: str | None = None
    baseline: bool = False
    profession: str = Field("a trader", max_length=80)
    horizon: int = Field(1, ge=1, le=50)
    input: Literal["text", "charts", "both"] = "text"
    window: int = Field(10, ge=2, le=60)
    reflects: bool = True
    strategy: str = Field("Try to make as much profit as possible.", max_length=1_200)

    @field_validator("rule")
    @classmethod
    def _known(cls, rule: str | None) -> str | None:
        if rule is not None and rule not in RULES:
            raise ValueError(f"no rule {rule}; there are {', '.join(RULES)}")
        return rule


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
