"""A preset: one short TOML file that says which steps of the one cycle run, and with which numbers.

The papers are presets; an ablation is a preset with a line changed (`extends` and `without`).

Settings of memory: the `[memory]` table of a preset, which changes constants of one of the papers' memories.

Settings of a rehearsal, which a desk has to pass before it trades an account: `[rehearsal]` of a preset.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from engine.agents.agent import Agent
from engine.agents.portfolio import PORTFOLIO_STEPS
from engine.agents.reflections import BOTH_TERMS, PERFORMANCE
from engine.agents.registry import Agents, ablations, inputs_of, registered, step_groups, steps_of
from engine.domain.decision import DESK, HORIZON_TYPES, RetrievalType, TradeValues
from engine.domain.market import Symbol
from engine.domain.run import Briefing, ExpertNote
from engine.domain.text import cut_between_words, did_you_mean
from engine.errors import ConfigError, UsageError
from engine.settings import owners as owner_settings
from engine.settings import values as settings
from engine.settings.shipped_presets import shipped_presets
from engine.settings.user_code import Kind, is_file_reference, load_name
from engine.settings.values import Frozen
from engine.strategies.catalog import make_rule
from memory.errors import UnknownPreset
from memory.presets import FeedbackRule, Measure, MemoryPreset, Ranking, Relevancy, Reward, preset_named
from memory.record import Layer

_ABOUT = 160
"""Characters of what an asset is, beside its ticker."""
Unit = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[float, Field(ge=0, le=100)]


class MemoryLayer(Frozen):
    """Constants of one layer of memory; what is left out is the base's."""

    stability: float | None = Field(None, gt=0)
    """Q of recency, in sessions: recency is exp(-age / Q)."""
    alpha: float | None = Field(None, gt=0, le=1)
    """Decay factor of importance per session."""
    draws: tuple[tuple[Importance, Unit], ...] | None = Field(None, min_length=1)
    """Initial importances, each with its probability; they add up to 1."""
    promote_at: float | None = None
    """Value from which a memory goes a layer deeper."""
    demote_below: float | None = None
    """Value below which a memory sinks a layer."""
    least_on_entry: Importance | None = None
    """Lowest importance of a memory that was promoted."""
    weights: tuple[float, float, float] | None = None
    """Weights of recency, relevancy and importance, for the weighted ranking."""
    k: int | None = Field(None, ge=1, le=100)
    """Memories recalled per query of this layer, where they are not as many as of the others."""

    @model_validator(mode="after")
    def _certain(self) -> MemoryLayer:
        if self.draws is not None and abs(sum(chance for _, chance in self.draws) - 1) > 1e-9:
            raise ValueError("the probabilities of draws do not add up to 1")
        return self


class MemoryBirth(Frozen):
    """Beginning of the memories of one kind of source; what is left out is the base's."""

    layer: Layer | None = None
    """Initial layer."""
    importance: Importance | None = None
    """Initial importance, in place of a draw."""
    spread: Importance | None = None
    """Importance that a model's rating adds or takes at most."""
    deeper: tuple[tuple[Unit, Layer], ...] | None = None
    """Ratings, rising, from which a memory begins in another layer."""


