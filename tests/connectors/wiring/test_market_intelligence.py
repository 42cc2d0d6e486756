"""FinAgent's intelligence and memory over a backtest: what is judged, asked for, recalled, summarized and stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.wiring.services import services
from engine.app.memory import memory_of_run
from engine.app.research.backtest import run_backtest
from engine.domain.decision import RetrievalType
from engine.domain.model_call import AnswerRecord, ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.journal.entries import Recalled
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from engine.settings.config import Config
from memory.embedders import HashEmbedder
from memory.record import MemoryRecord

SYMBOL = "ORVL"
ITEM = re.compile(r"^- \[(\S+)\] \d{4}-\d\d-\d\d (?:news|10-Q|10-K|report|macro|price):", re.MULTILINE)
K = 5


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The answers by agent, what was recalled by session, and the records of the memory."""

    answers: Mapping[str, Sequence[AnswerRecord]]
    recalled: Mapping[date, Sequence[Recalled]]
    records: Sequence[MemoryRecord]

    def given(self, agent: str) -> Sequence[AnswerRecord]:
        """The answers of an agent that were taken."""
        return [answer for answer in self.answers[agent] if answer.outcome == "answered"]


def ran(preset: str, last: date = date(2025, 3, 28), **changes: Any) -> Ran:
    name = f"intelligence-{Path(preset).stem}"
    spec = RunSpec(
        symbols=(SYMBOL,), first=date(2025, 2, 10), last=last, preset=preset, data=DataSpec(None, 7), run=name
    )
    run_backtest(services(Config()), replace(spec, **changes), baselines=())
    with JournalReader(places.run_journal(name)) as reader:
        made = reader.decisions(symbol=SYMBOL)
        answers: dict[str, list[AnswerRecord]] = {}
        for answer in (one for decision in made for one in reader.answers(decision.key)):
            answers.setdefault(answer.agent, []).append(answer)
        recalled = {decision.key.session: reader.recalled(decision.key) for decision in made}
        kept = memory_of_run(services(Config()), reader.run(name))
    with kept.opened() as memory:
        return Ran(answers=answers, recalled=recalled, records=memory.records())


@pytest.fixture(scope="module")
def finagent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(places.HOME, str(tmp_path_factory.mktemp("finagent")))
        yield ran("finagent")


def text_of(answer: AnswerRecord) -> str:
    return "\n".join(message.text for message in answer.messages)


def test_every_item_is_judged_and_the_market_is_called_bullish_or_bearish(finagent: Ran) -> None:
    judged, moods = 0, set()
    for answer in finagent.given("market-intelligence"):
        assert answer.answer is not None
        items = answer.answer["items"]
        assert [item["id"] for item in items] == ITEM.findall(text_of(answer))
        assert all(item["effect"] in ("positive", "negative", "neutral") and item["summary"] for item in items)
        assert re.search(rf"lately been {answer.answer['recent_market']}\b", answer.answer["summary"])
        moods.add(answer.answer["recent_market"])
        judged += len(items)
    assert judged > 30 and {"bullish", "bearish"} <= moods


PRICE = re.compile(r"^- \[price\] (\S+) price: close ([\d.]+), ([+-][\d.]+)% in the session", re.MULTILINE)


def test_the_move_of_the_price_is_judged_remembered_and_recalled_like_any_item(finagent: Ran) -> None:
    effects, kept = set(), {record.source: record for record in finagent.records if record.kind == "price"}
    for answer in finagent.given("market-intelligence"):
        ((day, close, change),) = PRICE.findall(text_of(answer))
        assert day == str(answer.key.session)
        assert f"- {day}: close {close}, {change}%" in text_of(answer)
        assert answer.answer is not None
        (judged,) = [item for item in answer.answer["items"] if item["id"] == "price"]
        moved = float(change)
        assert judged["effect"] == ("positive" if moved >= 1 else "negative" if moved <= -1 else "neutral")
        assert judged["horizon"] == ("medium" if abs(moved) >= 3 else "short") and 2 <= judged["weight"] <= 5
        record = kept[f"price-{day}"]
        assert record.text.startswith(
            f"{judged['effect'].capitalize()}, {judged['horizon']} term: {judged['summary']}."
        )
        types = {"positive": {"price up"}, "negative": {"price down"}}.get(judged["effect"], set())
        assert types | {f"{judged['horizon']} term"} == set(record.labels) - {"bullish trend", "bearish trend"}
        effects.add(judged["effect"])
    assert effects == {"positive", "negative", "neutral"} and len(kept) == len(finagent.recalled)
    recalled = [one.memory for rows in finagent.recalled.values() for one in rows if one.memory.kind == "price"]
    assert {"price up", "price down", "short term"} <= {name for memory in recalled for name in memory.types}


