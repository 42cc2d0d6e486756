"""An owner of opinions: the settings of one of those who decide, as a preset gives them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from engine.settings import Frozen

Risk = Literal["momentum", "risk-seeking", "risk-neutral", "risk-averse"]
Preference = Literal["aggressive", "moderate", "conservative"]
OwnerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,23}$")]
"""Part of order ids: brokers limit their length, and a dash separates their parts."""
Sector = Annotated[str, StringConstraints(min_length=1, max_length=60)]


class Owner(Frozen):
    """The settings of one owner. Those that it leaves out are the preset's."""

    weight: Decimal = Field(Decimal(1), gt=0, le=1000)
    """The weight of its opinion beside the others'; with `books` its share of the starting cash."""
    risk: Risk | None = None
    """The risk character, as the preset's `risk`."""
    preference: Preference | None = None
    """The manner of trading, as the preset's `preference`."""
    character: str = Field("", max_length=600)
    """A character in words of the user's, told to the owner's agents after its risk character."""
    sectors: tuple[Sector, ...] = Field((), max_length=8)
    """The fields that it knows best, in place of those of its risk character. Source: TradingGPT §1 [G3]."""
    horizon: int | None = Field(None, ge=1, le=250)
    """The sessions over which it judges a position."""
    profile: str = Field("", max_length=2000)
    """Its knowledge of its assets, told before the profile of the asset that it decides on."""


def owners_by_name(owners: object) -> object:
    """Owners that are given as a list of names, as a table; anything else as it is. Raises ValueError for a name that
    comes twice."""
    if not isinstance(owners, list | tuple) or not all(isinstance(name, str) for name in owners):
        return owners
    if len(set(owners)) < len(owners):
        raise ValueError("an owner is named twice")
    return {name: {} for name in owners}


def extended_owners(old: Any, new: Any) -> Any:
    """The owners of a preset that extends another, as TOML gives them: tables add to the owners there are, a list of
    names chooses among them."""
    known = {name: {} for name in old} if isinstance(old, list) else old
    if not isinstance(known, dict):
        return new
    if isinstance(new, list) and all(isinstance(name, str) for name in new) and len(set(new)) == len(new):
        return {name: known.get(name, {}) for name in new}
    if not isinstance(new, dict):
        return new
    tables = {name: {**known.get(name, {}), **own} if isinstance(own, dict) else own for name, own in new.items()}
    return {**known, **tables}
