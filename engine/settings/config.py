"""The configuration as frozen models: config.example.toml explains every key, and an unknown one is an error.

Precedence is flag, environment (`PAPERDESK_SECTION__KEY`), file, default. Keys of services are never part of it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from engine.domain.market import Exchange, Exchanges, parse_symbol
from engine.domain.model_call import VENDORS, ModelKind, parse_model_spec
from engine.domain.run import TradingMode
from engine.errors import ConfigError, UsageError
from engine.program_files import program_text
from engine.settings.config_sources import read_sources
from engine.settings.values import AgentSettings, complaint

GONE = frozenset({"filings.ciks", "filings.requests_per_second"})
"""Keys that an earlier version had."""
LARGEST_CASH = Decimal(10) ** 12
"""In any currency; far beyond it sums lose their cents."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class DeskConfig(_Section):
    """The desk: symbols, preset, cash and briefing."""

    name: str = "demo"
    """Name of the desk: its journal and its orders carry it."""
    symbols: tuple[str, ...] = ()
    """Symbols in the order in which they are decided; empty: the demo desk's."""
    preset: str = "desk"
    """Preset of the cycle: a name, or a path to a TOML file."""
    cash: Decimal = Field(Decimal(100_000), gt=0, le=LARGEST_CASH)
    """Paper money that a desk or a backtest starts with."""
    seed: int = 0
    """Seed of everything that draws: random trader, intervals."""
    risk: Literal["momentum", "risk-seeking", "risk-neutral", "risk-averse"] | None = None
    """Risk character: momentum (it follows the price), risk-seeking, ...; none: the preset's."""
    preference: Literal["aggressive", "moderate", "conservative"] | None = None
    """Manner of trading: aggressive, moderate or conservative; none: the preset's."""
    tools: tuple[str, ...] | None = None
    """Rule strategies whose signals the decision reads; none: the preset's."""
    instruction: str | None = None
    """A standing instruction for the decisions of presets with memory; sizing rules outrank it."""
    profile: dict[str, str] = {}
    """Descriptions of assets and their sectors for the agents, by symbol: a text, or a .txt or .md file."""

    @field_validator("symbols")
    @classmethod
    def _each_once(cls, symbols: tuple[str, ...]) -> tuple[str, ...]:
        try:
            names = Counter(map(parse_symbol, symbols))
        except UsageError as error:
            raise ValueError(str(error)) from None
        if twice := next((name for name, times in names.items() if times > 1), None):
            raise ValueError(f"{twice} appears twice; name every symbol once")
        return tuple(names)

    @field_validator("profile")
    @classmethod
    def _upper_case(cls, profile: dict[str, str]) -> dict[str, str]:
        return {symbol.upper(): text for symbol, text in profile.items()}

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,15}", name):
            raise ValueError("use up to 16 characters of a-z, 0-9 and - (it becomes part of file names and order ids)")
        return name


class DataConfig(_Section):
    """Sources of market data."""

    folder: str | None = None
    """Data folder with prices/, actions/, news/, filings/; none: the generated demo market."""
    demo_seed: int = Field(7, ge=0)
    """Seed of the demo market."""
    guidance: str | None = None
    """File of experts' notes (JSONL or CSV: date, symbol, text); each is shown from the day after."""
    refresh: bool = True
    """Fetching of new bars, actions and news into the folder before a daily run on Alpaca, and of closes by the open
    app."""


class CalendarConfig(_Section):
    """The exchange of symbols with a suffix that is not known, or otherwise than it is known."""

    calendar: str = Field(pattern=r"^[A-Za-z0-9_/]{2,20}$")
    """Trading calendar by its name in exchange_calendars (XLON, XTAL), or 24/7."""
    currency: str = Field(pattern="^[A-Z]{3,5}$")
    """Currency of prices and cash, such as GBP."""
    zone: str = "UTC"
    """Time zone of the days of imported stamps, such as Europe/London."""
    periods: int = Field(252, ge=1, le=366)
    """Sessions a year, by which figures are annualized."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            return ZoneInfo(zone).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{zone[:40]} is not a time zone; write one such as Europe/London") from None


class BrokerConfig(_Section):
    """The venue of orders: the simulated market, or an account at a broker."""

    kind: str = Field("simulated", pattern=r"^[a-z][a-z0-9_-]*$|\.py:\w+$")
    """simulated: books in the journal; alpaca: a paper account, or the sandbox; else FILE.py:NAME or an entry point."""
    mode: TradingMode = TradingMode.AUTO
    """auto: orders are sent; ask: they wait for approval; observe: nothing is sent."""
    clock: Literal["machine", "broker"] = "machine"
    """Clock of the desk: this machine's, or the broker's where a sandbox has one of its own."""
    trading_url: str = "https://paper-api.alpaca.markets"
    """Address of the account: the paper host or loopback only (APCA_API_BASE_URL overrides it)."""
    data_url: str = "https://data.alpaca.markets"
    """Address of market data (APCA_API_DATA_URL overrides it)."""
    feed: str = "iex"
    """Feed of stock prices that the account may read: iex or sip."""
    timeout: float = Field(15.0, gt=0, le=120)
    """Seconds after which a request is given up."""
    late_entry_hours: float = Field(24.0, ge=0, le=168)
    """Hours for which cash that has moved may wait for its entry in the account's history (code 75, then 79)."""
    price_tolerance: float = Field(0.005, gt=0, lt=1)
    """Part of a close by which data may differ from the broker's without a warning; coins and IEX differ by more."""


