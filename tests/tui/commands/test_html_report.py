"""The HTML report, read as a browser would: what its charts show, and how wide its tables are."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from PIL import ImageFont

from engine.reports.html import html
from engine.reports.stored import stored_document
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_runs import called

WINDOW = ("--from", "2024-10-01", "--to", "2025-03-14")
SYMBOLS = ("ORVL", "HLXM")
PAGE_WIDTH = 1200


@pytest.fixture(scope="module")
def reported(sessions_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """A run's document and its page, made by the commands."""
    home = tmp_path_factory.mktemp("html-home")
    shutil.copytree(sessions_home, home, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERDESK_HOME", str(home))
        page = home / "report.html"
        flags = ("--symbols", ",".join(SYMBOLS), *WINDOW, "--preset", "finvision-no-reflection", "--run", "html")
        assert called("backtest", *flags, "--commission", "0.001") == 0
        assert called("report", "--run", "html", "--out", str(page)) == 0
        return stored_document("html"), page.read_text()


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


def test_value_and_exposure_are_drawn(reported: tuple[dict[str, Any], str]) -> None:
    document, page = reported
    charts = charts_of(page)
    points = document["equity"]
    values = [float(point["value"]) for point in points]
    assert len(charts["value by session"].findall("polyline")) == 1 + len(document["baselines"])
    spread = (max(values) - min(values)) / 50
    assert values_of(charts["value by session"]) == pytest.approx(values, abs=spread)
    exposed = [1 - float(point["cash"]) / float(point["value"]) for point in points]
    assert values_of(charts["exposure by session"]) == pytest.approx(exposed, abs=0.01)


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
