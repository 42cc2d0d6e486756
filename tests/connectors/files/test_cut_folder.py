"""A copy of a data folder that ends at a moment holds what a cut of the loaded market shows, and nothing else."""

from __future__ import annotations

import asyncio
import json
from datetime import date, datetime
from pathlib import Path

import pytest

from connectors.files.cut_folder import FolderCuts
from connectors.files.macro import FilesMacro
from connectors.files.market import FilesMarket
from engine.domain.market import PriceHistory
from engine.lab.watched_market import shown
from engine.market.as_of import Market, load_market
from engine.market.trading_hours import calendar_for, decision_time

SYMBOLS = ("7203.T", "BTC-USD", "AAA")
DAYS = calendar_for("7203.T").sessions(date(2024, 1, 4), date(2024, 3, 29))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of every kind."""
    for kind in ("prices", "actions", "news", "filings", "macro", "commentary", "holdings", "features"):
        (tmp_path / "data" / kind).mkdir(parents=True)

    def write(place: str, *lines: str) -> None:
        (tmp_path / "data" / place).write_text("\n".join(lines) + "\n")

    for symbol in SYMBOLS:
        days = calendar_for(symbol).sessions(DAYS[0] if symbol != "AAA" else DAYS[30], DAYS[-1])
        bars = [f"{day},{100 + n % 5},{102 + n % 5},{99 + n % 5},{101 + n % 5},,10" for n, day in enumerate(days)]
        write(f"prices/{symbol}.csv", "date,open,high,low,close,adj_close,volume", *bars)
        records = [{"date": str(day), "headline": f"{symbol} on {day}"} for day in (*DAYS[::4], DAYS[2])]
        changes = [(f"{day}T12:00:00Z", f"{day}T18:30:00Z") for day in DAYS[::5]]
        records += [{"created": first, "updated": last, "headline": first} for first, last in changes]
        records += [{"headline": "of nobody knows when"}]
        write(f"news/{symbol}.jsonl", *map(json.dumps, records))
        reports = [{"date": str(day), "form": "10-Q", "summary": "It grows."} for day in DAYS[::9]]
        write(f"filings/{symbol}.jsonl", "", *map(json.dumps, reports))
    write("actions/7203.T.csv", "ex_date,kind,value", f"{DAYS[40]},dividend,1", f"{DAYS[10]},dividend,2")
    figures = [f"{day},{n},{day}T13:30:00Z" for n, day in enumerate(DAYS[::3])]
    write("macro/ICSA.csv", "date,value,known_from", *figures)
    said = [{"date": str(day), "source": "us", "text": "We buy."} for day in DAYS[::7]]
    write("commentary/FUND.jsonl", *map(json.dumps, said))
    write("holdings/FUND.csv", "date,symbol,shares,weight", *(f"{day},AAA,10,5" for day in DAYS[::7]))
    write("features/AAA.csv", "of nobody knows when")
    write("own.py", "VALUE = 1")
    return tmp_path / "data"


async def loaded(folder: Path) -> Market:
    source, series = FilesMarket(folder, calendar_for), FilesMacro(folder)
    history = source.history

    async def begun(symbol: str) -> PriceHistory:
        lines = (folder / "prices" / f"{symbol}.csv").read_text().splitlines()
        return await history(symbol) if len(lines) > 1 else PriceHistory.of(symbol, ())

    source.history = begun  # type: ignore[method-assign]
    macro = {name: await series.series(name) for name in await series.names()}
    return await load_market(source, source, SYMBOLS, calendar_for, macro=macro)


def test_a_copy_shows_what_a_cut_of_the_whole_shows(folder: Path, tmp_path: Path) -> None:
    whole, cuts, copy = asyncio.run(loaded(folder)), FolderCuts(folder, SYMBOLS, calendar_for), tmp_path / "copy"
    tokyo = calendar_for("7203.T")
    moments = [decision_time(tokyo, day) for day in DAYS[:-1:6]]
    moments += [datetime.fromisoformat(f"{day}T18:30:00+00:00") for day in DAYS[5:20:5]]
    moments += [tokyo.opens_at(DAYS[40]), tokyo.opens_at(DAYS[10])]
    for now in moments:
        cuts.write(copy, now)
        cut = asyncio.run(loaded(copy))
        known = whole.cut(now)
        assert shown(cut, now) == shown(known, now)
        assert (cut.actions, cut.macro, cut.commentary) == (known.actions, known.macro, known.commentary)
        assert {s: list(items) for s, items in cut.news.items()} == known.news
        held = asyncio.run(FilesMarket(copy, calendar_for).holdings())["FUND"]
        assert all(row.date < now.date() for row in held)
    assert not (copy / "features").exists() and (copy / "own.py").exists()


def test_a_later_copy_takes_the_place_of_an_earlier_one(folder: Path, tmp_path: Path) -> None:
    cuts = FolderCuts(folder, SYMBOLS, calendar_for)
    late, early = (decision_time(calendar_for("7203.T"), day) for day in (DAYS[50], DAYS[20]))
    cuts.write(tmp_path / "copy", late)
    first = (tmp_path / "copy" / "prices" / "7203.T.csv").read_text()
    cuts.write(tmp_path / "copy", early)
    again = (tmp_path / "copy" / "prices" / "7203.T.csv").read_text()
    assert again.splitlines()[-1].startswith(str(DAYS[20])) and first.startswith(again)
    assert first.splitlines()[-1].startswith(str(DAYS[50]))
