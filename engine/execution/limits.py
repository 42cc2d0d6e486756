"""From sized proposals to orders: limits over the whole batch in a fixed order, the cash floor and what is held.

Every request ends as a value: Approved with the order to send, or Refused with the reason. Cash that a sale will bring
is not counted, since a queued sale may not fill. The result never depends on whether the model meant well.

The size of a proposal by the rule that it names: the rule's conditions are checked, the size is cut to its band.

Source: FinVision §3.4, table 5 [V6].

Limits that an account sets to one order: cash that has to stay, shares that are free to be sold; and the size that
an operator gives to an order under the same limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.domain.decision import Action, Cut, Proposal, SizingRule
from engine.domain.market import Symbol
from engine.domain.order import CENT, SHARE_STEP, ZERO, Order, OrderSize, Portfolio, PositionContext, Side, order_id
from engine.domain.text import plain
from engine.errors import UsageError
from engine.execution.venue import BuyingPower, OrderTerms
from engine.messages.commands import Edit, PlaceOrder

if TYPE_CHECKING:
    from engine.settings.values import Band, Sizing

SMALLEST_ORDER = Decimal(1)
"""Brokers take no order under a dollar."""
SMALLEST_SIZE = Decimal(1)
"""The least percent of the portfolio that is bought. What is left of a position may be less, and can still be sold.
Source: FinVision §3.4 [V5]."""
ONE = Decimal(1)
OVERNIGHT = Decimal("1.05")
"""The assumed cost of a whole share at the next open, in closes: an order for whole shares has no amount that
would bound it, and the cash floor has to hold if the price rises overnight."""


@dataclass(frozen=True, slots=True)
class Approved:
    """An order to send. `size` in percent of the portfolio, after all cuts."""

    order: Order
    size: Decimal
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """No order, and why."""

    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Funds:
    """Cash that can be spent, net of what open buys may take, and the value of the whole portfolio; quote currency."""

    cash: Decimal
    value: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The facts that all orders of one cycle share.

    desk: name of the desk, which order ids begin with.
    session: the session that the orders rest on.
    cycle: number of the cycle after that session.
    sizing: the preset's cash floor and rules.
    whole_shares: symbols of which no part of a share is traded.
    terms: the orders that the venue takes, by symbol; any of one that is left out.
    power: the venue's own limits of what can be bought; None for none.
    funds: of the desk, where its owners keep books: no order may cross the desk's floor either. None: one book.
    """

    desk: str
    session: date
    cycle: int
    sizing: Sizing
    whole_shares: frozenset[Symbol] = frozenset()
    terms: Mapping[Symbol, OrderTerms] = field(default_factory=dict)
    power: BuyingPower | None = None
    funds: Funds | None = None

    def terms_of(self, symbol: Symbol) -> OrderTerms:
        """The orders that are taken of a symbol."""
        terms = self.terms.get(symbol, OrderTerms())
        return replace(terms, step=max(ONE, terms.step)) if symbol in self.whole_shares else terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A sized proposal that asks for an order.

    symbol: what is traded.
    book: the owner whose book trades; empty where the desk has one book only.
    sized: action and size after the sizing rules.
    position: position and free cash of the book.
    queued: shares that the book's open sales may still take.
    """

    symbol: Symbol
    book: str = ""
    sized: Sized
    position: PositionContext
    queued: Decimal = ZERO


def limit(
    batch: Batch, requests: Iterable[Request], taken: Mapping[str, Decimal] = MappingProxyType({})
) -> dict[tuple[Symbol, str], Approved | Refused]:
    """Turn sized proposals into orders, one by one in the order given; the results by symbol and book.

    `taken` is cash that orders of the same batch have taken already, by book. A buy takes at most what is above the
    floor, of its book and of the desk, and nothing where that is less than SMALLEST_SIZE; one in a symbol that is sold
    short buys back at most what is short, whatever the floor. A sale takes at most what its book holds; where the
    preset sells short, until all short positions together are worth the book. HOLD and ABSTAIN give no entry.
    """
    results: dict[tuple[Symbol, str], Approved | Refused] = {}
    spent, shorted = dict(taken), ZERO
    for request in requests:
        result: Approved | Refused
        if request.sized.action is Action.BUY and request.position.shares < 0:
            result = _cover(batch, request)
        elif request.sized.action is Action.BUY:
            result = _buy(batch, request, spent)
            if isinstance(result, Approved):
                spent[request.book] = spent.get(request.book, ZERO) + cost(result.order, request.position.price)
        elif request.sized.action is Action.SELL:
            result = _sell(batch, request, shorted)
            shorted += _newly_short(request, result)
        else:
            continue
        results[request.symbol, request.book] = result
    return results


def cost(order: Order, price: Decimal) -> Decimal:
    """The cash that an order to buy may take at the open after a close of `price`."""
    if order.notional is not None:
        return order.notional
    return whole_share_cost(order.quantity or ZERO, price)


def whole_share_cost(quantity: Decimal, price: Decimal) -> Decimal:
    """The assumed cost of whole shares at the open after a close of `price`."""
    return (quantity * price * OVERNIGHT).quantize(CENT, ROUND_UP)


def _buy(batch: Batch, request: Request, spent: Mapping[str, Decimal]) -> Approved | Refused:
    asked, value, terms = request.sized.size, request.position.value, batch.terms_of(request.symbol)
    wanted, (room, rule, limit) = value * asked / HUNDRED, _room(batch, request, spent)
    least = min(asked, SMALLEST_SIZE)
    if batch.sizing.whole:
        # The size is rounded; all cash is spent to the cent, and what no size could be named for is too little.
        wanted, least = request.position.cash - value * batch.sizing.cash_floor, SMALLEST_SIZE
    notional = min(wanted, room).quantize(CENT, ROUND_DOWN)
    smallest, least_amount = value * least / HUNDRED, max(SMALLEST_ORDER, terms.least_amount)
    if notional < least_amount <= wanted or room < smallest:
        reason = f"{limit}: {max(room, ZERO):.2f} could be spent, less than the smallest purchase"
        return Refused((Cut(rule, asked, ZERO, reason),))
    whole = request.symbol in batch.whole_shares
    if not whole and (small := too_small(terms, notional / request.position.price, notional, least_amount)):
        return Refused((Cut("order size", asked, ZERO, small),))
    cuts: tuple[Cut, ...] = ()
    allowed = asked
    if wanted > room:
        allowed = percent(room, value)
        cuts = (Cut(rule, asked, allowed, f"{limit}: {notional} of {wanted:.2f} can be spent"),)
    if whole:
        return _buy_whole(batch, request, notional, allowed, cuts)
    return Approved(_order(batch, request, Side.BUY, notional=notional), allowed, cuts)


def _room(batch: Batch, request: Request, spent: Mapping[str, Decimal]) -> tuple[Decimal, str, str]:
    """The cash that a buy may take: what is above the floor of its book, above that of the desk, and within the venue's
    own limit; with the rule that limits it, and its words."""
    position, floor, taken = request.position, batch.sizing.cash_floor, sum(spent.values(), ZERO)
    room = position.cash - spent.get(request.book, ZERO) - position.value * floor
    if batch.funds is not None:
        room = min(room, batch.funds.cash - taken - batch.funds.value * floor)
    most = None if batch.power is None else batch.power.limit(request.symbol)
    if most is not None and most - taken < room:
        return most - taken, "buying power", f"the account's buying power is {most:.2f}"
    return room, "cash floor", f"{floor:.0%} of the portfolio stays cash"


def too_small(terms: OrderTerms, quantity: Decimal, amount: Decimal, least: Decimal) -> str:
    """The minimum that an order is below: of quantity, or the `least` amount; empty for none."""
    smallest = max(terms.least_quantity, terms.step)
    if quantity < smallest:
        return f"{quantity:.9f} is less than the smallest order that the venue takes, {plain(smallest)}"
    return f"{amount:.2f} is less than the smallest order that the venue takes, {least}" if amount < least else ""


def _buy_whole(
    batch: Batch, request: Request, notional: Decimal, allowed: Decimal, cuts: tuple[Cut, ...]
) -> Approved | Refused:
    price = request.position.price
    quantity = (notional / (price * OVERNIGHT)).quantize(ONE, ROUND_DOWN)
    size = min(allowed, percent(quantity * price, request.position.value))
    reason = f"{request.symbol} is traded in whole shares only: {quantity} of them"
    if not quantity:
        return Refused((*cuts, Cut("whole shares", allowed, ZERO, reason)))
    whole = cuts if size == allowed else (*cuts, Cut("whole shares", allowed, size, reason))
    return Approved(_order(batch, request, Side.BUY, quantity=quantity), size, whole)


def _cover(batch: Batch, request: Request) -> Approved | Refused:
    """Buy back shares that are sold short: it frees the cash that it takes, so no floor counts."""
    asked, position = request.sized.size, request.position
    short = -position.shares
    wanted = short if batch.sizing.whole else position.value * asked / HUNDRED / position.price
    quantity = _in_steps(batch, request, _whole_or(min(wanted, short), short, position.price))
    if quantity <= 0:
        return Refused((Cut("short", asked, ZERO, "it comes to no share that could be bought back"),))
    cuts: tuple[Cut, ...] = ()
    allowed = asked
    if short < wanted:
        allowed = percent(quantity * position.price, position.value)
        cuts = (Cut("short", asked, allowed, f"{short.normalize():f} shares are short, and no more is bought back"),)
    return Approved(_order(batch, request, Side.BUY, quantity=quantity), allowed, cuts)


def _sell(batch: Batch, request: Request, shorted: Decimal) -> Approved | Refused:
    """Sell what is held; `shorted` is the value that the batch has sold short before."""
    asked, position, sizing = request.sized.size, request.position, batch.sizing
    closes = sizing.whole and position.shares > 0
    wanted = position.shares if closes else position.value * asked / HUNDRED / position.price
    most = held = max(position.shares - request.queued, ZERO)
    no_short = _no_short(batch, request) if sizing.allow_short and not closes else ""
    if sizing.allow_short and not closes and not no_short:
        most += max(position.value - position.shorts - shorted, ZERO) / position.price
    terms = batch.terms_of(request.symbol)
    quantity = _in_steps(batch, request, _whole_or(min(wanted, most), held, position.price, terms.least_amount))
    if quantity > held and request.symbol in batch.terms:
        quantity = quantity.quantize(ONE, ROUND_DOWN)
    if no_short and quantity <= 0 and not held:
        return Refused((Cut("short", asked, ZERO, no_short),))
    small = too_small(terms, quantity, quantity * position.price, terms.least_amount)
    if small and min(wanted, most) > 0 and request.symbol not in batch.whole_shares:
        return Refused((Cut("order size", asked, ZERO, small),))
    if quantity <= 0:
        return Refused((_sale_cut(request, ZERO, quantity, held, shorts=sizing.allow_short),))
    cuts: tuple[Cut, ...] = ()
    allowed = asked
    if most < wanted:
        allowed = percent(quantity * position.price, position.value)
        cuts = (_sale_cut(request, allowed, quantity, held, shorts=most > held),)
    return Approved(_order(batch, request, Side.SELL, quantity=quantity), allowed, cuts)


def _no_short(batch: Batch, request: Request) -> str:
    """The reason why a symbol cannot be sold short now: the venue never takes that, or not in the order that sells what
    is held; empty where it can."""
    terms = batch.terms.get(request.symbol)
    if terms is None or terms.no_short:
        return "" if terms is None else terms.no_short
    held = request.position.shares > 0
    return "what is held has to be sold first: one order cannot close a position and go short" if held else ""


def _sale_cut(request: Request, allowed: Decimal, quantity: Decimal, held: Decimal, *, shorts: bool) -> Cut:
    """The cut of a sale; `shorts` where it is the limit of short positions that cuts it, not what is held."""
    position, reason = request.position, "nothing is held that could be sold"
    if shorts:
        reason = (
            f"short positions may be worth no more than the equity, {position.value:.2f}, and are worth "
            f"{position.shorts:.2f} before this batch"
        )
    elif quantity > 0:
        sold = "the whole" if quantity == held else quantity
        reason = f"{held.normalize():f} shares are held, {sold} of it is sold"
    return Cut("short" if shorts else "holding", request.sized.size, allowed, reason)


def _newly_short(request: Request, result: Approved | Refused) -> Decimal:
    """The value that a sale sells short beyond what is held."""
    if isinstance(result, Refused):
        return ZERO
    held = max(request.position.shares - request.queued, ZERO)
    return max((result.order.quantity or ZERO) - held, ZERO) * request.position.price


def _whole_or(quantity: Decimal, whole: Decimal, price: Decimal, least: Decimal = ZERO) -> Decimal:
    """The whole position where a quantity would leave of it, or go beyond it by, less than can be traded."""
    return whole if abs(whole - quantity) * price < max(SMALLEST_ORDER, least) else quantity


def _in_steps(batch: Batch, request: Request, quantity: Decimal) -> Decimal:
    return in_steps(quantity, batch.terms_of(request.symbol).step)


def in_steps(quantity: Decimal, step: Decimal) -> Decimal:
    """The largest multiple of a step up to a quantity."""
    if step in (ONE, SHARE_STEP):
        return quantity.quantize(step, ROUND_DOWN)
    return (quantity // step) * step


def _order(
    batch: Batch, request: Request, side: Side, *, quantity: Decimal | None = None, notional: Decimal | None = None
) -> Order:
    return Order(
        id=order_id(batch.desk, batch.session, batch.cycle, request.symbol, side, book=request.book),
        symbol=request.symbol,
        side=side,
        session=batch.session,
        quantity=quantity,
        notional=notional,
        book=request.book,
    )


HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Sized:
    """A proposal after its rule: `size` in percent of the portfolio (zero where nothing is to be traded)."""

    action: Action
    size: Decimal
    cuts: tuple[Cut, ...] = ()


def size(proposal: Proposal, position: PositionContext, sizing: Sizing) -> Sized:
    """Size a proposal by its rule. A refusal is a HOLD with the reason among its cuts."""
    if proposal.action in (Action.HOLD, Action.ABSTAIN):
        return Sized(proposal.action, ZERO)
    asked = Decimal(proposal.size)
    bands = sizing.buy if proposal.action is Action.BUY else sizing.sell
    band = sizing.unruled if proposal.rule is None else bands.get(proposal.rule)
    if band is None:
        return _refused(asked, "rule", f"{proposal.rule or 'no rule'} does not allow a {proposal.action}")
    violation = _violation(proposal.action, proposal.rule, band, position, sizing)
    if violation:
        return _refused(asked, proposal.rule or "advice", violation)
    if sizing.whole:
        return _whole(proposal, position, sizing)
    if not asked:
        return Sized(proposal.action, band.largest)
    allowed = min(max(asked, band.smallest), band.largest)
    if allowed == asked:
        return Sized(proposal.action, asked)
    reason = f"{proposal.rule or 'advice'} trades {band.smallest}-{band.largest} % of the portfolio"
    return Sized(proposal.action, allowed, (Cut("band", asked, allowed, reason),))


def _whole(proposal: Proposal, position: PositionContext, sizing: Sizing) -> Sized:
    """The trade of all cash above the floor or of all shares; what is short is bought back first, and a short sale is
    worth the equity. Where the proposal names another size, that is told. Source: FinAgent §4.4 [A10]."""
    buys, asked = proposal.action is Action.BUY, Decimal(proposal.size)
    if position.shares < 0 if buys else position.shares > 0:
        all_of_it = percent(abs(position.shares) * position.price, position.value)
        reason = "a purchase takes back all that is short" if buys else "a sale takes all shares"
    elif buys:
        all_of_it = percent(max(ZERO, position.cash - sizing.cash_floor * position.value), position.value)
        reason = "a purchase takes all cash above the floor"
    else:
        all_of_it, reason = HUNDRED, "a short sale is worth the equity"
    if asked in (ZERO, all_of_it):
        return Sized(proposal.action, all_of_it)
    return Sized(proposal.action, all_of_it, (Cut("whole", asked, all_of_it, reason),))


def _violation(action: Action, rule: SizingRule | None, band: Band, position: PositionContext, sizing: Sizing) -> str:
    if action is Action.SELL and position.shares <= 0 and not sizing.allow_short:
        return "nothing is held to be sold"
    if band.cash_above is not None and position.shares >= 0 and position.cash_fraction <= band.cash_above:
        return f"cash is {position.cash_fraction:.2%} of the portfolio and has to be above {band.cash_above:.0%}"
    if rule is SizingRule.GAIN_OVER_COST and position.unrealized_fraction <= sizing.gain_over_cost:
        gain = f"{position.unrealized_fraction:.2%}"
        return f"the gain over average cost is {gain} and has to be above {sizing.gain_over_cost:.0%}"
    if rule is SizingRule.GAINS_IN_A_ROW and position.gains_in_a_row < sizing.gains_in_a_row:
        return f"the close rose {position.gains_in_a_row} sessions in a row, not {sizing.gains_in_a_row}"
    return ""


def _refused(asked: Decimal, rule: str, reason: str) -> Sized:
    return Sized(Action.HOLD, ZERO, (Cut(rule, asked, ZERO, reason),))


def percent(part: Decimal, whole: Decimal) -> Decimal:
    """A part in percent of a whole, to four places; zero of nothing."""
    return (part * HUNDRED / whole).quantize(Decimal("0.0001"), ROUND_DOWN) if whole > 0 else ZERO


Price = Callable[[Symbol], Decimal]
OWN = "an order of your own"
"""The reason of an operator's order."""
LARGEST_SIZE = Decimal(10) ** 12
"""More shares, or money, than any account has: what is larger is a slip, and could not be counted exactly."""