class Memory(Frozen):
    """Constants of memory: those of a base and what differs from it; what is left out is the base's."""

    base: str = "desk"
    """The constants that it begins with: `desk`, `investorbench`, `investorbench-code`, `finmem-code`, `tradinggpt` or
    `finagent`."""
    k: int | None = Field(None, ge=1, le=100)
    """Memories recalled per layer and query."""
    ranking: Ranking | None = None
    """Order of recalled memories."""
    relevancy: Relevancy | None = None
    """Measure of what a memory has to do with a query: `cosine` of their vectors (the papers'), or `lexical`, by the
    words that they share, fused with the vectors where memory.embedder goes by meaning."""
    measure: Measure | None = None
    """The value that the thresholds of the layers bound."""
    reward: Reward | None = None
    """Effect of an outcome on the memories that its decision cited."""
    reward_points: float | None = Field(None, ge=0)
    """Importance that one reward adds."""
    penalty_points: float | None = Field(None, ge=0)
    """Importance that a cost takes, where rewards are signed."""
    feedback: FeedbackRule | None = None
    """Measure of a decision before it rewards what it cited: its direction times the move over the horizon beyond the
    noise, the profit of the horizon, or its direction times large moves alone."""
    feedback_horizon: int | None = Field(None, ge=1, le=60)
    """Sessions after which a decision is judged; a memory is rewarded once in as many."""
    feedback_noise: float | None = Field(None, ge=0)
    """Moves that reward nobody, in daily deviations times the root of the horizon."""
    feedback_large: float | None = Field(None, ge=0)
    """Moves above which `large` rewards, in daily deviations."""
    purge_recency: Unit | None = None
    """Recency below which a memory is purged."""
    purge_importance: Importance | None = None
    """Importance below which a memory is purged."""
    purge_retention: Importance | None = None
    """Retention score below which a memory is purged."""
    multi_layer_moves: bool | None = None
    """True where a memory may pass several layers in one session."""
    importance_by_layer: bool | None = None
    """True where a layer sets the importance of whatever enters it."""
    renewed_on_demotion: bool | None = None
    """True where recency is 1 again in the layer that a memory falls into."""
    floor_kinds: tuple[str, ...] | None = None
    """Kinds that never sink below the layer of their birth."""
    duplicate_similarity: Unit | None = None
    """Cosine from which recalled memories count as duplicates."""
    restated_similarity: Unit | None = None
    """Cosine from which a reflection with the same figures says what an earlier one said: it touches the earlier one in
    place of being stored."""
    layers: dict[Layer, MemoryLayer] = {}
    """Constants of the layers that differ."""
    births: dict[str, MemoryBirth] = {}
    """Beginnings of the kinds of sources that differ."""

    @model_validator(mode="after")
    def _of_a_base(self) -> Memory:
        try:
            _ = self.constants
        except UnknownPreset as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def constants(self) -> MemoryPreset:
        """All constants, those of the base included."""
        base, own = preset_named(self.base), self.model_dump(exclude_defaults=True, exclude={"base"})
        names = ", ".join(_keys(own))
        return base.changed(own | {"source": f"{base.source}; changed: {names}"}) if names else base


def _keys(table: dict[str, Any]) -> Iterator[str]:
    """Names of a table's values, those of inner tables with a dot."""
    for key, value in table.items():
        yield from (f"{key}.{inner}" for inner in _keys(value)) if isinstance(value, dict) else (key,)


HIDDEN = frozenset({"leaky-test", "finmem-whole"})
"""Presets that are not offered: one exists to be caught, the other is a row of a table."""


class Windows(settings.Frozen):
    """The lookback of each agent, in sessions."""

    chart: int = Field(60, ge=5, le=400)
    """Bars of the price chart."""
    signal_chart: int = Field(30, ge=5, le=400)
    """Bars of the charts with past signals or trades."""
    short_term: int = Field(5, ge=1, le=60)
    """Outcomes that the short-term reflection reads."""
    medium_term: int = Field(20, ge=1, le=250)
    """Outcomes that the medium-term and the high-level reflection read."""
    extended: int = Field(5, ge=1, le=250)
    """Outcomes that the extended reflection reads: a week in TradingGPT, longer in FinMem."""
    history: int = Field(10, ge=1, le=250)
    """Outcomes that the decision reads."""


