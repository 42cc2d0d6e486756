"""The offline rules of `desk` over news that takes no side, and over news that does: what its memory is held to say."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from connectors.files.texts import news_line
from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.market import NewsItem
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.data_folders import write_folder

DAYS = 12
MEETINGS = "TMBK will hold its annual meeting of shareholders in room {n} of the town hall on the {n}th floor."
LAWSUITS = "TMBK loses lawsuit {n} over fraud, cuts its guidance and reports larger losses for the quarter."


def folder_with(made: Path, text: str) -> Path:
    """The demo market as a data folder, with an item of this text on each of twelve days and no filings."""
    asyncio.run(write_folder(FewSymbols(("TMBK",), date(2024, 3, 28)), made))
    for file in (*(made / "filings").iterdir(), *(made / "news").iterdir()):
        file.unlink()
    items = []
    for n in range(DAYS):
        known = datetime(2024, 2, 12, 15, tzinfo=UTC) + timedelta(days=n)
        told = text.format(n=n + 3)
        items.append(
            NewsItem(id=f"n{n}", symbol="TMBK", date=known.date(), available_at=known, headline="", summary=told)
        )
    (made / "news" / "TMBK.jsonl").write_text("".join(map(news_line, items)))
    return made


def sides(folder: Path) -> set[str]:
    """What the decisions of a backtest say of their memory, from the session on that has one."""
    spec = RunSpec(
        symbols=("TMBK",),
        first=date(2024, 2, 13),
        last=date(2024, 3, 1),
        preset="desk",
        model="offline",
        # Lessons are memories too, and speak of the price.
        without=("low-level", "high-level"),
        data=DataSpec(str(folder), 7),
        run="sides",
    )
    run_backtest(services(Config()), spec, baselines=())
    with JournalReader(places.run_journal(spec.run)) as reader:
        made = [answer.answer for answer in reader.answers(run=spec.run) if answer.agent == "evidence-decision"]
    told = [re.search(r"Memory ([^.]+)\.", answer["sentiment"]) for answer in made if answer]
    return {found[1] for found in told if found}


@pytest.mark.parametrize(
    ("text", "said"), [(MEETINGS, "takes no side"), (LAWSUITS, "speaks for a fall")], ids=["meetings", "lawsuits"]
)
def test_memories_speak_against_an_asset_only_where_their_texts_do(tmp_path: Path, text: str, said: str) -> None:
    assert sides(folder_with(tmp_path, text)) == {said}
