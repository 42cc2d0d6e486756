"""A day's document as Markdown: decisions with their reasons, orders and trades, and the desk's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.order_id import YOU
from engine.domain.printable import one_line
from engine.domain.text import counted, listed
from engine.reports.amounts import quantity
from engine.reports.documents.row_json import cutoff_words
from engine.reports.settings_text import as_of_text, changed_text, costs_text, version_text
from engine.reports.summary import DISCLAIMER, NOTHING, amount, by_agent, figures_text, model_text
from engine.reports.table import Column
from engine.reports.tables import COST, FLOWS, PRICE, PROFIT, QUANTITY, REQUESTED, SIDE, SYMBOL, TRADES, VALUE

Document = Mapping[str, Any]
_FACTS = (Column("", 0), Column("", 1))
_DIFFERENCES = (
    Column("", "what"),
    *(Column(side.upper(), side, str) for side in ("journal", "broker", "difference")),
    Column("NOTE", lambda one: one["note"] or ""),
)
_ORDERS = (
    SYMBOL,
    SIDE,
    REQUESTED,
    Column("STATE", "state"),
    Column("WHY", lambda one: one["detail"] or ""),
)
_FILLS = (*TRADES[:-1], Column("", lambda one: "yours" if one["owner"] == YOU else ""))
_FLOWS = (*FLOWS, Column("SHARES", "quantity", quantity), Column("WORDS", lambda one: one["words"] or ""))
_POSITIONS = (SYMBOL, QUANTITY, COST, PRICE, VALUE, PROFIT)
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~$"})


def day_markdown(document: Document) -> str:
    """The whole report."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    within = f", cycle {document['cycle']} within the next" if document["cycle"] > 1 else ""
    within += f", {_cell(document['symbol'])} alone" if document["symbol"] else ""
    yield f"# Desk {_cell(document['desk'])}, session {document['session']}{within}"
    yield from ("", f"*{DISCLAIMER}* Run `{document['run']}`.", "")
    yield from _table(_FACTS, [fact for fact in _facts(document) if fact[1]])
    flows = list(_table(_FLOWS, document["cash_flows"]))
    held = [{**one, "symbol": symbol, "cost": one["average_cost"]} for symbol, one in document["positions"].items()]
    for title, lines in (
        ("Differences", _table(_DIFFERENCES, document["differences"])),
        ("Notes", [f"- {one['level']}: {_cell(one['text'])}" for one in document["notes"]]),
        ("Decisions", _decisions(document["decisions"])),
        ("Orders", _table(_ORDERS, document["orders"])),
        ("Since the run before", [*_table(_FILLS, document["fills"]), *(["", *flows] if flows else ())]),
        ("Taken over from the broker", _adoptions(document["adoptions"])),
        ("Positions", _table(_POSITIONS, held)),
    ):
        found = list(lines)
        if found:
            yield from ("", f"## {title}", "", *found)


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    for name in ("halted", "paused"):
        if (stop := document[name]) is not None:
            why = f": {stop['reason']}" if stop["reason"] else ""
            yield name.upper(), f"since {_moment(stop['since'])}{why}"
    yield "Outcome", _outcome(document)
    yield "Time", f"{_moment(document['started'])} to {_moment(document['ended'])}"
    yield "Decided by", f"{document['label']} (preset {document['preset']}){cutoff_words(document['model'])}"
    account = f", account {document['broker']['account']}" if document["broker"]["account"] else ""
    yield "Broker", f"{document['broker']['kind']}{account}, mode {document['mode']}"
    yield "Costs", costs_text(document["settings"]) if document["settings"] else ""
    yield "Version", version_text(document["settings"]) if document["settings"] else ""
    yield "Changed", changed_text(document["changed"]) if document["changed"] else ""
    yield "Decided alone", ", ".join(document["decided_alone"])
    yield "Skipped", listed(document["skipped"])
    yield "Frozen", ", ".join(document["frozen"])
    yield "As of", as_of_text(document)
    if document["value"] is not None:
        yield "Value", f"{amount(document['value'])}{_change(document)}"
        yield "Cash", amount(document["cash"])
    waiting = len(document["waiting"])
    yield "Waiting", counted(waiting, "order") if waiting else ""
    if document["model"] is not None:
        yield "Model", f"{document['model']['spec']}: {model_text(document)}"
        yield "By agent", by_agent(document)
    yield "Figures", figures_text(document)


def _outcome(document: Document) -> str:
    outcome = document["outcome"] or "not finished: it is at work, or was killed and goes on with the next one"
    return f"{outcome}: {document['detail']}" if document["detail"] else str(outcome)


def _change(document: Document) -> str:
    before = document["before"]
    if before is None:
        return ""
    deposits = Decimal(before["brought_in"])
    earned = Decimal(document["value"]) - Decimal(before["value"]) - deposits
    share = "" if before["change"] is None else f" ({100 * before['change']:+.2f} %)"
    without = f", without {deposits:+,.2f} that was brought in or taken out" if deposits else ""
    return f", {earned:+,.2f}{share} since {before['session']}{without}"


def _decisions(decisions: Sequence[Document]) -> Iterator[str]:
    for number, made in enumerate(decisions):
        if number:
            yield ""
        size = f" {Decimal(str(made['size'])).normalize():f} %" if made["size"] else ""
        yield f"### {_cell(made['symbol'])}: {made['action']}{size}"
        yield ""
        first, *more = [line for line in made["reason"].splitlines() if line.strip()] or [""]
        yield _cell(first)
        if made["cut"]:
            yield from ("", f"**Cut by the limits**: {_cell(made['cut'])}")
        if more:
            yield ""
            yield from (f"- {_cell(line)}" for line in more)


def _adoptions(adoptions: Sequence[Document]) -> Iterator[str]:
    for one in adoptions:
        yield f"- {_cell(one['what'])}: {one['before']} became {one['after']}, {_cell(one['reason'])}"


def _moment(text: str | None) -> str:
    return "now" if text is None else f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"


def _table(columns: Sequence[Column], rows: Sequence[Any]) -> Iterator[str]:
    """The columns in which something stands; nothing without rows."""
    found = [(column, [column.cell(row).text for row in rows]) for column in columns]
    kept = [(column, [column.heading, *map(_cell, texts)]) for column, texts in found if any(texts)]
    widths = [max(3, *map(len, texts)) for _, texts in kept]
    for number in range(len(rows) + 1 if kept else 0):
        cells = ((column.right, texts[number], width) for (column, texts), width in zip(kept, widths, strict=True))
        yield f"| {' | '.join(text.rjust(width) if right else text.ljust(width) for right, text, width in cells)} |"
        if number == 0:
            rules = ("-" * (n - 1) + (":" if one.right else "-") for (one, _), n in zip(kept, widths, strict=True))
            yield f"| {' | '.join(rules)} |"


def _cell(text: str) -> str:
    """Text as a cell: on one line, nothing in it is markup and nothing steers a terminal."""
    return one_line(text).translate(_SPECIAL) or NOTHING
