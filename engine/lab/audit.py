"""The look-ahead certificate: decisions from cut data equal those from the whole, and planted futures stay unseen.

What is audited is a `Subject`: agents on the cycle, or a rule strategy. Each cut goes on from where the cut before
stood, on data that ends at its own decision, so all cuts together cost about as much as one more run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Protocol

from engine.domain.execution import FillAt
from engine.domain.market import PriceHistory, Symbol
from engine.errors import PaperdeskError
from engine.lab.planting import MEMORY, SOURCES, planted
from engine.lab.watched_market import Inputs, shown
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar

MOST_FINDINGS = 12
"""Findings that are kept in words; the rest is counted."""

READ = ("bars", "news", "filings", "macro")
"""What a run may read, counted in the certificate; splits come with the bars."""

Trace = Mapping[tuple[date, Symbol, str], Any]
"""What was decided, by session, symbol and owner (of a rule: the kind of decision): all that led to it and came of
it, comparable."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of a run on some market. `where` is where it ended; `marked` names the sources whose marker was seen."""

    trace: Trace
    where: Any
    marked: frozenset[str] = frozenset()


class Subject(Protocol):
    """A run that can be played whole, and in legs on changed data."""

    name: str
    """The preset or strategy."""

    market: Market
    """The whole data, on the price basis of the run."""

    calendar: Calendar
    """What the run decides on."""

    decided: Sequence[date]
    """The sessions that decisions read, in order."""

    beside: tuple[str, ...]
    """What the run reads beside its market: experts' notes, a memory."""

    hindsight: int
    """How many memories of the whole run were written in its warm-up by what had seen the moves that followed."""

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The whole run on the whole data, and what it read."""
        ...

    async def leg(self, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg:
        """The run from where a leg ended (None: the beginning) through the decision that reads a session, on other
        data; what of `beside` is in `plant` holds records of the time after, of the rest they are cut off."""
        ...


@dataclass(frozen=True, slots=True)
class Planted:
    """Whether a source's planted future surfaced, and where first."""

    source: str
    surfaced: bool
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What an audit found. `compared` decisions were taken again on cut data and `differing` of them came out
    differently; the door was asked in `door_sessions` and in `door_differing` showed something that a cut removes.
    `hindsight` counts the memories of the warm-up that rest on what followed, which is allowed: each is recalled only
    once that is known. None without a memory."""

    subject: str
    first: date
    last: date
    inputs: Mapping[str, Inputs]
    cuts: int
    compared: int
    differing: int
    door_sessions: int
    door_differing: int
    planted: tuple[Planted, ...]
    findings: tuple[str, ...] = ()
    hindsight: int | None = None

    @property
    def verdict(self) -> Literal["clean", "leak"]:
        """Whether any of it saw the future."""
        leaks = self.differing or self.door_differing or any(p.surfaced for p in self.planted)
        return "leak" if leaks or any(i.from_the_future for i in self.inputs.values()) else "clean"


def choose_cuts(decided: Sequence[date], count: int | None, market: Market) -> tuple[date, ...]:
    """So many sessions spread evenly over those decided on, first and last included; None: all of them.

    A session in which a symbol trades for the last time is passed over: that it was the last is known only later,
    and the books say so on that day.
    """
    final = {history.session(-1) for history in market.histories.values() if len(history)}
    rows = [row for row in range(len(decided)) if not _touches(decided, row, final)] or [len(decided) - 1]
    if count is None or count >= len(rows):
        return tuple(decided[row] for row in rows)
    if count == 1:
        return (decided[rows[-1]],)
    picked = sorted({round(n * (len(rows) - 1) / (count - 1)) for n in range(count)})
    return tuple(decided[rows[place]] for place in picked)


def _touches(decided: Sequence[date], row: int, final: set[date]) -> bool:
    following = decided[row + 1] if row + 1 < len(decided) else None
    return decided[row] in final or following in final


def venue(market: Market, through: date, now: datetime, fill_at: FillAt) -> dict[Symbol, PriceHistory]:
    """What a broker can trade at through a session when the future after `now` is unknown. Where fills come at the
    open, a bar that is not complete by then has only its open, which stands for the rest of it."""
    histories = {}
    for symbol, history in market.histories.items():
        rows = history.rows_through(through)
        if fill_at is not FillAt.NEXT_OPEN:
            histories[symbol] = history.slice(0, rows)
            continue
        complete = min(rows, history.rows_through(market.calendars[symbol].last_closed(now)))
        opens = history.open[complete:rows]
        histories[symbol] = PriceHistory(
            symbol=symbol,
            sessions=history.sessions[:rows],
            open=history.open[:rows],
            high=history.high[:complete] + opens,
            low=history.low[:complete] + opens,
            close=history.close[:complete] + opens,
            adj_close=history.adj_close[:complete] + opens,
            volume=history.volume[:rows],
        )
    return histories


OnStep = Callable[[int, int], None]
"""Hears how many steps are done, of how many."""


async def audit(subject: Subject, count: int | None, on_step: OnStep = lambda done, steps: None) -> Certificate:
    """Runs the truncation test at `count` cuts (None: at every session) and plants futures after each of them.

    Raises what the whole run raises; what goes wrong on changed data alone is a finding.
    """
    cuts = choose_cuts(subject.decided, count, subject.market)
    whole, read_inputs = await subject.whole()
    sources = (*READ, MEMORY) if MEMORY in subject.beside else READ
    inputs = {source: read_inputs.get(source, Inputs()) for source in sources}
    found = _Findings()
    on_step(1, len(cuts) + 1)
    door_differing = sum(_door_differs(subject, session, found) for session in subject.decided)
    start: Any = None
    differing: set[tuple[date, Symbol, str]] = set()
    compared = 0
    for number, cut in enumerate(cuts, 1):
        on_step(number, len(cuts) + 1)
        now = decision_time(subject.calendar, cut)
        leg = await _leg(subject, subject.market.cut(now), cut, start)
        if isinstance(leg, str):
            differing.add((cut, "", ""))
            found.say(f"{cut}: on data cut there, {leg}")
            continue
        apart = _apart(whole, leg.trace)
        for session, symbol, kind in apart[:1]:
            found.say(f"{session} {symbol} ({kind}): decided otherwise on data cut at {cut}")
        differing.update(apart)
        compared += len(leg.trace)
        await _plant(subject, cut, now, start, leg, found)
        start = leg.where
    on_step(len(cuts) + 1, len(cuts) + 1)
    for source, read in inputs.items():
        if read.from_the_future:
            found.say(f"{source}: read at {read.decision}, available from {read.latest}")
    return Certificate(
        subject=subject.name,
        first=subject.decided[0],
        last=subject.decided[-1],
        inputs=inputs,
        cuts=len(cuts),
        compared=compared,
        differing=len(differing),
        door_sessions=len(subject.decided),
        door_differing=door_differing,
        planted=tuple(Planted(s, s in found.surfaced, found.surfaced.get(s, "")) for s in _planted_into(subject)),
        findings=tuple(found.said),
        hindsight=subject.hindsight if MEMORY in subject.beside else None,
    )


def _planted_into(subject: Subject) -> tuple[str, ...]:
    return (*SOURCES, *subject.beside)


@dataclass(slots=True)
class _Findings:
    said: list[str] = field(default_factory=list)
    surfaced: dict[str, str] = field(default_factory=dict)

    def say(self, text: str) -> None:
        if len(self.said) < MOST_FINDINGS:
            self.said.append(text)

    def surface(self, source: str, where: str) -> None:
        if source not in self.surfaced:
            self.surfaced[source] = where
            self.say(f"{source}: the planted future surfaced {where}")


def _door_differs(subject: Subject, session: date, found: _Findings) -> bool:
    """Whether the door shows more of the whole data than of what is left when the future is removed."""
    now = decision_time(subject.calendar, session)
    whole, cut = shown(subject.market, now), shown(subject.market.cut(now), now)
    apart = [key for key in whole if whole[key] != cut[key]]
    for source, symbol in apart[:1]:
        found.say(f"{session} {symbol}: the door shows {source} that a cut at the decision removes")
    return bool(apart)


async def _plant(subject: Subject, cut: date, now: datetime, start: Any, clean: Leg, found: _Findings) -> None:
    """Plants every source that has not surfaced yet; where something is noticed, each by itself."""
    remaining = [source for source in _planted_into(subject) if source not in found.surfaced]
    # Beside the whole data: a source is to blame for what its planted record changes, not for the real future.
    unplanted = shown(subject.market, now)
    for source in remaining:
        future = shown(planted(subject.market, [source], now), now)
        for asked, symbol in (key for key in unplanted if unplanted[key] != future[key]):
            found.surface(source, f"in what the door shows of {asked} for {symbol} on {cut}")
    remaining = [source for source in remaining if source not in found.surfaced]
    if not remaining or not await _noticed(subject, remaining, cut, now, start, clean):
        return
    whole = await _leg(subject, subject.market, cut, start)
    for source in remaining:
        where = "" if isinstance(whole, str) else await _noticed(subject, [source], cut, now, start, whole)
        if where:
            found.surface(source, where)


async def _noticed(subject: Subject, sources: Sequence[str], cut: date, now: datetime, start: Any, clean: Leg) -> str:
    """Where planted records made a difference; empty where they made none."""
    beside = [source for source in sources if source in subject.beside]
    leg = await _leg(subject, planted(subject.market, sources, now), cut, start, beside)
    if isinstance(leg, str):
        return f"on {cut}: {leg}"
    if leg.marked & set(sources):
        return f"in what the agents read or said by {cut}"
    apart = _apart(clean.trace, leg.trace)
    return f"in the decision of {apart[0][0]} on {apart[0][1]}" if apart else ""


async def _leg(subject: Subject, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg | str:
    """The leg, or what went wrong on its data."""
    try:
        return await subject.leg(market, read, start, plant)
    except (LookupError, PaperdeskError) as error:
        return f"the run ended with {type(error).__name__}: {error}"


def _apart(expected: Trace, found: Trace) -> list[tuple[date, Symbol, str]]:
    return sorted(key for key, value in found.items() if key not in expected or expected[key] != value)
