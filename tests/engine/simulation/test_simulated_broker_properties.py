"""Whatever is ordered and whatever happens to the symbols, the simulated broker's books add up to the cent.

A second bookkeeper, in fractions and with no code of the broker's, follows the fills and the corporate actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import ActionKind, Bar, CorporateAction, PriceHistory
from engine.domain.order import Fill, Order, OrderState, OrderUpdate, Portfolio, Side
from engine.domain.run import CashFlow, EquityPoint, ExecutionRules, FillAt
from engine.simulation.simulated_broker import FORCED_COVER, STOPPED_TRADING, SimulatedBroker

DAY = timedelta(days=1)
START = date(2024, 1, 1)
CASH = Decimal("10000.00")
PRICES = st.integers(100, 5_000_000).map(lambda n: Decimal(n) / 10_000)


@dataclass
class Wish:
    symbol: str
    side: Side
    notional: Decimal | None = None
    quantity: Decimal | None = None


@dataclass
class World:
    """A market of a few symbols, its rules, and what somebody orders before each session."""

    sessions: list[date]
    bars: dict[str, dict[date, Bar]]
    actions: dict[str, list[CorporateAction]]
    rules: ExecutionRules
    orders: list[list[Wish]]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    # Every other day, so that an ex-date can fall where there is no session.
    sessions = [START + 2 * n * DAY for n in range(draw(st.integers(2, 8)))]
    symbols = ["AAA", "BBB", "CCC"][: draw(st.integers(1, 3))]
    bars: dict[str, dict[date, Bar]] = {}
    actions: dict[str, list[CorporateAction]] = {}
    for symbol in symbols:
        traded = sessions[: draw(st.integers(1, len(sessions)))] if draw(st.booleans()) else sessions
        bars[symbol] = {sessions[0] - DAY: _bar(draw, sessions[0] - DAY)}
        for session in traded:
            if draw(st.integers(0, 5)):
                bars[symbol][session] = _bar(draw, session)
        actions[symbol] = draw(st.lists(_actions(symbol, sessions), max_size=3))
    rules = ExecutionRules(
        fill_at=draw(st.sampled_from(FillAt)),
        slippage_bp=draw(st.sampled_from([Decimal(0), Decimal(5), Decimal("37.5")])),
        commission_rate=draw(st.sampled_from([Decimal(0), Decimal("0.001"), Decimal("0.0137")])),
        commission_per_order=draw(st.sampled_from([Decimal(0), Decimal("1.25")])),
        commission_per_share=draw(st.sampled_from([Decimal(0), Decimal("0.0049")])),
        volume_cap=draw(st.sampled_from([None, Decimal("0.01")])),
        fractional=draw(st.booleans()),
        allow_short=draw(st.booleans()),
    )
    orders = [draw(st.lists(_wishes(symbols), max_size=3)) for _ in sessions]
    return World(sessions, bars, actions, rules, orders)


def _bar(draw: st.DrawFn, session: date) -> Bar:
    opened, close = draw(PRICES), draw(PRICES)
    volume = Decimal(draw(st.integers(0, 20_000)))
    return Bar(
        session=session,
        open=opened,
        high=max(opened, close),
        low=min(opened, close),
        close=close,
        adj_close=None,
        volume=volume,
    )


def _actions(symbol: str, sessions: list[date]) -> st.SearchStrategy[CorporateAction]:
    days = st.integers(0, 2 * len(sessions) - 2).map(lambda n: sessions[0] + n * DAY)
    split = st.sampled_from([Decimal(v) for v in ("2", "1.5", "0.5", "0.05", "0.0000001", "3")])
    dividend = st.integers(1, 30_000).map(lambda n: Decimal(n) / 10_000)
    return st.one_of(
        st.builds(CorporateAction, st.just(symbol), days, st.just(ActionKind.SPLIT), split),
        st.builds(CorporateAction, st.just(symbol), days, st.just(ActionKind.DIVIDEND), dividend),
    )


def _wishes(symbols: list[str]) -> st.SearchStrategy[Wish]:
    cents = st.integers(1, 1_200_000).map(lambda n: Decimal(n) / 100)
    shares = st.integers(1, 10**12).map(lambda n: Decimal(n) / 10**9)
    by_notional = st.builds(Wish, st.sampled_from(symbols), st.sampled_from(Side), notional=cents)
    by_quantity = st.builds(Wish, st.sampled_from(symbols), st.sampled_from(Side), quantity=shares)
    return st.one_of(by_notional, by_quantity)


@dataclass
class Played:
    """Everything that came of a world, by session: what was ordered, and what the broker said."""

    ordered: dict[str, Wish] = field(default_factory=dict)
    fills: list[tuple[Fill, ...]] = field(default_factory=list)
    flows: list[tuple[CashFlow, ...]] = field(default_factory=list)
    updates: list[tuple[OrderUpdate, ...]] = field(default_factory=list)
    points: list[EquityPoint] = field(default_factory=list)


def play(world: World) -> Played:
    histories = {s: PriceHistory.of(s, by_day.values()) for s, by_day in world.bars.items()}
    broker = SimulatedBroker(world.rules, Portfolio(CASH), histories, dict(world.actions), last=world.sessions[-1])
    same = world.rules.fill_at is FillAt.SAME_CLOSE
    played = Played()
    decided = world.sessions[0] - DAY
    for session, wishes in zip(world.sessions, world.orders, strict=True):
        opened = broker.open_session(session) if same else None
        for n, wish in enumerate(wishes):
            order = Order(
                id=f"{session}-{n}",
                symbol=wish.symbol,
                side=wish.side,
                session=session if same else decided,
                quantity=wish.quantity,
                notional=wish.notional,
            )
            played.ordered[order.id] = wish
            broker.submit(order)
        opened = opened or broker.open_session(session)
        point, closed = broker.close_session(session)
        played.fills.append(opened.fills + closed.fills)
        played.flows.append(opened.cash_flows + closed.cash_flows)
        played.updates.append(opened.updates + closed.updates)
        played.points.append(point)
        for n, wish in enumerate(wishes):
            last = broker.update_of(f"{session}-{n}")
            assert last is not None
            lives = last.state is OrderState.ACKNOWLEDGED
            assert not lives or is_untraded(world, wish.symbol, session), "a day order outlived its session"
        decided = session
    return played


def is_untraded(world: World, symbol: str, session: date) -> bool:
    """True where the bar of a session says that nothing was traded, and another one that something was."""
    bar = world.bars[symbol].get(session)
    return bar is not None and not bar.volume and any(one.volume for one in world.bars[symbol].values())


def cents(amount: Fraction) -> Fraction:
    return Fraction(round(amount * 100), 100)


class Bookkeeper:
    """Cash, positions and what they cost, in fractions, from fills and corporate actions alone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cash = Fraction(CASH)
        self.shares: dict[str, Fraction] = {}
        self.cost: dict[str, Fraction] = {}
        self.fees = self.profit = Fraction(0)
        self.step = Fraction(1, 10**9) if world.rules.fractional else Fraction(1)

    def open(self, before: date, session: date) -> dict[tuple[str, str], list[Fraction]]:
        """Corporate actions since the session before; returns the cash that they must have moved."""
        moved: dict[tuple[str, str], list[Fraction]] = {}
        every = [a for known in self.world.actions.values() for a in known if before < a.ex_date <= session]
        for action in sorted(every, key=lambda a: (a.ex_date, a.kind is ActionKind.DIVIDEND)):
            held = self.shares.get(action.symbol, Fraction(0))
            if action.kind is ActionKind.DIVIDEND:
                self._receive(moved, action.symbol, "dividend", cents(held * Fraction(action.value)))
                continue
            exact = held * Fraction(action.value)
            whole = int(exact / self.step) * self.step
            self._receive(
                moved, action.symbol, "cash in lieu", cents((exact - whole) * self._price_after(action, session))
            )
            self.shares[action.symbol] = whole
        return moved

    def _receive(self, moved: dict[tuple[str, str], list[Fraction]], symbol: str, kind: str, amount: Fraction) -> None:
        if amount:
            moved.setdefault((symbol, kind), []).append(amount)
            self.cash += amount
            self.profit += amount

    def _price_after(self, action: CorporateAction, session: date) -> Fraction:
        bar = self.world.bars[action.symbol].get(session)
        return Fraction(bar.open) if bar else self.last_close(action.symbol, session) / Fraction(action.value)

    def fill(self, fill: Fill) -> None:
        amount, fee = cents(Fraction(fill.quantity) * Fraction(fill.price)), Fraction(fill.fee)
        sign = 1 if fill.side is Side.BUY else -1
        self.cash -= sign * amount + fee
        self.fees += fee
        before = self.shares.get(fill.symbol, Fraction(0))
        change = sign * Fraction(fill.quantity)
        cost = self.cost.get(fill.symbol, Fraction(0))
        if before * change >= 0:
            cost += sign * amount
        else:
            # What closes the position realizes its profit; what goes beyond it opens a new one.
            closing = min(abs(change), abs(before)) / abs(change)
            part = min(abs(change), abs(before)) / abs(before)
            self.profit += -sign * amount * closing - cost * part
            cost = cost * (1 - part) + sign * amount * (1 - closing)
        self.shares[fill.symbol] = before + change
        self.cost[fill.symbol] = cost

    def last_close(self, symbol: str, session: date) -> Fraction:
        return Fraction(next(b.close for d, b in reversed(self.world.bars[symbol].items()) if d <= session))

    def holdings(self, session: date) -> dict[str, Fraction]:
        return {s: n * self.last_close(s, session) for s, n in self.shares.items() if n}

    def balanced(self, session: date) -> bool:
        """Cash + positions + fees = deposits + profit, realized and not."""
        holdings = self.holdings(session)
        # A split that leaves no share leaves its cost as a loss.
        unrealized = sum(holdings.values()) - sum(self.cost.values())
        return self.cash + sum(holdings.values()) + self.fees == Fraction(CASH) + self.profit + unrealized