class WatchConfig(_Section):
    """Schedule of a desk that watches."""

    after_close: int = Field(20, ge=1, le=600)
    """Minutes after a close at which its session is decided."""
    every: int = Field(0, ge=0, le=390)
    """Minutes between two cycles within a session, at a broker; 0: once a day."""
    check_every: int = Field(15, ge=0, le=390)
    """Minutes between two comparisons of a broker's account with the journal while its market is open; 0: none."""
    in_app: bool = False
    """Watching by the open app too, in place of waiting for a key."""

    @field_validator("every")
    @classmethod
    def _not_too_often(cls, every: int) -> int:
        if 0 < every < 5:
            raise ValueError("cycles within a session are at least 5 minutes apart (0: none)")
        return every


class NotifyConfig(_Section):
    """Notifications of ended runs."""

    command: tuple[str, ...] = ()
    """Program with its arguments that gets the run's summary (JSON) on standard input."""
    webhook: str | None = None
    """Address that the summary (JSON) is posted to."""
    ping: str | None = None
    """Address that is called (GET) after every finished run: a service there notices when no call comes."""


class ExecutionConfig(_Section):
    """Costs of the simulated market; a paper's convention sets its own."""

    slippage_bp: Decimal = Field(Decimal(5), ge=0)
    """Slippage against the trader, in basis points."""
    commission: Decimal = Field(Decimal(0), ge=0)
    """Commission as a fraction of each trade's amount."""
    commission_per_order: Decimal = Field(Decimal(0), ge=0)
    """Commission per order, in the currency of the portfolio."""
    commission_per_share: Decimal = Field(Decimal(0), ge=0)
    """Commission per share, in the currency of the portfolio."""
    volume_cap: Decimal | None = Field(None, gt=0, le=1)
    """Largest fraction of a bar's volume that one order may take; none: no cap."""
    fractional: bool = True
    """Permission to buy parts of a share."""


class MetricsConfig(_Section):
    """Metrics of results."""

    convention: str = "desk"
    """Set of formulas: desk, or a paper's name."""
    risk_free: float = 0.0
    """Risk-free rate per year of the desk convention (0.02 is 2 %)."""


class PriceConfig(_Section):
    """A price of your own for a model, in USD per million tokens."""

    input: Decimal = Field(ge=0)
    """USD per million tokens that go in; 0 for a model of your own machine."""
    output: Decimal = Field(ge=0)
    """USD per million tokens that come out."""
    cached_input: Decimal | None = Field(None, ge=0)
    """USD per million tokens read from the service's cache; none: those of input."""
    cache_write: Decimal | None = Field(None, ge=0)
    """USD per million tokens written to the service's cache; none: those of input."""


class ModelsConfig(_Section):
    """Models by agent."""

    default: str = "offline"
    """Model of every agent without its own: offline, openai:MODEL, anthropic:MODEL, NAME:MODEL."""
    replay: str = Field("read-through", pattern="^(live|read-through|replay-only)$")
    """Use of recorded answers."""
    ahead: int = Field(0, ge=0)
    """Sessions ahead of which a backtest asks the agents that read the market alone; 0: none."""
    agents: dict[str, AgentSettings] = {}
    """Per agent (news, chart, performance-reflection, signal-reflection, decision): model, ..."""
    owners: dict[str, str] = {}
    """Per owner of the preset: the model of all its agents, in place of the owner's and its character's."""
    arena: AgentSettings = AgentSettings()
    """Settings of every persona's questions in `paperdesk arena`."""
    prices: dict[str, PriceConfig] = {}
    """Prices of your own by model (NAME:MODEL), in the place of the table that comes with Paperdesk."""

    def specs(self) -> Iterator[tuple[str, str]]:
        """Every model by the key that names it."""
        yield "default", self.default
        for name, own in (*((f"agents.{agent}", own) for agent, own in self.agents.items()), ("arena", self.arena)):
            yield from ((f"{name}.{key}", spec) for key in ("model", "fallback") if (spec := getattr(own, key)))
        yield from ((f"owners.{owner}", spec) for owner, spec in self.owners.items())
        yield from ((f"prices.{spec}", spec) for spec in self.prices)


