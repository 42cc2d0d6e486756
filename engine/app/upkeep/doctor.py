"""Checks of a desk's set-up, one finding each: nothing is changed, and a failed check stops no other.

Checks of a desk's broker: the place that orders go to, and on request the account there.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.app.desk.certificate import refusal, trades_account
from engine.app.desk.context import ANY_SHARE, check_exchange
from engine.app.desk.demo_history import by_desk_time
from engine.app.memory import memory_of_desk
from engine.app.models.models import agent_models, desk_preset, probe_models, stale_words
from engine.app.orders.memory_control import check_desk_memory
from engine.app.records.desk_journal import DeskJournal
from engine.app.records.trial_index import check_trial_index
from engine.app.upkeep.drill.results import stored_results
from engine.clock import LiveClock
from engine.domain.brokerage import SessionHours
from engine.domain.market import AROUND_THE_CLOCK, Symbol, has_crypto_among_shares
from engine.domain.model_call import ModelKind
from engine.domain.run import TradingMode
from engine.domain.text import counted, money
from engine.errors import NO_DESK_SYMBOLS, CredentialsRefused, MissingData, PaperdeskError
from engine.journal.integrity import quick_check, read_chain
from engine.market.price_faults import check_coverage, compare, refuse_faults
from engine.market.trading_hours import exchange_calendar, session_to_decide
from engine.reports.documents.operations import operation_rows, rate_words
from engine.reports.documents.records import latest_backtests
from engine.reports.documents.rehearsal import rehearsal_words, stored_certificate
from engine.reports.documents.set_up import FAIL, NOTE, OK, AgentModel, Finding, probe_text
from engine.reports.documents.status import missed_sessions
from engine.settings import places
from engine.settings.config import Config, Loaded

if TYPE_CHECKING:
    from engine.broker_registration import BrokerService
    from engine.ports import Broker, Calendar, MarketSource
    from engine.services import Services


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
    "alpaca-py",
)
_SOON = timedelta(days=60)
"""Before a calendar ends, the time from which that is said."""
BACKTESTS = 5
"""The number of the latest backtests' journals that are checked."""


def configuration_findings(loaded: Loaded, file: Path) -> Iterator[Finding]:
    """The configuration with the origin of every value that is not a default; `file` is where one would lie."""
    detail = str(loaded.file) if loaded.file else f"none at {file}: defaults, and the demo desk (paperdesk init)"
    yield Finding("Configuration", "file", OK, detail)
    plain, defaults = loaded.config.shown(), Config().shown()
    for key, origin in sorted(loaded.origins.items()):
        value = _value(plain, key)
        if origin != str(loaded.file) or value != _value(defaults, key):
            yield Finding("Configuration", key, OK, f"{value} (from {origin})")


def _value(plain: Mapping[str, Any], key: str) -> Any:
    found: Any = plain
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def desk_findings(services: Services, connect: bool) -> Iterator[Finding]:
    """The findings on models, broker, files, data, versions and clock. Services are asked only with `connect`."""
    last_run, rates = _operation(services)
    yield from rates
    yield from _models(services, connect)
    yield from broker_checks(services, connect)
    yield from _places()
    yield from _journals(services.config)
    yield _memory(services)
    yield from last_run
    yield from _missed(services, connect)
    yield from _drills()
    yield from _rehearsal(services)
    yield from _data(services)
    yield from _versions()
    yield from _clock(services)


def _models(services: Services, connect: bool) -> Iterator[Finding]:
    try:
        prices = services.models.prices()
        agents = agent_models(services, prices)
    except PaperdeskError as error:
        yield Finding("Models", "agents", FAIL, str(error))
        return
    specs = [one.spec for one in agents]
    probed = asyncio.run(probe_models(services, specs)) if connect else {}
    for spec in dict.fromkeys(specs):
        served = [one.agent for one in agents if one.spec == spec]
        who = "every agent" if len(served) == len(agents) else ", ".join(served)
        asked = spec.kind is ModelKind.OFFLINE or (spec in probed and not probed[spec].problem)
        address = services.models.address(spec)
        at = f", at {address}" if address else ""
        yield Finding("Models", str(spec), OK, f"{'answers' if asked else 'configured for'} {who}{at}")
    if any(prices.stale(one.spec.provider, one.spec.model, services.clock.now().date()) for one in agents):
        yield Finding("Models", "prices", NOTE, stale_words(prices))
    yield from _keys(services, agents)
    if connect:
        for spec, result in probed.items():
            yield Finding("Services", str(spec), FAIL if result.problem else OK, probe_text(result))
        if not probed:
            yield Finding("Services", "none", NOTE, "no service is configured")