def cash_floor(portfolio: Portfolio, price: Callable[[Symbol], Decimal], fraction: Decimal) -> Decimal:
    """The cash, in the quote currency, that buys must leave: a fraction of the portfolio's value, and what short
    positions brought, which has to be there to buy them back."""
    prices = {symbol: price(symbol) for symbol in portfolio.positions}
    return portfolio.value(prices) * fraction + portfolio.short_value(prices)


def shortfall(order: Order, power: BuyingPower, price: Decimal, *, floor: Decimal, allow_short: bool) -> str:
    """The cash or shares that an account lacks for an order at a price, beside what is open there, in a sentence; empty
    where nothing is lacking. A buy must leave `floor` in cash, unless it takes back no more than is short: that frees
    the cash that it takes."""
    if order.side is Side.BUY and shares_of(order, price) <= -power.held.get(order.symbol, ZERO):
        return ""
    if order.side is Side.BUY:
        left = power.cash - power.reserved - cost(order, price)
        return "" if left >= floor else f"it would leave {left:,.2f} in cash, and {floor:,.2f} has to stay"
    free = power.held.get(order.symbol, ZERO) - power.queued.get(order.symbol, ZERO)
    wanted = order.quantity or ZERO
    if allow_short or wanted <= free:
        return ""
    return f"it would sell {wanted.normalize():f} shares, and {max(free, ZERO).normalize():f} are free to be sold"


