"""A table as a value that every front end renders: columns that read a row, word what they read, and say how they leave
where there is little room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.domain.text import one_line
from engine.reports.amounts import UNKNOWN

ACTION_INKS = {"BUY": "up", "SELL": "down", "ABSTAIN": "warn"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with its ink (text, up, down, muted, strong, warn, mark; on pages any class) and, where it does not sort
    by its text, the value to sort by; `brief` stands on a screen that has no room for all of it."""

    text: str
    ink: str = "text"
    order: Any = None
    brief: str = ""

    @property
    def value(self) -> Any:
        """The value to sort by; None where nothing is known."""
        return self.order if self.order is not None else self.text if self.text not in ("", UNKNOWN) else None


def plain(value: object) -> str:
    """A text on one line, safe to show, a truth as yes or no: the form of what is no figure."""
    return one_line(str(value)) if not isinstance(value, bool) else "yes" if value else "no"


def count(number: int) -> str:
    """A whole number, thousands set apart."""
    return f"{number:,}"


def sign_ink(value: float | Decimal) -> str:
    """Green above zero, red below."""
    return "muted" if not value else "up" if value > 0 else "down"


def action_ink(action: object) -> str:
    """The ink of an action or a side."""
    return ACTION_INKS.get(str(action), "text")


def warn_ink(number: float | Decimal) -> str:
    """A warning where there is any of it."""
    return "warn" if number else "muted"


def signed(text: str, value: float | Decimal | None) -> Cell:
    """A figure in green above zero, in red below."""
    return Cell(text, sign_ink(value or 0), value)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    title: the heading
    read: where its value stands in a row: the name or path of a field, or a function; a Cell is shown as it is
    form: the text of a value that is known, of its unit; figures, which every form but `plain` is of, align right
    ink: of the text, or a function of the value
    drop_order: the higher, the earlier the column is dropped for lack of space; 0 for never on a screen
    stretch: take the remaining width; in text the column that is cut
    min_width: least width in cells of a column that stretches
    max_width: largest width in cells of any other column on a screen
    long: the heading in text and on pages, which have room
    """

    title: str
    read: str | int | Callable[[Any], Any] = ""
    form: Callable[[Any], str] = plain
    ink: str | Callable[[Any], str] = "text"
    drop_order: int = 0
    stretch: bool = False
    min_width: int = 3
    max_width: int = 40
    long: str = ""

    @property
    def right(self) -> bool:
        """True where the text aligns right."""
        return self.form is not plain

    @property
    def heading(self) -> str:
        """The title where there is room."""
        return self.long or self.title

    def value(self, row: Any) -> Any:
        """The row's value in this column."""
        if callable(self.read):
            return self.read(row)
        if isinstance(self.read, int):
            return row[self.read]
        for name in self.read.split("."):
            row = row[name] if isinstance(row, Mapping) else getattr(row, name)
        return row

    def cell(self, row: Any) -> Cell:
        """The cell of a row: a dash where the value is not known. A decimal of a document is its string."""
        value = self.value(row)
        if isinstance(value, Cell):
            return value
        if value is None or value == "":
            return Cell("" if value == "" else UNKNOWN, "muted")
        if self.right and isinstance(value, str) and self.form is not str:
            value = Decimal(value)
        ink = self.ink(value) if callable(self.ink) else self.ink
        return Cell(self.form(value), ink, value if self.right else None)


def texts(*titles: str) -> tuple[Column, ...]:
    """The columns of rows of texts: what leads a row, then figures."""
    return tuple(Column(title, n, str if n else plain) for n, title in enumerate(titles))