class Preset(settings.Frozen):
    """One way of running the cycle."""

    name: str
    """The name in runs and reports."""
    title: str
    """One line about it."""
    source: str = ""
    """The papers that it follows."""
    steps: tuple[str, ...]
    """The steps that run; each agent names the one that asks it, and the rest are features of the cycle."""
    expected: tuple[str, ...] = ()
    """The steps before an ablation left some out: the decision is told what it has to do without."""
    decision: Literal["sized", "evidence", "whole", "three-way", "five-level", "portfolio"] = "sized"
    """FinVision's sized decision; the same with the memories that it rests on; FinAgent's, which buys with all cash,
    sells all shares or holds; the advice of the immediate reflection: buy, sell or hold, or one of five levels; or
    the orders of one agent in all symbols at once."""
    portfolio: settings.Portfolio = settings.Portfolio()
    """The inputs of an agent that decides on all symbols at once."""
    advice: TradeValues = TradeValues()
    """The trade of each of the five levels, in percent of the portfolio. Source: TradingGPT §4.1.2 [G4]."""
    risk: owner_settings.Risk | None = None
    """The risk character: it follows momentum, or is fixed. An immediate reflection without one follows momentum.
    Source: InvestorBench A.1 [I6]."""
    memory: Memory = Memory()
    """The constants of memory."""
    retrieval: tuple[RetrievalType, ...] = Field(HORIZON_TYPES, min_length=1)
    """The retrieval types: intelligence writes a query for each, and the step `diversified` asks memory for each apart.
    Source: FinAgent §4.1 [A2]."""
    tools: dict[str, dict[str, str]] = {}
    """Rule strategies whose signal and explanation the decision reads: a list of names, or a table `[tools.NAME]` with
    parameters for each. Source: FinAgent §4.4 [A7]."""
    preference: owner_settings.Preference = "moderate"
    """The manner of trading. Source: FinAgent §4.4 [A8]."""
    profiles: dict[str, str] = {}
    """Descriptions of assets and their sectors, by symbol. Source: InvestorBench A.1 [I6]."""
    currency: str = ""
    """Currency of amounts in prompts, where a run does not name that of its portfolio."""
    instruction: str = ""
    """An instruction at the head of every decision with evidence."""
    guidance: tuple[ExpertNote, ...] = ()
    """Notes of experts; a tool among the tools. Source: FinAgent §4.4 [A7]."""
    sizing: settings.Sizing
    """Limits of a trade's size."""
    windows: Windows = Windows()
    """Lookbacks of the agents."""
    performance_questions: Literal[1, 2] = 2
    """Questions about performance: one for the short term and one for the medium term, as in the paper, or one about
    both, which costs half. Source: FinVision §3.3 [V3]."""
    load: tuple[str, ...] = ()
    """Agents of the user's own, as `FILE.py:NAME`, the file relative to the preset's, or by the name of an entry point;
    `steps` names their steps."""
    agents: dict[str, settings.AgentSettings] = {}
    """Model settings by the name of an agent."""
    owners: dict[owner_settings.OwnerName, owner_settings.Owner] = Field({DESK: owner_settings.Owner()}, min_length=1)
    """The owners of opinions, in order: a list of names, or a table `[owners.NAME]` for each."""
    combine: Literal["vote", "weighted", "books"] = "vote"
    """The way from several owners' opinions to decisions: one vote each, the weighted mean, or a book for each."""
    quorum: int = Field(1, ge=1)
    """The fewest opinions, abstentions left out, that make a decision."""
    symbol_sectors: dict[str, tuple[owner_settings.Sector, ...]] = {}
    """The sectors of symbols: an owner with a `sector_focus` decides on those alone that have one of its sectors."""
    debate: owner_settings.DebateSettings = owner_settings.DebateSettings()
    """The debate of owners who share a symbol, where `steps` has it."""
    reference_fund: owner_settings.FundName = ""
    """The fund whose trades guide advice in five levels in training, and never in the test: `holdings/FUND.csv` of the
    data folder. Source: TradingGPT §4.2 [G8]."""
    rehearsal: Rehearsal | None = None
    """The backtest and the arena that a desk has to pass before it trades an account at a broker."""
    peek: bool = False
    """Permission to read tomorrow's close: only for the preset that the audit must catch."""

    @field_validator("owners", mode="before")
    @classmethod
    def _by_name(cls, owners: object) -> object:
        return owner_settings.owners_by_name(owners)

    @field_validator("tools", mode="before")
    @classmethod
    def _with_parameters(cls, tools: object) -> object:
        if isinstance(tools, list | tuple) and all(isinstance(name, str) for name in tools):
            if len(set(tools)) < len(tools):
                raise ValueError("a tool is named twice")
            return {name: {} for name in tools}
        if not isinstance(tools, dict) or not all(isinstance(own, dict) for own in tools.values()):
            raise ValueError("give a list of names, or a table [tools.NAME] of parameters for each")
        return {name: {key: str(value) for key, value in own.items()} for name, own in tools.items()}

    @field_validator("memory", mode="before")
    @classmethod
    def _as_table(cls, memory: object) -> object:
        if isinstance(memory, str):
            raise ValueError(f'constants are a table: write [memory] and below it base = "{memory}"')
        return memory

    @field_validator("retrieval")
    @classmethod
    def _each_once(cls, types: tuple[RetrievalType, ...]) -> tuple[RetrievalType, ...]:
        if len(set(types)) < len(types):
            raise ValueError("a retrieval type is named twice")
        return types

    @model_validator(mode="after")
    def _can_be_combined(self) -> Preset:
        if self.quorum > len(self.owners):
            raise ValueError(f"quorum {self.quorum} is above the number of owners, {len(self.owners)}")
        if self.combine == "books" and self.quorum > 1:
            raise ValueError("a quorum belongs to vote and weighted: with books each owner decides alone")
        if self.combine == "books" and len(self.owners) > 1 and self.sizing.allow_short:
            raise ValueError("sizing.allow_short needs one book: combine is books, and owners' books hold no shorts")
        if self.combine != "books" and len(self.owners) > 1 and DESK in self.owners:
            raise ValueError(f"the owner {DESK} is the one of combined decisions: name an owner of several otherwise")
        return self

    @model_validator(mode="after")
    def _can_debate(self) -> Preset:
        if "debate" in self.steps:
            if len(self.owners) < 2:
                raise ValueError("the step debate needs two owners or more")
            if self.decision != "five-level" or "immediate" not in self.steps:
                raise ValueError('the step debate needs decision = "five-level" and the step immediate')
        return self

    def owner(self, name: str) -> owner_settings.Owner:
        """The settings of an owner, the preset's where it sets none."""
        own = self.owners[name]
        traits = own.traits
        return own.model_copy(
            update={
                "risk": own.risk or (None if traits is None else traits.risk) or self.risk,
                "preference": own.preference or self.preference,
                "horizon": own.horizon or (None if traits is None else traits.horizon),
                "reference_fund": own.fund or self.reference_fund,
                "model": own.model or (None if traits is None else traits.model),
            }
        )

    def owners_of(self, symbol: str) -> tuple[str, ...]:
        """The owners that decide on a symbol, in order. Raises ConfigError where there is none."""
        sectors = {sector.casefold() for sector in self.symbol_sectors.get(symbol, ())}
        found = tuple(
            name
            for name, own in self.owners.items()
            if not own.sector_focus or sectors.intersection(one.casefold() for one in own.sector_focus)
        )
        if not found:
            known = f"its sectors are {', '.join(sorted(sectors))}" if sectors else "symbol_sectors names none of it"
            raise ConfigError(
                f"preset {self.name}: no owner decides on {symbol}: every owner has a sector_focus, and {known}"
            )
        return found

    def about(self, symbol: str) -> str:
        """The first sentence of what is known of an asset, which names it and its sector; empty where nothing is."""
        return cut_between_words(self.profiles.get(symbol, "").partition(". ")[0], _ABOUT)

    @property
    def reference_funds(self) -> tuple[str, ...]:
        """The funds whose trades guide its owners in training."""
        return tuple(dict.fromkeys(fund for name in self.owners if (fund := self.owner(name).reference_fund)))

    @property
    def registered(self) -> Agents:
        """All agents that it can ask, by name."""
        return registered(self.load)

    @property
    def active_agents(self) -> tuple[Agent[Any, Any], ...]:
        """The agents that its steps ask, in the order of the cycle."""
        return tuple(agent for agent in self.registered.values() if agent.is_active(self.steps, self.decision))

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions about a symbol, in order, by the names that events give them."""
        both = {PERFORMANCE.name: (BOTH_TERMS,)} if self.performance_questions == 1 else {}
        return tuple(name for agent in self.active_agents for name in both.get(agent.name, agent.questions))

    @property
    def cites_memories(self) -> bool:
        """True where the decision reads recalled memories and cites those that it rests on; elsewhere a summary of the
        recalled intelligence is all that may reach it. Source: FinAgent §4.1 [A3]."""
        return self.decision in ("evidence", "three-way", "five-level")

    @property
    def decides_on_memory(self) -> bool:
        """True where the deciding question holds what came in as memories of the day: elsewhere it reads the day's
        intelligence, and memory adds the past. Source: InvestorBench A.1 [I1, I5]."""
        return self.decision in ("three-way", "five-level")

    @property
    def decider(self) -> Agent[Any, Any]:
        """The agent whose answer is the decision, in the test."""
        return self.deciding(training=False)

    def deciding(self, *, training: bool) -> Agent[Any, Any]:
        """The agent whose answer is the decision: of several the last one that is asked before it."""
        return self._last_deciding(debated=self.debates(training=training, before=True))

    def _last_deciding(self, *, debated: bool) -> Agent[Any, Any]:
        agents = [agent for agent in self.registered.values() if self.decision in agent.decides]
        if not debated:
            agents = [agent for agent in agents if agent.step != "debate"]
        return next((agent for agent in reversed(agents) if agent.is_active(self.steps, self.decision)), agents[0])

    def debates(self, *, training: bool, before: bool) -> bool:
        """True where its owners debate at a point of the cycle, before the decision or after the trade."""
        when = self.debate.when
        precedes = not training if when == "training-after, test-before" else when == "before"
        return "debate" in self.steps and precedes is before

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that its decision can do without, one by one, in the order of the cycle."""
        return inputs_of(self.registered, self.steps, self._last_deciding(debated=False).name)

    @property
    def characters(self) -> tuple[str, ...]:
        """Its owners where there are several, each of whom can be left out; one with the name of a step cannot."""
        if len(self.owners) < 2:
            return ()
        return tuple(name for name in self.owners if name not in ablations(self.registered))

    def without(self, names: tuple[str, ...]) -> Preset:
        """The ablation that leaves out some steps, single tools, or some of several owners; raises UsageError for a
        name that is none of these, and where no owner would be left. A quorum of more than are left is all of them."""
        groups = step_groups(self.registered)
        known = (*ablations(self.registered), *self.characters, *self.tools)
        gone: set[str] = set()
        for name in names:
            if name not in known:
                unknown = f"--without {name}: no such step, tool or owner of {self.name}"
                raise UsageError(f"{unknown}; {did_you_mean(name, known)}")
            gone.update(groups.get(name, (name,)))
        owners = {name: owner for name, owner in self.owners.items() if not (name in self.characters and name in gone)}
        if not owners:
            raise UsageError(f"--without {','.join(names)}: it leaves no owner who could decide")
        left = tuple(s for s in self.steps if s not in gone)
        expected = self.expected or self.steps
        if "news" in gone and "news" not in expected:
            # Who has no digest of the news reads it as intelligence.
            expected = (*expected, "news")
        changes = {"steps": left, "expected": expected, "owners": owners, "quorum": min(self.quorum, len(owners))}
        tools = {name: params for name, params in self.tools.items() if name not in gone}
        return self.model_copy(update={**changes, "tools": tools})

    @property
    def withholds_news(self) -> bool:
        """True where an ablation has left out the news: no agent reads any."""
        return "news" in self.expected and "news" not in self.steps


