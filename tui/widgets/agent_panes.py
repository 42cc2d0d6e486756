"""The answers of each agent about one symbol: one pane per step of the cycle.

A pane streams the answer as it arrives, then shows the finished text with its model, tokens, seconds and cost.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui import amounts
from tui.state import DeskState, Pane, Progress

MARKS = {
    Progress.WAITING: "○",
    Progress.THINKING: "●",
    Progress.ANSWERED: "✓",
    Progress.ABSTAINED: "✗",
    Progress.LEFT_OUT: "–",
}
PLAIN_MARKS = {
    Progress.WAITING: "o",
    Progress.THINKING: "*",
    Progress.ANSWERED: "v",
    Progress.ABSTAINED: "x",
    Progress.LEFT_OUT: "-",
}
_INKS = {
    Progress.WAITING: "$foreground 45%",
    Progress.THINKING: "bold $primary",
    Progress.ANSWERED: "$success",
    Progress.ABSTAINED: "$warning",
    Progress.LEFT_OUT: "$foreground 45%",
}
OFFLINE = "rules, not a language model"


def model_name(model: str) -> str:
    """Name a model for the reader: the offline rules by a description, any other by its own name."""
    return OFFLINE if model.split(":", maxsplit=1)[0] == "offline" else model


def facts(pane: Pane) -> str:
    """Join model, tokens, seconds and cost of a finished answer; empty before."""
    if pane.progress not in (Progress.ANSWERED, Progress.ABSTAINED):
        return ""
    parts = [model_name(pane.model)]
    if pane.input_tokens or pane.output_tokens:
        parts.append(f"{pane.input_tokens + pane.output_tokens:,} tok")
    parts.append("recorded" if pane.cached else f"{pane.seconds:.1f}s")
    if pane.cost is None or pane.cost:
        parts.append(amounts.cost(pane.cost))
    return "  ".join(part for part in parts if part)


def styled_answer(text: str) -> Content:
    """Style a finished answer: the names of its fields muted, the rest plain. Nothing in it is read as markup."""
    lines: list[Content] = []
    for line in text.split("\n"):
        name, colon, rest = line.partition(": ")
        field = bool(colon) and len(name) < 32 and name.islower()
        lines.append(Content.assemble((f"{name}: ", "$foreground 55%"), rest) if field else Content(line))
    return Content("\n").join(lines)


class AgentPane(Static):
    """One step: its mark and name, the model with its cost, and the answer."""

    DEFAULT_CSS = """
    AgentPane { height: auto; padding: 0 1 0 1; }
    AgentPane.-quiet { color: $foreground 45%; }
    """

    def __init__(self, step: str, ascii_only: bool) -> None:
        super().__init__("", markup=False)
        self.pane = Pane(step="")
        self._marks = PLAIN_MARKS if ascii_only else MARKS
        self.show(Pane(step=step))

    def show(self, pane: Pane) -> None:
        """Show the progress of the step and its answer so far."""
        if pane == self.pane:
            return
        self.pane = pane
        ink = _INKS[pane.progress]
        head: list[Content | str | tuple[str, str]] = [(f"{self._marks[pane.progress]} {pane.step}", ink)]
        match pane.progress:
            case Progress.ABSTAINED:
                head.append((f"  abstained  {facts(pane)}", "$warning"))
            case Progress.LEFT_OUT:
                head.append(("  nothing to do", "$foreground 45%"))
            case Progress.THINKING:
                head.append(("  thinking", "$primary"))
            case _ if facts(pane):
                head.append((f"  {facts(pane)}", "$foreground 45%"))
        quiet = pane.progress in (Progress.WAITING, Progress.LEFT_OUT)
        self.set_class(quiet, "-quiet")
        text = Content(pane.text) if pane.progress is Progress.THINKING else styled_answer(pane.text)
        self.update(Content.assemble(*head, *(("\n", text) if pane.text else ())))


class AgentPanes(VerticalScroll, can_focus=True):
    """All steps of one symbol, one above another. Follows the streaming answer until the user scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_lines(3)", "Down", show=False),
        Binding("k,up", "scroll_lines(-3)", "Up", show=False),
        Binding("g,home", "top", "First", show=False),
        Binding("G,end,upper_g", "bottom", "Last", show=False),
        Binding("space", "follow", "Follow", show=False),
    ]
    DEFAULT_CSS = """
    AgentPanes { height: 1fr; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, ascii_only: bool = False, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._ascii = ascii_only
        self._symbol = ""
        self._follows = True
        self._speaking = ""
        self._label = ""

    def compose(self) -> ComposeResult:
        """Mount a pane per step of a desk without events."""
        for step in DeskState().steps:
            yield AgentPane(step, self._ascii)

    def show(self, desk: DeskState, symbol: str) -> None:
        """Show the agents of a symbol."""
        panes = desk.panes_of(symbol)
        shown = list(self.query(AgentPane))
        for place, pane in enumerate(panes):
            if place < len(shown):
                shown[place].show(pane)
            else:
                added = AgentPane(pane.step, self._ascii)
                added.show(pane)
                self.mount(added)
        for surplus in shown[len(panes) :]:
            surplus.remove()
        if symbol != self._symbol:
            self._symbol, self._follows = symbol, True
            self.scroll_home(animate=False)
        speaking = next((pane.step for pane in panes if pane.progress is Progress.THINKING), "")
        if speaking and self._follows and desk.running:
            self.call_after_refresh(self._to, speaking)
        self._speaking = speaking
        self._title(panes, symbol)

    def as_text(self) -> str:
        """Join all answers, for the clipboard."""
        panes = [widget.pane for widget in self.query(AgentPane)]
        return "\n\n".join(f"{pane.step} ({pane.progress})\n{pane.text}" for pane in panes if pane.text)

    def _title(self, panes: tuple[Pane, ...], symbol: str) -> None:
        marks = PLAIN_MARKS if self._ascii else MARKS
        rail = "".join(marks[pane.progress] for pane in panes)
        speaking = f" {self._speaking}" if self._speaking else ""
        label = f"Agents {symbol} {rail}{speaking}"
        if label != self._label:
            self._label = label
            self.border_title = Content(label)

    def _to(self, step: str) -> None:
        for pane in self.query(AgentPane):
            if pane.pane.step == step:
                bottom = pane.virtual_region.bottom
                self.scroll_to(y=max(0, bottom - self.size.height), animate=False)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll; stops following the streaming answer."""
        self._follows = False
        self.scroll_relative(y=lines, animate=False)

    def action_top(self) -> None:
        """Scroll to the first agent."""
        self._follows = False
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        """Scroll to the decision."""
        self._follows = False
        self.scroll_end(animate=False)

    def action_follow(self) -> None:
        """Follow the streaming answer again."""
        self._follows = True
        if self._speaking:
            self._to(self._speaking)
