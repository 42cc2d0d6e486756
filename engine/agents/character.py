"""Characters of traders as their agents read them: risk nature, manner of trading, profile."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.domain.market import PriceHistory
from engine.market.moves import momentum
from engine.settings import Owner, Preference

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


def fixed_nature(owner: Owner) -> str | None:
    """The nature of a fixed risk character; None where it follows momentum.
    Source: InvestorBench A.1 [I6]; TradingGPT §1 [G3]."""
    fixed = _fixed(owner)
    return None if fixed is None else fixed.nature


def manner_of(owner: Owner, preference: Preference | None = None) -> str:
    """The owner's way of trading beside its nature: that of a fixed risk character, the fields that it knows best, its
    preference where an agent has no other way to learn of it, its own character, and its horizon. Only a fixed risk
    character has fields of its own. Source: TradingGPT §1 [G3]."""
    fixed = _fixed(owner)
    sectors = owner.sectors or (() if fixed is None else fixed.sectors)
    parts = (
        "" if fixed is None else fixed.text.strip(),
        f"The fields that you know best: {', '.join(sectors)}." if sectors else "",
        MANNERS[preference] if preference else "",
        owner.character.strip(),
        f"You judge a position by what it does over about {owner.horizon} sessions." if owner.horizon else "",
    )
    return " ".join(part for part in parts if part)


def describe(owner: Owner, bars: PriceHistory) -> str:
    """The whole character as one text, empty for an owner that has none."""
    nature = fixed_nature(owner)
    if owner.risk == "momentum":
        nature = character(risk_of(momentum(bars))).nature
    return " ".join(part for part in (nature, manner_of(owner)) if part)


def profile_of(owner: Owner, asset: str) -> str:
    """The owner's knowledge: of its assets in general, then of the one that it decides on."""
    return "\n".join(part for part in (owner.profile.strip(), asset) if part)


def _fixed(owner: Owner) -> Character | None:
    return None if owner.risk is None or owner.risk == "momentum" else character(owner.risk)
