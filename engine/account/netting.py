"""Entries of an account's history that come after a person has adopted what they explain: booked too, they would count
twice.

Such an entry is booked in the session of the adoption, beside a cash flow that takes the adoption back. Both come to
nothing together, so no closed books change, and what was adopted as a deposit becomes what it was: a trade, a split, a
dividend. A transfer stays a deposit. An adoption that no entry has taken back stays open for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import combinations

from engine.account.activity import AccountActivity, ActivityEntry
from engine.account.time_weighted import ADOPTED_SPLIT, ADOPTED_TRANSFER, EXTERNAL, REVERSED
from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.market import Symbol
from engine.domain.order import Fill, Side
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio
from engine.domain.run import Adoption, CashFlow

_TRIED = 12
"""Entries of which every combination is tried, the smallest first; of more only the oldest so many, and all of them."""


@dataclass(frozen=True, slots=True)
class OpenAdoption:
    """An adopted change of cash (`symbol` is empty) or shares in a session that no entry has taken back yet, and when
    it was taken last, UTC; `split` where it is known that a split brought it, whose time is that of the session."""

    session: date
    symbol: Symbol
    amount: Decimal
    time: datetime
    split: bool = False

    def covers(self, amount: Decimal, tolerance: Decimal = ZERO) -> bool:
        """True where a change may be a part of this one."""
        return amount * self.amount > 0 and abs(amount) <= abs(self.amount) + tolerance

    def follows(self, entry: Activity) -> bool:
        """True where an entry is of before this was taken, by its day where that is all that it names."""
        timed = entry.kind is ActivityKind.FILL
        return entry.time <= self.time if timed else entry.time.date() <= self.time.date()


def open_adoptions(adopted: Iterable[Adoption], flows: Iterable[CashFlow]) -> tuple[OpenAdoption, ...]:
    """The adoptions that are open after the cash flows so far, oldest first."""
    sums: dict[tuple[date, Symbol, bool], Decimal] = {}
    times: dict[date, datetime] = {}

    def add(session: date, symbol: Symbol, amount: Decimal, *, split: bool = False) -> None:
        sums[session, symbol, split] = EXACT.add(sums.get((session, symbol, split), ZERO), amount)

    for one in adopted:
        add(one.session, one.symbol, EXACT.subtract(one.after, one.before))
        times[one.session] = one.time or datetime.combine(one.session, time.max, UTC)
    for flow in flows:
        if flow.kind == ADOPTED_SPLIT:
            add(flow.session, flow.symbol, flow.quantity, split=True)
        elif flow.kind == REVERSED:
            add(flow.session, "", flow.amount)
            if flow.symbol:
                add(flow.session, flow.symbol, flow.quantity)
    return tuple(
        OpenAdoption(session, symbol, amount, times.get(session, datetime.combine(session, time.max, UTC)), split)
        for (session, symbol, split), amount in sorted(sums.items())
        if amount
    )


def netted(
    activity: AccountActivity, adopted: Sequence[OpenAdoption], whole: Portfolio, account: Portfolio
) -> AccountActivity:
    """The new entries, with those that adoptions stand for booked against them. `whole` are the journal's books with
    all new entries. Where both sides agree, nothing is netted. Else those are that are of before an adoption of the
    same shares, or of cash; where the sides do not agree then, those without which they do; where there are none, since
    other entries are missing too, the first."""
    symbols = whole.positions.keys() | account.positions.keys()
    excess = {symbol: EXACT.subtract(whole.quantity(symbol), account.quantity(symbol)) for symbol in symbols}
    excess = {symbol: amount for symbol, amount in excess.items() if amount}
    cash, tolerance = whole.cash - whole.money(account.cash), CENT * len(activity.booked)
    if not adopted or (not excess and abs(cash) <= tolerance):
        return activity
    likely = {id(one): each for one in activity.booked if (each := _taken_after(one, adopted)) is not None}
    fitting = [one for one in activity.booked if _may_be(one, adopted)]
    before = [one for one in fitting if id(one) in likely]
    for late in (before, *_combinations(fitting)):
        moved = sum((_cash(one, whole) for one in late), ZERO)
        if not late or _shares(late) != excess or abs(moved - cash) > tolerance:
            continue
        stands = {id(one): likely.get(id(one)) or _stands_for(one, late, adopted, whole, tolerance) for one in late}
        if all(stands.values()):
            likely = {key: each for key, each in stands.items() if each is not None}
            break
    return AccountActivity(
        tuple(_against(one, likely[id(one)], whole) if id(one) in likely else one for one in activity.all)
    )


def _taken_after(one: ActivityEntry, adopted: Sequence[OpenAdoption]) -> OpenAdoption | None:
    """The first adoption after an entry of the shares that it moves, or of cash, in its own session or a later one."""
    assert one.entry is not None  # only such entries are netted
    day = one.activity.time.date()
    later = sorted((each for each in adopted if each.follows(one.activity)), key=lambda each: each.session < day)
    if shares := _moves(one):
        own = [each for each in later if each.symbol == one.entry.symbol]
        splits = [each for each in adopted if each.split and each.symbol == one.entry.symbol and each.covers(shares)]
        return next(iter((*own, *splits) if isinstance(one.entry, Fill) else (*splits, *own)), None)
    return next((each for each in later if not each.symbol), next(iter(later), None))


def _combinations(entries: Sequence[ActivityEntry]) -> Iterator[Sequence[ActivityEntry]]:
    few = entries[:_TRIED]
    for count in range(1, len(few) + 1):
        yield from combinations(few, count)
    if len(entries) > len(few):
        yield entries


def _may_be(one: ActivityEntry, adopted: Sequence[OpenAdoption]) -> bool:
    """True for an entry of cash, and one of shares that were adopted."""
    return not _moves(one) or any(one.entry is not None and each.symbol == one.entry.symbol for each in adopted)


def _moves(one: ActivityEntry) -> Decimal:
    """The signed change of shares of an entry."""
    if isinstance(one.entry, Fill):
        return one.entry.quantity if one.entry.side is Side.BUY else -one.entry.quantity
    return ZERO if one.entry is None or not one.entry.symbol else one.entry.quantity


def _cash(one: ActivityEntry, portfolio: Portfolio) -> Decimal:
    """The signed change of cash of an entry, rounded as the books round it."""
    if isinstance(one.entry, Fill):
        return portfolio.filled(one.entry).cash - portfolio.cash
    return ZERO if one.entry is None else portfolio.money(one.entry.amount)


def _shares(entries: Iterable[ActivityEntry]) -> dict[Symbol, Decimal]:
    sums: dict[Symbol, Decimal] = {}
    for one in entries:
        if one.entry is not None and (change := _moves(one)):
            sums[one.entry.symbol] = EXACT.add(sums.get(one.entry.symbol, ZERO), change)
    return {symbol: amount for symbol, amount in sums.items() if amount}


def _stands_for(
    one: ActivityEntry,
    late: Sequence[ActivityEntry],
    adopted: Sequence[OpenAdoption],
    portfolio: Portfolio,
    tolerance: Decimal,
) -> OpenAdoption | None:
    """The adoption that stands for one of some late entries; None where there is none. Shares were adopted by symbol,
    cash in one sum with the cash of all trades: an entry of cash may be a part of that, or is of a day before."""
    entry = one.entry
    assert entry is not None  # only such entries are netted
    if _moves(one):
        total = _shares(late).get(entry.symbol, ZERO)
        fitting = [each for each in adopted if each.symbol == entry.symbol and each.covers(total)]
        fitting = [each for each in fitting if not (each.split and isinstance(entry, Fill))]
        return max(fitting, key=lambda each: (each.split, each.session), default=None)
    cash = _cash(one, portfolio)
    money = [each for each in adopted if not each.symbol and each.covers(cash, tolerance)]
    before = [each for each in adopted if one.activity.time.date() <= each.session]
    exact = [each for each in money if abs(each.amount - cash) <= tolerance]
    return next(iter((*exact, *before, *money)), None)


def _against(one: ActivityEntry, stands: OpenAdoption, portfolio: Portfolio) -> ActivityEntry:
    """An entry in the session of the adoption that stands for it, with what takes that back."""
    entry = one.entry
    assert entry is not None  # only such entries are netted
    moved, cash = _moves(one), _cash(one, portfolio)
    if isinstance(entry, CashFlow) and entry.kind == EXTERNAL:
        entry = replace(entry, kind=ADOPTED_TRANSFER)
    back = CashFlow(
        session=stands.session,
        symbol=entry.symbol,
        kind=REVERSED,
        amount=-cash,
        quantity=-moved,
        description=one.activity.description,
    )
    reversals = [back]
    if stands.split and moved:
        reversals = [replace(back, kind=ADOPTED_SPLIT, amount=ZERO), replace(back, quantity=ZERO)]
    kept = tuple(one for one in reversals if one.amount or one.quantity)
    return ActivityEntry(one.activity, replace(entry, session=stands.session), kept)