def refused_by_venue(order: Order, terms: OrderTerms | None, power: BuyingPower, price: Decimal) -> str:
    """The limit of the venue itself that an order at a price would not pass, in a sentence; empty for none. A buy that
    takes back no more than is short needs no buying power."""
    quantity, held = shares_of(order, price), power.held.get(order.symbol, ZERO)
    sells, most = order.side is Side.SELL, power.limit(order.symbol)
    short = max(quantity - max(held - power.queued.get(order.symbol, ZERO), ZERO), ZERO) if sells else ZERO
    covers = not sells and quantity <= -held
    takes = short * price if sells or covers else cost(order, price)
    if most is not None and takes > max(most, ZERO):
        return f"the account's buying power is {most:,.2f}, and it may take {takes:,.2f}"
    if terms is None:
        return ""
    if order.quantity is not None and in_steps(order.quantity, terms.step) != order.quantity:
        return f"{order.symbol} is traded in steps of {plain(terms.step)}, and not {plain(order.quantity)}"
    small = too_small(terms, quantity, quantity * price, terms.least_amount)
    return small or (_not_short(quantity, held, terms) if short else "")


def _not_short(quantity: Decimal, held: Decimal, terms: OrderTerms) -> str:
    if terms.no_short or held > 0:
        return terms.no_short or "it would sell more than is held: one order cannot close a position and go short"
    whole = quantity == quantity.to_integral_value()
    return "" if whole else f"only whole shares are sold short, not {plain(quantity)}"


