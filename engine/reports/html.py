"""A result's document as one HTML file that needs nothing else: tables, curves, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.reports.performance import BENCHMARK
from engine.reports.summary import (
    DISCLAIMER,
    action_rows,
    amount,
    change,
    drawdowns,
    facts,
    metric_rows,
    name_of,
    remarks,
    symbol_rows,
    totals,
)
from engine.reports.svg_charts import Curve, svg


def html(document: Mapping[str, Any]) -> str:
    """The whole page. Every text of a model or a source is escaped."""
    from markupsafe import Markup

    equity, falls = _charts(document)
    metrics = metric_rows(document)
    return rendered(
        "report.html.j2",
        d=document,
        name=name_of(document),
        disclaimer=DISCLAIMER,
        facts=list(facts(document)),
        tiles=_tiles(document),
        metrics=metrics,
        symbols=list(symbol_rows(document, metrics)),
        actions=action_rows(document),
        totals=list(totals(document)),
        remarks=list(remarks(document)),
        equity_chart=Markup(equity),
        fall_chart=Markup(falls),
        amount=amount,
    )


def rendered(page: str, **values: Any) -> str:
    """A page of `templates` with its values, escaped but for markup."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("engine.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(page).render(**values)


def _charts(document: Mapping[str, Any]) -> tuple[str, str]:
    """Value and drawdown by session, from the money that the run began with."""
    name, points = name_of(document), document["equity"]
    sessions = [point["session"] for point in points]
    own = [float(point["value"]) for point in points]
    beside = {n: [float(v) for v in b["equity"]] for n, b in document["baselines"].items() if n != name}
    held = beside.pop(BENCHMARK, None)
    curves = [Curve(other, values, "other") for other, values in beside.items()]
    front = [Curve(name, own, "own")] if held is None else [Curve(BENCHMARK, held, "held"), Curve(name, own, "own")]
    initial = float(document["initial_value"])
    falls = [Curve(name, drawdowns([initial, *own])[1:], "fall")]
    if held is not None:
        falls.insert(0, Curve(BENCHMARK, drawdowns([initial, *held])[1:], "held"))
    return (
        svg([*curves, *front], sessions, 320, "value by session"),
        svg(falls, sessions, 160, "drawdown by session", percent=True),
    )


def _tiles(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The figures on top: title, figure, and the line under it."""
    rows = {row.name: row for row in metric_rows(document)}
    moved = f"from {amount(document['initial_value'])}"
    tiles = [("Final value", amount(document["final_value"]), moved), ("Total return", change(document), "")]
    shown = [name for name in ("sharpe", "max_drawdown", "excess_return") if name in rows] or list(rows)[:4]
    for name in shown:
        interval = rows[name].interval
        tiles.append((rows[name].title, rows[name].own, f"95 %: {interval}" if interval else ""))
    return tiles
