"""`paperdesk why --memory`: why a decision recalled a memory, or did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from engine.reports.table import Column
from tui.settings.invocation import Invocation
from tui.text.console import Console, show_document, standard_output
from tui.text.plain_text import cut, one_line, table_of, wrapped

_WIDEST = 110
_MORE = {
    "like another": " ({like}, which was)",
    "not known yet": " ({since})",
    "too new": " (it came in with this session, and only earlier memory was asked for)",
    "gone": " ({cause} on {session})",
    "types not asked for": " ({types})",
}
_COLUMNS = (
    Column("QUERY", "query"),
    *(Column(name.upper(), name, str) for name in ("rank", "of")),
    *(Column(name.replace("_", " ").upper(), name, "{:.3f}".format) for name in ("relevancy", "score", "least_taken")),
)


def show_placement(invocation: Invocation, symbol: str, session: date, wanted: str) -> None:
    """Print the place of a memory in what a decision asked of memory."""
    from engine.app.redecision.redecision import recall_placement
    from engine.reports.documents.memory import placement_document
    from engine.reports.documents.trail import decided

    with invocation.records(decisions=True) as records:
        made = decided(records, symbol, session)
        found = recall_placement(invocation.services(), records.required, made, wanted)
        document = placement_document(records.head, made[0].key, found.record, found.recalls, found.calendar)
        note = records.note
    show_document(document, lambda: [*([note] if note else []), *_lines(document, standard_output())])


def _lines(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    width, memory = min(console.width, _WIDEST), document["memory"]
    of = f"{memory['symbol']} {memory['kind']} of {memory['session']}, owner {memory['owner']}"
    yield console.bold(f"{document['symbol']} {document['session']}: {of}, id {memory['id']}")
    yield cut(one_line(memory["text"]), width)
    later = memory["available"] > document["session"]
    since = f"it is from {memory['available']}" if later else "it was written after this decision"
    if not document["recalls"]:
        yield "nothing was asked of memory"
    for one in document["recalls"]:
        told = {
            **(one["gone"] or {}),
            "since": since,
            "types": ", ".join(memory["types"]),
            "like": (one["like"] or "")[:8],
        }
        said = one["reason"] if one["reason"] == "recalled" else f"not recalled, {one['reason']}"
        more = _MORE.get(one["reason"], "").format(**told)
        yield from wrapped(f"{one['question']} of {one['owner']}: {said}{more}", width)
        if one["types"]:
            scores = f"recency {one['recency']:.3f}, importance {one['importance']:.1f}"
            yield f"  {one['layer']}, {scores}; relevancy is {one['measure']}; {one['k']} are taken by each query"
            yield from (f"  {line}" for line in table_of(_COLUMNS, one["types"], width - 2))
