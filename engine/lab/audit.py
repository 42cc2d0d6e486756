"""The look-ahead certificate: decisions from cut data equal those from the whole, and planted futures stay unseen.

The run under audit is a `Subject`: agents on the cycle, or a strategy. Each cut goes on from the state at the cut
before, on data that ends at its own decision, so all cuts together cost about as much as one more run.

A rule strategy under audit: its signals or weights, and what it trades on them, from data that is cut.

Texts that quote a later close or name a later day: an amount with decimals that is a close of the sessions after its
stamp, as a file writes it or to the cent, and a date after it.

No cut shows such a text, since its stamp is wrong. An amount may be chance and a day an appointment, so they are listed
and condemn nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Protocol

from engine.domain.market import Filing, NewsItem, PriceHistory, Symbol, from_nano
from engine.domain.order import Fill
from engine.domain.run import ExecutionRules, FillAt, RunPart, RunSpec
from engine.errors import PaperdeskError
from engine.lab.certificate import Certificate, Copies, Planted, Training
from engine.lab.rule_backtest import Played, Prices, RuleRun, through
from engine.lab.watched_market import HOLDINGS, MEMORY, SOURCES, Inputs, WatchedMarket, planted, shown
from engine.lab.window import coverage, decided_sessions
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from engine.simulation.price_basis import on_first_basis
from engine.strategies.catalog import signals_of
from engine.strategies.strategy import Fitted, SignalStrategy, WeightStrategy

MOST_FINDINGS = 12
"""Findings that are described; the rest is counted."""

READ = ("bars", "news", "filings", "macro", "commentary")
"""Sources of a run, counted in the certificate; splits come with the bars."""

Trace = Mapping[tuple[date, Symbol, str], Any]
"""Decisions by session, symbol and owner (of a strategy: the kind of decision), with all that led to them and followed,
comparable."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of a run on some market. `where` is the state at its end, `marked` the sources whose marker was seen."""

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
    """The calendar that decisions follow."""

    decided: Sequence[date]
    """The sessions that decisions read, in order."""

    beside: tuple[str, ...]
    """Sources beside the market: experts' notes, a memory."""

    as_traded: bool
    """True where its legs are played at prices as they are on file; otherwise these are adjusted by what came later."""

    test: RunPart | None
    """The test of the whole run, once it was played."""

    hindsight: int
    """Memories of the whole run that were written in its warm-up with sight of the moves that followed."""

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The whole run on the whole data, and what it read."""

    async def training(self, seed: int) -> Training | None:
        """Sessions of the warm-up, chosen by a seed, played again with another future; None without a warm-up. The
        whole run comes before."""

    async def leg(self, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg:
        """The run from the state `start` (None: the beginning) through the decision that reads a session, on other
        data. Sources of `beside` that are in `plant` hold records of the time after; the others are cut there."""


class CutLegs(Protocol):
    """Legs of the same run on copies of the data folder that are cut at each decision, the original out of sight."""

    hidden: bool | None
    """True where nothing there can open the original, False where only Python cannot; None before the first leg."""

    async def leg(self, read: date, now: datetime) -> Trace | str:
        """The trace of the next leg, to the decision that reads a session and is taken at `now`; or what went wrong."""


def choose_cuts(decided: Sequence[date], count: int | None, market: Market, seed: int = 0) -> tuple[date, ...]:
    """So many sessions of those decided on, the first, the last, and others by chance; None: all of them.

    A session in which a symbol trades for the last time is passed over: that it was the last is known only later,
    and the books say so on that day.
    """
    final = {history.session(-1) for history in market.histories.values() if len(history)}
    rows = [row for row in range(len(decided)) if not _touches(decided, row, final)] or [len(decided) - 1]
    if count is None or count >= len(rows):
        return tuple(decided[row] for row in rows)
    if count == 1:
        return (decided[rows[-1]],)
    between = Random(seed).sample(rows[1:-1], count - 2)
    return tuple(decided[row] for row in sorted((rows[0], *between, rows[-1])))


def _touches(decided: Sequence[date], row: int, final: set[date]) -> bool:
    following = decided[row + 1] if row + 1 < len(decided) else None
    return decided[row] in final or following in final


def venue(market: Market, through: date, now: datetime, fill_at: FillAt) -> dict[Symbol, PriceHistory]:
    """Prices that a broker can trade at through a session when the future after `now` is unknown. Where fills come at
    the open, a bar that is not complete by then has only its open, in place of the rest of it."""
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
"""A listener for the number of steps done, and of all steps."""


async def audit(
    subject: Subject,
    count: int | None,
    on_step: OnStep = lambda done, steps: None,
    seed: int = 0,
    copies: CutLegs | None = None,
) -> Certificate:
    """Run the truncation test at `count` cuts (None: at every session), chosen by a seed, on loaded data and on
    `copies` of the data folder, and plant futures after each of them.

    Raises what the whole run raises; what goes wrong on changed data alone is a finding.
    """
    cuts = choose_cuts(subject.decided, count, subject.market, seed)
    whole, read_inputs = await subject.whole()
    funds = (HOLDINGS,) if subject.market.holdings else ()
    sources = (*READ, *funds, MEMORY) if MEMORY in subject.beside else (*READ, *funds)
    inputs = {source: read_inputs.get(source, Inputs()) for source in sources}
    findings = _Findings()
    on_step(1, len(cuts) + 1)
    access_differing = sum(_access_differs(subject, session, findings) for session in subject.decided)
    training = await subject.training(seed)
    for text in () if training is None else training.unmarked:
        findings.add(text)
    start: Any = None
    loaded, copied = _Comparison(whole, "data cut"), _Comparison(whole, "a copy of the folder cut")
    for number, session in enumerate(cuts, 1):
        on_step(number, len(cuts) + 1)
        cut = _Cut(subject, session, decision_time(subject.calendar, session), start, number % 2 == 1)
        beside = None if copies is None else asyncio.ensure_future(copies.leg(session, cut.now))
        await asyncio.sleep(0)  # the leg on a copy runs in a process of its own meanwhile
        leg = await cut.leg(subject.market.cut(cut.now))
        loaded.take(session, leg if isinstance(leg, str) else leg.trace, findings)
        if not isinstance(leg, str):
            await _plant(cut, leg, findings)
            start = leg.where
        if beside is not None:
            copied.take(session, await beside, findings)
    on_step(len(cuts) + 1, len(cuts) + 1)
    for source, read in inputs.items():
        if read.from_the_future:
            findings.add(f"{source}: read at {read.decision}, available from {read.latest}")
    if (read_in_test := _read_in_test(subject, inputs)) is not None:
        findings.surface(HOLDINGS, f"in the test: a decision at {read_in_test} read holdings of a reference fund")
    return Certificate(
        subject=subject.name,
        first=subject.decided[0],
        last=subject.decided[-1],
        inputs=inputs,
        cuts=len(cuts),
        compared=loaded.compared,
        differing=len(loaded.differing),
        access_sessions=len(subject.decided),
        access_differing=access_differing,
        planted=tuple(Planted(s, s in findings.surfaced, findings.surfaced.get(s, "")) for s in _planted_into(subject)),
        findings=tuple(findings.described),
        hindsight=subject.hindsight if MEMORY in subject.beside else None,
        training=training,
        copies=None if copies is None else Copies(copied.compared, len(copied.differing), bool(copies.hidden)),
    )


def failure(error: Exception) -> str:
    """The end of a leg by an error, in words."""
    return f"the run ended with {type(error).__name__}: {error}"


@dataclass(slots=True)
class _Comparison:
    """The decisions of legs on one kind of data beside those of the whole run."""

    whole: Trace
    data: str
    differing: set[tuple[date, Symbol, str]] = field(default_factory=set)
    compared: int = 0

    def take(self, session: date, trace: Trace | str, findings: _Findings) -> None:
        """Compare the trace of the leg to a session, or note what went wrong."""
        if isinstance(trace, str):
            self.differing.add((session, "", ""))
            findings.add(f"{session}: on {self.data} there, {trace}")
            return
        apart = _apart(self.whole, trace)
        for day, symbol, kind in apart[:1]:
            findings.add(f"{day} {symbol} ({kind}): decided otherwise on {self.data} at {session}")
        self.differing.update(apart)
        self.compared += len(trace)


def _planted_into(subject: Subject) -> tuple[str, ...]:
    return (*SOURCES, *((HOLDINGS,) if subject.market.holdings else ()), *subject.beside)


def _read_in_test(subject: Subject, inputs: Mapping[str, Inputs]) -> datetime | None:
    """The moment (UTC) of a decision of the test that read a fund's holdings, which guide training alone; None where
    there is none. Source: TradingGPT §4.2 [G8]."""
    last = inputs[HOLDINGS].last_decision if HOLDINGS in inputs else None
    return last if last is not None and last >= decision_time(subject.calendar, subject.decided[0]) else None


@dataclass(slots=True)
class _Findings:
    described: list[str] = field(default_factory=list)
    surfaced: dict[str, str] = field(default_factory=dict)

    def add(self, text: str) -> None:
        if len(self.described) < MOST_FINDINGS:
            self.described.append(text)

    def surface(self, source: str, where: str) -> None:
        if source not in self.surfaced:
            self.surfaced[source] = where
            self.add(f"{source}: the planted future surfaced {where}")


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cut after the decision that reads `session`, taken at `now` (UTC); legs to it begin at the state `start`. The
    planted bars are at an `absurd` level, or else around the real one."""

    subject: Subject
    session: date
    now: datetime
    start: Any
    absurd: bool

    def planted(self, sources: Sequence[str]) -> Market:
        """The whole market with the future planted into some sources."""
        return planted(self.subject.market, sources, self.now, absurd=self.absurd)

    async def leg(self, market: Market, plant: Sequence[str] = ()) -> Leg | str:
        """The leg on some data, or what went wrong on it."""
        try:
            return await self.subject.leg(market, self.session, self.start, plant)
        except (LookupError, PaperdeskError) as error:
            return failure(error)

    async def noticed(self, sources: Sequence[str], clean: Leg) -> str:
        """The first place in which planted records made a difference; empty where they made none."""
        beside = [source for source in sources if source in self.subject.beside]
        leg = await self.leg(self.planted(sources), beside)
        if isinstance(leg, str):
            return f"on {self.session}: {leg}"
        if leg.marked & set(sources):
            return f"in what the agents read or said by {self.session}"
        apart = _apart(clean.trace, leg.trace)
        return f"in the decision of {apart[0][0]} on {apart[0][1]}" if apart else ""