def _keys(services: Services, agents: Sequence[AgentModel]) -> Iterator[Finding]:
    """Which keys are there; never what they are."""
    needed = needed_keys(services, agents)
    built_in = Config().endpoints
    named = {
        endpoint.key_env
        for name, endpoint in services.config.endpoints.items()
        if endpoint.key_env and endpoint != built_in.get(name)
    }
    for variable in sorted({*services.key_variables(), *needed, *named}):
        there, who = bool(os.environ.get(variable)), needed.get(variable)
        detail = "present" if there else f"missing, and {who} needs it" if who else "not set, not needed"
        yield Finding("Keys", variable, FAIL if who and not there else OK, detail)


def needed_keys(services: Services, agents: Sequence[AgentModel]) -> Mapping[str, str]:
    """The keys that are needed, and by what, under the environment variable that holds each: the broker's first, then
    those of models."""
    brokers = () if services.broker is None else services.broker.registration.key_variables
    models = (one.key_variable for one in agents if one.key_variable not in ("", *brokers))
    return dict.fromkeys(brokers, "the broker") | dict.fromkeys(models, "a configured model")


def _places() -> Iterator[Finding]:
    for name, folder in (("data", places.data_dir()), ("cache", places.cache_dir()), ("logs", places.logs_dir())):
        there = _existing(folder)
        made = "" if there == folder else " (created on first use)"
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
    runs = latest_backtests(BACKTESTS)
    files = [(f"desk {config.desk.name}", places.desk_journal(config.desk.name))]
    files += [(run, places.run_journal(run)) for run in runs]
    for name, path in files:
        try:
            faults = quick_check(path)
        except MissingData as error:
            absent = not path.exists()
            yield Finding("Journals", name, OK if absent else NOTE, "has not run yet" if absent else str(error))
        except PaperdeskError as error:
            yield Finding("Journals", name, FAIL, str(error))
        else:
            sound = "" if faults else f"sound ({path}), head {read_chain(path).head}"
            yield Finding("Journals", name, FAIL if faults else OK, "; ".join(faults) or sound)
    yield _trials()
    yield from _recorded_answers(places.replay_cache())


def _trials() -> Finding:
    try:
        check_trial_index()
    except PaperdeskError as error:
        return Finding("Journals", "looks", FAIL, str(error))
    return Finding("Journals", "looks", OK, "can be counted" if places.trial_index().exists() else "none yet")


def _memory(services: Services) -> Finding:
    """The desk's memory, and that it is the one that its journal knows."""
    try:
        stored = memory_of_desk(services)
        if not stored.exists:
            check_desk_memory(services, None)
            return Finding("Journals", "memory", OK, "none yet")
        with stored.opened() as memory:
            check_desk_memory(services, memory)
            return Finding("Journals", "memory", OK, f"sound ({stored.place}), {memory.head.rows:,} rows")
    except PaperdeskError as error:
        return Finding("Journals", "memory", FAIL, str(error))


def _missed(services: Services, connect: bool) -> Iterator[Finding]:
    """Sessions that no daily run came for, as far as the desk has a sound journal, and its time is known: a broker's is
    asked only with `connect`."""
    broker = services.broker if services.goes_by_broker else None
    with suppress(PaperdeskError), DeskJournal(services.desk) as journal:
        now = by_desk_time(services).clock.now() if broker is None else broker.time() if connect else None
        if journal.reader is None or now is None:
            return
        calendar = services.desk_calendar(services.symbols)
        due = session_to_decide(calendar, services.symbols, None, now)
        missed = missed_sessions(journal.reader, calendar, due)
        days = ", ".join(map(str, missed))
        said = f"no daily run for {days}: check the timer that starts them, and notify.ping" if missed else ""
        yield Finding("Journals", "sessions", NOTE if missed else OK, said or "no missed sessions recently")


