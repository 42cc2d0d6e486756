"""What `paperdesk doctor` looks at, one finding each; looking changes nothing and a failed check stops no other."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import places
from engine.config import Config, Loaded
from engine.errors import MissingData, PaperdeskError
from engine.reports.documents.records import latest_backtests
from tui.commands.due import kept_sessions
from tui.console import standard_output
from tui.invocation import Invocation

if TYPE_CHECKING:
    from engine.app.models import AgentModel
    from engine.domain.market import PriceHistory
    from engine.market.trading_hours import ExchangeCalendar
    from engine.ports import Calendar, MarketSource
    from engine.services import Services

OK, NOTE, FAIL = "ok", "note", "fail"

PACKAGES = (
    "click",
    "textual",
    "pydantic",
    "numpy",
    "matplotlib",
    "plotext",
    "exchange_calendars",
    "sqlite-utils",
    "httpx",
    "openai",
    "anthropic",
    "optuna",
    "alpaca-py",
)
BACKTESTS = 5
"""How many of the latest backtests' journals are checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `state` is ok, note (worth knowing) or fail."""

    area: str
    name: str
    state: str
    detail: str


def examine(invocation: Invocation, connect: bool) -> Iterator[Finding]:
    """Every finding, in reading order."""
    from tui.commands.doctor_broker import broker_checks

    try:
        loaded = invocation.load()
    except PaperdeskError as error:
        yield Finding("Configuration", "file", FAIL, str(error))
        loaded = Loaded(Config(), {}, None)
    else:
        yield from _configuration(invocation, loaded)
    services = invocation.services_of(loaded.config)
    yield from _models(services, connect)
    yield from broker_checks(services, connect)
    yield from _places()
    yield from _journals(services.config)
    yield from _data(services)
    yield from _versions()
    yield from _clock()
    yield from _terminal()


def _configuration(invocation: Invocation, loaded: Loaded) -> Iterator[Finding]:
    looked = invocation.config_file or places.config_file()
    said = str(loaded.file) if loaded.file else f"none at {looked}: defaults, and the demo desk (paperdesk init)"
    yield Finding("Configuration", "file", OK, said)
    plain = loaded.config.model_dump(mode="json")
    for key, origin in sorted(loaded.origins.items()):
        found = _value(plain, key)
        if origin == str(loaded.file) and found == _value(Config().model_dump(mode="json"), key):
            continue
        yield Finding("Configuration", key, OK, f"{found} (from {origin})")


def _value(plain: Mapping[str, Any], key: str) -> Any:
    found: Any = plain
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _models(services: Services, connect: bool) -> Iterator[Finding]:
    from engine.app.models import agent_models, probe_models
    from tui.commands.models import answered, in_words

    try:
        agents = agent_models(services, services.models.prices())
    except PaperdeskError as error:
        yield Finding("Models", "agents", FAIL, str(error))
        return
    for spec in dict.fromkeys(one.spec for one in agents):
        served = [one.agent for one in agents if one.spec == spec]
        who = "every agent" if len(served) == len(agents) else ", ".join(served)
        yield Finding("Models", str(spec), OK, f"answers {who}")
    yield from _keys(services, agents)
    if connect:
        asked = asyncio.run(probe_models(services, [one.spec for one in agents]))
        for spec, result in asked.items():
            yield Finding("Services", str(spec), OK if answered(result) else FAIL, in_words(result))
        if not asked:
            yield Finding("Services", "none", NOTE, "no service is configured, nobody was asked")


def _keys(services: Services, agents: Sequence[AgentModel]) -> Iterator[Finding]:
    """Which keys are there; never what they are."""
    needed = {one.key_variable for one in agents if one.key_variable}
    named = {endpoint.key_env for endpoint in services.config.endpoints.values() if endpoint.key_env}
    brokers = set() if services.broker is None else set(services.broker.key_variables)
    for variable in sorted({*services.key_variables(), *needed, *named}):
        there, wanted = bool(os.environ.get(variable)), variable in needed | brokers
        who = "the broker" if variable in brokers else "a configured model"
        said = "present" if there else f"missing, and {who} needs it" if wanted else "not set, not needed"
        yield Finding("Keys", variable, FAIL if wanted and not there else OK, said)


def _places() -> Iterator[Finding]:
    for name, folder in (("data", places.data_dir()), ("cache", places.cache_dir()), ("logs", places.logs_dir())):
        there = folder
        while not there.exists() and there != there.parent:
            there = there.parent
        made = "" if there == folder else " (made when it is needed)"
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            yield Finding("Places", name, OK, f"{folder}{made}")
        else:
            yield Finding("Places", name, FAIL, f"{folder} cannot be written: check {there}, or set {places.HOME}")
    free = shutil.disk_usage(_existing(places.data_dir())).free
    yield Finding("Places", "free", OK if free > 200_000_000 else NOTE, f"{free / 1e9:,.1f} GB")


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _journals(config: Config) -> Iterator[Finding]:
    from engine.journal.integrity import quick_check

    runs = latest_backtests(BACKTESTS)
    files = [(f"desk {config.desk.name}", places.desk_journal(config.desk.name))]
    files += [(run, places.run_journal(run)) for run in runs]
    for name, path in files:
        try:
            faults = quick_check(path)
        except MissingData as error:
            said = "has not run yet" if not path.exists() else str(error)
            yield Finding("Journals", name, NOTE, said)
        except PaperdeskError as error:
            yield Finding("Journals", name, FAIL, str(error))
        else:
            yield Finding("Journals", name, FAIL if faults else OK, "; ".join(faults) or f"sound ({path})")
    yield from _recorded_answers(places.replay_cache())


