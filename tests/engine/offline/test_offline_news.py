"""The rules' digest of the news: what concerns the company, what it says, and what is only noise."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date
from pathlib import Path

import pytest

from engine.agents.news import NewsDigest, NewsLine, NewsView
from engine.offline.news import digest

DAY = date(2021, 2, 8)


def read(symbol: str, *texts: str) -> NewsDigest:
    view = NewsView(symbol, DAY, "desk", tuple(NewsLine(DAY, "", text) for text in texts))
    return NewsDigest.model_validate(digest(view))


def test_good_news_is_bullish_and_quoted() -> None:
    told = read("MSFT", "Microsoft beat estimates and raised its guidance. Shares rose in late trading.")
    assert told.sentiment == "bullish"
    assert "Microsoft beat estimates and raised its guidance" in told.positive[0]
    assert told.negative == [] and told.unrelated == 0
    assert "raised its guidance" in told.reason


def test_bad_news_is_bearish() -> None:
    told = read("MSFT", "Microsoft cut its forecast.", "Microsoft faces a fraud probe; the stock plunged.")
    assert told.sentiment == "bearish"
    assert len(told.negative) == 2 and told.positive == []


def test_good_and_bad_in_balance_are_neutral() -> None:
    assert read("MSFT", "Microsoft beat estimates.", "Microsoft cut its forecast.").sentiment == "neutral"


def test_what_only_names_the_company_in_passing_counts_for_nothing_and_is_said() -> None:
    told = read(
        "MSFT",
        "Acme cut its forecast after a fraud probe. Its software runs on Microsoft servers.",
        "The market will grow. Key players include IBM, Oracle, and Microsoft. Losses widened.",
        "Contoso is bankrupt and its shares crashed.",
        "Microsoft raised its dividend.",
    )
    assert told.unrelated == 3
    assert told.sentiment == "bullish" and told.negative == []
    assert any("3 of 4 items do not concern MSFT" in sentence for sentence in told.summary)


def test_firms_of_a_similar_name_are_told_apart() -> None:
    told = read("UVV", "Universal Music Group reported record profit.", "Universal Corporation raised its dividend.")
    assert told.unrelated == 1


def test_nothing_about_the_company_is_neutral_and_said() -> None:
    told = read("UVV", "Universal Health Services beat estimates.")
    assert (told.sentiment, told.unrelated, told.positive) == ("neutral", 1, [])
    assert told.summary == ["1 of 1 item does not concern UVV or only name it in passing."]


def test_an_unknown_company_is_learnt_from_its_ticker_and_else_everything_counts() -> None:
    ticker = "Zenith Widgets (NYSE: ZWX) beat estimates."
    other = "Acme cut its forecast."
    assert read("ZWX", ticker, other).unrelated == 1
    assert read("ZWX", "Widgets beat estimates.", other).unrelated == 0


def test_repeats_count_once() -> None:
    bad = "Microsoft cut its forecast."
    told = read("MSFT", "Microsoft beat estimates.", bad, bad, bad, bad)
    assert told.sentiment == "neutral"
    assert any("3 repeated another" in sentence for sentence in told.summary)


def test_another_models_judgement_is_not_used() -> None:
    plain = read("MSFT", "Microsoft opened an office.")
    assert plain == read("MSFT", "Microsoft opened an office. (Sentiment: negative)")
    assert plain.sentiment == "neutral"


@pytest.mark.parametrize("symbol", ["MSFT", "UVV", "BTC-USD"])
def test_real_feeds_are_digested_validly_and_their_labels_mostly_agreed_with(real_data: Path, symbol: str) -> None:
    days: dict[str, list[dict[str, str]]] = defaultdict(list)
    for line in (real_data / "news" / f"{symbol}.jsonl").read_text(encoding="utf-8").splitlines()[:600]:
        item = json.loads(line)
        days[item["date"]].append(item)
    unrelated = agreed = opposed = 0
    for day, items in days.items():
        session = date.fromisoformat(day)
        lines = tuple(NewsLine(session, "", item["summary"]) for item in items)
        unrelated += NewsDigest.model_validate(digest(NewsView(symbol, session, "desk", lines))).unrelated
        for item, told in zip(items, lines, strict=True):
            # Under a symbol that nobody knows every item counts, so that its text alone is judged.
            sentiment = digest(NewsView("NOBODY", session, "desk", (told,)))["sentiment"]
            verdict = {"bullish": "positive", "bearish": "negative"}.get(sentiment)
            agreed += verdict == item["sentiment"]
            opposed += {verdict, item["sentiment"]} == {"positive", "negative"}
    assert agreed > 4 * opposed
    assert unrelated > {"MSFT": 200, "UVV": 500, "BTC-USD": 50}[symbol]
