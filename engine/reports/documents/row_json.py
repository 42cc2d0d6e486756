"""Decisions, orders, trades, books and events as JSON: one form each, wherever they are printed.

Money, prices and quantities are decimal strings; what is not known is null.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from shlex import join
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine.domain.brokerage import Difference
from engine.domain.decision import DESK, Decision, Opinion
from engine.domain.json_text import plain_of
from engine.domain.order import YOU, Fill, Order, is_own
from engine.domain.run import CashFlow, EquityPoint, ModelUse
from engine.domain.text import counted, money, plain
from engine.messages.events import DecisionMade, Event, OpinionFormed, OrderFilled, OrderMoved, SessionSettled, to_plain
from engine.reports.amounts import cost, number

if TYPE_CHECKING:
    from engine.execution.controls import Halted, Paused
    from engine.journal.entries import RunEntry

Row = dict[str, Any]
"""JSON's own types only."""

TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")

FULL_PRICE = frozenset({None, "", "default", "standard"})
"""Tiers of vendors that nobody has to be told."""
EXACT = frozenset({"quantity", "asked", "allowed", "before", "after"})
"""Fields whose decimals are written as they are; all others are money, with two decimals at least."""


def fields(value: object, *names: str) -> Row:
    """Fields of a value under their own names (all of a dataclass where none are named), in JSON's own types."""
    return {name: _plain(name, getattr(value, name)) for name in names or value.__dataclass_fields__}  # type: ignore[attr-defined]


def _plain(name: str, value: object) -> object:
    if isinstance(value, Decimal):
        return plain(value) if name in EXACT else money(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(name, one) for one in value]
    return fields(value) if is_dataclass(value) else value


def trade(fill: Fill) -> Row:
    """A trade; `session` is where it filled, `owner` the one in whose book (the desk's own where it has one), or who
    ordered it by hand."""
    known = fields(fill, "session", "symbol", "side", "quantity", "price", "fee", "reason")
    return {**known, "owner": YOU if is_own(fill.order_id) else fill.book or DESK}


def desk_fill(fill: Fill) -> Row:
    """A trade of a desk: `filled_at` is when, UTC; null where it was booked by a program that did not keep it."""
    return {**trade(fill), "filled_at": fill.time and fill.time.isoformat()}


def cash_flow(flow: CashFlow) -> Row:
    """Cash that moved without a trade."""
    return fields(flow, "session", "symbol", "kind", "amount")


_quantity = lru_cache(maxsize=4096)(plain)  # a position is the same close after close


def point(at: EquityPoint) -> Row:
    """The books at a session's close."""
    positions = {
        symbol: {"quantity": _quantity(position.quantity), "price": money(at.prices[symbol])}
        for symbol, position in sorted(at.portfolio.positions.items())
    }
    return {**fields(at, "session", "value"), "cash": money(at.portfolio.cash), "positions": positions}


def closes(
    points: Sequence[EquityPoint], symbols: Iterable[str], beside: Iterable[EquityPoint] = ()
) -> dict[str, list[str | None]]:
    """The price of each symbol at each close, as traded; null where neither these books knew one nor those `beside`."""
    others = {at.session: at.prices for at in beside}
    found: dict[str, list[str | None]] = {symbol: [] for symbol in symbols}
    for at in points:
        known = {**others.get(at.session, {}), **at.prices}
        for symbol, row in found.items():
            row.append(money(known[symbol]) if symbol in known else None)
    return found


def decisions(made: Iterable[Decision], opinions: Iterable[Opinion]) -> list[Row]:
    """Decisions, each with the opinions that it rests on."""
    found: defaultdict[tuple[object, ...], list[Opinion]] = defaultdict(list)
    for one in opinions:
        found[one.key.run, one.key.session, one.key.cycle, one.key.symbol].append(one)
    return [decision(one, found[one.key.run, one.key.session, one.key.cycle, one.key.symbol]) for one in made]


def opinion(one: Opinion) -> Row:
    """An owner's opinion before it was combined and limited; `size` in percent of the portfolio."""
    return {
        "owner": one.key.owner,
        **fields(one, "action", "abstained", "reason"),
        "size": float(one.size),
        "confidence": None if one.confidence is None else float(one.confidence),
    }


def decision(made: Decision, opinions: Sequence[Opinion]) -> Row:
    """A decision with those of the opinions on its symbol that it rests on; `size` in percent of the portfolio."""
    return {
        **fields(made.key, "session", "symbol", "owner"),
        "action": made.action.value,
        "size": float(made.size),
        **fields(made, "abstained", "reason"),
        "cut": made.cut or None,
        "opinions": [opinion(one) for one in made.based_on(opinions)],
    }


