"""Entries of an account's history that come after a person has adopted what they explain: booked too, they would count
twice.

Such an entry is booked in the session of the adoption, beside a cash flow that takes the adoption back. Both come to
nothing together, so no closed books change, and what was adopted as a deposit becomes what it was: a trade, a split, a
dividend. A transfer stays a deposit. An adoption that no entry has taken back stays open for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import combinations

from engine.account.activity import AccountActivity, ActivityEntry
from engine.account.time_weighted import ADOPTED_SPLIT, ADOPTED_TRANSFER, EXTERNAL, REVERSED
from engine.domain.market import Symbol
from engine.domain.order import Fill, Side
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio
from engine.domain.run import Adoption, CashFlow

_TRIED = 12
"""Entries of which every combination is tried, the smallest first; of more only the oldest so many, and all of them."""


@dataclass(frozen=True, slots=True)
class OpenAdoption:
    """An adopted change of cash (`symbol` is empty) or shares in a session that no entry has taken back yet; `split`
    where it is known that a split brought it."""

    session: date
    symbol: Symbol
    amount: Decimal
    split: bool = False

    def covers(self, amount: Decimal, tolerance: Decimal = ZERO) -> bool:
        """True where a change may be a part of this one."""
        return amount * self.amount > 0 and abs(amount) <= abs(self.amount) + tolerance


def open_adoptions(adopted: Iterable[Adoption], flows: Iterable[CashFlow]) -> tuple[OpenAdoption, ...]:
    """The adoptions that are open after the cash flows so far, oldest first."""
    sums: dict[tuple[date, Symbol, bool], Decimal] = {}

    def add(session: date, symbol: Symbol, amount: Decimal, *, split: bool = False) -> None:
        sums[session, symbol, split] = EXACT.add(sums.get((session, symbol, split), ZERO), amount)

    for one in adopted:
        add(one.session, one.symbol, EXACT.subtract(one.after, one.before))
    for flow in flows:
        if flow.kind == ADOPTED_SPLIT:
            add(flow.session, flow.symbol, flow.quantity, split=True)
        elif flow.kind == REVERSED:
            add(flow.session, "", flow.amount)
            if flow.symbol:
                add(flow.session, flow.symbol, flow.quantity)
    return tuple(OpenAdoption(*key[:2], amount, key[2]) for key, amount in sorted(sums.items()) if amount)


def netted(
    activity: AccountActivity, adopted: Sequence[OpenAdoption], whole: Portfolio, account: Portfolio
) -> AccountActivity:
    """The new entries, with those that adoptions stand for booked against them. `whole` are the journal's books with
    all new entries: both sides have to agree without those that are netted, and only without them."""
    symbols = whole.positions.keys() | account.positions.keys()
    excess = {symbol: EXACT.subtract(whole.quantity(symbol), account.quantity(symbol)) for symbol in symbols}
    excess = {symbol: amount for symbol, amount in excess.items() if amount}
    cash, tolerance = whole.cash - whole.money(account.cash), CENT * len(activity.booked)
    if not adopted or (not excess and abs(cash) <= tolerance):
        return activity
    for late in _combinations([one for one in activity.booked if _may_be(one, adopted)]):
        shares = _shares(late)
        moved = sum((_cash(one, whole) for one in late), ZERO)
        if shares != excess or abs(moved - cash) > tolerance:
            continue
        found = _covering(late, shares, moved, adopted, tolerance)
        if found is not None:
            taken = {id(one): _against(one, found, whole) for one in late}
            return AccountActivity(tuple(taken.get(id(one), one) for one in activity.all))
    return activity


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


def _covering(
    late: Iterable[ActivityEntry],
    shares: Mapping[Symbol, Decimal],
    cash: Decimal,
    adopted: Sequence[OpenAdoption],
    tolerance: Decimal,
) -> Mapping[Symbol, OpenAdoption] | None:
    """The adoption that covers the shares of each symbol, and the one for cash under an empty name; None where one does
    not. The cash that trades and splits moved was adopted with their shares, in one sum with all other cash."""
    found: dict[Symbol, OpenAdoption] = {}
    fills = {one.entry.symbol for one in late if isinstance(one.entry, Fill)}
    for symbol, amount in shares.items():
        fitting = [one for one in adopted if one.symbol == symbol and one.covers(amount)]
        fitting = [one for one in fitting if not (one.split and symbol in fills)]
        if not fitting:
            return None
        found[symbol] = max(fitting, key=lambda one: (one.split, one.session))
    if not shares and cash:
        money = [one for one in adopted if not one.symbol and one.covers(cash, tolerance)]
        if not money:
            return None
        found[""] = min(money, key=lambda one: (abs(one.amount - cash), one.session))
    found.setdefault("", max(found.values(), key=lambda one: one.session, default=adopted[-1]))
    return found


def _against(one: ActivityEntry, adopted: Mapping[Symbol, OpenAdoption], portfolio: Portfolio) -> ActivityEntry:
    """An entry in the session of the adoption that stands for it, with what takes that back."""
    entry = one.entry
    assert entry is not None  # only such entries are netted
    moved, cash = _moves(one), _cash(one, portfolio)
    stands = adopted.get(entry.symbol, adopted[""]) if moved else adopted[""]
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
