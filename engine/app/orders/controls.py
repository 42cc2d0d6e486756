"""Operator controls on a desk: halt, pause, resume, and the orders that wait for approval or veto."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.app.desk.demo_history import by_desk_time
from engine.errors import CredentialsRefused
from engine.execution import controls
from engine.journal.database import refuse_unreadable
from engine.reports.documents.controls import halt_document, pause_document, resume_document
from engine.reports.documents.row_json import Row
from engine.settings import places

if TYPE_CHECKING:
    from engine.app.orders.approvals import ApprovalDesk
    from engine.services import Services

Stop = Literal["halt", "pause"]


def controlled_journal(desk: str) -> Path:
    """The journal of a desk, which need not be there. Raises as `refuse_unreadable` does."""
    journal = places.desk_journal(desk)
    refuse_unreadable(journal)
    return journal


def halt_desk(desk: str, now: datetime, reason: str) -> Row:
    """Halt a desk, and the document of it. Raises as `controlled_journal` does."""
    journal = controlled_journal(desk)
    _, changed = controls.halt(journal, now, " ".join(reason.split()))
    return halt_document(desk, journal, changed=changed)


def pause_desk(desk: str, now: datetime, reason: str) -> Row:
    """Pause a desk, and the document of it. Raises as `controlled_journal` does."""
    journal = controlled_journal(desk)
    pause, changed = controls.pause(journal, now, " ".join(reason.split()))
    return pause_document(desk, pause, changed=changed)


def resume_desk(desk: str, now: datetime, only: Stop | None = None) -> Row:
    """End a desk's halt and its pause, or `only` one of them, and the document of it. Raises as `controlled_journal`
    does."""
    journal = controlled_journal(desk)
    halt = None if only == "pause" else controls.resume(journal, now)
    pause = None if only == "halt" else controls.unpause(journal, now)
    return resume_document(desk, journal, halt, pause)


def approval_desk(services: Services) -> ApprovalDesk:
    """The configured desk, whose orders an operator answers. Raises as `controlled_journal` does."""
    from engine.app.desk.run import submit_approved
    from engine.app.orders.approvals import ApprovalDesk, limited_edit, order_effects, order_times

    now = _desk_time(services)
    return ApprovalDesk(
        desk=services.desk,
        journal=controlled_journal(services.desk),
        mode=services.config.broker.mode,
        times=order_times(services),
        now=now,
        edit=partial(limited_edit, services),
        effects=partial(order_effects, services, now),
        submit=partial(submit_approved, services),
    )


def _desk_time(services: Services) -> datetime | None:
    """UTC by the clock that a desk goes by; None where that is the broker's, and it does not answer."""
    if services.broker is None or not services.goes_by_broker:
        return by_desk_time(services).clock.now()
    with suppress(CredentialsRefused):  # what waits is listed without keys too
        return services.broker.time()
    return None
