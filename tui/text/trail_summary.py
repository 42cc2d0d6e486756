"""The first screen of a decision's trail as lines. Its first six rows are a card, more where there is room for whole
reasons: the decision with its results, three reasons, dissent, what the limits changed. What followed stands below it,
and a table of the agents where there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from engine.reports import amounts
from engine.reports.card import action_words, cut_words, dissent_words, first_reason, moved, percent, reasons, sentences
from engine.reports.documents.closes import HORIZONS
from engine.reports.documents.reasons import agent_rows
from engine.reports.settings_text import changed_text
from engine.reports.table import sign_ink
from tui.text.plain_text import Line, cut, one_line, table, wrapped
from tui.text.run_text import decided_by, order_words, trade_words

Row = Mapping[str, Any]
LABEL = 13
"""Columns of a label."""
WIDEST = 100
"""Columns of a trail at most: longer lines are hard to read."""
NARROW = 60
"""Columns below which labels have none of their own, and what agents think stands below each where all of it fits."""
CARD = 6
"""Rows of a card at least, where each of its lines has one."""
WHOLE = 1_000
"""Rows of a first screen that may have as many as it wants."""


class _Entry(NamedTuple):
    """A labelled text."""

    label: str
    text: str
    ink: str = ""

    def lines(self, width: int, most: int = 3) -> Iterator[Line]:
        """The text beside its label in at most so many lines, cut between words where it is longer."""
        label, first = (LABEL, "") if width >= NARROW else (0, f"{self.label.strip()}: " if self.label else "")
        lines = wrapped(first + self.text, width - label)
        if len(lines) > most:
            lines[most - 1 :] = [cut(" ".join(lines[most - 1 :]), width - label)]
        for number, line in enumerate(lines):
            yield f"{'' if number else self.label:<{label}.{label}}{line}".rstrip(), self.ink


def first_lines(document: Row, shown: Row, width: int, rows: int = WHOLE, card: int = CARD) -> Iterator[Line]:
    """The first screen about a decision of a document of `paperdesk why`, of which the card may have `card` rows; it is
    cut for `rows` rather than what followed, and the table of agents rather than the card."""
    room, width = width, min(width, WIDEST)
    owner = "" if shown["owner"] == "desk" else f", as {one_line(shown['owner'])}"
    decided = f"{shown['symbol']}  {shown['session']}  {action_words(shown)}{owner}"
    head = [(line, "strong") for line in _head(decided, shown, width)]
    limits = "; ".join(map(cut_words, shown["cuts"])) or "nothing was cut"
    entries = _Entry("Limits", limits, "warn" if shown["cuts"] else ""), *_followed(document, shown)
    followed = [*chain.from_iterable(one.lines(width) for one in entries)]
    between = max(CARD, min(card, rows - len(followed))) - len(head) - 1
    lines = [*head, *_card(shown, width, between), *followed]
    yield from lines
    agents, free = list(_agents(shown, room)), (rows if width >= NARROW else card) - len(lines) - 1
    if len(agents) > free:
        agents = agents[: max(0, free)] if width >= NARROW else []
    if len(agents) > 1:
        yield "", ""
        yield from agents


def _head(decided: str, shown: Row, width: int) -> Iterator[str]:
    """The decision, and the results after 1, 5 and 20 sessions and to date as far as they fit beside it, else below."""
    known = {one["sessions"]: one for one in shown["closes_since"]}
    texts = [f"+{sessions} {moved(known[sessions]) if sessions in known else '-'}" for sessions in HORIZONS]
    if shown["to_date"] is not None and shown["to_date"]["sessions"] not in HORIZONS:
        texts.append(f"to date {moved(shown['to_date'])}")
    if not known:
        texts = ["result not known yet"]
    beside = len(decided) + 3 + len(texts[-1]) <= width
    room = width - len(decided) - 3 if beside else width
    while len(texts) > 1 and len("  ".join(texts)) > room:
        # What is not known yet leaves first, then the horizons from the longest.
        texts.pop(next((n for n in reversed(range(len(texts))) if texts[n].endswith(" -")), -2))
    yield from (f"{decided}   {'  '.join(texts)}",) if beside else (decided, "  ".join(texts))


def _card(shown: Row, width: int, rows: int) -> Iterator[Line]:
    """The rows of a card between its head and the limits: one for each entry, the rest for those that come first."""
    sides = {label: texts for label, texts in reasons(shown).items() if texts}
    found = [(label, texts[0]) for label, texts in sides.items()]
    if len(sides) == 1:
        found += [("", text) for texts in sides.values() for text in texts[1:]]
    # Of a combined reason the first line alone is new: the owners' opinions follow. What follows the first line is
    # shorthand of indicators and memories, shown with the reason in full.
    reason = first_reason(shown, ruled=False) or "no reason was given"
    why = _Entry("No decision" if shown["abstained"] else "Why", reason)
    others = [_Entry(label, text) for label, text in found[:2]]
    dissent = _Entry("Dissent", dissent_words(shown))
    least = 1 if width >= NARROW else WHOLE
    while others and sum(len(_sentences(one, width, least)) for one in (why, *others, dissent)) > rows:
        others.pop()  # where a row holds a few words, whole reasons say more than all of them
    free = rows - 2 - len(others)
    for one in (why, *others, dissent):
        lines = _sentences(one, width, 1 + max(0, free))
        yield from lines
        free -= len(lines) - 1


def _sentences(one: _Entry, width: int, most: int) -> list[Line]:
    """The lines of an entry, as many sentences as fit into `most` of them."""
    room = width - LABEL if width >= NARROW else width
    return [*one._replace(text=sentences(one.text, room * most)).lines(width, most)]


def _agents(shown: Row, width: int) -> Iterator[Line]:
    """The agents: what each thinks, how much of what it says, and one fact, in a table or in two lines each."""
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
    if width < NARROW:
        for *about, fact in rows:
            yield "  ".join(about).removesuffix("  -  "), ""
            yield f"  {cut(fact, width - 2)}", "quiet"
        return
    lines = table(("AGENT", "VIEW", "STRENGTH", "FACT"), rows, width=width, free="FACT") if rows else ()
    yield from ((line, "quiet" if not number else "") for number, line in enumerate(lines))


def _followed(document: Row, shown: Row) -> Iterator[_Entry]:
    """The orders and closes that followed a decision, its request, and who made it."""
    for order in shown["orders"]:
        fills = [trade_words(fill) for fill in order["fills"]]
        # Of an order that did not fill the reason of its state.
        detail = order["moves"][-1]["detail"] if order["moves"] and not fills else ""
        yield _Entry("Order", "; ".join([order_words({**order, "detail": detail}), *fills]))
    if not shown["orders"]:
        yield _Entry("Order", "none", "quiet")
    for fill in shown["undecided_trades"]:
        yield _Entry("Not decided", f"{trade_words(fill)}. {one_line(fill['reason'])}", "warn")
    yield from _after(shown)
    if shown["unresolved_figures"]:
        figures = ", ".join(map(one_line, shown["unresolved_figures"]))
        yield _Entry("Figures", f"not found in the inputs: {figures}", "warn")
    if not shown["abstained"]:
        rule = f", by the rule {shown['asked']['rule']}" if shown["asked"]["rule"] else ""
        yield _Entry("Asked for", _requested(shown["asked"]) + rule)
    if document["changed"] is not None:
        yield _Entry("Settings", f"changed {one_line(changed_text(document['changed']))}", "warn")
    if document["earlier_cycles"]:
        earlier = ", ".join(f"cycle {one['cycle']} ({one['run']})" for one in document["earlier_cycles"])
        yield _Entry("Before it", one_line(earlier), "quiet")
    yield _Entry("Decided by", one_line(f"{decided_by(document)}, run {shown['run']}"), "quiet")


def _after(shown: Row) -> Iterator[_Entry]:
    """The closes after a decision, with the word whether a trade was right, and what it earned."""
    for number, later in enumerate(shown["closes_since"]):
        sessions, result = later["sessions"], later["result"]
        word = "" if not result else "right " if result > 0 else "wrong "
        words = f"{f'+{sessions}':>3} session{'s' if sessions > 1 else ' '} {later['session']}: "
        words += f"{amounts.money(later['close'])}  {word}{moved(later)}"
        if not number and shown["close"] is not None:
            # A coin's day may end after the decision: the price that it saw is another one.
            words += f", from {amounts.money(shown['close'])} at the close of {shown['session']}"
        yield _Entry("" if number else "After", words, sign_ink(result) if result else "quiet")
    if (outcome := shown["outcome"]) is not None:
        reward, so_far = (amounts.percent(outcome[name], 3) for name in ("reward", "cumulative"))
        words = (
            f"{reward} of the portfolio by the close of {outcome['session']}, {so_far} with {shown['symbol']} so far"
        )
        # Green or red for a purchase, which a reward is of; quiet for the rest.
        bought = shown["action"] == "BUY" and outcome["reward"]
        yield _Entry("Earned", words, sign_ink(outcome["reward"]) if bought else "quiet")


def _requested(requested: Row) -> str:
    """`BUY 10 % of the portfolio`, `SELL of all shares`."""
    part = {"BUY": "with all cash", "SELL": "of all shares"}[requested["action"]] if requested["whole"] else ""
    size = f"{percent(str(requested['size']))} of the portfolio" if requested["size"] else ""
    return f"{requested['action']} {', '.join(filter(None, (part, size)))}".strip()
