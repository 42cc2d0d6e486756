"""Text from outside stays in its panes, whatever is in it: all other cells are those of a harmless one."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Never

import pytest
from conftest import Running, shown, until
from fake_desk import BOUGHT, NOW, SESSION, SOLD, SYMBOLS, FakeDesk
from rich.cells import cell_len
from textual.geometry import Region
from textual.strip import Strip

from engine.app.open_desk import Publish, TakeTurn
from engine.domain.chart import ChartSpec
from engine.domain.decision import Action, Cut, Decision, DecisionKey, Proposal, Recollection
from engine.domain.live import FeedMessage, Headline
from engine.domain.model_call import AnswerRecord, Message, ModelResult, Usage
from engine.domain.order import OrderState
from engine.domain.run import RunKind, RunOutcome, TradingMode
from engine.errors import MissingData
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.writer import JournalWriter
from engine.messages.events import (
    AgentAnswered,
    AgentSaid,
    DecisionMade,
    Noticed,
    OpinionFormed,
    OrderMoved,
    RunFinished,
    RunStarted,
    StepStarted,
)
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.documents.set_up import Finding
from tests.tui.conftest import arrived
from tui.desk.readings import Readings

HARMLESS = "it rises"
HOSTILE = {
    "markup": "[bold]x[/bold] [/] [@click=app.quit]x[/] [$error on red]x",
    "control characters": "\x1b[31m\x1b[2J\x1b]0;t\x07\x9b31mx\x00\x08\x7f a\tb\nc\r\nd\re\x0bf\x0cg\x85\u2028\u2029h",
    "hidden characters": "\u202eevil\u2066\u200f a\u200bb\u200d\u2060\ufeff",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈👍🏽" * 3,
    "wide characters": "漢字かな交じり文" * 20,
    "combining marks": "e\u0301" * 200,
    "a long line": "x" * 100_000,
}
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories of characters that no screen may be given."""
RUN = "daily-1"
STATE = {"id": "a" * 32, "layer": "shallow", "pinned": False, "importance": 5.0, "recency": 0.5, "rewards": 0}
"""State of a memory that is alive, in a document."""
KEY = DecisionKey(RUN, SESSION, 1, SYMBOLS[0], "desk")


