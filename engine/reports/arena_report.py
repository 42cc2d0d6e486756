"""An arena's document as one HTML file: all that the Arena screen shows, of every day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.decision import DESK
from engine.domain.text import cut_between_words
from engine.reports.amounts import percent, portion, ratio
from engine.reports.documents.row_json import cutoff_words, use_words
from engine.reports.html import rendered
from engine.reports.summary import DISCLAIMER, amount
from engine.reports.svg_charts import Curve, svg
from engine.reports.table import Cell, Column, texts
from engine.reports.tables import ARENA_AGENTS, ARENA_ORDERS, DAY, STOCK, TAPE

Document = Mapping[str, Any]


def arena_html(document: Document) -> str:
    """The whole page of one arena. Every text of a model is escaped."""
    from markupsafe import Markup

    days = _days(document)
    charts = [
        (title, note, Markup(svg(curves, days, 240, title)))
        for title, note, curves in (*_price_charts(document), _wealth_chart(document), _volume_chart(document))
    ]
    return rendered(
        "arena.html.j2",
        d=document,
        disclaimer=DISCLAIMER,
        charts=charts,
        columns=[column for column in ARENA_AGENTS if column.title != "OF 100"],
        agents=_ranked(document),
        facts=list(market_facts(document)),
        tables=list(_tables(document)),
    )


def market_facts(document: Document) -> Iterator[tuple[str, str]]:
    """Figures of the market, its orders, messages and models, as pairs of a name and a value."""
    market, model, agents = document["market"], document["model"], document["agents"]
    yield "Trades", f"{len(document['trades'])}, turnover {market['turnover']:.2f}"
    trend, sharpe = percent(market["average_trend"]), ratio(market["index_sharpe"])
    yield "Prices", f"average trend {trend}, index Sharpe {sharpe}, volatility {portion(market['volatility'])}"
    if stock := market["most_volatile"]:
        yield "Volatile", f"most of all {stock['stock']}, {percent(stock['trend'])}"
    if market["deviation"] is not None:
        bubble = f"{market['deviation']:.3f} absolute, {market['relative_deviation']:+.3f} signed"
        yield "Deviation", f"from the fundamental value {bubble}"
    refused, silent = (sum(sum(one[name].values()) for one in agents) for name in ("refused", "abstentions"))
    yield "Orders", f"{refused} refused, {silent} questions without an answer"
    invented = sum(one["truth"] is False for one in document["messages"])
    yield "Messages", f"{len(document['messages'])}, of them {invented} invented"
    yield from (("Seat", note) for note in document.get("notes", ()))
    yield "Model", f"{model['spec'] or 'none'}: {use_words(model)}{cutoff_words(model)}"


TRUTHS = {True: "true", False: "invented", None: "unknown"}
MESSAGES = (
    DAY,
    Column("FROM", "agent"),
    Column("ITS AUTHOR KNOWS IT TO BE", lambda one: TRUTHS[one["truth"]]),
    Column("MESSAGE", lambda one: Cell(one["text"], "reason")),
)
STRATEGIES = (
    Column("AGENT", "agent"),
    Column("AFTER DAY", "day", str),
    Column("FROM DAY", "parent", str),
    Column("SCORE", "score", "{:+.2f}".format),
    Column("STRATEGY", lambda one: Cell(one["text"], "reason")),
)
DECISIONS = (
    DAY,
    Column("AGENT", lambda one: one["agent"] + (f" ({one['owner']})" if one["owner"] not in ("", DESK) else "")),
    STOCK,
    Column("SHARES", "shares", "{:+d}".format),
    Column("SIZE", "size", "{} %".format),
    Column("REASON", lambda one: Cell(_reason(one), "reason")),
)
DECISIONS_NOTE = "Those that trade or abstain; the JSON has all of them, each with the answers that it rests on."


def _tables(document: Document) -> Iterator[tuple[str, Sequence[Column], Sequence[Any], str]]:
    """Titles, columns, rows and notes of the tables that have a row for everything that happened."""
    agents, traded = document["agents"], document.get("decisions", ())
    wealth = [[str(day), *(amount(one["equity"][day]) for one in agents)] for day in range(document["days"] + 1)]
    yield "Wealth by day", texts("DAY", *(one["name"] for one in agents)), wealth, ""
    yield "Trades", (DAY, *TAPE, Column("RESTING", "maker")), document["trades"], ""
    yield "Orders open at the close", (DAY, *ARENA_ORDERS), document["books"], ""
    yield "Chat", MESSAGES, document["messages"], ""
    strategies = [{**one, "agent": agent["name"]} for agent in agents for one in agent["strategies"]]
    yield "Strategies and what came of them", STRATEGIES, strategies, ""
    decided = [one for one in traded if one["shares"] or one["action"] == "ABSTAIN"]
    yield "Decisions of presets and strategies", DECISIONS, decided, DECISIONS_NOTE


def _reason(one: Document) -> str:
    cut = f" ({one['cut']})" if one["cut"] else ""
    return cut_between_words(one["reason"].partition("\n")[0], 240) + cut


def _price_charts(document: Document) -> Iterator[tuple[str, str, Sequence[Curve]]]:
    for stock in document["stocks"]:
        rows = [one for one in document["prices"] if one["stock"] == stock["name"]]
        curves = [Curve("price", [float(one["close"]) for one in rows], "own")]
        note = "Reference price at the close."
        if all(one["fundamental"] is not None for one in rows):
            curves.insert(0, Curve("fundamental value", [float(one["fundamental"]) for one in rows], "held"))
            note = "Reference price at the close; dashed: fundamental value."
        yield f"Price of {stock['name']}", note, curves


def _wealth_chart(document: Document) -> tuple[str, str, Sequence[Curve]]:
    ranked = _ranked(document)
    styles = {ranked[0]["name"]: "own", ranked[-1]["name"]: "held"}
    curves = [
        Curve(one["name"], [float(value) for value in one["equity"][1:]], styles.get(one["name"], "other"))
        for one in reversed(ranked)
    ]
    note = f"Blue: {ranked[0]['name']}, the wealthiest at the end; dashed: {ranked[-1]['name']}, the poorest."
    return "Wealth by agent", note, curves


def _volume_chart(document: Document) -> tuple[str, str, Sequence[Curve]]:
    curves = [Curve(name, list(map(float, volumes)), "other") for name, volumes in _volumes(document).items()]
    total = [sum(day) for day in zip(*(curve.values for curve in curves), strict=True)]
    return "Shares traded", "Blue: all stocks; grey: each.", [*curves, Curve("all stocks", total, "own")]


def _volumes(document: Document) -> Mapping[str, Sequence[int]]:
    volumes = {stock["name"]: [0] * document["days"] for stock in document["stocks"]}
    for trade in document["trades"]:
        volumes[trade["stock"]][trade["day"] - 1] += trade["quantity"]
    return volumes


def _ranked(document: Document) -> Sequence[Document]:
    return sorted(document["agents"], key=lambda one: -float(one["wealth"]))


def _days(document: Document) -> Sequence[str]:
    return [f"day {day}" for day in range(1, document["days"] + 1)]
