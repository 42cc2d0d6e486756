"""The configuration as frozen models: config.example.toml explains every key, and an unknown one is an error.

Precedence is flag, environment (`PAPERDESK_SECTION__KEY`), file, default. Keys of services are never part of it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.domain.run import TradingMode
from engine.errors import ConfigError
from engine.settings import AgentSettings, complaint

PREFIX = "PAPERDESK_"
NOT_CONFIG = frozenset({"PAPERDESK_HOME", "PAPERDESK_TEST_DATA", "PAPERDESK_CONFIG"})
"""Variables with the prefix that are no configuration keys."""
LISTS = frozenset({"symbols", "forms", "series", "command", "tools"})
"""Keys whose value in the environment is a list, with commas."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class DeskConfig(_Section):
    """The desk: symbols, preset, cash and briefing."""

    name: str = Field("demo", description="Name of the desk: its journal and its orders carry it.")
    symbols: tuple[str, ...] = Field(
        (), description="Symbols in the order in which they are decided; empty: the demo desk's."
    )
    preset: str = Field("desk", description="Which preset of the cycle runs: a name or a path to a TOML file.")
    cash: Decimal = Field(Decimal(100_000), gt=0, description="Paper money that a desk or a backtest starts with.")
    seed: int = Field(0, description="Seed of everything that draws: random trader, intervals.")
    risk: Literal["momentum", "risk-seeking", "risk-neutral", "risk-averse"] | None = Field(
        None, description="Risk character: momentum (it follows the price), risk-seeking, ...; none: the preset's."
    )
    preference: Literal["aggressive", "moderate", "conservative"] | None = Field(
        None, description="How the trader trades: aggressive, moderate or conservative; none: the preset's."
    )
    tools: tuple[str, ...] | None = Field(
        None, description="Rule strategies whose signals the decision reads; none: the preset's."
    )
    instruction: str | None = Field(
        None, description="A standing instruction for the decisions of presets with memory; sizing rules outrank it."
    )
    profile: dict[str, str] = Field(
        {}, description="What agents are told of an asset and its sector, by symbol: a text, or a .txt or .md file."
    )

    @field_validator("profile")
    @classmethod
    def _upper_case(cls, profile: dict[str, str]) -> dict[str, str]:
        return {symbol.upper(): text for symbol, text in profile.items()}

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,15}", name):
            raise ValueError("use up to 16 of a-z, 0-9 and - (it becomes part of file names and order ids)")
        return name


class DataConfig(_Section):
    """Sources of market data."""

    folder: str | None = Field(
        None,
        description="Data folder with prices/, actions/, news/, filings/; none: the generated demo market.",
    )
    demo_seed: int = Field(7, ge=0, description="Seed of the demo market.")
    guidance: str | None = Field(
        None, description="File of experts' notes (JSONL or CSV: date, symbol, text); each is shown from the day after."
    )
    refresh: bool = Field(
        True, description="Whether a daily run on Alpaca first fetches new bars, actions and news into the folder."
    )


class BrokerConfig(_Section):
    """The venue of orders: the simulated market, or an account at a broker."""

    kind: str = Field(
        "simulated",
        pattern="^[a-z][a-z0-9_]*$",
        description="simulated: books in the journal; alpaca: a paper account, or the sandbox.",
    )
    mode: TradingMode = Field(
        TradingMode.AUTO, description="auto: orders are sent; ask: they wait for approval; observe: nothing is sent."
    )
    clock: Literal["machine", "broker"] = Field(
        "machine", description="Whose time it is; broker: for a sandbox with a clock of its own."
    )
    trading_url: str = Field(
        "https://paper-api.alpaca.markets",
        description="Address of the account: the paper host or loopback only (APCA_API_BASE_URL overrides it).",
    )
    data_url: str = Field(
        "https://data.alpaca.markets", description="Address of market data (APCA_API_DATA_URL overrides it)."
    )
    feed: str = Field("iex", description="Which feed of stock prices the account may read: iex or sip.")
    timeout: float = Field(15.0, gt=0, le=120, description="Seconds after which a request is given up.")


class WatchConfig(_Section):
    """Schedule of a desk that watches."""

    after_close: int = Field(20, ge=1, le=600, description="Minutes after a close at which its session is decided.")
    every: int = Field(
        0, ge=0, le=390, description="Minutes between two cycles within a session, at a broker; 0: once a day."
    )
    in_app: bool = Field(False, description="Whether the open app watches too, instead of waiting for a key.")

    @field_validator("every")
    @classmethod
    def _not_too_often(cls, every: int) -> int:
        if 0 < every < 5:
            raise ValueError("cycles within a session are at least 5 minutes apart (0: none)")
        return every


class NotifyConfig(_Section):
    """Notifications of ended runs."""

    command: tuple[str, ...] = Field(
        (), description="Program with its arguments that gets the run's summary (JSON) on standard input."
    )
    webhook: str | None = Field(None, description="Address that the summary (JSON) is posted to.")


class ExecutionConfig(_Section):
    """Costs of the simulated market; a paper's convention sets its own."""

    slippage_bp: Decimal = Field(Decimal(5), ge=0, description="Slippage against the trader, in basis points.")
    commission: Decimal = Field(Decimal(0), ge=0, description="Commission as a fraction of each trade's amount.")
    commission_per_order: Decimal = Field(Decimal(0), ge=0, description="Commission per order, in dollars.")
    commission_per_share: Decimal = Field(Decimal(0), ge=0, description="Commission per share, in dollars.")
    volume_cap: Decimal | None = Field(
        None,
        gt=0,
        le=1,
        description="Largest fraction of a bar's volume that one order may take; none: no cap.",
    )
    fractional: bool = Field(True, description="Whether parts of a share may be bought.")


