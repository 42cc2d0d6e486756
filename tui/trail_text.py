"""The trail of one decision as text for a screen: what stands, who said what, what the limits changed, what came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from textual.content import Content

from engine.domain.decision import Decision
from engine.journal.entries import AnswerEntry, Trail
from engine.session.cost_meter import in_words
from tui import amounts
from tui.plain_text import beginning, one_line, printable
from tui.widgets.agent_panes import model_name, worded

_QUIET = "$foreground 55%"
_ACTIONS = {"BUY": "bold $success", "SELL": "bold $error-lighten-1", "HOLD": "bold", "ABSTAIN": "bold $warning"}
_SINCE = (1, 5, 20)
_SHOWN = 160
"""Characters of a memory that are shown."""

Part = str | tuple[str, str] | Content


def trail_text(trail: Trail) -> Content:
    """The whole story, first what stands, then how it came about, then what came of it."""
    parts: list[Part] = [
        *_verdict(trail.decision),
        *_memories(trail),
        *_words(trail),
        *_limits(trail.decision),
        *_orders(trail),
    ]
    parts += _since(trail)
    return Content.assemble(*parts)


def prompts_text(answers: Sequence[AnswerEntry]) -> Content:
    """What each agent was asked, word for word."""
    parts: list[Part] = []
    for answer in answers:
        parts.append(
            (f"{_step(answer)}, call {answer.attempt}, to {model_name(answer.result.model)}\n", "bold $primary")
        )
        parts += [("system\n", _QUIET), printable(answer.system), "\n"]
        for message in answer.messages:
            charts = f", {len(message.charts)} chart" if message.charts else ""
            parts += [(f"{message.role}{charts}\n", _QUIET), printable(message.text), "\n"]
        parts.append("\n")
    return Content.assemble(*parts) if parts else Content("No agent was asked for this decision.")


def _decided_when(session: date, cycle: int) -> str:
    """When a decision was taken: after a close, or in a later cycle within the session that followed."""
    after = f"after the close of {session}"
    return after if cycle <= 1 else f"in cycle {cycle}, within the session {after}"


def _heading(text: str) -> Part:
    return (f"\n\n{text}\n", "bold $primary")


def _verdict(decision: Decision) -> list[Part]:
    key, size = decision.key, amounts.size(decision.size)
    parts: list[Part] = [
        (f"{key.symbol}  ", "bold"),
        (decision.action.value, _ACTIONS[decision.action.value]),
        f" {size} % of the portfolio" if size else "",
        (
            f"\ndecided by {one_line(key.owner)} {_decided_when(key.session, key.cycle)}, run {one_line(key.run)}\n",
            _QUIET,
        ),
        "\n",
        Content(printable(decision.reason).strip() or "no reason was given"),
    ]
    if decision.unresolved_figures:
        listed = ", ".join(one_line(figure) for figure in decision.unresolved_figures)
        parts.append((f"\nfigures that stand nowhere in what it read: {listed}", "$warning"))
    return parts


def _memories(trail: Trail) -> list[Part]:
    if not trail.recalled:
        return []
    parts: list[Part] = [_heading("What memory brought")]
    for n, one in enumerate(trail.recalled):
        memory = one.memory
        place = f"{memory.handle}  {memory.layer} {memory.rank}, {one_line(memory.kind)} of {memory.session}"
        parts += ["\n" if n else "", (place, "bold" if one.cited else ""), (", cited" if one.cited else "", "$success")]
        parts += [(f"\n{amounts.recalled(memory)}\n", _QUIET), beginning(memory.text, _SHOWN)]
    return parts


def _words(trail: Trail) -> list[Part]:
    parts: list[Part] = [_heading("What each agent said")]
    if not trail.answers:
        parts.append(("nobody was asked", _QUIET))
    for n, answer in enumerate(trail.answers):
        parts.append("\n\n" if n else "")
        ink = "bold" if answer.outcome == "answered" else "bold $warning"
        parts += [(_step(answer), ink), (f"  {_facts(answer)}\n", _QUIET)]
        if answer.answer is not None:
            parts.append(worded(_said(answer, trail.decision.reason)))
        else:
            parts.append((f"{answer.outcome}: {one_line(answer.reason)}", "$warning"))
    return parts


def _step(answer: AnswerEntry) -> str:
    return one_line(answer.agent)


def _facts(answer: AnswerEntry) -> str:
    result = answer.result
    tokens = result.usage.input_tokens + result.usage.output_tokens
    parts = [model_name(one_line(result.model)), f"{tokens:,} tok" if tokens else ""]
    parts.append("recorded" if result.cached else f"{result.latency:.1f}s")
    parts.append(amounts.cost(result.cost) if result.cost is None or result.cost else "")
    parts.append("" if answer.seen or not answer.charts else "read its chart as figures")
    return "  ".join(part for part in parts if part)


def _said(answer: AnswerEntry, reason: str) -> str:
    """A checked answer as `field: value` lines; the explanation that stands above already is left out."""
    fields = {k: v for k, v in (answer.answer or {}).items() if v != reason}
    return printable(in_words(fields))


def _limits(decision: Decision) -> list[Part]:
    parts: list[Part] = [_heading("What the limits changed")]
    asked = decision.proposal
    wish = f"{asked.action.value}{f' {asked.size} %' if asked.size else ''}"
    rule = f" by the rule '{asked.rule.value}'" if asked.rule else ""
    parts.append(f"asked for {wish}{rule}\n")
    if not decision.cuts:
        parts.append(("nothing was changed", _QUIET))
    for n, cut in enumerate(decision.cuts):
        words = f"{cut.asked.normalize():f} to {cut.allowed.normalize():f} %: {one_line(cut.reason)}"
        parts += ["\n" if n else "", (words, "$warning")]
    return parts


def _orders(trail: Trail) -> list[Part]:
    parts: list[Part] = [_heading("Order and fill")]
    if not trail.orders:
        return [*parts, ("no order", _QUIET)]
    for entry in trail.orders:
        order = entry.order
        much = f"{order.quantity.normalize():f} shares" if order.quantity is not None else amounts.money(order.notional)
        parts.append(f"{order.side.value} {much}, {order.state.value}  ")
        moves = [move for move in trail.moves if move.order_id == order.id]
        parts.append((" > ".join(move.state.value for move in moves), _QUIET))
        for fill in trail.fills:
            if fill.order_id == order.id:
                fee = f", fee {amounts.money(fill.fee)}" if fill.fee else ""
                parts.append(
                    f"\nfilled {amounts.quantity(fill.quantity)} at {amounts.price(fill.price)} on {fill.session}{fee}"
                )
    return parts


def _since(trail: Trail) -> list[Part]:
    parts: list[Part] = [_heading("Since then")]
    session = trail.decision.key.session
    closes = [close for day, close in trail.closes if day > session]
    start = next((close for day, close in trail.closes if day == session), None)
    if trail.outcome is not None:
        reward = float(trail.outcome.reward)
        parts += [("earned the portfolio ", ""), (amounts.percent(reward), _ink(reward)), " in its session\n"]
    if start is None or not closes:
        return [*parts, ("the books know no later close yet", _QUIET)]
    for sessions, day, close in _points(trail.closes, session, closes):
        change = float(close / start - 1)
        parts += [(f"{sessions:>3} sessions  {day}  ", _QUIET), f"{amounts.price(close):>10}  "]
        parts.append((f"{amounts.percent(change)}\n", _ink(change)))
    return parts


def _points(
    known: Sequence[tuple[date, Decimal]], session: date, closes: Sequence[Decimal]
) -> list[tuple[int, date, Decimal]]:
    days = [day for day, _ in known if day > session]
    wanted = sorted({n for n in _SINCE if n <= len(closes)} | {len(closes)})
    return [(n, days[n - 1], closes[n - 1]) for n in wanted]


def _ink(change: float) -> str:
    return "$success" if change > 0 else "$error-lighten-1" if change < 0 else ""
