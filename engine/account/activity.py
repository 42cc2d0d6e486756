"""A broker's account history as the journal books it: trades of our orders, named cash flows, and what is neither.

An entry belongs to the first session of the desk whose close is not before it, and never to one whose books are closed
already: what comes late is counted in the next.

Entries of an account's history that come after a person has adopted what they explain: booked too, they would count
twice.

Such an entry is booked in the session of the adoption, beside a cash flow that takes the adoption back. Both come to
nothing together, so no closed books change, and what was adopted as a deposit becomes what it was: a trade, a split, a
dividend. A transfer stays a deposit. An adoption that no entry has taken back stays open for good.

Explanations of differences between journal and account whose entry in the account's history may still come: cash
that moved, trades of the desk's orders, and splits. Any other difference in shares cannot be told from a trade by
hand.

Fees of crypto trades that a broker takes at once and enters in the account's history a day later.

Until its entry is due such a fee is expected: it is no difference, and decisions rest on what the account has.
Source: https://docs.alpaca.markets/docs/crypto-fees (charged in what a trade brings, posted at the end of the day).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_DOWN, Decimal
from itertools import combinations

from engine.account.disagreement import CASH
from engine.account.time_weighted import ADOPTED_SPLIT, ADOPTED_TRANSFER, EXTERNAL, REVERSED
from engine.domain.brokerage import Activity, ActivityKind, Difference
from engine.domain.market import ActionKind, CorporateAction, Symbol, is_crypto
from engine.domain.order import CENT, EXACT, SHARE_STEP, ZERO, Fill, Order, Portfolio, Side
from engine.domain.run import Adoption, CashFlow
from engine.ports import Calendar

WITHIN = timedelta(days=14)
"""A market opens again within so many days, whatever the holidays."""


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """One entry of the account's history with the journal's entry for it; None where it is not the desk's: a trade of
    none of its orders, or a note without an amount. `reversals` take back what was adopted in its place."""

    activity: Activity
    entry: Fill | CashFlow | None
    reversals: tuple[CashFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountActivity:
    """The new entries of an account's history, in the broker's order."""

    all: tuple[ActivityEntry, ...]

    @property
    def fills(self) -> tuple[Fill, ...]:
        """The trades of our orders."""
        return tuple(line.entry for line in self.all if isinstance(line.entry, Fill))

    @property
    def flows(self) -> tuple[CashFlow, ...]:
        """Cash and shares that moved without a trade, and adoptions that are taken back."""
        moved = (line.entry for line in self.all if isinstance(line.entry, CashFlow))
        return (*moved, *(reversal for line in self.all for reversal in line.reversals))

    @property
    def booked(self) -> tuple[ActivityEntry, ...]:
        """The entries that are the desk's."""
        return tuple(line for line in self.all if line.entry is not None)


def session_of(calendar: Calendar, time: datetime, first_open: date | None) -> date:
    """The session that something belongs to: the first whose close is not before it, at the earliest the first whose
    books are not closed yet."""
    day = time.date() - timedelta(days=1)  # a session can close on the UTC day after its own
    due = next(s for s in calendar.sessions(day, day + WITHIN) if calendar.closes_at(s) >= time)
    return due if first_open is None else max(due, first_open)


def read_activity(
    activities: Iterable[Activity],
    order_of: Callable[[str], Order | None],
    known_ids: Mapping[str, datetime],
    calendar: Calendar,
    first_open: date | None,
) -> AccountActivity:
    """The new entries of a history. `order_of` gives our order by the broker's id of it."""
    fresh = {activity.id: activity for activity in activities if activity.id not in known_ids}
    return AccountActivity(
        tuple(_line(one, order_of, session_of(calendar, one.time, first_open)) for one in fresh.values())
    )


def _line(activity: Activity, order_of: Callable[[str], Order | None], session: date) -> ActivityEntry:
    if activity.kind is ActivityKind.FILL:
        order = order_of(activity.broker_id)
        if order is None or activity.price is None:
            return ActivityEntry(activity, None)
        fill = Fill(
            order_id=order.id,
            symbol=order.symbol,
            side=order.side,
            session=session,
            quantity=activity.quantity,
            price=activity.price,
            reason=order.reason,
            time=activity.time,
        )
        return ActivityEntry(activity, fill)
    if not activity.amount and not activity.quantity:
        return ActivityEntry(activity, None)
    kind, symbol = activity.kind.value, activity.symbol or ""
    return ActivityEntry(
        activity,
        CashFlow(
            session=session,
            symbol=symbol,
            kind=kind,
            amount=activity.amount,
            quantity=activity.quantity,
            description=activity.description,
        ),
    )


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