def _operation(services: Services) -> tuple[list[Finding], list[Finding]]:
    """The last run with its exit code, and the load of the models; nothing of a desk that has not run."""
    with suppress(PaperdeskError), DeskJournal(services.desk) as journal:
        if journal.reader is None:
            return [], []
        found, runs = operation_rows(journal.reader, None, by_desk_time(services).clock.now()), []
        for run in found["runs"][:1]:
            code = "exit code not recorded" if run["exit_code"] is None else f"exit code {run['exit_code']}"
            said = f"{run['id']}: {run['outcome']}, {code}"
            if run["outcome"] is None:
                said = f"{run['id']}: running, or killed; the next run resumes it"
            runs.append(Finding("Journals", "last run", NOTE if run["exit_code"] else OK, said))
        limited = any(one["limited"] for one in found["rates"])
        loads = "; ".join(map(rate_words, found["rates"])) or "no model calls today"
        return runs, [Finding("Models", "rates", NOTE if limited else OK, loads)]
    return [], []


def _drills() -> Iterator[Finding]:
    """The latest drills, each with its date."""
    try:
        kept = stored_results()
    except PaperdeskError as error:
        yield Finding("Drill", "results", FAIL, str(error))
        return
    for place, document in kept.items():
        failed = [row["name"] for row in document["rows"] if not row["held"]]
        detail = f"drill {document['time'][:10]}: {document['held']} of {document['count']} held"
        more = f", not {', '.join(failed)}" if failed else ""
        yield Finding("Drill", place, FAIL if failed else OK, detail + more)
    if not kept:
        yield Finding("Drill", "drills", OK, "none yet: run `paperdesk drill`")


def _rehearsal(services: Services) -> Iterator[Finding]:
    """The rehearsal that the desk's preset asks for, where it does: a failure where the desk trades an account."""
    try:
        preset = desk_preset(services)
        reason, kept = refusal(services, preset), stored_certificate(services.desk)
    except PaperdeskError as error:
        yield Finding("Rehearsal", "certificate", FAIL, str(error))
        return
    if preset.rehearsal is None:
        return
    if reason:
        state = FAIL if trades_account(services) else NOTE
        yield Finding("Rehearsal", "certificate", state, reason)
    elif kept is not None:
        yield Finding("Rehearsal", "certificate", OK, rehearsal_words(kept))


def _recorded_answers(path: Path) -> Iterator[Finding]:
    if not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        fault = str(error)
    state, detail = (OK, f"sound ({path})") if fault == "ok" else (FAIL, f"{path}: {fault}")
    yield Finding("Journals", "recorded answers", state, detail)


def _data(services: Services) -> Iterator[Finding]:
    config, folder = services.config, services.data_folder
    if folder is None:
        yield Finding("Data", "source", OK, f"the generated demo market, seed {config.data.demo_seed}")
        return
    if not folder.is_dir():
        made = config.data.folder is None
        detail = (
            f"{folder}: nothing fetched yet; the first run fetches, or run `paperdesk fetch`" if made else str(folder)
        )
        yield Finding("Data", "source", OK if made else FAIL, detail)
        return
    yield Finding("Data", "source", OK, str(folder))
    if services.symbols:
        portfolio = config.exchanges.of_portfolio(services.symbols)
        moved = "; crypto among shares moves the desk's close to midnight UTC"
        note = moved if has_crypto_among_shares(services.symbols) else ""
        yield Finding("Data", "portfolio", OK, f"trades {portfolio.described}{note}")
    source = services.open_source(services.data, date.min)
    yield from _beside(services, source)
    if not config.desk.symbols:
        yield Finding("Data", "symbols", FAIL, NO_DESK_SYMBOLS)
    for symbol in config.desk.symbols:
        try:
            yield asyncio.run(_covered(source, symbol, services.calendar_for(symbol)))
        except PaperdeskError as error:
            yield Finding("Data", symbol, FAIL, str(error))


def _beside(services: Services, source: MarketSource) -> Iterator[Finding]:
    """The data beside symbols: macro series, holdings and commentary of funds."""
    listed = {"macro": _macro(services), "holdings": _holdings(source), "commentary": _commentary(source)}
    for name, listing in listed.items():
        try:
            if detail := asyncio.run(listing):
                yield Finding("Data", name, OK, detail)
        except PaperdeskError as error:
            yield Finding("Data", name, FAIL, str(error))


