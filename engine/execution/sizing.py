"""The size of a proposal by the rule that it names: the rule's conditions are checked, the size is cut to its band.

Source: FinVision §3.4, table 5 [V6]."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from engine.domain.decision import Action, Cut, Proposal, SizingRule
from engine.domain.portfolio import ZERO, PositionContext
from engine.settings.values import Band, Sizing

HUNDRED = Decimal(100)


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
        return _whole(proposal, position, sizing)
    if not asked:
        return Sized(proposal.action, band.largest)
    allowed = min(max(asked, band.smallest), band.largest)
    if allowed == asked:
        return Sized(proposal.action, asked)
    reason = f"{proposal.rule or 'advice'} trades {band.smallest}-{band.largest} % of the portfolio"
    return Sized(proposal.action, allowed, (Cut("band", asked, allowed, reason),))


def _whole(proposal: Proposal, position: PositionContext, sizing: Sizing) -> Sized:
    """The trade of all cash above the floor or of all shares; what is short is bought back first, and a short sale is
    worth the equity. Where the proposal names another size, that is told. Source: FinAgent §4.4 [A10]."""
    buys, asked = proposal.action is Action.BUY, Decimal(proposal.size)
    if position.shares < 0 if buys else position.shares > 0:
        all_of_it = percent(abs(position.shares) * position.price, position.value)
        reason = "a purchase takes back all that is short" if buys else "a sale takes all shares"
    elif buys:
        all_of_it = percent(max(ZERO, position.cash - sizing.cash_floor * position.value), position.value)
        reason = "a purchase takes all cash above the floor"
    else:
        all_of_it, reason = HUNDRED, "a short sale is worth the equity"
    if asked in (ZERO, all_of_it):
        return Sized(proposal.action, all_of_it)
    return Sized(proposal.action, all_of_it, (Cut("whole", asked, all_of_it, reason),))


def _violation(action: Action, rule: SizingRule | None, band: Band, position: PositionContext, sizing: Sizing) -> str:
    if action is Action.SELL and position.shares <= 0 and not sizing.allow_short:
        return "nothing is held to be sold"
    if band.cash_above is not None and position.shares >= 0 and position.cash_fraction <= band.cash_above:
        return f"cash is {position.cash_fraction:.2%} of the portfolio and has to be above {band.cash_above:.0%}"
    if rule is SizingRule.GAIN_OVER_COST and position.unrealized_fraction <= sizing.gain_over_cost:
        gain = f"{position.unrealized_fraction:.2%}"
        return f"the gain over average cost is {gain} and has to be above {sizing.gain_over_cost:.0%}"
    if rule is SizingRule.GAINS_IN_A_ROW and position.gains_in_a_row < sizing.gains_in_a_row:
        return f"the close rose {position.gains_in_a_row} sessions in a row, not {sizing.gains_in_a_row}"
    return ""


def _refused(asked: Decimal, rule: str, reason: str) -> Sized:
    return Sized(Action.HOLD, ZERO, (Cut(rule, asked, ZERO, reason),))


def percent(part: Decimal, whole: Decimal) -> Decimal:
    """A part in percent of a whole, to four places; zero of nothing."""
    return (part * HUNDRED / whole).quantize(Decimal("0.0001"), ROUND_DOWN) if whole > 0 else ZERO
