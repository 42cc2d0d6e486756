"""Text of models, news and brokers on screens: safe to show, on one line, or only its beginning."""

from __future__ import annotations

from engine.domain.printable import printable

__all__ = ["beginning", "one_line", "printable"]


def one_line(text: str) -> str:
    """The text on one line, safe to show."""
    return " ".join(printable(text).split())


def beginning(text: str, most: int) -> str:
    """At most so many characters of the text on one line, cut between words where it is longer."""
    import textwrap

    return textwrap.shorten(one_line(text), most, placeholder=" ...")
