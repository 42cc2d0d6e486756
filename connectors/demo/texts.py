"""News and filings of the demo market: items that move prices, their repetitions, and talk that moves nothing, with the
figures and names in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from types import MappingProxyType

from connectors.demo.listings import Company, Listing, read_toml
from connectors.demo.price_path import DIVIDEND, EARNINGS, Event, PricePath, Slot
from connectors.demo.quarters import Quarter
from connectors.demo.seeded_random import SeededRandom
from engine.domain.market import Filing, NewsItem, is_crypto
from engine.ports import Calendar

_MOST_PER_DAY = 4
_CENT = 10_000_000
_DIRECTIONS = {1: "good", 0: "flat", -1: "bad"}
_COMPANY_TALK: tuple[str, ...] = (
    "comment",
    "comment",
    "calendar",
    "community",
    "mention",
    "mention",
    "rumour",
    "rumour",
    "denial",
)
_CRYPTO_TALK: tuple[str, ...] = ("coin_comment", "coin_comment", "coin_comment", "rumour")
_MOVES_NOTHING = frozenset((*_COMPANY_TALK, *_CRYPTO_TALK, "fund", "recap", "coin_recap"))


_OUTLOOK = {1: "raised", 0: "kept", -1: "cut"}
_PLACES = ("Lindale", "Eastmere", "Greyfriars", "Corrib Sands")

_templates = cache(read_toml)


def _sentence(template: str, fields: Mapping[str, str]) -> str:
    text = template.format_map(fields)
    return text[0].upper() + text[1:]


class NewsWriter:
    """All news of one listing within a period, both days included; an item depends on nothing later than its day."""

    def __init__(self, seed: int, calendar: Calendar, first: date, last: date) -> None:
        self._seed = seed
        self._calendar = calendar
        self._first = first
        self._last = last

    def items(self, listing: Listing, path: PricePath) -> tuple[NewsItem, ...]:
        """Events, recaps and talk about a listing; a crypto asset has them on any day of the week."""
        by_day: dict[date, list[NewsItem]] = defaultdict(list)
        for item in self._all(listing, path):
            # The first come, events before talk, fill a day.
            if self._first <= item.date <= self._last and len(by_day[item.date]) < _MOST_PER_DAY:
                by_day[item.date].append(item)
        items = [item for day in by_day.values() for item in day]
        return tuple(sorted(items, key=lambda item: (item.available_at, item.id)))

    def _all(self, listing: Listing, path: PricePath) -> Iterator[NewsItem]:
        echoes: list[NewsItem] = []
        for number, event in enumerate(path.events):
            item = self._event(listing, event)
            yield item
            random = SeededRandom(self._seed, listing.symbol, "echo", number)
            if random.chance(350) and item.published is not None and item.headline is not None:
                later = item.published + timedelta(minutes=random.between(240, 1500))
                echoes.append(self._write(listing, "echo", random, later, fields={"again": item.headline}))
        yield from self._recaps(listing, path)
        yield from echoes
        prices = {
            session: close // _CENT for session, close in zip(path.history.sessions, path.history.close, strict=True)
        }
        price = listing.price
        for ordinal in range(self._first.toordinal(), self._last.toordinal() + 1):
            day = date.fromordinal(ordinal)
            yield from self._talk(listing, day, price)
            # Talk of a day may know the close of the day before, never its own.
            price = prices.get(ordinal, price)

    def _event(self, listing: Listing, event: Event) -> NewsItem:
        random = SeededRandom(self._seed, listing.symbol, "event", event.session.toordinal(), event.kind)
        opens, closes = self._calendar.opens_at(event.session), self._calendar.closes_at(event.session)
        if event.slot is Slot.BEFORE_OPEN:
            at = opens - timedelta(seconds=random.between(1200, 9000))
        elif event.slot is Slot.IN_SESSION:
            length = int((closes - opens).total_seconds())
            at = opens + timedelta(seconds=length * random.between(30, 900) // 1000)
        else:
            at = closes + timedelta(seconds=random.between(180, 4200))
        section = f"{event.kind}.{_DIRECTIONS[event.direction]}"
        return self._write(listing, section, random, at, fields=event_fields(event), price=event.price)

    def _recaps(self, listing: Listing, path: PricePath) -> Iterator[NewsItem]:
        history = path.history
        kind = "coin_recap" if is_crypto(listing.symbol) else "recap"
        jumps = {action.ex_date.toordinal() for action in path.actions}
        for row in range(1, len(history)):
            session = history.sessions[row]
            close, before = history.close[row], history.close[row - 1]
            move = (close - before) * 1000 // before
            random = SeededRandom(self._seed, listing.symbol, "recap", session)
            # The plain difference of two closes means nothing across a split.
            if session in jumps or not random.chance(600 if abs(move) >= 35 else 60):
                continue
            fields = {
                "move": permille(move),
                "close": dollars(close // _CENT),
                "low": dollars(history.low[row] // _CENT),
                "high": dollars(history.high[row] // _CENT),
            }
            at = self._calendar.closes_at(date.fromordinal(session)) + timedelta(seconds=random.between(240, 5400))
            yield self._write(listing, f"{kind}.{'up' if move >= 0 else 'down'}", random, at, fields=fields)

    def _talk(self, listing: Listing, day: date, price: int) -> Iterator[NewsItem]:
        """Talk of a day; `quiet` is the probability of none, per thousand."""
        if isinstance(listing, Company):
            talk, quiet = _COMPANY_TALK, 380
        else:
            talk, quiet = (_CRYPTO_TALK, 420) if is_crypto(listing.symbol) else (("fund",), 700)
        random = SeededRandom(self._seed, listing.symbol, "talk", day.toordinal())
        if random.chance(quiet + (350 if day.weekday() > 4 else 0)):
            return
        for _ in range(1 + random.chance(300) + random.chance(120)):
            kind = random.pick(talk)
            at = datetime.combine(day, time(0, tzinfo=UTC)) + timedelta(seconds=random.between(36_000, 85_500))
            yield self._write(listing, kind, random, at, price=price)

    def _write(
        self,
        listing: Listing,
        section: str,
        random: SeededRandom,
        at: datetime,
        *,
        fields: Mapping[str, str] = MappingProxyType({}),
        price: int | None = None,
    ) -> NewsItem:
        templates = _templates("news.toml")
        forms = templates
        for part in section.split("."):
            forms = forms[part]
        values = listing_fields(listing, random, templates["voices"], price or listing.price) | dict(fields)
        if "stories" in forms:
            headline, summary = (_sentence(form, values) for form in random.pick(forms["stories"]))
        else:
            headline, summary = (_sentence(random.pick(forms[part]), values) for part in ("headlines", "texts"))
        source = random.pick(templates["voices"]["gossip" if section == "rumour" else "wires"])
        at = at.astimezone(UTC)
        # Some talk is corrected after it came out; then it counts as known from the correction on.
        corrected = section.split(".", maxsplit=1)[0] in _MOVES_NOTHING and random.chance(40)
        known = at + timedelta(minutes=random.between(6, 170)) if corrected else at
        tag = SeededRandom(self._seed, listing.symbol, section, at.isoformat(), headline)
        name = f"{tag.below(1 << 32):08x}{tag.below(1 << 32):08x}"
        return NewsItem(
            id=name,
            symbol=listing.symbol,
            date=at.date(),
            available_at=known,
            summary=summary,
            headline=headline,
            published=at,
            source=source,
            sentiment=None,
        )


def filing_of(seed: int, company: Company, quarter: Quarter, session: date, closes: datetime) -> Filing:
    """The 10-Q or 10-K of a quarter, accepted on a session some time after its close."""
    random = SeededRandom(seed, company.symbol, "filing", quarter.number)
    forms = _templates("filings.toml")
    parts = [
        random.pick(forms["results"]),
        random.pick(forms["profit"]),
        random.pick(forms["trend"]["up" if quarter.growth >= 0 else "down"]),
        random.pick(forms["liquidity"]["texts"]),
        random.pick(forms["outlook"][_OUTLOOK[quarter.guidance]]),
        random.pick(forms["risks"]["texts"]),
    ]
    if quarter.form == "10-K":
        parts.insert(2, random.pick(forms["annual"]["texts"]))
    summary = " ".join(parts).format_map(_fields(company, quarter, random))
    name = f"{company.symbol.lower()}-{quarter.form.lower()}-{quarter.ended:%Y%m%d}-{random.below(1 << 32):08x}"
    accepted = closes + timedelta(seconds=random.between(4500, 8100))
    return Filing(
        id=name, symbol=company.symbol, form=quarter.form, date=session, available_at=accepted, summary=summary
    )


def _fields(company: Company, quarter: Quarter, random: SeededRandom) -> dict[str, str]:
    return {
        "name": company.name,
        "sector": company.sector,
        "product": random.pick(company.products),
        "partner": random.pick(company.partners),
        "place": random.pick(_PLACES),
        "payout": " and dividends" if company.payout else "",
        "line": millions(company.revenue * random.between(150, 400)),
        "quarter": quarter_name(quarter),
        "year": str(quarter.fiscal_year),
        "ended": written_date(quarter.ended),
        "revenue": millions(quarter.revenue),
        "year_ago": millions(quarter.year_ago),
        "year_revenue": millions(quarter.year_revenue),
        "moved": moved(quarter.growth),
        "income": millions(quarter.income),
        "margin": permille(quarter.margin),
    }


_ORDINALS = ("first", "second", "third", "fourth")
_MONTHS = ("Jan.", "Feb.", "March", "April", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Nov.", "Dec.")
_OUTLOOKS = {
    1: ("outlook raised", "The company raised its full-year outlook."),
    0: ("outlook unchanged", "The company kept its full-year outlook."),
    -1: ("outlook cut", "The company cut its full-year outlook."),
}


def listing_fields(
    listing: Listing, random: SeededRandom, voices: Mapping[str, Sequence[str]], price: int
) -> dict[str, str]:
    """Template fields of a listing; `price` is the last known one, in cents."""
    sector = listing.sector if isinstance(listing, Company) else "digital-asset"
    return {
        "name": listing.name,
        "short": listing.short,
        "symbol": listing.symbol,
        "city": listing.city,
        "chief": listing.chief,
        "sector": sector,
        "sector_title": sector[0].upper() + sector[1:],
        "product": random.pick(listing.products),
        "partner": random.pick(listing.partners),
        "analyst": random.pick(voices["analysts"]),
        "person": random.pick(voices["people"]),
        "place": random.pick(voices["cities"]),
        "amount": _amount(listing, random),
        "percent": f"{random.between(2, 9)}%",
        "years": random.pick(("two", "three", "four", "five")),
        "count": str(random.between(4, 40) * 10),
        "price": dollars(price),
        "target": _round_dollars(price * random.between(1120, 1350) // 1000),
        "low_target": _round_dollars(price * random.between(700, 900) // 1000),
    }


def event_fields(event: Event) -> dict[str, str]:
    """Template fields of results, a dividend or a split; none for other events."""
    if event.kind == EARNINGS and event.quarter is not None:
        return _results(event.quarter, event.amount, event.per)
    if event.effective is None:
        return {}
    effective = written_date(event.effective)
    if event.kind == DIVIDEND:
        return {"dividend": dollars(event.amount), "effective": effective}
    return {"ratio": f"{event.amount}-for-{event.per}", "effective": effective}


def _results(quarter: Quarter, shares: int, per: int) -> dict[str, str]:
    short, outlook = _OUTLOOKS[quarter.guidance]
    return {
        "quarter": quarter_name(quarter),
        "eps": dollars(max(quarter.earnings * per // shares, 1)),
        "expected": dollars(max(quarter.expected * per // shares, 1)),
        "revenue": millions(quarter.revenue),
        "moved": moved(quarter.growth),
        "margin": permille(quarter.margin),
        "outlook_short": short,
        "outlook": outlook,
    }


def quarter_name(quarter: Quarter) -> str:
    """A name such as `third quarter`."""
    return f"{_ORDINALS[quarter.fiscal_quarter - 1]} quarter"


def dollars(cents: int) -> str:
    """An amount such as `$1,234.50`."""
    return f"${cents // 100:,}.{cents % 100:02d}"


def millions(thousands: int) -> str:
    """Thousands of dollars as millions or billions, such as `$2.14 billion`."""
    if thousands >= 1_000_000:
        hundredths = thousands // 10_000
        return f"${hundredths // 100}.{hundredths % 100:02d} billion"
    return f"${thousands // 1000} million"


def permille(value: int) -> str:
    """Parts per thousand as per cent, such as `12.5%`; without a sign."""
    return f"{abs(value) // 10}.{abs(value) % 10}%"


def moved(value: int) -> str:
    """The change of a figure, in parts per thousand, such as `rose 4.2%`."""
    return "was flat" if value == 0 else f"{'rose' if value > 0 else 'fell'} {permille(value)}"


def written_date(day: date) -> str:
    """A date such as `March 8, 2024`."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _amount(listing: Listing, random: SeededRandom) -> str:
    # One to six per cent of a year's revenue, or what a large holder of a coin has.
    year = listing.revenue * 4 if isinstance(listing, Company) else 2_000
    whole = year * random.between(10, 60) // 1000
    return f"${max(whole // 5 * 5, 5)} million" if whole < 1000 else f"${whole // 1000}.{whole % 1000 // 100} billion"


def _round_dollars(cents: int) -> str:
    return f"${max(cents // 100, 1):,}"
