"""`paperdesk memory` (desk): show what the desk remembers, and how each memory fared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MissingData
from tui import amounts
from tui.commands.options import DAY, json_option, limit_option, lines_shown
from tui.console import show_document, standard_output
from tui.invocation import Invocation, desk_options
from tui.plain_text import cut, one_line, table, wrapped

if TYPE_CHECKING:
    from engine.app.stored_memory import SelectedMemory
    from engine.reports.documents.memory import MemoryFilter
    from memory.presets import MemoryPreset

LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED = "list", "lifeline", "preview", "optimize", "export", "reembed"
_INDENT = " " * 10
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
@click.option("--preset", metavar="NAME", help="With preview: whose constants, by name or FILE.toml (default: desk's).")
@click.option("--embedder", metavar="SPEC", help="With reembed: by what (default: memory.embedder).")
@json_option
@desk_options
def memory_command(
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

    stored, today = selected.stored, LiveClock().now().date()
    with nullcontext() if selected.missing else stored.opened() as memory:
        document = list_document(selected.head, memory, stored.calendar, chosen, today=today, first=first)
    missing = [selected.missing] if selected.missing else None
    show_document(document, as_json, lambda: missing or _list_lines(selected.title, document))


def _lifeline(selected: SelectedMemory, wanted: str, as_json: bool) -> None:
    from engine.reports.documents.memory import lifeline_document

    with selected.stored.opened() as memory:
        document = lifeline_document(selected.head, memory, selected.stored.calendar, wanted)
    show_document(document, as_json, lambda: _lifeline_lines(document))


def _preview(name: str, as_json: bool) -> None:
    from engine.reports.documents.memory import constants_of, lives_document

    constants = constants_of(name)
    show_document(lives_document(constants), as_json, lambda: _preview_lines(constants))


def _optimize(selected: SelectedMemory, as_json: bool) -> None:
    from dataclasses import asdict

    with selected.stored.opened(writing=True) as memory:
        report = memory.optimize()
    text = (
        f"{selected.stored.place}: {report.records:,} memories, {report.touches:,} changes, "
        f"{report.files_before} files before, {report.files_after} after, {report.bytes_after:,} bytes"
    )
    show_document({**selected.head, **asdict(report)}, as_json, lambda: [text])


def _export(selected: SelectedMemory, file: Path, as_json: bool) -> None:
    from engine.app.stored_memory import export_memory

    count = export_memory(selected.stored, file)
    document = {**selected.head, "file": str(file), "count": count}
    show_document(document, as_json, lambda: [f"{file}: {count:,} memories"])


def _reembed(invocation: Invocation, selected: SelectedMemory, embedder: str | None, as_json: bool) -> None:
    from engine.app.stored_memory import reembed_memory
    from engine.reports.documents.memory import embedder_document

    services = invocation.services()
    made = reembed_memory(services, selected.stored, embedder, selected.desk if selected.run is None else None)
    document = embedder_document(
        selected.head, before=made.before, after=made.after, count=made.count, changed=made.done, use=made.use
    )
    configured = embedder in (None, services.config.memory.embedder)

    def lines() -> Iterator[str]:
        yield from _embedder_lines(made.place, document)
        if made.done and not configured:
            yield f'set memory.embedder = "{embedder}" in the configuration: the next run refuses another'

    show_document(document, as_json, lines)


def _list_lines(title: str, document: Mapping[str, Any]) -> Iterator[str]:
    """Two lines for each memory: its state and its text."""
    from engine.reports.documents.memory import SHORT_ID

    console = standard_output()
    width, shown = min(console.width, 120), document["memories"]
    heading = f"Memory of {title}, at the end of {document['session'] or 'no session'}"
    yield from map(console.bold, wrapped(heading, width))
    if not shown:
        yield from wrapped(_none_of(document), width)
        return
    rows = [
        (
            one["id"][:SHORT_ID],
            one["session"],
            one["symbol"],
            one["layer"],
            f"{one['importance']:.1f}",
            f"{one['recency']:.2f}",
            f"{one['rewards']}" if one["rewards"] else "",
        )
        for one in shown
    ]
    names = ("ID", "WRITTEN", "SYMBOL", "LAYER", "IMPORTANCE", "RECENCY", "REWARDS")
    head, *lines = table(names, rows, {"IMPORTANCE", "RECENCY", "REWARDS"}, width)
    yield head
    for line, one in zip(lines, shown, strict=True):
        owner = f"{one['owner']}, " if len(document["owners"]) > 1 else ""
        yield line
        yield _INDENT + cut(f"{owner}{one['kind']}: {one_line(one['text'])}", width - len(_INDENT))
    if len(shown) < document["count"]:
        yield f"the {len(shown)} most important of {document['count']}; --limit 0 shows all"


def _none_of(document: Mapping[str, Any]) -> str:
    if not document["alive"]:
        return "nothing is alive: it begins later, or has faded by then"
    kinds, symbols = ", ".join(document["kinds"]), ", ".join(document["symbols"])
    return f"none of {document['alive']:,} fits; there are {kinds} of {symbols}"


def _lifeline_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """A memory and every change of it."""
    console = standard_output()
    width = min(console.width, 110)
    yield console.bold(f"{document['symbol']}  {document['kind']} of {document['session']}  {document['id']}")
    if document["hindsight"]:
        known = document["available"]
        yield f"written in training, with sight of what followed: it can be recalled from {known} on"
    yield from wrapped(one_line(document["text"]), width)
    rows = [
        (
            change["session"],
            change["cause"],
            change["layer"] or "gone",
            f"{change['importance']:.1f}",
            f"{change['rewards']}",
            _cause(change["by"]),
        )
        for change in document["changes"]
    ]
    yield from table(
        ("SESSION", "CHANGE", "LAYER", "IMPORTANCE", "REWARDS", "BY"), rows, {"IMPORTANCE", "REWARDS"}, width
    )


def _cause(key: str) -> str:
    """The cause of a change; of a decision its session."""
    parts = one_line(key).split()
    return f"decision of {parts[0]}" if len(parts) == 4 else " ".join(parts)


def _preview_lines(constants: MemoryPreset) -> Iterator[str]:
    """The lives that constants allow; a line that goes on is indented."""
    import textwrap

    from memory.preview import preview

    width = min(standard_output().width, 120)

    for line in preview(constants).split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _embedder_lines(place: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """A change of embedder with its cost."""
    count, after = document["count"], document["after"]
    if not document["changed"]:
        yield f"{place}: its {count:,} memories are by {after} already"
        return
    cost = amounts.number(document["cost"])
    paid = "cost unknown" if cost is None else f"${cost:.4f}"
    calls = document["calls"]
    cost_words = f"; {calls:,} call{'s' if calls > 1 else ''}, {document['input_tokens']:,} tokens, {paid}"
    yield f"{place}: {count:,} memories by {after}, before by {document['before']}{cost_words if calls else ''}"
