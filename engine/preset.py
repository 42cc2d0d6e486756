"""A preset: one short TOML file that says which steps of the one cycle run, and with which numbers.

The papers are presets; an ablation is a preset with a line changed (`extends` and `without`).
"""

from __future__ import annotations

import difflib
import tomllib
from decimal import Decimal
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.domain.briefing import Briefing, ExpertNote
from engine.domain.decision import SizingRule
from engine.domain.five_level import TradeValues
from engine.errors import ConfigError, UsageError

STEPS = (
    "news",
    "intelligence",
    "macro",
    "memory",
    "diversified",
    "past",
    "vision",
    "chart",
    "tools",
    "low-level",
    "high-level",
    "performance-reflection",
    "signal-reflection",
    "extended",
    "immediate",
)
"""What a preset may have and an ablation may leave out, in the order of the cycle. `macro` hands figures of the
economy to intelligence and to memory, `diversified` asks memory once per retrieval type, `vision` lets models that see
look at charts; the rest are steps."""

_QUESTIONS = {
    "news": ("news",),
    "intelligence": ("market-intelligence",),
    "past": ("past-intelligence",),
    "chart": ("chart",),
    "low-level": ("low-level-reflection",),
    "high-level": ("high-level-reflection",),
    "performance-reflection": ("short-term reflection", "medium-term reflection"),
    "signal-reflection": ("signal-reflection",),
    "extended": ("extended-reflection",),
    "immediate": ("immediate-reflection",),
}
"""The questions that a step asks, by the names under which events tell of them."""

GROUPS = {
    "reflections": ("performance-reflection", "signal-reflection", "low-level", "high-level", "extended"),
    "memory": ("memory", "diversified", "past"),
}
"""Names under which an ablation leaves out several."""

HIDDEN = frozenset({"leaky-test"})
"""Presets that exist to be caught."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Band(_Frozen):
    """The sizes that a rule allows, in percent of the portfolio, and what must hold for it."""

    smallest: Decimal = Field(ge=0, le=100)
    largest: Decimal = Field(gt=0, le=100)
    cash_above: Decimal | None = Field(None, ge=0, le=1)
    """Cash that there must be before the trade, as a fraction of the portfolio's value."""

    @model_validator(mode="after")
    def _in_order(self) -> Band:
        if self.smallest > self.largest:
            raise ValueError(f"smallest {self.smallest} is above largest {self.largest}")
        return self


class Sizing(_Frozen):
    """How much may be traded. Source: FinVision table 5 [V6]."""

    cash_floor: Decimal = Field(Decimal("0.10"), ge=0, le=1)
    """The fraction of the portfolio's value that stays cash, checked when deciding."""
    allow_short: bool = False
    gain_over_cost: Decimal = Decimal("0.05")
    """The gain over average cost from which the rule `gain over 5 %` may be named."""
    gains_in_a_row: int = Field(3, ge=0)
    """Sessions of gains from which the rule `gains three sessions running` may be named."""
    buy: dict[SizingRule, Band] = {}
    sell: dict[SizingRule, Band] = {}
    whole: bool = False
    """Every buy takes all cash above the floor and every sale all that is held: for papers whose actions have no
    size."""
    unruled: Band | None = None
    """The band of a proposal that names no rule, as advice in levels does; none: it is refused."""


class Windows(_Frozen):
    """How far back each agent sees, in sessions."""

    chart: int = Field(60, ge=5, le=400)
    signal_chart: int = Field(30, ge=5, le=400)
    short_term: int = Field(5, ge=1, le=60)
    medium_term: int = Field(20, ge=1, le=250)
    history: int = Field(10, ge=1, le=250)


class AgentSettings(_Frozen):
    """How one agent asks its model: the temperature is a wish, dropped where a model takes none."""

    model: str | None = None
    temperature: float | None = None
    max_output_tokens: int = Field(2048, ge=64, le=64000)
    timeout: float = Field(120.0, gt=0)


