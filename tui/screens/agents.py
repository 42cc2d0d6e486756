"""Agents: the steps of the cycle about one symbol, the answer of each, and what it was given to read."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from engine.errors import PaperdeskError
from engine.reports.documents.questions import Questions
from tui.screens.frame import FramedScreen
from tui.screens.newest_reading import newest_reading
from tui.settings.keys import AGENTS, bindings
from tui.text.debate_columns import owner_columns
from tui.view.snapshot import OPENING, Snapshot
from tui.view.state import Pane
from tui.widgets import question_text
from tui.widgets.agent_panes import DecisionSummary, answer_content
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.clickable import clickable
from tui.widgets.folds import inked
from tui.widgets.pane_text import TextPane
from tui.widgets.table import Table

PARTS = ("prompt", "memories", "opinions")


class AgentsScreen(FramedScreen):
    """The steps on the left; the chosen one's answer and its sources on the right."""

    MODE = AGENTS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(AGENTS)]
    TABLE = "steps"
    PANES = ("steps", "decided", "answer", "sources")

    def __init__(self) -> None:
        super().__init__()
        self.symbol = ""
        self._part = PARTS[0]
        self._questions = Questions()
        self._shown: tuple[object, ...] = ()
        self._chosen = ""

    def compose_body(self) -> ComposeResult:
        """Mount the rail of steps, the answer and its sources."""
        with Horizontal(id="asked"):
            with Vertical(id="rail", classes="column"):
                yield Table(question_text.STEPS, title="Steps", empty=OPENING, id="steps", classes="pane")
                yield DecisionSummary(id="decided", classes="pane")
            with Vertical(id="said", classes="column"):
                yield TextPane(title="Answer", id="answer", classes="pane")
                yield TextPane(title="Prompt", id="sources", classes="pane")

    def on_mount(self) -> None:
        """Focus the steps."""
        self.focus_pane("steps")

    def show_body(self, view: Snapshot) -> None:
        """Show the steps of the symbol; what they read is read again where something was decided."""
        if view.market is None:
            return
        symbols = [quote.symbol for quote in view.market.quotes]
        if self.symbol not in symbols:
            self.symbol = next(iter(symbols), "")
        steps, panes = self.query_one("#steps", Table), view.desk.panes_of(self.symbol)
        steps.show(question_text.steps(panes, plain=self.app.has_class("-plain")))
        answered = [pane.name for pane in panes if pane.over and pane.text]
        if not self._chosen and answered:
            steps.point_at(answered[-1])
        at = symbols.index(self.symbol) + 1 if symbols else 0
        steps.entitle(f"Steps {self.symbol}  {at}/{len(symbols)}")
        session = view.desk.session
        set_subtitle(steps, "" if session is None else f"close of {session}")
        self.query_one(DecisionSummary).show(view.desk, self.symbol)
        self._show_step(panes)
        decided = view.desk.decisions.get(self.symbol)
        shown = (view.sources[0] if view.sources else None, self.symbol, decided and tuple(decided.values()))
        if view.sources and shown != self._shown:
            self._shown = shown
            self._read(view, self.symbol)

    @newest_reading
    async def _read(self, view: Snapshot, symbol: str) -> None:
        from engine.reports.documents.questions import questions_of

        assert view.opened is not None
        try:
            self._questions = await view.opened.ask.read(
                view.sources[0], lambda records, _: questions_of(records, symbol)
            )
        except PaperdeskError as error:
            self.query_one("#sources", TextPane).show(Content(str(error)))
            return
        self._show_step(self._view.desk.panes_of(self.symbol))

    def _show_step(self, panes: tuple[Pane, ...]) -> None:
        key = self.query_one("#steps", Table).cursor_key
        pane = next((one for one in panes if one.name == key), None)
        if pane is None:
            return
        answer, sources = self.query_one("#answer", TextPane), self.query_one("#sources", TextPane)
        answer.show(answer_content(pane), top=pane.name != self._chosen)
        set_title(answer, f"{pane.name}  {question_text.state(pane)}")
        # Before the first answer nothing is chosen yet: that one is shown once it is there.
        self._chosen = pane.name if any(one.over and one.text for one in panes) else ""
        self.place_panes()
        desk = self._view.desk
        text = {
            "prompt": lambda: question_text.prompt(self._questions, pane, desk.session),
            "memories": lambda: question_text.memories(self._questions, pane, desk.session),
            "opinions": self._opinions,
        }[self._part]()
        sources.show(text, top=False)
        names = "  ".join(part.capitalize() if part == self._part else part for part in PARTS)
        set_title(sources, names)
        set_subtitle(sources, clickable(Content("v next part"), "part"))

    def _opinions(self) -> Content:
        """The owners beside each other, once their symbol is decided; before that, and of one owner, as they come."""
        if not self._side_by_side:
            return question_text.opinions(self._view.desk, self.symbol)
        found, width = self._questions, self.query_one("#sources", TextPane).text_width
        return inked(owner_columns(found.opinions, found.debate, found.decisions, width))

    @property
    def _side_by_side(self) -> bool:
        """True where several owners have decided, and their part is shown: it takes the place of the answer too."""
        found = self._questions
        decided = found.session == self._view.desk.session and len(found.opinions) > 1
        return decided and self._part == "opinions"

    def has_room_for(self, pane: Widget) -> bool:
        """True for all panes but the answer, where the owners stand side by side."""
        return pane.id != "answer" or not self._side_by_side

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout, and fit the columns."""
        super().on_resize(event)
        if self._built and self._side_by_side:
            self.call_after_refresh(self._show_step, self._view.desk.panes_of(self.symbol))

    @on(Table.Moved, "#steps")
    def _moved(self) -> None:
        self._show_step(self._view.desk.panes_of(self.symbol))

    def show_symbol(self, symbol: str) -> None:
        """Show a symbol that the desk has."""
        self.symbol = symbol
        self.show_view(self._view)

    def action_symbol(self, step: int) -> None:
        """Go to the next symbol, or the one before."""
        market = self._view.market
        symbols = [] if market is None else [quote.symbol for quote in market.quotes]
        if symbols:
            self.symbol = symbols[(symbols.index(self.symbol) + step) % len(symbols)]
            self.show_view(self._view)

    def action_part(self) -> None:
        """Show the prompt, the memories or the opinions."""
        self._part = PARTS[(PARTS.index(self._part) + 1) % len(PARTS)]
        self.place_panes()
        self._show_step(self._view.desk.panes_of(self.symbol))
        self.query_one("#sources", TextPane).scroll_home(animate=False)

    def has_decision(self) -> bool:
        """True where the symbol was decided."""
        return self.symbol in self._view.desk.decisions

    def action_why(self) -> None:
        """Open the trail of the symbol's latest decision."""
        if self.symbol:
            self.open_trail(self.symbol)
