"""`paperdesk memory` (desk): show what the desk remembers, and how each memory fared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MissingData
from engine.reports.documents.records import latest_backtests, open_records
from tui.commands.memory_list import Filter, show_lifeline, show_list
from tui.commands.memory_preview import show_preview
from tui.commands.memory_upkeep import export, optimize, reembed
from tui.commands.options import DAY
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.app.stored_memory import StoredMemory

LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED = "list", "lifeline", "preview", "optimize", "export", "reembed"
LAYERS = ("shallow", "intermediate", "deep", "reflection")
_PROBED = 30


@click.command("memory")
@click.argument(
    "deed",
    metavar="list|lifeline|preview|optimize|export|reembed",
    type=click.Choice([LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED]),
)
@click.argument("what", required=False)
@click.option("--symbol", metavar="SYMBOL", help="With list: only this symbol's.")
@click.option("--layer", type=click.Choice(LAYERS), help="With list: only this layer's.")
@click.option("--kind", metavar="KIND", help="With list: only this kind, such as news, 10-Q or low-level-reflection.")
@click.option("--session", type=DAY, metavar="DATE", help="With list: as it was at the end of that session.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The first N (default: 20; 0 and --json: all).")
@click.option("--preset", metavar="NAME", help="With preview: whose constants (default: the desk's preset).")
@click.option("--embedder", metavar="SPEC", help="With reembed: by what (default: memory.embedder).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(
    invocation: Invocation,
    deed: str,
    what: str | None,
    symbol: str | None,
    layer: str | None,
    kind: str | None,
    session: date | None,
    limit: int | None,
    preset: str | None,
    embedder: str | None,
    as_json: bool,
) -> None:
    """Shows what the desk remembers, or with --run a backtest; where the desk has no memory, the latest backtest that
    has one.

    list has what is alive, the most important first, with recency and importance as they stand. lifeline ID tells
    every change of one memory with its cause. preview simulates how long memories live by a preset's constants when
    nobody cites them. optimize puts the small files of many days together. export FILE writes every memory with its
    changes, a JSON object a line. reembed turns every text to a vector anew by another embedder (hash-384,
    minilm:FOLDER, openai:MODEL, NAME:MODEL); the old store stays until the new one is whole. Reconciler never writes.

    \b
    Examples:
      paperdesk memory list --symbol ORVL --layer deep
      paperdesk memory list --session 2025-03-12 --run backtest-20250701-120000-ab12
      paperdesk memory lifeline 3f29c01a
      paperdesk memory preview --preset investorbench
      paperdesk memory export memories.jsonl
      paperdesk memory reembed --embedder openai:text-embedding-3-small
    """
    chosen = Filter(None if symbol is None else symbol.upper(), layer, kind, session, limit)
    _check(deed, what, chosen, preset, embedder)
    if deed == PREVIEW:
        show_preview(invocation, preset, as_json)
        return
    with _meant(invocation) as (head, kept, title, missing):
        if deed == LIST:
            show_list(head, kept, title, missing, chosen, as_json)
        elif missing:
            raise MissingData(missing)
        elif deed == LIFELINE:
            show_lifeline(head, kept, str(what), as_json)
        elif deed == EXPORT:
            export(head, kept, Path(str(what)).expanduser(), as_json)
        elif deed == REEMBED:
            reembed(head, kept, invocation.services(), embedder, as_json)
        else:
            optimize(head, kept, as_json)


def _check(deed: str, what: str | None, chosen: Filter, preset: str | None, embedder: str | None) -> None:
    if (what is None) == (deed in (LIFELINE, EXPORT)):
        needed = {LIFELINE: "an id: paperdesk memory lifeline ID", EXPORT: "a file: paperdesk memory export FILE"}
        raise click.UsageError(f"{deed} needs {needed[deed]}" if what is None else f"{deed} takes no {what!r}")
    if chosen.given() and deed != LIST:
        raise click.UsageError("--symbol, --layer, --kind, --session and --limit belong to list")
    if preset is not None and deed != PREVIEW:
        raise click.UsageError("--preset belongs to preview; a memory lives by the preset that it was made with")
    if embedder is not None and deed != REEMBED:
        raise click.UsageError("--embedder belongs to reembed; what is remembered goes by memory.embedder")


@contextmanager
def _meant(invocation: Invocation) -> Iterator[tuple[dict[str, Any], StoredMemory, str, str]]:
    """What a JSON document begins with, the memory that is meant, its name in words, and why there is none (empty
    where there is one)."""
    from engine.app.stored_memory import memory_of_desk, memory_of_run

    services = invocation.services()
    with invocation.records() as records:
        run = None if records.run is None else records.required.run(records.run)
    desk = records.desk
    kept = memory_of_desk(services) if run is None else memory_of_run(services, run)
    title, note = f"desk {desk}" if run is None or run.spec is None else f"backtest {run.id}", ""
    if run is None and not kept.exists:
        latest = _latest_that_remembers(invocation)
        if latest is not None:
            with open_records(desk, latest) as records:
                run = records.required.run(latest)
            kept, title = memory_of_run(services, run), f"backtest {latest}"
            note = f" (the desk {desk} has no memory yet; this is the latest backtest)"
    head = {"schema": 1, "desk": desk, "run": None if run is None or run.spec is None else run.id}
    yield head, kept, title + note, "" if kept.exists else _why_none(kept, title)


def _latest_that_remembers(invocation: Invocation) -> str | None:
    from engine import places

    return next((run for run in latest_backtests(_PROBED) if places.run_memory(run).is_dir()), None)


def _why_none(kept: StoredMemory, title: str) -> str:
    from engine.preset import load_preset

    if kept.preset is None:
        return f"the {title} has no memory: a rule strategy remembers nothing"
    if "memory" not in load_preset(kept.preset).steps:
        return f"the {title} has no memory: its preset {kept.preset} keeps none, desk does (desk.preset, --preset)"
    if title.startswith("desk"):
        return f"the {title} remembers nothing yet: paperdesk --daily"
    return f"the {title} left no memory at {kept.place}: run it again"
