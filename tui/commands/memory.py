"""`paperdesk memory` (desk): show the desk's memories and their history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.domain.decision import LAYERS
from engine.domain.text import counted
from engine.errors import MissingData
from engine.reports import amounts
from tui.commands.due import operator_time
from tui.commands.options import COUNT, DAY, actions, lines_shown, option_of
from tui.commands.report import page_target, write_file
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document, standard_output
from tui.text.memory_lines import change_lines, forgotten_lines, lifeline_lines, list_lines, map_lines, map_note
from tui.text.plain_text import printable, wrapped

if TYPE_CHECKING:
    from engine.app.memory import SelectedMemory
    from engine.reports.documents.memory import MemoryFilter

LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED = "list", "lifeline", "preview", "optimize", "export", "reembed"
ACCEPT, MAP = "accept", "map"
CHANGES = ("pin", "unpin", "forget", "restore")
ARGUMENTS = {
    LIST: "",
    LIFELINE: "ID",
    MAP: "[FILE]",
    **dict.fromkeys(CHANGES, "ID"),
    PREVIEW: "",
    OPTIMIZE: "",
    EXPORT: "FILE",
    REEMBED: "",
    ACCEPT: "",
}


@command("memory")
@actions(ARGUMENTS, "[ID|FILE]", default=LIST)
@option_of((LIST, MAP), "--symbol", metavar="SYMBOL", help="Filter by symbol.")
@option_of((LIST,), "--layer", type=click.Choice(LAYERS), help="Only this layer's.")
@option_of((LIST,), "--session", type=DAY, metavar="DATE", help="State at the end of that session.")
@option_of((LIST, MAP), "--limit", type=COUNT, metavar="N", help="The first N (default: 20; 0 and --json: all).")
@option_of((LIST,), "--forgotten", is_flag=True, help="Forgotten memories, with the reason.")
@option_of(CHANGES, "--reason", metavar="TEXT", default="", help="Reason, recorded in its lifeline.")
@option_of(
    (PREVIEW,), "--preset", metavar="NAME", help="Preset with the constants, or FILE.toml (default: the desk's)."
)
@option_of((REEMBED,), "--embedder", metavar="SPEC", help="Embedder (default: memory.embedder).")
def memory_command(
    *,
    invocation: Invocation,
    action: str,
    what: tuple[str, ...],
    symbol: str | None,
    layer: str | None,
    session: date | None,
    limit: int | None,
    forgotten: bool,
    reason: str,
    preset: str | None,
    embedder: str | None,
) -> None:
    """Shows and edits the desk's memories, or shows those of a backtest with --run (default if the desk has none: the
    latest backtest that has any).

    list shows live memories, most important first, with their current recency and importance. map [FILE] plots memories
    by retrieval type in two dimensions (principal components of the vectors), as HTML. lifeline ID lists every change
    of one memory with its cause; `paperdesk why SYMBOL DATE --memory ID` explains why a decision did not recall it. pin
    ID keeps a memory in its layer, without decay; forget ID excludes it from later recalls but keeps its record; unpin
    and restore undo them. If a run is in progress, the change is made when it ends. preview simulates how long uncited
    memories live under a preset's constants. optimize compacts the store. export FILE writes every memory with its
    changes, one JSON object per line. reembed recomputes every vector with another embedder (hash-384, minilm:FOLDER,
    openai:MODEL, NAME:MODEL) and replaces the store when complete. A run refuses a memory that does not match its
    journal (missing, older, newer); accept accepts it. Commands that only show write nothing.

    \b
    Examples:
      paperdesk memory list --symbol ORVL --layer deep
      paperdesk memory list --session 2025-03-12 --run backtest-20250701-120000-ab12
      paperdesk memory lifeline 3f29c01a
      paperdesk memory map types.html --symbol ORVL --run backtest-20250701-120000-ab12
      paperdesk memory forget 3f29c01a --reason "another company of that name"
      paperdesk memory list --forgotten
      paperdesk memory preview --preset investorbench
      paperdesk memory export memories.jsonl
      paperdesk memory reembed --embedder openai:text-embedding-3-small
    """
    from engine.reports.documents.memory import MemoryFilter

    chosen = MemoryFilter(symbol=None if symbol is None else symbol.upper(), layer=layer, session=session)
    if action == PREVIEW:
        _preview(preset or invocation.load().config.desk.preset)
    elif action in CHANGES:
        _change(invocation, action, what[0], reason)
    elif action == ACCEPT:
        _accept(invocation)
    elif action == REEMBED:
        _reembed(invocation, embedder)
    elif action == LIST:
        _list(invocation, chosen, lines_shown(limit), forgotten=forgotten)
    elif action == MAP:
        page = page_target(what[0]) if what else None
        _map(_existing(invocation), page, chosen.symbol, limit)
    elif action == OPTIMIZE:
        _optimize(_existing(invocation))
    else:
        {LIFELINE: _lifeline, EXPORT: _export}[action](_existing(invocation), what[0])


def _change(invocation: Invocation, action: str, wanted: str, reason: str) -> None:
    from engine.app.orders.memory_control import change_memory
    from engine.messages.commands import MemoryChange

    invocation.refuse_run()
    invocation.begun_desk()
    now, change = operator_time(invocation), MemoryChange(action)
    document = change_memory(invocation.services(), wanted, change, reason=reason, now=now)
    show_document(document, lambda: change_lines(document))


def _accept(invocation: Invocation) -> None:
    from engine.app.orders.memory_control import accept_memory

    invocation.refuse_run()
    document = accept_memory(invocation.services(), operator_time(invocation))
    rows, known = document["rows"], document["known"]
    text = f"the journal of {document['desk']} now expects a memory of {rows:,} rows ({known:,} before)"
    show_document(document, lambda: [text])


def _selected(invocation: Invocation) -> SelectedMemory:
    from engine.app.memory import select_memory
    from engine.reports.documents.records import latest_backtests

    if invocation.run is None and not latest_backtests(1):
        invocation.begun_desk()
    return select_memory(invocation.services(), invocation.run)


def _existing(invocation: Invocation) -> SelectedMemory:
    """The selected memory. Raises MissingData where there is none."""
    selected = _selected(invocation)
    if selected.missing:
        raise MissingData(selected.missing)
    return selected


def _list(invocation: Invocation, chosen: MemoryFilter, first: int, *, forgotten: bool) -> None:
    from contextlib import nullcontext

    from engine.reports.documents.memory import list_document

    selected, today = _selected(invocation), operator_time(invocation).date()
    stored = selected.stored
    with nullcontext() if selected.missing else stored.opened() as memory:
        document = list_document(selected.head, memory, stored.calendar, chosen, today=today, first=first)
    missing = [selected.missing] if selected.missing else None
    lines = forgotten_lines if forgotten else list_lines
    show_document(document, lambda: missing or lines(selected.title, document))


def _lifeline(selected: SelectedMemory, wanted: str) -> None:
    from engine.reports.documents.memory import lifeline_document

    with selected.stored.opened() as memory:
        document = lifeline_document(selected.head, memory, selected.stored.calendar, wanted)
    console = standard_output()
    show_document(document, lambda: map(console.inked, lifeline_lines(document, console.width, console.room)))


def _map(selected: SelectedMemory, file: Path | None, symbol: str | None, limit: int | None) -> None:
    from engine.reports.documents.memory import map_document
    from engine.reports.html import figures_html
    from engine.reports.html_charts import memory_charts

    with selected.stored.opened() as memory:
        document = map_document(selected.head, memory, selected.stored.calendar, symbol)
    shown = {**document, "memories": document["memories"][: limit or None]}
    show_document(shown, lambda: map_lines(selected.title, document))
    if file is not None:
        page = figures_html(f"Memory of {selected.title}", memory_charts(document), [map_note(document)])
        write_file(file, printable(page))


def _preview(name: str) -> None:
    from engine.reports.documents.memory import constants_of, lives_document
    from memory.preview import preview

    constants, width = constants_of(name), min(standard_output().width, 120)
    show_document(lives_document(constants), lambda: wrapped(preview(constants), width))


def _optimize(selected: SelectedMemory) -> None:
    from dataclasses import asdict

    with selected.stored.opened(writing=True) as memory:
        report = memory.optimize()
    text = (
        f"{selected.stored.place}: {counted(report.records, 'memory', 'memories')}, "
        f"{counted(report.touches, 'change')}, "
        f"{report.files_before} files before, {report.files_after} after, {report.bytes_after:,} bytes"
    )
    show_document({**selected.head, **asdict(report)}, lambda: [text])


def _export(selected: SelectedMemory, name: str) -> None:
    from engine.app.memory import export_memory

    file = Path(name).expanduser()
    count = export_memory(selected.stored, file)
    document = {**selected.head, "file": str(file), "count": count}
    show_document(document, lambda: [f"{file}: {counted(count, 'memory', 'memories')}"])


def _reembed(invocation: Invocation, embedder: str | None) -> None:
    from engine.app.memory import reembed_memory
    from engine.reports.documents.memory import embedder_document

    services, selected = invocation.services(), _existing(invocation)
    made = reembed_memory(services, selected.stored, embedder, selected.desk if selected.run is None else None)
    document = embedder_document(
        selected.head, before=made.before, after=made.after, count=made.count, changed=made.done, use=made.use
    )
    configured = embedder in (None, services.config.memory.embedder)

    def lines() -> Iterator[str]:
        yield from _embedder_lines(made.place, document)
        if made.done and not configured:
            yield f'set memory.embedder = "{embedder}" in the configuration: the next run refuses another'

    show_document(document, lines)


def _embedder_lines(place: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """A change of embedder with its cost."""
    count, after = document["count"], document["after"]
    if not document["changed"]:
        yield f"{place}: its {count:,} memories are by {after} already"
        return
    cost = amounts.number(document["cost"])
    paid = "cost unknown" if cost is None else f"${cost:.4f}"
    calls = document["calls"]
    cost_words = f"; {counted(calls, 'call')}, {document['input_tokens']:,} tokens, {paid}"
    memories = counted(count, "memory", "memories")
    yield f"{place}: {memories} by {after}, before by {document['before']}{cost_words if calls else ''}"