def test_a_papers_memory_without_a_place_for_prices_keeps_none() -> None:
    seen = ran("finmem", date(2025, 2, 14))
    asked = [text_of(answer) for answer in seen.given("market-intelligence")]
    assert asked and all(PRICE.search(text) for text in asked)
    assert seen.records and not any(record.kind == "price" for record in seen.records)


def test_every_retrieval_type_has_a_query_of_its_own_beside_the_summary(finagent: Ran) -> None:
    given = finagent.given("market-intelligence")
    assert given
    for answer in given:
        assert answer.answer is not None
        queries = answer.answer["queries"]
        assert set(queries) == {name.replace(" ", "_") for name in RetrievalType}
        assert len(set(queries.values())) == len(RetrievalType)
        assert not any(text in answer.answer["summary"] for text in queries.values())


def test_each_type_recalls_its_own_best_and_no_more(finagent: Ran) -> None:
    labels = {record.id: record.labels for record in finagent.records}
    found: set[str] = set()
    for recalled in finagent.recalled.values():
        by_type: dict[str, list[Recalled]] = {}
        for one in recalled:
            for name in one.memory.types:
                by_type.setdefault(name, []).append(one)
        assert all(len(rows) <= K for rows in by_type.values())
        assert all(name in labels[one.memory.id] for name, rows in by_type.items() for one in rows)
        found |= by_type.keys()
    assert found == set(RetrievalType)
    assert max(map(len, finagent.recalled.values())) > K


