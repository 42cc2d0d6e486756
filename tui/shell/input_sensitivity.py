"""The flag --sensitivity of commands that play runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from engine.errors import MENDED, PaperdeskError
from tui.shell.progress import work_line

if TYPE_CHECKING:
    from engine.services import Services

sensitivity_option = click.option(
    "--sensitivity", is_flag=True, help="Re-run 20 decisions with news flipped, prices mirrored and tickers swapped."
)


def keep_sensitivities(services: Services, runs: Sequence[str]) -> PaperdeskError | None:
    """Keep the input sensitivity of each run; the error, where one that can be mended came between."""
    from engine.app.redecision.sensitivity import keep_sensitivity

    try:
        for run in runs:
            with work_line() as report:
                keep_sensitivity(services, run, report)
    except PaperdeskError as error:
        if error.exit_code not in MENDED:
            raise
        return error
    return None
