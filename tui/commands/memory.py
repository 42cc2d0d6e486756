"""`paperdesk memory`: what the desk or a backtest remembers, how each memory fared, and the constants it lives by."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import DataError, MissingData
from tui.commands.journals import latest_backtests, looked_at
from tui.commands.run_options import DAY
from tui.console import show, standard_output
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from connectors.wiring.kept_memories import Kept
    from engine.config import Config
    from engine.domain.run import ModelUse
    from engine.ports import Calendar
    from memory.record import MemoryRecord, Touch
    from memory.view import Standing

LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED = "list", "lifeline", "preview", "optimize", "export", "reembed"
LAYERS = ("shallow", "intermediate", "deep", "reflection")
LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""
SHORT_ID = 8
"""Characters of an id that a list shows; as many as tell it from all others are enough to name one."""
_PROBED = 30


@dataclass(frozen=True, slots=True)
class _Filter:
    symbol: str | None
    layer: str | None
    kind: str | None
    session: date | None
    limit: int | None

    def given(self) -> bool:
        return any(value is not None for value in (self.symbol, self.layer, self.kind, self.session, self.limit))

    def keeps(self, standing: Standing) -> bool:
        record = standing.record
        return (
            self.symbol in (None, record.symbol)
            and self.layer in (None, standing.layer.value)
            and self.kind in (None, record.kind)
        )


@click.command("memory")
@click.argument("deed", metavar="list|lifeline|preview|optimize|export|reembed", type=click.Choice(
    [LIST, LIFELINE, PREVIEW, OPTIMIZE, EXPORT, REEMBED]
))  # fmt: skip
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
    minilm:FOLDER, openai:MODEL, NAME:MODEL); the old store stays until the new one is whole. Looking never writes.

    \b
    Examples:
      paperdesk memory list --symbol ORVL --layer deep
      paperdesk memory list --session 2025-03-12 --run backtest-20250701-120000-ab12
      paperdesk memory lifeline 3f29c01a
      paperdesk memory preview --preset investorbench
      paperdesk memory export memories.jsonl
      paperdesk memory reembed --embedder openai:text-embedding-3-small
    """
    chosen = _Filter(None if symbol is None else symbol.upper(), layer, kind, session, limit)
    _check(deed, what, chosen, preset, embedder)
    if deed == PREVIEW:
        _preview(invocation, preset, as_json)
        return
    with _meant(invocation) as (head, kept, title, missing):
        if deed == LIST:
            _list(head, kept, title, missing, chosen, as_json)
        elif missing:
            raise MissingData(missing)
        elif deed == LIFELINE:
            _lifeline(head, kept, str(what), as_json)
        elif deed == EXPORT:
            _export(head, kept, Path(str(what)).expanduser(), as_json)
        elif deed == REEMBED:
            _reembed(head, kept, invocation.load().config, embedder, as_json)
        else:
            _optimize(head, kept, as_json)


def _check(deed: str, what: str | None, chosen: _Filter, preset: str | None, embedder: str | None) -> None:
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
def _meant(invocation: Invocation) -> Iterator[tuple[dict[str, Any], Kept, str, str]]:
    """What a JSON document begins with, the memory that is meant, its name in words, and why there is none (empty
    where there is one)."""
    from connectors.wiring.kept_memories import kept_by_desk, kept_by_run

    config = invocation.load().config
    with looked_at(invocation) as (desk, look):
        run = None if look is None or look.run is None else look.reader.run(look.run)
    kept = kept_by_desk(config) if run is None else kept_by_run(run, config)
    title, note = f"desk {desk}" if run is None or run.spec is None else f"backtest {run.id}", ""
    if run is None and not kept.there:
        latest = _latest_that_remembers(invocation)
        if latest is not None:
            with looked_at(Invocation(invocation.config_file, invocation.desk, latest)) as (_, other):
                assert other is not None
                run = other.reader.run(latest)
            kept, title = kept_by_run(run, config), f"backtest {latest}"
            note = f" (the desk {desk} has no memory yet; this is the latest backtest)"
    head = {"schema": 1, "desk": desk, "run": None if run is None or run.spec is None else run.id}
    yield head, kept, title + note, "" if kept.there else _why_none(kept, title)


def _latest_that_remembers(invocation: Invocation) -> str | None:
    from engine import places

    return next((run for run in latest_backtests(_PROBED) if places.run_memory(run).is_dir()), None)


def _why_none(kept: Kept, title: str) -> str:
    from engine.preset import load_preset

    if kept.preset is None:
        return f"the {title} has no memory: a rule strategy remembers nothing"
    if "memory" not in load_preset(kept.preset).steps:
        return f"the {title} has no memory: its preset {kept.preset} keeps none, desk does (desk.preset, --preset)"
    if title.startswith("desk"):
        return f"the {title} remembers nothing yet: paperdesk --daily"
    return f"the {title} left no memory at {kept.place}: run it again"


