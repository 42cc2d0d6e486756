"""`paperdesk why` (desk): print how one decision came about.
`paperdesk parity` (desk): replay a recorded day of the desk and compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DataError, MissingData
from tui.commands.options import DAY, listed
from tui.settings.invocation import Invocation, command
from tui.shell.agreement import agree, yes_option
from tui.text.console import Console, show_document, standard_output
from tui.text.plain_text import facts, table, wrapped

if TYPE_CHECKING:
    from engine.domain.chart import ChartSpec
    from engine.ports import ChartPainter
    from tui.text.plain_text import Line

SCREEN = 24
"""Lines of the first screen of a trail."""
SAMPLE = 20
"""Decisions that --attribute draws where no number is given."""


@command("why")
@click.argument("symbol", required=False)
@click.argument("session", type=DAY, metavar="DATE", required=False)
@click.option("--full", is_flag=True, help="With memories, each agent's answer, the debate and the order's steps.")
@click.option("--prompts", is_flag=True, help="All of that, and the full prompts.")
@click.option("--chart", "chart_file", metavar="FILE", help="Writes the chart that was read as a PNG.")
@click.option("--memory", metavar="ID", help="Why it was recalled, or not: its rank and scores among those that were.")
@click.option("--redecide", is_flag=True, help="Decide it again, and print what comes out otherwise.")
@click.option("--preset", metavar="NAME", help="With --redecide: another preset, by name or TOML file.")
@click.option("--model", metavar="SPEC", help="With --redecide: another model; replay: recorded answers alone.")
@click.option("--without", metavar="STEP,STEP", help="With --redecide: steps to leave out, or some of several owners.")
@click.option("--attribute", is_flag=True, help="Decide it again without each of its inputs; over a run without DATE.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="With --attribute: decisions that are drawn (20).")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="With --attribute: draws them (0).")
@yes_option
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
    """Prints how one decision came about: what was decided, the strongest reasons for and against, who said otherwise,
    what the limits changed, and what came of it. With --full the whole trail: memories with their scores, each agent's
    answer, the debate, and the order's steps.

    DATE is the decision session: the last one whose data was read. Where the desk has not run, the latest backtest is
    looked into.

    With --memory it says of one memory why it was recalled, or not: its rank in its layer by each query and the parts
    of its score, beside the last that was taken; or that it was not known yet, gone, another owner's or not asked for.
    The decision is taken again with its recorded answers for that; no model is asked, and nothing is written.

    With --redecide the decision is taken again from the same inputs, with the memory as it was that day and the same
    books, and stands beside what was decided then. Nothing is ordered, and nothing is written to journal or memory.
    What models may cost for it is forecast first, and lives within the desk's [budget] of the day.

    With --attribute it is decided again without each of its inputs (news, chart, memory, each reflection, each of
    several owners ...), and without all of them. A row says what came out and how far the signed size moved; it is that
    of --redecide --without. The remainder is what the single rows leave unexplained. Without DATE decisions are drawn
    from the run that --run names, else from the desk, and each input gets a row with 95 % intervals. Questions that are
    the same as then are not asked again, and a second time nothing is.

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
    changed = {"--preset": preset, "--model": model, "--without": without}
    drawn = {"--sample": sample, "--seed": seed}
    shown = {"--full": full or None, "--prompts": prompts or None, "--chart": chart_file, "--memory": memory}
    if attribute:
        if any(shown.values()) or redecide or any(changed.values()):
            raise click.UsageError("--attribute decides again by the run's own preset and model: leave the others out")
        if session is not None:
            _refuse(drawn, "draws decisions of a run: leave DATE out")
        from tui.commands.why_attribute import show_attribution

        show_attribution(invocation, symbol, session, (sample or SAMPLE, seed or 0), yes=yes)
        return
    _refuse(drawn, "draws decisions to attribute: give --attribute with it")
    if symbol is None or session is None:
        raise click.UsageError("SYMBOL and DATE name a decision: give both (--attribute alone can do without)")
    if redecide:
        _refuse(shown, "shows what was decided, and --redecide prints what differs: leave it out")
        changes = {"preset": preset, "model": model, "without": listed(without)}
        _redecide(invocation, symbol, session, changes, yes=yes)
        return
    _refuse(changed | {"--yes": yes or None}, "says how to decide again: give --redecide with it")
    if memory is not None:
        _refuse({**shown, "--memory": None}, "shows the whole decision: leave it out with --memory")
        from tui.commands.why_memory import show_placement

        show_placement(invocation, symbol, session, memory)
        return
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

    def lines() -> Iterator[str]:
        console = standard_output()
        yield from [records.note] if records.note else []
        yield from map(console.inked, _trail_lines(document, console.width, full=full, prompts=prompts))
        yield from (f"chart: {path}" for path in written)

    show_document(document, lines)


def _trail_lines(document: Mapping[str, Any], width: int, *, full: bool, prompts: bool) -> Iterator[Line]:
    if full or prompts:
        from tui.text.trail_text import why_lines

        return why_lines(document, width, prompts=prompts)
    from tui.text.trail_summary import summary_lines

    return summary_lines(document, width, SCREEN)


def _refuse(options: Mapping[str, object], because: str) -> None:
    """Raise a usage error for the first option that is given."""
    for flag, value in options.items():
        if value is not None:
            raise click.UsageError(f"{flag} {because}")


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
        agree(services, redecision_forecast(services, records.required, made, wanted), yes)
        with within_day(services) as within:
            done = redecide(within, records.required, made, wanted)
        document = redecision_document(records, done, known_closes(services, records, (done.symbol,)))

    def lines() -> Iterator[str]:
        from tui.text.redecision_text import redecision_lines

        console = standard_output()
        yield from [records.note] if records.note else []
        yield from map(console.inked, redecision_lines(document, console.width))

    show_document(document, lines)


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


_WIDEST = 120


@command("parity")
@click.argument("session", type=DAY, metavar="SESSION", required=False)
def parity_command(invocation: Invocation, session: date | None) -> int:
    """Replays a day of the desk on the backtest clock, from its inputs as they were seen and with recorded answers
    alone, and holds decisions and orders against those of that day.

    SESSION is the decision session (default: the last one decided). Where today's data are not what was seen, restated
    bars or late news, the report says so. Ends with 1 where a decision or an order differs. Nothing is written.

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
            raise MissingData(f"there is no day to replay: {records.absence}")
        if records.is_backtest:
            raise click.UsageError(f"--run {records.run} is a backtest: only days of the desk are replayed")
        found = check_parity(invocation.services(), records.reader, session, records.run)
        document = parity_document(records, found)
    show_document(document, lambda: _parity_lines(document, standard_output()))
    return 0 if document["same"] else 1


def _parity_lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    from tui.text.run_text import decided_by

    width = min(console.width, _WIDEST)
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
            first, *others = wrapped(sentence, width - 4)
            yield f"  - {first}"
            yield from (f"    {line}" for line in others)


def _orders(orders: int, differing: int) -> str:
    if not orders and not differing:
        return "none then, and none now"
    return f"{orders} then, {differing} differ" if differing else f"{orders} of {orders} the same"


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from tui.text.run_text import action_words

    sides = ["not decided" if one[side] is None else action_words(one[side]) for side in ("then", "replayed")]
    owner = "" if one["owner"] == "desk" else one["owner"]
    return one["symbol"], owner, *sides, ", ".join(one["differs"])
