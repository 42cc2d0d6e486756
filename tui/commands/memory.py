"""`paperdesk memory` (desk): show what the desk remembers, and how each memory fared."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.errors import MissingData
from tui.commands.options import DAY, json_option, limit_option, lines_shown
from tui.console import show, show_json, show_lines, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.app.stored_memory import SelectedMemory
    from engine.reports.documents.memory import MemoryFilter

LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED = "list", "lifeline", "preview", "optimize", "export", "reembed"
LAYERS = ("shallow", "intermediate", "deep", "reflection")


@click.command("memory")
@click.argument(
    "action",
    metavar="list|lifeline|preview|optimize|export|reembed",
    type=click.Choice([LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED]),
)
@click.argument("what", required=False)
@click.option("--symbol", metavar="SYMBOL", help="With list: only this symbol's.")
@click.option("--layer", type=click.Choice(LAYERS), help="With list: only this layer's.")
@click.option("--kind", metavar="KIND", help="With list: only this kind, such as news, 10-Q or low-level-reflection.")
@click.option("--session", type=DAY, metavar="DATE", help="With list: as it was at the end of that session.")
@limit_option("first")
@click.option("--preset", metavar="NAME", help="With preview: whose constants (default: the desk's preset).")
@click.option("--embedder", metavar="SPEC", help="With reembed: by what (default: memory.embedder).")
@json_option
@desk_options
def command(
    *,
    invocation: Invocation,
    action: str,
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
    minilm:FOLDER, openai:MODEL, NAME:MODEL); the old store stays until the new one is whole. Showing writes nothing.

    \b
    Examples:
      paperdesk memory list --symbol ORVL --layer deep
      paperdesk memory list --session 2025-03-12 --run backtest-20250701-120000-ab12
      paperdesk memory lifeline 3f29c01a
      paperdesk memory preview --preset investorbench
      paperdesk memory export memories.jsonl
      paperdesk memory reembed --embedder openai:text-embedding-3-small
    """
    from engine.reports.documents.memory import MemoryFilter

    chosen = MemoryFilter(symbol=None if symbol is None else symbol.upper(), layer=layer, kind=kind, session=session)
    filtered = chosen != MemoryFilter() or limit is not None
    _check(action, what, filtered=filtered, preset=preset, embedder=embedder)
    if action == PREVIEW:
        _preview(preset or invocation.load().config.desk.preset, as_json)
        return
    from engine.app.stored_memory import select_memory

    selected = select_memory(invocation.services(), invocation.run)
    if action == LIST:
        _list(selected, chosen, lines_shown(limit, as_json), as_json)
    elif selected.missing:
        raise MissingData(selected.missing)
    elif action == LIFELINE:
        _lifeline(selected, str(what), as_json)
    elif action == EXPORT:
        _export(selected, Path(str(what)).expanduser(), as_json)
    elif action == REEMBED:
        _reembed(invocation, selected, embedder, as_json)
    else:
        _optimize(selected, as_json)


def _check(action: str, what: str | None, *, filtered: bool, preset: str | None, embedder: str | None) -> None:
    if (what is None) == (action in (LIFELINE, EXPORT)):
        needed = {LIFELINE: "an id: paperdesk memory lifeline ID", EXPORT: "a file: paperdesk memory export FILE"}
        raise click.UsageError(f"{action} needs {needed[action]}" if what is None else f"{action} takes no {what!r}")
    if filtered and action != LIST:
        raise click.UsageError("--symbol, --layer, --kind, --session and --limit belong to list")
    if preset is not None and action != PREVIEW:
        raise click.UsageError("--preset belongs to preview; a memory lives by the preset that it was made with")
    if embedder is not None and action != REEMBED:
        raise click.UsageError("--embedder belongs to reembed; what is remembered goes by memory.embedder")


def _list(selected: SelectedMemory, chosen: MemoryFilter, first: int, as_json: bool) -> None:
    from contextlib import nullcontext

    from engine.clock import LiveClock
    from engine.reports.documents.memory import list_document
    from tui.commands.memory_text import list_lines

    stored, today = selected.stored, LiveClock().now().date()
    with nullcontext() if selected.missing else stored.opened() as memory:
        document = list_document(selected.head, memory, stored.calendar, chosen, today=today, first=first)
    if as_json:
        show_json(document)
    elif selected.missing:
        show(selected.missing)
    else:
        show_lines(list_lines(selected.title, document, standard_output()))


def _lifeline(selected: SelectedMemory, wanted: str, as_json: bool) -> None:
    from engine.reports.documents.memory import lifeline_document
    from tui.commands.memory_text import lifeline_lines

    with selected.stored.opened() as memory:
        document = lifeline_document(selected.head, memory, selected.stored.calendar, wanted)
    if as_json:
        show_json(document)
    else:
        show_lines(lifeline_lines(document, standard_output()))


def _preview(name: str, as_json: bool) -> None:
    from engine.reports.documents.memory import constants_of, lives_document
    from tui.commands.memory_text import preview_lines

    constants = constants_of(name)
    if as_json:
        show_json(lives_document(constants))
    else:
        show_lines(preview_lines(constants, min(standard_output().width, 120)))


def _optimize(selected: SelectedMemory, as_json: bool) -> None:
    from dataclasses import asdict

    with selected.stored.opened(writing=True) as memory:
        report = memory.optimize()
    if as_json:
        show_json({**selected.head, **asdict(report)})
    else:
        show(
            f"{selected.stored.place}: {report.records:,} memories, {report.touches:,} changes, "
            f"{report.files_before} files before, {report.files_after} after, {report.bytes_after:,} bytes"
        )


def _export(selected: SelectedMemory, file: Path, as_json: bool) -> None:
    from engine.app.stored_memory import export_memory

    count = export_memory(selected.stored, file)
    if as_json:
        show_json({**selected.head, "file": str(file), "count": count})
    else:
        show(f"{file}: {count:,} memories")


def _reembed(invocation: Invocation, selected: SelectedMemory, embedder: str | None, as_json: bool) -> None:
    from engine.app.stored_memory import reembed_memory
    from engine.reports.documents.memory import embedder_document
    from tui.commands.memory_text import embedder_lines

    services = invocation.services()
    made = reembed_memory(services, selected.stored, embedder, selected.desk if selected.run is None else None)
    document = embedder_document(
        selected.head, before=made.before, after=made.after, count=made.count, changed=made.done, use=made.use
    )
    if as_json:
        show_json(document)
        return
    show_lines(embedder_lines(made.place, document))
    if made.done and embedder is not None and embedder != services.config.memory.embedder:
        show(f'set memory.embedder = "{embedder}" in the configuration: the next run refuses another')
