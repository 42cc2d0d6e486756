"""What holds for every test: a clean environment, a home of its own, no network, the same examples."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import shutil
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

from engine.domain.chart import ChartSpec
from engine.market import trading_hours

REPO = Path(__file__).resolve().parent.parent

_UNSET = ("NO_COLOR", "COLUMNS", "LINES")
_UNSET_PREFIXES = ("OPENAI_", "ANTHROPIC_", "TEXTUAL_", "APCA_", "PAPERDESK_")
_KEPT = ("PAPERDESK_TEST_DATA",)
_IN_MEMORY, _ROOM = Path("/dev/shm"), 4 * 2**30
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

# `make test-long` names its own profile, which is loaded after this one.
settings.register_profile("long", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("paperdesk", settings.get_profile("long"), max_examples=12)
settings.load_profile("paperdesk")


class NetworkRefused(OSError):
    """A test tried to leave this machine. Use a fake, a recording, or a server on loopback."""


def _refuse_if_outside(family: int, address: Any) -> None:
    if family == getattr(socket, "AF_UNIX", None):
        return
    host = str(address[0]) if isinstance(address, tuple) and address else ""
    try:
        loopback = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise NetworkRefused(f"a test tried to connect to {address!r}: tests reach loopback only")


def _is_name_outside(host: Any) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not host or host in ("localhost", socket.gethostname()):
        return False
    try:
        ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return True
    return False


def _guarded_lookup(lookup: Any) -> Any:
    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if _is_name_outside(host):
            raise NetworkRefused(f"a test tried to look up {host!r}: tests reach loopback only")
        return lookup(host, *args, **options)

    return getaddrinfo


def _guarded(method: Any) -> Any:
    def connect(self: socket.socket, address: Any) -> Any:
        _refuse_if_outside(self.family, address)
        return method(self, address)

    return connect


def pytest_configure(config: pytest.Config) -> None:
    """The settings of whoever runs the tests do not reach them, nor the modules that they import."""
    gc.disable()  # a fifth of a worker's start would go into garbage, of which there is none yet
    patch = pytest.MonkeyPatch()
    for name in list(os.environ):
        if name not in _KEPT and (name in _UNSET or name.startswith(_UNSET_PREFIXES)):
            patch.delenv(name)
    patch.setenv("TERM", "xterm-256color")  # the terminal of whoever runs them decides nothing
    patch.setenv("TEXTUAL_FPS", "60")  # nobody looks, and each painting takes time
    # One process per core works already: threads of numpy's libraries would only wait for one another.
    for name in _ONE_THREAD:
        patch.setenv(name, "1")
    # A shell ignores Ctrl-C for what it runs in the background, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Hundreds of child processes start: each would compile the program anew where no bytecode may be written.
    patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    patch.setattr(sys, "dont_write_bytecode", False)
    # Journals wait for the disk at every commit; files in memory do not.
    if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM:
        patch.setenv("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))
    # Tests ask for it with one table, another and none.
    patch.setattr(trading_hours, "_computed", cache(trading_hours._computed))
    patch.setattr(socket.socket, "connect", _guarded(socket.socket.connect))
    patch.setattr(socket.socket, "connect_ex", _guarded(socket.socket.connect_ex))
    patch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))
    config.add_cleanup(patch.undo)


def pytest_collection_finish() -> None:
    """What was imported stays: a sixth of the time would go into searching it for garbage again and again."""
    from connectors.files import prices

    # The same price files are read by hundreds of tests; a bad row raises anew each time.
    checked = lru_cache(maxsize=100_000)(prices.bar_row)
    prices.bar_row = lambda cells: checked(tuple(cells))
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 30, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that mostly wait for a terminal come first: at the end nothing would be left to do beside them."""
    items.sort(key=lambda item: item.path.name != "test_terminal.py")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """A process that ends would search all that its tests have left several times; pytest has searched it already, and
    told what was not closed."""
    gc.freeze()


MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Folders by name, each of which one worker makes and all others find: for reading and copying alone."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, begun = shared / f"made-{name}", shared / f"begun-{name}"
        with FileLock(shared / f"{name}.lock"):
            if not folder.is_dir():
                shutil.rmtree(begun, ignore_errors=True)  # of one that failed
                begun.mkdir()
                make(begun)
                begun.rename(folder)
        return folder

    return made


@pytest.fixture(scope="session")
def sessions_table(made_once: MadeOnce) -> Path:
    """The table of XNYS's sessions, which a program otherwise computes anew in every new home."""
    from engine.market.trading_hours import exchange_calendar

    name = "sessions-XNYS.json"
    return made_once("calendars", lambda folder: exchange_calendar("XNYS", folder / name)) / name


MadeHome = Callable[[str, Callable[[], object]], Path]


@pytest.fixture(scope="session")
def made_home(made_once: MadeOnce, sessions_table: Path) -> MadeHome:
    """Homes by name, each after what is run in it once. The table of sessions is left to the home that copies one."""

    def home(name: str, lives: Callable[[], object]) -> Path:
        def make(folder: Path) -> None:
            table = folder / "cache" / sessions_table.name
            table.parent.mkdir()
            os.link(sessions_table, table)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PAPERDESK_HOME", str(folder))
                lives()
            table.unlink()

        return made_once(f"home-{name}", make)

    return home


