"""What is done with a memory: put in order, taken elsewhere, embedded anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import DataError
from tui.commands.memory_rows import change_row, record_row
from tui.console import show

if TYPE_CHECKING:
    from engine.app.stored_memory import StoredMemory
    from engine.domain.run import ModelUse
    from engine.services import Services


def optimize(head: dict[str, Any], stored: StoredMemory, as_json: bool) -> None:
    """Puts the small files of many days together."""
    with stored.opened(writing=True) as memory:
        report = memory.optimize()
    if as_json:
        figures = {name: getattr(report, name) for name in report.__dataclass_fields__}
        show(json.dumps({**head, **figures}, indent=2))
        return
    show(
        f"{stored.place}: {report.records:,} memories, {report.touches:,} changes, {report.files_before} files "
        f"before, {report.files_after} after, {report.bytes_after:,} bytes"
    )


def reembed(
    head: dict[str, Any], stored: StoredMemory, services: Services, embedder: str | None, as_json: bool
) -> None:
    """Turns every text to a vector anew; what that cost is said."""
    from engine.app.embedder_change import reembed_memory

    made = reembed_memory(services, stored, embedder, services.desk if head["run"] is None else None)
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
    if embedder is not None and embedder != services.config.memory.embedder:
        show(f'set memory.embedder = "{embedder}" in the configuration: the next run refuses another')


def _paid(use: ModelUse) -> str:
    if not use.calls:
        return ""
    cost = "cost unknown" if use.cost is None else f"${use.cost:.4f}"
    return f"; {use.calls:,} call{'s' if use.calls > 1 else ''}, {use.input_tokens:,} tokens, {cost}"


def export(head: dict[str, Any], stored: StoredMemory, file: Path, as_json: bool) -> None:
    """Writes every memory with its changes, an object a line. Raises DataError for a file that is there already or
    cannot be written."""
    with stored.opened() as memory:
        lines = [
            {
                **record_row(record, stored.calendar),
                "changes": [change_row(touch, stored.calendar) for touch in memory.lifeline(record.id)],
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
