"""A demo desk that has run for three sessions and a short backtest, made once and copied for every test."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from connectors.sandbox import SandboxServer, SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.settings import places
from engine.settings.config import load_config
from tests.conftest import MadeHome
from tui.cli import main

SESSIONS = (date(2025, 3, 11), date(2025, 3, 12), date(2025, 3, 14))
"""Sessions that the desk decides for; the one between them passes without a run."""
BACKTEST = "backtest-20250701-120000-ab12"
SHORT_BACKTEST = RunSpec(
    symbols=("ORVL", "HLXM"),
    first=SESSIONS[0],
    last=date(2025, 3, 24),
    warm_up_from=date(2025, 3, 4),
    preset="finvision",
    data=DataSpec(None, 7),
    run=BACKTEST,
)
FEW_AGENTS = {"PAPERDESK_DESK__PRESET": "finvision"}
DEBATING = {"PAPERDESK_DESK__PRESET": "desk-debate", "PAPERDESK_DESK__SYMBOLS": "ORVL,HLXM"}


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def result(self) -> str:
        """Standard output, but for the document of the error that stands on the other."""
        try:
            document = json.loads(self.out)
        except ValueError:
            return self.out
        is_error = set(document) == {"schema", "error", "exit_code"} and document["exit_code"] == self.code
        return "" if is_error and document["error"] in self.err else self.out


Run = Callable[..., Said]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `paperdesk` with arguments, in this process."""

    def called(*arguments: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, told.out, told.err)

    return called


def desk_lives(chosen: Mapping[str, str], *sessions: date) -> None:
    """Runs a desk that is configured so by its environment, session by session."""
    for session in sessions:
        asyncio.run(run_daily(services(load_config(None, environ=chosen).config), session))


@pytest.fixture(scope="session")
def desk_home(made_home: MadeHome) -> Path:
    """A home of a desk after three daily runs."""
    return made_home("desk", lambda: desk_lives(FEW_AGENTS, *SESSIONS))


@pytest.fixture(scope="session")
def backtest_home(made_home: MadeHome) -> Path:
    """A home after one short backtest."""
    config = load_config(None, environ=FEW_AGENTS).config
    return made_home("backtest", lambda: run_backtest(services(config), SHORT_BACKTEST))


@pytest.fixture(scope="session")
def debate_home(made_home: MadeHome) -> Path:
    """A home of a desk of three analysts who debated in three sessions."""
    return made_home("debate", lambda: desk_lives(DEBATING, *SESSIONS))


REMEMBERED = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 14))
MEMORY = {"PAPERDESK_DESK__PRESET": "desk", "PAPERDESK_DESK__SYMBOLS": "TMBK,BXWD"}
REMEMBERING = "backtest-20240601-120000-cd34"


@pytest.fixture
def remembering(made_home: MadeHome, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which a desk with memory ran for three sessions, and a backtest that has a memory of its own."""

    def lives() -> None:
        desk_lives(MEMORY, *REMEMBERED)
        first, last = REMEMBERED[1:]
        spec = replace(SHORT_BACKTEST, symbols=("TMBK",), first=first, last=last, preset="desk", run=REMEMBERING)
        run_backtest(services(load_config(None, environ=MEMORY).config), replace(spec, warm_up_from=None))

    for name, value in MEMORY.items():
        monkeypatch.setenv(name, value)
    return copied(made_home("remembering", lives), paperdesk_home)


@pytest.fixture
def debating(debate_home: Path, paperdesk_home: Path) -> Path:
    """The home of a desk of three analysts who debated."""
    return copied(debate_home, paperdesk_home)


@pytest.fixture
def desk(desk_home: Path, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a desk that has run, with FinVision's few agents; its Arena screen plays none by itself, which would
    take a process of its own."""
    monkeypatch.setattr("engine.app.open_desk.is_demo", lambda services: False)
    return copied(desk_home, paperdesk_home)


@pytest.fixture
def backtested(backtest_home: Path, paperdesk_home: Path) -> Path:
    """A home with a backtest and no desk."""
    return copied(backtest_home, paperdesk_home)


@pytest.fixture
def fresh(paperdesk_home: Path) -> Path:
    """A home in which nothing has run; only the exchange's sessions are known, which take a second to make."""
    return paperdesk_home


PAPER = """
[desk]
name = "paper"
symbols = {symbols}
preset = "finvision"
[data]
{data}
refresh = false
[broker]
kind = "alpaca"
clock = "broker"
"""
OpenBroker = Callable[..., SandboxServer]


@pytest.fixture
def open_broker(
    fresh: Path, demo_folder: Callable[[date], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenBroker]:
    """Opens a local broker over the demo market through a day, and configures a desk `paper` that trades there.

    `more` follows in the configuration, whose last table is [broker]; other settings are those of SandboxSettings.
    """
    with ExitStack() as stack:

        def opened(
            start: datetime, *, through: date | None, symbols: Sequence[str], more: str = "", **settings: Any
        ) -> SandboxServer:
            folder = None if through is None else demo_folder(through)
            data = "demo_seed = 7" if folder is None else f'folder = "{folder.as_posix()}"'
            text = PAPER.format(symbols=json.dumps(list(symbols)), data=data) + more
            places.config_file().write_text(text, encoding="utf-8")
            spec = DataSpec(None, 7) if folder is None else DataSpec(str(folder))
            server = stack.enter_context(build_sandbox(spec, SandboxSettings(start=start, **settings)))
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            return server

        yield opened


def after_close(server: SandboxServer) -> None:
    """Moves a broker to five minutes after its next close."""
    server.advance("close")
    server.advance("5m")


def bought(server: SandboxServer, symbol: str, shares: str) -> None:
    """Somebody else buys in the account; the order fills at the next open, and that session passes."""
    ordered(server, symbol, shares)
    after_close(server)


def ordered(server: SandboxServer, symbol: str, shares: str) -> None:
    """Somebody else orders in the account; it waits for the next open."""
    place = server.environment
    headers = {"APCA-API-KEY-ID": place["APCA_API_KEY_ID"], "APCA-API-SECRET-KEY": place["APCA_API_SECRET_KEY"]}
    order = {"symbol": symbol, "qty": shares, "side": "buy", "type": "market", "time_in_force": "day"}
    with httpx.Client(base_url=server.url, headers=headers) as http:
        assert http.post("/v2/orders", json=order).status_code == 200


def copied(from_: Path, home: Path) -> Path:
    """A home that was made, in the place of a test's own."""
    shutil.copytree(from_, home, dirs_exist_ok=True)
    return home


def contents(home: Path) -> dict[str, bytes]:
    """Every file of a home with what is in it, without what SQLite puts beside a database while it is read, and
    without the calendar that every home of a test begins with."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    named = {str(path.relative_to(home)): path.read_bytes() for path in files}
    return {name: content for name, content in named.items() if name != "cache/sessions-XNYS.json"}