def _access_differs(subject: Subject, session: date, findings: _Findings) -> bool:
    """True where the data access shows more of the whole data than of what is left without the future."""
    now = decision_time(subject.calendar, session)
    whole, cut = shown(subject.market, now), shown(subject.market.cut(now), now)
    apart = [key for key in whole if whole[key] != cut[key]]
    for source, symbol in apart[:1]:
        findings.add(f"{session} {symbol}: the data access shows {source} that a cut at the decision removes")
    return bool(apart)


async def _plant(cut: _Cut, clean: Leg, findings: _Findings) -> None:
    """Plant every source that has not surfaced yet; where something is noticed, each by itself."""
    market, now = cut.subject.market, cut.now
    remaining = [source for source in _planted_into(cut.subject) if source not in findings.surfaced]
    # Beside the whole data: a source is to blame for what its planted record changes, not for the real future.
    unplanted = shown(market, now)
    for source in remaining:
        future = shown(cut.planted([source]), now)
        for read, symbol in (key for key in unplanted if unplanted[key] != future[key]):
            findings.surface(source, f"in what the data access shows of {read} for {symbol} on {cut.session}")
    remaining = [source for source in remaining if source not in findings.surfaced]
    if not remaining or not await cut.noticed(remaining, clean):
        return
    whole = await cut.leg(market)
    for source in remaining:
        where = "" if isinstance(whole, str) else await cut.noticed([source], whole)
        if where:
            findings.surface(source, where)


