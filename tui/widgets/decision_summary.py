"""The latest decision about a symbol in short: the reason, and the changes by the limits."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui import amounts
from tui.state import DeskState, Progress, Signal

_INKS = {"BUY": "bold $success", "SELL": "bold $error-lighten-1", "HOLD": "bold", "ABSTAIN": "bold $warning"}


def summary_text(desk: DeskState, symbol: str) -> Content:
    """Describe the decision: action, size, changes by the limits, reason, agents that abstained."""
    signal = desk.signals.get(symbol)
    if signal is None:
        return Content.styled("No decision yet.\nPress r to run the cycle.", "$foreground 55%")
    parts: list[str | tuple[str, str] | Content] = [*_decision(signal)]
    if signal.cut:
        parts += [("\n\nLimits changed it\n", "$foreground 55%"), (signal.cut, "$warning")]
    parts += [("\n\nReason\n", "$foreground 55%"), Content(signal.reason or "none was given")]
    silent = [p.step for p in desk.panes_of(symbol) if p.progress is Progress.ABSTAINED]
    if silent:
        parts += [("\n\nAbstained\n", "$foreground 55%"), ("\n".join(silent), "$warning")]
    parts.append(("\n\nd: the whole trail", "$foreground 45%"))
    return Content.assemble(*parts)


def _decision(signal: Signal) -> list[tuple[str, str]]:
    size = amounts.size(signal.size)
    return [
        (signal.action, _INKS.get(signal.action, "bold")),
        (f" {size} % of the portfolio" if size else "", ""),
        (f"\nafter the close of {signal.session}", "$foreground 55%"),
    ]


class DecisionSummary(VerticalScroll):
    """The column on the right of a wide screen."""

    DEFAULT_CSS = """
    DecisionSummary { scrollbar-size-vertical: 1; padding: 0 1; & > Static { height: auto; } }
    """

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self._text = Content()
        self._page = Static("", markup=False)

    def compose(self) -> ComposeResult:
        """Mount the page."""
        yield self._page

    def show(self, desk: DeskState, symbol: str) -> None:
        """Show the latest decision about a symbol."""
        text = summary_text(desk, symbol)
        if text.plain != self._text.plain:
            self._text = text
            self._page.update(text)
        self.border_title = Content(f"Why {symbol}")

    def as_text(self) -> str:
        """Return the text, for the clipboard."""
        return self._text.plain