def briefed(preset: Preset, briefing: Briefing | None) -> Preset:
    """The preset with the briefing of the desk's user, which goes before its own settings."""
    if briefing is None:
        return preset
    own: dict[str, Any] = {
        "risk": briefing.risk,
        "preference": briefing.preference,
        "tools": None if briefing.tools is None else {name: preset.tools.get(name, {}) for name in briefing.tools},
        "instruction": briefing.instruction or None,
        "currency": briefing.currency or None,
        "guidance": briefing.guidance or None,
    }
    changes = {name: value for name, value in own.items() if value is not None}
    return preset.model_copy(update={**changes, "profiles": preset.profiles | dict(briefing.profiles)})


def preset_names() -> tuple[str, ...]:
    """All presets that ship, sorted, without the hidden ones."""
    return tuple(sorted(shipped_presets().keys() - HIDDEN))


def load_preset(name: str) -> Preset:
    """A preset by name, or by path to a TOML file. Raises UsageError for an unknown name, ConfigError for a file
    that is no preset."""
    return _read_preset(name) if name.endswith(".toml") else _shipped(name)


@cache
def recorded_preset(text: str) -> Preset:
    """The preset that a run has kept as JSON."""
    return Preset.model_validate_json(text)


@cache
def _shipped(name: str) -> Preset:
    return _read_preset(name)


