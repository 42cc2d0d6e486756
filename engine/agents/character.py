"""Characters of traders as their agents read them: temperament, manner of trading, preferred evidence, profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.domain.market import PriceHistory
from engine.market.figures import momentum
from engine.settings.owners import Character, EvidenceKind, Owner, Preference, shipped_character

Risk = Literal["risk-seeking", "risk-neutral", "risk-averse"]


MANNERS: Mapping[Preference, str] = {
    "aggressive": "You are an aggressive trader: you use opportunities early and in size, and accept large swings.",
    "moderate": "You are a moderate trader: you act when evidence of different kinds agrees, with a size to match.",
    "conservative": "You are a conservative trader: you protect capital, want more evidence than others before you "
    "buy, and trade small.",
}
"""Instructions by a trader's preference. Source: FinAgent §4.4 [A8]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The part of a character that rules without a model go by; models read it as a text.

    risk: risk appetite; None where only the text of the character tells it.
    horizon: sessions over which a position is judged; None where none is named.
    evidence: weight by kind of evidence, 1 for a kind that is not named.
    """

    risk: Risk | None = None
    horizon: int | None = None
    evidence: tuple[tuple[EvidenceKind, float], ...] = ()

    def weight(self, kind: EvidenceKind) -> float:
        """The weight of a kind of evidence; negative where it is read the other way round."""
        return dict(self.evidence).get(kind, 1.0)


NO_TRAITS = Traits()


def character(risk: Risk) -> Character:
    """The character of a risk."""
    return shipped_character(risk)


def risk_of(momentum: float | None) -> Risk:
    """The risk character that follows momentum: seeking risk while it is positive, averse to it while it is negative;
    neutral where it is zero or not known, which the paper leaves open. Source: InvestorBench appendix D [I6]."""
    if not momentum:
        return "risk-neutral"
    return "risk-seeking" if momentum > 0 else "risk-averse"


def traits_of(owner: Owner) -> Traits:
    """The traits of an owner whose character is a file; without one those that count for everybody."""
    file = owner.traits
    if file is None:
        return NO_TRAITS
    risk: Risk | None = None if owner.risk is None or owner.risk == "momentum" else owner.risk
    return Traits(risk=risk, horizon=owner.horizon, evidence=tuple(file.evidence.items()))


def fixed_nature(owner: Owner) -> str | None:
    """The nature of a character that is a file, or of a fixed risk character; None where it follows momentum.
    Source: InvestorBench A.1 [I6]; TradingGPT §1 [G3]."""
    fixed = _fixed(owner)
    return None if fixed is None else fixed.nature


def manner_of(owner: Owner, preference: Preference | None = None) -> str:
    """The owner's way of trading beside its nature: that of its character, the fields that it knows best, its
    preference where an agent has no other way to learn of it, its own words, its horizon, and the evidence that it
    prefers. Source: TradingGPT §1 [G3]."""
    fixed = _fixed(owner)
    sectors = owner.sectors or (() if fixed is None else fixed.sectors)
    parts = (
        "" if fixed is None else fixed.text.strip(),
        f"The fields that you know best: {', '.join(sectors)}." if sectors else "",
        MANNERS[preference] if preference else "",
        owner.description.strip(),
        f"You judge a position by what it does over about {owner.horizon} sessions." if owner.horizon else "",
        _preferred(owner),
    )
    return " ".join(part for part in parts if part)


def describe(owner: Owner, bars: PriceHistory) -> str:
    """The whole character as one text, empty for an owner that has none."""
    nature = fixed_nature(owner)
    if owner.traits is None and owner.risk == "momentum":
        nature = character(risk_of(momentum(bars))).nature
    return " ".join(part for part in (nature, manner_of(owner)) if part)


def profile_of(owner: Owner, asset: str) -> str:
    """The owner's knowledge: of its assets in general, then of the one that it decides on."""
    return "\n".join(part for part in (owner.profile.strip(), asset) if part)


_NAMES: Mapping[EvidenceKind, str] = {
    "prices": "the trend of the price",
    "news": "news",
    "filings": "filings",
    "macro": "figures of the economy",
    "commentary": "commentary of funds",
    "lessons": "your own lessons",
}


def _preferred(owner: Owner) -> str:
    """The evidence that a character prefers, in a sentence."""
    if owner.traits is None or not owner.traits.evidence:
        return ""
    weights = owner.traits.evidence
    sides = (
        ("Most weight has for you: ", [_NAMES[kind] for kind, weight in weights.items() if weight > 1]),
        ("Little weight has: ", [_NAMES[kind] for kind, weight in weights.items() if 0 <= weight < 1]),
        ("You read the other way round: ", [_NAMES[kind] for kind, weight in weights.items() if weight < 0]),
    )
    return " ".join(f"{head}{', '.join(names)}." for head, names in sides if names)


def _fixed(owner: Owner) -> Character | None:
    if owner.traits is not None:
        return owner.traits
    return None if owner.risk is None or owner.risk == "momentum" else character(owner.risk)
