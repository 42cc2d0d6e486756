"""An arena, or its repeats, as plain text: agents by wealth or mean return, stocks, figures of the market."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from engine.domain.text import counted
from engine.reports.amounts import between, money, percent, ratio
from engine.reports.arena_report import market_facts
from engine.reports.table import Column, count
from engine.reports.tables import ARENA_AGENTS
from tui.text.console import standard_output
from tui.text.plain_text import facts, table_of


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
    yield from table_of(REPEATED, ranked, console.room)
    yield ""
    yield "TO OTHERS: mean difference to the other agents of the same repeat; REPEATS: how many it takes to see it."
    if any(one["relative"] for one in ranked):
        yield "OF 100: in percent of the baseline's agents; - where they did not earn anything."
    trend = percent(document["market"]["average_trend"])
    yield f"Prices      average trend {trend}, {counted(document['model']['calls'], 'call')}"
    yield f"Each        paperdesk arena --resume {document['runs'][0]['run']} --model replay"


def _relative(figure: str, one: Mapping[str, Any]) -> float | str | None:
    return one["relative"][figure] if one["relative"] else ""


REPEATED = (
    Column("AGENT", "name"),
    Column("RETURN", "mean_return", percent),
    Column("SHARPE", "mean_sharpe", ratio),
    Column("RANK", "mean_rank", "{:.1f}".format),
    Column("TO OTHERS", "difference.mean", percent),
    Column("95 %", lambda one: between((one["difference"]["low"], one["difference"]["high"]), percent), str),
    Column("REPEATS", "difference.repeats_needed", str),
    Column("OF 100", partial(_relative, "return"), ratio),
    Column("SHARPE OF 100", partial(_relative, "sharpe"), ratio),
    Column("KIND", "kind"),
)
STOCKS = (
    Column("STOCK", "name"),
    Column("SHARES", "shares", count),
    Column("FIRST", "first_price", money),
    Column("LAST", "last_price", money),
    Column("VALUE", lambda stock: stock["fundamental"] or "", money),
)


def _single_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An arena as text: agents by wealth, stocks, figures of the market."""
    console = standard_output()
    yield console.bold(f"Arena {document['run']}") + "   play money. not investment advice"
    yield f"Market {document['preset']}, {document['days']} days, seed {document['seed']}"
    yield ""
    ranked = sorted(document["agents"], key=lambda one: -Decimal(one["wealth"]))
    yield from table_of(ARENA_AGENTS, ranked, console.room, paint=console.inked)
    yield ""
    yield from table_of(STOCKS, document["stocks"], console.room)
    yield ""
    yield from facts([*market_facts(document)], console.width)
    yield f"Again       paperdesk arena --resume {document['run']} --model replay"