def short_excess(order: Order, power: BuyingPower, portfolio: Portfolio, price: Price) -> str:
    """The value by which short positions would exceed the equity once a sale and every open one has filled, in a
    sentence; empty where they would not."""
    own = shares_of(order, price(order.symbol))
    queued = {**power.queued, order.symbol: power.queued.get(order.symbol, ZERO) + own}
    short = {symbol: queued.get(symbol, ZERO) - power.held.get(symbol, ZERO) for symbol in {*queued, *power.held}}
    worth = sum((shares * price(symbol) for symbol, shares in short.items() if shares > 0), ZERO)
    value = portfolio.value({symbol: price(symbol) for symbol in portfolio.positions})
    if worth <= value:
        return ""
    return f"short positions would be worth {worth:.2f}, and may be worth no more than the equity, {value:.2f}"


def shares_of(order: Order, price: Decimal) -> Decimal:
    """The shares of an order; of one for an amount by the price."""
    return order.notional / price if order.notional is not None else order.quantity or ZERO


def buying_power(portfolio: Portfolio, orders: Iterable[Order], price: Price) -> BuyingPower:
    """The buying power of a portfolio beside open orders, at prices that the orders rest on."""
    reserved, queued = ZERO, dict[Symbol, Decimal]()
    for order in orders:
        if order.side is Side.BUY:
            reserved += cost(order, price(order.symbol))
        else:
            queued[order.symbol] = queued.get(order.symbol, ZERO) + (order.quantity or ZERO)
    held = {symbol: position.quantity for symbol, position in portfolio.positions.items()}
    return BuyingPower(portfolio.cash, reserved, held, queued)


