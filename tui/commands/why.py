"""`paperdesk why` (desk): print the whole trail of one decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DataError, MissingData
from tui.commands.decisions import has_decisions
from tui.commands.journals import NOT_RUN, Look, looked_at
from tui.commands.run_options import DAY
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.chart import ChartSpec
    from engine.domain.decision import Decision
    from engine.journal.entries import Recalled, RunEntry, Trail

HORIZONS = (1, 5, 20)
"""Sessions after the decision whose closes are told."""


@click.command("why")
@click.argument("symbol")
@click.argument("session", type=DAY, metavar="DATE")
@click.option("--prompts", is_flag=True, help="With the full prompts.")
@click.option("--chart", "chart_file", metavar="FILE", help="Writes the chart that was read as a PNG.")
@click.option("--redecide", is_flag=True, help="Decide it again, and print what comes out otherwise.")
@click.option("--preset", metavar="NAME", help="With --redecide: another preset, by name or TOML file.")
@click.option("--model", metavar="SPEC", help="With --redecide: another model; replay: recorded answers alone.")
@click.option("--without", metavar="STEP,STEP", help="With --redecide: steps of the preset to leave out.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(
    invocation: Invocation,
    symbol: str,
    session: date,
    prompts: bool,
    chart_file: str | None,
    redecide: bool,
    preset: str | None,
    model: str | None,
    without: str | None,
    as_json: bool,
) -> None:
    """Prints the whole trail of one decision: what was decided and why, what the limits cut, each agent's word, the
    order and its life, and what came of it.

    DATE is the decision session: the last one whose data was read. Where the desk has not run, the latest backtest is
    looked into.

    With --redecide the decision is taken again from the same inputs, with the memory as it was that day and the same
    books, and stands beside what was decided then. Nothing is ordered, and nothing is written to journal or memory.

    \b
    Examples:
      paperdesk why ORVL 2025-03-14
      paperdesk why AAPL 2023-08-03 --run backtest-20250701-120000-ab12 --prompts
      paperdesk why ORVL 2025-03-14 --chart orvl.png
      paperdesk why ORVL 2025-03-14 --redecide --without chart
      paperdesk why ORVL 2025-03-14 --redecide --preset finagent --model replay
    """
    from engine.journal.results import trail

    if redecide:
        if prompts or chart_file is not None:
            raise click.UsageError("--redecide prints what differs: leave out --prompts and --chart")
        _redecide(invocation, symbol, session, preset, model, without, as_json)
        return
    for flag, value in (("--preset", preset), ("--model", model), ("--without", without)):
        if value is not None:
            raise click.UsageError(f"{flag} says how to decide again: give --redecide with it")
    with looked_at(invocation, has_decisions) as (desk, look):
        if look is None:
            raise MissingData(f"no decision for {symbol} on {session}: {NOT_RUN.format(desk=desk)}")
        found = _decisions(look, symbol, session)
        trails = [trail(look.reader, made.key) for made in found]
        cycles = _cycles_line(look, found)
        run = look.reader.run(found[0].key.run)
    written = [] if chart_file is None else _write_charts(trails, Path(chart_file))
    if as_json:
        show(json.dumps(_document(look, run, trails, written), indent=2, allow_nan=False))
        return
    from tui.commands.trail_text import trail_lines

    lines = [look.note] if look.note else []
    lines += cycles
    for one in trails:
        lines += trail_lines(one, run, standard_output(), prompts)
    lines += [f"chart: {path}" for path in written]
    show("\n".join(lines))


def _redecide(
    invocation: Invocation,
    symbol: str,
    session: date,
    preset: str | None,
    model: str | None,
    without: str | None,
    as_json: bool,
) -> None:
    from connectors.wiring.redeciding import Changes, redecide
    from tui.commands.redecision import redecided_json, redecided_lines

    steps = tuple(filter(None, map(str.strip, (without or "").split(","))))
    changes = Changes(preset, model, steps)
    with looked_at(invocation, has_decisions) as (desk, look):
        if look is None:
            raise MissingData(f"no decision for {symbol} on {session}: {NOT_RUN.format(desk=desk)}")
        found = _decisions(look, symbol, session)
        done = redecide(look.reader, found, invocation.load().config, changes)
    if as_json:
        document = {**look.named(), **redecided_json(done, changes, _trail)}
        show(json.dumps(document, indent=2, allow_nan=False))
        return
    show("\n".join([*([look.note] if look.note else []), *redecided_lines(done, changes, standard_output())]))


def _decisions(look: Look, symbol: str, session: date) -> Sequence[Decision]:
    """The decisions of a symbol in its latest run of that session, one per owner. Raises MissingData that names the
    symbols, or the sessions, for which there are decisions."""
    reader = look.reader
    name = symbol if reader.decisions(look.run, symbol) else symbol.upper()
    found = reader.decisions(look.run, name, session, session)
    if found:
        last = found[-1].key
        return [made for made in found if (made.key.run, made.key.cycle) == (last.run, last.cycle)]
    known = sorted({made.key.session for made in reader.decisions(look.run, name)})
    where = f" in {look.title}"
    if not known:
        symbols = dict.fromkeys(made.key.symbol for made in reader.decisions(look.run))
        raise MissingData(f"no decision for {name}{where}: there are some for {', '.join(symbols) or 'no symbol'}")
    near = [*(d for d in known if d < session)][-1:] + [*(d for d in known if d > session)][:1]
    raise MissingData(
        f"no decision for {name} on {session}{where}: the nearest {'is' if len(near) == 1 else 'are'} "
        f"{' and '.join(str(day) for day in near)}"
    )


def _cycles_line(look: Look, found: Sequence[Decision]) -> list[str]:
    """Where the session was decided in several cycles: which this one is, and how the others are shown."""
    key = found[0].key
    made = look.reader.decisions(look.run, key.symbol, key.session, key.session)
    others = {one.key.run: one.key.cycle for one in made if one.key.cycle != key.cycle and look.kind != "backtest"}
    if not others:
        return []
    named = ", ".join(f"cycle {cycle} ({run})" for run, cycle in others.items())
    return [f"cycle {key.cycle} of the session, its last; before it {named}: --run shows one", ""]


def closes_since(trail: Trail) -> tuple[float | None, list[tuple[int, date, float]]]:
    """The close that was decided on, None where it is not known, and the closes 1, 5 and 20 sessions later as far as
    the books know them."""
    session = trail.decision.key.session
    base = next((float(close) for day, close in trail.closes if day == session), None)
    for chart in _charts([trail]):
        if base is None and chart.candles is not None and chart.sessions[-1] == session.isoformat():
            base = chart.candles.close[-1]
    later = [(day, float(close)) for day, close in trail.closes if day > session]
    return base, [(n, *later[n - 1]) for n in HORIZONS if n <= len(later)]


def _charts(trails: Sequence[Trail]) -> list[ChartSpec]:
    """Every chart that a question of the trails showed, in order, once."""
    return list(dict.fromkeys(chart for trail in trails for answer in trail.answers for chart in answer.charts))


def _write_charts(trails: Sequence[Trail], file: Path) -> list[str]:
    """Paints what was seen: the first chart into the file, others beside it under their kind."""
    charts = _charts(trails)
    if not charts:
        raise MissingData("no agent was shown a chart for this decision: leave out --chart")
    import asyncio

    from connectors.charts.painter import MatplotlibPainter

    painter = MatplotlibPainter()
    written = []
    for n, chart in enumerate(charts):
        path = file if n == 0 else file.with_name(f"{file.stem}-{chart.kind}{file.suffix}")
        picture = asyncio.run(painter.paint(chart))
        try:
            path.write_bytes(picture)
        except OSError as error:
            raise DataError(f"{path} cannot be written ({error.strerror}): name another file") from None
        written.append(str(path))
    return written


def _document(look: Look, run: RunEntry, trails: Sequence[Trail], charts: Sequence[str]) -> dict[str, Any]:
    key = trails[0].decision.key
    return {
        **look.named(),
        "run": run.id,
        "symbol": key.symbol,
        "session": str(key.session),
        "label": run.label,
        "name": run.name,
        "decisions": [_trail(trail) for trail in trails],
        "charts": list(charts),
    }


def _trail(trail: Trail) -> dict[str, Any]:
    from engine.domain.decimal_text import money, plain
    from engine.reports.documents import row_json

    made, outcome = trail.decision, trail.outcome
    base, since = closes_since(trail)
    return {
        **row_json.decision(made),
        "asked": {"action": made.proposal.action.value, "size": made.proposal.size, "rule": made.proposal.rule},
        "cuts": [
            {"rule": cut.rule, "asked": plain(cut.asked), "allowed": plain(cut.allowed), "reason": cut.reason}
            for cut in made.cuts
        ],
        "unresolved_figures": list(made.unresolved_figures),
        "evidence": list(made.evidence),
        "recollections": [_recalled(one) for one in trail.recalled],
        "answers": [_answer(answer) for answer in trail.answers],
        "orders": [
            {
                **row_json.order(entry.order),
                "moves": [
                    {"time": move.time.isoformat(), "state": move.state.value, "detail": move.detail}
                    for move in trail.moves
                    if move.order_id == entry.order.id
                ],
                "fills": [row_json.trade(fill) for fill in trail.fills if fill.order_id == entry.order.id],
            }
            for entry in trail.orders
        ],
        "outcome": None
        if outcome is None
        else {
            "session": str(outcome.session),
            "close": money(outcome.close),
            "reward": float(outcome.reward),
            "cumulative": float(outcome.cumulative),
        },
        "close": base,
        "closes_since": [
            {"sessions": n, "session": str(day), "close": close, "change": close / base - 1 if base else None}
            for n, day, close in since
        ],
    }


def _recalled(one: Recalled) -> dict[str, Any]:
    memory = one.memory
    return {
        "id": memory.id,
        "handle": memory.handle,
        "kind": memory.kind,
        "layer": memory.layer,
        "session": str(memory.session),
        "recency": memory.recency,
        "relevancy": memory.relevancy,
        "importance": memory.importance,
        "score": memory.score,
        "rank": memory.rank,
        "types": list(memory.types),
        "cited": one.cited,
        "text": memory.text,
    }


def _answer(answer: Any) -> dict[str, Any]:
    result = answer.result
    return {
        "agent": answer.agent,
        "view": answer.view,
        "attempt": answer.attempt,
        "outcome": answer.outcome,
        "reason": answer.reason,
        "answer": answer.answer,
        "model": result.model,
        "cached": result.cached,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "cost": None if result.cost is None else str(result.cost),
        "latency": result.latency,
        "notes": list(result.notes),
        "charts": [chart.title for chart in answer.charts],
        "charts_seen": answer.seen,
        "prompt_hash": answer.prompt_hash,
        "system": answer.system,
        "messages": [{"role": message.role, "text": message.text} for message in answer.messages],
    }
