"""Agents: the steps of the cycle about one symbol, the answer of each, and what it was given to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from engine.domain.decision import Decision, Opinion
from engine.domain.model_call import AnswerRecord
from engine.errors import PaperdeskError
from engine.reports import amounts
from engine.reports.documents.questions import Questions
from tui.screens.frame import FramedScreen
from tui.screens.newest_reading import newest_reading
from tui.settings.keys import AGENTS, bindings
from tui.text.debate_text import owner_columns
from tui.text.plain_text import one_line, printable
from tui.view.snapshot import OPENING, Snapshot
from tui.view.state import DeskState, Pane, Progress, action_text
from tui.widgets.agent_panes import FAINT, MUTED, STYLES, DecisionSummary, answer_content, facts
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.clickable import clickable
from tui.widgets.folds import inked
from tui.widgets.table import Cell, Column, Row, Table
from tui.widgets.text_lines import TextPane

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
                yield Table(STEPS, title="Steps", empty=OPENING, id="steps", classes="pane")
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
        steps.show(step_rows(panes, plain=self.app.has_class("-plain")))
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
        set_title(answer, f"{pane.name}  {step_state(pane)}")
        # Before the first answer nothing is chosen yet: that one is shown once it is there.
        self._chosen = pane.name if any(one.over and one.text for one in panes) else ""
        self.place_panes()
        desk = self._view.desk
        text = {
            "prompt": lambda: prompt_content(self._questions, pane, desk.session),
            "memories": lambda: memories_content(self._questions, pane, desk.session),
            "opinions": self._opinions,
        }[self._part]()
        sources.show(text, top=False)
        names = "  ".join(part.capitalize() if part == self._part else part for part in PARTS)
        set_title(sources, names)
        set_subtitle(sources, clickable(Content("v next part"), "part"))

    def _opinions(self) -> Content:
        """The owners beside each other, once their symbol is decided; before that, and of one owner, as they come."""
        if not self._side_by_side:
            return opinions_content(self._view.desk, self.symbol)
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


Part = str | tuple[str, str]
STEPS = (
    Column("", max_width=1),
    Column("STEP", max_width=30),
    Column("TOK", form=str, drop_order=2),
    Column("SEC", form=str, drop_order=1),
    Column("COST", form=str, drop_order=3),
)
_INKS = {
    Progress.THINKING: "mark",
    Progress.ANSWERED: "up",
    Progress.ABSTAINED: "warn",
}
_LATER = "it is kept once the symbol is decided"


def step_rows(panes: Sequence[Pane], *, plain: bool) -> list[Row]:
    """A row per step, in the order of the cycle."""
    return [_step(pane, plain) for pane in panes]


def _step(pane: Pane, plain: bool) -> Row:
    style, answer = STYLES[pane.progress], pane.answer
    tokens = answer.usage.total if answer else 0
    return Row(
        pane.name,
        (
            Cell(style.plain_mark if plain else style.mark, _INKS.get(pane.progress, "muted")),
            Cell(pane.name, "strong" if pane.over else "muted"),
            Cell(f"{tokens:,}" if tokens else "-", "muted", tokens),
            Cell(f"{answer.seconds:.1f}" if answer else "-", "muted", answer.seconds if answer else None),
            Cell(amounts.cost(answer.cost) if answer else "-", "muted"),
        ),
    )


def step_state(pane: Pane) -> str:
    """The progress of a step, with the model and its cost once it has answered."""
    return "  ".join(part for part in (str(pane.progress), facts(pane.answer)) if part)


def prompt_content(questions: Questions, pane: Pane, session: date | None) -> Content:
    """The question of a step: role, messages, charts; every attempt."""
    asked = [one for one in questions.questions if one.step == pane.step and pane.owner in ("", one.key.owner)]
    if questions.session != session or not questions.questions:
        return Content.styled(f"No question of this step: {_LATER}.", MUTED)
    if not asked:
        return Content.styled("No question of this step: no agent was asked in it.", MUTED)
    parts: list[Part] = []
    for question in asked:
        parts += _question(question)
    return Content.assemble(*parts)


def _question(question: AnswerRecord) -> Iterator[Part]:
    again = f", attempt {question.attempt}" if question.attempt > 1 else ""
    # Of the last attempt the title of the answer has the cost.
    cost = f", {amounts.cost(question.result.cost)}" if question.outcome == "sent back" else ""
    yield f"{question.agent}{again}: {question.outcome}{cost}\n", "bold"
    if question.reason:
        yield f"{one_line(question.reason)}\n", "$warning"
    seen = "" if question.seen else ", read as figures"
    for chart in question.charts:
        yield f"chart: {one_line(chart.title)}{seen}\n", "$primary"
    yield f"\n{printable(question.system).strip()}\n", MUTED
    for message in question.messages:
        yield f"\n{message.role}\n", FAINT
        yield f"{printable(message.text).strip()}\n"
    yield "\n"


def memories_content(questions: Questions, pane: Pane, session: date | None) -> Content:
    """The memories that the owner of a step was given, best first, each with its score broken down."""
    given = [(one.memory, one.cited) for one in questions.recalled if pane.owner in ("", one.owner)]
    if questions.session != session or not given:
        return Content.styled(f"No recalled memories: {_LATER}, where the preset recalls any.", MUTED)
    parts: list[Part] = []
    for memory, cited in given:
        name = f"{memory.handle}  {memory.layer} {memory.rank}, {one_line(memory.kind)} of {memory.session}"
        parts.append((f"{name}{', cited' if cited else ''}\n", "bold" if cited else ""))
        figures = (
            f"score {memory.score:.3f}: recency {memory.recency:.3f}, relevancy {memory.relevancy:.3f}, "
            f"importance {memory.importance:.1f}, id {memory.id[:8]}"
        )
        parts += [(f"{figures}\n", MUTED), f"{printable(memory.text).strip()}\n\n"]
    return Content.assemble(*parts)


def opinions_content(desk: DeskState, symbol: str) -> Content:
    """The opinions of all owners side by side with the decision."""
    formed, made = desk.opinions.get(symbol, {}), desk.decisions.get(symbol, {})
    if not formed and not made:
        return Content.styled("No opinion yet.", MUTED)
    parts: list[Part] = []
    told: list[tuple[str, Opinion | Decision, str]] = [(owner, one, "") for owner, one in formed.items()]
    told += [(f"decision of {owner}", one, one.cut) for owner, one in made.items()]
    for name, one, cut in told:
        head = f"{name}: {action_text(one)}{f'  ({one_line(cut)})' if cut else ''}\n"
        parts += [(head, "bold"), f"{printable(one.reason).strip() or 'no reason was given'}\n\n"]
    return Content.assemble(*parts)
