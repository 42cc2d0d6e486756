"""The bars of every screen besides the status bar: the tabs, the error bar, the key hints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.content import Content
from textual.widgets import Static

from tui.keys import SCREENS, hints


class Tabs(Static):
    """The screens of the app, with the current one underlined."""

    DEFAULT_CSS = """
    Tabs { height: 1; padding: 0 1; color: $foreground 60%; }
    """

    def __init__(self, current: str) -> None:
        parts: list[Content | tuple[str, str]] = []
        for mode, (key, name) in SCREENS.items():
            if parts:
                parts.append((" | ", "$foreground 30%"))
            here = mode == current
            parts.append((f"{key} {name}", "bold underline $primary" if here else ""))
        super().__init__(Content.assemble(*parts), markup=False)


class Hints(Static):
    """The most useful keys of a screen, as many as fit."""

    DEFAULT_CSS = """
    Hints { dock: bottom; height: 1; padding: 0 1; color: $foreground 60%; }
    """

    def __init__(self, screen: str) -> None:
        super().__init__("", markup=False)
        self._pairs = hints(screen)

    def on_resize(self) -> None:
        """Choose the hints for the new width."""
        self.update_hints()

    def update_hints(self) -> None:
        """Write the hints that fit into the current width; help and quit are always among them."""
        palette = (("^p", "commands"),)
        self.update(_fitting([*self._pairs, *palette], self.size.width))


def _fitting(pairs: Sequence[tuple[str, str]], width: int) -> Content:
    def cells(pair: tuple[str, str]) -> int:
        return len(pair[0]) + len(pair[1]) + 3

    last = [pair for pair in pairs if pair[1] in ("help", "quit")]
    room = width - sum(map(cells, last))
    chosen = []
    for pair in pairs:
        if pair in last:
            chosen.append(pair)
        elif cells(pair) <= room:
            room -= cells(pair)
            chosen.append(pair)
    parts: list[tuple[str, str]] = []
    for key, word in chosen:
        parts += [(f"{key} " if key else "", "bold $primary"), (f"{word}  ", "")]
    return Content.assemble(*parts)


class ErrorBar(Static):
    """The current error and the keys that deal with it; hidden without an error."""

    DEFAULT_CSS = """
    ErrorBar {
        dock: bottom;
        height: auto;
        max-height: 4;
        padding: 0 1;
        margin: 0 0 1 0;
        background: $error 25%;
        color: $foreground;
        display: none;
        &:ansi { background: ansi_default; color: ansi_bright_red; }
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""

    def show(self, text: str) -> None:
        """Show an error; an empty text hides the bar."""
        if text == self.text:
            return
        self.text = text
        self.display = bool(text)
        keys = Text("  ctrl+t try again   y copy   esc dismiss", style="bold")
        self.update(Text.assemble(("! ", "bold"), text, keys))
