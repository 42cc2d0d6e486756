"""The services of a configuration: an implementation for each port. Nothing heavy is imported before it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from connectors.wiring.broker import broker_keys, broker_of
from connectors.wiring.models import KEYS, ConfiguredModels, open_embedder
from connectors.wiring.sources import ConfiguredFetch, index_fund, name_of, open_macro, open_source, profile_of
from engine.broker_registration import BrokerService
from engine.clock import LiveClock
from engine.domain.fetched import FileImport, ImportResult
from engine.domain.market import Exchanges, Symbol
from engine.domain.run import DataSpec
from engine.market.trading_hours import calendar_for, desk_calendar
from engine.ports import Calendar, ChartPainter, Clock, Notifier
from engine.services import FolderCuts, Services
from engine.settings import places
from engine.settings.config import Config


def services(config: Config, clock: Clock | None = None, *, keep_sessions: bool = True) -> Services:
    """The services of a configuration; `clock` is this machine's unless another is given. With `keep_sessions` the
    exchange's sessions are written to the cache where they are not there yet."""
    broker = broker_of(config)
    folder = data_folder(config, broker)
    named = config.data.folder or (None if folder is None else str(folder))
    data = DataSpec(named, config.data.demo_seed, config.macro.series)
    tables = places.session_table if keep_sessions else places.stored_session_table
    exchanges = config.exchanges
    calendars = partial(calendar_for, tables=tables, exchanges=exchanges)
    return Services(
        config=config,
        clock=clock or LiveClock(),
        data=data,
        data_folder=folder,
        symbols=desk_symbols(config, data),
        calendar_for=calendars,
        desk_calendar=partial(desk_calendar, tables=tables, exchanges=exchanges),
        open_source=partial(open_source, calendars),
        open_macro=partial(open_macro, calendars),
        profile_of=profile_of,
        name_of=name_of,
        index_fund=index_fund,
        import_file=partial(import_file, exchanges, calendars, clock or LiveClock()),
        open_cuts=partial(open_cuts, calendars),
        fetch=ConfiguredFetch(config),
        models=ConfiguredModels(config),
        broker=broker,
        open_embedder=partial(open_embedder, config),
        open_notifiers=partial(open_notifiers, config),
        open_ping=partial(open_ping, config),
        open_painter=open_painter,
        key_variables=partial(key_variables, config),
    )


def data_folder(config: Config, broker: BrokerService | None) -> Path | None:
    """The folder that market data is fetched to: the configured one, one of its own where the broker brings data, or
    None."""
    if config.data.folder is not None:
        return Path(config.data.folder).expanduser()
    return places.market_folder() if broker is not None and broker.registration.brings_data else None


def desk_symbols(config: Config, data: DataSpec) -> tuple[Symbol, ...]:
    """The desk's symbols; those of the demo market where none are configured and no folder is."""
    if config.desk.symbols or data.folder is not None:
        return config.desk.symbols
    from connectors.demo.market import DEFAULT_WATCHLIST

    return DEFAULT_WATCHLIST


def import_file(
    exchanges: Exchanges, calendar_for: Callable[[Symbol], Calendar], clock: Clock, request: FileImport
) -> ImportResult:
    """Bring a file into the data folder. Raises as connectors.files.import_files does."""
    from connectors.files import import_files

    return import_files.import_file(request, calendar_for, clock.now(), exchanges)


def open_cuts(calendar_for: Callable[[Symbol], Calendar], folder: Path, symbols: Sequence[Symbol]) -> FolderCuts:
    """Copies of a data folder's files on some symbols that end at a moment. Raises MalformedData."""
    from connectors.files.cut_folder import FolderCuts

    return FolderCuts(folder, symbols, calendar_for)


def open_notifiers(config: Config) -> Sequence[Notifier]:
    """Receivers of notifications. Raises ConfigError for a program or an address that is none."""
    from connectors.notify import CommandNotifier, WebhookNotifier

    notifiers: list[Notifier] = []
    if config.notify.command:
        own = {endpoint.key_env for endpoint in config.endpoints.values() if endpoint.key_env}
        notifiers.append(CommandNotifier(config.notify.command, {*key_variables(config), *own}))
    if config.notify.webhook is not None:
        notifiers.append(WebhookNotifier(config.notify.webhook))
    return notifiers


def open_ping(config: Config) -> Notifier | None:
    """The address that is called after every finished run; None where none is configured. Raises ConfigError for one
    that is none."""
    from connectors.notify import Ping

    return None if config.notify.ping is None else Ping(config.notify.ping)


def open_painter() -> ChartPainter:
    """The painter of charts."""
    from connectors.charts.painter import MatplotlibPainter

    return MatplotlibPainter()


def key_variables(config: Config) -> Sequence[str]:
    """Environment variables of the keys of brokers, vendors of models, and the macro series' service."""
    from connectors.macro.fred import KEY_VARIABLE

    return sorted({*KEYS.values(), *broker_keys(config), KEY_VARIABLE})
