"""Reports for people and spreadsheets: what they show is the document's, and nothing in a text is markup."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.reports.csv_tables import TABLES, csv_table
from engine.reports.html import html
from engine.reports.summary import figure, metric_rows
from engine.reports.svg_charts import Curve, svg, ticks

SESSIONS = ["2024-01-03", "2024-01-04", "2024-01-05"]
NASTY = "</td><script>alert(1)</script> | `x` =SUM(A1)"


def metrics(**changes: float | None) -> dict[str, float | None]:
    return {"total_return": 0.1, "sharpe": 1.5, "sharpe_low": -0.25, "sharpe_high": 3.0, "max_drawdown": 0.05} | changes


def a_document(**changes: Any) -> dict[str, Any]:
    held = {"AAA": {"quantity": "10", "price": "21.00"}}
    values = [("1004.00", "794.00", held), ("950.00", "950.00", {}), ("1100.00", "1100.00", {})]
    decision = {"session": "2024-01-02", "symbol": "AAA", "owner": "desk", "size": 5.0, "abstained": False, "cut": None}
    return {
        "schema": 1,
        "run": "r1",
        "preset": "finvision",
        "label": "rules, not a language model",
        "settings": {"data": "folder", "seed": 0, "params": {}, "without": [], "periods_per_year": 252}
        | {"fills": None, "cash_floor": None, "version": "1", "data_fingerprint": "f" * 64},
        "symbols": ["AAA"],
        "sessions": 3,
        "first_session": SESSIONS[0],
        "last_session": SESSIONS[-1],
        "initial_value": "1000.00",
        "final_value": "1100.00",
        "convention": "desk",
        "metrics": metrics(),
        "per_symbol": {"AAA": {"metrics": metrics(total_return=None), "final_quantity": "0", "profit": "100.00"}},
        "baselines": {
            "buy-and-hold": {"metrics": metrics(total_return=-0.02), "equity": ["990.00", "1000.00", "980.00"]},
            "cash": {"metrics": metrics(sharpe=None), "equity": ["1000.00", "1000.00", "1000.00"]},
        },
        "trades": [
            {"session": SESSIONS[0], "symbol": "AAA", "side": "BUY", "quantity": "10", "price": "20.50", "fee": "1.00"}
            | {"reason": NASTY}
        ],
        "cash_flows": [{"session": SESSIONS[1], "symbol": "AAA", "kind": "dividend", "amount": "5.00"}],
        "equity": [
            {"session": day, "value": value, "cash": cash, "positions": positions}
            for day, (value, cash, positions) in zip(SESSIONS, values, strict=True)
        ],
        "decisions": [
            decision | {"action": "BUY", "reason": NASTY, "cut": "10 to 5 %: over the band"},
            decision | {"action": "HOLD", "reason": "=1+1"},
            decision | {"action": "ABSTAIN", "reason": "timed out", "abstained": True},
        ],
        "closes": {"AAA": ["21.00", "19.50", None]},
        "warm_up": None,
        "model": {"spec": "offline", "calls": 12, "cached_calls": 3, "abstentions": 1, "agents": {}}
        | {"input_tokens": 1000, "output_tokens": 20, "cost": None},
        "unresolved_figures": 0,
        "dropped": {"news": {"no date": 3}},
        "notes": ["AAA stops trading on 2024-01-04, inside the window"],
        "interrupted": False,
        "fingerprint": "f" * 64,
    } | changes


class _Page(HTMLParser):
    """Texts and tags of a page; fails where a tag is closed that is not open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "line"):
            self._open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "href", "onclick"), f"{tag} {name}={value} needs something else"

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_stands_alone_and_takes_no_markup_from_a_model() -> None:
    page = html(a_document())
    read = _Page(page)
    assert "script" not in read.tags
    # Value, drawdown, exposure, the price of AAA, and the mark of a buy in its legend.
    assert read.tags.count("svg") == 5
    assert "url(" not in page
    text = " ".join(" ".join(read.texts).split())
    assert NASTY in text
    assert "prefers-color-scheme: dark" in page
    for said in (
        "rules, not a language model",
        "Not investment advice",
        "1 abstained",
        "dropped 3 of news",
        "+10.00%",
    ):
        assert said in text


