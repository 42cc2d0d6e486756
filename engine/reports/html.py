"""A result's document as one HTML file that needs nothing else: tables, curves, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.domain.decision import Action
from engine.program_files import program_text
from engine.reports import amounts
from engine.reports.card import is_listed
from engine.reports.documents.row_json import open_command
from engine.reports.documents.settings import flat_settings, run_settings
from engine.reports.html_charts import Chart, charts, symbol_costs
from engine.reports.periods import MONTHS, fall_rows, month_rows, year_rows
from engine.reports.summary import (
    DISCLAIMER,
    action_rows,
    amount,
    change,
    facts,
    luck_rows,
    metric_rows,
    name_of,
    over_the_market,
    remarks,
    symbol_rows,
    totals,
)
from engine.reports.table import Cell, Column, action_ink, count, texts
from engine.reports.tables import FLOWS, SESSION, SYMBOL, TRADES

COSTS = (
    Column("", 0),
    Column("Trades", 1, count),
    Column("Traded", 2, amounts.money),
    Column("Fees", 3, amounts.money),
    Column("Slippage, about", 4, amounts.money),
)
YEARS = texts("Year", "Return", "Buy and hold", "Max drawdown")
FALLS = texts("Depth", "From the peak of", "To", "Recovered", "Sessions")
ACTIONS = texts("", *(action.value for action in Action), "Cut by the limits")
DECISIONS = (
    SESSION,
    SYMBOL,
    Column("ACTION", "action", ink=action_ink),
    Column("SIZE", "size", "{:g} %".format),
    Column("REASON", lambda one: Cell("\n".join(one.get("card") or _without_card(one)), "reason")),
    Column("IN FULL", lambda one: Cell(one["reason"], "full")),
)
TEMPLATES = Path(__file__).parent / "templates"


def html(document: Mapping[str, Any]) -> str:
    """The whole page. Every text of a model or a source is escaped."""
    from markupsafe import Markup

    metrics, place = metric_rows(document, spread=True), partial(open_command, **_record(document))
    return rendered(
        "report.html.j2",
        d=document,
        name=name_of(document),
        title=f"Desk {document['desk']} ({name_of(document)})" if "desk" in document else name_of(document),
        disclaimer=DISCLAIMER,
        facts=list(facts(document)),
        luck=list(luck_rows(document)),
        tiles=_tiles(document),
        metrics=[(row.title, row.own, row.interval, *row.beside) for row in metrics],
        metric_columns=texts("", name_of(document), "95 % interval", *document["baselines"]),
        months=list(month_rows(document)),
        years=list(year_rows(document)),
        falls=fall_rows(document),
        symbols=list(symbol_rows(document, metrics)),
        symbol_columns=texts("", "Profit", "Final quantity", *(row.short for row in metrics)),
        actions=action_rows(document),
        decided=[one for one in document["decisions"] if is_listed(one)],
        decision_columns=(*DECISIONS, Column("In the app", place, ink="code")),
        totals=list(totals(document)),
        remarks=list(remarks(document)),
        charts=[(chart, Markup(chart.drawing)) for chart in charts(document)],
        costs=list(symbol_costs(document)),
        settings=list(flat_settings(run_settings(document))),  # by the keys that one would set
        **{
            "MONTHS": texts("", *MONTHS),
            "YEARS": YEARS,
            "FALLS": FALLS,
            "COSTS": COSTS,
            "ACTIONS": ACTIONS,
            "TRADES": TRADES,
            "FLOWS": FLOWS,
        },
    )


def _without_card(decided: Mapping[str, Any]) -> Iterator[str]:
    yield decided["reason"].split("\n", 1)[0]
    if decided["cut"]:
        yield f"Limits: {decided['cut']}"


def figures_html(
    title: str,
    charts: Iterable[Chart],
    notes: Sequence[str] = (),
    *,
    tables: Sequence[tuple[str, Sequence[Column], Sequence[Any]]] = (),
) -> str:
    """Titled tables, then charts, as one page, with notes below."""
    from markupsafe import Markup

    drawn = [(chart, Markup(chart.drawing)) for chart in charts if chart.drawing]
    return rendered("figure.html.j2", title=title, disclaimer=DISCLAIMER, tables=tables, charts=drawn, notes=notes)


def rendered(page: str, **values: Any) -> str:
    """A page of `templates` with its values, escaped but for markup."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: program_text(TEMPLATES / name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(page).render(**values)


def _tiles(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The figures on top: title, figure, and the line under it."""
    rows = {row.name: row for row in metric_rows(document)}
    moved = f"from {amount(document['initial_value'])}"
    # Of a desk without deposits and withdrawals.
    whole = rows["total_return"].own if "total_return" in rows else change(document)
    tiles = [("Final value", amount(document["final_value"]), moved), ("Total return", whole, "")]
    shown = [name for name in ("sharpe", "max_drawdown", "excess_return") if name in rows] or list(rows)[:4]
    for name in shown:
        interval = rows[name].interval
        tiles.append((rows[name].title, rows[name].own, f"95 %: {interval}" if interval else ""))
    if excess := (document.get("luck") or {}).get("excess_per_year"):
        grown, _, interval = over_the_market(excess).partition(" (")
        tiles.append(("Growth over the market", grown, interval.rstrip(")")))
    return tiles


def _record(document: Mapping[str, Any]) -> dict[str, Any]:
    """The desk, or the backtest, in whose record a place lies."""
    return {"desk": document["desk"]} if "desk" in document else {"run": document["run"]}