LATE = timedelta(days=7)
"""Longest time after its ex-date at which a broker applies a split."""
Actions = Mapping[Symbol, Sequence[CorporateAction] | None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The cause that a difference may have: shares (signed) that trades of the desk's orders moved, and shares that a
    split brought on its ex-date; cash where there are neither."""

    traded: Decimal = ZERO
    split: Decimal = ZERO
    ex_date: date | None = None

    def awaited(self, what: str) -> str:
        """The entry that is awaited of a symbol, or of cash."""
        split = f"of the split of {what} on {self.ex_date}" if self.ex_date else ""
        traded = f"of trades of the desk's orders in {what}" if self.traded else ""
        return " and ".join(filter(None, (split, traded))) or "of cash"


def explained(
    differences: Iterable[Difference],
    unbooked: Mapping[Symbol, Decimal],
    actions: Actions,
    booked: Mapping[Symbol, date],
    *,
    books: Portfolio,
    journal: Portfolio,
    closed: date,
    today: date,
) -> Mapping[str, Explanation]:
    """The explanation of each difference that has one. `unbooked` are shares of the desk's orders without an entry,
    `booked` the session of the last split that the journal has of a symbol, `books` the books that were `closed` last,
    `journal` these with everything later."""
    found: dict[str, Explanation] = {}
    for one in differences:
        traded = unbooked.get(one.what, ZERO)
        if one.amount is None:
            continue
        if one.what == CASH:
            found[CASH] = Explanation()
        elif traded == one.amount:
            found[one.what] = Explanation(traded)
        else:
            since = max(closed - LATE, booked.get(one.what, date.min))
            due = [each for each in actions.get(one.what) or () if since < each.ex_date <= today]
            held = (books.quantity(one.what), journal.quantity(one.what))
            for ours in dict.fromkeys((traded, ZERO)):
                split = next((each for each in _splits(due) if _brings(each[0], held, one.amount - ours)), None)
                if split is not None:
                    found[one.what] = Explanation(ours, one.amount - ours, split[1])
                    break
    return found


def _splits(actions: Iterable[CorporateAction]) -> Iterator[tuple[Decimal, date]]:
    """The ratio of each split, and of those up to it together, with its ex-date, the latest first."""
    splits = sorted((one for one in actions if one.kind is ActionKind.SPLIT), key=lambda one: one.ex_date)
    found, together = [], Decimal(1)
    for one in splits:
        together = EXACT.multiply(together, one.value)
        found += [(one.value, one.ex_date), (together, one.ex_date)]
    return reversed(found)


def _brings(ratio: Decimal, held: Iterable[Decimal], change: Decimal) -> bool:
    """True where a split of some shares comes to a change of them; parts of a share may be paid in cash."""
    for shares in held:
        exact = EXACT.multiply(shares, ratio)
        for step in (SHARE_STEP, Decimal(1)):
            if change and EXACT.subtract(exact.quantize(step, ROUND_DOWN, EXACT), shares) == change:
                return True
    return False


LARGEST_FEE = Decimal("0.005")
"""Largest fee of a trade that is expected, as a fraction of it: twice the highest that is published."""
DUE_WITHIN = timedelta(days=2)
"""Days after a trade by which its fee is entered."""


def expected_fees(
    differences: Iterable[Difference], fills: Iterable[Fill], today: date
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """The differences without those that fees of recent crypto trades explain, and these. `today` is the UTC day."""
    recent = [one for one in fills if is_crypto(one.symbol) and one.session >= today - DUE_WITHIN]
    rest, expected = list[Difference](), list[Difference]()
    for one in differences:
        missing = -(one.amount or ZERO)
        (expected if ZERO < missing <= _largest(one.what, recent) else rest).append(one)
    return tuple(rest), tuple(expected)


def less_fees(portfolio: Portfolio, expected: Sequence[Difference]) -> Portfolio:
    """A portfolio without the fees that are taken and not entered yet."""
    cash, held = portfolio.cash, dict(portfolio.positions)
    for one in expected:
        if one.what == CASH:
            cash += one.amount or ZERO
        else:
            held[one.what] = replace(held[one.what], quantity=one.broker or ZERO)
    return Portfolio(cash, {symbol: position for symbol, position in held.items() if position.quantity})


def _largest(what: str, fills: Sequence[Fill]) -> Decimal:
    """The largest fee of some trades in cash, or in one of their coins, which purchases alone cost."""
    if what == CASH:
        amounts = [EXACT.multiply(one.quantity, one.price) for one in fills]
        return EXACT.multiply(sum(amounts, ZERO), LARGEST_FEE) + (CENT if amounts else ZERO)
    bought = [one.quantity for one in fills if one.symbol == what and one.side is Side.BUY]
    return EXACT.multiply(sum(bought, ZERO), LARGEST_FEE)
