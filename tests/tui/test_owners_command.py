"""Three owners from the command line: each way to combine their opinions, with what the journal keeps of every one."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.domain.run import EquityPoint
from engine.journal.reader import JournalReader
from engine.settings import places
from tui.cli import main

OWNERS = ("bull", "bear", "quant")
SYMBOLS = ("ORVL", "ULMR")
WINDOW = ("--symbols", ",".join(SYMBOLS), "--from", "2025-01-23", "--to", "2025-01-31")
SESSIONS = 7
PRESET = """
extends = "desk"
name = "three"
combine = "{combine}"
[owners.bull]
risk = "risk-seeking"
preference = "aggressive"
weight = 2
[owners.bear]
risk = "risk-averse"
preference = "conservative"
[owners.quant]
horizon = 20
"""


def backtest(preset: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main(("backtest", "--preset", str(preset), *WINDOW, "--json"))
    assert ended.value.code == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


@pytest.mark.parametrize(
    "combine", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("vote", "weighted")), "books"]
)
def test_three_owners(
    combine: str,
    tmp_path: Path,
    paperdesk_home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The ids of its orders begin like that of a position that is closed because its symbol stopped trading.
    monkeypatch.setenv("PAPERDESK_DESK__NAME", "stopped")
    preset = tmp_path / "three.toml"
    preset.write_text(PRESET.format(combine=combine))
    made = backtest(preset, capsys)
    # That every way comes out again is tested beside the journal; here one, of the desk's many agents.
    assert combine != "vote" or made["fingerprint"] == backtest(preset, capsys)["fingerprint"]
    assert made["sessions"] == SESSIONS and made["trades"]
    deciders = OWNERS if combine == "books" else ("desk",)
    each = SESSIONS * len(SYMBOLS)
    with JournalReader(places.run_journal(made["run"])) as reader:
        opinions, outcomes = reader.opinions(), reader.outcomes()
        points = reader.equity(book=None)
        booked = [fill for fill in reader.fills(made["run"], book=None) if fill.book]
        assert Counter(one.key.owner for one in reader.decisions()) == dict.fromkeys(deciders, each)
    assert Counter(one.key.owner for one in opinions) == dict.fromkeys(OWNERS, each)
    assert Counter(row.owner for row in outcomes) == dict.fromkeys({*OWNERS, *deciders}, each)
    sizes = {owner: sum(one.size for one in opinions if one.key.owner == owner) for owner in OWNERS}
    assert sizes["bull"] > sizes["quant"] > sizes["bear"], "their preferences make their sizes"
    assert bool(booked) is (combine == "books")
    assert all(f"-{fill.book}-" in fill.order_id for fill in booked), "each has its part for its own order"
    for session in {point.session for point in points}:
        books = {point.book: point for point in points if point.session == session}
        assert set(books) == ({"", *OWNERS} if combine == "books" else {""})
        if combine == "books":
            assert_books_are_the_account(books)
    with pytest.raises(SystemExit) as ended:
        main(("memory", "list", "--run", made["run"], "--json"))
    assert ended.value.code == 0
    remembered = Counter(one["owner"] for one in json.loads(capsys.readouterr().out)["memories"])
    assert set(remembered) == set(OWNERS) and len(set(remembered.values())) == 1


def assert_books_are_the_account(books: dict[str, EquityPoint]) -> None:
    """Cash to the cent and shares exactly; values are rounded book by book."""
    account = books[""]
    owned = [books[owner].portfolio for owner in OWNERS]
    assert sum((book.cash for book in owned), Decimal(0)) == account.portfolio.cash
    for symbol in SYMBOLS:
        assert sum((book.quantity(symbol) for book in owned), Decimal(0)) == account.portfolio.quantity(symbol)
    assert abs(sum(books[owner].value for owner in OWNERS) - account.value) <= Decimal("0.02")
    assert round(books["bull"].value / books["bear"].value) == 2, "weights are shares of the starting cash"
