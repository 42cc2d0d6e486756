"""The first screen of a decision's trail as lines. Its first rows are a card: the decision and its result so far, why,
the strongest reason of each side, dissent, what the limits changed. What follows has as many lines as there is room
for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.reports import amounts
from engine.reports.card import (
    SIDES,
    action_words,
    cut_words,
    dissent_words,
    first_reason,
    moved,
    percent,
    reasons,
    sentences,
)
from engine.reports.documents.closes import HORIZONS
from engine.reports.documents.reasons import agent_rows
from engine.reports.settings_text import changed_text
from tui.text.plain_text import Line, beginning, one_line, table, wrapped
from tui.text.run_text import decided_by, order_words, trade_words

Row = Mapping[str, Any]
LABEL = 13
"""Columns of a label."""
FEWEST_ROWS = 16
WIDEST = 100
"""Columns of a trail at most: longer lines are hard to read."""
NARROW = 60
"""Columns below which the reason has several lines: it comes before what follows."""
REASONS = 4
"""Reasons of a side at most."""


@dataclass(slots=True)
class _Entry:
    """A labelled text, and how many of its lines are shown: all that there is room for, up to `most`."""

    label: str
    text: str
    ink: str = ""
    most: int = 3
    shown: int = 1
    lines: list[str] = field(default_factory=list)

    @property
    def wants(self) -> bool:
        return self.shown < min(self.most, len(self.lines))


def first_lines(document: Row, shown: Row, width: int, rows: int) -> Iterator[Line]:
    """The first screen about a decision of a document of `paperdesk why`, in at most `rows` lines from FEWEST_ROWS on:
    a line more where an order filled in parts, where there was a trade that nobody decided, or where the results have a
    line of their own."""
    width = min(width, WIDEST)
    entries = list(_entries(document, shown, width))
    for one in entries:
        one.lines = wrapped(one.text, width - LABEL)
        one.shown = min(one.shown, len(one.lines))
    room = rows - 1 - sum(one.shown for one in entries)
    room = _grow([one for one in entries if one.shown == 1], room, 1)
    agents = list(_agents(shown, width))[: max(0, room - 1)]
    agents = agents if len(agents) > 1 and width >= NARROW else []
    room -= len(agents) + 1 if agents else 0
    _grow(entries, room, rows)
    owner = "" if shown["owner"] == "desk" else f", as {one_line(shown['owner'])}"
    head = f"{shown['symbol']}  {shown['session']}  {action_words(shown)}{owner}"
    yield from ((line, "strong") for line in _with_results(head, shown, width))
    label = ""
    for one in entries:
        for number, line in enumerate(one.lines[: one.shown]):
            text = line
            if number == one.shown - 1 and one.shown < len(one.lines):
                text = beginning(f"{line} {one.lines[one.shown]}", width - LABEL)
            before = one.label if number == 0 and one.label != label else ""
            yield f"{before:<{LABEL}}{text}".rstrip(), one.ink
        label = one.label if one.shown else label
    yield from (("", ""), *agents) if agents else ()


def _grow(entries: Sequence[_Entry], room: int, most: int) -> int:
    """Show a line more of each that has more, at most so often, and return the room that is left."""
    for _ in range(most):
        for one in entries:
            if one.wants and room > 0:
                one.shown += 1
                room -= 1
    return room


def _agents(shown: Row, width: int) -> Iterator[Line]:
    """A table of the agents: what each thinks, how much of what it says, and one fact."""
    several = len({one["owner"] for one in shown["answers"]}) > 1
    rows = [
        (
            ", ".join(filter(None, (one_line(one["owner"]) if several else "", one_line(one["agent"])))),
            one["view"] or "-",
            one["strength"],
            one_line(one["fact"]).partition(". ")[0].removesuffix("."),
        )
        for one in agent_rows(shown)
    ]
    lines = table(("AGENT", "VIEW", "STRENGTH", "FACT"), rows, width=width, free="FACT") if rows else ()
    yield from ((line, "quiet" if not number else "") for number, line in enumerate(lines))


def summary_lines(document: Row, width: int, rows: int) -> Iterator[Line]:
    """The first screen of every decision of a document, and the command that prints all of it."""
    for shown in document["decisions"]:
        yield from first_lines(document, shown, width, rows)
        yield "", ""
    run = "" if document["kind"] == "desk" else f" --run {document['run']}"
    yield (
        f"memories, answers and the rest: paperdesk why {document['symbol']} {document['session']}{run} --full",
        "quiet",
    )


def _with_results(head: str, shown: Row, width: int) -> Iterator[str]:
    """The head of a card with the results after 1, 5 and 20 sessions and to date as far as they fit; where none does,
    they have the next line."""
    known = {one["sessions"]: one for one in shown["closes_since"]}
    if not known:
        yield head
        return
    texts = [f"+{sessions} {moved(known[sessions]) if sessions in known else '-'}" for sessions in HORIZONS]
    if shown["to_date"] is not None and shown["to_date"]["sessions"] not in HORIZONS:
        texts.append(f"to date {moved(shown['to_date'])}")
    beside = len(head) + 3 + len(texts[-1]) <= width
    if not beside:
        yield head
    before = f"{head}   " if beside else f"{'Came of it':<{LABEL}}"
    while len(texts) > 1 and len(before) + len("  ".join(texts)) > width:
        # What is not known yet leaves first, then the horizons from the longest.
        texts.pop(next((n for n in reversed(range(len(texts))) if texts[n].endswith(" -")), -2))
    yield before + "  ".join(texts)


def _entries(document: Row, shown: Row, width: int) -> Iterator[_Entry]:
    # The owners' opinions follow as reasons: of a combined reason the first line alone is new. What follows the first
    # line is shorthand of indicators and memories, shown with the reason in full.
    reason = first_reason(shown) or "no reason was given"
    yield _Entry("No decision" if shown["abstained"] else "Why", reason, most=12, shown=1 if width >= NARROW else 3)
    first, *others = _reasons(shown, width)
    yield from (one for one in (first, *others) if one.shown)
    yield _Entry("Dissent", dissent_words(shown))
    for cut in shown["cuts"]:
        yield _Entry("Limits", cut_words(cut), "warn")
    if not shown["cuts"] and not shown["abstained"]:
        yield _Entry("Limits", "nothing was cut")
    yield from _came_of_it(shown)
    yield from (one for one in others if not one.shown)
    if shown["unresolved_figures"]:
        figures = ", ".join(map(one_line, shown["unresolved_figures"]))
        yield _Entry("Figures", f"not found in the inputs: {figures}", "warn")
    if not shown["abstained"]:
        rule = f", by the rule {shown['asked']['rule']}" if shown["asked"]["rule"] else ""
        yield _Entry("Asked for", requested_words(shown["asked"]) + rule)
    if document["changed"] is not None:
        yield _Entry("Settings", f"changed {one_line(changed_text(document['changed']))}", "warn")
    if document["earlier_cycles"]:
        earlier = ", ".join(f"cycle {one['cycle']} ({one['run']})" for one in document["earlier_cycles"])
        yield _Entry("Before it", one_line(earlier), "quiet")
    yield _Entry("Decided by", one_line(f"{decided_by(document)}, run {shown['run']}"), "quiet")


def _reasons(shown: Row, width: int) -> Iterator[_Entry]:
    """The strongest reasons of each side, of which the first stands in any case."""
    for label, texts in reasons(shown).items():
        for number, text in enumerate(texts[:REASONS]):
            yield _Entry(label, sentences(text, width - LABEL), most=4, shown=int(number == 0))
        if not texts and label != SIDES["hold"]:
            yield _Entry(label, "nobody took this side", "quiet")


def requested_words(requested: Row) -> str:
    """`BUY 10 % of the portfolio`, `SELL of all shares`."""
    part = {"BUY": "with all cash", "SELL": "of all shares"}[requested["action"]] if requested["whole"] else ""
    size = f"{percent(str(requested['size']))} of the portfolio" if requested["size"] else ""
    return f"{requested['action']} {', '.join(filter(None, (part, size)))}".strip()


def _came_of_it(shown: Row) -> Iterator[_Entry]:
    for order in shown["orders"]:
        fills = [trade_words(fill) for fill in order["fills"]]
        # Of an order that did not fill the reason of its state.
        detail = order["moves"][-1]["detail"] if order["moves"] and not fills else ""
        yield _Entry("Order", "; ".join([order_words({**order, "detail": detail}), *fills]))
    if not shown["orders"]:
        yield _Entry("Order", "none", "quiet")
    for fill in shown["undecided_trades"]:
        yield _Entry("Not decided", f"{trade_words(fill)}. {one_line(fill['reason'])}", "warn")
    known = {one["sessions"]: one for one in shown["closes_since"]}
    if not known:
        yield _Entry("After", "not known yet", "quiet")
    for sessions in HORIZONS if known else ():
        words, ink = close_words(known[sessions]) if sessions in known else ("not known yet", "quiet")
        if sessions == HORIZONS[0] and sessions in known and shown["close"] is not None:
            # A coin's day may end after the decision: the price that it saw is another one.
            words += f", from {amounts.money(shown['close'])} at the close of {shown['session']}"
        yield _Entry("After", f"{'+' + str(sessions):>3} session{'s' if sessions > 1 else ' '} {words}", ink)
    if shown["outcome"] is not None:
        yield _Entry("Earned", outcome_words(shown), outcome_ink(shown))


def close_words(later: Row) -> tuple[str, str]:
    """A close after the decision, whether the trade was right, and the ink."""
    result = later["result"]
    word = "" if not result else "right " if result > 0 else "wrong "
    return f"{later['session']}: {amounts.money(later['close'])}  {word}{moved(later)}", _ink(result)


def outcome_words(shown: Row) -> str:
    """The reward of a decision."""
    outcome = shown["outcome"]
    return (
        f"{amounts.percent(outcome['reward'], 3)} of the portfolio by the close of {outcome['session']}, "
        f"{amounts.percent(outcome['cumulative'], 3)} with {shown['symbol']} so far"
    )


def outcome_ink(shown: Row) -> str:
    """Green or red for a purchase, which a reward is of; quiet for the rest."""
    return _ink(shown["outcome"]["reward"]) if shown["action"] == "BUY" else "quiet"


def _ink(change: float | None) -> str:
    if change is None:
        return "quiet"
    return "up" if change > 0 else "down" if change < 0 else ""
