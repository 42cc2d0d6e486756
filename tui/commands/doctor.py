"""`paperdesk doctor` (set-up): check configuration, keys, data, journals and versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tui.console import Console, show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from tui.commands.doctor_checks import Finding


@click.command("doctor")
@click.option(
    "--connect", is_flag=True, help="Asks each configured model two tiny questions, and the broker for the account."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, connect: bool, as_json: bool) -> int:
    """Checks what a desk needs and says where every setting comes from. Keys are named, never shown.

    The exit code is 1 where something that is needed is missing or broken.

    \b
    Examples:
      paperdesk doctor
      paperdesk doctor --connect --json
    """
    from tui.commands.doctor_checks import FAIL, examine

    findings = list(examine(invocation, connect))
    healthy = all(finding.state != FAIL for finding in findings)
    if as_json:
        checks = [{"area": f.area, "name": f.name, "state": f.state, "detail": f.detail} for f in findings]
        show(json.dumps({"schema": 1, "healthy": healthy, "checks": checks}, indent=2, allow_nan=False))
    else:
        show("\n".join(_lines(findings, standard_output())))
        failed = sum(finding.state == FAIL for finding in findings)
        show("" if healthy else f"\n{failed} check{'s' if failed > 1 else ''} failed")
    return 0 if healthy else 1


def _lines(findings: list[Finding], console: Console) -> list[str]:
    from tui.plain_text import one_line
    from tui.text_table import wrapped

    lines: list[str] = []
    widest = min(24, max(len(finding.name) for finding in findings))
    area = ""
    for finding in findings:
        if finding.area != area:
            lines += ([""] if area else []) + [console.bold(finding.area)]
            area = finding.area
        head = f"  {finding.state:<5} {finding.name:<{widest}}  "
        indent = " " * len(head)
        detail = wrapped(one_line(finding.detail), console.width - len(head))
        lines += [(head if n == 0 else indent) + line for n, line in enumerate(detail)]
    return [line.rstrip() for line in lines]