def _apart(expected: Trace, found: Trace) -> list[tuple[date, Symbol, str]]:
    return sorted(key for key, value in found.items() if key not in expected or expected[key] != value)


class RuleSubject:
    """A strategy over its test. Every leg begins at the beginning: with the fit, or with the warm-up of a strategy that
    keeps state. Raises what `run_strategy` raises."""

    beside: tuple[str, ...] = ()
    as_traded = True
    hindsight = 0

    def __init__(self, spec: RunSpec, market: Market, rules: ExecutionRules, cash: Decimal) -> None:
        run = RuleRun.of(spec, market, rules, cash)
        learns = isinstance(run.strategy(), WeightStrategy | Fitted)
        # A rule learns nothing from its warm-up, and what it trades there is not compared.
        self._run = run if learns else replace(run, spec=replace(spec, warm_up_from=None))
        self.name = spec.strategy or ""
        self.market = market
        self.calendar = run.calendar
        self._same_close = rules.fill_at is FillAt.SAME_CLOSE
        self.decided = decided_sessions(self.calendar, run.sessions, rules)
        self.test: RunPart | None = None

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The run as a backtest makes it, and what its strategy read."""
        run, strategy = self._run, self._run.strategy()
        coverage(run.spec, self.market)
        watched = WatchedMarket.of(through(run.spec, self.market))
        played = run.play(strategy, watched, run.prices(watched), run.sessions)
        self.test = played.test
        trace = _trace(played, run.sessions, run.spec.symbols)
        if not isinstance(strategy, WeightStrategy):
            trace |= self._signals(strategy, self.market, self.decided)
            watched.read["bars"] = self._inputs()
        return trace, watched.read

    async def training(self, seed: int) -> None:
        """None: rules write no texts."""

    async def leg(self, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg:
        """The signal or the weights at a session, and the trades through the session that they fill in."""
        strategy = self._run.strategy()
        following = self.calendar.sessions(read + timedelta(days=1), self._run.sessions[-1])[:1]
        filled = read if self._same_close or not following else following[0]
        sessions = [session for session in self._run.sessions if session <= filled]
        played = self._run.play(strategy, market, self._prices(read, filled), sessions)
        trace = _trace(played, sessions, self._run.spec.symbols)
        if not isinstance(strategy, WeightStrategy):
            trace |= self._signals(strategy, market, [read])
        return Leg(trace, None)

    def _prices(self, read: date, filled: date) -> Prices:
        """The prices that the market really had through the session of the last fill, as far as they were known once
        the last decision was taken."""
        real = self._run.prices(through(self._run.spec, self.market))
        traded = replace(self.market, histories=real.histories)
        actions = self.market.cut(decision_time(self.calendar, filled)).actions
        return Prices(
            histories=venue(traded, filled, decision_time(self.calendar, read), self._run.rules.fill_at),
            actions=None if real.actions is None else actions,
            last=filled,
        )

    def _signals(
        self, rule: SignalStrategy, market: Market, decided: Sequence[date]
    ) -> dict[tuple[date, Symbol, str], Any]:
        """The signal at each of some decisions, None where there is no bar yet."""
        found: dict[tuple[date, Symbol, str], Any] = {}
        for symbol in self._run.spec.symbols:
            history = on_first_basis(market.histories[symbol], market.actions[symbol])
            signals = signals_of(rule, history)
            for session in decided:
                row = self._last_row(market, history, session)
                found[session, symbol, "signal"] = int(signals[row]) if row >= 0 else None
        return found

    def _last_row(self, market: Market, history: PriceHistory, session: date) -> int:
        """The row that a decision reads last, -1 where there is none yet."""
        now = decision_time(self.calendar, session)
        return history.rows_through(market.calendars[history.symbol].last_closed(now)) - 1

    def _inputs(self) -> Inputs:
        """The bars that a rule read: all of them up to each decision."""
        inputs = Inputs()
        for symbol in self._run.spec.symbols:
            history, calendar, row = self.market.histories[symbol], self.market.calendars[symbol], -1
            for session in self.decided:
                row = self._last_row(self.market, history, session)
                if row >= 0:
                    closed = calendar.closes_at(history.session(row))
                    inputs.add([(symbol, history.sessions[row])], closed, decision_time(self.calendar, session))
            inputs.items.update((symbol, day) for day in history.sessions[: max(row, 0)])
        return inputs


def _trace(played: Played, sessions: Sequence[date], symbols: Sequence[Symbol]) -> dict[tuple[date, Symbol, str], Any]:
    """The trades of every session and symbol, and the weights of a strategy that answers them."""
    trace: dict[tuple[date, Symbol, str], Any] = {(d, s, "trade"): () for d in sessions for s in symbols}
    fill: Fill
    for fill in played.test.fills:
        trace[fill.session, fill.symbol, "trade"] += (fill,)
    return trace | {(*decided, "weight"): weight for decided, weight in played.answers.items()}


AHEAD, BEHIND = 60, 250
"""Sessions after a text whose closes it cannot know, and before it whose closes it may well tell."""

_AMOUNT = re.compile(r"(?<![\d.,])\d[\d,]*\.\d{2,9}(?!\d|\s?%|\.\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>(?:19|20)\d\d)[-/](?P<number>\d\d)[-/](?P<day>\d\d)(?!\d)",
        rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>(?:19|20)\d\d)\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? {_MONTH},? (?P<year>(?:19|20)\d\d)\b",
    )
)
"""Dates that can be read in one way alone: year first, or with the month's name."""


