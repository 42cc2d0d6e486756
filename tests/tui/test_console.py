"""What standard output is taken to be able to show."""

from __future__ import annotations

import io
import sys

import click
import pytest

from engine.reports.summary import NOTHING
from engine.reports.tables import POSITIONS
from tui.text.backtest_text import summary_text
from tui.text.console import PLAIN_WIDTH, Console, plain_characters, show, standard_output
from tui.text.plain_text import table_of


class Terminal(io.TextIOWrapper):
    """A terminal of an encoding."""

    def __init__(self, encoding: str = "utf-8", watched: bool = True) -> None:
        self.written = io.BytesIO()
        self._watched = watched
        super().__init__(self.written, encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return self._watched


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.usefixtures("wide")
def test_a_terminal_has_its_width_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert standard_output() == Console(132, colour=True, ascii_only=False, is_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert standard_output() == Console(132, colour=False, ascii_only=False, is_terminal=True)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert standard_output().colour is False


@pytest.mark.usefixtures("wide")
def test_a_pipe_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal(watched=False))
    assert standard_output() == Console(132, colour=False, ascii_only=False) and standard_output().room == 132
    monkeypatch.delenv("COLUMNS")
    assert standard_output() == Console(PLAIN_WIDTH, colour=False, ascii_only=False)
    assert standard_output().room > 1_000


def test_gains_are_coloured_where_a_person_looks_and_columns_stand_as_without() -> None:
    held = [
        {"symbol": name, "quantity": "2", "cost": "10", "price": price, "share": None}
        for name, price in (("UP", "11"), ("DOWN", "9"))
    ]
    plain, painted = (
        list(table_of(POSITIONS, held, 80, paint=Console(colour=colour).inked)) for colour in (False, True)
    )
    assert [click.unstyle(line) for line in painted] == plain and "\x1b" not in "".join(plain)
    assert click.style("+2.00", fg="green") in painted[1] and click.style("-2.00", fg="red") in painted[2]


def test_what_an_encoding_does_not_take_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert standard_output().ascii_only
    show("drawn – with ▚ and half a pair \ud83d")
    assert terminal.written.getvalue() == b"drawn ? with ? and half a pair ?\n"


@pytest.mark.parametrize("console", [Console(60), Console(100, ascii_only=True), Console(140, colour=True)])
def test_a_summary_fits_what_shows_it(console: Console) -> None:
    metrics = dict.fromkeys(
        ("total_return", "volatility", "sharpe", "sortino", "max_drawdown", "turnover", "exposure", "win_rate"), None
    )
    days = [f"2024-01-{day:02}" for day in range(2, 12)]
    made = {
        "run": "r1",
        "strategy": "macd",
        "label": "a rule strategy",
        "settings": {"data": "demo market, seed 7", "params": {"fast": "6"}, "without": []}
        | {"fills": None, "cash_floor": None, "version": "1", "seed": 7, "data_fingerprint": "f" * 64},
        "symbols": [f"SYMBOL{number}" for number in range(12)],
        "sessions": len(days),
        "first_session": days[0],
        "last_session": days[-1],
        "convention": "desk",
        "initial_value": "1000.00",
        "final_value": "900.00",
        "metrics": metrics | {"sharpe": 1.5, "total_return": -0.1},
        "baselines": {"buy-and-hold": {"metrics": metrics, "equity": ["1000.00"] * len(days)}},
        "equity": [{"session": day, "value": f"{1000 - 10 * n}.00"} for n, day in enumerate(days)],
        "trades": [],
        "cash_flows": [],
        "decisions": [],
        "warm_up": None,
        "model": None,
        "unresolved_figures": 0,
        "dropped": {},
        "notes": ["a long note " * 20],
        "interrupted": True,
    }
    text = summary_text(made, "/journal.db", console)
    assert "-10.00%" in text
    assert "macd" in text
    assert ("\x1b[" in text) == console.colour
    if console.ascii_only:
        assert text.isascii()
    else:
        assert NOTHING in text
    if not console.colour:
        # A command is never broken: it is there to be copied.
        lines = [line for line in text.splitlines() if "paperdesk" not in line]
        assert max(map(len, lines)) <= console.width


@pytest.mark.parametrize(
    ("environ", "encoding", "plain"),
    [
        ({"LANG": "en_US.UTF-8", "TERM": "xterm"}, "utf-8", False),
        ({"LANG": "en_US.UTF-8", "TERM": "dumb"}, "utf-8", True),
        ({"LANG": "en_US.UTF-8"}, "ascii", True),
        ({"LANG": "C"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),  # as Python leaves it
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "C.UTF-8"}, "utf-8", False),
        ({}, "utf-8", False),
    ],
)
def test_a_locale_or_a_kind_of_terminal_may_have_plain_characters_alone(
    environ: dict[str, str], encoding: str, plain: bool
) -> None:
    assert plain_characters(environ, encoding) is plain