def test_a_page_of_a_run_that_never_reached_a_session() -> None:
    empty = {"sessions": 0, "first_session": None, "last_session": None, "equity": [], "decisions": [], "trades": []}
    empty["closes"] = {"AAA": []}
    baselines = {"cash": {"metrics": metrics(), "equity": []}}
    page = _Page(html(a_document(**empty, baselines=baselines, interrupted=True)))
    assert "svg" not in page.tags
    assert "no session" in page.texts


def read_csv(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table(a_document(), table))))


def test_the_equity_table_has_books_drawdown_and_baselines() -> None:
    rows = read_csv("equity")
    assert [row["value"] for row in rows] == ["1004.00", "950.00", "1100.00"]
    assert [row["cash value"] for row in rows] == ["1000.00"] * 3
    assert [row["cash"] for row in rows] == ["794.00", "950.00", "1100.00"]
    assert [float(row["drawdown"]) for row in rows] == pytest.approx([0, 950 / 1004 - 1, 0], abs=1e-6)
    assert (rows[0]["AAA quantity"], rows[0]["AAA price"], rows[1]["AAA quantity"], rows[1]["AAA price"]) == (
        "10",
        "21.00",
        "0",
        "",
    )


def test_other_tables() -> None:
    of_symbol = [row for row in read_csv("metrics") if row["of"] == "symbol" and row["metric"] == "total_return"]
    assert of_symbol == [{"of": "symbol", "name": "AAA", "metric": "total_return", "value": ""}]
    assert [row["amount"] for row in read_csv("costs")] == ["1.00", ""]
    assert read_csv("cash-flows") == [{"session": SESSIONS[1], "symbol": "AAA", "kind": "dividend", "amount": "5.00"}]
    reasons = [row["reason"] for row in read_csv("decisions")]
    assert reasons == [NASTY, "'=1+1", "timed out"]  # a spreadsheet must not compute a model's words
    with pytest.raises(UsageError, match=", ".join(TABLES)):
        csv_table(a_document(), "nothing")


@pytest.mark.parametrize(
    ("named", "name", "value", "shown"),
    [
        ("desk", "total_return", 0.12345, "+12.35%"),
        ("desk", "max_drawdown", 0.05, "-5.00%"),
        ("desk", "sharpe", -1.2345, "-1.23"),
        ("desk", "excess_return", -0.031, "-3.10 points"),
        ("desk", "sharpe", None, "–"),
        ("finagent", "ARR", 41.256, "41.26%"),
        ("finagent", "VOL", 0.01234, "0.0123"),
        ("investorbench", "SR", 1.2345, "1.234"),
    ],
)
def test_figures_in_the_units_of_their_convention(named: str, name: str, value: float | None, shown: str) -> None:
    assert figure(named, name, value) == shown


def test_an_interval_stands_beside_its_metric_and_not_as_a_row() -> None:
    rows = {row.name: row for row in metric_rows(a_document())}
    assert rows["sharpe"].interval == "-0.25 to 3.00"
    assert "sharpe_low" not in rows
    assert rows["total_return"].beside == ("-2.00%", "+10.00%")


@given(st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=2000))
def test_a_curve_stays_inside_its_chart(values: list[float]) -> None:
    days = [str(number) for number in range(len(values))]
    tree = ElementTree.fromstring(svg([Curve("<a> & b", values, "own")], days, 200, "chart"))
    points = [pair.split(",") for pair in tree.find("polyline").attrib["points"].split()]  # type: ignore[union-attr]
    xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
    assert xs == sorted(xs)
    assert min(ys) >= 9.9
    assert max(ys) <= 200 - 24 + 0.1
    # The deepest and the highest value are drawn, however many points were left out.
    assert len(points) <= 1000
    levels = ticks(min(values), max(values))
    scale = (200 - 24 - 10) / (levels[-1] - levels[0])
    assert min(ys) == pytest.approx(200 - 24 - (max(values) - levels[0]) * scale, abs=0.1)
    assert max(ys) == pytest.approx(200 - 24 - (min(values) - levels[0]) * scale, abs=0.1)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_levels_enclose_what_is_drawn(low: float, span: float) -> None:
    levels = ticks(low, low + span)
    assert 2 <= len(levels) <= 9
    slack = 1e-6 * (levels[-1] - levels[0])
    assert levels[0] <= low + slack
    assert levels[-1] >= low + span - slack
    assert levels == sorted(levels)
