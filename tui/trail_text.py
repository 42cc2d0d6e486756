"""The trail of a decision as lines, in the order in which a person asks: what, why, who said so, what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from engine.messages.answer_text import answer_text
from engine.reports.settings_text import changed_text
from tui import amounts
from tui.debate_text import debate_lines
from tui.plain_text import Line, beginning, facts, one_line, paragraph, section, wrapped
from tui.run_text import action_words, combined_opinions, decided_by, opinion_words, order_words, trade_words

WIDEST = 100
"""Columns of a trail at most: longer lines are hard to read."""

Row = Mapping[str, Any]


def why_lines(document: Row, width: int, *, prompts: bool = False) -> Iterator[Line]:
    """Every trail of a document of `paperdesk why`."""
    width = min(width, WIDEST)
    earlier = ", ".join(f"cycle {one['cycle']} ({one['run']})" for one in document["earlier_cycles"])
    if earlier:
        cycle = document["decisions"][0]["cycle"]
        yield from paragraph(f"cycle {cycle} of the session; before it {earlier}: --run shows one", width, "")
        yield "", ""
    if document["changed"] is not None:
        yield from paragraph(f"Settings changed {changed_text(document['changed'])}", width, "", "warn")
        yield "", ""
    for shown in document["decisions"]:
        yield from _trail(shown, decided_by(document), width, prompts)


def prompt_lines(document: Row, width: int) -> Iterator[Line]:
    """The prompts alone, of every agent that was asked."""
    width = min(width, WIDEST)
    answers = [(answer, shown) for shown in document["decisions"] for answer in shown["answers"]]
    if not answers:
        yield "No agent was asked for this decision.", ""
    for number, (answer, shown) in enumerate(answers, 1):
        owner = "" if answer["owner"] == shown["owner"] else f"{one_line(answer['owner'])}: "
        yield from _called(f"{number} {owner}", answer)
        yield from _prompts(answer, width)
        yield "", ""


def call_facts(answer: Row) -> str:
    """The model of an answer, its tokens, cost and seconds, and what it saw."""
    tokens = answer["input_tokens"] or answer["output_tokens"]
    parts = [
        answer["model"] + (" (recorded answer)" if answer["cached"] else ""),
        f"{answer['input_tokens']:,} tokens in, {answer['output_tokens']:,} out" if tokens else "",
        amounts.cost(amounts.number(answer["cost"])),
        f"{answer['latency']:.1f} s" if answer["latency"] >= 0.05 else "",
        f"prompt {answer['prompt_hash'][:12]}",
        f"of version {answer['prompt_version']}" if answer["prompt_version"] else "",
    ]
    if answer["charts"]:
        parts.append("saw the chart" if answer["charts_seen"] else "read the chart's figures as text")
    return ", ".join(filter(None, [*parts, *answer["notes"]]))


def memory_place(memory: Row) -> str:
    """The handle of a memory, its layer and rank, and what it is."""
    return f"{memory['handle']}  {memory['layer']} {memory['rank']}, {one_line(memory['kind'])} of {memory['session']}"


def _trail(shown: Row, decider: str, width: int, prompts: bool) -> Iterator[Line]:
    yield f"{shown['symbol']}  {shown['session']}  {action_words(shown)}", "strong"
    yield from ((line, "") for line in facts(list(_decided(shown, decider)), width))
    yield from section("Why there was no decision" if shown["abstained"] else "Why")
    opinions = combined_opinions(shown)
    # What each owner said follows: of a combined reason the first line alone is new.
    reason = shown["reason"].split("\n", 1)[0] if opinions else shown["reason"]
    yield from paragraph(reason or "no reason was given", width)
    if shown["unresolved_figures"]:
        figures = ", ".join(map(one_line, shown["unresolved_figures"]))
        yield from paragraph(f"Figures that stand nowhere in what was given: {figures}", width, ink="warn")
    for one in opinions:
        yield from section(f"Opinion of {one_line(one['owner'])}: {opinion_words(one)}")
        yield from paragraph(one["reason"] or "no reason was given", width)
        yield from _grounds(shown, one, width, prompts)
    if not opinions:
        yield from _grounds(shown, shown, width, prompts)
    if "debate" in shown:
        yield from debate_lines(shown["debate"], shown["owner"], width)
    yield from section("Order")
    if not shown["orders"]:
        yield "  none", "quiet"
    for order in shown["orders"]:
        yield from _order(order, width)
    yield from section("What came of it")
    for fill in shown.get("undecided_trades", ()):
        yield from paragraph(f"Not decided: {trade_words(fill)}. {one_line(fill['reason'])}", width, "  ", "warn")
    yield from _outcome(shown)


def _grounds(shown: Row, opinion: Row, width: int, prompts: bool) -> Iterator[Line]:
    """The memories that an owner was given, and the answers of its agents."""
    recalled, answers = (
        [row for row in shown[part] if row["owner"] == opinion["owner"]] for part in ("recollections", "answers")
    )
    if recalled:
        yield from section("What memory brought")
        for memory in recalled:
            yield from _recalled(memory, width)
    yield from section("What the agents said")
    unanswered = [row for row in shown.get("unanswered", ()) if row["owner"] == opinion["owner"]]
    if not (answers or unanswered):
        yield "  nobody was asked", "quiet"
    for call in unanswered:
        yield from paragraph(_unanswered(call), width, "  ", "quiet" if call["kind"] == "preflight" else "warn")
    for number, answer in enumerate(answers, 1):
        yield from _answer(number, answer, {**shown, "reason": opinion["reason"]}, width)
        if prompts:
            yield from _prompts(answer, width)


def _decided(shown: Row, decider: str) -> Iterator[tuple[str, str]]:
    owner = "" if shown["owner"] == "desk" else f", as {one_line(shown['owner'])}"
    yield "Decided by", f"{decider}{owner}, run {one_line(shown['run'])}"
    if shown["cycle"] > 1:
        yield "When", f"cycle {shown['cycle']}, within the session after the close"
    if shown["abstained"]:
        return
    asked = shown["asked"]
    yield "Rule", asked["rule"] or "none was named"
    yield "Asked for", _asked(asked)
    cuts = [
        f"{_percent(cut['asked'])} to {_percent(cut['allowed'])} by {cut['rule']}: {cut['reason']}"
        for cut in shown["cuts"]
    ]
    yield "Limits", "\n".join(cuts) or "nothing was cut"


def _asked(asked: Row) -> str:
    part = {"BUY": "with all cash", "SELL": "of all shares"}[asked["action"]] if asked["whole"] else ""
    size = f"{_percent(str(asked['size']))} of the portfolio" if asked["size"] else ""
    return f"{asked['action']} {', '.join(filter(None, (part, size)))}".strip()


def _percent(size: str) -> str:
    return f"{amounts.number(size):.4f}".rstrip("0").rstrip(".") + " %"


def _recalled(memory: Row, width: int) -> Iterator[Line]:
    cited = memory["cited"]
    yield f"  {memory_place(memory)}{', cited' if cited else ''}", "strong" if cited else ""
    yield from ((f"    {line}", "quiet") for line in wrapped(_rank(memory), width - 4))
    yield from paragraph(beginning(memory["text"], 2 * width), width, "    ")


def _rank(memory: Row) -> str:
    """The figures that a memory was ranked by: recency and relevancy as fractions of 1, importance of 100, and their
    score; and as much of its id as `paperdesk memory lifeline` takes."""
    asked = f", asked for as {', '.join(memory['types'])}" if memory["types"] else ""
    return (
        f"recency {memory['recency']:.3f}, relevancy {memory['relevancy']:.3f}, importance {memory['importance']:.1f}, "
        f"score {memory['score']:.3f}, id {memory['id'][:8]}{asked}"
    )


def _called(before: str, answer: Row) -> Iterator[Line]:
    again = f", attempt {answer['attempt']}" if answer["attempt"] > 1 else ""
    view = one_line(answer["view"])
    yield f"  {before}{one_line(answer['agent'])}{again}" + (f"  ({view})" if view else ""), "strong"


def _answer(number: int, answer: Row, shown: Row, width: int) -> Iterator[Line]:
    yield from _called(f"{number} ", answer)
    yield from ((f"    {line}", "quiet") for line in wrapped(one_line(call_facts(answer)), width - 4))
    if answer["answer"] is not None:
        yield from paragraph(answer_text(_unshown(answer["answer"], shown)), width, "    ")
    if answer["outcome"] != "answered":
        yield from paragraph(f"{answer['outcome']}: {answer['reason']}", width, "    ", "warn")
        if answer["text"]:
            yield from paragraph(f"it had said: {one_line(answer['text'])[:600]}", width, "    ")


def _unanswered(call: Row) -> str:
    """A call that no agent got an answer from."""
    named = f"{one_line(call['agent'])}: {one_line(call['model'])}"
    if call["kind"] == "preflight":
        return f"preflight for {named}, {amounts.cost(amounts.number(call['cost']))}"
    cost = f", estimated {amounts.cost(amounts.number(call['cost']))}" if call["estimated"] else ""
    return f"{named}, call {call['attempt']} failed{cost}: {call['kind']}: {one_line(call['detail'])}"


def _unshown(answer: Row, shown: Row) -> dict[str, Any]:
    """An answer without what is shown above already, short fields first (the journal keeps them by name)."""
    known = {"symbol": shown["symbol"], "explanation": shown["reason"]}
    fields = [(name, value) for name, value in answer.items() if known.get(name) != value]
    return dict(sorted(fields, key=lambda field: (isinstance(field[1], list), len(str(field[1])))))


def _prompts(answer: Row, width: int) -> Iterator[Line]:
    for message in ({"role": "system", "text": answer["system"]}, *answer["messages"]):
        yield f"    --- {message['role']}", "quiet"
        yield from paragraph(message["text"], width, "    | ")
    yield "    ---", "quiet"


def _order(order: Row, width: int) -> Iterator[Line]:
    yield f"  {order_words(order)}  ({order['id']})", ""
    for move in order["moves"]:
        detail = f": {one_line(move['detail'])}" if move["detail"] else ""
        time = f"{datetime.fromisoformat(move['time']):%Y-%m-%d %H:%M:%S}"
        yield from paragraph(f"{time} UTC  {move['state']}{detail}", width, "    ")
    yield from ((f"    {trade_words(fill)}", "") for fill in order["fills"])


def _outcome(shown: Row) -> Iterator[Line]:
    outcome, close = shown["outcome"], shown["close"]
    if outcome is None:
        yield "  not known yet: the next session has to close first", "quiet"
    else:
        yield (
            f"  Reward {amounts.percent(outcome['reward'], 3)} of the portfolio by the close of {outcome['session']}, "
            f"{amounts.percent(outcome['cumulative'], 3)} with {shown['symbol']} so far",
            _ink(outcome["reward"]) if shown["action"] == "BUY" else "quiet",
        )
    if close is not None:
        yield f"  Close {shown['session']}: {amounts.money(close)}", ""
    for later in shown["closes_since"]:
        sessions, result = later["sessions"], later["result"]
        word = "" if not result else "right " if result > 0 else "wrong "
        moved = amounts.percent(later["change"] if result is None else result)
        line = f"  {'+' + str(sessions):>3} session{'s' if sessions > 1 else ' '} {later['session']}"
        ink = "quiet" if result is None else _ink(result)
        yield f"{line}: {amounts.money(later['close'])}  {word}{moved}", ink


def _ink(change: float) -> str:
    return "up" if change > 0 else "down" if change < 0 else ""
