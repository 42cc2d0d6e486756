"""The trail of a decision, as `paperdesk why` prints it: what led to it, what the limits changed, what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.domain.chart import ChartSpec
from engine.domain.decision import Action, Debate, Decision, DecisionKey, Outcome, RoundAdvice
from engine.domain.model_call import AnswerRecord, ModelKind
from engine.errors import MissingData
from engine.journal.entries import OrderEntry, Recalled, Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.reports.card import card, is_listed, results
from engine.reports.documents import row_json
from engine.reports.documents.closes import CloseAfter, SymbolCloses, result_of
from engine.reports.documents.reasons import dissent_row, reason_rows
from engine.reports.documents.records import Records, nearest
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changed_since

if TYPE_CHECKING:
    from engine.market.as_of import MarketAsOf

TRADED = ("session", "symbol", "side", "quantity", "price")
"""Fields by which a trade is told from others."""
QUESTION = ("agent", "view", "attempt", "outcome", "reason", "answer", "prompt_hash", "prompt_version", "system")


def decided(records: Records, symbol: str, session: date) -> Sequence[Decision]:
    """The decisions for a symbol in its latest run of that session, one per owner. Raises MissingData that names the
    symbols, or the sessions, for which there are decisions."""
    if records.reader is None:
        raise MissingData(f"no decision for {symbol} on {session}: {records.absence}")
    reader, run = records.reader, records.run
    name = symbol if reader.decisions(run, symbol) else symbol.upper()
    made = reader.decisions(run, name, session, session)
    if made:
        last = made[-1].key
        return [one for one in made if (one.key.run, one.key.cycle) == (last.run, last.cycle)]
    known = sorted({one.key.session for one in reader.decisions(run, name)})
    if not known:
        symbols = ", ".join(dict.fromkeys(one.key.symbol for one in reader.decisions(run))) or "no symbol"
        raise MissingData(f"no decision for {name} in {records.title}; available: {symbols}")
    raise MissingData(f"no decision for {name} on {session} in {records.title}: {nearest(known, session)}")


def latest(records: Records, symbol: str) -> Sequence[Decision]:
    """The decisions of the last cycle for a symbol, one per owner. Raises MissingData where there is none."""
    made = () if records.reader is None else records.reader.decisions(records.run, symbol)
    if not made:
        runs = () if records.reader is None else records.reader.runs()
        decided = dict.fromkeys(one for run in runs for one in run.symbols)
        if decided and symbol not in decided:
            raise MissingData(f"{symbol} is not one of the desk's symbols: {', '.join(decided)}")
        raise MissingData(f"no decision for {symbol} yet: run a cycle first")
    last = made[-1].key
    return [
        one for one in made if (one.key.run, one.key.session, one.key.cycle) == (last.run, last.session, last.cycle)
    ]


def latest_of_run(records: Records, run: str) -> Decision:
    """The last decision of a run of the records. Raises MissingData where it made none."""
    made = () if records.reader is None else records.reader.decisions(run)
    if not made:
        raise MissingData(f"the run {run} has decided nothing")
    return made[-1]


def decided_trade(records: Records, trade: Row) -> Decision:
    """The decision that led to a trade of a run, which is as `row_json.trade` prints it. Raises MissingData for a trade
    that no decision led to."""
    reader, wanted = records.required, {name: trade[name] for name in TRADED}
    orders = {entry.order.id: entry for entry in reader.orders(records.run, trade["symbol"])}
    fills = (fill for fill in reader.fills(records.world, part=records.part) if fill.order_id in orders)
    entry = next((orders[one.order_id] for one in fills if row_json.fields(one, *TRADED) == wanted), None)
    made = None if entry is None else _decision_of(reader, entry)
    if made is None:
        raise MissingData(f"no decision led to this trade: {trade['reason'] or 'its order is not on record'}")
    return made


def decided_order(records: Records, symbol: str, order: str) -> Decision:
    """The decision that an order of the records rests on, by its id. Raises MissingData where none led to it."""
    reader = records.required
    entry = next((one for one in reader.orders(records.run, symbol) if one.order.id == order), None)
    made = None if entry is None else _decision_of(reader, entry)
    if made is None:
        raise MissingData(f"no decision led to this order in {symbol}")
    return made


def _decision_of(reader: JournalReader, entry: OrderEntry) -> Decision | None:
    order = entry.order
    made = reader.decisions(entry.run, order.symbol, order.session, order.session)
    return next((one for one in made if one.key.cycle == entry.cycle and order.book in ("", one.book)), None)


def why_document(
    records: Records, made: Sequence[Decision], charts: Iterable[str] = (), market: MarketAsOf | None = None
) -> Row:
    """The trails of some decisions of one symbol and session; `charts` are files that were painted of them, closes are
    those of `market`. Earlier cycles of the session are named."""
    reader, key = records.required, made[0].key
    run = row_json.run(reader.run(key.run))
    return {
        **records.head,
        "run": key.run,
        **row_json.fields(key, "symbol", "session"),
        **{name: run[name] for name in ("label", "name", "decider")},
        "decisions": [trail_row(trail(reader, one.key), market) for one in made],
        "charts": list(charts),
        "changed": None if records.is_backtest else changed_since(reader, key.run),
        "earlier_cycles": _earlier(records, reader, key),
    }


def charts_shown(records: Records, made: Sequence[Decision]) -> list[ChartSpec]:
    """Every chart that a question for the decisions showed, in order, once. Raises MissingData where none did."""
    answers = (answer for one in made for answer in records.required.answers(one.key))
    charts = list(dict.fromkeys(chart for answer in answers for chart in answer.charts))
    if not charts:
        raise MissingData("no agent was shown a chart for this decision: leave out --chart")
    return charts


def trail_row(shown: Trail, market: MarketAsOf | None = None) -> Row:
    """One decision with everything that led to it and came of it; without a market the closes since are those of the
    books."""
    made = shown.decision
    closes = SymbolCloses.of(market, made.key.symbol, shown.closes)
    return {
        **row_json.decision(made, shown.opinions),
        **row_json.fields(made.key, "run", "cycle"),
        "asked": _asked(made),
        "cuts": [row_json.fields(cut, "rule", "asked", "allowed", "reason") for cut in made.cuts],
        **row_json.fields(made, "unresolved_figures", "evidence"),
        "reasons": reason_rows(shown),
        "dissent": dissent_row(shown),
        "recollections": [_recollection(one) for one in shown.recalled],
        "answers": [_answer(answer) for answer in shown.answers],
        **({"debate": debate_row(shown.debate, closes.after(made.key.session))} if shown.debate is not None else {}),
        "unanswered": [
            {
                "owner": entry.key.owner,
                "agent": entry.agent,
                **row_json.fields(entry.call, "model", "kind", "attempt", "detail", "input_tokens", "output_tokens"),
                **row_json.fields(entry.call, "estimated", "cost", "latency"),
            }
            for entry in shown.unanswered
        ],
        "orders": [_order(entry, shown) for entry in shown.orders],
        "undecided_trades": [row_json.trade(fill) for fill in shown.undecided],
        "outcome": _outcome(shown.outcome),
        "close": _close(shown, closes),
        "closes_since": [_since(made, one) for one in closes.after(made.key.session)],
        "to_date": None if (newest := closes.latest(made.key.session)) is None else _since(made, newest),
    }


def with_cards(reader: JournalReader, document: Mapping[str, Any]) -> Row:
    """The document of a result whose decisions, those that its page lists, have a `card`: the short form of the trail
    with its results by the closes of the document."""
    sessions = [date.fromisoformat(point["session"]) for point in document["equity"]]
    closes = {
        symbol: tuple((day, Decimal(close)) for day, close in zip(sessions, known, strict=True) if close is not None)
        for symbol, known in document["closes"].items()
    }
    made = {_place(row_json.fields(one.key, *_PLACE)): one for one in reader.decisions()}

    def carded(one: Row) -> Row:
        found = made.get(_place(one)) if is_listed(one) else None
        if found is None:
            return one
        row = trail_row(replace(trail(reader, found.key), closes=closes.get(found.key.symbol, ())))
        return {**one, "card": [*card(row), *results(row)]}

    return {**document, "decisions": [carded(one) for one in document["decisions"]]}


_PLACE = ("session", "symbol", "owner")


def _place(one: Row) -> tuple[str, ...]:
    return tuple(str(one[name]) for name in _PLACE)


def _since(made: Decision, later: CloseAfter) -> Row:
    return {
        "sessions": later.sessions,
        "session": str(later.session),
        "close": float(later.close),
        "change": later.change,
        "result": result_of(made.action, later.change),
    }


def _asked(made: Decision) -> Row:
    """The trade that was asked for; `whole` where no size was named, and all cash or all shares were to be traded."""
    proposal, size = made.proposal, made.requested_size
    whole = proposal.action in (Action.BUY, Action.SELL) and not proposal.size
    return {
        **row_json.fields(proposal, "action", "rule"),
        "size": int(size) if size == int(size) else float(size),
        "whole": whole,
    }


def _earlier(records: Records, reader: JournalReader, key: DecisionKey) -> list[Row]:
    """The cycles that decided for the symbol before in the session; a backtest has none."""
    if records.is_backtest:
        return []
    made = reader.decisions(records.run, key.symbol, key.session, key.session)
    others = {one.key.run: one.key.cycle for one in made if one.key.cycle < key.cycle}
    return [{"run": run, "cycle": cycle} for run, cycle in others.items()]


def _close(shown: Trail, closes: SymbolCloses) -> float | None:
    """The close of the decision's session; that of the chart where neither market nor books know it."""
    session = shown.decision.key.session
    if session in closes.closes:
        return float(closes.closes[session])
    charts = (chart for answer in shown.answers for chart in answer.charts if chart.candles is not None)
    return next((c.candles.close[-1] for c in charts if c.candles and c.sessions[-1] == session.isoformat()), None)


