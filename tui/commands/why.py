"""`paperdesk why` (desk): print the whole trail of one decision."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.errors import DataError
from engine.reports.documents.records import has_decisions
from tui.commands.options import DAY, json_option, listed
from tui.console import show_json, show_lines, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.chart import ChartSpec
    from engine.ports import ChartPainter


@click.command("why")
@click.argument("symbol")
@click.argument("session", type=DAY, metavar="DATE")
@click.option("--prompts", is_flag=True, help="With the full prompts.")
@click.option("--chart", "chart_file", metavar="FILE", help="Writes the chart that was read as a PNG.")
@click.option("--redecide", is_flag=True, help="Decide it again, and print what comes out otherwise.")
@click.option("--preset", metavar="NAME", help="With --redecide: another preset, by name or TOML file.")
@click.option("--model", metavar="SPEC", help="With --redecide: another model; replay: recorded answers alone.")
@click.option("--without", metavar="STEP,STEP", help="With --redecide: steps of the preset to leave out.")
@json_option
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
    if redecide:
        if prompts or chart_file is not None:
            raise click.UsageError("--redecide prints what differs: leave out --prompts and --chart")
        _redecide(invocation, symbol, session, preset, model, without, as_json)
        return
    for flag, value in (("--preset", preset), ("--model", model), ("--without", without)):
        if value is not None:
            raise click.UsageError(f"{flag} says how to decide again: give --redecide with it")
    from engine.reports.documents.trail import charts_shown, decided, why_document

    with invocation.records(has_decisions) as records:
        made = decided(records, symbol, session)
        written = (
            []
            if chart_file is None
            else _write_charts(invocation.services().open_painter(), charts_shown(records, made), Path(chart_file))
        )
        document = why_document(records, made, written)
    if as_json:
        show_json(document)
        return
    from tui.trail_text import why_lines

    console = standard_output()
    lines = (console.inked(line) for line in why_lines(document, console.width, prompts=prompts))
    show_lines([*_note(records.note), *lines, *(f"chart: {path}" for path in written)])


def _redecide(
    invocation: Invocation,
    symbol: str,
    session: date,
    preset: str | None,
    model: str | None,
    without: str | None,
    as_json: bool,
) -> None:
    from engine.app.redecision import redecide
    from engine.lab.decision_changes import Changes
    from engine.reports.documents.redecision import redecision_document
    from engine.reports.documents.trail import decided

    changes = Changes(preset, model, listed(without))
    with invocation.records(has_decisions) as records:
        made = decided(records, symbol, session)
        done = redecide(invocation.services(), records.required, made, changes)
        document = redecision_document(records, done, changes)
    if as_json:
        show_json(document)
        return
    from tui.redecision_text import redecision_lines

    console = standard_output()
    show_lines([*_note(records.note), *map(console.inked, redecision_lines(document, console.width))])


def _note(note: str) -> list[str]:
    return [note] if note else []


def _write_charts(painter: ChartPainter, charts: Iterable[ChartSpec], file: Path) -> list[str]:
    """Paint the charts: the first into the file, others beside it under their kind."""
    written = []
    for number, chart in enumerate(charts):
        path = file.with_name(f"{file.stem}-{chart.kind}{file.suffix}") if number else file
        image = asyncio.run(painter.paint(chart))
        try:
            path.write_bytes(image)
        except OSError as error:
            raise DataError(f"{path} cannot be written ({error.strerror}): name another file") from None
        written.append(str(path))
    return written