class Telling(FakeDesk):
    """A desk whose journal, feed, memory and checks all tell one text."""

    def __init__(self, folder: Path, text: str) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.text, self.watches, self.label, self.mode = text, True, text, TradingMode.ASK
        run = StoredRun(
            id="b",
            kind=StoredKind.BACKTEST,
            time=NOW,
            path=self.journal,
            name=text,
            first=SESSION,
            last=SESSION,
            outcome="done",
        )
        self.stored = run
        with JournalWriter(self.journal) as journal:
            self._write(journal)

    def _unread(self, run: str) -> Never:
        """The document of a backtest, which cannot be read."""
        raise MissingData(self.text)

    def _write(self, journal: JournalWriter) -> None:
        """One run that decided on a symbol, with the text wherever a journal has one."""
        text = self.text
        of_owner: dict[str, Any] = {
            "run": RUN,
            "time": NOW,
            "session": SESSION,
            "symbol": SYMBOLS[0],
            "owner": "desk",
        }
        journal.run_started(
            RunEntry(id=RUN, kind=RunKind.DAILY, name="test", started=NOW, label=text, session=SESSION, cycle=1)
        )
        journal.event(
            RunStarted(
                run=RUN,
                time=NOW,
                kind=RunKind.DAILY,
                name="test",
                label=text,
                symbols=SYMBOLS,
                first=SESSION,
                last=SESSION,
                sessions=1,
                steps=("news", "chart", "decision"),
            )
        )
        for step in ("news", "chart", "decision"):
            self._write_answer(journal, step, of_owner)
        memory = Recollection(
            id="m" * 32,
            kind=text,
            layer="shallow",
            session=SESSION,
            text=text,
            recency=0.5,
            relevancy=0.5,
            importance=50.0,
            score=1.5,
            rank=1,
        )
        decision = Decision(
            key=KEY,
            action=Action.BUY,
            size=Decimal(5),
            proposal=Proposal(Action.BUY, 9, None, text),
            cuts=(Cut("band", Decimal(9), Decimal(5), text),),
            evidence=(memory.id,),
        )
        journal.opinion(decision.opinion)
        journal.decision(decision)
        journal.recalled(decision, [memory])
        journal.event(OpinionFormed(RUN, NOW, decision.opinion))
        journal.event(DecisionMade(RUN, NOW, decision))
        for order in (replace(BOUGHT, reason=text), replace(SOLD, reason=text)):
            entry = OrderEntry(order=order, run=RUN, desk="test", cycle=1, time=NOW, owner="desk")
            journal.order_intended(entry)
        canceled = replace(BOUGHT, reason=text).moved(OrderState.CANCELED)
        journal.order_moved(canceled, NOW, detail=text)
        journal.event(OrderMoved(RUN, NOW, canceled, text))
        journal.event(Noticed(RUN, NOW, "warning", text))
        journal.noted(RUN, "warning", text, NOW)
        journal.event(RunFinished(RUN, NOW, RunOutcome.DONE, Decimal(100), text))
        journal.run_finished(RUN, RunOutcome.DONE, NOW, detail=text)

    def _write_answer(self, journal: JournalWriter, step: str, of_owner: dict[str, Any]) -> None:
        """A step that answered, or abstained: of the news there is no answer."""
        text, abstained = self.text, step == "news"
        said = None if abstained else {"summary": text}
        chart = ChartSpec(kind="price", title=text, symbol=SYMBOLS[0], sessions=())
        journal.event(StepStarted(step=step, **of_owner))
        journal.answer(
            AnswerRecord(
                key=KEY,
                time=NOW,
                agent=step,
                attempt=1,
                prompt_hash="h",
                system=text,
                messages=(Message("user", text, (chart,)),),
                result=ModelResult(model=text, answer=said, text=text),
                outcome="abstained" if abstained else "answered",
                reason=text,
                answer=said,
                charts=(chart,),
            )
        )
        journal.event(
            AgentAnswered(
                step=step,
                text=text,
                model=text,
                abstained=abstained,
                cached=False,
                usage=Usage(3, 0, 1),
                cost=Decimal(0),
                seconds=0.1,
                **of_owner,
            )
        )

    async def watch(self, publish: Publish, on_message: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Tells a headline, and streams an answer that is not complete."""
        on_message(Headline((SYMBOLS[0],), self.text, self.text, NOW))
        said = {"run": RUN, "time": NOW, "session": SESSION, "symbol": SYMBOLS[1], "owner": "desk", "step": "chart"}
        publish(StepStarted(**said))
        publish(AgentSaid(text=json.dumps({"explanation": self.text}).removesuffix('"}'), **said))

    def findings(self) -> tuple[Finding, ...]:
        """One check."""
        return (Finding("Desk", "fake", "note", self.text),)

    def memories(self, run: str | None, session: date | None, *, undecided: bool = False) -> dict[str, Any]:  # type: ignore[override]
        """One that is alive, and one that was forgotten."""
        one = {"owner": "desk", "symbol": SYMBOLS[0], "kind": self.text, "session": str(SESSION), "text": self.text}
        gone = one | {"id": "b" * 32, "by": self.text}
        return {"run": None, "session": str(SESSION), "memories": [one | STATE], "forgotten": [gone]}

    def lifeline(self, run: str | None, memory_id: str) -> dict[str, Any]:
        """The life of the one that is alive, with one change."""
        (alive,) = self.memories(run, None)["memories"]
        of_session = {"session": str(SESSION), **STATE}
        change = of_session | {"step": 1, "cause": "written", "by": self.text}
        recorded = {
            "source": self.text,
            "query_text": self.text,
            "available": str(SESSION),
            "rests_on": [],
            "types": [],
        }
        birth = {"hindsight": False, "born_into": "shallow", "born_with": 5.0}
        return alive | recorded | birth | {"changes": [change], "values": [of_session]}


class Painted(NamedTuple):
    """A view as it is painted, and where the panes stand that may hold a text."""

    rows: Sequence[Strip]
    panes: Sequence[Region]


COLUMNS = 120
VIEWS = (
    *("1", "a", "escape right_square_bracket"),
    *("2", "v", "v ", "3", "4", "5", "v  ", "grave_accent", "escape 2 d", "o"),
    "escape 1 less_than_sign",
)
"""The keys that lead from one view to the next, each text of its own."""
HOLDERS = (
    "#agents, #events, #recalled, #blotter, #decisions, #summary, #memories, #recorded, #run,"
    " #checks, #models, #rates, #log, TimeBar, ReadingScreen #page, ConfirmScreen > Vertical"
)
"""The panes that may hold a text, among them the page of the log and of a trail, and a dialog."""
SEEN: dict[str, dict[str, Painted]] = {}
"""The views with each text that was shown."""


@pytest.fixture
def views(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Awaitable[dict[str, Painted]]]:
    """Goes through all views of a desk that tells a text; once for each text."""

    async def runs(readings: Any, kind: StoredKind) -> Sequence[StoredRun]:
        return [readings._desk.stored] if kind is StoredKind.BACKTEST else []

    async def document(readings: Any, run: str) -> Never:
        readings._desk._unread(run)

    monkeypatch.setattr(Readings, "runs", runs)
    monkeypatch.setattr(Readings, "run", document)

    async def seen(text: str) -> dict[str, Painted]:
        if text in SEEN:
            return SEEN[text]
        painted: dict[str, Painted] = {}
        async with running((COLUMNS, 40), desk=Telling(tmp_path / str(len(SEEN)), text)) as pilot:
            bridge = pilot.app.bridge  # type: ignore[attr-defined]
            await until(pilot, lambda: any(pane.text for pane in bridge.snapshot().desk.panes_of(SYMBOLS[1])))
            for keys in VIEWS:
                await pilot.press(*keys.split())
                if bridge.playback is not None:
                    await arrived(pilot)
                await shown(pilot)
                panes = [pane.region for screen in pilot.app.screen_stack for pane in screen.query(HOLDERS)]
                painted[keys] = Painted(pilot.app.screen._compositor.render_strips(), panes)
        return SEEN.setdefault(text, painted)

    return seen


def outside(rows: Sequence[Strip], panes: Sequence[Region]) -> Iterator[tuple[int, int, str]]:
    """The text of the cells that are in none of some panes, with its row and first column."""
    for y, row in enumerate(rows):
        here = [pane for pane in panes if pane.y <= y < pane.bottom]
        cuts = sorted({COLUMNS, *(x for pane in here for x in (pane.x, pane.right) if 0 < x < COLUMNS)})
        for x, piece in zip((0, *cuts), row.divide(cuts), strict=False):
            if not any(pane.contains(x, y) for pane in here):
                yield y, x, piece.text


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=kind, marks=[pytest.mark.slow] * (n > 0)) for n, (kind, text) in enumerate(HOSTILE.items())],
)
async def test_hostile_text_changes_nothing_but_its_own_panes(
    views: Callable[[str], Awaitable[dict[str, Painted]]], text: str
) -> None:
    harmless, hostile = await views(HARMLESS), await views(text)
    for keys, (rows, panes) in hostile.items():
        before = harmless[keys]
        assert {cell_len(row.text) for row in rows} == {COLUMNS}, keys
        assert {c for row in rows for c in row.text if unicodedata.category(c) in UNSEEN} == set(), keys
        every = [*panes, *before.panes]
        assert [*outside(rows, every)] == [*outside(before.rows, every)], keys
        assert [row.text for row in rows] != [row.text for row in before.rows], keys