def _read_preset(name: str) -> Preset:
    """The preset of a name as its file, and those of its agents, are now."""
    plain = _read(name)
    removed = tuple(plain.pop("without", ()))
    try:
        preset = Preset.model_validate(plain)
    except ValidationError as error:
        raise ConfigError(f"preset {name}: {settings.complaint(Preset, error)}") from None
    try:
        for reference in preset.load:
            load_name(reference, Kind.AGENT)
        known = steps_of(preset.registered)
        unknown = [step for step in preset.steps if step not in known]
        if unknown:
            raise UsageError(f"steps: unknown step: {unknown[0]} (available: {', '.join(known)})")
        unread = [step for step in preset.steps if (step in PORTFOLIO_STEPS) != (preset.decision == "portfolio")]
        unread = [step for step in unread if step != "vision"]
        if unread:
            raise UsageError(f"steps: a decision of the kind {preset.decision} does not ask {', '.join(unread)}")
        for tool, params in preset.tools.items():
            make_rule(tool, params)
        return preset.without(removed)
    except (ConfigError, UsageError) as error:
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
        shipped = shipped_presets().get(name)
        if shipped is None:
            raise UsageError(f"no preset {name}; {did_you_mean(name, preset_names())}")
        entry = shipped
    try:
        plain = tomllib.loads(entry.read_text(encoding="utf-8"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = (
            "; owners are a list of names or tables [owners.NAME], not both in one file"
            if "owners" in str(error)
            else ""
        )
        raise ConfigError(f"preset {name}: not TOML: {error}{hint}") from None
    if isinstance(own := plain.get("load"), list):
        folder = _folder_of(entry)
        plain["load"] = [str(folder / one) if is_file_reference(str(one)) else one for one in own]
    if "owners" in plain:
        plain["owners"] = owner_settings.with_characters(plain["owners"], _folder_of(entry))
    parent = plain.pop("extends", None)
    return plain if parent is None else _merged(_read(str(parent), (*extended_by, name)), plain)


def _folder_of(entry: Traversable) -> Path:
    return Path(str(entry)).resolve().parent


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if key in ("owners", "tools"):
            merged[key] = owner_settings.extended(old, value)
        else:
            merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


class Bounds(Frozen):
    """The bounds of a part, each a fraction; at least one is set."""

    min_return: Decimal | None = Field(None, gt=-1)
    """The least total return: -0.05 allows a loss of 5 %."""
    max_drawdown: Decimal | None = Field(None, ge=0, le=1)
    """The greatest fall from a peak of the value."""
    max_abstentions: Decimal | None = Field(None, ge=0, le=1)
    """The greatest share of decisions without a valid answer."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min_return is None and self.max_drawdown is None and self.max_abstentions is None:
            raise ValueError("it has no bound: set min_return, max_drawdown or max_abstentions")
        return self


class BacktestRehearsal(Bounds):
    """The backtest of a rehearsal. `first` and `last` are the sessions of filling and valuing."""

    symbols: tuple[Symbol, ...] = ()
    """Its symbols; the desk's where none are named."""
    first: date
    """First session of the test."""
    last: date
    """Last session of the test."""
    warm_up_from: date | None = None
    """First session of the warm-up; none without."""
    convention: str = "desk"
    """Its fills, costs and metrics."""


class ArenaRehearsal(Bounds):
    """The arena of a rehearsal: the desk's preset sits down at its table, with its own models and memory."""

    market: str = "constant"
    """Preset of the arena's market, by name or TOML file."""
    agents: str = "controls"
    """Table of the arena, by name or TOML file; the bounds hold for the desk that joins it."""
    days: int | None = Field(None, gt=0, le=1000)
    """Length in days; the market's where none is named."""
    seed: int = Field(0, ge=0)
    """Seed of everything that is drawn."""


class Rehearsal(Frozen):
    """The rehearsal of a preset: a backtest, an arena, or both."""

    backtest: BacktestRehearsal | None = None
    """The backtest that has to be passed."""
    arena: ArenaRehearsal | None = None
    """The arena that has to be passed."""

    @model_validator(mode="after")
    def _has_a_part(self) -> Self:
        if self.backtest is None and self.arena is None:
            raise ValueError("it has no part: set [rehearsal.backtest] or [rehearsal.arena]")
        return self
