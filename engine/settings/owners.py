"""Settings of owners of opinions and of the debates between them, and characters, which are data files."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from engine.domain.text import did_you_mean
from engine.errors import ConfigError
from engine.settings.values import Frozen, complaint

Risk = Literal["momentum", "risk-seeking", "risk-neutral", "risk-averse"]
Preference = Literal["aggressive", "moderate", "conservative"]
OwnerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,23}$")]
"""Part of order ids: brokers limit their length, and a dash separates their parts."""
Sector = Annotated[str, StringConstraints(min_length=1, max_length=60)]
FundName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{0,24}$")]
EvidenceKind = Literal["prices", "news", "filings", "macro", "commentary", "lessons"]
"""Kinds of evidence that a character weighs: the trend of the price, and what memory holds."""
Weight = Annotated[float, Field(ge=-3, le=3)]


class Character(Frozen):
    """A character as a data file: temperament, risk appetite, horizon, fields, and the evidence that it prefers.
    Source: TradingGPT §1, figure 3 [G3]."""

    nature: str = Field(min_length=1, max_length=400)
    """Its temperament in one sentence."""
    text: str = Field(min_length=1, max_length=600)
    """Its manner of trading, in a few sentences."""
    sectors: tuple[Sector, ...] = Field((), max_length=8)
    """The fields that it knows best."""
    risk: Risk | None = None
    """Its risk appetite; none: the preset's."""
    horizon: int | None = Field(None, ge=1, le=250)
    """The sessions over which it judges a position."""
    evidence: dict[EvidenceKind, Weight] = {}
    """The weight of each kind of evidence, 1 where it is left out; a negative one reads it the other way round."""
    model: str | None = None
    """Model of its agents, as `openai:MODEL`; none: the agents' own."""
    reference_fund: FundName = ""
    """The fund whose trades guide it in training. Source: TradingGPT §4.2.1 [G8]."""


class Owner(Frozen):
    """The settings of one owner. Those that it leaves out are the preset's."""

    weight: Decimal = Field(Decimal(1), gt=0, le=1000)
    """The weight of its opinion beside the others'; with `books` its share of the starting cash."""
    risk: Risk | None = None
    """The risk character, as the preset's `risk`."""
    preference: Preference | None = None
    """The manner of trading, as the preset's `preference`."""
    character: Character | Annotated[str, StringConstraints(max_length=600)] = ""
    """A character that ships, a TOML file of one (relative to the preset's), or a character in words of the user's,
    which is told to the owner's agents after its risk character."""
    sectors: tuple[Sector, ...] = Field((), max_length=8)
    """The fields that it knows best, in place of those of its risk character. Source: TradingGPT §1 [G3]."""
    horizon: int | None = Field(None, ge=1, le=250)
    """The sessions over which it judges a position."""
    profile: str = Field("", max_length=2000)
    """Its knowledge of its assets, told before the profile of the asset that it decides on."""
    sector_focus: tuple[Sector, ...] = Field((), max_length=8)
    """The sectors that it decides on, by the preset's `symbol_sectors`; none: all symbols. Source: TradingGPT §1
    [G3]."""
    model: str | None = None
    """Model of its agents; none: its character's, else the agents' own."""
    reference_fund: FundName = ""
    """The fund whose trades guide it in training; none: its character's, else the preset's."""

    @property
    def traits(self) -> Character | None:
        """The character of a file; None for one in words."""
        return self.character if isinstance(self.character, Character) else None

    @property
    def description(self) -> str:
        """The character in words of the user's; empty where it is a file's."""
        return self.character if isinstance(self.character, str) else ""

    @property
    def fund(self) -> str:
        """The fund whose trades guide it in training; empty where only the preset names one."""
        return self.reference_fund or (self.traits.reference_fund if self.traits is not None else "")