def test_the_types_are_a_setting_of_the_preset(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('extends = "finagent"\nname = "own"\nretrieval = ["price down", "news"]\n', encoding="utf-8")
    few = ran(str(own), date(2025, 2, 18))
    for answer in few.given("market-intelligence"):
        assert answer.answer is not None and set(answer.answer["queries"]) == {"price_down", "news"}
    found = {name for recalled in few.recalled.values() for one in recalled for name in one.memory.types}
    assert found == {"price down", "news"}


@pytest.mark.parametrize("always", [False, True])
def test_an_item_left_out_goes_back_once_and_is_remembered_without_labels(
    always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model leaves the first item of every day unjudged, `always` or the first time alone."""
    left_out: set[str] = set()
    rules = OfflineModel.answer

    async def careless(model: OfflineModel, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        result = await rules(model, request, on_delta)
        made: dict[str, Any] = dict(result.answer or {})
        if request.purpose == "market-intelligence" and made["items"] and (always or len(request.messages) == 1):
            first = ITEM.search(asked := request.messages[0].text)
            assert first is not None
            left_out.add(asked[first.end() :].splitlines()[0].strip())
            made["items"] = made["items"][1:]
        return replace(result, answer=made)

    monkeypatch.setattr(OfflineModel, "answer", careless)
    seen = ran("finagent", date(2025, 2, 21))
    back = [answer for answer in seen.answers["market-intelligence"] if answer.outcome == "sent back"]
    assert back and all("items leaves out" in answer.reason for answer in back)
    assert len(seen.given("market-intelligence")) == len(seen.recalled)
    unlabelled = {record.text: record.id for record in seen.records if not record.labels}
    assert left_out and unlabelled.keys() == (left_out if always else set())
    recalled = {one.memory.id for rows in seen.recalled.values() for one in rows}
    assert not unlabelled or recalled & set(unlabelled.values())


def test_without_intelligence_the_news_is_still_remembered() -> None:
    seen = ran("finagent", date(2025, 2, 14), without=("intelligence",))
    news = [record for record in seen.records if record.kind == "news"]
    assert news and not any(record.labels for record in news)


def test_of_the_past_the_decision_reads_a_summary_of_intelligence_alone(finagent: Ran) -> None:
    kinds = {record.kind for record in finagent.records}
    assert {"low-level-reflection", "high-level-reflection"} <= kinds
    texts = {record.id: record.text for record in finagent.records}
    summaries = {answer.key.session: answer for answer in finagent.given("past-intelligence")}
    for decided in finagent.given("whole-decision"):
        asked, recalled = text_of(decided), finagent.recalled[decided.key.session]
        assert not any("reflection" in one.memory.kind for one in recalled)
        assert not any(one.cited for one in recalled) and "best first:" not in asked
        if not recalled:
            continue
        summary = summaries.pop(decided.key.session)
        assert len(re.findall(r"^- \[S\d+\] ", text_of(summary), re.MULTILINE)) == len(recalled)
        assert summary.answer is not None
        told = summary.answer["summary"].splitlines()
        assert all(line in asked for line in told)
        # A memory's text reaches it only where the summary quotes it or today's intelligence says it again.
        shown = [one for one in recalled if texts[one.memory.id] in asked]
        assert len(shown) < len(recalled) or len(recalled) <= len(told)
    assert not summaries


def test_where_memories_are_cited_their_summary_is_of_intelligence_too() -> None:
    seen = ran("desk", date(2025, 2, 21))
    assert any(one.memory.layer == "reflection" for rows in seen.recalled.values() for one in rows)
    assert any("Reflection memory, best first:" in text_of(answer) for answer in seen.given("evidence-decision"))
    asked = [text_of(answer) for answer in seen.given("past-intelligence")]
    assert asked and not any(re.search(r"^- \[R\d+\] ", text, re.MULTILINE) for text in asked)


def test_moves_are_linked_to_intelligence_with_lessons_for_each_horizon(finagent: Ran) -> None:
    queries = {record.query_text for record in finagent.records if record.kind == "low-level-reflection"}
    lists: list[list[str]] = []
    for answer in finagent.given("low-level-reflection"):
        asked = text_of(answer)
        assert [chart.kind for chart in answer.charts] == ["kline"] and "News, filings and prices:" in asked
        assert all(re.search(rf"^- over {days} sessions? up to now: ", asked, re.MULTILINE) for days in (1, 7, 14))
        parts = re.split(r"Your earlier lessons that fit what matters over the (\w+) horizon:\n", asked)[1:]
        lists = [re.findall(r"^- \[R\d+\] (\S+) low-level-reflection: ", text, re.MULTILINE) for text in parts[1::2]]
        assert parts[::2] == ["short", "medium", "long"][: len(lists)] and all(0 < len(own) <= K for own in lists)
        made = answer.answer
        assert made is not None and made["query"] in queries
        assert all(made[term] for term in ("short_term", "medium_term", "long_term", "lesson"))
    assert len(lists) == 3 and lists[0] != lists[2]


def test_memory_holds_what_intelligence_and_reflections_wrote_found_by_query_texts(finagent: Ran) -> None:
    by_kind: dict[str, list[MemoryRecord]] = {}
    for record in finagent.records:
        by_kind.setdefault(record.kind, []).append(record)
    assert by_kind.keys() == {
        "news",
        "10-Q",
        "10-K",
        "price",
        "market-intelligence",
        "low-level-reflection",
        "high-level-reflection",
    }
    assert all(record.query_text and record.text for record in finagent.records)
    vectors = HashEmbedder().embed([record.query_text for record in finagent.records])
    assert all(np.allclose(record.vector, vector) for record, vector in zip(finagent.records, vectors, strict=True))
    made = [answer.answer for answer in finagent.given("market-intelligence") if answer.answer is not None]
    said = {item["id"]: item for answer in made for item in answer["items"]}
    for record in (one for one in finagent.records if one.source in said):
        item = said[record.source]
        assert record.text.startswith(
            f"{item['effect'].capitalize()}, {item['horizon']} term: {item['summary'].rstrip('.')}. "
        )
        assert record.query_text == item["summary"] and len(record.text) > 2 * len(item["summary"])
    days = {record.text.rpartition("\n")[0]: record for record in by_kind["market-intelligence"]}
    assert days.keys() == {answer["summary"] for answer in made}
    asked = {text for answer in made for text in answer["queries"].values()}
    assert all(record.query_text in asked for record in days.values())


def test_analyses_that_are_left_out_leave_the_items_alone() -> None:
    seen = ran("finagent", date(2025, 2, 14), without=("analyses",))
    items = [record for record in seen.records if "reflection" not in record.kind]
    assert items and not any(record.query_text or record.kind == "market-intelligence" for record in items)
