"""Who trades: risk characters as data files, and the one that follows momentum."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Risk = Literal["risk-seeking", "risk-neutral", "risk-averse"]


class Character(BaseModel):
    """A trader's nature, how he trades by it, and his field. Source: TradingGPT §1, figure 3 [G3]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nature: str = Field(min_length=1)
    text: str = Field(min_length=1)
    sectors: tuple[str, ...] = Field(min_length=1)

    @property
    def told(self) -> str:
        """How he trades and what he knows, as his agent is told it beside his nature."""
        return f"{self.text.strip()} The fields that you know best: {', '.join(self.sectors)}."


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
