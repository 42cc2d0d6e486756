"""Rows of the Arena screen: agents, tape, book, and texts of chat and strategies."""

from __future__ import annotations

import re

from textual.content import Content

from engine.reports import amounts
from engine.reports.table import Column, sign_ink
from tui.text.plain_text import one_line, printable
from tui.view.arena_day import ArenaDay, Document
from tui.widgets.agent_panes import MUTED

Part = str | tuple[str, str]
AGENTS = (
    Column("#", "place", str, "muted", drop_order=5),
    Column("AGENT", "name", ink="strong", max_width=14),
    Column("WEALTH", "wealth", amounts.money),
    Column("RETURN", "growth", amounts.percent, sign_ink),
    Column("CASH", "cash", amounts.money, drop_order=2),
    Column("SHARES", lambda one: amounts.held(one.shares), ink="muted", max_width=24, drop_order=3),
    Column("KIND", "kind", ink="muted", stretch=True, min_width=8, drop_order=4),
)
LATEST = 40
"""Messages, or decisions, that are shown: laying out a year of them takes seconds."""
_PLAYED = re.compile(r"-(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})\d{2}-")
"""The time in the id of an arena."""


def _played(name: str) -> str:
    found = _PLAYED.search(name)
    return "{}-{}-{} {}:{}".format(*found.groups()) if found else "-"


ARENAS = (
    Column("ARENA", str, max_width=40),
    Column("PLAYED, UTC", _played, str, "muted", stretch=True, min_width=16, drop_order=1),
)


def chat(day: ArenaDay) -> Content:
    """The latest messages; those that are invented are marked, which the agents never see."""
    parts, messages = list[Part](), day.messages()
    for one in messages[:LATEST]:
        truth = {True: "", False: "  invented", None: "  not judged"}[one["truth"]]
        parts += [(f"day {one['day']}  {one['agent']}{truth}  ", MUTED), f"{printable(one['text']).strip()}\n"]
    parts += _earlier(day, len(messages))
    return Content.assemble(*parts) if parts else Content.styled("Nobody has said anything: rules do not chat.", MUTED)


def strategies(day: ArenaDay, agent: str) -> Content:
    """The strategies of an agent so far, each with its score and what it was written from; of a preset or a strategy
    of backtests its decisions."""
    parts: list[Part] = [(f"{agent}\n\n", "bold")]
    for one in day.strategies(agent):
        score = "not used yet" if one["score"] is None else f"score {one['score']:+.2f} %"
        parent = "" if one["parent"] is None else f", written from that of day {one['parent']}"
        parts += [(f"day {one['day']}  {score}{parent}\n", MUTED), f"{printable(one['text']).strip()}\n\n"]
    decisions = day.decisions(agent)
    for one in decisions[:LATEST]:
        parts += _decision(one)
    parts += _earlier(day, len(decisions))
    if len(parts) == 1:
        parts.append((f"{agent} is a rule: it has neither strategies nor reasons.", MUTED))
    return Content.assemble(*parts)


def reasons(day: ArenaDay, agent: str) -> Content:
    """The reasons of an agent on the day: its decisions with the answers that they rest on, whole; of one that has
    strategies the one that it followed. Around them where it is, its trades of the day and its open orders."""
    parts = [*_position(day, agent), ("Reasons\n", MUTED)]
    decided = [one for one in day.decisions(agent) if one["day"] == day.number]
    followed = day.strategies(agent)[:1]
    for one in decided:
        parts += _decision(one, whole=True)
    for one in followed:
        parts += [(f"It followed the strategy of day {one['day']}\n", MUTED), f"{printable(one['text']).strip()}\n\n"]
    if not (decided or followed):
        rule = not (day.decisions(agent) or day.strategies(agent))
        parts.append("none: it is a rule\n\n" if rule and day.number else "none: it decided nothing on this day\n\n")
    traded, placed = list[Part](), list[Part]()
    for one in day.trades():
        if agent in (one["buyer"], one["seller"]):
            side, other = ("bought", one["seller"]) if agent == one["buyer"] else ("sold", one["buyer"])
            traded.append(f"{side} {one['quantity']:,} {one['stock']} at {one['price']}, {other} on the other side\n")
    for one in day.book():
        if one["agent"] == agent:
            placed.append(f"{one['side']} {one['quantity']:,} {one['stock']} at {one['price']}\n")
    return Content.assemble(
        *parts,
        ("Trades of the day so far\n" if day.round is not None else "Trades of the day\n", MUTED),
        *(traded or ["none\n"]),
        (f"\nOpen orders at the close of day {day.closed}\n", MUTED),
        *(placed or ["none\n"]),
    )


def _position(day: ArenaDay, agent: str) -> list[Part]:
    """Rank, wealth, cash and shares of an agent."""
    one = next(one for one in day.agents() if one.name == agent)
    held = amounts.held(one.shares) or "no shares"
    grown = f"{amounts.percent(one.growth)} since the beginning"
    return [
        (f"{agent}", "bold"),
        f"  {one_line(one.kind)}, {one.place} of {len(day.document['agents'])}\n",
        f"wealth {amounts.money(one.wealth)}, {grown}\ncash {amounts.money(one.cash)}, {held}\n\n",
    ]


def _earlier(day: ArenaDay, count: int) -> list[Part]:
    """A line on those that are not shown, where there are any."""
    left = count - LATEST
    return [(f"{left} earlier: paperdesk report --run {day.document['run']}\n", MUTED)] if left > 0 else []


def _decision(one: Document, *, whole: bool = False) -> list[Part]:
    """A decision with what cut it, and the answers that it rests on, each in a line or `whole`."""
    owner = f"  {one['owner']}" if one["owner"] else ""
    traded = f"  {one['shares']:+,d} shares" if one["shares"] else ""
    parts: list[Part] = [
        (f"day {one['day']}  {one['stock']}{owner}  ", MUTED),
        (one["action"], "bold"),
        (f"  {one['size']} %{traded}\n", MUTED),
        f"{printable(one['reason']).strip()}\n",
    ]
    if one["cut"]:
        parts.append((f"cut: {printable(one['cut'])}\n", MUTED))
    for answer in one["answers"]:
        text = printable(answer["text"]).strip() if whole else one_line(answer["text"])
        parts += [(f"  {answer['step']}: ", MUTED), (f"{text}\n", MUTED)]
    return [*parts, "\n"]