def owners_by_name(owners: object) -> object:
    """Owners that are given as a list of names, as a table; anything else as it is. Raises ValueError for a name that
    comes twice."""
    if not isinstance(owners, list | tuple) or not all(isinstance(name, str) for name in owners):
        return owners
    if len(set(owners)) < len(owners):
        raise ValueError("an owner is named twice")
    return {name: {} for name in owners}


def extended(old: Any, new: Any) -> Any:
    """The owners or tools of a preset that extends another, as TOML gives them: tables add to those that there are, a
    list of names chooses among them."""
    known = {name: {} for name in old} if isinstance(old, list) else old
    if not isinstance(known, dict):
        return new
    if isinstance(new, list) and all(isinstance(name, str) for name in new) and len(set(new)) == len(new):
        return {name: known.get(name, {}) for name in new}
    if not isinstance(new, dict):
        return new
    tables = {name: {**known.get(name, {}), **own} if isinstance(own, dict) else own for name, own in new.items()}
    return {**known, **tables}


CHARACTERS = "engine.agents", "characters"
"""Package and folder of the characters that ship."""


@cache
def shipped_character(name: str) -> Character:
    """A character that ships. Raises ConfigError, which names the nearest one."""
    folder = _shipped()
    entry = folder / f"{name}.toml"
    if not entry.is_file():
        hint = did_you_mean(name, character_names())
        raise ConfigError(f"no character {name}; {hint}; a character in words has more than one")
    return _character_in(entry, name)


def character_names() -> tuple[str, ...]:
    """All characters that ship, sorted."""
    return tuple(sorted(Path(entry.name).stem for entry in _shipped().iterdir() if entry.name.endswith(".toml")))


def with_characters(owners: Any, folder: Path) -> Any:
    """Owners as TOML gives them, each character that is a name or a file read in its place; files are relative to
    `folder`. Raises ConfigError for a file or a name that is no character."""
    if not isinstance(owners, dict):
        return owners
    return {name: _with_character(own, folder) if isinstance(own, dict) else own for name, own in owners.items()}


def _with_character(owner: dict[str, Any], folder: Path) -> dict[str, Any]:
    named = owner.get("character")
    if not isinstance(named, str) or not named or (len(named.split()) > 1 and not named.endswith(".toml")):
        return owner
    if named.endswith(".toml"):
        path = folder / Path(named).expanduser()
        if not path.is_file():
            raise ConfigError(f"character {named}: file not found: {path}")
        character = _character_in(path, named)
    else:
        character = shipped_character(named)
    return owner | {"character": character.model_dump(exclude_defaults=True)}


def _character_in(entry: Traversable, name: str) -> Character:
    try:
        return Character.model_validate(tomllib.loads(entry.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"character {name}: not TOML: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"character {name}: {complaint(Character, error)}") from None


def _shipped() -> Traversable:
    package, folder = CHARACTERS
    return resources.files(package) / folder


class DebateSettings(Frozen):
    """The debate of several owners on a symbol that they share. Source: TradingGPT §4.1.3, §4.2 [G6, G8]."""

    when: Literal["training-after, test-before", "before", "after"] = "training-after, test-before"
    """Before the decision, which it feeds, or after the trade, where its comments are only remembered: by the paper
    after it in training and before it in the test."""
    rounds: int = Field(1, ge=1, le=10)
    """The most rounds of a debate that feeds the decision; one after the trade has one."""
    stop: Literal["agreement", "no-change"] = "no-change"
    """It ends early where all owners give the same advice, or where a round has changed nobody's."""
    budget: int = Field(60, ge=0, le=10_000)
    """The most questions to agents in the debate of one symbol and session; a round that does not fit does not
    begin."""
    shown: int = Field(3, ge=0, le=20)
    """Memories of each layer that an owner shows the others: the first that were recalled for it."""
    reference: int = Field(5, ge=0, le=60)
    """Sessions of earlier reflections and debates that are a reference when an owner reconsiders: a week."""
    size: Literal["advice", "agreement", "confidence"] = "advice"
    """The size of a trade: its advice's trade value; the same made smaller by the distance to the others' advice; or
    made smaller by the stated confidence."""
