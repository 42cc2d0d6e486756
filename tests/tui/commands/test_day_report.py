"""The report of a session, printed from the journal at any time."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from html import unescape
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from PIL import ImageFont

from engine.domain.run import RunKind, RunOutcome
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.reports.amounts import percent, quantity
from engine.reports.card import SIDES
from engine.reports.html import html
from engine.reports.stored import stored_document
from engine.session.context import run_id
from engine.settings import places
from tests.conftest import MadeHome
from tests.tui.commands.conftest import SESSIONS, Run, copied
from tests.tui.commands.test_runs import called


def test_a_run_is_reported_by_its_session_and_by_its_name(run: Run, desk: Path) -> None:
    last = SESSIONS[-1]
    said = run("report", "--session", str(last))
    assert (said.code, said.err) == (0, "")
    assert run("report", "--run", f"daily-demo-{last:%Y%m%d}").out == said.out


def test_the_report_says_who_decided_what_and_why_and_that_it_is_paper(run: Run, desk: Path) -> None:
    text = run("report", "--session", "2025-03-14").out
    document = run("report", "--session", "2025-03-14", "--json").json
    assert "paper money" in text
    lines = {line[:12].strip(): line[12:] for line in text.splitlines()}
    assert re.match(r"rules, not a language model \(preset \w+\)", lines["Decided by"])
    assert lines["Skipped"] == "2025-03-13" and lines["Outcome"].startswith("done")
    for made in document["decisions"]:
        assert re.search(rf"^  {made['symbol']} +{made['action']}\b", text, re.MULTILINE)
        (trail,) = run("why", made["symbol"], made["session"], "--json").json["decisions"]
        card = dict(line.split(": ", 1) for line in made["card"])
        assert {label for label in card if label != "Dissent"} <= {"Why", "For", "Against", *SIDES.values(), "Limits"}
        assert ("Dissent" in card) is bool(trail["dissent"]["otherwise"]) and ("Limits" in card) is bool(trail["cuts"])
        assert all(f"    {label} " in text for label in card)
    assert document["before"]["session"] == "2025-03-13"
    for fill in document["fills"]:
        shares = quantity(Decimal(fill["quantity"]))
        assert f"{fill['session']} {fill['side']} {shares} {fill['symbol']} at " in text
    held = run("positions", "--json").json
    assert held["positions"] == document["positions"]
    for symbol, position in held["positions"].items():
        gain = (Decimal(position["price"]) - Decimal(position["average_cost"])) * Decimal(position["quantity"])
        assert abs(Decimal(position["gain"]) - gain) < Decimal("0.01")
        assert f"{symbol}: {quantity(Decimal(position['quantity']))} at " in text


def test_an_older_session_is_told_as_its_orders_stand_today(run: Run, desk: Path) -> None:
    first = run("report", "--session", "2025-03-11", "--json").json
    assert first["orders"] and {order["state"] for order in first["orders"]} == {"filled"}
    assert ": filled" in run("report", "--session", "2025-03-11").out
    assert first["before"] is None and first["skipped"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--session", "2025-01-02"), 65, "has no run for 2025-01-02; the latest are for 2025-03-14"),
        (("--session", "2025-03-14", "--run", "x"), 2, "not both"),
        (("--session", "2025-03-14", "--format", "csv"), 2, "html or json"),
        (("--session", "yesterday"), 2, "yesterday"),
    ],
)
def test_what_cannot_be_reported_is_one_line(
    run: Run, desk: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    said = run("report", *arguments)
    assert said.code == code and says in said.err and said.err.count("\n") == 1


def test_a_desk_that_never_ran_has_no_report(run: Run, fresh: Path) -> None:
    said = run("report", "--session", "2025-03-14")
    assert said.code == 65 and "has not run yet" in said.err


def test_a_cycle_within_the_session_has_a_report_of_its_own(run: Run, desk: Path) -> None:
    journal, session = places.desk_journal("demo"), SESSIONS[-1]
    identity = run_id("demo", session, 2)
    with JournalWriter(journal) as writer:
        now = datetime(2025, 3, 17, 15, tzinfo=UTC)
        writer.run_started(
            RunEntry(
                id=identity,
                kind=RunKind.INTRADAY,
                name="desk",
                started=now,
                label="rules",
                spec=None,
                symbols=("ORVL",),
                session=session,
                cycle=2,
            )
        )
        writer.run_finished(identity, RunOutcome.DONE, now)
    assert run("report", "--run", identity, "--json").json["cycle"] == 2
    assert run("report", "--session", str(session), "--json").json["cycle"] == 1


def test_without_a_date_it_is_the_latest_day(run: Run, desk: Path, tmp_path: Path) -> None:
    latest = run("report", "--session", str(SESSIONS[-1]))
    for arguments in (("--session",), ("--session", "--desk", "demo")):
        said = run("report", *arguments)
        assert (said.code, said.err, said.out) == (0, "", latest.out)
    assert run("report", "--json", "--session").json["session"] == str(SESSIONS[-1])
    wrong = run("report", "--session", "yesterday")
    assert wrong.code == 2 and "leave it out for the latest" in wrong.err


WINDOW = ("--from", "2024-10-01", "--to", "2025-03-14")
SYMBOLS = ("ORVL", "HLXM")
PAGE_WIDTH = 1200


@pytest.fixture
def reported(made_home: MadeHome, paperdesk_home: Path) -> tuple[dict[str, Any], str]:
    """A run's document and its page, made by the commands."""

    def lives() -> None:
        flags = ("--symbols", ",".join(SYMBOLS), *WINDOW, "--preset", "finvision-no-reflection", "--run", "html")
        assert called("backtest", *flags, "--commission", "0.001") == 0
        assert called("report", "--run", "html", "--out", str(places.data_dir().parent / "report.html")) == 0

    copied(made_home("html", lives), paperdesk_home)
    return stored_document("html"), (paperdesk_home / "report.html").read_text()


