"""Prices of one listing, session by session, with the events on the way, and the market's own moves.

Whole numbers only: a session's figures depend on the seed, the session and those before it, never on later ones or on
the machine. Prices are in nano-units, moves in parts per million.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from threading import Lock
from typing import Any

from connectors.demo.listings import Company, Listing
from connectors.demo.quarters import IN_LINE, Business, Quarter
from connectors.demo.seeded_random import bell, shorts, stream
from engine.domain.market import PRICES, UNKNOWN, ActionKind, CorporateAction, PriceHistory, Symbol

DRIFTS = 6
"""Number of sessions for which the price continues in the direction of real news."""

COMPANY_NEWS = ("contract", "product", "analyst", "legal", "supply", "guidance", "management", "capital")
CRYPTO_NEWS = ("adoption", "network", "regulation", "holders")
EARNINGS, DIVIDEND, SPLIT = "earnings", "dividend", "split"

_CENT = 10_000_000  # in nano-units
_MILLION = 1_000_000
_MEAN_LENGTH = 60  # sessions, on average
_REVERSE_BELOW = 500  # cents below which shares are merged
_REVERSE_PER = 8
_NOTICE = 26  # days from the announcement of a dividend or split until it counts


@dataclass(frozen=True, slots=True)
class Regime:
    """A market regime that lasts for months.

    `drift` of a day in parts per million, `volatility` in parts per million (of the market) or per thousand of the
    usual (of a company), `weight` its share of new regimes out of 256.
    """

    name: str
    drift: int
    volatility: int
    weight: int


@dataclass(frozen=True, slots=True)
class FactorMove:
    """One session's move of the market in parts per million: before the open, and from open to close."""

    overnight: int
    intraday: int


_MARKET_REGIMES = (
    Regime("bull", 850, 6800, 98),
    Regime("calm", 340, 4300, 86),
    Regime("bear", -1050, 11500, 42),
    Regime("volatile", -150, 16000, 30),
)
_MARKET_LENGTH = 75  # sessions of a regime, on average
_REGIMES = (
    Regime("bull", 700, 900, 76),
    Regime("calm", 250, 700, 84),
    Regime("bear", -550, 1150, 58),
    Regime("volatile", 50, 1600, 38),
)
_NO_MOVE = FactorMove(0, 0)
Moves = Callable[[], Sequence[FactorMove]]
"""Asked for only where something is drawn."""


class Slot(IntEnum):
    """Time of a session's day at which something becomes known."""

    BEFORE_OPEN = 0
    IN_SESSION = 1
    AFTER_CLOSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that becomes known on a session.

    row, session: when.
    slot: time of day.
    kind: a section of news.toml.
    direction: 1 (good), -1 (bad) or 0.
    jump: the immediate move, in parts per million.
    drift: the move of each of the DRIFTS sessions after the first in which a reader could act, in parts per million.
    quarter: the results, if it reports any.
    amount, per: a dividend in cents; of a split the new shares for `per` old ones; with results the present shares for
        `per` shares of the beginning.
    effective: day from which a dividend or split is taken off the price; without a session, the next one.
    price: the last close before it, in cents.
    """

    row: int
    session: date
    slot: Slot
    kind: str
    direction: int
    jump: int
    drift: int
    quarter: Quarter | None = None
    amount: int = 0
    per: int = 1
    effective: date | None = None
    price: int = 0


@dataclass(frozen=True, slots=True)
class PricePath:
    """Prices, corporate actions, events and reports of a listing."""

    history: PriceHistory
    actions: tuple[CorporateAction, ...]
    events: tuple[Event, ...]
    reports: tuple[tuple[date, Quarter], ...]
    """Quarters by the session on which they were filed."""


def factor_moves(seed: int, sessions: Sequence[int]) -> list[FactorMove]:
    """The market's moves over sessions given as ordinals, the first of them the epoch."""
    name = stream(seed, "tide")  # the name of the draws: every seed's market depends on it
    regime = _MARKET_REGIMES[1]
    moves: list[FactorMove] = []
    for session in sessions:
        draw = shorts(name, session)
        regime = _next_regime(_MARKET_REGIMES, regime, draw[8], draw[9], _MARKET_LENGTH)
        overnight = regime.volatility * bell(*draw[0:4]) // 2000
        intraday = regime.drift + regime.volatility * bell(*draw[4:8]) // 1150
        moves.append(FactorMove(overnight, intraday))
    return moves


