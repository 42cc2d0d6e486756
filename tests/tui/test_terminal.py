"""The real program in a real terminal: tmux on a private socket, what it shows polled from outside."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.test_approve import Buys
from tests.tui.real_terminal import TMUX, Terminal, daily

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


@pytest.fixture
def opened(paperdesk_home: Path) -> Iterator[Callable[..., Terminal]]:
    """Opens the app at a size; closes what was opened."""
    terminals: list[Terminal] = []
    # A desk that is configured, if by nothing: the demo's own opening computes for a while.
    (paperdesk_home / "config.toml").touch()

    def at(columns: int, rows: int, before: str = "", variables: str = "", suspends: bool = False) -> Terminal:
        terminals.append(Terminal(paperdesk_home, columns, rows, before, variables, suspends))
        return terminals[-1]

    yield at
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize(("columns", "rows"), [pytest.param(120, 40, marks=pytest.mark.slow), (80, 24)])
def test_it_opens_and_survives_every_size_down_to_30_by_8(
    opened: Callable[..., Terminal], columns: int, rows: int
) -> None:
    terminal = opened(columns, rows)
    terminal.until(lambda text: "ORVL 1D" in text and "PAPER" in text)
    for size in ((60, 15), (30, 8), (100, 20), (30, 8)):
        terminal.resize(*size)
        terminal.until(lambda text: "PAPER" in text)
        time.sleep(0.2)
    terminal.resize(columns, rows)
    terminal.until(lambda text: "ORVL 1D" in text and "next session" in text)


@pytest.mark.slow
def test_a_cycle_and_a_backtest_run_while_keys_are_answered(opened: Callable[..., Terminal]) -> None:
    terminal = opened(120, 40)
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("r")
    terminal.until(lambda text: "run done" in text)
    terminal.keys("4")
    terminal.until(lambda text: "2025-01-02" in text)
    terminal.keys("C-r")
    terminal.until(lambda text: "left" in text)
    terminal.keys("1")
    terminal.until(lambda text: "Watchlist" in text)
    terminal.keys("]")
    terminal.until(lambda text: "BXWD 1D" in text)
    terminal.resize(30, 8)
    terminal.until(lambda text: "PAPER" in text)
    terminal.resize(120, 40)
    terminal.keys("4")
    terminal.until(lambda text: "left" in text)
    terminal.keys("x")
    terminal.until(lambda text: "stopped" in text)
    terminal.keys("2")
    terminal.until(lambda text: re.search(r"[1-9]\d* decisions?\b", text) is not None)
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)


SIGNS = {
    "2": "Decisions of",
    "3": "Blotter",
    "4": "Decides",
    "5": "Models today",
    "1": "Watchlist",
}
"""A few words on every screen, by its key."""


@pytest.mark.slow
def test_keys_alone_reach_every_screen_and_end_an_order(opened: Callable[..., Terminal]) -> None:
    file = places.config_file()
    file.write_text('[desk]\npreset = "finvision"\n[broker]\nmode = "ask"\n')
    # The rules want to trade on some days, and not on others.
    asyncio.run(run_daily(services(load_config(file).config), through=Buys))
    terminal = opened(120, 40)
    terminal.until(lambda text: "ORVL 1D" in text and "its orders wait" in text and "waits" in text)
    for size in ((120, 40), (200, 60), (80, 24)):
        terminal.resize(*size)
        for key, sign in SIGNS.items():
            terminal.keys(key)
            terminal.until(lambda text, sign=sign: sign in text and "PAPER" in text)  # type: ignore[misc]
    terminal.resize(30, 8)
    terminal.until(lambda text: "PAPER" in text)
    terminal.resize(120, 40)
    terminal.until(lambda text: "Open orders" in text and "4 to approve" in text)
    terminal.keys("x")
    terminal.until(lambda text: "Veto" in text)
    terminal.keys("y")
    terminal.until(lambda text: "3 to approve" in text)
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)
    assert terminal.modes() == "0 1 0"


@pytest.mark.parametrize(
    ("variables", "plain"),
    [
        ("TERM=dumb LC_ALL= LANG=C", True),
        pytest.param("LC_ALL=C", True, marks=pytest.mark.slow),
        pytest.param("NO_COLOR=1", False, marks=pytest.mark.slow),
        pytest.param("TERM=screen SSH_CONNECTION=x SSH_TTY=/dev/pts/9", False, marks=pytest.mark.slow),
    ],
)
def test_a_poor_terminal_is_enough(opened: Callable[..., Terminal], variables: str, plain: bool) -> None:
    terminal = opened(100, 30, variables=variables)
    terminal.until(lambda text: "ORVL 1D" in text)
    for key, sign in SIGNS.items():
        terminal.keys(key)
        text = terminal.until(lambda text, sign=sign: sign in text and "PAPER" in text)  # type: ignore[misc]
        assert not plain or text.isascii(), [line for line in text.splitlines() if not line.isascii()]
    terminal.keys("]")
    terminal.until(lambda text: "BXWD 1D" in text)
    assert terminal.has_colour() is not ("NO_COLOR" in variables or "dumb" in variables)
    assert not (terminal.has_true_colour() and "dumb" in variables)
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)
    assert terminal.modes() == "0 1 0"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the process is found in /proc")
@pytest.mark.parametrize(
    "ending", [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGHUP, signal.SIGINT))]
)
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    opened: Callable[..., Terminal], ending: signal.Signals
) -> None:
    terminal = opened(120, 40)
    terminal.until(lambda text: "ORVL 1D" in text)
    assert terminal.modes() == "1 0 1"
    os.kill(terminal.program(), ending)
    terminal.until(lambda text: "ENDED 0" in text)
    assert terminal.modes() == "0 1 0"


def test_it_is_suspended_and_comes_back(opened: Callable[..., Terminal]) -> None:
    terminal = opened(120, 40, suspends=True)
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("C-z")
    terminal.until(lambda text: "SUSPENDED" in text)
    assert terminal.modes() == "0 1 0"
    terminal.keys("Enter")
    terminal.until(lambda text: "ORVL 1D" in text)
    assert terminal.modes() == "1 0 1"
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)


BREAKS = (
    'from engine.errors import MissingData; from tui.screens.frame import FramedScreen; secret = ["sk-KEY"]; '
    "FramedScreen.action_log = lambda self, key=secret: {failure}; "
)


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        ("1 / 0", 70, "a bug: ZeroDivisionError: division by zero"),
        pytest.param('(_ for _ in ()).throw(MissingData("no bars"))', 65, "no bars", marks=pytest.mark.slow),
    ],
)
def test_an_exception_is_one_line_under_a_terminal_as_it_was(
    opened: Callable[..., Terminal], failure: str, code: int, said: str
) -> None:
    terminal = opened(120, 40, BREAKS.format(failure=failure))
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("`")
    text = terminal.until(lambda text: "ENDED" in text)
    assert f"ENDED {code}" in text and f"paperdesk: {said}" in text
    assert terminal.modes() == "0 1 0"


@pytest.mark.parametrize("variables", ["FORCE_COLOR=1", pytest.param("", marks=pytest.mark.slow)])
def test_a_traceback_has_no_values_of_variables(opened: Callable[..., Terminal], variables: str) -> None:
    debugged = 'import sys; sys.argv.append("--debug"); ' + BREAKS.format(failure="1 / 0")
    terminal = opened(120, 40, debugged, variables)
    terminal.until(lambda text: "ORVL 1D" in text)
    terminal.keys("`")
    while "ENDED" not in (text := terminal.text()):
        time.sleep(0.05)
    assert "ENDED 70" in text and "<lambda>" in text and "sk-KEY" not in text


def test_an_app_that_cannot_end_is_ended(opened: Callable[..., Terminal]) -> None:
    stuck = (
        "import threading; from textual.drivers._writer_thread import WriterThread; "
        "WriterThread.stop = lambda self: threading.Event().wait(); "
        "from tui.app.shutdown import Watchdog; Watchdog.__init__.__defaults__ = (1.0,); "
    )
    terminal = opened(120, 40, stuck)
    terminal.until(lambda text: "ORVL 1D" in text)
    os.kill(terminal.program(), signal.SIGHUP)
    terminal.until(lambda text: "ENDED 130" in text)
    assert terminal.modes() == "0 1 0"


def test_an_app_whose_terminal_is_gone_leaves_no_process(opened: Callable[..., Terminal]) -> None:
    keeps_reading = (
        "from textual.drivers.linux_driver import LinuxDriver; LinuxDriver.disable_input = lambda self: None; "
        "from tui.app.shutdown import Watchdog; Watchdog.__init__.__defaults__ = (1.0,); "
    )
    terminal = opened(120, 40, keeps_reading)
    terminal.until(lambda text: "ORVL 1D" in text)
    program = Path(f"/proc/{terminal.program()}/stat")
    terminal.close()
    while program.exists() and program.read_text().split()[2] != "Z":
        time.sleep(0.05)


def test_a_fresh_home_shows_a_position_and_a_decision_and_then_its_film(paperdesk_home: Path) -> None:
    terminal = Terminal(paperdesk_home, 120, 40)
    try:
        held = r"(ORVL|BXWD|HLXM|WRNN-USD) +[\d.,]+ .* [+-][\d.,]+ +[│┃]"  # its profit, which only a position has
        decided = r"WRNN-USD .*(BUY|SELL|HOLD)"
        terminal.until(lambda text: all(re.search(one, text) for one in (held, decided)))
        terminal.until(lambda text: "PAST" in text and "1x" in text)
        terminal.keys("r")
        terminal.until(lambda text: "PAST" not in text and "close of 2026-09-25" in text and "run done" in text)
    finally:
        terminal.close()


def test_a_fresh_home_is_configured_by_three_keys_and_opened_again(paperdesk_home: Path) -> None:
    file = paperdesk_home / "config.toml"
    terminal = Terminal(paperdesk_home, 160, 40, variables="OPENAI_API_KEY=none")
    try:
        terminal.until(lambda text: "ORVL" in text)
        terminal.keys("m")
        terminal.until(lambda text: "model of the desk" in text and "›offline" in text and "hosted" in text)
        terminal.keys("Down")
        terminal.until(lambda text: "›openai:" in text)
        terminal.keys("Enter")
        terminal.until(lambda text: "open again" in text)  # which stays; a notification goes by itself
        chosen = load_config(file).config.models.default
        assert chosen.startswith("openai:")
        terminal.keys("C-t")
        terminal.until(lambda text: "ORVL" in text and "open again" not in text and "same as" not in text)
        terminal.keys(",")
        terminal.until(lambda text: f"{chosen}: " in text and "config.toml" in text)
    finally:
        terminal.close()


@pytest.mark.slow
def test_the_picture_of_a_decision_is_shown_and_keys_go_on(
    opened: Callable[..., Terminal], paperdesk_home: Path
) -> None:
    """A library that asked the terminal while the app reads from it would wait for good."""
    daily(paperdesk_home)
    terminal = opened(120, 40)
    terminal.until(lambda text: "run done" in text and "ORVL 1D" in text)
    terminal.keys("z")
    terminal.until(lambda text: "what the model saw" in text)
    terminal.keys("v")
    shown = terminal.until(lambda text: "The picture is" in text and "macd trend" in text)
    assert shown.count("\N{UPPER HALF BLOCK}") + shown.count("\N{LOWER HALF BLOCK}") > 200
    terminal.keys("Escape")
    terminal.until(lambda text: "what the model saw" in text and "The picture is" not in text)
    terminal.keys("q")
    terminal.until(lambda text: "ENDED 0" in text)
