"""`paperdesk rehearse` (desk): run the backtest and arena that a preset must pass before live paper trading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import NO
from engine.reports.documents.rehearsal import rehearsal_bound, rehearsal_figure
from tui.settings.invocation import Invocation, command
from tui.shell.cost_confirmation import agree, yes_option
from tui.shell.interruption import interruptible
from tui.shell.progress import work_line
from tui.text.console import show_document, standard_output
from tui.text.plain_text import facts, table


@command("rehearse")
@yes_option
def rehearse_command(invocation: Invocation, yes: bool) -> int:
    """Runs the backtest and the arena of the preset's [rehearsal] table, checks them against its bounds and stores the
    certificate.

    A preset with that table must pass before its desk may trade at a broker: `--daily` and `--watch` exit with 78 if
    the certificate is missing, failed, or belongs to another preset text, prompt or model. The simulated market needs
    none. Exits with 1 if a bound was missed.

    \b
    Examples:
      paperdesk rehearse
      paperdesk rehearse --yes --json
    """
    from engine.app.records.spending import within_day
    from engine.app.upkeep.rehearsal import planned_rehearsal, rehearsal_forecast, run_rehearsal

    services = invocation.services()
    planned = planned_rehearsal(services)
    agree(services, rehearsal_forecast(services, planned), yes, declined=NO)
    with within_day(services) as within, interruptible() as stop, work_line() as report:
        certificate = run_rehearsal(within, planned, report, stop)
    show_document(certificate, lambda: _lines(certificate))
    return 0 if certificate["passed"] else NO


def _lines(certificate: Mapping[str, Any]) -> Iterator[str]:
    from engine.app.upkeep.rehearsal import BOUNDS

    console = standard_output()
    verdict = "passed" if certificate["passed"] else "not passed"
    yield console.bold(f"Rehearsal of {certificate['preset']} for the desk {certificate['desk']}: {verdict}")
    rows = [
        (part["part"], figure, rehearsal_figure(figure, part[figure]), _bound(part["bounds"], bound, figure))
        for part in certificate["parts"]
        for bound, figure in BOUNDS.items()
    ]
    yield from table(("PART", "FIGURE", "VALUE", "BOUND"), rows, {"VALUE"}, console.room)
    yield ""
    pairs = [
        ("Missed", "\n".join(certificate["missed"])),
        ("Runs", "\n".join(part["run"] for part in certificate["parts"])),
        ("Text", f"preset {certificate['preset_hash'][:12]}"),
    ]
    yield from facts(pairs, min(console.width, 100))


def _bound(bounds: Mapping[str, float], name: str, figure: str) -> str:
    return rehearsal_bound(figure, bounds[name]) if name in bounds else ""
