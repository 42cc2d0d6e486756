"""Prices of one listing, session by session, with the events on the way.

Whole numbers only: a session's figures depend on the seed, the session and those before it, never on later ones or on
the machine. Prices are in nano-units, moves in parts per million.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from connectors.demo.events import COMPANY_NEWS, CRYPTO_NEWS, DIVIDEND, DRIFTS, EARNINGS, SPLIT, Event, Slot
from connectors.demo.listings import Company, Listing
from connectors.demo.market_factor import FactorMove, Regime, next_regime
from connectors.demo.quarters import IN_LINE, Business, Quarter
from connectors.demo.seeded_random import bell, shorts, stream
from engine.domain.market import UNKNOWN, ActionKind, CorporateAction, PriceHistory

_CENT = 10_000_000  # in nano-units
_MILLION = 1_000_000
_MEAN_LENGTH = 60  # sessions, on average
_REVERSE_BELOW = 500  # cents below which shares are merged
_REVERSE_PER = 8
_NOTICE = 26  # days from the announcement of a dividend or split until it counts
_NO_MOVE = FactorMove(0, 0)
_REGIMES = (
    Regime("bull", 700, 900, 76),
    Regime("calm", 250, 700, 84),
    Regime("bear", -550, 1150, 58),
    Regime("volatile", 50, 1600, 38),
)


@dataclass(frozen=True, slots=True)
class PricePath:
    """Prices, corporate actions, events and reports of a listing."""

    history: PriceHistory
    actions: tuple[CorporateAction, ...]
    events: tuple[Event, ...]
    reports: tuple[tuple[date, Quarter], ...]
    """Quarters by the session on which they were filed."""


def draw_path(seed: int, listing: Listing, sessions: Sequence[int], moves: Sequence[FactorMove] = ()) -> PricePath:
    """The path over sessions given as ordinals, the first of them the epoch; `moves` is the market factor's, if any."""
    state = _PathState(seed, listing, date.fromordinal(sessions[0]))
    for row, session in enumerate(sessions):
        state.step(row, session, moves[row] if moves else _NO_MOVE)
    return PricePath(
        PriceHistory(
            symbol=listing.symbol,
            sessions=array("q", sessions),
            **dict(zip(("open", "high", "low", "close"), state.columns, strict=True)),
            # Adjusted closes would change with every later dividend, and earlier bars never change.
            adj_close=array("q", [UNKNOWN]) * len(sessions),
            volume=array("d", state.volumes),
        ),
        tuple(state.actions),
        tuple(state.events),
        tuple(state.reports),
    )


@dataclass(slots=True)
class _NewsImpact:
    """Remaining effects of news on later sessions, by row."""

    gap: dict[int, int] = field(default_factory=dict)
    intraday: dict[int, int] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        acts_from = event.row + 1
        if event.slot is Slot.AFTER_CLOSE:
            # Nobody reads it before the next close, nor trades on it before the open after that.
            self.gap[event.row + 1] = self.gap.get(event.row + 1, 0) + event.jump
            acts_from = event.row + 2
        elif event.slot is Slot.BEFORE_OPEN:
            self.gap[event.row] = self.gap.get(event.row, 0) + event.jump
        else:
            self.intraday[event.row] = self.intraday.get(event.row, 0) + event.jump
        for row in range(acts_from, acts_from + DRIFTS):
            self.intraday[row] = self.intraday.get(row, 0) + event.drift


