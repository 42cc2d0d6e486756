"""Numbers as people and vendors write them: with a currency, thousands parted, a decimal comma, K and M, brackets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

POINT, COMMA = ".", ","

_BLANK = frozenset(
    ("", "-", "--", "---", ".", "..", "n/a", "n.a.", "na", "#n/a", "nan", "nat", "none", "null", "nil", "k.a.")
)
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-------")
_APART = re.compile("[ '\u2019\u02bc]")
_UNITS = {
    **dict.fromkeys(("k", "tsd", "千"), 3),
    **dict.fromkeys(("m", "mn", "mio", "mln", "million", "百万"), 6),
    **dict.fromkeys(("b", "bn", "mrd", "mld", "billion", "十亿"), 9),
    **dict.fromkeys(("t", "tn", "trillion"), 12),
    **dict.fromkeys(("万", "萬"), 4),
    **dict.fromkeys(("亿", "億"), 8),
}
"""Powers of ten that are written after a number."""
_SIMPLE = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_SIGNED = {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "₺": "TRY", "zł": "PLN", "p": "GBp"}
"""Currencies that a sign tells; $ and ¥ are those of several countries."""
_CURRENCY = r"(?:(?:US|HK|CA|A|C|S|R)?\$|[¥€£₹₩₺]|zł|元|円|원|(?:[A-Z]{2}[A-Zp]|p)(?![A-Za-z]))"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+-])?\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[+-])?"
    r"(?P<body>\d[\d.,'\u2019\u02bc ]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?"
    rf"\s*(?P<unit>(?i:{'|'.join(sorted(_UNITS, key=len, reverse=True))})\.?)?\s*(?P<percent>%)?"
    rf"\s*(?P<after>{_CURRENCY})?\s*(?(open)\))"
)


@dataclass(frozen=True, slots=True)
class Numerals:
    """The writing of numbers in a file.

    decimal: POINT or COMMA.
    doubt: a cell that may be read in two ways, where none of the file tells in which; empty without one.
    """

    decimal: str = POINT
    doubt: str = ""

    @classmethod
    def of(cls, prices: Sequence[str], sizes: Sequence[str], *, comma_likely: bool) -> Numerals:
        """Of a file's cells: prices, and whole numbers. A mark is that of decimals unless it parts groups of three
        figures, and the last one of two kinds; where prices may be read in both ways they are in doubt."""
        told = next(filter(None, (_decimal_of(_body(cell)) for cell in (*prices, *sizes))), None)
        if told is not None:
            return cls(told)
        doubt = {mark: cell for cell in reversed(prices) for mark in (COMMA, POINT) if mark in _body(cell)}
        if comma_likely and COMMA in doubt:
            return cls(COMMA)
        return cls(POINT, doubt.get(POINT if comma_likely else COMMA, ""))

    def plain(self, text: str) -> str:
        """A number as Decimal reads it; empty for a word that stands for none, any other text as it is."""
        if self.decimal == POINT and _SIMPLE.fullmatch(text):
            return text
        normal = _normal(text)
        if normal.casefold() in _BLANK:
            return ""
        found = _NUMBER.fullmatch(normal)
        other = COMMA if self.decimal == POINT else POINT
        whole, mark, rest = _APART.sub(other, (found["body"] if found else "").strip()).partition(self.decimal)
        if found is None or (mark and not rest.isdigit()) or not _grouped(whole, other):
            return text
        plain = (whole.replace(other, "") or "0") + (f".{rest}" if mark else "") + (found["power"] or "")
        if found["open"] or "-" in (found["sign"], found["inner"]):
            plain = f"-{plain}"
        power = _UNITS.get((found["unit"] or "").rstrip(".").casefold(), 0)
        return f"{Decimal(plain).scaleb(power):f}" if power else plain


def currency_sign(text: str) -> str:
    """The currency that stands at a number, three letters; empty without one that is told."""
    found = _NUMBER.fullmatch(_normal(text))
    sign = (found["before"] or found["after"] or "") if found else ""
    return _SIGNED.get(sign, sign if sign.isascii() and sign.isalpha() else "")


def _normal(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_DASHES)
    return plain.strip()


def _body(cell: str) -> str:
    """The figures and marks of a number, without what parts its thousands otherwise."""
    found = None if cell.isdigit() else _NUMBER.fullmatch(_normal(cell))
    return _APART.sub("", found["body"]) if found else ""


def _grouped(whole: str, mark: str) -> bool:
    """True where a mark parts groups of three figures, or of two before the last, as in India."""
    first, *groups = whole.split(mark)
    return not groups or (0 < len(first) <= 3 and len(groups[-1]) == 3 and all(len(one) in (2, 3) for one in groups))


def _decimal_of(body: str) -> str | None:
    """The decimal mark of a number, where only one reading is possible."""
    marks = [one for one in body if one in ".,"]
    if not marks:
        return None
    kinds, last = set(marks), marks[-1]
    if len(kinds) == 2:
        return last
    if len(marks) > 1:
        return COMMA if last == POINT else POINT
    whole, _, rest = body.partition(last)
    return last if len(rest) != 3 or not 0 < len(whole) <= 3 or whole == "0" else None
