"""Errors of an account and a journal that disagree: what waiting can cure is awaited first, everything else halts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from engine.domain.brokerage import Difference
from engine.errors import DeskHalted, TryAgainLater

CASH = "cash"
REBUILD = "recover what the journal lacks with `paperdesk reconcile --rebuild`"
TAKE_ITS_SIDE = "see `paperdesk reconcile`, and take the broker's side with `paperdesk reconcile --adopt`"


class BooksDisagree(DeskHalted):
    """Journal and broker disagree; `differences` holds both sides of every point."""

    def __init__(self, message: str, differences: Sequence[Difference]) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


class EntryAwaited(TryAgainLater):
    """Cash or shares have moved at the broker, and the entries of the account's history that say why may still come:
    `awaited` says of what by difference, `until` when (UTC) it is overdue."""

    def __init__(
        self, message: str, differences: Sequence[Difference], awaited: Mapping[str, str], until: datetime
    ) -> None:
        super().__init__(message)
        self.differences = tuple(differences)
        self.awaited = dict(awaited)
        self.until = until


def disagreement(desk: str, differences: Sequence[Difference], advice: str = TAKE_ITS_SIDE) -> BooksDisagree:
    """The error that stops a desk, where waiting does not change the differences."""
    return _halting(desk, differences, f"waiting does not change it: {advice}")


def unexplained(
    desk: str,
    differences: Sequence[Difference],
    awaited: Mapping[str, str],
    *,
    since: datetime | None,
    now: datetime,
    patience: timedelta,
) -> BooksDisagree | EntryAwaited:
    """The error of a reconciliation that found differences. Those that entries of the account's history can explain
    wait for them for `patience`, counted from `since`, when a run saw them first (UTC; None: this one does); `awaited`
    says of what an entry is awaited, by difference."""
    if any(one.what not in awaited for one in differences):
        return disagreement(desk, differences)
    due = (since or now) + patience
    if now < due:
        moved = ", ".join(_moved(one) for one in differences)
        return EntryAwaited(
            f"at the broker {moved} beside the journal of {desk}, and the account's history has no entry for it yet: "
            f"one is awaited until {due:%Y-%m-%d %H:%M} UTC ({'; '.join(awaited.values())}), and nothing is "
            "traded until then; run again later",
            differences,
            awaited,
            due,
        )
    waited = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None and patience else ""
    return _halting(
        desk,
        differences,
        f"no entry of the account's history explains it{waited}; one that comes late still can, else {TAKE_ITS_SIDE}",
    )


def _moved(one: Difference) -> str:
    amount = one.amount or 0
    return f"cash is {amount:+,.2f}" if one.what == CASH else f"{one.what} is {amount:+f}"


def _halting(desk: str, differences: Sequence[Difference], advice: str) -> BooksDisagree:
    points = ", ".join(one.what for one in differences[:4]) + (", ..." if len(differences) > 4 else "")
    return BooksDisagree(
        f"the broker's account and the journal of {desk} disagree ({points}): nothing was traded; {advice}",
        differences,
    )
