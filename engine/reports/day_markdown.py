"""A day's document as Markdown: decisions with their reasons, orders and trades, and the desk's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.order_id import YOU
from engine.domain.portfolio import ZERO
from engine.domain.printable import printable
from engine.domain.text import counted, listed
from engine.reports.documents.row_json import cutoff_words
from engine.reports.settings_text import as_of_text, changed_text, costs_text, version_text
from engine.reports.summary import DISCLAIMER, NOTHING, amount, by_agent, figures_text, model_text

Document = Mapping[str, Any]
_SIDES = ("journal", "broker", "difference")
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~$"})


def day_markdown(document: Document) -> str:
    """The whole report."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    within = f", cycle {document['cycle']} within the next" if document["cycle"] > 1 else ""
    within += f", {_cell(document['symbol'])} alone" if document["symbol"] else ""
    yield f"# Desk {_cell(document['desk'])}, session {document['session']}{within}"
    yield from ("", f"*{DISCLAIMER}* Run `{document['run']}`.", "")
    yield from _table(["", ""], [[name, _cell(value)] for name, value in _facts(document) if value])
    for title, lines in (
        ("Differences", _differences(document["differences"])),
        ("Notes", [f"- {one['level']}: {_cell(one['text'])}" for one in document["notes"]]),
        ("Decisions", _decisions(document["decisions"])),
        ("Orders", _orders(document["orders"])),
        ("Since the run before", [*_fills(document["fills"]), *_flows(document["cash_flows"])]),
        ("Taken over from the broker", _adoptions(document["adoptions"])),
        ("Positions", _positions(document)),
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


def _differences(differences: Sequence[Document]) -> Iterator[str]:
    rows = [
        [_cell(row["what"]), *(row[side] or NOTHING for side in _SIDES), _cell(row["note"] or "")]
        for row in differences
    ]
    return _table(["", *(side.capitalize() for side in _SIDES), "Note"], rows, frozenset({1, 2, 3}))


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


def _orders(orders: Sequence[Document]) -> Iterator[str]:
    rows = [
        [_cell(one["symbol"]), one["side"], _amount_of(one), one["state"], _cell(one["detail"] or "")] for one in orders
    ]
    columns = 5 if any(one["detail"] for one in orders) else 4
    heading = ["", "Side", "Asked", "State", "Why"]
    return _table(heading[:columns], [row[:columns] for row in rows], frozenset({2}))


def _amount_of(order: Document) -> str:
    return f"{order['quantity']} shares" if order["notional"] is None else f"for {amount(order['notional'])}"


def _fills(fills: Sequence[Document]) -> Iterator[str]:
    columns = ("session", "symbol", "side", "quantity", "price", "fee")
    rows = [[*(_cell(fill[column]) for column in columns), "yours" if fill["owner"] == YOU else ""] for fill in fills]
    heading, width = [*(column.capitalize() for column in columns), ""], 7 if any(row[-1] for row in rows) else 6
    return _table(heading[:width], [row[:width] for row in rows], frozenset({3, 4, 5}))


def _flows(flows: Sequence[Document]) -> Iterator[str]:
    rows = [
        [
            flow["session"],
            _cell(flow["symbol"]),
            _cell(flow["kind"]),
            _signed(flow["amount"]),
            NOTHING if Decimal(flow["quantity"]) == ZERO else flow["quantity"],
            _cell(flow["words"] or ""),
        ]
        for flow in flows
    ]
    if rows:
        yield ""
    yield from _table(["Session", "Symbol", "Kind", "Amount", "Shares", "Words"], rows, frozenset({3, 4}))


def _adoptions(adoptions: Sequence[Document]) -> Iterator[str]:
    for one in adoptions:
        yield f"- {_cell(one['what'])}: {one['before']} became {one['after']}, {_cell(one['reason'])}"


def _positions(document: Document) -> Iterator[str]:
    rows = [
        [
            _cell(symbol),
            held["quantity"],
            _rounded(held["average_cost"]),
            _rounded(held["price"]),
            NOTHING if held["price"] is None else f"{Decimal(held['quantity']) * Decimal(held['price']):,.2f}",
            NOTHING if held["gain"] is None else _signed(held["gain"]),
        ]
        for symbol, held in document["positions"].items()
    ]
    return _table(["", "Shares", "Cost", "Price", "Value", "Gain"], rows)


def _rounded(text: str | None) -> str:
    if text is None:
        return NOTHING
    price = Decimal(text)
    return f"{price:,.2f}" if abs(price) >= 1 or price == ZERO else f"{price:,.4f}"


def _signed(text: str) -> str:
    return f"{Decimal(text):+,.2f}"


def _moment(text: str | None) -> str:
    return "now" if text is None else f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int] | None = None
) -> Iterator[str]:
    """A table with numbers to the right: in the columns named, else in all but the first; nothing without rows."""
    if not rows:
        return
    right = frozenset(range(1, len(heading))) if numbers is None and any(heading) else numbers or frozenset()
    cells = [list(heading), *map(list, rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(heading))]
    for number, row in enumerate(cells):
        aligned = (text.rjust(widths[n]) if n in right else text.ljust(widths[n]) for n, text in enumerate(row))
        yield f"| {' | '.join(aligned)} |"
        if number == 0:
            rules = ("-" * (width - 1) + (":" if n in right else "-") for n, width in enumerate(widths))
            yield f"| {' | '.join(rules)} |"


def _cell(text: str) -> str:
    """Text as a cell: on one line, nothing in it is markup and nothing steers a terminal."""
    return " ".join(printable(text).split()).translate(_SPECIAL) or NOTHING
