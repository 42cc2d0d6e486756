"""The flag --sensitivity of commands that play runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tui.shell.cost_confirmation import agree
from tui.shell.progress import work_line
from tui.text.console import standard_output

if TYPE_CHECKING:
    from engine.services import Services

sensitivity_option = click.option(
    "--sensitivity", is_flag=True, help="Re-run 20 decisions with news flipped, prices mirrored and tickers swapped."
)


def sensitivities(services: Services, runs: Sequence[str], *, yes: bool) -> list[dict[str, Any]]:
    """The input sensitivity of each run, once its forecast is agreed to."""
    from engine.app.redecision.sensitivity import sensitivity

    found = []
    for run in runs:
        with work_line() as report:
            found.append(sensitivity(services, run, lambda forecast: agree(services, forecast, yes), report))
    return found


def sensitivity_part(document: Mapping[str, Any]) -> Iterator[str]:
    """The input sensitivity of a document, where it has any, in plain text."""
    from tui.text.attribution_text import sensitivity_lines

    for one in document.get("sensitivity", ()):
        yield ""
        yield from sensitivity_lines(one, standard_output().width)