def _next_regime(regimes: Sequence[Regime], now: Regime, change: int, choice: int, mean_length: int) -> Regime:
    """The regime of the next session, from two uniform numbers below 65536."""
    if change >= 65536 // mean_length:
        return now
    point = choice >> 8
    for regime in regimes:
        point -= regime.weight
        if point < 0:
            return regime
    return regimes[-1]


def draw_path(seed: int, listing: Listing, sessions: Sequence[int], moves: Moves | None = None) -> PricePath:
    """The path over sessions given as ordinals, the first of them the epoch; `moves` returns the market factor's, if
    any.

    What was drawn last in this process is kept, and another call goes on where that ended: a desk asks again after
    every session.
    """
    drawn, lock = _drawn(seed, listing, sessions[0])
    with lock:
        if not drawn.begins_like(sessions):
            drawn = _PathDrawer(seed, listing, sessions[0])  # of another calendar
        return drawn.through(sessions, moves)


@lru_cache(maxsize=64)
def _drawn(seed: int, listing: Listing, epoch: int) -> tuple[_PathDrawer, Lock]:
    return _PathDrawer(seed, listing, epoch), Lock()


def price_history(
    symbol: Symbol, sessions: Sequence[int], columns: Sequence[array[int]], volumes: Iterable[float]
) -> PriceHistory:
    """A history of open, high, low and close; adjusted closes would change with every later dividend."""
    prices: dict[str, Any] = dict(zip(PRICES, columns, strict=True))
    return PriceHistory(
        symbol=symbol,
        sessions=array("q", sessions),
        **prices,
        adj_close=array("q", [UNKNOWN]) * len(sessions),
        volume=array("d", volumes),
    )


class _NewsImpact:
    """Remaining effects of news on later sessions by row, in parts per million."""

    def __init__(self) -> None:
        self.gap: Counter[int] = Counter()
        self.intraday: Counter[int] = Counter()

    def add(self, event: Event) -> None:
        acts_from = event.row + 1
        if event.slot is Slot.AFTER_CLOSE:
            # Nobody reads it before the next close, nor trades on it before the open after that.
            self.gap[event.row + 1] += event.jump
            acts_from = event.row + 2
        elif event.slot is Slot.BEFORE_OPEN:
            self.gap[event.row] += event.jump
        else:
            self.intraday[event.row] += event.jump
        for row in range(acts_from, acts_from + DRIFTS):
            self.intraday[row] += event.drift


