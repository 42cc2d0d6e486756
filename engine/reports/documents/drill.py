"""Results of the drill, as `paperdesk drill` prints and keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

SCHEMA = 1
SANDBOX, ACCOUNT = "sandbox", "account"
"""The place of a drill: at the local broker, or at the configured paper account, where it only reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """The result of one row.

    name: by which it is asked for.
    fault: the fault in words.
    expected, got: codes of its runs; none at an account, where nothing is run.
    held: True where everything did that had to.
    detail: what did not hold; at an account also what was found.
    seconds: that it took.
    """

    name: str
    fault: str
    expected: tuple[int, ...] = ()
    got: tuple[int, ...] = ()
    held: bool
    detail: str = ""
    seconds: float = 0.0


def drill_document(place: str, results: Sequence[RowResult], time: datetime) -> Row:
    """All results, with the time (UTC) at which the drill ended; `ok` where every row held."""
    return {
        "schema": SCHEMA,
        "place": place,
        "time": time.isoformat(),
        "ok": all(one.held for one in results),
        "held": sum(one.held for one in results),
        "count": len(results),
        "rows": [{**row_json.fields(one), "detail": one.detail or None} for one in results],
    }


def codes_text(codes: Iterable[int]) -> str:
    """Codes of runs in their order, such as `75, then 0`."""
    return ", then ".join(map(str, codes))
