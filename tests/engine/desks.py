"""Small markets and desks for tests: a calendar of weekdays, hand-made bars, models that answer from a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.agents.ask import Asker
from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import Action, Outcome
from engine.domain.market import ActionKind, Bar, CorporateAction, Filing, NewsItem, PriceHistory, is_crypto
from engine.domain.model_call import AnswerRecord, FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.domain.order import Fill, Side
from engine.domain.run import ExecutionRules, Result, RunPart, RunSpec
from engine.lab.backtest import BacktestContext, run_agents
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, ExchangeCalendar
from engine.messages.events import Event
from engine.ports import Calendar, LanguageModel
from engine.preset import Preset, load_preset
from engine.session.recorder import Recorder

EXAMPLE_CASH = Decimal(100_000)
FREE = ExecutionRules(slippage_bp=Decimal(0))
"""A market without costs."""


def weekdays(
    first: date = date(2022, 12, 1),
    last: date = date(2024, 12, 31),
    holidays: Sequence[date] = (),
    early: Sequence[date] = (),
) -> ExchangeCalendar:
    """Monday to Friday, 14:30 to 21:00 UTC, to 18:00 on early closes."""
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    days = [d for d in days if d.weekday() < 5 and d not in holidays]

    def at(day: date, hour: int, minute: int = 0) -> int:
        return int(datetime.combine(day, time(hour, minute, tzinfo=UTC)).timestamp())

    return ExchangeCalendar(
        "XNYS",
        tuple(d.toordinal() for d in days),
        tuple(at(d, 14, 30) for d in days),
        tuple(at(d, 18 if d in early else 21) for d in days),
    )


WEEKDAYS = weekdays()


def bar(session: date, opened: Any, close: Any, adjusted: Any = None, volume: Any = 1000) -> Bar:
    """A bar whose high and low are its open and its close."""
    low, high = sorted((Decimal(str(opened)), Decimal(str(close))))
    return Bar(
        session=session,
        open=Decimal(str(opened)),
        high=high,
        low=low,
        close=Decimal(str(close)),
        adj_close=None if adjusted is None else Decimal(str(adjusted)),
        volume=None if volume is None else Decimal(volume),
    )


def bars(symbol: str, sessions: Sequence[date], prices: Sequence[tuple[Any, Any] | Any]) -> PriceHistory:
    """Bars from closes, or from pairs of open and close."""
    pairs = (price if isinstance(price, tuple) else (price, price) for price in prices)
    rows = [bar(day, opened, close, close, 1_000_000) for day, (opened, close) in zip(sessions, pairs, strict=True)]
    return PriceHistory.of(symbol, rows)


def market_of(
    histories: Mapping[str, PriceHistory],
    actions: Mapping[str, Sequence[CorporateAction]] | None = None,
    news: Mapping[str, Sequence[NewsItem]] | None = None,
    filings: Mapping[str, Sequence[Filing]] | None = None,
    calendar: ExchangeCalendar = WEEKDAYS,
) -> Market:
    """A market of hand-made parts; coins trade around the clock."""
    calendars: dict[str, Calendar] = {s: AroundTheClock() if is_crypto(s) else calendar for s in histories}
    known = {s: (actions or {}).get(s, ()) for s in histories}
    return Market(histories=histories, actions=known, news=news or {}, filings=filings or {}, calendars=calendars)


def fill(symbol: str, side: Side, session: date, quantity: str, price: str, **more: Any) -> Fill:
    """A trade without a fee."""
    fields = {"order_id": "o", "quantity": Decimal(quantity), "price": Decimal(price)} | more
    return Fill(symbol=symbol, side=side, session=session, **fields)


def outcome(decided: date, session: date, reward: str = "0", **more: Any) -> Outcome:
    """The outcome of a purchase of 5 % of AAA at 100 that the desk decided."""
    fields = {"symbol": "AAA", "owner": "desk", "action": Action.BUY, "size": Decimal(5), "close": Decimal(100)}
    fields |= {"reward": Decimal(reward), "cumulative": Decimal(reward), "key_factors": ""}
    return Outcome(decision_session=decided, session=session, **fields | more)


def split(symbol: str, day: date, ratio: str) -> CorporateAction:
    """A split of so many new shares per old one."""
    return CorporateAction(symbol, day, ActionKind.SPLIT, Decimal(ratio))


def dividend(symbol: str, day: date, per_share: str) -> CorporateAction:
    """A cash dividend."""
    return CorporateAction(symbol, day, ActionKind.DIVIDEND, Decimal(per_share))


Script = Callable[[ModelRequest], Any]
"""What a model says to a request: a mapping (an answer), a ModelResult, or None (nothing comes)."""


class RulesExcept:
    """A model that answers as another does, but for what a subclass changes."""

    spec = "offline"
    label = "a model that was made for this test"
    sees = True

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        return self.changed(request, await self._inner.answer(request, on_delta))

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        """The result that is given in place of the other model's."""
        raise NotImplementedError


class ScriptedModel:
    """Answers by a script; keeps what it was asked."""

    spec = "scripted"
    label = "a script"
    sees = True

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        self.requests.append(request)
        said = self.script(request)
        if isinstance(said, ModelResult):
            return said
        if said is None:
            return ModelResult(model="scripted", failure=ModelFailure(FailureKind.CUT_OFF, "nothing came"))
        return ModelResult(model="scripted", answer=said, text=json.dumps(said, default=str))


