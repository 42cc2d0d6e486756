"""An owner's traits as its agents read them: risk character, manner, profile."""

from __future__ import annotations

from engine.agents.character import MANNERS, Character, character, risk_of
from engine.domain.market import PriceHistory
from engine.market.moves import momentum
from engine.owner import Owner, Preference


def fixed_nature(owner: Owner) -> str | None:
    """The nature of a fixed risk character; None where it follows momentum.
    Source: InvestorBench A.1 [I6]; TradingGPT §1 [G3]."""
    fixed = _fixed(owner)
    return None if fixed is None else fixed.nature


def manner(owner: Owner, preference: Preference | None = None) -> str:
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


def described(owner: Owner, bars: PriceHistory) -> str:
    """The whole character as one text, empty for an owner that has none."""
    nature = fixed_nature(owner)
    if owner.risk == "momentum":
        nature = character(risk_of(momentum(bars))).nature
    return " ".join(part for part in (nature, manner(owner)) if part)


def profile(owner: Owner, asset: str) -> str:
    """The owner's knowledge: of its assets in general, then of the one that it decides on."""
    return "\n".join(part for part in (owner.profile.strip(), asset) if part)


def _fixed(owner: Owner) -> Character | None:
    return None if owner.risk is None or owner.risk == "momentum" else character(owner.risk)