def _list(head: dict[str, Any], kept: Kept, title: str, missing: str, chosen: _Filter, as_json: bool) -> None:
    if missing:
        empty = {**head, "session": None, "alive": 0, "count": 0, "memories": []}
        show(json.dumps(empty, indent=2) if as_json else missing)
        return
    from engine.desk_memory import AFTER

    with kept.opened() as memory:
        latest = memory.latest
        now = latest if chosen.session is None else kept.calendar.number(chosen.session) + AFTER
        alive = memory.standings(now)
    session = _day(kept.calendar, now) if math.isfinite(now) else None
    found = sorted(filter(chosen.keeps, alive), key=lambda one: (-one.importance, -one.record.born_step, one.record.id))
    most = chosen.limit if chosen.limit is not None else 0 if as_json else LIMIT
    shown = found[:most] if most else found
    if as_json:
        rows = [_standing(one, kept.calendar) for one in shown]
        document = {**head, "session": session and str(session), "alive": len(alive), "count": len(found)}
        show(json.dumps({**document, "memories": rows}, indent=2, allow_nan=False))
        return
    lines = [standard_output().bold(f"Memory of {title}, at the end of {session or 'no session'}")]
    show("\n".join([*lines, *_table(shown, len(found), alive, kept.calendar)]))


def _table(shown: Sequence[Standing], count: int, alive: Sequence[Standing], calendar: Calendar) -> Iterator[str]:
    from tui.plain_text import one_line
    from tui.text_table import table

    if not shown:
        kinds = ", ".join(sorted({one.record.kind for one in alive}))
        yield f"none of {len(alive)} fits; there are {kinds}" if alive else "nothing"
        return
    owners = {one.record.owner for one in alive}
    rows = [
        (
            one.record.id[:SHORT_ID],
            str(_day(calendar, one.record.born_step)),
            one.record.symbol,
            one.record.owner if len(owners) > 1 else "",
            one.layer.value,
            one.record.kind,
            f"{one.importance:.1f}",
            f"{one.recency:.2f}",
            f"{one.access_count}" if one.access_count else "",
            one_line(one.record.text),
        )
        for one in shown
    ]
    head = ("ID", "WRITTEN", "SYMBOL", "OWNER", "LAYER", "KIND", "IMPORTANCE", "RECENCY", "REWARDS", "TEXT")
    yield from table(head, rows, {"IMPORTANCE", "RECENCY", "REWARDS"}, min(standard_output().width, 120))
    if len(shown) < count:
        yield f"the {len(shown)} most important of {count}; --limit 0 shows all"


def _lifeline(head: dict[str, Any], kept: Kept, wanted: str, as_json: bool) -> None:
    with kept.opened() as memory:
        record = _named(memory.records(), wanted)
        line = memory.life_line(record.id, memory.latest)
    if as_json:
        changes = [_change(touch, kept.calendar) for touch in line]
        show(json.dumps({**head, **_record(record, kept.calendar), "changes": changes}, indent=2, allow_nan=False))
        return
    from tui.plain_text import one_line
    from tui.text_table import table, wrapped

    console = standard_output()
    width = min(console.width, 110)
    show(console.bold(f"{record.symbol}  {record.kind} of {_day(kept.calendar, record.born_step)}  {record.id}"))
    if record.hindsight:
        known = _day(kept.calendar, record.available_at)
        show(f"written in training, with sight of what followed: it can be recalled from {known} on")
    show("\n".join(wrapped(one_line(record.text), width)))
    rows = [
        (
            str(_day(kept.calendar, touch.state.step)),
            touch.cause.value,
            touch.state.layer.value if touch.state.layer else "gone",
            f"{touch.state.importance:.1f}",
            f"{touch.state.access_count}",
            one_line(touch.key),
        )
        for touch in line
    ]
    head_row = ("SESSION", "CHANGE", "LAYER", "IMPORTANCE", "REWARDS", "BY")
    show("\n".join(table(head_row, rows, {"IMPORTANCE", "REWARDS"}, width)))