def _recorded_answers(path: Path) -> Iterator[Finding]:
    if not path.is_file():
        return
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        said = str(error)
    sound = said == "ok"
    yield Finding(
        "Journals", "recorded answers", OK if sound else FAIL, f"sound ({path})" if sound else f"{path}: {said}"
    )


def _data(services: Services) -> Iterator[Finding]:
    config, folder = services.config, services.data_folder
    if folder is None:
        yield Finding("Data", "source", OK, f"the generated demo market, seed {config.data.demo_seed}")
        return
    if not folder.is_dir():
        made = config.data.folder is None
        said = f"{folder}: nothing was fetched yet; the first run does, or `paperdesk fetch`" if made else str(folder)
        yield Finding("Data", "source", OK if made else FAIL, said)
        return
    yield Finding("Data", "source", OK, str(folder))
    source = services.open_source(services.data, date.min)
    if not config.desk.symbols:
        yield Finding("Data", "symbols", FAIL, "the desk has no symbols; set desk.symbols in the configuration")
    for symbol in config.desk.symbols:
        try:
            yield asyncio.run(_covered(source, symbol, services.calendar_for(symbol)))
        except PaperdeskError as error:
            yield Finding("Data", symbol, FAIL, str(error))


async def _covered(source: MarketSource, symbol: str, calendar: Calendar) -> Finding:
    from engine.clock import LiveClock
    from engine.market.coverage import check_coverage

    history: PriceHistory = await source.history(symbol)
    if not len(history):
        return Finding("Data", symbol, FAIL, "no bars; import some")
    first, last = history.session(0), history.session(-1)
    check_coverage(history, calendar, first, last)
    actions, news, filings = await source.actions(symbol), await source.news(symbol), await source.filings(symbol)
    said = [
        f"{len(history):,} bars without a gap from {first} to {last}",
        "no file of corporate actions" if actions is None else f"{len(actions):,} corporate actions",
        f"{len(news.items):,} news",
        f"{len(filings.items):,} filings",
    ]
    dropped = sum(one.count for one in (*news.dropped, *filings.dropped))
    detail = ", ".join(said) + (f"; {dropped:,} items dropped" if dropped else "")
    closed = calendar.last_closed(LiveClock().now())
    if last < closed:
        return Finding("Data", symbol, NOTE, f"{detail}; a daily run needs them until {closed}")
    return Finding("Data", symbol, OK, detail)


def _versions() -> Iterator[Finding]:
    yield Finding("Versions", "Python", OK, f"{platform.python_version()} ({sys.executable}), {platform.platform()}")
    yield Finding("Versions", "SQLite", OK, sqlite3.sqlite_version)
    for package in ("paperdesk", *PACKAGES):
        try:
            yield Finding("Versions", package, OK, version(package))
        except PackageNotFoundError:
            # Run from a checkout the program itself is not installed, and all else has to be.
            state = NOTE if package == "paperdesk" else FAIL
            yield Finding("Versions", package, state, "not installed")


def _clock() -> Iterator[Finding]:
    from engine.clock import LiveClock
    from engine.market.trading_hours import LAST_SESSION, exchange_calendar

    now = LiveClock().now()
    yield Finding("Clock", "now", OK, f"{now:%Y-%m-%d %H:%M:%S} UTC; check it against your watch")
    try:
        calendar: ExchangeCalendar = exchange_calendar("XNYS", kept_sessions())
        last: date = calendar.last_closed(now)
        yield Finding("Clock", "XNYS", OK, f"last completed session {last}; sessions known until {LAST_SESSION}")
    except PaperdeskError as error:
        yield Finding("Clock", "XNYS", FAIL, str(error))


def _terminal() -> Iterator[Finding]:
    terminal = sys.stdout.isatty()
    size = shutil.get_terminal_size()
    console = standard_output()
    said = f"{size.columns} x {size.lines}, TERM {os.environ.get('TERM') or 'not set'}" if terminal else "none: a pipe"
    small = terminal and (size.columns < 80 or size.lines < 24)
    yield Finding("Terminal", "screen", NOTE if small else OK, said + ("; the app wants 80 x 24" if small else ""))
    colours = "NO_COLOR is set" if os.environ.get("NO_COLOR") else "24 bit" if _true_colour() else "as TERM says"
    yield Finding("Terminal", "colours", OK, colours)
    encoding = sys.stdout.encoding or "unknown"
    narrow = f"{encoding} has no box characters: plain ones are used"
    yield Finding(
        "Terminal", "encoding", NOTE if console.ascii_only else OK, narrow if console.ascii_only else encoding
    )


def _true_colour() -> bool:
    return os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
