"""Orders from target weights. Each symbol's share of the cash is kept apart; what expired unfilled is ordered again.

Every symbol trades with its own share of the cash; only targets that rebalance move cash between symbols.
"""

from __future__ import annotations

from datetime import date
from decimal import ROUND_DOWN, Decimal

from engine.domain.market import Symbol
from engine.domain.order import Order, OrderState, Side, order_id
from engine.domain.portfolio import CENT, EXACT, ZERO
from engine.lab.targets import Reach, Target, Targets, VisibleCloses
from engine.simulation.simulated_broker import MarketActivity, SimulatedBroker

SMALLEST_REBALANCE = Decimal(1)
"""The smallest trade of a rebalancing, in the quote currency: brokers take no smaller buys."""


class RuleOrders:
    """The orders of one run, submitted to `broker`; `name` opens the reason of each, `run` its id."""

    def __init__(self, broker: SimulatedBroker, closes: VisibleCloses, cash: Decimal, *, name: str, run: str) -> None:
        self.unfilled: dict[Symbol, Target] = {}
        """Targets whose order expired, to be ordered again at the next decision."""
        self._broker, self._closes = broker, closes
        self._name, self._run = name, run
        share = (cash / len(closes.histories)).quantize(broker.rules.money_step, ROUND_DOWN)
        self._cash = dict.fromkeys(closes.histories, share)
        self._ordered: dict[str, tuple[Symbol, Target]] = {}

    def record(self, activity: MarketActivity) -> None:
        """Book a session's activity on the symbols' shares of the cash."""
        for fill in activity.fills:
            amount = self._broker.portfolio.money(EXACT.multiply(fill.quantity, fill.price))
            self._cash[fill.symbol] += (-amount if fill.side is Side.BUY else amount) - fill.fee
        for flow in activity.cash_flows:
            self._cash[flow.symbol] += flow.amount
        for update in activity.updates:
            if update.state is OrderState.EXPIRED and update.order_id in self._ordered:
                symbol, target = self._ordered[update.order_id]
                # What was bought in part is held by now: the rest is an addition to it.
                self.unfilled[symbol] = target._replace(reach=Reach.ADD) if target.reach is Reach.ENTER else target

    def submit(self, number: int, session: date, targets: Targets) -> None:
        """Submit the orders of one decision. Cash that an order may use is reserved; sells free none yet."""
        wanted = self._with_unfilled(targets)
        self.unfilled, self._ordered = {}, {}
        free = self._broker.portfolio.cash
        balanced: dict[Symbol, Target] = {}
        for symbol, target in wanted.items():
            held = self._broker.portfolio.quantity(symbol)
            if not target.weight:
                if held > 0:
                    self._order(symbol, target, session, Side.SELL, quantity=held)
            elif target.reach is Reach.WEIGHT:
                balanced[symbol] = target
            elif target.reach is Reach.ADD or not held:
                notional = min(self._cash[symbol], free)
                if notional > 0:
                    self._order(symbol, target, session, Side.BUY, notional=notional)
                    free -= notional
        if balanced:
            self._rebalance(balanced, number, session, free)

    def _with_unfilled(self, targets: Targets) -> dict[Symbol, Target]:
        """The targets of a decision beside those that were not reached before."""
        wanted = dict(self.unfilled)
        for symbol, target in targets:
            # Being in is what an unfilled buy or rebalancing is about already, and it wants more than that.
            if target.reach is not Reach.ENTER or symbol not in wanted or not wanted[symbol].weight:
                wanted[symbol] = target
        return wanted

    def _rebalance(self, targets: dict[Symbol, Target], number: int, session: date, free: Decimal) -> None:
        """Sell what is above its weight and buy, with the cash that there is, what is below; where the sales are to pay
        for more, the rest is bought at the next decision."""
        portfolio = self._broker.portfolio
        value = portfolio.value(self._closes.closes(number, portfolio))
        sells, buys = [], {}
        for symbol, target in targets.items():
            price = self._closes.close(symbol, number)
            if price is None:
                continue
            share = EXACT.multiply(value, Decimal(target.weight.numerator)) / target.weight.denominator
            excess = EXACT.multiply(portfolio.quantity(symbol), price) - share
            if excess >= SMALLEST_REBALANCE:
                sells.append(symbol)
                self._order(symbol, target, session, Side.SELL, quantity=excess / price)
            elif excess <= -SMALLEST_REBALANCE:
                buys[symbol] = -excess
        wanted = sum(buys.values(), ZERO)
        part = min(Decimal(1), max(free, ZERO) / wanted) if wanted else ZERO
        for symbol, notional in buys.items():
            notional = (notional * part).quantize(CENT, ROUND_DOWN)
            if notional >= SMALLEST_REBALANCE:
                self._order(symbol, targets[symbol], session, Side.BUY, notional=notional)
            if part < 1 and sells:
                self.unfilled[symbol] = targets[symbol]

    def _order(
        self,
        symbol: Symbol,
        target: Target,
        session: date,
        side: Side,
        *,
        quantity: Decimal | None = None,
        notional: Decimal | None = None,
    ) -> None:
        order = Order(
            id=order_id(self._run, session, 1, symbol, side),
            symbol=symbol,
            side=side,
            session=session,
            quantity=quantity,
            notional=notional,
            reason=f"{self._name}: {target.verb}",
        )
        self._ordered[order.id] = (symbol, target)
        self._broker.submit(order)
