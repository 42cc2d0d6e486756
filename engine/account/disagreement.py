"""Errors of an account and a journal that disagree: what waiting can cure is awaited first, everything else halts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.domain.brokerage import Difference
from engine.errors import DeskHalted, TryAgainLater

CASH = "cash"
TAKE_ITS_SIDE = "see `paperdesk reconcile`, and take the broker's side with `paperdesk reconcile --adopt`"


class BooksDisagree(DeskHalted):
    """Journal and broker disagree; `differences` holds both sides of every point."""

    def __init__(self, message: str, differences: Sequence[Difference]) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


class EntryAwaited(TryAgainLater):
    """Cash has moved at the broker, and the entry of the account's history that says why may still come."""

    def __init__(self, message: str, differences: Sequence[Difference]) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


def disagreement(desk: str, differences: Sequence[Difference], advice: str = TAKE_ITS_SIDE) -> BooksDisagree:
    """The error that stops a desk, where waiting does not change the differences."""
    return _halting(desk, differences, f"waiting does not change it: {advice}")


def unexplained(
    desk: str, differences: Sequence[Difference], *, since: datetime | None, now: datetime, patience: timedelta
) -> BooksDisagree | EntryAwaited:
    """The error of a reconciliation that found differences. A difference in cash alone waits `patience` for its entry,
    counted from `since`, when a run saw it first (UTC; None: this one does)."""
    if not only_cash(differences):
        return disagreement(desk, differences)
    due = (since or now) + patience
    if now < due:
        (cash,) = differences
        return EntryAwaited(
            f"the broker's cash is {cash.amount:+,.2f} off the journal of {desk}, and the account's history has no "
            f"entry for it yet: one is awaited until {due:%Y-%m-%d %H:%M} UTC, without a trade before; run again later",
            differences,
        )
    awaited = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None and patience else ""
    return _halting(
        desk,
        differences,
        f"no entry of the account's history explains it{awaited}; one that comes late still can, else {TAKE_ITS_SIDE}",
    )


def only_cash(differences: Sequence[Difference]) -> bool:
    """True where nothing but cash differs: an entry of the account's history that comes late can explain it."""
    return all(one.what == CASH for one in differences)


def _halting(desk: str, differences: Sequence[Difference], advice: str) -> BooksDisagree:
    points = ", ".join(one.what for one in differences[:4]) + (", ..." if len(differences) > 4 else "")
    return BooksDisagree(
        f"the broker's account and the journal of {desk} disagree ({points}): nothing was traded; {advice}",
        differences,
    )
