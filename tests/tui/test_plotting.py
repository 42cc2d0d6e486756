"""Curves as text and as a widget: full rectangles, no colour where none is wanted, and the newest data wins."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from tests.examples import examples
from tui.charts.plotting import LOW, PlotData, equity_plot
from tui.widgets.plot import CurvePlot

values = st.lists(st.none() | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, 1e300, 0.0]), max_size=60)


@examples(60)
@given(
    st.dictionaries(st.sampled_from(["desk", "SPY", "buy and hold"]), values, max_size=3),
    st.integers(0, 100),
    st.integers(0, 30),
    st.booleans(),
)
def test_any_curves_fill_their_rectangle(
    series: dict[str, list[float | None]], width: int, height: int, ascii_only: bool
) -> None:
    text = equity_plot(series, ["2024-01-02"] * 60, width, height, colour=False, ascii_only=ascii_only)
    lines = text.split("\n") if text else []
    assert len(lines) == (height if width else 0)
    assert all(len(line) == width for line in lines)
    assert "\x1b" not in text
    assert not ascii_only or text.isascii()


def test_a_rising_curve_climbs_from_left_to_right() -> None:
    labels = [f"2024-01-{day:02d}" for day in range(1, 31)]
    rising = [100.0 + n for n in range(30)]
    rows = equity_plot({"desk": rising}, labels, 60, 15, colour=False, ascii_only=True).split("\n")
    assert rows[0].startswith("* desk 129.00")
    marks = [row[12:].find("*") for row in rows[1:]]
    found = [mark for mark in marks if mark >= 0]
    assert found == sorted(found, reverse=True)
    assert found[0] > 35
    assert found[-1] < 10
    assert "2024-01-01" in rows[-1] and "2024-01-30" in rows[-1]


def test_curves_have_marks_of_their_own_without_colour() -> None:
    series = {"desk": [1.0, 2.0, 3.0], "SPY": [3.0, 2.0, 1.0]}
    text = equity_plot(series, ["a", "b", "c"], 60, 12, colour=False)
    assert "*" in text.split("\n", 1)[1]
    assert {"▚ desk 3.00", "* SPY 1.00"} <= set(text.split("\n")[0].rstrip().split("  "))


def test_every_curve_is_named_however_narrow_the_legend_is() -> None:
    series = {"this account": [1.0, 2.0], "buy-and-hold": [2.0, 3.0], "FABX": [2.0, 1.0]}
    legends = {width: equity_plot(series, ["a", "b"], width, 9, colour=False).split("\n")[0] for width in (32, 40, 80)}
    assert legends[80].split("  ")[2].strip() == "+ FABX 1.00"
    assert legends[40].rstrip() == "▚ this account  * buy-and-hold  + FABX"
    assert legends[32].rstrip() == "▚ this acc…  * buy-and-…  + FABX"


def price_labels(rows: list[str]) -> list[str]:
    """The texts left of the vertical axis."""
    return [row.split("┤")[0].strip() for row in rows if "┤" in row]


@pytest.mark.parametrize("height", [6, 7, 8, 12, 25])
@pytest.mark.parametrize(
    ("value", "label"),
    [(0.0, "0"), (-0.0, "0"), (100.0, "100"), (97.5, "97.5"), (-0.0004, "-0.0004"), (1_234_570.2, "1,234,570")],
)
def test_a_flat_curve_has_its_value_for_the_only_price_label(value: float, label: str, height: int) -> None:
    rows = equity_plot({"drawdown": [value] * 4}, ["a", "b", "c", "d"], 55, height, colour=False).split("\n")
    assert price_labels(rows) == [label]
    assert "-0.0" not in rows[0]


@pytest.mark.parametrize("width", [16, 40, 80])
@pytest.mark.parametrize(
    ("low", "high"), [(95.4, 97.8), (-3.0, 0.0), (0.01, 0.99), (999_999.65, 1_000_000.0), (1.0, 1e9), (95.0, 105.0)]
)
def test_a_low_pane_has_two_price_labels_at_least(low: float, high: float, width: int) -> None:
    for height in range(6, 14):
        rows = equity_plot({"desk": [high, low]}, ["a", "b"], width, height, colour=False).split("\n")
        labels = price_labels(rows)
        assert len(set(labels)) == len(labels) >= 2
        prices = [float(label.replace(",", "")) for label in labels]
        assert prices == sorted(prices, reverse=True)
        assert low <= prices[-1] < prices[0] <= high


def test_a_low_pane_names_the_highest_and_the_lowest_price_where_it_has_no_two_round_ones() -> None:
    rows = equity_plot({"desk": [97.8, 95.4]}, ["a", "b"], 40, 8, colour=False).split("\n")
    assert rows[1].startswith("97.80┤") and rows[5].startswith("95.40┤"), "no row is a frame alone but the last"


@pytest.mark.parametrize("sessions", [2, 3, 4, 5, 8, 20, 300])
@pytest.mark.parametrize("value", [100.0, 1e5])
def test_the_last_place_is_named_and_the_first_where_there_is_room(sessions: int, value: float) -> None:
    labels = [str(date(2026, 11, 12) + timedelta(days=n)) for n in range(sessions)]
    values = [value + n / sessions for n in range(sessions)]
    for width in range(24, 131, 5):
        rows = equity_plot({"desk": values}, labels, width, LOW, colour=False).rstrip("\n").split("\n")
        named = rows[-1].split()
        assert named[-1] == labels[-1], width
        assert set(named) <= set(labels)  # no two of them touch
        assert named == sorted(named)
        assert rows[-2].count("┬") == len(named)
        columns = rows[1].count("─")
        assert (named[0] == labels[0] and len(named) > 1) == (columns > 20)


def test_places_with_long_names_are_named_fewer_times() -> None:
    labels = [f"2026-11-18 15:{minute}:00" for minute in range(10, 15)]
    last = equity_plot({"rsi": [1.0, 2.0, 3.0, 2.0, 1.0]}, labels, 70, 8, colour=False).split("\n")[-1]
    assert [last[at : at + 19] for at in range(len(last)) if last[at:].startswith("2026")] == [
        labels[0],
        labels[2],
        labels[4],
    ]


def test_a_legend_drops_decimals_before_it_drops_the_values() -> None:
    series = {"this account": [100.0, 100.05], "buy-and-hold": [100.0, 100.71], "FABX": [100.0, 100.88]}
    legends = [
        equity_plot(series, ["a", "b"], width, 9, colour=False, ascii_only=True).split("\n")[0].rstrip()
        for width in (59, 58, 55, 50, 48)
    ]
    assert legends == [
        "* this account 100.05  + buy-and-hold 100.71  x FABX 100.88",
        "* this account 100.0  + buy-and-hold 100.7  x FABX 100.9",
        "* this account 100  + buy-and-hold 101  x FABX 101",
        "* this account 100  + buy-and-hold 101  x FABX 101",
        "* this account  + buy-and-hold  x FABX",
    ]
    assert equity_plot({"fall": [-1.0, -0.04]}, ["a", "b"], 10, 3, colour=False).startswith("▚ fall 0.0")


def test_colour_adds_codes_and_nothing_else() -> None:
    assert "\x1b[" in equity_plot({"desk": [1.0, 2.0]}, ["a", "b"], 40, 10, colour=True)


def test_a_spike_survives_thinning() -> None:
    spiky = [100.0] * 5000
    spiky[2500] = 900.0
    rows = equity_plot({"desk": spiky}, [""] * 5000, 60, 14, colour=False, ascii_only=True).split("\n")
    assert any("*" in row for row in rows[2:4])


def test_plotext_waits_until_something_is_drawn() -> None:
    code = "import sys, tui.charts.plotting; sys.exit('plotext' in sys.modules or 'textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Screen(App[None]):
    def compose(self) -> ComposeResult:
        yield CurvePlot()


async def test_the_widget_draws_and_takes_new_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = Screen()
    async with app.run_test(size=(60, 16)) as pilot:
        plot = app.query_one(CurvePlot)
        plot.show(PlotData({"desk": [1.0, 2.0, 4.0]}, ["a", "b", "c"]))
        await app.workers.wait_for_complete()
        assert "desk 4.00" in plot.render_line(0).text
        plot.show(PlotData({"SPY": [7.0, 8.0]}, ["a", "b"]))
        plot.show(PlotData({"QQQ": [7.0, 9.0]}, ["a", "b"]))
        await pilot.pause()
        while any(not worker.is_finished for worker in app.workers):
            await pilot.pause(0.01)
        assert "QQQ 9.00" in plot.render_line(0).text
        assert {plot.render_line(y).cell_length for y in range(16)} == {60}
        # Every cell lies on the screen's ground, those of the axes too: the terminal's own may be white.
        grounds = {segment.style and segment.style.bgcolor for y in range(16) for segment in plot.render_line(y)}
        assert grounds == {plot.rich_style.bgcolor}


def test_a_narrow_legend_names_every_curve_rather_than_its_value() -> None:
    series = {name: [1.0, 100_000.0] for name in ("Ann", "Bob", "Cy", "Dee")}
    narrow, wide = (
        equity_plot(series, ["1", "2"], width, 10, colour=False).splitlines()[0].rstrip() for width in (40, 80)
    )
    assert narrow == "▚ Ann  * Bob  + Cy  x Dee"
    assert wide.startswith("▚ Ann 100,000.00  * Bob 100,000.00") and wide.endswith("x Dee 100,000.00")