async def _macro(services: Services) -> str:
    source = services.open_macro(services.data, date.min)
    series = [await source.series(name) for name in await source.names()]
    return "; ".join(f"{one.name}: {len(one.observations):,} figures" for one in series)


async def _holdings(source: MarketSource) -> str:
    return "; ".join(
        f"{fund}: {len(rows):,} rows from {rows[0].date} to {rows[-1].date}"
        for fund, rows in (await source.holdings()).items()
        if rows
    )


async def _commentary(source: MarketSource) -> str:
    said = await source.commentary()
    counted = Counter(item.symbol for item in said.items)
    dropped = sum(one.count for one in said.dropped)
    texts = "; ".join(f"{fund}: {count:,} texts" for fund, count in sorted(counted.items()))
    return texts + (f"; {dropped:,} items dropped" if dropped else "")


async def _covered(source: MarketSource, symbol: str, calendar: Calendar) -> Finding:
    history = await source.history(symbol)
    if not len(history):
        return Finding("Data", symbol, FAIL, "no bars; import some")
    first, last = history.session(0), history.session(-1)
    check_coverage(history, calendar, first, last)
    actions, news, filings = await source.actions(symbol), await source.news(symbol), await source.filings(symbol)
    compared = compare(history, actions)
    refuse_faults(compared.faults, date.max)
    counts = [
        f"{len(history):,} bars without a gap from {first} to {last}",
        "no file of corporate actions" if actions is None else f"{len(actions):,} corporate actions",
        f"{len(news.items):,} news",
        f"{len(filings.items):,} filings",
    ]
    dropped = sum(one.count for one in (*news.dropped, *filings.dropped))
    detail = ", ".join(counts) + (f"; {dropped:,} items dropped" if dropped else "")
    if notes := list(compared.notes(first, last)):
        return Finding("Data", symbol, NOTE, f"{detail}; {'; '.join(notes)}")
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


def _clock(services: Services) -> Iterator[Finding]:
    now = LiveClock().now()
    yield Finding("Clock", "now", OK, f"{now:%Y-%m-%d %H:%M:%S} UTC; check it against your watch")
    exchange = services.config.exchanges.of_portfolio(services.symbols)
    name = exchange.calendar if exchange.calendar != AROUND_THE_CLOCK else "XNYS"
    try:
        calendar = exchange_calendar(name, places.session_table(name))
        last, left = calendar.last_closed(now), calendar.ends - now.date()
        detail = f"last completed session {last}; sessions known until {calendar.ends}"
        advice = "" if left > _SOON else ": upgrade exchange_calendars by then"
        yield Finding("Clock", name, NOTE if advice else OK, detail + advice)
    except PaperdeskError as error:
        yield Finding("Clock", name, FAIL, str(error))


AREA = "Broker"
_MODES = {
    TradingMode.AUTO: "orders are sent",
    TradingMode.ASK: "orders wait for approval",
    TradingMode.OBSERVE: "nothing is sent",
}
_APART, _FAR_APART = timedelta(seconds=2), timedelta(seconds=60)
"""Largest distance of this machine's clock from the broker's: worth knowing, and too far."""
_AROUND = timedelta(days=30)
"""The period on both sides of now in which the calendars are compared."""
_LATELY = timedelta(days=10)
"""The period within which every share has a bar."""


def broker_checks(services: Services, connect: bool) -> Iterator[Finding]:
    """Every finding about the broker. Nobody is asked unless `connect` says so; keys are named, never shown."""
    broker, mode = services.broker, services.config.broker.mode
    if broker is None:
        yield Finding(AREA, "kind", OK, "the simulated market, with its books in the desk's journal")
        return
    yield Finding(AREA, "kind", OK, f"{broker.registration.title}; mode {mode}: {_MODES[mode]}")
    try:
        described = broker.settings.described
    except CredentialsRefused as error:
        yield Finding(AREA, "account", FAIL, str(error))
        return
    except PaperdeskError as error:
        yield Finding(AREA, "address", FAIL, str(error))
        return
    for name, detail in described.items():
        yield Finding(AREA, name, OK, detail)
    try:
        check_exchange(broker.registration, services.config.exchanges, services.symbols)
    except PaperdeskError as error:
        yield Finding(AREA, "symbols", FAIL, str(error))
    if connect:
        yield from asyncio.run(_answers(services.config, broker, services.calendar_for(ANY_SHARE)))


