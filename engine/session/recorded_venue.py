"""The market and the books as they were recorded: for cycles that go on after a kill, redecisions and parity checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from engine.domain.market import Symbol
from engine.domain.order import Order
from engine.domain.portfolio import Portfolio
from engine.execution.controls import Halted
from engine.execution.submission import SubmissionResult
from engine.execution.venue import BuyingPower, SessionVenue, Settlement
from engine.market.trading_hours import decision_time
from engine.session.context import Moment, SessionContext
from engine.session.inputs import Inputs, TurnInputs, read_inputs


@dataclass(frozen=True, slots=True)
class RecordedVenue:
    """The books and the buying power that a turn was decided with. `settling` closes sessions where the run goes on;
    without it nothing is settled."""

    portfolio: Portfolio
    buying_power: BuyingPower
    whole: frozenset[Symbol] = frozenset()
    settling: SessionVenue | None = None

    @classmethod
    def of(cls, inputs: TurnInputs, settling: SessionVenue | None = None) -> RecordedVenue:
        """The venue of a turn whose inputs were kept."""
        power = BuyingPower(inputs.portfolio.cash, inputs.reserved, queued=inputs.queued)
        return cls(inputs.portfolio, power, inputs.whole_shares, settling)

    async def settle(self, session: date) -> Settlement:
        """Settle where the run goes on."""
        return Settlement() if self.settling is None else await self.settling.settle(session)

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """The symbols that were traded in whole shares."""
        return self.whole


class NoSubmission:
    """The route of orders that are only looked at: none is sent, and no halt counts."""

    def halt(self) -> Halted | None:
        """None."""
        return None

    async def submit(
        self, orders: Sequence[Order], price: Callable[[Symbol], Decimal], until: datetime | None
    ) -> SubmissionResult:
        """The orders as they are."""
        return SubmissionResult(tuple(orders))


def on_recorded_inputs(context: SessionContext, moment: Moment, recorded: Inputs) -> tuple[SessionContext, Moment]:
    """The context and the moment of a killed cycle as it saw them."""
    inputs = read_inputs(recorded, lambda symbol: context.market.calendars.get(symbol, context.calendar))
    now = inputs.now or decision_time(context.calendar, moment.session)
    return (
        replace(context, market=inputs.market, venue=RecordedVenue.of(inputs, context.venue)),
        replace(
            moment, now=now, news_after=inputs.news_after, symbols=inputs.symbols, prices=inputs.prices, quotes=None
        ),
    )
