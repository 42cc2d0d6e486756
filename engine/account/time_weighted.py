"""Time-weighted returns of a desk from close to close, whatever was deposited or withdrawn.

A deposit or a withdrawal (a transfer, a difference that was adopted) is an external flow and no profit. Each counts at
the close of its session: the change of that session is (value - flow) / value before - 1, as if nothing had come, and
the next one rests on the value with it. Changes are linked into a growth of one unit of money, from which falls and
every other measure are taken. So an idle desk stays at zero whatever comes or goes, and money that comes dilutes or
lifts nothing on the day that it comes. Dividends, interest, fees and rounding are results.

From the books of a run to the track record that metrics are computed of, net of deposits and withdrawals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise

from engine.conventions.metrics import Floats, Track, floats
from engine.domain.brokerage import ActivityKind
from engine.domain.decision import DIRECTIONS, Action
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import CENT, EXACT, ZERO
from engine.domain.run import Adoption, CashFlow, EquityPoint, Stretch

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


def track_of(
    stretch: Stretch,
    periods_per_year: int,
    *,
    benchmark: Stretch | None = None,
    model_cost: Decimal | None = ZERO,
    risk_free: float = 0.0,
) -> Track:
    """The track record of one stretch; `benchmark` is buy and hold over the same sessions.

    Where there were deposits or withdrawals, equity is the growth of the initial value by time-weighted returns, and
    every other amount is in the same proportion to it as to the value of its session. Prices and positions, which
    InvestorBench's metrics read, are there where the run is of one symbol.
    """
    points, grown = stretch.equity, _Grown(stretch)
    symbols = sorted({symbol for point in points for symbol in point.prices})
    prices, positions = _decided(stretch, symbols[0]) if len(symbols) == 1 else (None, None)
    return Track(
        equity=grown.equity,
        periods_per_year=periods_per_year,
        risk_free=risk_free,
        invested=floats(grown.at(point.session, _invested(point)) for point in points),
        traded=float(sum((grown.at(fill.session, fill.quantity * fill.price) for fill in stretch.fills), ZERO)),
        benchmark=None if benchmark is None else _Grown(benchmark).equity,
        model_cost=None if model_cost is None else float(model_cost),
        prices=prices,
        positions=positions,
    )


def daily_returns(stretch: Stretch) -> tuple[float, ...]:
    """Returns from close to close as fractions, time-weighted; 0 after a close at which nothing was left."""
    levels = _Grown(stretch).equity.tolist()
    return tuple(after / before - 1 if before > 0 else 0.0 for before, after in pairwise(levels))


def symbol_track(stretch: Stretch, symbol: Symbol, share: Decimal, periods_per_year: int) -> Track:
    """One symbol's part of a stretch as if it had begun with `share` of the initial value in cash.

    Its equity is that share plus what the symbol has earned so far: trades, fees, dividends, price changes. Shares that
    were deposited count as bought, those that were withdrawn as sold.
    """
    earned, held, values, invested = share, ZERO, [share], []
    trades = sorted((fill for fill in stretch.fills if fill.symbol == symbol), key=lambda one: one.session)
    earnings = [flow for flow in stretch.cash_flows if flow.symbol == symbol and not is_external(flow)]
    flows = sorted(earnings, key=lambda one: one.session)  # what came late is in the session that it was adopted in
    all_brought = net_deposits(stretch.equity, stretch.cash_flows, stretch.adoptions)
    brought = sorted((one for one in all_brought if one.symbol == symbol), key=lambda one: one.session)
    for point in stretch.equity:
        while trades and trades[0].session <= point.session:
            fill = trades.pop(0)
            amount = fill.quantity * fill.price
            earned += (amount if fill.side == "SELL" else -amount) - fill.fee
        while flows and flows[0].session <= point.session:
            earned += flows.pop(0).amount
        while brought and brought[0].session <= point.session:
            earned -= brought.pop(0).amount
        held = point.portfolio.quantity(symbol) * point.prices.get(symbol, ZERO)
        values.append(earned + held)
        invested.append(held)
    traded = sum((f.quantity * f.price for f in stretch.fills if f.symbol == symbol), ZERO)
    prices, positions = _decided(stretch, symbol)
    return Track(
        equity=floats(values),
        periods_per_year=periods_per_year,
        invested=floats(invested),
        traded=float(traded),
        prices=prices,
        positions=positions,
    )


class _Grown:
    """A stretch's values as they would be without deposits and withdrawals."""

    def __init__(self, stretch: Stretch) -> None:
        brought = net_deposits(stretch.equity, stretch.cash_flows, stretch.adoptions)
        rows = measured(stretch.equity, brought, stretch.initial_value) if brought else []
        self._levels = {row.point.session: stretch.initial_value * row.growth for row in rows}
        self._values = {row.point.session: row.point.value for row in rows}
        values = self._levels.values() if rows else [point.value for point in stretch.equity]
        self.equity = floats([stretch.initial_value, *values])

    def at(self, session: date, amount: Decimal) -> Decimal:
        """An amount of a session in proportion; as it is without deposits and withdrawals."""
        value = self._values.get(session)
        return amount * self._levels[session] / value if value else amount


def _invested(point: EquityPoint) -> Decimal:
    """The value of all positions, shorts counted at their size."""
    held = point.portfolio.positions.items()
    return sum((abs(position.quantity) * point.prices[symbol] for symbol, position in held), ZERO)


def _decided(stretch: Stretch, symbol: Symbol) -> tuple[Floats | None, Floats | None]:
    """A symbol's close at every session, and the position that was decided on at it, whatever the limits and the books
    made of it: an agent's BUY is 1, SELL -1, HOLD 0, and unchanged where it abstained; of a strategy the weight that it
    asked for. None where a close, or every decision, is not known. Source: InvestorBench A.2, equation 8 [I9]."""
    points = stretch.equity
    if any(symbol not in point.prices for point in points):
        return None, None
    prices = floats(point.prices[symbol] for point in points)
    if stretch.target_weights is not None:
        return prices, floats(stretch.target_weights[symbol])
    actions = {made.key.session: made.proposal.action for made in stretch.decisions if made.key.symbol == symbol}
    sides, side = [], 0
    for point in points:
        action = actions.get(point.session, Action.HOLD)
        side = side if action is Action.ABSTAIN else DIRECTIONS.get(action, 0)
        sides.append(side)
    return prices, floats(sides) if actions else None