def charts_of(page: str) -> dict[str, ElementTree.Element]:
    """The charts of a page by what they are called."""
    drawings = re.findall(r'<svg viewBox.*?aria-label="(.*?)">.*?</svg>', page, re.DOTALL)
    found = re.findall(r'<svg viewBox="0 0 \d+ \d+" role.*?</svg>', page, re.DOTALL)
    return {unescape(name): ElementTree.fromstring(one) for name, one in zip(drawings, found, strict=True)}


def values_of(chart: ElementTree.Element) -> list[float]:
    """The values of the last curve of a chart, read off its axis."""
    labels = [(float(one.attrib["y"]) - 4, one.text or "") for one in chart.findall("text") if one.attrib["x"] == "62"]
    levels = [(y, float(text.replace(",", "").removesuffix(" %")) / (100 if "%" in text else 1)) for y, text in labels]
    (low_y, low), (high_y, high) = levels[0], levels[-1]
    points = [pair.split(",") for pair in chart.findall("polyline")[-1].attrib["points"].split()]
    return [low + (float(y) - low_y) / (high_y - low_y) * (high - low) for _, y in points]


def test_a_decision_on_the_page_is_its_card_and_the_reason_in_full_opens(
    reported: tuple[dict[str, Any], str], run: Run
) -> None:
    document, page = reported
    made = [one for one in document["decisions"] if one["action"] == "BUY"][9]
    (row,) = run("why", made["symbol"], made["session"], "--run", "html", "--json").json["decisions"]
    (shown,) = re.findall(rf"<tr><th>{made['session']}</th><td[^>]*>{made['symbol']}</td>.*?</tr>", page, re.DOTALL)[:1]
    assert f"+1 {percent(row['closes_since'][0]['result'])}" in shown and "Why: " in shown
    assert re.search(r"<details><summary>.*?</summary>(.*?)</details>", unescape(shown), re.DOTALL)[1] == made["reason"]  # type: ignore[index]


def test_every_symbol_has_a_chart_with_its_trades(reported: tuple[dict[str, Any], str]) -> None:
    document, page = reported
    charts = charts_of(page)
    assert document["trades"]
    for symbol in SYMBOLS:
        chart = charts[f"price of {symbol} with trades of finvision-no-reflection"]
        own = [trade for trade in document["trades"] if trade["symbol"] == symbol]
        marks = [one for one in chart.findall("polygon") if one.attrib["class"].startswith("mark")]
        told = [title.text or "" for one in marks if (title := one.find("title")) is not None]
        assert [text.split()[:2] for text in told] == [[trade["session"], trade["side"]] for trade in own]
        # Direction is a shape: the tip of a buy is above its base, that of a sale below.
        for mark, trade in zip(marks, own, strict=True):
            (_, tip), (_, base), _ = (map(float, pair.split(",")) for pair in mark.attrib["points"].split())
            assert (tip < base) is (trade["side"] == "BUY") is (mark.attrib["class"] == "mark buy")
        # Closes are drawn of every session, held or not.
        closes = [float(close) for close in document["closes"][symbol]]
        assert len(closes) == document["sessions"]
        assert values_of(chart) == pytest.approx(closes, abs=(max(closes) - min(closes)) / 80)


