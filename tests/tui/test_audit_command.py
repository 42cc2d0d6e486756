"""`paperdesk audit`: the certificate and its exit codes."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from engine.cycle import reflect
from engine.market.as_of import ArrayMarketAsOf
from engine.market.trading_hours import calendar_for
from engine.settings import places
from tui.cli import main

WINDOW = ("--symbols", "ORVL,WRNN-USD", "--from", "2025-02-03", "--to", "2025-02-11")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(("audit", *arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.slow
def test_agents_are_clean_and_the_certificate_says_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*WINDOW, "--warm-up-from", "2025-01-27", "--cuts", "2", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert made["verdict"] == "clean"
    assert made["preset"] == "desk"
    assert (made["first_decision"], made["last_decision"]) == ("2025-01-31", "2025-02-10")
    assert made["truncation"]["cuts"] == 2
    assert made["truncation"]["differing"] == 0
    # The warm-up's five sessions and the test's, and one of the cuts' decisions once more.
    assert made["truncation"]["compared"] == 2 * (5 + 7 + 1)
    assert made["door"] == {"sessions": 7, "differing": 0}
    assert [(p["source"], p["surfaced"]) for p in made["planted"]] == [
        ("bars", False),
        ("actions", False),
        ("news", False),
        ("filings", False),
        ("macro", False),
        ("commentary", False),
        ("guidance", False),
        ("memory", False),
    ]
    inputs = {read["source"]: read for read in made["inputs"]}
    assert (len(made["training"]["sessions"]), made["training"]["unmarked"]) == (2, 0)
    assert made["hindsight_memories"] > 0
    assert set(inputs) == {"bars", "news", "filings", "macro", "commentary", "memory"}
    for source in ("bars", "news"):
        read = inputs[source]
        assert read["items"] > 0 and not read["from_the_future"]
        assert datetime.fromisoformat(read["latest_available"]) <= datetime.fromisoformat(read["decision"])


def test_the_leaking_preset_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*WINDOW, "--preset", "leaky-test", "--cuts", "1", "--json") == 1
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "leak"
    assert made["truncation"]["differing"] > 0
    assert {p["source"] for p in made["planted"] if p["surfaced"]} == {"bars"}
    assert made["findings"]


def test_the_text_names_what_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*WINDOW, "--strategy", "macd", "--param", "fast=5", "--cuts", "1") == 0
    clean = capsys.readouterr().out
    assert "Truncation     passed: 1 cut" in clean
    assert "Planted future passed" in clean
    assert clean.rstrip().endswith("Verdict: clean")


@pytest.mark.slow
def test_adjusted_prices_are_named_as_what_is_not_covered(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = ("--symbols", "AAPL", "--from", "2023-06-01", "--to", "2023-06-09", "--data", str(real_data))
    assert run("--strategy", "macd", *window, "--convention", "finagent", "--cuts", "1") == 0
    assert "adjusted for later dividends" in capsys.readouterr().out
    assert run("--strategy", "macd", *window, "--cuts", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--cuts", "0"), 2, "'0' is neither"),
        (("--cuts", "some"), 2, "'some' is neither"),
        (("--preset", "finvisoin"), 2, "did you mean finvision"),
        (("--from", "2025-02-03"), 2, "--from and --to"),
        (("--symbols", "NOPE", "--from", "2025-02-03", "--to", "2025-02-11"), 65, "NOPE"),
        (("--strategy", "macd", "--from", "2025-02-08", "--to", "2025-02-09"), 2, "no session"),
    ],
)
def test_what_cannot_be_audited_is_one_line(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err and captured.err.count("\n") == 1


@pytest.mark.slow
def test_the_default_audit_of_the_demo_desk_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") == 0
    assert json.loads(capsys.readouterr().out)["truncation"]["cuts"] == 12


def with_split(folder: Path, ratio: int) -> tuple[str, ...]:
    """The flags of an audit of a share that splits within the window, its bars as traded."""
    days = calendar_for("AAA").sessions(date(2024, 1, 2), date(2024, 4, 30))
    rows = ["date,open,high,low,close,adj_close,volume"]
    for row, day in enumerate(days):
        close = (100 + row % 7) / (ratio if row >= 60 else 1)
        rows.append(f"{day},{close:.6f},{close * 1.02:.6f},{close * 0.98:.6f},{close:.6f},,1000")
    for kind in ("prices", "actions"):
        (folder / kind).mkdir(parents=True)
    (folder / "prices" / "AAA.csv").write_text("\n".join(rows) + "\n")
    (folder / "actions" / "AAA.csv").write_text(f"ex_date,kind,value\n{days[60]},split,{ratio}\n")
    return ("--symbols", "AAA", "--from", str(days[58]), "--to", str(days[64]), "--data", str(folder), "--cuts", "3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "ratio"),
    [
        (("--strategy", "macd"), 50_000),
        (("--preset", "finvision-no-reflection"), 20),
        pytest.param(("--strategy", "macd"), 20, marks=pytest.mark.slow),
        pytest.param(("--preset", "finvision-no-reflection"), 50_000, marks=pytest.mark.slow),
    ],
)
def test_a_split_of_any_ratio_is_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ratio: int, subject: tuple[str, str]
) -> None:
    assert run(*subject, *with_split(tmp_path, ratio), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "clean"
    assert {p["source"] for p in made["planted"]} >= {"bars", "actions"}


def test_cuts_are_chosen_by_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    def compared(*flags: str) -> int:
        assert (
            run(*WINDOW[:2], "--strategy", "macd", "--from", "2025-02-03", "--to", "2025-03-04", *flags, "--json") == 0
        )
        found: int = json.loads(capsys.readouterr().out)["truncation"]["compared"]
        return found

    # A rule's legs begin at the beginning: the later the cuts, the more is compared.
    first, second, again = (compared("--cuts", "3", "--seed", seed) for seed in ("1", "2", "1"))
    assert first == again != second


def test_texts_of_the_users_own_are_listed_as_undated(paperdesk_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places.config_file().parent.mkdir(parents=True, exist_ok=True)
    places.config_file().write_text(
        '[desk]\ninstruction = "Sell before March."\n[desk.profile]\nORVL = "It fell by half in March 2025."\n'
    )
    flags = ("--symbols", "ORVL", "--from", "2025-02-03", "--to", "2025-02-05", "--cuts", "1")
    assert run(*flags, "--preset", "finvision-no-reflection") == 0
    text = capsys.readouterr().out
    assert "  - profile of ORVL (7 words)\n  - instruction (3 words)\n" in text
    assert run(*flags, "--strategy", "macd", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["undated_texts"], made["training"]) == ([], None)


TRAINED = ("--symbols", "ORVL", "--from", "2025-02-03", "--to", "2025-02-03", "--warm-up-from", "2025-01-27")


def test_hindsight_without_its_mark_is_a_leak(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = reflect.lesson
    monkeypatch.setattr(reflect, "lesson", lambda *given, **named: lesson(*given, **{**named, "seen_until": None}))
    assert run(*TRAINED, "--preset", "finmem", "--cuts", "1") == 1
    said = capsys.readouterr().out
    assert "Training       FAILED: with another future of 2 sessions of the warm-up" in said
    assert "ORVL: a memory (reflection) rests on what followed and is not marked" in said
    assert said.rstrip().endswith("Verdict: leak")


def test_a_question_that_shows_what_followed_unsaid_is_a_leak(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = ArrayMarketAsOf.hindsight
    monkeypatch.setattr(
        ArrayMarketAsOf,
        "adjusted",
        lambda self, symbol, count: known(self, symbol, count, self.now + timedelta(days=4)),
    )
    assert run(*TRAINED, "--preset", "finmem", "--cuts", "1", "--json") == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any("a question (" in one and "shows what followed and does not say so" in one for one in findings)