class Preset(_Frozen):
    """One way of running the cycle."""

    name: str
    title: str
    source: str = ""
    steps: tuple[str, ...]
    expected: tuple[str, ...] = ()
    """The steps before an ablation left some out: the decision is told what it has to do without."""
    decision: Literal["sized", "evidence", "three-way", "five-level"] = "sized"
    """FinVision's sized decision, the same with the memories that it rests on, or the advice of the immediate
    reflection: buy, sell or hold, or one of five levels."""
    advice: TradeValues = TradeValues()
    """What each of the five levels trades, in percent of the portfolio. Source: TradingGPT §4.1.2 [G4]."""
    risk: Literal["momentum", "risk-seeking", "risk-neutral", "risk-averse"] | None = None
    """The risk character: it follows momentum, or is fixed. An immediate reflection without one follows momentum.
    Source: InvestorBench A.1 [I6]."""
    memory: str = "desk"
    """The constants of memory (memory/presets.py)."""
    tools: tuple[str, ...] = ()
    """Rule strategies whose signal and explanation the decision reads."""
    preference: Literal["aggressive", "moderate", "conservative"] = "moderate"
    profiles: dict[str, str] = {}
    """What is known of assets and their sectors, by symbol. Source: InvestorBench A.1 [I6]."""
    instruction: str = ""
    """A standing instruction for the decision with evidence."""
    guidance: tuple[ExpertNote, ...] = ()
    """What experts wrote; a tool among the tools. Source: FinAgent §4.4 [A7]."""
    sizing: Sizing
    windows: Windows = Windows()
    agents: dict[str, AgentSettings] = {}
    owners: tuple[str, ...] = Field(("desk",), min_length=1)
    peek: bool = False
    """Whether the cycle is allowed to read tomorrow's close: only the preset that the audit must catch."""

    @property
    def questions(self) -> tuple[str, ...]:
        """What its agents are asked about a symbol, in order, as the events of the cycle name it."""
        asked = [name for step in STEPS if step in self.steps for name in _QUESTIONS.get(step, ())]
        return (*asked, "decision") if self.decision in ("sized", "evidence") else tuple(asked)

    def without(self, steps: tuple[str, ...]) -> Preset:
        """The ablation that leaves some steps out; raises UsageError for a step that does not exist."""
        known = (*STEPS, *(group for group in GROUPS if group not in STEPS))
        gone: set[str] = set()
        for step in steps:
            if step not in known:
                near = difflib.get_close_matches(step, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise UsageError(f"--without {step}: no such step (there are {', '.join(known)}){hint}")
            gone.update(GROUPS.get(step, (step,)))
        left = tuple(s for s in self.steps if s not in gone)
        return self.model_copy(update={"steps": left, "expected": self.expected or self.steps})


def briefed(preset: Preset, briefing: Briefing | None) -> Preset:
    """The preset with what the desk's user tells its agents: his words go before its own."""
    if briefing is None:
        return preset
    own: dict[str, Any] = {
        "risk": briefing.risk,
        "preference": briefing.preference,
        "tools": briefing.tools,
        "instruction": briefing.instruction or None,
        "guidance": briefing.guidance or None,
    }
    changes = {name: value for name, value in own.items() if value is not None}
    return preset.model_copy(update={**changes, "profiles": preset.profiles | dict(briefing.profiles)})


def preset_names() -> tuple[str, ...]:
    """All presets that ship, sorted, without the hidden ones."""
    folder = resources.files("engine") / "presets"
    names = (Path(entry.name).stem for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(n for n in names if n not in HIDDEN))


@cache
def load_preset(name: str) -> Preset:
    """A preset by name, or by path to a TOML file. Raises UsageError for an unknown name, ConfigError for a file
    that does not say what a preset says."""
    plain = _read(name)
    removed = tuple(plain.pop("without", ()))
    try:
        preset = Preset.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"preset {name}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
    unknown = [step for step in preset.steps if step not in STEPS]
    if unknown:
        raise ConfigError(f"preset {name}: steps: no such step: {unknown[0]} (there are {', '.join(STEPS)})")
    try:
        return preset.without(removed)
    except UsageError as error:
        raise ConfigError(f"preset {name}: {error}") from None


def _read(name: str, extended_by: tuple[str, ...] = ()) -> dict[str, Any]:
    if name in extended_by:
        raise ConfigError(f"preset {extended_by[0]} extends itself, by way of {extended_by[-1]}")
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"no preset file {name}; give a name ({', '.join(preset_names())}) or an existing file")
        entry: Traversable = path
    else:
        entry = resources.files("engine") / "presets" / f"{name}.toml"
        if not entry.is_file():
            near = difflib.get_close_matches(name, preset_names(), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(preset_names())}"
            raise UsageError(f"no preset {name}; {hint}")
    try:
        plain = tomllib.loads(entry.read_text(encoding="utf-8"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"preset {name}: not TOML: {error}") from None
    parent = plain.pop("extends", None)
    return plain if parent is None else _merged(_read(str(parent), (*extended_by, name)), plain)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