class BudgetConfig(_Section):
    """Limits of what models may cost."""

    usd_per_day: Decimal = Field(Decimal(5), ge=0, le=LARGEST_CASH)
    """Dollars that the models of a desk may cost in a day (UTC); a run that reaches it ends, its session stays due."""
    ask_above: Decimal = Field(Decimal(1), ge=0)
    """Dollars of a forecast above which backtest and bench ask before they run; --yes answers."""
    tokens_per_day: int = Field(5_000_000, ge=0)
    """Tokens a day for models without a known price; a forecast of more is asked about, as one above ask_above."""


class FilingsConfig(_Section):
    """Requests to SEC EDGAR for filings."""

    user_agent: str | None = None
    """Your name and e-mail address, which the SEC demands of whoever asks; none: no fetching."""
    forms: tuple[str, ...] = ("10-K", "10-Q")
    """Forms that are read, each with its amendments; 8-K is possible as well."""
    characters: int = Field(24_000, ge=500)
    """Longest text that is kept of a filing, in characters."""
    www: str = "https://www.sec.gov"
    """Address of the SEC's documents."""
    data: str = "https://data.sec.gov"
    """Address of the SEC's lists."""


class MacroConfig(_Section):
    """Requests to FRED for macro series."""

    series: tuple[str, ...] = ("ICSA", "AWHMAN")
    """Series by FRED id: initial claims, weekly hours in manufacturing, ..."""
    address: str = "https://api.stlouisfed.org/fred"
    """Address of FRED; its key is FRED_API_KEY."""

    @field_validator("series")
    @classmethod
    def _ids(cls, series: tuple[str, ...]) -> tuple[str, ...]:
        for name in series:
            if not re.fullmatch(r"[A-Z0-9_]{1,40}", name):
                raise ValueError(f"{name!r} is not a FRED series id: use A-Z, 0-9 and _")
        return series


class MemoryConfig(_Section):
    """Settings of the layered memory."""

    embedder: str = "hash-384"
    """Embedder of texts: hash-384 by words; minilm:FOLDER, openai:MODEL or NAME:MODEL by meaning."""


THINKING = 6144
"""Tokens that are added to the limit of an answer at a public service: thinking counts against the limit."""


class EndpointConfig(_Section):
    """An OpenAI-compatible server, or a vendor of models (openai, anthropic)."""

    base_url: str | None = None
    """Address of the server, such as http://localhost:11434/v1; none: the vendor's own."""
    key_env: str | None = None
    """Environment variable that holds its key; none: no key, and the vendor's own variable at a vendor."""
    vision: bool = False
    """Vision: its models are shown charts as images; those of a vendor are unless this is set to false."""
    local: bool = False
    """A model on a machine of one's own, which is asked one question at a time until more at once are as fast."""
    concurrency: int = Field(16, ge=1)
    """Most calls at the same time; fewer while the service refuses so many or answers more slowly."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Calls a minute; none: 60, and no limit at a vendor or on this machine."""
    tokens_per_minute: int | None = Field(None, ge=1000)
    """Tokens a minute, those sent by estimate; none: no limit."""
    max_output_tokens: int | None = Field(None, ge=64)
    """Most tokens of an answer, also of agents that may write longer ones; none: the agents' own limits."""
    thinking_tokens: int | None = Field(None, ge=0)
    """Tokens that a model may think beside its answer; none: 6144 at a vendor, else 0."""


BUILT_IN: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    program_text(Path(__file__).with_name("built_in_endpoints.toml"))
)
"""Endpoints that need no configuration; an `[endpoints.NAME]` changes single values of one."""


class AppConfig(_Section):
    """The terminal app."""

    theme: str | None = None
    """Colours: dark, light, high-contrast, colour-blind or ansi; none: dark."""
    read_only: bool = False
    """Refusal of everything that changes the desk, a backtest or an arena from the app, as --read-only."""
    notify: bool = True
    """Announcement of orders that wait: the terminal's bell and a desktop notification."""
    watchlist: tuple[Literal["last", "change", "sparkline", "day", "held", "value", "profit", "signal"], ...] = ()
    """Columns of the Desk's watchlist after the symbol, in this order; none: all that there is room for."""
    undo_seconds: float = Field(5, ge=0, le=60)
    """Seconds in which an approval or a veto can be undone before it is carried out; 0: at once."""


