"""Rule strategies become signals with their reasons; experts are heard only on days before."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.tools import ToolSignal, guidance_signals, read_guidance, tool_signals
from engine.domain.market import PriceHistory
from engine.domain.run import ExpertNote
from engine.errors import MalformedData, MissingData
from engine.strategies.catalog import make_strategy
from tests.engine.agents.evidence_samples import DAY, history

TURNING_UP = history([200.0 - n for n in range(60)] + [141 + 4 * n for n in range(2)])
RULES = [make_strategy(name) for name in ("macd", "kdj-rsi", "z-score")]


def test_each_rule_says_what_its_last_signal_is_and_why() -> None:
    bars = next(
        TURNING_UP.slice(0, n) for n in range(40, len(TURNING_UP)) if RULES[0].signals(TURNING_UP.slice(0, n))[-1] > 0
    )
    macd, kdj, z_score = tool_signals(RULES, bars)
    assert (macd.name, macd.signal) == ("macd", "buy")
    assert macd.explanation == RULES[0].explain(bars, -1)
    assert macd.line.startswith(f"macd, buy: {macd.explanation}")
    assert kdj.name == "kdj-rsi" and z_score.name == "z-score"


def test_a_price_far_above_its_mean_is_a_sale_to_the_z_score() -> None:
    bars = history([100.0 + n % 2 for n in range(30)] + [120.0])
    (signal,) = tool_signals([make_strategy("z-score")], bars)
    assert signal.signal == "sell"


def test_no_signal_is_said_as_such_and_no_bars_say_nothing() -> None:
    (quiet,) = tool_signals([make_strategy("z-score")], history([100.0 + n % 2 for n in range(30)]))
    assert quiet.signal == "none"
    assert tool_signals(RULES, PriceHistory.of("MSFT", [])) == ()


@given(st.lists(st.floats(1, 1000).map(lambda x: round(x, 2)), min_size=1, max_size=70))
def test_any_prices_get_a_signal_of_every_rule(closes: list[float]) -> None:
    for signal, rule in zip(tool_signals(RULES, history(closes)), RULES, strict=True):
        assert signal.name == rule.name and signal.signal in ("buy", "sell", "none") and signal.explanation


def note(days_ago: int, text: str = "Sell it.", symbol: str = "MSFT") -> ExpertNote:
    return ExpertNote(DAY - timedelta(days=days_ago), symbol, text)


def test_experts_are_heard_from_the_day_after_they_wrote() -> None:
    notes = [note(0, "today"), note(-3, "later"), note(1, "yesterday"), note(2, "other", "AAPL"), note(9, "long ago")]
    assert [signal.explanation for signal in guidance_signals(notes, "MSFT", DAY)] == ["long ago", "yesterday"]
    assert {signal.signal for signal in guidance_signals(notes, "MSFT", DAY)} == {"guidance"}
    assert guidance_signals(notes, "MSFT", DAY)[-1].line == "expert of 2023-05-31, expert guidance: yesterday"


@given(st.lists(st.tuples(st.integers(-20, 20), st.sampled_from(["MSFT", "AAPL"])), max_size=12))
def test_later_notes_change_nothing(rows: list[tuple[int, str]]) -> None:
    notes = [note(ago, f"{n}", symbol) for n, (ago, symbol) in enumerate(rows)]
    known = [one for one in notes if one.day < DAY]
    assert guidance_signals(notes, "MSFT", DAY) == guidance_signals(known, "MSFT", DAY)
    assert len(guidance_signals(notes, "MSFT", DAY)) == min(3, sum(one.symbol == "MSFT" for one in known))


def test_a_guidance_file_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "guidance.jsonl"
    file.write_text(
        '{"date": "2023-05-30", "symbol": "MSFT", "text": "Wait.\\u2028Then <b>buy</b>.", "source": "desk"}\n\n'
        '{"date": "2023-05-31", "symbol": " AAPL ", "text": "Sell."}\n',
        encoding="utf-8",
    )
    notes = read_guidance(file)
    assert [(n.day.isoformat(), n.symbol) for n in notes] == [("2023-05-30", "MSFT"), ("2023-05-31", "AAPL")]
    assert guidance_signals(notes, "MSFT", DAY)[0].explanation == "Wait. Then buy ."


def test_a_guidance_file_may_be_a_table(tmp_path: Path) -> None:
    file = tmp_path / "guidance.CSV"
    file.write_text('\ufeffsymbol,date,text,by\nMSFT,2023-05-30,"Wait,\nthen buy.",me\nAAPL,2023-05-31,Sell.,\n')
    assert read_guidance(file) == (
        ExpertNote(date(2023, 5, 30), "MSFT", "Wait,\nthen buy."),
        ExpertNote(date(2023, 5, 31), "AAPL", "Sell."),
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("date,symbol\n2023-05-30,MSFT\n", r"csv: .*text"),
        ("", r"csv: .*date"),
        ("date,symbol,text\n2023-05-30,MSFT,ok\n2023-05-30,MSFT\n", r"csv:3: text"),
        ("date,symbol,text\n2023-13-30,MSFT,ok\n", r"csv:2: date '2023-13-30'"),
        ('date,symbol,text\n2023-05-30,MSFT,"open\n', r"csv:2: "),
    ],
)
def test_a_bad_row_of_a_table_is_named_with_file_and_line(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "guidance.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedData, match=fault):
        read_guidance(file)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", ""),
        ("[1]", ""),
        ('{"date": "2023-05-30", "symbol": "MSFT"}', "text"),
        ('{"date": "30.05.2023", "symbol": "MSFT", "text": "Buy."}', "date '30.05.2023'"),
        ('{"date": 5, "symbol": "MSFT", "text": "Buy."}', "date"),
        ('{"date": "2023-05-30", "symbol": " ", "text": "Buy."}', "symbol"),
    ],
)
def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path, line: str, fault: str) -> None:
    file = tmp_path / "guidance.jsonl"
    file.write_text('{"date": "2023-05-30", "symbol": "MSFT", "text": "Buy."}\n' + line, encoding="utf-8")
    with pytest.raises(MalformedData, match=rf"guidance\.jsonl:2: {fault}"):
        read_guidance(file)


def test_a_file_that_is_not_there_or_no_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingData):
        read_guidance(tmp_path / "none.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MalformedData):
        read_guidance(tmp_path / "binary")


def test_what_a_tool_says_is_plain_and_bounded() -> None:
    signal = ToolSignal("t" * 99, "none", "<b>x</b>\n" + "word " * 900)
    assert len(signal.name) == 60 and 1_490 < len(signal.explanation) <= 1_500 and "<" not in signal.line