def test_value_exposure_and_rolling_figures_are_drawn(reported: tuple[dict[str, Any], str]) -> None:
    document, page = reported
    charts = charts_of(page)
    points = document["equity"]
    values = [float(point["value"]) for point in points]
    assert len(charts["value by session"].findall("polyline")) == 1 + len(document["baselines"])
    spread = (max(values) - min(values)) / 50
    assert values_of(charts["value by session"]) == pytest.approx(values, abs=spread)
    exposed = [1 - float(point["cash"]) / float(point["value"]) for point in points]
    assert values_of(charts["exposure by session"]) == pytest.approx(exposed, abs=0.01)
    returns = [b / a - 1 for a, b in zip([float(document["initial_value"]), *values], values, strict=False)]
    window = len(returns) // 3
    assert f"Sharpe ratio over the last {window} sessions" in page
    parts = [returns[end - window : end] for end in range(window, len(returns) + 1)]
    moved = [stdev(part) * math.sqrt(252) for part in parts]
    assert values_of(charts["rolling Annualized volatility"]) == pytest.approx(
        moved, abs=(max(moved) - min(moved)) / 40
    )
    sharpes = [fmean(part) / stdev(part) * math.sqrt(252) for part in parts]
    assert values_of(charts["rolling Sharpe ratio"]) == pytest.approx(sharpes, abs=(max(sharpes) - min(sharpes)) / 40)


def test_costs_every_setting_and_the_way_into_the_app_are_told(reported: tuple[dict[str, Any], str]) -> None:
    document, page = reported
    for symbol in SYMBOLS:
        fees = sum(float(trade["fee"]) for trade in document["trades"] if trade["symbol"] == symbol)
        assert re.search(rf"<th>{symbol}</th><td>\d+</td><td>[\d,.]+</td><td>{fees:,.2f}</td>", page)
    for name, value in (("commission", "0.001"), ("preset.sizing.cash_floor", "0.10"), ("model", "offline")):
        assert f"<tr><th>{name}</th><td>{value}</td></tr>" in page
    assert document["settings"]["data_fingerprint"] in page
    made = next(one for one in document["decisions"] if one["action"] == "BUY")
    assert f">paperdesk open {made['symbol']}@{made['session']} --run {document['run']}</td>" in page
    assert not re.search(r"https?://|url\(|<script|<link|@import", page)


@cache
def font(bold: bool) -> ImageFont.FreeTypeFont:
    """A wide font at the size of the fitting tables: .8 of 16 pixels."""
    name = f"fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / name), 12.8)


def narrowest(table: str) -> float:
    """The least width of a table in pixels: the longest word of each column, which nothing breaks, and its padding."""
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<(t[hd]).*?>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    columns: Sequence[Sequence[tuple[str, str]]] = list(zip(*cells, strict=True))
    words = [[(word, tag == "th") for tag, text in column for word in text.split(" ")] for column in columns]
    return sum(max(font(bold).getlength(unescape(word)) for word, bold in column) + 2 * 0.3 * 12.8 for column in words)


def test_every_metric_column_is_visible_at_1200_pixels(reported: tuple[dict[str, Any], str]) -> None:
    """Of the house convention, which has the most metrics."""
    document = reported[0]
    # Figures as long as they get.
    long = {name: value if value is None else -12.345678 for name, value in document["metrics"].items()}
    document = {
        **document,
        "metrics": long,
        "per_symbol": {symbol: {**part, "metrics": long} for symbol, part in document["per_symbol"].items()},
        "baselines": {name: {**one, "metrics": long} for name, one in document["baselines"].items()},
    }
    assert len(document["baselines"]) == 7
    tables = re.findall(r'<table class="fit[^"]*">(.*?)</table>', html(document), re.DOTALL)
    assert len(tables) == 2
    inner = PAGE_WIDTH - 20 - 2 * 20 - 2 * 20  # bar of the window, padding of the page, padding of the section
    assert max(map(narrowest, tables)) < inner


def test_a_desk_is_shown_as_a_backtest_is(run: Run, desk: Path, tmp_path: Path) -> None:
    page = tmp_path / "desk.html"
    assert run("report", "--session", "--out", str(page)).code == 0
    text, charts = page.read_text(), charts_of(page.read_text())
    equity = run("equity", "--json").json["equity"]
    day = run("report", "--session", "--json").json
    values = [float(point["value"]) for point in equity]
    assert "<h1>Desk demo (finvision) on ORVL, BXWD, HLXM" in text and day["run"] in text
    assert values_of(charts["value by session"]) == pytest.approx(values, abs=(max(values) - min(values)) / 50)
    assert values_of(charts["exposure by session"])[-1] == pytest.approx(1 - float(day["cash"]) / values[-1], abs=0.01)
    orders = run("orders", "--json").json["orders"]
    filled = {(fill["session"], fill["side"], fill["symbol"]) for order in orders for fill in order["fills"]}
    drawn = {
        (*(title.text or "").split()[:2], name.split()[2])
        for name, chart in charts.items()
        for mark in chart.findall("polygon")
        if (title := mark.find("title")) is not None
    }
    assert drawn == filled and filled
    assert f"<tr><th>data_fingerprint</th><td>{day['settings']['data_fingerprint']}</td></tr>" in text
    # An earlier session shows the desk as it was then.
    assert run("report", "--session", "2025-03-11", "--out", str(page)).code == 0
    assert "2025-03-14" not in page.read_text() and "1 session" in page.read_text()
