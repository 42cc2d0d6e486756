"""Time-weighted returns of a desk from close to close, whatever was deposited or withdrawn.

A deposit or a withdrawal (a transfer, a difference that was adopted) is an external flow and no profit. Each counts at
the close of its session: the change of that session is (value - flow) / value before - 1, as if nothing had come, and
the next one rests on the value with it. Changes are linked into a growth of one unit of money, from which falls and
every other measure are taken. So an idle desk stays at zero whatever comes or goes, and money that comes dilutes or
lifts nothing on the day that it comes. Dividends, interest, fees and rounding are results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.domain.brokerage import ActivityKind
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import CENT, EXACT, ZERO
from engine.domain.run import Adoption, CashFlow, EquityPoint

EXTERNAL = "transfer"
"""The kind of cash flow of deposits and withdrawals."""
ADOPTED_TRANSFER = "adopted transfer"
"""The kind of a deposit or withdrawal whose entry came after its cash or shares were adopted."""
REVERSED = "reversed adoption"
"""The kind of what takes an adoption back, in its own session: the entry that it stood for has come."""
ADOPTED_SPLIT = "adopted split"
"""The kind of shares that a split brought and that were adopted before their entry came; it takes them back as well."""

SPLITS = (ActivityKind.SPLIT, ADOPTED_SPLIT)


@dataclass(frozen=True, slots=True)
class NetDeposit:
    """A deposit (negative: a withdrawal) in a session: cash, with an empty `symbol`, or shares at their value at its
    close, in the quote currency."""

    session: date
    symbol: Symbol
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Measured:
    """A close with what was `deposits` since the one before. `change` (fraction) is None where there was nothing to
    grow; `growth` is what one unit of money came to since the start; `fall` (fraction, not positive) is from the
    highest growth so far."""

    point: EquityPoint
    deposits: Decimal
    change: Decimal | None
    growth: Decimal
    fall: Decimal


def is_external(flow: CashFlow) -> bool:
    """True for a deposit or a withdrawal, which is no profit."""
    return flow.kind in (EXTERNAL, ADOPTED_TRANSFER, REVERSED)


def net_deposits(
    points: Sequence[EquityPoint], flows: Iterable[CashFlow], adoptions: Iterable[Adoption] = ()
) -> tuple[NetDeposit, ...]:
    """The external flows up to the last close, dated by the close whose books have them first, one for cash and one for
    each symbol. Shares that no close has a price of count at what they were adopted at, else at nothing."""
    cash: dict[int, Decimal] = {}
    shares: dict[tuple[int, Symbol], Decimal] = {}
    taken_at: dict[tuple[int, Symbol], Decimal] = {}

    def add(session: date, symbol: Symbol, quantity: Decimal, amount: Decimal, price: Decimal = ZERO) -> None:
        place = _place(points, session)
        if place is not None:
            cash[place] = cash.get(place, ZERO) + points[place].portfolio.money(amount)
            if symbol:
                # Summed up before they are valued: what takes an adoption back in parts comes to nothing with it.
                shares[place, symbol] = EXACT.add(shares.get((place, symbol), ZERO), quantity)
                taken_at[place, symbol] = price or taken_at.get((place, symbol), ZERO)

    for flow in flows:
        if is_external(flow):
            add(flow.session, flow.symbol, flow.quantity, flow.amount)
    for one in adoptions:
        change = EXACT.subtract(one.after, one.before)
        add(one.session, one.symbol, change if one.symbol else ZERO, ZERO if one.symbol else change, one.price)
    found = [_deposit(points[place], "", amount) for place, amount in cash.items()]
    for (place, symbol), quantity in shares.items():
        price = _price(points, place, symbol, taken_at[place, symbol])
        found.append(_deposit(points[place], symbol, EXACT.multiply(quantity, price)))
    return tuple(one for one in found if one.amount)


def measured(
    points: Sequence[EquityPoint], deposits: Iterable[NetDeposit] = (), began: Decimal | None = None
) -> list[Measured]:
    """Every close with its change since the one before; of the first since `began`, the value that a run began with.
    Without it the first close is the start: what had come by then is what the desk began with."""
    sums: dict[date, Decimal] = {}
    for one in deposits:
        sums[one.session] = sums.get(one.session, ZERO) + one.amount
    rows: list[Measured] = []
    before, growth, highest = began, Decimal(1), Decimal(1)
    unit = began  # what one unit of growth is worth: growth is the value over it, exactly, until something comes
    for point in points:
        flow = ZERO if before is None else sums.get(point.session, ZERO)
        change = None if before is None else _change(before, point.value, flow)
        if unit and unit > 0 and not flow:
            growth = point.value / unit
        else:
            growth *= 1 + (change or ZERO)
            unit = point.value / growth if growth > 0 else None
        highest = max(highest, growth)
        rows.append(Measured(point, flow, change, growth, growth / highest - 1))
        before = point.value
    return rows


def _change(before: Decimal, value: Decimal, flow: Decimal) -> Decimal | None:
    """The change of a session; where nothing was there before, what came is what it rests on."""
    if before > 0:
        return (value - flow) / before - 1
    return value / (before + flow) - 1 if before + flow > 0 else None


def _place(points: Sequence[EquityPoint], session: date) -> int | None:
    """The close whose books are the first to have what happened in a session."""
    return next((place for place, point in enumerate(points) if point.session >= session), None)


def _price(points: Sequence[EquityPoint], place: int, symbol: Symbol, otherwise: Decimal) -> Decimal:
    """The price of a share at a close, or at the close before where it was gone by then."""
    at_close = points[place].prices.get(symbol)
    if at_close is not None:
        return at_close
    return points[place - 1].prices.get(symbol, otherwise) if place else otherwise


def _deposit(point: EquityPoint, symbol: Symbol, amount: Decimal) -> NetDeposit:
    return NetDeposit(point.session, symbol, point.portfolio.money(amount))


@dataclass(frozen=True, slots=True)
class CloseComparison:
    """One close: value in the quote currency by the journal and by the broker, and how many positions were held, with
    `crypto` among them or without.

    Cash and positions are the same on both sides, or the desk is halted; what is left is prices. Ours are the raw
    closes of the data folder, the broker's its own last trades at its own moment. So a difference is reported and no
    reason to stop. Crypto is not compared: ours are of the end of the UTC day, the broker's of the exchange's close,
    and of this moment in the newest value.
    """

    session: date
    journal: Decimal
    broker: Decimal
    held: int
    crypto: bool = False

    @property
    def difference(self) -> Decimal:
        """The broker's value less the journal's."""
        return self.broker - self.journal

    @property
    def differs(self) -> bool:
        """True for more than rounding: half a cent for each position, for the cash, for the sum, and for our value
        shown in cents."""
        return not self.crypto and abs(self.difference) > CENT * (self.held + 3) / 2


def beside(points: Iterable[EquityPoint], theirs: Mapping[date, Decimal]) -> tuple[CloseComparison, ...]:
    """The closes that both sides know."""
    return tuple(
        CloseComparison(
            point.session,
            point.value,
            theirs[point.session],
            held=len(point.portfolio.positions),
            crypto=any(map(is_crypto, point.portfolio.positions)),
        )
        for point in points
        if point.session in theirs
    )