def _recollection(one: Recalled) -> Row:
    names = ("id", "handle", "kind", "layer", "session", "recency", "relevancy", "importance", "score", "rank", "types")
    return {**row_json.fields(one, "owner", "cited"), **row_json.fields(one.memory, *names, "text")}


def _answer(answer: AnswerRecord) -> Row:
    """A call of a model; `text` is what came instead of a valid answer."""
    result = answer.result
    counted = result.usage.counted or result.model == ModelKind.OFFLINE
    return {
        "owner": answer.key.owner,
        **row_json.fields(answer, *QUESTION),
        "text": "" if answer.outcome == "answered" else result.text,
        **row_json.fields(result, "model", "cached", "latency", "notes"),
        **(row_json.fields(result.usage, *row_json.TOKENS) if counted else dict.fromkeys(row_json.TOKENS)),
        "cost": None if result.cost is None else str(result.cost),
        "charts": [chart.title for chart in answer.charts],
        "charts_seen": answer.seen,
        "messages": [row_json.fields(message, "role", "text") for message in answer.messages],
    }


def _order(entry: OrderEntry, shown: Trail) -> Row:
    return {
        **row_json.order(entry.order, entry.decided),
        "moves": [
            row_json.fields(move, "time", "state", "detail") for move in shown.moves if move.order_id == entry.order.id
        ],
        "fills": [row_json.trade(fill) for fill in shown.fills if fill.order_id == entry.order.id],
    }