class MetricsConfig(_Section):
    """Metrics of results."""

    convention: str = Field("desk", description="Set of formulas: desk, or a paper's name.")
    risk_free: float = Field(0.0, description="Risk-free rate per year of the desk convention (0.02 is 2 %).")


class ModelsConfig(_Section):
    """Models by agent."""

    default: str = Field(
        "offline",
        description="Model of every agent without its own: offline, openai:MODEL, anthropic:MODEL, NAME:MODEL.",
    )
    replay: str = Field(
        "read-through",
        pattern="^(live|read-through|replay-only)$",
        description="How recorded answers are used.",
    )
    agents: dict[str, AgentSettings] = Field(
        {},
        description="Per agent (news, chart, performance-reflection, signal-reflection, decision): model, ...",
    )


class FilingsConfig(_Section):
    """Requests to SEC EDGAR for filings."""

    user_agent: str | None = Field(
        None, description="Your name and e-mail address, which the SEC demands of whoever asks; none: no fetching."
    )
    forms: tuple[str, ...] = Field(
        ("10-K", "10-Q"), description="Forms that are read, each with its amendments; 8-K is possible as well."
    )
    characters: int = Field(24_000, ge=500, description="Longest text that is kept of a filing, in characters.")
    requests_per_second: float = Field(5.0, gt=0, le=10, description="Requests a second; the SEC allows 10.")
    ciks: dict[str, int] = Field({}, description="EDGAR's number by symbol, for those that its list does not have.")
    www: str = Field("https://www.sec.gov", description="Address of the SEC's documents.")
    data: str = Field("https://data.sec.gov", description="Address of the SEC's lists.")


class MacroConfig(_Section):
    """Requests to FRED for macro series."""

    series: tuple[str, ...] = Field(
        ("ICSA", "AWHMAN"), description="Series by FRED id: initial claims, weekly hours in manufacturing, ..."
    )
    address: str = Field("https://api.stlouisfed.org/fred", description="Address of FRED; its key is FRED_API_KEY.")

    @field_validator("series")
    @classmethod
    def _ids(cls, series: tuple[str, ...]) -> tuple[str, ...]:
        for name in series:
            if not re.fullmatch(r"[A-Z0-9_]{1,40}", name):
                raise ValueError(f"{name!r} is no id of a FRED series: use A-Z, 0-9 and _")
        return series


class MemoryConfig(_Section):
    """Settings of the layered memory."""

    embedder: str = Field(
        "hash-384",
        description="What turns texts to vectors: hash-384: words; minilm:FOLDER, openai:MODEL or NAME:MODEL: meaning.",
    )


class EndpointConfig(_Section):
    """An OpenAI-compatible server."""

    base_url: str = Field(description="Address of the server, such as http://localhost:11434/v1.")
    key_env: str | None = Field(None, description="Environment variable that holds its key; none: no key.")
    vision: bool = Field(False, description="Whether its models see pictures.")
    concurrency: int = Field(4, ge=1, description="Calls at the same time.")
    requests_per_minute: int = Field(60, ge=1, description="Calls a minute.")


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
    filings: FilingsConfig = FilingsConfig()
    macro: MacroConfig = MacroConfig()
    memory: MemoryConfig = MemoryConfig()
    endpoints: dict[str, EndpointConfig] = Field({}, description="OpenAI-compatible servers by name.")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with the origin of every value that is not a default (`section.key` to origin)."""

    config: Config
    origins: Mapping[str, str]
    file: Path | None


def load_config(file: Path | None, environ: Mapping[str, str] = os.environ, required: bool = False) -> Loaded:
    """The configuration from a file and the environment. Raises ConfigError naming file, key and the nearest key that
    exists; with `required` also where there is no such file."""
    plain: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if file is not None and file.is_file():
        try:
            plain = tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not TOML: {error}") from None
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
        origins = {key: str(file) for key in _leaves(plain)}
    elif required:
        raise ConfigError(f"{file}: there is no such file; `paperdesk init` writes one")
    for name, text in sorted(environ.items()):
        if name.startswith(PREFIX) and name not in NOT_CONFIG:
            path = name.removeprefix(PREFIX).lower().split("__")
            _put(plain, path, text, name)
            origins[".".join(path)] = f"environment {name}"
    try:
        config = Config.model_validate(plain)
    except ValidationError as error:
        raise ConfigError(_complaint(error, file, origins)) from None
    return Loaded(config, origins, file if file is not None and file.is_file() else None)


def _leaves(plain: Mapping[str, Any], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key, value in plain.items():
        keys += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
    return keys


def _put(plain: dict[str, Any], path: list[str], text: str, name: str) -> None:
    if len(path) < 2:
        raise ConfigError(f"environment {name}: write PAPERDESK_SECTION__KEY, such as PAPERDESK_DESK__CASH")
    *sections, key = path
    for section in sections:
        inner = plain.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"environment {name}: {section} is a value, not a section")
        plain = inner
    plain[key] = [part.strip() for part in text.split(",") if part.strip()] if key in LISTS else text


def _complaint(error: ValidationError, file: Path | None, origins: Mapping[str, str]) -> str:
    key = ".".join(str(part) for part in error.errors()[0]["loc"])
    origin = origins.get(key) or next((o for k, o in origins.items() if k.startswith(f"{key}.")), None)
    where = origin or str(file or "config")
    return f"{where}: {complaint(Config, error)}"
