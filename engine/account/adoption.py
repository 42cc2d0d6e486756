"""A person looks at journal and broker side by side, and may take the broker's side: recorded, never in silence."""

from __future__ import annotations

from datetime import date, timedelta

from engine.account.booking import Booking
from engine.account.comparison import CASH, disagreement
from engine.account.reconciliation import Reconciler, ReconciliationReport
from engine.domain.brokerage import Difference
from engine.domain.order import is_final
from engine.domain.portfolio import CENT, ZERO
from engine.domain.run import Adoption
from engine.errors import ConfigError
from engine.ports import Calendar, Orders


async def ended_at_the_broker(
    broker: Orders, reconciler: Reconciler, report: ReconciliationReport, desk: str
) -> ReconciliationReport:
    """Cancels what stands open at the broker of orders that the journal calls ended, and looks again. Raises
    BooksDisagree for an open order that is not the desk's: that one is whoever placed it to cancel."""
    orders = report.journal.orders
    strange = {f"order {o.order_id}" for o in report.open_orders if o.order_id not in orders}
    strangers = [one for one in report.differences if one.what in strange]
    if strangers:
        raise disagreement(
            desk, strangers, "cancel what is not the desk's at the broker, or let it fill, and adopt then"
        )
    ghosts = [o for o in report.open_orders if o.order_id in orders and is_final(orders[o.order_id].state)]
    for order in ghosts:
        await broker.cancel(order.order_id)
    return await reconciler.reconcile() if ghosts else report


def adopt(
    report: ReconciliationReport, booking: Booking, calendar: Calendar, session: date, reason: str
) -> tuple[Adoption, ...]:
    """Takes the broker's side in every difference and books what else is new: adoption rows say what was before and
    after. `session` is the last completed one. A desk without books opens them with what the account holds. Raises
    ConfigError without a reason."""
    if not reason.strip():
        raise ConfigError("an adoption needs its reason, for whoever reads the books later")
    booking.orders(report, session)
    booking.lost(report)
    if report.journal.bound is None:
        return booking.opened(report, session, reason)
    books = report.journal.books
    assert books is not None  # a bound desk has books
    due = session
    if due <= books.session:
        due = calendar.sessions(books.session + timedelta(days=1), books.session + timedelta(days=14))[0]
    adoptions = tuple(_adoption(one, report, due, reason) for one in report.differences if one.amount is not None)
    booking.lines(report, adoptions)
    return adoptions


def _adoption(one: Difference, report: ReconciliationReport, session: date, reason: str) -> Adoption:
    before, after = one.journal or ZERO, one.broker or ZERO
    if one.what == CASH:
        return Adoption(
            session=session, symbol="", before=before, after=after.quantize(CENT), price=ZERO, reason=reason
        )
    held = report.account.positions.get(one.what)
    return Adoption(
        session=session,
        symbol=one.what,
        before=before,
        after=after,
        price=ZERO if held is None else held.average_cost,
        reason=reason,
    )