def trade(request: ModelRequest, action: str, size: int, rule: str, **more: Any) -> dict[str, Any]:
    """A decision's answer."""
    return {
        "symbol": request.symbol,
        "recommendation": action,
        "position_size": size,
        "rule": rule,
        "explanation": "By the script.",
    } | more


def hold(request: ModelRequest) -> dict[str, Any]:
    """The answer that changes nothing."""
    return trade(request, "HOLD", 0, "uncertainty")


class Kept(Recorder):
    """A recorder that keeps what it was told."""

    def __init__(self) -> None:
        self.verdicts: list[CycleResult] = []
        self.outcomes: list[Any] = []
        self.parts: list[str] = []

    def began(self, part: str, initial_value: Decimal) -> None:
        self.parts.append(part)

    def decided(self, turn: Turn, result: CycleResult, books: object = None) -> None:
        self.verdicts.append(result)

    def learned(self, rows: Sequence[Any]) -> None:
        self.outcomes += rows


@dataclass
class Played:
    """A run with everything that it said."""

    result: Result
    kept: Kept
    model: ScriptedModel
    events: list[Event] = field(default_factory=list)
    answers: list[AnswerRecord] = field(default_factory=list)


DECISION_ONLY = load_preset("finvision").without(("news", "chart", "performance-reflection", "signal-reflection"))


async def play(
    market: Market,
    first: date,
    last: date,
    script: Script,
    *,
    preset: Preset = DECISION_ONLY,
    rules: ExecutionRules = FREE,
    cash: Decimal = EXAMPLE_CASH,
    warm_up_from: date | None = None,
    symbols: Sequence[str] = (),
    stop: Callable[[], bool] = lambda: False,
    model: ScriptedModel | None = None,
) -> Played:
    """Runs the agents over a market."""
    chosen = tuple(symbols) or tuple(market.histories)
    spec = RunSpec(symbols=chosen, first=first, last=last, warm_up_from=warm_up_from, preset=preset.name)
    kept, answering = Kept(), model or ScriptedModel(script)
    played = Played(Result(spec=spec, test=RunPart(initial_value=cash)), kept, answering)
    asker = Asker({"default": answering}, {}, played.answers.append, lambda asked, text: None)
    context = BacktestContext(
        spec=spec,
        desk="test",
        market=market,
        clock=BacktestClock(datetime(2000, 1, 1, tzinfo=UTC)),
        cycle=Cycle(preset, asker, market.calendars, played.events.append),
        rules=rules,
        cash=cash,
        publish=played.events.append,
        recorder=kept,
        stop=stop,
    )
    played.result = await run_agents(context)
    return played


def cents(amount: Fraction) -> Fraction:
    """Rounded to the cent, half to even."""
    return Fraction(round(amount * 100), 100)


def assert_books_add_up(run_part: RunPart, market: Market, fractional: bool = True, *, shorts: bool = False) -> None:
    """Follows cash and shares from the trades, the cash flows and the splits alone, in fractions: at every close they
    are the books', and cash plus shares at that close is the value, to the cent. Nothing is held below zero without
    `shorts`."""
    cash, shares = Fraction(run_part.initial_value), dict.fromkeys(market.histories, Fraction(0))
    fills, flows = list(run_part.fills), list(run_part.cash_flows)
    begun = None
    for point in run_part.equity:
        day = point.session
        for symbol, known in market.actions.items():
            for action in known or ():
                due = action.ex_date == day if begun is None else begun < action.ex_date <= day
                if due and action.kind is ActionKind.SPLIT:
                    exact = shares[symbol] * Fraction(action.value)
                    step = Fraction(1, 10**9) if fractional else Fraction(1)
                    shares[symbol] = int(exact / step) * step
        while flows and flows[0].session <= day:
            assert flows[0].session == day
            cash += Fraction(flows.pop(0).amount)
        while fills and fills[0].session <= day:
            fill = fills.pop(0)
            assert fill.session == day
            sign = 1 if fill.side is Side.BUY else -1
            cash -= sign * cents(Fraction(fill.quantity) * Fraction(fill.price)) + Fraction(fill.fee)
            shares[fill.symbol] += sign * Fraction(fill.quantity)
            assert shorts or shares[fill.symbol] >= 0, f"{fill.symbol} was sold short on {day}"
        assert shorts or cash >= 0
        assert Fraction(point.portfolio.cash) == cash
        assert {s: Fraction(p.quantity) for s, p in point.portfolio.positions.items()} == {
            s: q for s, q in shares.items() if q
        }
        held = Fraction(0)
        for symbol, quantity in shares.items():
            if quantity:
                history = market.histories[symbol]
                close = history.bar(history.rows_through(day) - 1).close
                assert point.prices[symbol] == close
                held += quantity * Fraction(close)
        assert Fraction(point.value) == cash + cents(held)
        begun = day
    assert not fills
    assert not flows


def told(run_part: RunPart) -> RunPart:
    """A stretch without what names its run, so that two runs can be compared."""
    return replace(run_part, decisions=tuple(replace(d, key=replace(d.key, run="")) for d in run_part.decisions))