async def _answers(config: Config, service: BrokerService, calendar: Calendar) -> list[Finding]:
    here = LiveClock().now
    broker = service.open()
    try:
        try:
            now = (await broker.clock()).now
        except PaperdeskError as error:
            # Whoever does not tell the time answers nothing else of the account either, after as long a wait.
            return [Finding(AREA, "clock", FAIL, str(error)), *await _data_findings(config, service, here().date())]
        found = [_clock_finding(config, now - here(), now)]
        found += [await _account_finding(broker), await _calendar_finding(broker, calendar, now.date())]
    finally:
        await broker.aclose()
    return [*found, *await _data_findings(config, service, now.date())]


def _clock_finding(config: Config, ahead: timedelta, theirs: datetime) -> Finding:
    detail = f"{theirs:%Y-%m-%d %H:%M:%S} UTC, {abs(ahead).total_seconds():,.1f} s "
    detail += "ahead of this machine" if ahead > timedelta() else "behind this machine"
    if config.broker.clock == "broker":
        return Finding(AREA, "clock", OK, f"{detail}; the desk follows the broker's")
    if abs(ahead) > _FAR_APART:
        advice = 'set this machine\'s clock, or broker.clock = "broker" for a sandbox with a clock of its own'
        return Finding(AREA, "clock", FAIL, f"{detail}: {advice}")
    return Finding(AREA, "clock", NOTE if abs(ahead) > _APART else OK, detail)


async def _account_finding(broker: Broker) -> Finding:
    try:
        account, waiting = await broker.account(), len(await broker.open_orders())
    except PaperdeskError as error:
        return Finding(AREA, "account", FAIL, str(error))
    detail = (
        f"{account.status or 'no status'}, cash {money(account.cash)} {account.currency}, worth "
        f"{money(account.equity)}, {counted(len(account.positions), 'position')}, {counted(waiting, 'open order')}"
    )
    if account.blocked:
        return Finding(AREA, "account", FAIL, f"{detail}: {account.blocked}; check the account at the broker")
    odd = account.status.upper() != "ACTIVE" or account.currency != "USD" or account.cash < 0
    return Finding(AREA, "account", NOTE if odd else OK, detail)


async def _calendar_finding(broker: Broker, calendar: Calendar, today: date) -> Finding:
    first, last = today - _AROUND, today + _AROUND
    try:
        days = calendar.sessions(first, last)
        ours = {SessionHours(day, calendar.opens_at(day), calendar.closes_at(day)) for day in days}
        differing = sorted({one.session for one in ours ^ set(await broker.session_hours(first, last))})
    except PaperdeskError as error:
        return Finding(AREA, "calendar", FAIL, str(error))
    if differing:
        detail = f"it differs from XNYS as known here on {', '.join(map(str, differing[:3]))}"
        return Finding(AREA, "calendar", FAIL, f"{detail} ({len(differing)} in all): update exchange_calendars")
    return Finding(AREA, "calendar", OK, f"the same {len(ours)} sessions from {first} to {last} as known here")


async def _data_findings(config: Config, service: BrokerService, today: date) -> list[Finding]:
    """The latest daily bars of a symbol of the desk, which a daily run asks for; nothing of a broker without data."""
    source = service.open_data()
    if source is None:
        return []
    symbol: Symbol = config.desk.symbols[0] if config.desk.symbols else ANY_SHARE
    try:
        bars = [bar async for _, some in source.bars([symbol], today - _LATELY, today) for bar in some]
    except PaperdeskError as error:
        return [Finding(AREA, "data", FAIL, str(error))]
    finally:
        await source.aclose()
    if not bars:
        detail = f"answers, and has no bar of {symbol} from {today - _LATELY} to {today}"
        return [Finding(AREA, "data", NOTE, detail)]
    return [Finding(AREA, "data", OK, f"answers; the latest daily bar of {symbol} is of {bars[-1].session}")]
