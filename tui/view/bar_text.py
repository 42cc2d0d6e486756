"""One bar of a chart in words: prices, change, indicators, what was decided on its close, and the trades in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from engine.reports import amounts
from tui.charts.chart_axes import compact, day_text
from tui.charts.symbol_chart import COMPARE, from_hundred
from tui.text.plain_text import cut, one_line
from tui.view.state import action_text

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from tui.charts.chart_data import ChartData
    from tui.charts.symbol_chart import SymbolChart

MUTED = "$foreground 55%"


def bar_text(chart: SymbolChart, row: int, width: int, in_view: range) -> Content:
    """The bar of a row, its figures in lines of at most `width`; a line for every decision and every trade. Compared
    closes are from 100 at the same bar of those `in_view` as the pane's curves."""
    figures = [*_prices(chart.data, row), *_indicators(chart, row), *_compared(chart, row, in_view)]
    lines = [*_flowing(figures, width), *_events(chart, row, width)]
    return Content("\n").join(lines)


def _prices(data: ChartData, row: int) -> Iterator[tuple[str, str]]:
    day = data.days[row]
    yield "", f"{day_text(day)} {day:%a}"
    for name, column in (("O", data.open), ("H", data.high), ("L", data.low), ("C", data.close)):
        yield name, f"{column[row]:,.2f}"
    before = data.close[row - 1] if row else 0.0
    if before:
        yield "change", amounts.percent(data.close[row] / before - 1)
    if len(data.volume) and not math.isnan(data.volume[row]):
        yield "V", compact(data.volume[row])


def _indicators(chart: SymbolChart, row: int) -> Iterator[tuple[str, str]]:
    bands = {line.role: line.values[row] for line in chart.data.lines if line.role in ("upper", "lower")}
    for line in chart.data.lines:
        value = line.values[row]
        if line.role not in bands and value is not None:
            yield line.name, f"{value:,.2f}"
    low, high = bands.get("lower"), bands.get("upper")
    if low is not None and high is not None:
        yield "BB", f"{low:,.2f} to {high:,.2f}"
    for pane, curves in chart.panes.items():
        for name, values in curves.items():
            if pane != COMPARE and (value := values[row]) is not None:
                yield name, f"{value:,.2f}"


def _compared(chart: SymbolChart, row: int, in_view: range) -> Iterator[tuple[str, str]]:
    curves = {name: values[in_view.start : in_view.stop] for name, values in chart.panes.get(COMPARE, {}).items()}
    first, rebased = from_hundred(curves)
    if first is None or row not in in_view:
        return
    for name, values in rebased.items():
        if (value := values[row - in_view.start]) is not None:
            yield f"{name} from 100", f"{value:,.2f}"


def _events(chart: SymbolChart, row: int, width: int) -> Iterator[Content]:
    room = max(12, width - 19)
    for decision in chart.decided.get(row, ()):
        yield Content.assemble((f"{decision.key.session} decided ", MUTED), cut(_decided(decision), room))
    for fill in chart.fills.get(row, ()):
        amount = f"{fill.side.value} {amounts.quantity(fill.quantity)} at {amounts.price(fill.price)}"
        reason = f"  {one_line(fill.reason)}" if fill.reason else ""
        yield Content.assemble((f"{fill.session} filled  ", MUTED), cut(amount + reason, room))


def _decided(decision: Decision) -> str:
    cut_by = f" (cut: {decision.cut})" if decision.cut else ""
    return one_line(f"{action_text(decision)}{cut_by}: {decision.reason}")


def _flowing(figures: list[tuple[str, str]], width: int) -> Iterator[Content]:
    """Names with their figures, as many in a line as fit."""
    line: list[Content] = []
    used = 0
    for name, text in figures:
        one = Content.assemble((f"{name} ", MUTED), text) if name else Content.styled(text, "bold")
        if line and used + one.cell_length > width:
            yield Content("   ").join(line)
            line, used = [], 0
        line.append(one)
        used += one.cell_length + 3
    if line:
        yield Content("   ").join(line)