def own_order(
    identity: str,
    wanted: PlaceOrder,
    price: Decimal,
    session: date,
    *,
    held: Decimal = ZERO,
    whole: bool = False,
    step: Decimal = SHARE_STEP,
) -> Order:
    """The operator's order of a decision session at a price, with so many shares held (negative where short); `whole`
    where no part of a share is traded, else in multiples of `step`. A buy is for an amount, so that it never costs more
    than is reserved; a sale, and what buys back a short position, is for shares. Raises UsageError for a size that
    cannot be traded."""
    size = wanted.size.number
    _check_size(size)
    order = partial(Order, id=identity, symbol=wanted.symbol, side=wanted.side, session=session, reason=OWN)
    if wanted.side is Side.BUY and held >= 0 and not whole:
        notional = (size if wanted.size.money else size * price).quantize(CENT, ROUND_DOWN)
        if notional < SMALLEST_ORDER:
            raise UsageError(f"{notional} is less than the smallest order, {SMALLEST_ORDER}")
        return order(notional=notional)
    step, most = ONE if whole else step, price * OVERNIGHT if wanted.side is Side.BUY else price
    quantity = in_steps(size / most if wanted.size.money else size, step)
    if not quantity or (not wanted.size.money and quantity != size):
        what = "whole shares" if whole else f"steps of {plain(step)} shares"
        raise UsageError(f"{wanted.symbol}: {plain(size)} is less than {what}, the smallest unit traded")
    return order(quantity=quantity)