@pytest.fixture(autouse=True)
def paperdesk_home(tmp_path: Path, sessions_table: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Config, journal and logs of this test alone."""
    home = tmp_path / "paperdesk-home"
    (home / "cache").mkdir(parents=True)
    os.link(sessions_table, home / "cache" / sessions_table.name)
    monkeypatch.setenv("PAPERDESK_HOME", str(home))
    yield home


@pytest.fixture(autouse=True)
def prices_never_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands say the same, however long after the date of the price table that comes along."""
    monkeypatch.setattr("engine.domain.model_call.STALE_DAYS", 1_000_000)


@pytest.fixture(autouse=True)
def demo_desks_begin_empty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo desk of this process begins without sixty sessions that are not its test's, but where the test asks for
    `recorded_history`. Other processes are as their users have them."""
    if "recorded_history" not in request.fixturenames:
        monkeypatch.setattr("engine.app.desk.demo_history.copy_history", lambda desk: None)
        monkeypatch.setattr("engine.app.desk.run.empty_beginning", lambda services: "")


@pytest.fixture
def recorded_history() -> None:
    """The demo desk begins with its recorded history, as it does for users."""


@pytest.fixture(autouse=True)
def nothing_is_trained_for_minutes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch is installed, slow tests alone train with it."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setitem(sys.modules, "stable_baselines3", None)


@pytest.fixture(autouse=True)
def pictures_painted_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal charts of different tests are painted once by a worker; but not where painting itself is tested."""
    if not request.path.is_relative_to(REPO / "tests" / "connectors" / "charts"):
        monkeypatch.setattr("connectors.charts.painter.lru_cache", lambda maxsize: lambda render: _painted)


_painting = Lock()
"""Painters of several desks are at work in one process here, and matplotlib's caches are not made for threads."""


@lru_cache(maxsize=2048)
def _painted(spec: ChartSpec) -> bytes:
    from connectors.charts.painter import _Drawing, encode_png

    with _painting:
        return encode_png(_Drawing(spec).figure)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real prices, news and filings; a test that needs it is skipped where there is none."""
    named = os.environ.get("PAPERDESK_TEST_DATA")
    folder = Path(named) if named else REPO.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder (PAPERDESK_TEST_DATA names another)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def markets_drawn_and_read_once() -> Iterator[None]:
    """Runs of this process share what the demo market came to, which depends on its seed and its last day alone, and
    what was read from files."""
    from connectors.files import market
    from tests.data_folders import DrawnOnce, read_once, to_json_once

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_prices", "read_news", "read_filings"):
            patch.setattr(market, name, read_once(getattr(market, name)))
        patch.setattr("connectors.demo.market.DemoMarket", DrawnOnce)
        patch.setattr("engine.market.as_of.to_json", to_json_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def calendars_read_once() -> Iterator[None]:
    """The homes of all tests have the same file of sessions."""
    read, known = trading_hours._stored_calendar, dict[tuple[object, ...], Any]()

    def stored(table: Path, *about: str) -> Any:
        if not table.is_file():
            return read(table, *about)
        stat = table.stat()
        key = (stat.st_ino, stat.st_mtime_ns, stat.st_size, *about)
        if key not in known:
            known[key] = read(table, *about)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trading_hours, "_stored_calendar", stored)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_tls_context() -> Iterator[None]:
    """Loopback needs none, and every client makes one, which takes longer than many tests."""
    context = ssl.create_default_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda *args, **options: context)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_a_service() -> Iterator[None]:
    """Retries, requests for data, and second looks at an account, an order or fills follow one another at once."""
    from connectors.alpaca.broker import AlpacaBroker
    from connectors.alpaca.market_data import AlpacaData

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.account.reconciliation.PAUSES", (0.0, 0.0))
        patch.setattr("engine.session.run.FILLS_WITHIN", 0.0)
        patch.setattr("connectors.alpaca.market_data.SECONDS_BETWEEN", 0.0005)
        patch.setattr("engine.execution.submission.LOOKUPS", (0.0, 0.0, 0.0))
        patch.setattr("connectors.llm.gate.PACE", 0.001)
        for asked in (AlpacaBroker, AlpacaData):
            defaults = asked.__init__.__kwdefaults__
            assert defaults is not None
            patch.setitem(defaults, "first_pause", 0.001)
        yield


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[date], Path]]:
    """Data folders of the demo market through a day, each written once: for reading alone, which is checked."""
    from tests.data_folders import write_demo

    def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
        found = {path: path.stat() for path in folder.rglob("*")}
        return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}

    made: dict[Path, dict[Path, tuple[int, int]]] = {}

    @cache
    def written(through: date) -> Path:
        folder = tmp_path_factory.mktemp("demo") / "data"
        asyncio.run(write_demo(folder, through))
        made[folder] = stamps(folder)
        return folder

    yield written
    for folder, before in made.items():
        written_to = sorted(str(path) for path, _ in stamps(folder).items() ^ before.items())
        assert not written_to, f"a test wrote into what others read: {written_to[:6]}"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers more than there are cores: while tests wait for a process or a service, others work."""
    named = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(named) if named else (os.cpu_count() or 1) + 2
