"""The settings that a run goes by, as its outputs tell them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.app.research.backtest import NEVER_TRADED
from engine.journal.reader import JournalReader
from engine.preset import load_preset, recorded_preset
from engine.settings import places
from tests.servers.fake_llm_server import fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_model_outages import Service

CONVENTION = ("--convention", "finagent", "--strategy", "buy-and-hold")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with some weeks of a coin and of a share."""
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    for symbol in ("ETH-USD", "AAA"):
        rows = ["date,open,high,low,close,adj_close,volume"]
        for row in range(60):
            day, close = date(2024, 1, 1) + timedelta(days=row), 100 + row % 7
            closed = symbol == "AAA" and (day.weekday() > 4 or day in (date(2024, 1, 1), date(2024, 1, 15)))
            if not closed and day != date(2024, 2, 19):
                rows.append(f"{day},{close},{close + 2},{close - 2},{close + 1},{close + 1},1000")
        (prices / f"{symbol}.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "data"


def test_finagents_eth_has_its_own_cash_and_commission(fresh: Path, folder: Path, run: Run) -> None:
    window = ("--from", "2024-01-16", "--to", "2024-02-09", "--data", str(folder), "--json")
    made = run("backtest", "--symbols", "ETH-USD", *CONVENTION, *window).json
    (bought, *_) = made["trades"]
    assert made["initial_value"] == "100000.00"
    assert Decimal(bought["fee"]) == Decimal(bought["quantity"]) * Decimal(bought["price"]) * Decimal("0.00015")
    share = run("backtest", "--symbols", "AAA", *CONVENTION, *window).json
    (bought, *_) = share["trades"]
    assert share["initial_value"] == "10000.00"
    assert Decimal(bought["fee"]) == Decimal(bought["quantity"]) * Decimal(bought["price"]) * Decimal("0.001")


def test_the_printed_volatility_of_finagents_eth_comes_out(fresh: Path, real_data: Path, run: Run) -> None:
    flags = ("--baselines", "--symbols", "ETH-USD", "--data", str(real_data), "--json")
    cells = run("bench", "finagent", *flags).json["cells"]
    (cell,) = [one for one in cells if one.get("strategy") == "buy-and-hold" and one["metric"] == "VOL"]
    assert round(cell["ours"], 4) == cell["paper"] == 0.0222


WINDOW = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-07")


def test_every_effective_setting_is_in_header_json_report_and_journal(fresh: Path, run: Run) -> None:
    places.config_file().write_text(
        '[desk]\ncash = "25000"\n[execution]\nslippage_bp = "9"\ncommission = "0.002"\ncommission_per_order = "1.5"\n'
    )
    flags = ("--preset", "finvision", *WINDOW, "--seed", "4")
    header = run("backtest", *flags, "--run", "one").out
    costs = "fills at the next open, slippage 9 bp, commission 0.2 %, 1.5 an order, cash 25,000.00 USD, cash floor 10 %"
    assert costs in " ".join(header.split())
    assert "slippage 5 bp" not in header and "5 bp slippage" not in header
    settings = run("report", "--run", "one", "--format", "json").json["settings"]
    assert (settings["fills"], settings["slippage_bp"], settings["commission"]) == ("next open", "9", "0.002")
    assert (settings["cash"], settings["cash_floor"], settings["seed"]) == ("25000", "0.10", 4)
    assert settings["version"] == version("paperdesk") and len(settings["data_fingerprint"]) == 64
    assert recorded_preset(settings["preset_text"]) == load_preset("finvision")
    report = " ".join(run("report", "--run", "one").out.split())
    assert costs in report and settings["data_fingerprint"][:12] in report
    with JournalReader(places.run_journal("one")) as reader:
        spec = reader.run("one").spec
        asked = {answer.agent: [answer.prompt_version] for answer in reader.answers(run="one")}
    assert spec is not None and spec.rules is not None
    assert (spec.rules.slippage_bp, spec.rules.commission_per_order, spec.cash) == (9, Decimal("1.5"), 25000)
    assert (spec.preset_text, spec.version) == (settings["preset_text"], settings["version"])
    assert settings["prompts"] == asked and asked


def test_a_strategys_parameters_are_told_with_its_defaults_and_equal_data_has_one_fingerprint(
    fresh: Path, folder: Path, run: Run
) -> None:
    flags = ("--symbols", "AAA", "--from", "2024-01-16", "--data", str(folder), "--strategy", "sma-cross", "--json")
    made = run("backtest", *flags, "--to", "2024-02-09", "--param", "fast=3").json
    assert made["settings"]["params"] == {"fast": "3", "slow": "30"}
    again = run("backtest", *flags, "--to", "2024-02-09").json
    assert made["settings"]["data_fingerprint"] == again["settings"]["data_fingerprint"]
    prices = folder / "prices" / "AAA.csv"
    prices.write_text(prices.read_text().replace("2024-02-28,102,104", "2024-02-28,102,105"))
    later = run("backtest", *flags, "--to", "2024-02-09").json
    assert made["settings"]["data_fingerprint"] == later["settings"]["data_fingerprint"]
    prices.write_text(prices.read_text().replace("2024-02-01,103,105", "2024-02-01,103,106"))
    changed = run("backtest", *flags, "--to", "2024-02-09").json
    assert made["settings"]["data_fingerprint"] != changed["settings"]["data_fingerprint"]


def test_a_shortened_window_and_a_run_that_never_traded_say_so(fresh: Path, folder: Path, run: Run) -> None:
    window = ("--symbols", "AAA", "--from", "2024-01-16", "--to", "2024-02-09", "--data", str(folder))
    text = run("backtest", *window, *CONVENTION, "--run", "short").out
    assert "requested to 2024-02-09, the convention drops the last 1" in " ".join(text.split())
    notes = run("report", "--run", "short", "--format", "json").json["notes"]
    assert "convention finagent leaves out the last session of the window until 2024-02-09" in notes
    assert NEVER_TRADED not in notes
    idle = run("backtest", *window, "--strategy", "cash", "--json").json
    assert idle["trades"] == [] and NEVER_TRADED in idle["notes"]
    assert not any("leaves out" in note for note in idle["notes"])


def test_warm_up_and_test_are_counted_apart(fresh: Path, run: Run) -> None:
    flags = ("--preset", "finvision-no-reflection", *WINDOW, "--warm-up-from", "2025-02-26")
    text = " ".join(run("backtest", *flags, "--run", "warm").out.split())
    made = run("report", "--run", "warm", "--format", "json").json
    before = made["warm_up"]
    assert f"3 decisions, {len(before['trades'])} trades, then fresh books" in text
    assert (made["sessions"], len(made["decisions"]), before["sessions"], len(before["decisions"])) == (5, 5, 3, 3)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [("2021-08-02", "2021-08-03", "lies"), ("2021-09-29", "2021-10-01", "begins"), ("2021-10-01", "2021-10-04", "")],
)
def test_a_window_within_the_training_of_a_model_is_told(
    fresh: Path, run: Run, monkeypatch: pytest.MonkeyPatch, first: str, last: str, said: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with fake_llm_server(Service()) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", service.openai_url)
        flags = ("--preset", "finvision-no-reflection", "--symbols", "ORVL", "--model", "openai:gpt-4", "--yes")
        made = run("backtest", *flags, "--from", first, "--to", last, "--json").json
    words = "within the training of openai:gpt-4, which knows the world to 2021-09"
    assert [words in note for note in made["notes"]].count(True) == bool(said)
    assert not said or any(note.startswith(f"the window {said} {words}") for note in made["notes"])


def test_a_run_is_repeated_from_its_journal_and_what_differs_is_said(
    fresh: Path, tmp_path: Path, folder: Path, run: Run
) -> None:
    own = tmp_path / "own.toml"
    own.write_text('extends = "finvision"\nname = "own"\n[sizing]\ncash_floor = 0.5\n')
    places.config_file().write_text('[desk]\ncash = "25000"\n[execution]\nslippage_bp = "9"\n')
    flags = ("--symbols", "AAA", "--from", "2024-02-12", "--to", "2024-02-15", "--data", str(folder))
    assert run("backtest", *flags, "--warm-up-from", "2024-02-08", "--preset", str(own), "--run", "one").code == 0
    # Configuration and preset change; the run keeps its own.
    own.write_text('extends = "finvision"\nname = "own"\n[sizing]\ncash_floor = 0.9\n')
    places.config_file().write_text('[desk]\ncash = "99000"\n[execution]\nslippage_bp = "1"\n')
    same = run("rerun", "one", "--run", "two", "--json")
    assert (same.code, same.json["same"], same.json["of"], same.json["run"]) == (0, True, "one", "two")
    assert same.json["settings"] == same.json["first_differences"] == []
    assert len(set(same.json["fingerprints"])) == 1
    # The data changes: the fingerprint says so, and the first close that differs is named.
    prices = folder / "prices" / "AAA.csv"
    prices.write_text(prices.read_text().replace("2024-02-13,101,103,99,102,102", "2024-02-13,101,106,99,105,105"))
    apart = run("rerun", "one", "--run", "three", "--json")
    assert (apart.code, apart.json["same"]) == (1, False)
    assert [one["setting"] for one in apart.json["settings"]] == ["data_fingerprint"]
    text = run("rerun", "one")
    assert (
        text.code == 1 and "fingerprint of the data: " in text.out and text.out.rstrip().endswith("Result: it differs")
    )
    assert run("rerun", "nothing").code == 65


ONE_MODEL = '[models]\ndefault = "openai:gpt-4"\n'
TWO_MODELS = ONE_MODEL + '[models.agents.decision]\nmodel = "openai:gpt-4-turbo"\n'


@pytest.mark.parametrize(
    ("configured", "model", "decides"),
    [(ONE_MODEL, "openai:gpt-4", "openai:gpt-4"), (TWO_MODELS, None, "openai:gpt-4-turbo")],
)
def test_the_configured_model_is_a_setting_of_the_run(
    fresh: Path, run: Run, monkeypatch: pytest.MonkeyPatch, configured: str, model: str | None, decides: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with fake_llm_server(Service()) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", service.openai_url)
        places.config_file().write_text(configured)
        flags = ("--preset", "finvision-no-reflection", *WINDOW[:5], "2025-03-04", "--yes")
        made = run("backtest", *flags, "--run", "one", "--json").json
        # Repeated once another model is configured, it asks those that it had.
        places.config_file().write_text('[models]\ndefault = "offline"\n')
        again = run("rerun", "one", "--yes", "--json")
        asked = {body["model"] for body in service.requests}
    assert made["settings"]["model"] == model
    assert made["settings"]["models"].get("decision", made["settings"]["model"]) == decides
    with JournalReader(places.run_journal("one")) as reader:
        spec = reader.run("one").spec
    assert spec is not None and (spec.model, dict(spec.models)) == (model, made["settings"]["models"])
    assert again.code == 0 and again.json["settings"] == []
    assert asked == {"gpt-4", decides.partition(":")[2]}