@given(worlds())
def test_the_books_add_up_to_the_cent_after_every_fill_and_session(world: World) -> None:
    played = play(world)
    keeper = Bookkeeper(world)
    before = world.sessions[0] - DAY

    for n, session in enumerate(world.sessions):
        moved = keeper.open(before, session)
        flows: dict[tuple[str, str], list[Fraction]] = {}
        for flow in played.flows[n]:
            flows.setdefault((flow.symbol, flow.kind), []).append(Fraction(flow.amount))
        assert flows == moved
        for fill in played.fills[n]:
            keeper.fill(fill)
            assert keeper.balanced(session)
        point = played.points[n]
        assert Fraction(point.portfolio.cash) == keeper.cash
        assert {s: Fraction(p.quantity) for s, p in point.portfolio.positions.items()} == {
            s: q for s, q in keeper.shares.items() if q
        }
        assert Fraction(point.value) == keeper.cash + cents(sum(keeper.holdings(session).values(), Fraction(0)))
        before = session


@given(worlds())
def test_an_order_never_takes_more_than_it_may(world: World) -> None:
    played = play(world)
    keeper = Bookkeeper(world)
    rules, before = world.rules, world.sessions[0] - DAY

    for n, session in enumerate(world.sessions):
        keeper.open(before, session)
        for fill in played.fills[n]:
            quantity, held = Fraction(fill.quantity), keeper.shares.get(fill.symbol, Fraction(0))
            if fill.reason not in (STOPPED_TRADING, FORCED_COVER):
                bar = world.bars[fill.symbol][session]
                quoted = bar.open if rules.fill_at is FillAt.NEXT_OPEN else bar.close
                assert fill.price >= quoted if fill.side is Side.BUY else fill.price <= quoted
                assert bar.volume is not None
                assert not is_untraded(world, fill.symbol, session)
                assert rules.volume_cap is None or fill.quantity <= bar.volume * rules.volume_cap
                assert rules.fractional or fill.quantity % 1 == 0
                wish = played.ordered[fill.order_id]
                if wish.notional is not None and fill.side is Side.BUY:
                    amount = cents(quantity * Fraction(fill.price))
                    assert amount + Fraction(fill.fee) <= Fraction(wish.notional)
                if not rules.allow_short and fill.side is Side.SELL:
                    assert quantity <= held
            assert quantity > 0
            keeper.fill(fill)
        point = played.points[n]
        assert rules.allow_short or point.portfolio.cash >= 0
        assert rules.allow_short or all(p.quantity > 0 for p in point.portfolio.positions.values())
        before = session


