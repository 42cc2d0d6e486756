"""An arena's document as one HTML file: all that the Arena screen shows, of every day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.decision import DESK
from engine.domain.text import cut_between_words
from engine.reports.html import rendered
from engine.reports.summary import DISCLAIMER, NOTHING, amount
from engine.reports.svg_charts import Curve, svg

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
        agents=list(_agent_rows(document)),
        figures=list(_figures(document)),
        strategies=list(_strategy_rows(document)),
        decisions=list(_decision_rows(document)),
        decisions_note=DECISIONS_NOTE,
        tables=list(_tables(document)),
        texts=TEXTS,
    )


def _agent_rows(document: Document) -> Iterator[Sequence[str]]:
    for one in _ranked(document):
        figures = one["metrics"]
        yield (
            one["name"],
            one["kind"],
            amount(one["wealth"]),
            _percent(figures["total_return"]),
            _percent(figures["difference"]),
            _ratio(figures["sharpe"]),
            _portion(figures["win_rate"]),
        )


def _figures(document: Document) -> Iterator[tuple[str, str]]:
    market = document["market"]
    yield "Trades", f"{len(document['trades'])}, turnover {market['turnover']:.2f}"
    yield "Average trend", f"{_percent(market['average_trend'])}; agents beyond it {_percent(market['difference'])}"
    yield "Index", f"Sharpe {_ratio(market['index_sharpe'])}, volatility a day {_portion(market['volatility'])}"
    if market["most_volatile"]:
        stock = market["most_volatile"]
        yield "Most volatile stock", f"{stock['stock']}, {_percent(stock['trend'])}"
    if market["deviation"] is not None:
        signed = f"{market['deviation']:.3f} absolute, {market['relative_deviation']:+.3f} signed"
        yield "Distance from the fundamental value", signed
    refused = sum(sum(one["refused"].values()) for one in document["agents"])
    yield "Refused orders", str(refused)
    yield from (("Seat", note) for note in document.get("notes", ()))
    yield "Questions without an answer", str(sum(sum(one["abstentions"].values()) for one in document["agents"]))


TEXTS = ("Stock", "Buyer", "Seller", "Resting", "Side", "Agent")
"""Headings of columns that hold no figures."""


def _tables(document: Document) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """Titles, headings and rows of the tables that have a row for everything that happened."""
    agents = document["agents"]
    wealth = [[str(day), *(amount(one["equity"][day]) for one in agents)] for day in range(document["days"] + 1)]
    yield "Wealth by day", ["Day", *(one["name"] for one in agents)], wealth
    trades = [
        [
            *(str(one[name]) for name in ("day", "round", "stock", "buyer", "seller", "quantity")),
            amount(one["price"]),
            one["maker"],
        ]
        for one in document["trades"]
    ]
    yield "Trades", ["Day", "Round", "Stock", "Buyer", "Seller", "Shares", "Price", "Resting"], trades
    books = [
        [str(one["day"]), one["stock"], one["side"], one["agent"], str(one["quantity"]), amount(one["price"])]
        for one in document["books"]
    ]
    yield "Orders open at the close", ["Day", "Stock", "Side", "Agent", "Shares", "Price"], books


def _strategy_rows(document: Document) -> Iterator[Sequence[str]]:
    for agent in document["agents"]:
        for one in agent["strategies"]:
            parent = NOTHING if one["parent"] is None else str(one["parent"])
            score = NOTHING if one["score"] is None else f"{one['score']:+.2f}"
            yield agent["name"], str(one["day"]), parent, score, one["text"]


DECISIONS_NOTE = "Those that trade or abstain; the JSON has all of them, each with the answers that it rests on."


def _decision_rows(document: Document) -> Iterator[Sequence[str]]:
    for one in document.get("decisions", ()):
        if one["shares"] or one["action"] == "ABSTAIN":
            reason = cut_between_words(one["reason"].partition("\n")[0], 240)
            cut = f" ({one['cut']})" if one["cut"] else ""
            name = one["agent"] if one["owner"] in ("", DESK) else f"{one['agent']} ({one['owner']})"
            yield str(one["day"]), name, one["stock"], f"{one['shares']:+d}", f"{one['size']} %", reason + cut


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


def _percent(figure: float | None) -> str:
    return NOTHING if figure is None else f"{figure * 100:+.2f} %"


def _portion(figure: float | None) -> str:
    return NOTHING if figure is None else f"{figure * 100:.2f} %"


def _ratio(figure: float | None) -> str:
    return NOTHING if figure is None else f"{figure:.2f}"