def _outcome(outcome: Outcome | None) -> Row | None:
    if outcome is None:
        return None
    rewards = {"reward": float(outcome.reward), "cumulative": float(outcome.cumulative)}
    return {**row_json.fields(outcome, "session", "close"), **rewards}


def debate_row(debate: Debate, closes: Sequence[CloseAfter]) -> Row:
    """A debate. An owner's results are what its last advice gained or avoided by each of the closes after the decision,
    as fractions; None for a hold and for an abstention."""
    owners = dict.fromkeys(one.owner for one in debate.advice)
    return {
        **row_json.fields(debate, "decides", "ended", "rounds"),
        "owners": [_owner(debate, owner, closes) for owner in owners],
        "comments": [
            row_json.fields(one, "round", "author", "receiver", "stance", "text", "about") for one in debate.comments
        ],
    }


def _owner(debate: Debate, owner: str, closes: Sequence[CloseAfter]) -> Row:
    advice = debate.of(owner)
    last = advice[-1].advice
    side = 0 if last is None else (last.level > 0) - (last.level < 0)
    return {
        "owner": owner,
        "changed": debate.changed(owner),
        "advice": [_advice(one) for one in advice],
        "results": [
            {"sessions": one.sessions, "session": str(one.session), "result": side * one.change if side else None}
            for one in closes
        ],
    }


def _advice(one: RoundAdvice) -> Row:
    return {
        **row_json.fields(one, "round", "advice", "trade", "reason"),
        "confidence": None if one.confidence is None else float(one.confidence),
    }