def own_refusal(order: Order, power: BuyingPower, price: Decimal, *, floor: Decimal) -> str:
    """The limit that an operator's order would cross at a price, beside what is open, in a sentence; empty for none. It
    never sells short, and buys back no more than is short."""
    short = -power.held.get(order.symbol, ZERO)
    if order.side is Side.BUY and short > 0:
        wanted = order.quantity or ZERO
        return "" if wanted <= short else f"it would buy {plain(wanted)} shares, and {plain(short)} are short"
    return shortfall(order, power, price, floor=floor, allow_short=False)


def edit_of(order: Order, size: OrderSize, price: Decimal) -> Edit:
    """The edit that gives an order another size, in the unit that the order has: shares become an amount, and an amount
    shares, at `price`. Raises UsageError for a size that cannot be traded."""
    wanted = size.number
    _check_size(wanted, ": a veto keeps it from being sent")
    value = wanted if size.money else wanted * price
    if value < SMALLEST_ORDER:
        raise UsageError(f"{value:.2f} is less than the smallest order, {SMALLEST_ORDER}")
    if order.notional is not None:
        return Edit(order.id, notional=value.quantize(CENT, ROUND_DOWN))
    assert order.quantity is not None  # it has one of the two
    whole = order.quantity == order.quantity.to_integral_value()
    quantity = (wanted / price if size.money else wanted).quantize(ONE if whole else SHARE_STEP, ROUND_DOWN)
    if not quantity or (not size.money and quantity != wanted):
        step = "whole shares" if whole else f"steps of {SHARE_STEP} shares"
        raise UsageError(f"{order.symbol}: {plain(wanted)} is less than {step}, the smallest unit of this order")
    return Edit(order.id, quantity=quantity)


def _check_size(size: Decimal, otherwise: str = "") -> None:
    if not size.is_finite() or size <= 0:
        raise UsageError(f"an order needs a size above zero, not {size}{otherwise}")
    if size > LARGEST_SIZE:
        raise UsageError(f"{size:.3g} exceeds what any account can trade: give a size within cash or shares")
