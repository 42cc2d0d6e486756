"""`paperdesk bench memory`: whether a memory is worth anything, arm by arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.errors import Interrupted
from tui.commands.options import RunFlags
from tui.shell.agreement import agree_to_jobs
from tui.shell.interruption import interruptible
from tui.shell.progress import work_line
from tui.text.console import show_document, standard_output

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from engine.services import Services

PRESETS = ("desk", "finmem", "tradinggpt-single")
OWN = ("first", "last", "warm_up_from")
"""The options of `bench` that tables of a printed window do not take."""
RECORDED = ("budget", "resume", "out")
"""Those of tables of real prices, which are gone on with and drawn."""
OTHERS = (
    "baselines",
    "strategies",
    "trials",
    "repeats",
    "ablations",
    "without",
    "jobs",
    "keep",
    "abstain_limit",
    *RECORDED,
)
"""Those that it does not take."""
DATA = ("trials", "symbols", "folder", *RECORDED)
TABLES = ("baselines", "presets", "strategies", "without", "keep", *DATA)
"""Those of tables of real prices, which the arena's bench does not take."""
TEXTS = ("models", "presets", *OWN, *OTHERS)
"""Those that the bench of recall does not take."""
PRICES = ("warm_up_from", "trials", "without", "repeats", "jobs", "keep", *RECORDED)
"""Those that the arena's bench does not take on real prices."""


def check_options(name: str, given: Collection[str]) -> None:
    """Raise UsageError for options that belong to another bench."""
    arena = PRICES if "folder" in given else (*OWN, *TABLES)
    foreign = {"memory": OTHERS, "arena": arena, "recall": TEXTS, "tradinggpt": ()}.get(name, OWN)
    wrong = [key for key in foreign if key in given]
    if wrong:
        options = {one.name: one.opts[0] for one in click.get_current_context().command.params}
        raise click.UsageError(f"bench {name} takes no {', '.join(options[key] for key in wrong)}")


def study_memory(
    services: Services,
    flags: RunFlags,
    presets: Sequence[str],
    *,
    yes: bool,
) -> None:
    """Play all arms of the presets and print what came of them."""
    from engine.app.bench.memory import jobs_of, run_memory_bench, studied_specs
    from engine.app.records.spending import within_day
    from engine.reports.documents.memory_worth import memory_document
    from tui.text.memory_worth_text import lines

    names = tuple(presets) or PRESETS
    specs = studied_specs(services, flags.spec(services), names)
    with work_line() as report:
        agree_to_jobs(services, jobs_of(specs), yes, report)
        with within_day(services) as within, interruptible() as stop:
            study = run_memory_bench(within, specs, report, stop)
    document = memory_document(study)
    show_document(document, lambda: lines(document, standard_output().width))
    if study.interrupted:
        raise Interrupted(study.interrupted)
