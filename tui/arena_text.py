"""An arena, or its repeats, as plain text: agents by wealth or mean return, stocks, figures of the market."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import cost, held, money, number, percent, portion, ratio
from engine.reports.documents.row_json import cutoff_words, price_words
from tui.console import standard_output
from tui.plain_text import table, wrapped


def arena_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An arena, or its repeats, as text."""
    return _repeats_lines(document) if "repeats" in document else _single_lines(document)


def _repeats_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Repeats of an arena as text: agents by mean return, each beside the others of its repeats."""
    console = standard_output()
    done = len(document["runs"])
    yield console.bold(f"Arena {document['run']}") + "   play money. not investment advice"
    seeds = f"seeds {document['runs'][0]['seed']} to {document['runs'][-1]['seed']}, seats rotated"
    yield f"Market {document['preset']}, {document['days']} days, {done} of {document['repeats']} repeats, {seeds}"
    yield ""
    ranked = sorted(document["agents"], key=lambda one: -(one["mean_return"] or 0.0))
    rows = [
        (
            one["name"],
            percent(one["mean_return"]),
            ratio(one["mean_sharpe"]),
            f"{one['mean_rank']:.1f}",
            percent(one["difference"]["mean"]),
            _between(one["difference"]),
            str(one["difference"]["repeats_needed"] or "-"),
            *((ratio(one["relative"]["return"]), ratio(one["relative"]["sharpe"])) if one["relative"] else ("", "")),
            one["kind"],
        )
        for one in ranked
    ]
    numbers = ("RETURN", "SHARPE", "RANK", "TO OTHERS", "95 %", "REPEATS", "OF 100", "SHARPE OF 100")
    yield from table(("AGENT", *numbers, "KIND"), rows, right=numbers, width=console.room)
    yield ""
    yield "TO OTHERS: mean difference to the other agents of the same repeat; REPEATS: how many it takes to see it."
    if any(one["relative"] for one in ranked):
        yield "OF 100: in percent of the baseline's agents; - where they did not earn anything."
    trend = percent(document["market"]["average_trend"])
    yield f"Prices      average trend {trend}, {counted(document['model']['calls'], 'call')}"
    yield f"Each        paperdesk arena --resume {document['runs'][0]['run']} --model replay"


def _between(paired: Mapping[str, float | None]) -> str:
    return "-" if paired["low"] is None else f"{percent(paired['low'])} to {percent(paired['high'])}"


def _single_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An arena as text: agents by wealth, stocks, figures of the market."""
    console = standard_output()
    yield console.bold(f"Arena {document['run']}") + "   play money. not investment advice"
    yield f"Market {document['preset']}, {document['days']} days, seed {document['seed']}"
    yield ""
    ranked = sorted(document["agents"], key=lambda one: -Decimal(one["wealth"]))
    rows = [
        (
            agent["name"],
            money(number(agent["wealth"])),
            percent(agent["metrics"]["total_return"]),
            ratio(agent["metrics"]["sharpe"]),
            portion(agent["metrics"]["win_rate"]),
            ratio(agent["relative"]["return"]) if agent["relative"] else "",
            held(agent["holdings"]) or "-",
            agent["kind"],
        )
        for agent in ranked
    ]
    yield from table(
        ("AGENT", "WEALTH", "RETURN", "SHARPE", "WON", "OF 100", "SHARES", "KIND"),
        rows,
        right=("WEALTH", "RETURN", "SHARPE", "WON", "OF 100"),
        width=console.room,
    )
    yield ""
    stocks = [
        (
            stock["name"],
            f"{stock['shares']:,}",
            money(number(stock["first_price"])),
            money(number(stock["last_price"])),
            "" if stock["fundamental"] is None else money(number(stock["fundamental"])),
        )
        for stock in document["stocks"]
    ]
    yield from table(
        ("STOCK", "SHARES", "FIRST", "LAST", "VALUE"),
        stocks,
        right=("SHARES", "FIRST", "LAST", "VALUE"),
        width=console.room,
    )
    yield ""
    market = document["market"]
    yield f"Trades      {len(document['trades'])}, turnover {market['turnover']:.2f}"
    trend, sharpe = percent(market["average_trend"]), ratio(market["index_sharpe"])
    yield f"Prices      average trend {trend}, index Sharpe {sharpe}, volatility {portion(market['volatility'])}"
    if market["deviation"] is not None:
        bubble = f"{market['deviation']:.3f} absolute, {market['relative_deviation']:+.3f} signed"
        yield f"Deviation   from the fundamental value {bubble}"
    refused = sum(sum(agent["refused"].values()) for agent in document["agents"])
    silent = sum(sum(agent["abstentions"].values()) for agent in document["agents"])
    yield f"Orders      {refused} refused, {silent} questions without an answer"
    invented = sum(one["truth"] is False for one in document["messages"])
    yield f"Messages    {len(document['messages'])}, of them {invented} invented"
    for note in document.get("notes", ()):
        first, *more = wrapped(note, console.width - 12)
        yield from (f"Seat        {first}", *(f"            {line}" for line in more))
    model = document["model"]
    paid = f"{cost(number(model['cost']))}{price_words(model)}{cutoff_words(model)}"
    yield f"Model       {model['spec'] or 'none'}: {counted(model['calls'], 'call')}, {paid}"
    yield f"Again       paperdesk arena --resume {document['run']} --model replay"
