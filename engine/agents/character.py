"""Characters of traders: risk characters as data files, the one that follows momentum, and manners of trading."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.owner import Preference

Risk = Literal["risk-seeking", "risk-neutral", "risk-averse"]


MANNERS: Mapping[Preference, str] = {
    "aggressive": "You are an aggressive trader: you use opportunities early and in size, and accept large swings.",
    "moderate": "You are a moderate trader: you act when evidence of different kinds agrees, with a size to match.",
    "conservative": "You are a conservative trader: you protect capital, want more evidence than others before you "
    "buy, and trade small.",
}
"""Instructions by a trader's preference. Source: FinAgent §4.4 [A8]."""


class Character(BaseModel):
    """A trader's risk nature, manner of trading and sectors. Source: TradingGPT §1, figure 3 [G3]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nature: str = Field(min_length=1)
    text: str = Field(min_length=1)
    sectors: tuple[str, ...] = Field(min_length=1)


@cache
def character(risk: Risk) -> Character:
    """The character of a risk."""
    text = (resources.files("engine.agents") / "characters" / f"{risk}.toml").read_text(encoding="utf-8")
    return Character.model_validate(tomllib.loads(text))


def risk_of(momentum: float | None) -> Risk:
    """The risk character that follows momentum: seeking risk while it is positive, averse to it while it is negative;
    neutral where it is zero or not known, which the paper leaves open. Source: InvestorBench appendix D [I6]."""
    if not momentum:
        return "risk-neutral"
    return "risk-seeking" if momentum > 0 else "risk-averse"
