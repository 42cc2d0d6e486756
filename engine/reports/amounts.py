"""Money, shares, percentages, times and costs as people read them: one form each, so that columns align."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.domain.text import counted

if TYPE_CHECKING:
    from engine.ports import Calendar

UNKNOWN = "-"
WEEK = timedelta(days=7)
_UNITS = ("bytes", "kB", "MB", "GB")


def money(amount: Decimal | float | None, digits: int = 2) -> str:
    """`103,412.18`; a dash where it is not known."""
    return UNKNOWN if amount is None else f"{amount:,.{digits}f}"


def price(amount: Decimal | None) -> str:
    """Two digits, four below one unit."""
    return UNKNOWN if amount is None else money(amount, 2 if abs(amount) >= 1 or not amount else 4)


def gain(amount: Decimal | None) -> str:
    """Money with its sign: `+464.40`."""
    return UNKNOWN if amount is None else f"{amount:+,.2f}"


def percent(fraction: Decimal | float | None, digits: int = 2) -> str:
    """A fraction as a percentage with its sign, without where it rounds to zero: 0.0214 is `+2.14%`."""
    if fraction is None:
        return UNKNOWN
    shown = f"{float(fraction) * 100:+.{digits}f}"
    return f"{shown if float(shown) else shown[1:]}%"


def portion(fraction: float | None) -> str:
    """A fraction that is no change, as a percentage without a sign: 0.0214 is `2.14%`."""
    return UNKNOWN if fraction is None else f"{fraction:.2%}"


def ratio(figure: float | None) -> str:
    """A figure without a unit: `1.23`."""
    return UNKNOWN if figure is None else f"{figure:.2f}"


def quantity(shares: Decimal) -> str:
    """Shares without trailing zeros, parts cut to four digits: `12`, `0.4537`."""
    if not shares:
        return UNKNOWN
    whole = shares == shares.to_integral_value()
    return f"{shares:,.0f}" if whole else f"{shares:,.{2 if abs(shares) >= 100 else 4}f}".rstrip("0").rstrip(".")


def held(shares: Mapping[str, int]) -> str:
    """Shares by name, those of which there are none left out: `A 12  B 1,200`; empty for none at all."""
    return "  ".join(f"{name} {count:,}" for name, count in shares.items() if count)


def requested(notional: Decimal | None, shares: Decimal | None) -> str:
    """The size of an order, an amount with its cents where it has any: `$7,000`, `$28.70`, `12` shares."""
    if notional is None:
        return UNKNOWN if shares is None else quantity(shares)
    return f"${money(notional, 0 if notional == notional.to_integral_value() else 2)}"


def size(percent_of_portfolio: Decimal | float) -> str:
    """The size of a decision in percent of the portfolio: `7`, `2.5`, empty for none."""
    return f"{round(Decimal(str(percent_of_portfolio)), 2).normalize():f}" if percent_of_portfolio else ""


def number(text: str | Decimal | None) -> Decimal | None:
    """A decimal, or its string in a document; None where it is not known."""
    return None if text is None else Decimal(text)


def cost(dollars: Decimal | None) -> str:
    """The cost of models: `free`, `$0.02`, `<$0.01`, `cost unknown` where a price or the tokens are not known."""
    if dollars is None:
        return "cost unknown"
    if not dollars:
        return "free"
    return f"${dollars:,.2f}" if dollars >= Decimal("0.01") else "<$0.01"


def between(bounds: Sequence[float | None], form: Callable[[float], str]) -> str:
    """An interval: `+0.10% to +0.32%`."""
    low, high = bounds
    return UNKNOWN if low is None or high is None else f"{form(low)} to {form(high)}"


def stored(count: int) -> str:
    """A number of bytes: `512 bytes`, `1.2 MB`."""
    shown, unit = float(count), 0
    while shown >= 1000 and unit < len(_UNITS) - 1:
        shown, unit = shown / 1000, unit + 1
    return f"{shown:.1f} {_UNITS[unit]}" if unit else counted(count, "byte")


def minutes(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def about(left: timedelta) -> str:
    """`2h14m`, `14m`, `3d`."""
    whole = max(0, int(left.total_seconds()) // 60)
    if whole >= 48 * 60:
        return f"{whole // (24 * 60)}d"
    return f"{whole // 60}h{whole % 60:02}m" if whole >= 60 else f"{whole}m"


def market_words(calendar: Calendar, now: datetime) -> tuple[bool, str]:
    """True where the market is open, with the time until it closes or opens: (True, `OPEN 2h14m`), (False,
    `CLOSED 16h02m`)."""
    sessions = calendar.sessions(now.date() - timedelta(days=1), now.date() + WEEK)
    for session in sessions:
        opens, closes = calendar.opens_at(session), calendar.closes_at(session)
        if opens <= now < closes:
            return True, f"OPEN {about(closes - now)}"
        if now < opens:
            return False, f"CLOSED {about(opens - now)}"
    return False, "CLOSED"
