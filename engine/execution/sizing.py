"""The size of a proposal by the rule that it names: conditions are checked, the size is cut to the rule's band.

Source: FinVision table 5 [V6]. The result never depends on whether the model meant well.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from engine.domain.decision import Action, Cut, Proposal, SizingRule
from engine.settings import Band, Sizing

ZERO = Decimal(0)
HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionContext:
    """A book's position in a symbol at the moment of the decision, in the quote currency.

    quantity: shares held.
    price: of the moment, or the last close.
    average_cost: per share; zero where nothing is held.
    cash: net of what open buys may still take.
    value: of the whole book.
    gains_in_a_row: sessions in a row, up to the last, that closed higher.
    """

    quantity: Decimal
    price: Decimal
    average_cost: Decimal
    cash: Decimal
    value: Decimal
    gains_in_a_row: int

    @property
    def cash_fraction(self) -> Decimal:
        """Cash over the portfolio's value; zero where the value is."""
        return self.cash / self.value if self.value > 0 else ZERO

    @property
    def unrealized(self) -> Decimal:
        """Profit that is not realized yet, in the quote currency."""
        return (self.price - self.average_cost) * self.quantity

    @property
    def gain(self) -> Decimal:
        """Unrealized gain over average cost, as a fraction; zero where nothing is held."""
        return self.price / self.average_cost - 1 if self.quantity and self.average_cost > 0 else ZERO


@dataclass(frozen=True, slots=True)
class Sized:
    """A proposal after its rule: `size` in percent of the portfolio (zero where nothing is to be traded)."""

    action: Action
    size: Decimal
    cuts: tuple[Cut, ...] = ()


def size(proposal: Proposal, position: PositionContext, sizing: Sizing) -> Sized:
    """Size a proposal by its rule. A refusal is a HOLD with the reason among its cuts."""
    if proposal.action in (Action.HOLD, Action.ABSTAIN):
        return Sized(proposal.action, ZERO)
    asked = Decimal(proposal.size)
    bands = sizing.buy if proposal.action is Action.BUY else sizing.sell
    band = sizing.unruled if proposal.rule is None else bands.get(proposal.rule)
    if band is None:
        return _refused(asked, "rule", f"{proposal.rule or 'no rule'} does not allow a {proposal.action}")
    violation = _violation(proposal.action, proposal.rule, band, position, sizing)
    if violation:
        return _refused(asked, proposal.rule or "advice", violation)
    if sizing.whole:
        return Sized(proposal.action, HUNDRED)
    allowed = min(max(asked, band.smallest), band.largest)
    if allowed == asked:
        return Sized(proposal.action, asked)
    reason = f"{proposal.rule or 'advice'} trades {band.smallest}-{band.largest} % of the portfolio"
    return Sized(proposal.action, allowed, (Cut("band", asked, allowed, reason),))


def _violation(action: Action, rule: SizingRule | None, band: Band, position: PositionContext, sizing: Sizing) -> str:
    if action is Action.SELL and position.quantity <= 0 and not sizing.allow_short:
        return "nothing is held to be sold"
    if band.cash_above is not None and position.cash_fraction <= band.cash_above:
        return f"cash is {position.cash_fraction:.2%} of the portfolio and has to be above {band.cash_above:.0%}"
    if rule is SizingRule.GAIN_OVER_COST and position.gain <= sizing.gain_over_cost:
        return f"the gain over average cost is {position.gain:.2%} and has to be above {sizing.gain_over_cost:.0%}"
    if rule is SizingRule.GAINS_IN_A_ROW and position.gains_in_a_row < sizing.gains_in_a_row:
        return f"the close rose {position.gains_in_a_row} sessions in a row, not {sizing.gains_in_a_row}"
    return ""


def _refused(asked: Decimal, rule: str, reason: str) -> Sized:
    return Sized(Action.HOLD, ZERO, (Cut(rule, asked, ZERO, reason),))