def model_use(use: ModelUse, unresolved: Mapping[str, int] = MappingProxyType({})) -> Row:
    """The use of models, and its cost in USD; tokens are null where a service did not tell those of every call.
    `unresolved` are figures that stand in no source, by agent."""
    agents = {
        name: {**_used(part), "model": part.spec, "unresolved_figures": unresolved.get(name, 0)}
        for name, part in use.agents.items()
    }
    known = {name: getattr(use, name) or None for name in ("training_cutoff", "prices_as_of")}
    parts = {
        name: {key: _used(part) for key, part in sorted(getattr(use, name).items())} for name in ("models", "months")
    }
    return {"spec": use.spec, **_used(use), **known, "agents": agents, **parts}


def _used(use: ModelUse) -> Row:
    counted = dict.fromkeys(TOKENS) if use.uncounted_calls else fields(use.usage, *TOKENS)
    calls = fields(use, "calls", "cached_calls", "abstentions", "refusals", "repairs")
    return {
        **calls,
        **counted,
        "cached_share": _share(counted),
        **fields(use, "uncounted_calls", "preflight_calls", "failed_calls", "estimated_calls", "tier", "cost"),
    }


def _share(counted: Mapping[str, Any]) -> float | None:
    """The part of the input that vendors read from their caches; null where nothing was counted."""
    return counted["cached_input_tokens"] / counted["input_tokens"] if counted["input_tokens"] else None


def cutoff_words(use: Mapping[str, Any] | None) -> str:
    """The training cut-off of models, after a semicolon; empty for the rules."""
    until = use and use.get("training_cutoff")
    return f"; training cut-off {until}" if until else ""


def use_words(use: Mapping[str, Any]) -> str:
    """`12 calls (3 recorded), 1 without an answer, 2 repairs, 3,400 tokens in, 200 out, $0.02`, and the date of the
    prices where they are not the user's own."""
    cached = f" ({use['cached_calls']:,} recorded)" if use.get("cached_calls") else ""
    silent = f", {use['abstentions']:,} without an answer" if use.get("abstentions") else ""
    silent += f", {counted(use['repairs'], 'repair')}" if use.get("repairs") else ""
    dated = f", prices of {use['prices_as_of']}" if use.get("prices_as_of") else ""
    return f"{counted(use['calls'], 'call')}{cached}{silent}{spent_words(use)}{dated}"


def spent_words(use: Mapping[str, Any]) -> str:
    """Tokens, cost, and calls that failed, each after a comma."""
    told, failed = "", use.get("failed_calls")
    if use.get("input_tokens") or use.get("output_tokens"):
        held, thought = (use.get(f"{name}_tokens") for name in ("cached_input", "reasoning"))
        told = f", {counted(use['input_tokens'], 'token')} in" + (
            f" ({held:,} of them cached, {held / use['input_tokens']:.0%})" if held else ""
        )
        told += f", {use['output_tokens']:,} out" + (f" ({thought:,} of them reasoning)" if thought else "")
    elif use.get("input_tokens", 0) is None:
        told = ", tokens unknown"
    tier = use.get("tier")
    told += f", {cost(number(use['cost']))}" + ("" if tier in FULL_PRICE else f" at tier {tier}")
    told += f", {failed:,} more failed" if failed else ""
    return told + (
        f" ({use['estimated_calls']:,} of them estimated in tokens and cost)" if use.get("estimated_calls") else ""
    )


