"""`paperdesk bench arena`: the tables of Agent Trading Arena with our arms beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.errors import Interrupted
from tui.shell.agreement import agree, agree_to_jobs
from tui.shell.interruption import interruptible
from tui.shell.progress import work_line
from tui.text.arena_prices_text import compared_rows, prices_lines
from tui.text.console import show_document, standard_output
from tui.text.plain_text import wrapped

if TYPE_CHECKING:
    from engine.domain.market import Symbol
    from engine.services import Services


def bench_arena(
    services: Services,
    models: Sequence[str],
    repeats: int,
    jobs: int,
    *,
    windows: bool,
    yes: bool,
) -> None:
    """Play all arms of the models, those of other windows where asked for, and print them beside the printed rows."""
    from engine.app.arena.bench import arms_forecast, arms_of, run_arena_bench

    arms = arms_of(services, models or (services.config.models.default,), repeats, windows=windows)
    agree(services, arms_forecast(services, arms), yes)
    with interruptible() as stop, work_line() as report:
        document = run_arena_bench(services, arms, jobs=jobs, report=report, stop=stop)
    show_document(document, lambda: _lines(document, standard_output().width))
    if document["interrupted"]:
        raise Interrupted("interrupted: the arms that are done are printed, recorded answers are not asked again")


def bench_prices(
    services: Services,
    folder: str,
    models: Sequence[str],
    *,
    symbols: Sequence[Symbol] | None,
    window: tuple[date, date] | None,
    agents: bool,
    ablations: bool,
    presets: Sequence[str],
    strategies: Sequence[str],
    yes: bool,
) -> None:
    """Play the portfolio agent and the paper's rules on real prices."""
    from engine.app.arena.prices import agent_jobs, requested_bench, run_prices_bench
    from engine.app.records.spending import within_day

    bench = requested_bench(
        services,
        folder,
        symbols=symbols,
        window=window,
        models=(models or (services.config.models.default,)) if agents else (),
        ablations=ablations,
        presets=presets,
        strategies=strategies,
    )
    jobs = agent_jobs(services, bench)
    with work_line() as report:
        agree_to_jobs(services, jobs, yes, report)
        with within_day(services) as within, interruptible() as stop:
            document = run_prices_bench(within, bench, jobs, report, stop)
    show_document(document, lambda: prices_lines(document, standard_output().width))
    if document["interrupted"]:
        raise Interrupted("interrupted: the rows that are done are printed, recorded answers are not asked again")


def _lines(document: Mapping[str, Any], width: int) -> Iterator[str]:
    for printed in document["tables"]:
        yield f"Agent Trading Arena Table {printed['table']}: {printed['title']}"
        yield from compared_rows(printed, document["ours"], width)
        yield ""
    yield f"Ours: {document['days']} days, mean of {document['repeats']} with seats rotated; TR to WR in percent."
    yield "What cannot be had:"
    for text in document["absent"]:
        first, *more = wrapped(text, width - 2)
        yield from (f"- {first}", *(f"  {line}" for line in more))
    if document["runs"]:
        yield f"Again: paperdesk arena --resume {document['runs'][0]}"
