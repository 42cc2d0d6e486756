"""A day of the desk, replayed from what was seen: the same whatever became of the data; other answers are found out."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.redecision.redecision import check_parity
from engine.domain.model_call import ModelRequest, ModelResult
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.lab.recorded_turn import Parity
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import evening
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.data_folders import write_folder
from tests.engine.desks import RulesExcept

DAYS = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 14))


class Headstrong(RulesExcept):
    """The rules, except that TMBK is always bought."""

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        if request.purpose == "evidence-decision" and request.symbol == "TMBK":
            bold = {
                "recommendation": "BUY",
                "position_size": 9,
                "rule": "strong uptrend",
                "explanation": "It will rise.",
            }
            return replace(result, answer={**(result.answer or {}), **bold})
        return result


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "demo"
    asyncio.run(write_folder(FewSymbols(("TMBK", "BXWD"), date(2024, 2, 20)), target))
    return target


def desk(folder: Path | None = None) -> Config:
    plain = {
        "desk": {"name": "mine", "symbols": ["TMBK", "BXWD"], "preset": "desk"},
        "data": {"folder": None if folder is None else str(folder)},
    }
    return Config.model_validate(plain)


def parity(config: Config, session: date | None = None) -> Parity:
    with JournalReader(places.desk_journal("mine")) as reader:
        return check_parity(services(config), reader, session)


@pytest.mark.slow
def test_every_day_replays_to_the_same_and_changed_data_are_told(written: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for entry in sorted(written.rglob("*")):
        if entry.is_file():
            (folder / entry.relative_to(written)).parent.mkdir(parents=True, exist_ok=True)
            (folder / entry.relative_to(written)).write_bytes(entry.read_bytes())
    config = desk(folder)
    for day in DAYS:
        asyncio.run(run_daily(services(config, evening(day)), day))
    for day in DAYS:
        found = parity(config, day)
        assert found.same and all(one.same_throughout for one in found.comparisons)
        assert (found.session, len(found.comparisons), found.data) == (day, 2, ())
    assert sum(parity(config, day).orders for day in DAYS) > 0
    assert parity(config).session == DAYS[-1]

    prices = folder / "prices" / "TMBK.csv"
    header, *rows = prices.read_text().splitlines()
    place = next(n for n, row in enumerate(rows) if row.startswith("2024-02-09"))
    fields = rows[place].split(",")
    closed = header.split(",").index("close")
    was, fields[closed] = fields[closed], fields[closed - 1]  # its low
    rows[place] = ",".join(fields)
    prices.write_text("\n".join([header, *rows]) + "\n")
    late = {
        "date": "2024-02-14",
        "time": "2024-02-14T15:00:00Z",
        "headline": "A story that came late",
        "summary": "Late.",
    }
    stories = folder / "news" / "BXWD.jsonl"
    lines = [json.loads(line) for line in stories.read_text().splitlines()]
    lines.append({**dict.fromkeys(lines[0]), **late})
    lines.sort(key=lambda line: (line["date"], line["time"] or ""))
    stories.write_text("\n".join(map(json.dumps, lines)) + "\n")

    restated = parity(config, DAYS[-1])
    assert restated.same
    told = "\n".join(restated.data)
    assert f"TMBK: restated, close of 2024-02-09 was {float(was):g} and is" in told
    assert 'BXWD: news: "A story that came late" came late' in told

    for path in (folder / "prices").iterdir():
        path.unlink()
    gone = parity(config, DAYS[-1])
    assert gone.same
    assert len(gone.data) == 1 and gone.data[0].startswith("today's data cannot be read: ")


def test_answers_that_were_not_the_rules_are_found_out() -> None:
    day = DAYS[0]
    asyncio.run(run_daily(services(desk(), evening(day)), day, through=Headstrong))
    found = parity(desk(), day)
    assert not found.same
    (differs,) = found.differing
    assert differs.then is not None and differs.then.decision.key.symbol == "TMBK"
    assert {"action", "explanation", "order"} <= {change.what for change in differs.decision}
    (order,) = [change for change in found.order_changes if "TMBK" in change.what and change.then]
    assert str(order.then).startswith("BUY TMBK for ")


def test_what_was_not_decided_is_missing_data() -> None:
    day = DAYS[0]
    asyncio.run(run_daily(services(desk(), evening(day)), day))
    with pytest.raises(MissingData, match=r"has no decision for 2024-02-13: the latest sessions are 2024-02-12"):
        parity(desk(), DAYS[1])
