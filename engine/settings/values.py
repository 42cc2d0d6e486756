"""Settings that several readers share: sizing rules, how an agent asks its model; their faults."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.domain.decision import SizingRule
from engine.domain.text import did_you_mean


class Frozen(BaseModel):
    """Settings that cannot change and know no other keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Band(Frozen):
    """The sizes that a rule allows, in percent of the portfolio, and what must hold for it."""

    smallest: Decimal = Field(ge=0, le=100)
    """The smallest size, in percent of the portfolio's value."""
    largest: Decimal = Field(gt=0, le=100)
    """The largest size, in percent of the portfolio's value."""
    cash_above: Decimal | None = Field(None, ge=0, le=1)
    """Cash that there must be before the trade, as a fraction of the portfolio's value."""

    @model_validator(mode="after")
    def _in_order(self) -> Band:
        if self.smallest > self.largest:
            raise ValueError(f"smallest {self.smallest} is above largest {self.largest}")
        return self


class Sizing(Frozen):
    """Limits of a trade's size. Source: FinVision table 5 [V6]."""

    cash_floor: Decimal = Field(Decimal("0.10"), ge=0, le=1)
    """The fraction of the portfolio's value that stays cash, checked when deciding."""
    allow_short: bool = False
    """Permission to sell more than is held, until short positions are worth the equity."""
    borrow_rate: Decimal = Field(Decimal("0.03"), ge=0, le=10)
    """The yearly cost of shares that are sold short, as a fraction of their value, booked at each open of the simulated
    market."""
    gain_over_cost: Decimal = Decimal("0.05")
    """The gain over average cost from which the rule `gain over 5 %` may be named."""
    gains_in_a_row: int = Field(3, ge=0)
    """Sessions of gains from which the rule `gains three sessions running` may be named."""
    buy: dict[SizingRule, Band] = {}
    """The band of a buy by the rule that the decision names; a rule that is left out allows none."""
    sell: dict[SizingRule, Band] = {}
    """The band of a sale by the rule that the decision names."""
    whole: bool = False
    """Every buy takes all cash above the floor and every sale all that is held: for papers whose actions have no
    size."""
    unruled: Band | None = None
    """The band of a proposal that names no rule, as advice does; none: it is refused. Its largest is the trade of a
    BUY or SELL that comes without a size, where not all is traded."""

    @property
    def unit(self) -> int:
        """Percent of the portfolio that an action without a size trades; 0 where that is all cash or all shares."""
        return 0 if self.whole or self.unruled is None else int(self.unruled.largest)


class AgentSettings(Frozen):
    """Model settings of one agent; the temperature is a wish, dropped where a model takes none."""

    model: str | None = None
    """Model spec, such as `openai:MODEL`; none: the configuration's."""
    temperature: float | None = None
    """Temperature of sampling; none: the model's own."""
    max_output_tokens: int = Field(2048, ge=64, le=64000)
    """Longest answer, in tokens."""
    timeout: float = Field(120.0, gt=0)
    """Seconds after which a call is given up."""
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """Effort of the model's reasoning; none: the model's own."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """Length of its answers at OpenAI; none: the model's own."""
    tier: Literal["auto", "default", "flex", "priority"] | None = None
    """Tier of the vendor's service: flex is slow and half price; none: the run's."""
    thinking: Literal["adaptive", "enabled", "disabled"] | None = None
    """Thinking of Anthropic's models; none: the model's own."""
    fallback: str | None = None
    """Model that answers while this agent's cannot, or has used its budget; none: the run waits."""


WANTED = {
    "missing": "required, but missing",
    "tuple_type": "write a list in brackets",
    "list_type": "write a list in brackets",
    "string_type": "write a text in quotes",
    "model_type": "it is a section, not a value",
    "model_attributes_type": "it is a section, not a value",
    "dict_type": "it is a section, not a value",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
}
"""The form that is wanted in place of a wrong one, by the name that Pydantic has for the fault."""


def complaint(model: type[BaseModel], error: ValidationError) -> str:
    """The first fault of settings on one line; an unknown key with the nearest known one."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        told = WANTED.get(first["type"], first["msg"].removeprefix("Value error, "))
        return f"{where}: {told}".removeprefix(": ")
    known = sorted(_model_at(model, first["loc"][:-1]).model_fields)
    return f"unknown key {where}; {did_you_mean(str(first['loc'][-1]), known)}"


def _model_at(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel]:
    """The model of the table at a path; parts that name no field are the names of tables of one kind."""
    for part in path:
        kinds = _kinds(model, part)
        model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), model)
    return model


def kinds_of(model: type[BaseModel], path: Sequence[int | str]) -> tuple[Any, ...]:
    """The types that the value at a path may be of; none for an unknown one."""
    return _kinds(_model_at(model, path[:-1]), path[-1])


def _kinds(model: type[BaseModel], part: int | str) -> tuple[Any, ...]:
    field = model.model_fields.get(str(part))
    return () if field is None else (field.annotation, *get_args(field.annotation))


class Portfolio(Frozen):
    """The settings of an agent that decides on the whole portfolio. Source: Agent Trading Arena §5.3 [R6]."""

    window: int = Field(10, ge=2, le=60)
    """Sessions of closes that it reads."""
    input: Literal["text", "charts", "both"] = "both"
    """The form of prices: figures, charts (a model that sees none reads figures), or both."""
    strategy: str = Field("Try to make as much profit as possible.", min_length=1, max_length=1200)
    """The strategy of the beginning."""