@given(worlds())
def test_nothing_is_held_beyond_the_last_bar(world: World) -> None:
    played = play(world)

    for symbol, bars in world.bars.items():
        ends = max(bars)
        if ends < world.sessions[-1]:
            assert all(symbol not in p.portfolio.positions for p in played.points if p.session >= ends), (
                f"{symbol} stopped trading on {ends}"
            )


@given(worlds())
def test_the_same_orders_in_the_same_market_give_the_same_books(world: World) -> None:
    assert play(world) == play(world)


@pytest.mark.parametrize("fill_at", FillAt)
def test_orders_are_reached_in_the_worlds(fill_at: FillAt) -> None:
    """Guards the properties above: a plain order in a plain market does fill under every rule."""
    days = [START, START + DAY]
    bars = {
        "AAA": {
            d: Bar(session=d, open=Decimal(10), high=Decimal(10), low=Decimal(10), close=Decimal(10))
            for d in (START - DAY, *days)
        }
    }
    orders = [[Wish("AAA", Side.BUY, notional=Decimal(100))], []]

    played = play(World(days, bars, {"AAA": []}, ExecutionRules(fill_at=fill_at, slippage_bp=Decimal(0)), orders))

    assert [f.quantity for f in played.fills[0]] == [Decimal(10)]