def leaked_prices(market: Market, first: date, last: date) -> Iterator[str]:
    """The texts of a window that quote a close of the sessions after them, or name a later day up to its end, each in
    words."""
    for symbol in market.histories:
        items: list[NewsItem | Filing] = [*market.news.get(symbol, ()), *market.filings.get(symbol, ())]
        for item in items:
            if first <= item.available_at.date() <= last:
                source = "news" if isinstance(item, NewsItem) else "filing"
                told = f"{source} of {symbol}, {item.available_at:%Y-%m-%d}"
                headline = item.headline or "" if isinstance(item, NewsItem) else ""
                text = f"{headline} {item.summary}"
                yield from (f"{told}: {what}" for what in _told(market, symbol, item, text))
                later = sorted({day for day in _days(text) if item.available_at.date() < day <= last})
                yield from (f"{told}: names {day}" for day in later[:1])


def _told(market: Market, symbol: Symbol, item: NewsItem | Filing, text: str) -> Iterator[str]:
    """The first later close that a text quotes."""
    amounts = {found.replace(",", "") for found in _AMOUNT.findall(text)}
    history = market.histories[symbol]
    known = history.rows_through(market.calendars[symbol].last_closed(item.available_at))
    decimals = {len(amount.partition(".")[2]) for amount in amounts}
    unknown = amounts.difference(
        *(_written(close, decimals) for close in history.close[max(0, known - BEHIND) : known])
    )
    for row, close in enumerate(history.close[known : known + AHEAD], known):
        for amount in sorted(unknown.intersection(_written(close, decimals)))[:1]:
            yield f"tells {amount}, the close of {history.session(row)}"
            return


def _written(close: int, decimals: Iterable[int]) -> set[str]:
    """A close as texts write it, with these numbers of decimals."""
    return {f"{from_nano(close):.{count}f}" for count in decimals}


def _days(text: str) -> Iterator[date]:
    for pattern in _DATES:
        for found in pattern.finditer(text):
            part = found.groupdict()
            month = int(part["number"]) if "number" in part else _MONTHS.index(part["month"].lower()) + 1
            with suppress(ValueError):  # the 31st of February
                yield date(int(part["year"]), month, int(part["day"]))
