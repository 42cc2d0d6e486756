"""A decision's trail as text, in the order in which a person asks: what, why, who said so, what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.decision import Decision
from engine.journal.entries import AnswerEntry, OrderEntry, Recalled, RunEntry, Trail
from engine.session.cost_meter import in_words
from tui import amounts
from tui.commands.run_text import decided_by, order_words, trade_words
from tui.commands.why import closes_since
from tui.console import Console
from tui.plain_text import beginning, one_line, printable
from tui.text_table import facts, wrapped

_WIDEST = 100


def trail_lines(trail: Trail, run: RunEntry, console: Console, prompts: bool) -> Iterator[str]:
    """The whole trail."""
    width = min(console.width, _WIDEST)
    made = trail.decision
    yield console.bold(f"{made.key.symbol}  {made.key.session}  {_headline(made)}")
    yield from facts(_decided(made, run), width)
    yield from _section("Why" if not made.abstained else "Why there was no decision", console)
    yield from _paragraph(made.reason, width)
    if made.unresolved_figures:
        figures = ", ".join(one_line(figure) for figure in made.unresolved_figures)
        yield from _paragraph(f"Figures that stand nowhere in what was given: {figures}", width)
    if trail.recalled:
        yield from _section("What memory brought", console)
        for one in trail.recalled:
            yield from _recalled(one, console, width)
    yield from _section("What the agents said", console)
    if not trail.answers:
        yield "  nobody was asked"
    for number, answer in enumerate(trail.answers, 1):
        yield from _answer(number, answer, made, console, width, prompts)
    yield from _section("Order", console)
    if not trail.orders:
        yield "  none"
    for entry in trail.orders:
        yield from _order(entry, trail, width)
    yield from _section("What came of it", console)
    yield from _outcome(trail)


def _headline(made: Decision) -> str:
    return f"{made.action.value} {amounts.size(made.size)} %" if made.size else made.action.value


def _decided(made: Decision, run: RunEntry) -> list[tuple[str, str]]:
    asked = made.proposal
    owner = "" if made.key.owner == "desk" else f", as {made.key.owner}"
    pairs = [("Decided by", f"{decided_by(run)}{owner}, run {run.id}")]
    if made.key.cycle > 1:
        pairs.append(("When", f"cycle {made.key.cycle}, within the session after the close"))
    if made.abstained:
        return pairs
    pairs.append(("Rule", asked.rule or "none was named"))
    wish = f"{asked.action.value} {asked.size} % of the portfolio" if asked.size else asked.action.value
    pairs.append(("Asked for", wish))
    cuts = [f"{_percent(c.asked)} to {_percent(c.allowed)} by {c.rule}: {c.reason}" for c in made.cuts]
    pairs.append(("Limits", "\n".join(cuts) or "nothing was cut"))
    return pairs


def _percent(size: object) -> str:
    return f"{size:.4f}".rstrip("0").rstrip(".") + " %"


def _section(title: str, console: Console) -> Iterator[str]:
    yield ""
    yield console.bold(title)


def _paragraph(text: str, width: int, indent: str = "  ") -> Iterator[str]:
    for line in wrapped(printable(text).strip(), width - len(indent)):
        yield (indent + line).rstrip()


def _recalled(one: Recalled, console: Console, width: int) -> Iterator[str]:
    memory = one.memory
    place = f"{memory.handle}  {memory.layer} {memory.rank}, {one_line(memory.kind)} of {memory.session}"
    yield f"  {console.bold(place + ', cited') if one.cited else place}"
    yield from (f"    {console.dim(line)}" for line in wrapped(amounts.recalled(memory), width - 4))
    yield from _paragraph(beginning(memory.text, 2 * width), width, "    ")


def _answer(
    number: int, answer: AnswerEntry, made: Decision, console: Console, width: int, prompts: bool
) -> Iterator[str]:
    again = f", attempt {answer.attempt}" if answer.attempt > 1 else ""
    seen = one_line(answer.view)
    yield f"  {number} {console.bold(answer.agent)}{again}" + (f"  ({seen})" if seen else "")
    yield from (f"    {console.dim(line)}" for line in wrapped(_call(answer), width - 4))
    if answer.answer is not None:
        yield from _paragraph(in_words(_to_be_read(answer.answer, made)), width, "    ")
    if answer.outcome != "answered":
        yield from _paragraph(f"{answer.outcome}: {answer.reason}", width, "    ")
        if answer.result.text:
            yield from _paragraph(f"it had said: {one_line(answer.result.text)[:600]}", width, "    ")
    if prompts:
        yield from _prompts(answer, width)


def _to_be_read(answer: Mapping[str, Any], made: Decision) -> dict[str, Any]:
    """An answer without what stands above already, short fields first (the journal keeps them by name)."""
    known = {"symbol": made.key.symbol, "explanation": made.proposal.explanation}
    fields = [(name, value) for name, value in answer.items() if known.get(name) != value]
    return dict(sorted(fields, key=lambda field: (isinstance(field[1], list), len(str(field[1])))))


def _call(answer: AnswerEntry) -> str:
    result = answer.result
    said = [result.model + (" (recorded answer)" if result.cached else "")]
    if result.usage.input_tokens or result.usage.output_tokens:
        said.append(f"{result.usage.input_tokens:,} tokens in, {result.usage.output_tokens:,} out")
    took = [f"{result.latency:.1f} s"] if result.latency >= 0.05 else []
    said += [amounts.cost(result.cost), *took, f"prompt {answer.prompt_hash[:12]}"]
    if answer.charts:
        said.append("saw the chart" if answer.seen else "read the chart's figures as text")
    return ", ".join([*said, *result.notes])


def _prompts(answer: AnswerEntry, width: int) -> Iterator[str]:
    for role, text in (("system", answer.system), *((m.role, m.text) for m in answer.messages)):
        yield f"    --- {role}"
        yield from _paragraph(text, width, "    | ")
    yield "    ---"


def _order(entry: OrderEntry, trail: Trail, width: int) -> Iterator[str]:
    yield f"  {order_words(entry.order)}  ({entry.order.id})"
    for move in trail.moves:
        if move.order_id == entry.order.id:
            detail = f": {one_line(move.detail)}" if move.detail else ""
            yield from _paragraph(f"{move.time:%Y-%m-%d %H:%M:%S} UTC  {move.state.value}{detail}", width, "    ")
    for fill in trail.fills:
        if fill.order_id == entry.order.id:
            yield f"    {trade_words(fill)}"


def _outcome(trail: Trail) -> Iterator[str]:
    outcome = trail.outcome
    if outcome is None:
        yield "  not known yet: the next session has to close first"
    else:
        yield (
            f"  Reward {amounts.percent(outcome.reward, 3)} of the portfolio by the close of {outcome.session}, "
            f"{amounts.percent(outcome.cumulative, 3)} with {outcome.symbol} so far"
        )
    base, since = closes_since(trail)
    if base is not None:
        yield f"  Close {trail.decision.key.session}: {amounts.money(base)}"
    for sessions, day, close in since:
        change = f"  {amounts.percent(close / base - 1)}" if base else ""
        yield f"  {'+' + str(sessions):>3} session{'s' if sessions > 1 else ' '} {day}: {amounts.money(close)}{change}"