class _PathState:
    """State carried from one session to the next."""

    def __init__(self, seed: int, listing: Listing, epoch: date) -> None:
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
        self._business = Business(seed, self._company, epoch) if self._company else None
        self._quarter = self._business.next() if self._business else None
        while self._business and self._quarter and self._quarter.released < epoch:
            self._quarter = self._business.next()
        self.columns = (array("q"), array("q"), array("q"), array("q"))
        self.volumes: list[float] = []
        self.actions: list[CorporateAction] = []
        self.events: list[Event] = []
        self.reports: list[tuple[date, Quarter]] = []

    def step(self, row: int, session: int, beta: FactorMove) -> None:
        """Advance one session: apply due actions, draw events, append the bar."""
        draw = shorts(self._name, session)
        today = date.fromordinal(session)
        self._regime = next_regime(_REGIMES, self._regime, draw[10], draw[11], _MEAN_LENGTH)
        self._apply_due(today)
        for event in self._todays_events(row, today, draw):
            self.events.append(event)
            self._impact.add(event)
        self._bar(row, draw, beta)

    def _bar(self, row: int, draw: tuple[int, ...], beta: FactorMove) -> None:
        volatility = self._listing.volatility * self._regime.volatility // 1000
        gap = self._impact.gap.pop(row, 0) + self._listing.beta * beta.overnight // 1000
        gap += volatility * bell(*draw[0:4]) // 2000
        move = self._impact.intraday.pop(row, 0) + self._listing.beta * beta.intraday // 1000
        move += self._regime.drift + volatility * bell(*draw[4:8]) // 1150
        opening = _moved(self._level, gap)
        self._level = _moved(opening, move)
        open_, close = _to_cents(opening), _to_cents(self._level)
        high = max(open_, close, _to_cents(_moved(max(opening, self._level), volatility * draw[8] // 131072)))
        low = min(open_, close, _to_cents(_moved(min(opening, self._level), -volatility * draw[9] // 131072)))
        for column, price in zip(self.columns, (open_, high, low, close), strict=True):
            column.append(price)
        busy = 650 + draw[12] * 700 // 65536 + min((abs(gap) + abs(move)) // 25, 4000)
        self.volumes.append(self._usual_volume * busy // 1000)

    def _apply_due(self, today: date) -> None:
        due = [event for event in self._announced if event.effective is not None and event.effective <= today]
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
            self.actions.append(CorporateAction(self._listing.symbol, today, kind, value))

    def _todays_events(self, row: int, today: date, draw: tuple[int, ...]) -> list[Event]:
        found = []
        if self._quarter is not None and self._quarter.released <= today:
            found += self._report(row, today, self._quarter)
        elif draw[13] < 65536 // 15:
            found.append(self._surprise(row, today, draw))
        if self._company is not None and not self._announced:
            found += self._split(row, today, self._company)
        for quarter in [quarter for quarter in self._unfiled if quarter.filed <= today]:
            self._unfiled.remove(quarter)
            self.reports.append((today, quarter))
        return found

    def _surprise(self, row: int, today: date, draw: tuple[int, ...]) -> Event:
        kinds = COMPANY_NEWS if self._company is not None else CRYPTO_NEWS
        direction = 1 if draw[14] < 34000 else -1
        # What is news to a quiet share is small, to a wild one large.
        scale = self._listing.volatility
        jump = direction * (scale * (600 + draw[17] * 1400 // 65536) // 1000)
        drift = direction * (scale * (120 + draw[18] * 140 // 65536) // 1000)
        slot = Slot(draw[16] * 3 >> 16)
        kind = kinds[draw[15] * len(kinds) >> 16]
        return Event(
            row=row,
            session=today,
            slot=slot,
            kind=kind,
            direction=direction,
            jump=jump,
            drift=drift,
            price=self._last_close(),
        )

    def _report(self, row: int, today: date, quarter: Quarter) -> list[Event]:
        company, business = self._company, self._business
        if company is None or business is None:
            return []
        slot = Slot.BEFORE_OPEN if company.before_open else Slot.AFTER_CLOSE
        jump = quarter.surprise * 550 + quarter.guidance * company.volatility * 3 // 2
        jump = min(max(jump, -150_000), 150_000)
        direction = (quarter.surprise >= IN_LINE) - (quarter.surprise <= -IN_LINE)
        found = [
            Event(
                row=row,
                session=today,
                slot=slot,
                kind=EARNINGS,
                direction=direction,
                jump=jump,
                drift=jump // 24 if abs(jump) > 8_000 else 0,
                quarter=quarter,
                amount=self._factor[0],
                per=self._factor[1],
                price=self._last_close(),
            )
        ]
        self._unfiled.append(quarter)
        self._quarter = business.next()
        if company.payout:
            found.append(self._declare(row, today, slot, company))
        return found

    def _declare(self, row: int, today: date, slot: Slot, company: Company) -> Event:
        price = self._last_close()
        fair = max(price * company.payout // 4000, 1)
        before = self._dividend
        if not before or fair * 100 > before * 112 or fair * 100 < before * 55:
            self._dividend = fair
        change = (self._dividend > before) - (self._dividend < before) if before else 0
        event = Event(
            row=row,
            session=today,
            slot=slot,
            kind=DIVIDEND,
            direction=change,
            jump=change * (4_000 if change > 0 else 18_000),
            drift=change * 600,
            amount=self._dividend,
            effective=_weekday(today.toordinal() + _NOTICE),
            price=price,
        )
        self._announced.append(event)
        return event

    def _split(self, row: int, today: date, company: Company) -> list[Event]:
        # Not the last close: on the day of a split that is still a price of the old shares.
        price = self._level // _CENT
        if price > company.split_above:
            new, old, jump = (4 if price > company.split_above * 3 // 2 else 2), 1, 6_000
        elif price < _REVERSE_BELOW:
            new, old, jump = 1, _REVERSE_PER, -6_000
        else:
            return []
        effective = _weekday(today.toordinal() + _NOTICE)
        event = Event(
            row=row,
            session=today,
            slot=Slot.AFTER_CLOSE,
            kind=SPLIT,
            direction=0,
            jump=jump,
            drift=0,
            quarter=None,
            amount=new,
            per=old,
            effective=effective,
            price=self._last_close(),
        )
        self._announced.append(event)
        return [event]

    def _last_close(self) -> int:
        return self.columns[3][-1] // _CENT if self.columns[3] else self._listing.price


def _moved(level: int, move: int) -> int:
    """A level after a move, which is limited so that something is left."""
    return max(level * (_MILLION + min(max(move, -400_000), 600_000)) // _MILLION, _CENT)


def _to_cents(level: int) -> int:
    return max((level + _CENT // 2) // _CENT, 1) * _CENT


def _weekday(ordinal: int) -> date:
    # A Saturday or Sunday becomes the Monday after; weekday() counts from Monday.
    day = date.fromordinal(ordinal)
    return date.fromordinal(ordinal + 7 - day.weekday()) if day.weekday() > 4 else day
