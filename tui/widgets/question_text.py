"""The steps of a cycle as rows, and the sources of a step as text: its prompt, recalled memories, opinions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from textual.content import Content

from engine.domain.decision import Decision, Opinion
from engine.domain.model_call import AnswerRecord
from engine.reports import amounts
from engine.reports.documents.questions import Questions
from tui.text.plain_text import one_line, printable
from tui.view.state import DeskState, Pane, Progress, action_text
from tui.widgets.agent_panes import FAINT, MUTED, STYLES, facts
from tui.widgets.table import Cell, Column, Row

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


def steps(panes: Sequence[Pane], *, plain: bool) -> list[Row]:
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


def state(pane: Pane) -> str:
    """The progress of a step, with the model and its cost once it has answered."""
    return "  ".join(part for part in (str(pane.progress), facts(pane.answer)) if part)


def prompt(questions: Questions, pane: Pane, session: date | None) -> Content:
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


def memories(questions: Questions, pane: Pane, session: date | None) -> Content:
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


def opinions(desk: DeskState, symbol: str) -> Content:
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