class _PathDrawer:
    """The path of a listing as far as it is drawn, with the state carried from one session to the next; `epoch` is the
    ordinal of the first one."""

    def __init__(self, seed: int, listing: Listing, epoch: int) -> None:
        self._row, self._today = 0, date.fromordinal(epoch)
        self._listing = listing
        self._company = listing if isinstance(listing, Company) else None
        self._name = stream(seed, listing.symbol, "path")
        self._level = listing.price * _CENT
        self._usual_volume = listing.volume
        self._regime = _REGIMES[1]
        self._impact = _NewsImpact()
        self._announced: list[Event] = []  # dividends and splits that are announced and not yet taken off
        self._unfiled: list[Quarter] = []
        self._dividend = 0
        self._factor = (1, 1)  # shares now for shares at the beginning
        self._business = Business(seed, self._company, self._today) if self._company else None
        self._quarter = self._business.next() if self._business else None
        while self._business and self._quarter and self._quarter.released < self._today:
            self._quarter = self._business.next()
        self._sessions = array("q")
        self._columns = (array("q"), array("q"), array("q"), array("q"))
        self._volumes = array("d")
        self._actions: list[CorporateAction] = []
        self._events: list[Event] = []
        self._reports: list[tuple[date, Quarter]] = []

    def begins_like(self, sessions: Sequence[int]) -> bool:
        """True where the sessions that are drawn begin with these, or these with them."""
        rows = min(len(self._sessions), len(sessions))
        return self._sessions[:rows] == array("q", sessions[:rows])

    def through(self, sessions: Sequence[int], moves: Moves | None) -> PricePath:
        """The path over these sessions, which `begins_like` has found to fit."""
        if (drawn := len(self._sessions)) < len(sessions):
            factor = [_NO_MOVE] * len(sessions) if moves is None else moves()
            for row in range(drawn, len(sessions)):
                self._step(row, sessions[row], factor[row])
        rows, last = len(sessions), date.fromordinal(sessions[-1])
        columns = [column[:rows] for column in self._columns]
        return PricePath(
            price_history(self._listing.symbol, sessions, columns, self._volumes[:rows]),
            tuple(action for action in self._actions if action.ex_date <= last),
            tuple(event for event in self._events if event.row < rows),
            tuple(report for report in self._reports if report[0] <= last),
        )

    def _step(self, row: int, session: int, factor: FactorMove) -> None:
        """Advance one session: apply due actions, draw events, append the bar."""
        draw = shorts(self._name, session)
        self._row, self._today = row, date.fromordinal(session)
        self._sessions.append(session)
        self._regime = _next_regime(_REGIMES, self._regime, draw[10], draw[11], _MEAN_LENGTH)
        self._apply_due()
        for event in self._todays_events(draw):
            self._events.append(event)
            self._impact.add(event)
        self._bar(draw, factor)

    def _bar(self, draw: tuple[int, ...], factor: FactorMove) -> None:
        volatility = self._listing.volatility * self._regime.volatility // 1000
        gap = self._impact.gap.pop(self._row, 0) + self._listing.beta * factor.overnight // 1000
        gap += volatility * bell(*draw[0:4]) // 2000
        move = self._impact.intraday.pop(self._row, 0) + self._listing.beta * factor.intraday // 1000
        move += self._regime.drift + volatility * bell(*draw[4:8]) // 1150
        opening = _moved(self._level, gap)
        self._level = _moved(opening, move)
        open_, close = _to_cents(opening), _to_cents(self._level)
        high = max(open_, close, _to_cents(_moved(max(opening, self._level), volatility * draw[8] // 131072)))
        low = min(open_, close, _to_cents(_moved(min(opening, self._level), -volatility * draw[9] // 131072)))
        for column, price in zip(self._columns, (open_, high, low, close), strict=True):
            column.append(price)
        busy = 650 + draw[12] * 700 // 65536 + min((abs(gap) + abs(move)) // 25, 4000)
        self._volumes.append(self._usual_volume * busy // 1000)

    def _apply_due(self) -> None:
        due = [event for event in self._announced if event.effective is not None and event.effective <= self._today]
        # One on a day: what a share is entitled to never depends on an order within the day.
        for event in due[:1]:
            self._announced.remove(event)
            if event.kind == DIVIDEND:
                self._level = max(self._level - event.amount * _CENT, _CENT)
                kind, value = ActionKind.DIVIDEND, Decimal(event.amount) / 100
            else:
                new, old = event.amount, event.per
                self._level = self._level * old // new
                self._usual_volume = max(self._usual_volume * new // old, 1)
                self._dividend = self._dividend * old // new
                self._announced = [
                    replace(announced, amount=max(announced.amount * old // new, 1)) for announced in self._announced
                ]
                self._factor = (self._factor[0] * new, self._factor[1] * old)
                kind, value = ActionKind.SPLIT, Decimal(new) / old
            self._actions.append(CorporateAction(self._listing.symbol, self._today, kind, value))

    def _todays_events(self, draw: tuple[int, ...]) -> list[Event]:
        found = []
        if self._quarter is not None and self._quarter.released <= self._today:
            found += self._report(self._quarter)
        elif draw[13] < 65536 // 15:
            found.append(self._surprise(draw))
        if self._company is not None and not self._announced:
            found += self._split(self._company)
        for quarter in [quarter for quarter in self._unfiled if quarter.filed <= self._today]:
            self._unfiled.remove(quarter)
            self._reports.append((self._today, quarter))
        return found

    def _event(self, kind: str, slot: Slot, **details: Any) -> Event:
        return Event(row=self._row, session=self._today, kind=kind, slot=slot, price=self._last_close(), **details)

    def _surprise(self, draw: tuple[int, ...]) -> Event:
        kinds = COMPANY_NEWS if self._company is not None else CRYPTO_NEWS
        direction = 1 if draw[14] < 34000 else -1
        # What is news to a quiet share is small, to a wild one large.
        scale = self._listing.volatility
        jump = direction * (scale * (600 + draw[17] * 1400 // 65536) // 1000)
        drift = direction * (scale * (120 + draw[18] * 140 // 65536) // 1000)
        kind = kinds[draw[15] * len(kinds) >> 16]
        return self._event(kind, Slot(draw[16] * 3 >> 16), direction=direction, jump=jump, drift=drift)

    def _report(self, quarter: Quarter) -> list[Event]:
        company, business = self._company, self._business
        if company is None or business is None:
            return []
        slot = Slot.BEFORE_OPEN if company.before_open else Slot.AFTER_CLOSE
        jump = quarter.surprise * 550 + quarter.guidance * company.volatility * 3 // 2
        jump = min(max(jump, -150_000), 150_000)
        new, old = self._factor
        report = self._event(
            EARNINGS,
            slot,
            direction=(quarter.surprise >= IN_LINE) - (quarter.surprise <= -IN_LINE),
            jump=jump,
            drift=jump // 24 if abs(jump) > 8_000 else 0,
            quarter=quarter,
            amount=new,
            per=old,
        )
        self._unfiled.append(quarter)
        self._quarter = business.next()
        return [report, self._declare(slot, company)] if company.payout else [report]

    def _declare(self, slot: Slot, company: Company) -> Event:
        fair = max(self._last_close() * company.payout // 4000, 1)
        before = self._dividend
        if not before or fair * 100 > before * 112 or fair * 100 < before * 55:
            self._dividend = fair
        change = (self._dividend > before) - (self._dividend < before) if before else 0
        jump = change * (4_000 if change > 0 else 18_000)
        return self._announce(DIVIDEND, slot, direction=change, jump=jump, drift=change * 600, amount=self._dividend)

    def _split(self, company: Company) -> list[Event]:
        # Not the last close: on the day of a split that is still a price of the old shares.
        price = self._level // _CENT
        if price > company.split_above:
            new, old, jump = (4 if price > company.split_above * 3 // 2 else 2), 1, 6_000
        elif price < _REVERSE_BELOW:
            new, old, jump = 1, _REVERSE_PER, -6_000
        else:
            return []
        return [self._announce(SPLIT, Slot.AFTER_CLOSE, direction=0, jump=jump, drift=0, amount=new, per=old)]

    def _announce(self, kind: str, slot: Slot, **details: Any) -> Event:
        event = self._event(kind, slot, effective=_weekday(self._today.toordinal() + _NOTICE), **details)
        self._announced.append(event)
        return event

    def _last_close(self) -> int:
        return self._columns[3][-1] // _CENT if self._columns[3] else self._listing.price


def _moved(level: int, move: int) -> int:
    """A level after a move, which is limited so that something is left."""
    return max(level * (_MILLION + min(max(move, -400_000), 600_000)) // _MILLION, _CENT)


def _to_cents(level: int) -> int:
    return max((level + _CENT // 2) // _CENT, 1) * _CENT


def _weekday(ordinal: int) -> date:
    # A Saturday or Sunday becomes the Monday after; weekday() counts from Monday.
    day = date.fromordinal(ordinal)
    return date.fromordinal(ordinal + 7 - day.weekday()) if day.weekday() > 4 else day
