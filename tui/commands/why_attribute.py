"""`paperdesk why --attribute`: what each input changed in a decision, or in decisions that are drawn from a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from tui.settings.invocation import Invocation
from tui.shell.agreement import agree
from tui.shell.progress import work_line
from tui.text.console import show_document, standard_output


def show_attribution(
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
        single = symbol is not None and session is not None
        if symbol is None or session is None:
            occasions = sample(records, symbol, *drawn)
        else:
            occasions = [decided(records, symbol, session)]
        agree(services, attribution_forecast(services, records, occasions), yes)
        with within_day(services) as within, work_line() as report:
            found = attribute(within, records, occasions, report)
        document = (
            attribution_document(records, found[0]) if single else run_attribution_document(records, found, drawn[1])
        )
        note = records.note

    def lines() -> Iterator[str]:
        from tui.text.attribution_text import attribution_lines, run_attribution_lines

        console = standard_output()
        yield from [note] if note else []
        made = attribution_lines if single else run_attribution_lines
        yield from map(console.inked, made(document, console.width))

    show_document(document, lines)