def _beginning(address: str) -> str:
    """An address up to its host; dots alone for what is no address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "..."
    return f"{parts.scheme}://{parts.hostname}/..." if parts.hostname else "..."


class Config(_Section):
    """All configuration keys."""

    desk: DeskConfig = DeskConfig()
    data: DataConfig = DataConfig()
    broker: BrokerConfig = BrokerConfig()
    watch: WatchConfig = WatchConfig()
    notify: NotifyConfig = NotifyConfig()
    execution: ExecutionConfig = ExecutionConfig()
    metrics: MetricsConfig = MetricsConfig()
    models: ModelsConfig = ModelsConfig()
    budget: BudgetConfig = BudgetConfig()
    filings: FilingsConfig = FilingsConfig()
    macro: MacroConfig = MacroConfig()
    memory: MemoryConfig = MemoryConfig()
    app: AppConfig = AppConfig()
    bindings: dict[str, str] = {}
    """Keys of the app by their ids, in place of those that the app's help shows."""
    endpoints: dict[str, EndpointConfig] = {}
    """OpenAI-compatible servers by name, the built-in ones among them, and limits at openai and anthropic."""
    calendars: dict[str, CalendarConfig] = {}
    """Exchanges by the suffix of their symbols, beside those that are known."""

    @property
    def exchanges(self) -> Exchanges:
        """The exchange of every symbol, those of the configuration first."""
        return Exchanges({suffix.upper(): Exchange(**own.model_dump()) for suffix, own in self.calendars.items()})

    def shown(self) -> dict[str, Any]:
        """Every value by section, as it may be seen by anybody: an address of a notification may carry a secret, and
        only its beginning is shown."""
        plain = self.model_dump(mode="json")
        for name in ("webhook", "ping"):
            if address := plain["notify"][name]:
                plain["notify"][name] = _beginning(address)
        return plain

    @field_validator("bindings", mode="before")
    @classmethod
    def _by_id(cls, bindings: Any) -> Any:
        """Ids have a dot, which makes tables of them in TOML where they are not quoted."""
        if not isinstance(bindings, dict):
            return bindings
        inner = ((name, part) for name, part in bindings.items() if isinstance(part, dict))
        tables = {f"{name}.{key}": keys for name, part in inner for key, keys in part.items()}
        return {name: part for name, part in bindings.items() if not isinstance(part, dict)} | tables

    @model_validator(mode="after")
    def _one_portfolio(self) -> Config:
        try:
            self.exchanges.of_portfolio(self.desk.symbols)
        except UsageError as error:
            raise ValueError(f"desk.symbols: {error}") from None
        return self

    @model_validator(mode="after")
    def _known_models(self) -> Config:
        for key, text in self.models.specs():
            try:
                spec = parse_model_spec(text, self.endpoints)
            except UsageError as error:
                raise ValueError(f"models.{key}: {error}") from None
            if spec.kind is ModelKind.REPLAY:
                raise ValueError(f"models.{key}: replay is a mode, not a model: set models.replay = replay-only")
        return self

    @field_validator("endpoints", mode="before")
    @classmethod
    def _with_built_in(cls, endpoints: Any) -> Any:
        if not isinstance(endpoints, dict):
            return endpoints
        changed = {name: {**BUILT_IN[name], **own} for name, own in endpoints.items() if name in BUILT_IN}
        return {**BUILT_IN, **endpoints, **changed}

    @field_validator("endpoints")
    @classmethod
    def _addressed(cls, endpoints: dict[str, EndpointConfig]) -> dict[str, EndpointConfig]:
        for name, endpoint in endpoints.items():
            if endpoint.base_url is None and name not in VENDORS:
                raise ValueError(f"{name} needs a base_url, the address of the server")
        return endpoints


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with the origin of every value that is not a default (`section.key` to origin)."""

    config: Config
    origins: Mapping[str, str]
    file: Path | None


def load_config(file: Path | None, environ: Mapping[str, str] = os.environ, required: bool = False) -> Loaded:
    """The configuration from a file and the environment. Raises ConfigError naming file, key and the nearest key that
    exists, and as `read_sources` does."""
    sources = read_sources(file, environ, required)
    try:
        config = Config.model_validate(sources.values)
    except ValidationError as error:
        raise ConfigError(_complaint(error, file, sources.origins)) from None
    return Loaded(config, sources.origins, sources.file)


def _complaint(error: ValidationError, file: Path | None, origins: Mapping[str, str]) -> str:
    key = ".".join(str(part) for part in error.errors()[0]["loc"])
    origin = origins.get(key) or next((o for k, o in origins.items() if k.startswith(f"{key}.")), None)
    where = origin or str(file or "config")
    if key in GONE:
        return f"{where}: {key} is gone, with nothing in its place: take it out"
    return f"{where}: {complaint(Config, error)}"
