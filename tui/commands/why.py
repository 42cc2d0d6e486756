"""`paperdesk why` (desk): explain one decision.
`paperdesk parity` (desk): replay a recorded day of the desk and compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DataError, MissingData
from engine.reports.table import Column
from tui.commands.options import COUNT, DAY, listed, option_of
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import agree
from tui.shell.progress import work_line
from tui.text.console import Console, show_document, standard_output
from tui.text.plain_text import cut, facts, one_line, paragraph, table, table_of, wrapped

if TYPE_CHECKING:
    from engine.domain.chart import ChartSpec
    from engine.ports import ChartPainter
    from tui.text.plain_text import Line

SAMPLE = 20
"""Decisions that --attribute draws where no number is given."""
_MORE = {
    "like another": " ({like}, which was)",
    "not known yet": " ({since})",
    "too new": " (it came in with this session, and only earlier memory was asked for)",
    "gone": " ({cause} on {session})",
    "types not asked for": " ({types})",
}
_COLUMNS = (
    Column("QUERY", "query"),
    *(Column(name.upper(), name, str) for name in ("rank", "of")),
    *(Column(name.replace("_", " ").upper(), name, "{:.3f}".format) for name in ("relevancy", "score", "least_taken")),
)


@command("why")
@click.argument("symbol", required=False)
@click.argument("session", type=DAY, metavar="DATE", required=False)
@click.option("--full", is_flag=True, help="Add memories, each agent's answer, the debate and the order's steps.")
@click.option("--prompts", is_flag=True, help="Same as --full, with the full prompts.")
@click.option("--chart", "chart_file", metavar="FILE", help="Write the chart shown to the model as a PNG.")
@click.option("--memory", metavar="ID", help="Explain why this memory was or was not recalled.")
@click.option("--redecide", is_flag=True, help="Re-run the decision and show the diff.")
@option_of(("--redecide",), "--preset", metavar="NAME", help="Another preset, by name or TOML file.")
@option_of(("--redecide",), "--model", metavar="SPEC", help="Another model; replay: recorded answers only.")
@option_of(("--redecide",), "--without", metavar="STEP,STEP", help="Steps or owners to leave out.")
@click.option("--attribute", is_flag=True, help="Re-run it without each input in turn; without DATE over a whole run.")
@option_of(("--attribute",), "--sample", type=click.IntRange(1), metavar="N", help="Decisions to sample (20).")
@option_of(("--attribute",), "--seed", type=COUNT, metavar="N", help="Random seed of the sample (0).")
@option_of(("--redecide", "--attribute"), "--yes", is_flag=True, help="Skip confirmation of the forecast cost.")
def why_command(
    *,
    invocation: Invocation,
    symbol: str | None,
    session: date | None,
    full: bool,
    prompts: bool,
    chart_file: str | None,
    memory: str | None,
    redecide: bool,
    preset: str | None,
    model: str | None,
    without: str | None,
    attribute: bool,
    sample: int | None,
    seed: int | None,
    yes: bool,
) -> None:
    """Explains one decision: action and size, the strongest reasons for and against, dissenting agents, cuts by the
    limits, and the outcome. With --full the whole trail: memories with their scores, each agent's answer, the debate,
    and the order's steps.

    DATE is the decision session, the last one whose data was read. If the desk has not run, the latest backtest is
    used.

    With --memory it explains why one memory was or was not recalled: its rank in its layer for each query and its score
    components, against the lowest-ranked memory recalled; or that it was not available yet, purged, another owner's or
    not queried. It replays the decision from its recorded answers; no model is called and nothing is written.

    With --redecide the decision is re-run from the same inputs, memory and books as on that day, and shown beside the
    original. Nothing is ordered, and nothing is written to journal or memory. The model cost is forecast first and
    counts toward the desk's daily [budget].

    With --attribute the decision is re-run without each of its inputs (news, chart, memory, each reflection, each owner
    ...), and without all of them. Each row shows the result, as --redecide --without gives it, and the change in signed
    size; the remainder is what the single rows leave unexplained. Without DATE, decisions are sampled from --run or the
    desk, and each input gets a row with 95 % intervals. Unchanged questions use recorded answers, so a second call
    costs nothing.

    \b
    Examples:
      paperdesk why ORVL 2025-03-14
      paperdesk why ORVL 2025-03-14 --full
      paperdesk why AAPL 2023-08-03 --run backtest-20250701-120000-ab12 --prompts
      paperdesk why ORVL 2025-03-14 --chart orvl.png
      paperdesk why ORVL 2025-03-14 --memory 3f29c01a
      paperdesk why ORVL 2025-03-14 --redecide --without chart
      paperdesk why ORVL 2025-03-14 --redecide --preset finagent --model replay
      paperdesk why ORVL 2025-03-14 --attribute
      paperdesk why --run backtest-20250701-120000-ab12 --attribute --sample 40
    """
    views = [name for name, view in (("--full", full), ("--prompts", prompts), ("--chart", chart_file)) if view]
    modes = {"--redecide": redecide, "--attribute": attribute, "--memory": memory}
    if len(given := [*(name for name, mode in modes.items() if mode), *views[:1]]) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other: give one of them")
    if attribute:
        if session is not None and (sample, seed) != (None, None):
            raise click.UsageError("--sample and --seed sample the decisions of a run: leave out DATE")
        _attribute(invocation, symbol, session, (sample or SAMPLE, seed or 0), yes=yes)
    elif symbol is None or session is None:
        raise click.UsageError("give both SYMBOL and DATE (only --attribute works without them)")
    elif redecide:
        changes = {"preset": preset, "model": model, "without": listed(without)}
        _redecide(invocation, symbol, session, changes, yes=yes)
    elif memory is not None:
        _show_placement(invocation, symbol, session, memory)
    else:
        _show_trail(invocation, symbol, session, chart_file, full=full, prompts=prompts)


def _show_trail(
    invocation: Invocation,
    symbol: str,
    session: date,
    chart_file: str | None,
    *,
    full: bool,
    prompts: bool,
) -> None:
    from engine.app.research.market_data import known_closes
    from engine.reports.documents.trail import charts_shown, decided, why_document

    with invocation.records(decisions=True) as records:
        made = decided(records, symbol, session)
        written = (
            []
            if chart_file is None
            else _write_charts(invocation.services().open_painter(), charts_shown(records, made), Path(chart_file))
        )
        market = known_closes(invocation.services(), records, (made[0].key.symbol,))
        document = why_document(records, made, written, market)

    from tui.text.trail_text import why_lines

    charts = [(f"chart: {path}", "") for path in written]
    _show(document, records.note, lambda width: [*why_lines(document, width, full=full, prompts=prompts), *charts])


def _show(document: Mapping[str, Any], note: str, lines: Callable[[int], Iterable[Line]]) -> None:
    """Print a document, or the lines that are made of it for a width, under a note on the records."""
    console = standard_output()
    show_document(document, lambda: chain([note] if note else [], map(console.inked, lines(console.width))))


def _redecide(invocation: Invocation, symbol: str, session: date, changes: Mapping[str, Any], *, yes: bool) -> None:
    from engine.app.records.spending import within_day
    from engine.app.redecision.redecision import AS_IT_WAS, redecide, redecision_forecast
    from engine.app.research.market_data import known_closes
    from engine.reports.documents.redecision import redecision_document
    from engine.reports.documents.trail import decided

    services = invocation.services()
    with invocation.records(decisions=True) as records:
        made = decided(records, symbol, session)
        wanted = replace(AS_IT_WAS, **changes)
        agree(services, redecision_forecast(services, records.required, [(made, wanted)]), yes)
        with within_day(services) as within:
            done = redecide(within, records.required, made, wanted)
        document = redecision_document(records, done, known_closes(services, records, (done.symbol,)))

    from tui.text.redecision_text import redecision_lines

    _show(document, records.note, lambda width: redecision_lines(document, width))


def _write_charts(painter: ChartPainter, charts: Iterable[ChartSpec], file: Path) -> list[str]:
    """Paint the charts: the first into the file, others beside it under their kind, with a number from the second of a
    kind on."""
    written: list[str] = []
    for number, chart in enumerate(charts):
        path = file.with_name(f"{file.stem}-{chart.kind}{file.suffix}") if number else file
        if str(path) in written:
            path = path.with_stem(f"{path.stem}-{number + 1}")
        image = asyncio.run(painter.paint(chart))
        try:
            path.write_bytes(image)
        except OSError as error:
            raise DataError(f"{path} cannot be written ({error.strerror}): name another file") from None
        written.append(str(path))
    return written


def _attribute(
    invocation: Invocation,
    symbol: str | None,
    session: date | None,
    drawn: tuple[int, int],
    *,
    yes: bool,
) -> None:
    """Attribute one decision, or without a session some that are drawn: `drawn` is how many, and the seed."""
    from engine.app.records.spending import within_day
    from engine.app.redecision.redecision import attribute, attribution_forecast, sample
    from engine.reports.documents.attribution import attribution_document, run_attribution_document
    from engine.reports.documents.trail import decided

    services = invocation.services()
    with invocation.records(decisions=True) as records:
        single = symbol and session
        occasions = [decided(records, symbol, session)] if symbol and session else sample(records, symbol, *drawn)
        agree(services, attribution_forecast(services, records, occasions), yes)
        with within_day(services) as within, work_line() as report:
            found = attribute(within, records, occasions, report)
        document = (
            attribution_document(records, found[0]) if single else run_attribution_document(records, found, drawn[1])
        )

    from tui.text.attribution_text import attribution_lines, run_attribution_lines

    made = attribution_lines if single else run_attribution_lines
    _show(document, records.note, lambda width: made(document, width))


def _show_placement(invocation: Invocation, symbol: str, session: date, wanted: str) -> None:
    """Print the place of a memory in what a decision asked of memory."""
    from engine.app.redecision.redecision import recall_placement
    from engine.reports.documents.memory import placement_document
    from engine.reports.documents.trail import decided

    with invocation.records(decisions=True) as records:
        made = decided(records, symbol, session)
        found = recall_placement(invocation.services(), records.required, made, wanted)
        document = placement_document(records.head, made[0].key, found.record, found.recalls, found.calendar)
    _show(document, records.note, lambda width: _placement_lines(document, width))


def _placement_lines(document: Mapping[str, Any], width: int) -> Iterator[Line]:
    width, memory = min(width, 110), document["memory"]
    of = f"{memory['symbol']} {memory['kind']} of {memory['session']}, owner {memory['owner']}"
    yield f"{document['symbol']} {document['session']}: {of}, id {memory['id']}", "strong"
    yield cut(one_line(memory["text"]), width), ""
    later = memory["available"] > document["session"]
    since = f"it is from {memory['available']}" if later else "it was written after this decision"
    if not document["recalls"]:
        yield "nothing was asked of memory", ""
    for one in document["recalls"]:
        types, like = ", ".join(memory["types"]), (one["like"] or "")[:8]
        said = one["reason"] if one["reason"] == "recalled" else f"not recalled, {one['reason']}"
        more = _MORE.get(one["reason"], "").format(**(one["gone"] or {}), since=since, types=types, like=like)
        yield from paragraph(f"{one['question']} of {one['owner']}: {said}{more}", width, "")
        if one["types"]:
            scores = f"recency {one['recency']:.3f}, importance {one['importance']:.1f}"
            yield f"  {one['layer']}, {scores}; relevancy is {one['measure']}; {one['k']} are taken by each query", ""
            yield from ((f"  {line}", "") for line in table_of(_COLUMNS, one["types"], width - 2))


@command("parity")
@click.argument("session", type=DAY, metavar="SESSION", required=False)
def parity_command(invocation: Invocation, session: date | None) -> int:
    """Replays a day of the desk on the backtest clock, with its recorded inputs and answers, and compares decisions and
    orders with those of that day.

    SESSION is the decision session (default: the last one decided). Data that has changed since (restated bars, late
    news) is reported. Exits with 1 if a decision or an order differs. Nothing is written.

    \b
    Examples:
      paperdesk parity
      paperdesk parity 2025-03-14
      paperdesk parity 2025-03-14 --json
    """
    from engine.app.redecision.redecision import check_parity
    from engine.reports.documents.redecision import parity_document

    with invocation.records() as records:
        if records.reader is None:
            raise MissingData(f"no day to replay: {records.absence}")
        if records.is_backtest:
            raise click.UsageError(f"--run {records.run} is a backtest: only days of the desk are replayed")
        found = check_parity(invocation.services(), records.reader, session, records.run)
        document = parity_document(records, found)
    show_document(document, lambda: _parity_lines(document, standard_output()))
    return 0 if document["same"] else 1


def _parity_lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    from tui.text.run_text import decided_by

    width = min(console.width, 120)
    verdict = "every decision and order is the same" if document["same"] else "not the same"
    yield console.bold(f"Parity of {document['session']}: {verdict}")
    decisions = document["decisions"]
    differing = [one for one in decisions if not one["same"]]
    yield from facts(
        [
            ("Then", f"{decided_by(document['then'])}, run {document['run']}"),
            ("Replayed", f"{document['replayed']['label']}, from the inputs that were kept"),
            ("Decisions", f"{len(decisions) - len(differing)} of {len(decisions)} the same"),
            ("Orders", _orders(document["orders"], len(document["order_changes"]))),
            ("Data today", "" if document["data"] else "as they were seen"),
        ],
        width,
    )
    if differing:
        yield ""
        yield console.bold("Decisions that differ")
        head = ("SYMBOL", "OWNER", "THEN", "REPLAYED", "WHAT DIFFERS")
        yield from table(head, [_row(one) for one in differing], width=console.room, free=head[-1])
    if document["order_changes"]:
        yield ""
        yield console.bold("Orders that differ")
        rows = [(change["order"], change["then"], change["replayed"]) for change in document["order_changes"]]
        yield from table(("ORDER", "THEN", "REPLAYED"), rows, width=console.room, free="REPLAYED")
    if document["data"]:
        yield ""
        yield console.bold("Where today's data are not what was seen")
        for sentence in document["data"]:
            yield from (f"  {line}" for line in wrapped(f"- {sentence}", width - 2))


def _orders(orders: int, differing: int) -> str:
    if not orders and not differing:
        return "none then, and none now"
    return f"{orders} then, {differing} differ" if differing else f"{orders} of {orders} the same"


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from engine.reports.card import action_words

    sides = ["not decided" if one[side] is None else action_words(one[side]) for side in ("then", "replayed")]
    owner = "" if one["owner"] == "desk" else one["owner"]
    return one["symbol"], owner, *sides, ", ".join(one["differs"])
