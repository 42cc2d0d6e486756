"""Scroll bars of plain characters: blanks with a colour behind them, without the blocks for parts of a cell."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender


class PlainScrollBar(ScrollBarRender):
    """A scroll bar whose ends fall on whole cells."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def use_plain_scrollbars() -> None:
    """Have every scroll bar of this process drawn so."""
    ScrollBar.renderer = PlainScrollBar