def breakdowns(use: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Calls, tokens and cost of each agent, and of each model and month where there are several, as pairs of a name and
    a value; nothing where nobody was asked who might charge for it."""
    if use["input_tokens"] == 0:
        return
    for title, part, least in (("By agent", "agents", 1), ("By model", "models", 2), ("By month", "months", 2)):
        asked = use.get(part) or {}  # a document of an older program has none
        if len(asked) >= least:
            yield title, "; ".join(_asked(name, own) for name, own in asked.items())


def _asked(name: str, use: Mapping[str, Any]) -> str:
    return f"{name} {counted(use['calls'] or use['preflight_calls'], 'call')}{spent_words(use)}"


def difference(one: Difference) -> Row:
    """A point in which journal and broker disagree; `difference` is how much more the broker has."""
    sides = {"journal": one.journal, "broker": one.broker, "difference": one.amount}
    known = {side: None if amount is None else plain(amount) for side, amount in sides.items()}
    return {"what": one.what} | known | {"note": one.note or None}


def order(entry: Order, decided: Order | None = None) -> Row:
    """An order in its present state; either `quantity` (shares) or `notional` (money, costs included) was asked for.
    `owner` is the operator, the owner whose book trades, or the desk; `edited_from` is its size before an operator
    edited it, null where none did."""
    known = fields(entry, "id", "session", "symbol", "side", "quantity", "notional", "state")
    known["owner"] = YOU if is_own(entry.id) else entry.book or DESK
    return known | {"edited_from": None if decided is None else fields(decided, "quantity", "notional")}


def run(entry: RunEntry) -> Row:
    """A run in its present state; `decider` is the kind of who decided, so that rules are never taken for a model."""
    names = ("id", "kind", "name", "label", "session", "started", "ended", "outcome", "detail")
    rules = entry.spec is not None and entry.spec.strategy is not None
    return {**fields(entry, *names), "decider": "strategy" if rules else "preset"}


def halt(stopped: Halted | Paused | None) -> Row | None:
    """A halt or a pause; None where there is none."""
    return None if stopped is None else fields(stopped, "since", "reason")


def held(at: EquityPoint) -> dict[str, Row]:
    """The positions at a close, by symbol; `gain` is the market value beyond the average cost."""
    found: dict[str, Row] = {}
    for symbol, position in sorted(at.portfolio.positions.items()):
        price = at.prices.get(symbol)
        found[symbol] = {
            "quantity": plain(position.quantity),
            "price": None if price is None else money(price),
            "average_cost": money(round(position.average_cost, 6)),
            "gain": None if price is None else money(round((price - position.average_cost) * position.quantity, 2)),
        }
    return found


def books(at: EquityPoint | None) -> Row:
    """Value, cash and positions at a close; null before the first."""
    if at is None:
        return {"value": None, "cash": None, "positions": {}}
    return {"value": money(at.value), "cash": money(at.portfolio.cash), "positions": held(at)}


def per_owner(points: Iterable[EquityPoint]) -> Row:
    """The owners' books at a close under `per_owner`; nothing where the desk has one book."""
    found = {point.book: books(point) for point in points if point.book}
    return {"per_owner": found} if found else {}


def event(one: Event) -> Row:
    """An event, flat: of the value that it is about what a log says. Decimals are written as they are; of the books
    `positions` are (symbol, quantity, price), `costs` their average costs, `brought` deposits less withdrawals."""
    match one:
        case OpinionFormed():
            said = _named(one.opinion.key, *_ABOUT) | _named(one.opinion, *_SAID)
        case DecisionMade():
            said = _named(one.decision.key, *_ABOUT) | _named(one.decision, *_SAID, "cut")
        case OrderMoved():
            known = _named(one.order, "session", "symbol", "side", "state")
            said = {"order_id": one.order.id, **known, "detail": one.detail}
        case OrderFilled():
            said = _named(one.fill, "order_id", "session", "symbol", "side", "quantity", "price", "fee")
        case SessionSettled():
            books = one.books
            owned = books.portfolio.positions
            said = {
                **_named(books, "session", "value"),
                "cash": books.portfolio.cash,
                "positions": [[symbol, position.quantity, books.prices[symbol]] for symbol, position in owned.items()],
                "brought": one.deposits,
                "costs": [position.average_cost for position in owned.values()],
            }
        case _:
            return to_plain(one)
    return {"type": type(one).__name__, **plain_of({"run": one.run, "time": one.time, **said})}


_ABOUT = ("session", "symbol", "owner")
_SAID = ("action", "size", "reason")


def _named(value: object, *names: str) -> Row:
    return {name: getattr(value, name) for name in names}


def minute(time: datetime) -> str:
    """A moment (UTC) to the minute, for a sentence."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def open_command(decision: Mapping[str, Any], *, run: str | None = None, desk: str | None = None) -> str:
    """The command that opens the app at a decision's trail, in a backtest by its id or in a desk by its name."""
    named = (("--run", run), ("--desk", desk))
    options = [text for flag, value in named if value is not None for text in (flag, value)]
    return join(["paperdesk", "open", f"{decision['symbol']}@{decision['session']}", *options])


_OF_AGENT = re.compile(r".+ \((?P<agent>[^()]+)\)")


def unresolved_by_agent(decisions: Iterable[Decision], use: ModelUse | None) -> Mapping[str, int]:
    """The number of unresolved figures of each agent, as far as decisions rest on them. A decision's own are of the
    agent that decides: of those that the run has asked the last one."""
    figures = [figure for made in decisions for figure in made.unresolved_figures]
    if not figures:
        return {}
    from engine.agents.registry import registered

    asked = {} if use is None else use.agents
    deciding = [agent.name for agent in registered().values() if agent.decides and agent.name in asked]
    named = (_OF_AGENT.fullmatch(figure) for figure in figures)
    return dict(Counter(one["agent"] if one else deciding[-1] if deciding else "decision" for one in named))