def _named(records: Sequence[MemoryRecord], wanted: str) -> MemoryRecord:
    """The record that an id, or enough of its beginning, names."""
    found = [record for record in records if record.id.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise MissingData(f"no memory has the id {wanted}: paperdesk memory list shows ids")
    near = ", ".join(record.id[: max(SHORT_ID, len(wanted) + 4)] for record in found[:4])
    raise MissingData(f"{len(found)} memories have ids that begin with {wanted}: {near}; give more of it")


def _preview(invocation: Invocation, name: str | None, as_json: bool) -> None:
    from engine.preset import load_preset
    from memory.presets import PRESETS
    from memory.preview import lives, preview

    named = name or invocation.load().config.desk.preset
    constants = PRESETS[named if named in PRESETS else load_preset(named).memory]
    if not as_json:
        show(preview(constants))
        return
    rows = [
        {
            "layer": life.layer.value,
            "kind": life.kind or None,
            "importance": life.importance,
            "probability": life.probability,
            "ends": _finite(life.ends),
            "moves": [{"step": step, "layer": layer.value} for step, layer in life.moves],
        }
        for life in lives(constants)
    ]
    show(json.dumps({"schema": 1, "preset": constants.name, "lives": rows}, indent=2, allow_nan=False))


def _optimize(head: dict[str, Any], kept: Kept, as_json: bool) -> None:
    with kept.opened(writing=True) as memory:
        report = memory.optimize()
    if as_json:
        figures = {name: getattr(report, name) for name in report.__dataclass_fields__}
        show(json.dumps({**head, **figures}, indent=2))
        return
    show(
        f"{kept.place}: {report.records:,} memories, {report.touches:,} changes, {report.files_before} files "
        f"before, {report.files_after} after, {report.bytes_after:,} bytes"
    )


def _reembed(head: dict[str, Any], kept: Kept, config: Config, embedder: str | None, as_json: bool) -> None:
    from connectors.wiring.reembedding import reembed_memory

    made = reembed_memory(kept, config, embedder, config.desk.name if head["run"] is None else None)
    use = made.use
    if as_json:
        paid = {
            "calls": use.calls,
            "input_tokens": use.input_tokens,
            "cost": None if use.cost is None else str(use.cost),
        }
        document = {"before": made.before, "after": made.after, "count": made.count, "changed": made.done, **paid}
        show(json.dumps({**head, **document}, indent=2))
        return
    if not made.done:
        show(f"{made.place}: its {made.count:,} memories are by {made.after} already")
        return
    show(f"{made.place}: {made.count:,} memories by {made.after}, before by {made.before}{_paid(use)}")
    if embedder is not None and embedder != config.memory.embedder:
        show(f'set memory.embedder = "{embedder}" in the configuration: the next run refuses another')


def _paid(use: ModelUse) -> str:
    if not use.calls:
        return ""
    cost = "cost unknown" if use.cost is None else f"${use.cost:.4f}"
    return f"; {use.calls:,} call{'s' if use.calls > 1 else ''}, {use.input_tokens:,} tokens, {cost}"


def _export(head: dict[str, Any], kept: Kept, file: Path, as_json: bool) -> None:
    with kept.opened() as memory:
        lines = [
            {
                **_record(record, kept.calendar),
                "changes": [_change(touch, kept.calendar) for touch in memory.life_line(record.id)],
            }
            for record in memory.records()
        ]
    try:
        with file.open("x", encoding="utf-8") as out:
            out.writelines(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    except FileExistsError:
        raise DataError(f"{file} is there already: name another file") from None
    except OSError as error:
        raise DataError(f"{file} cannot be written ({error.strerror}): name another file") from None
    show(
        json.dumps({**head, "file": str(file), "count": len(lines)}, indent=2)
        if as_json
        else f"{file}: {len(lines):,} memories"
    )


def _standing(one: Standing, calendar: Calendar) -> dict[str, Any]:
    return {
        **_record(one.record, calendar),
        "layer": one.layer.value,
        "importance": one.importance,
        "recency": one.recency,
        "rewards": one.access_count,
        "next_change": str(_day(calendar, one.due)) if math.isfinite(one.due) else None,
    }


def _record(record: MemoryRecord, calendar: Calendar) -> dict[str, Any]:
    return {
        "id": record.id,
        "owner": record.owner,
        "symbol": record.symbol,
        "kind": record.kind,
        "session": str(_day(calendar, record.born_step)),
        "available": str(_day(calendar, record.available_at)),
        "hindsight": record.hindsight,
        "born_into": record.birth_layer.value,
        "born_with": record.importance,
        "source": record.source,
        "types": list(record.labels),
        "rests_on": list(record.rests_on),
        "query_text": record.query_text,
        "text": record.text,
    }


def _change(touch: Touch, calendar: Calendar) -> dict[str, Any]:
    state = touch.state
    return {
        "session": str(_day(calendar, state.step)),
        "step": state.step,
        "cause": touch.cause.value,
        "layer": state.layer.value if state.layer else None,
        "importance": state.importance,
        "rewards": state.access_count,
        "by": touch.key,
    }


def _day(calendar: Calendar, step: float) -> date:
    """The session of a step; what is written a moment after a decision is of its session."""
    return calendar.session_at(int(step))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
