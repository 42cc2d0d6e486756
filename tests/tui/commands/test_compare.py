"""Models side by side: over HTTP on loopback, one that follows another, one that differs, one that answers otherwise
every time; what they share is asked once; a desk's books by the same page; what cannot be compared is one line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import paperdesk
from connectors.llm import gate
from engine.settings import places
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_model_outages import ANSWERS
from tui.commands import study

SESSIONS = 23
WINDOW = ("--symbols", "ORVL", "--preset", "finvision-no-reflection", "--from", "2025-03-03", "--to", "2025-04-02")
CONFIG = """
[models.prices."near:buyer"]
input = 2
output = 1
[models.prices."near:shared"]
input = 2
output = 1
[models.agents.news]
model = "near:shared"
[models.agents.chart]
model = "near:shared"
[endpoints.near]
base_url = "{}"
requests_per_minute = 60000
"""
KEYS = {
    *("name", "model", "runs", "total_return", "metrics", "luck", "cost", "abstentions", "refusals", "repairs"),
    *("unresolved_figures", "training_cutoff", "before_cutoff", "after_cutoff", "agreement"),
}


class Models(FakeLLMServer):
    """`buyer` and `twin` buy, `idle` holds, `noisy` buys in its first run and holds in the next, `mute` answers prose;
    `shared` answers about the market."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.decided: Counter[str] = Counter()
        self.asked: list[tuple[str, str]] = []

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        model = body["model"]
        if model == "later" and self.decided[model] >= SESSIONS:
            return Fail(402, "no credit is left", "insufficient_quota")
        if model == "gone":
            return Fail(404, "the model gone does not exist", "model_not_found")
        if is_preflight(body):
            return Say(text='{"word": "ready"}')
        schema = json.dumps(body["response_format"])
        answer = next(answer for field, answer in ANSWERS.items() if f'"{field}"' in schema)
        with self._lock:
            self.asked.append((model, json.dumps(body["messages"])))
            if "recommendation" not in answer:
                return Say(text=json.dumps(answer))
            second = self.decided[model] >= SESSIONS
            self.decided[model] += 1
        if model == "mute":
            return Say(text="I would rather not say.")
        if model == "idle" or (model == "noisy" and second):
            answer = answer | {"recommendation": "HOLD", "position_size": 0, "rule": "uncertainty"}
        else:
            answer = answer | {"position_size": 2}
        return Say(text=json.dumps({"symbol": "ORVL"} | answer))


@pytest.fixture
def service(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Models(plays_preflight=True)) as running:
        assert isinstance(running, Models)
        places.config_file().write_text(CONFIG.format(running.openai_url))
        yield running


def compared(run: Run, models: str, *more: str) -> Any:
    done = run("compare", "--models", models, *WINDOW, *more, "--yes", "--json")
    assert done.code == 0, done.err
    return done.json


def test_models_stand_side_by_side_and_what_they_share_is_asked_once(service: Models, run: Run, tmp_path: Path) -> None:
    found = compared(run, "near:buyer,near:twin,near:idle", "--out", str(tmp_path / "models.html"))
    rows = {row["name"]: row for row in found["models"]}
    assert list(rows) == ["near:buyer", "near:twin", "near:idle"] and all(row.keys() >= KEYS for row in rows.values())
    assert {row["sessions"] for row in rows.values()} == {SESSIONS} and found["floor"] is None
    assert Decimal(rows["near:buyer"]["cost"]) > 0 and rows["near:idle"]["cost"] is None, "a price that is unknown"
    assert rows["near:twin"]["training_cutoff"] == "unknown" and rows["near:twin"]["before_cutoff"] is None

    pairs = {(pair["first"], pair["other"]): pair for pair in found["pairs"]}
    assert len(pairs) == 3
    twins, idle = pairs["near:buyer", "near:twin"], pairs["near:buyer", "near:idle"]
    assert (twins["value"], twins["distinguishable"], twins["agreement"]) == (0, False, 1)
    assert twins["sessions_needed"] is None
    assert idle["agreement"] < 0.5 and idle["compared"] == SESSIONS
    reports = [run("report", "--run", rows[name]["runs"][0], "--json").json for name in ("near:buyer", "near:idle")]
    days = [
        [float(b) / float(a) - 1 for a, b in zip([one["initial_value"], *values], values, strict=False)]
        for one in reports
        for values in [[point["value"] for point in one["equity"]]]
    ]
    gaps = [b - a for a, b in zip(*days, strict=True)]
    assert idle["value"] == pytest.approx(fmean(gaps)) and idle["low"] < idle["value"] < idle["high"]
    assert idle["distinguishable"] is (not idle["low"] <= 0 <= idle["high"])
    assert rows["near:buyer"]["total_return"] == pytest.approx(reports[0]["metrics"]["total_return"])

    counts = Counter(question for model, question in service.asked if model == "shared")
    assert len(counts) > SESSIONS and set(counts.values()) == {1}, "two agents read the market for all models"
    assert Counter(model for model, _ in service.asked)["idle"] == SESSIONS
    page = (tmp_path / "models.html").read_text()
    assert all(name in page for name in rows) and "not distinguishable" in page and "<svg" in page

    before = len(service.asked)
    again = compared(run, "near:buyer,near:twin,near:idle")
    assert again == found and len(service.asked) == before, "what is there is not played again"
    arguments: Any = {"symbols": "ORVL", "preset": WINDOW[3], "start": WINDOW[5], "end": WINDOW[7]}
    assert paperdesk.compare(models=list(rows), **arguments) == found and len(service.asked) == before
    with pytest.raises(paperdesk.UsageError, match="strategy"):
        paperdesk.compare(models=list(rows), strategy="macd")

    two = ("runs", "compare", rows["near:buyer"]["runs"][0], rows["near:idle"]["runs"][0])
    beside = run(*two, "--json", "--out", str(tmp_path / "runs.html")).json
    (pair,) = beside["pairs"]
    for name in ("value", "low", "high", "distinguishable", "agreement"):
        assert pair[name] == idle[name]
    assert pair["first"] == beside["models"][0]["name"] == rows["near:buyer"]["runs"][0] and beside["floor"] is None
    assert two[-1] in (tmp_path / "runs.html").read_text()
    text = run(*two).out
    assert "Abstentions" in text and "Training cut-off" in text


def test_a_difference_below_the_noise_of_repeats_is_none(service: Models, run: Run) -> None:
    found = compared(run, "near:noisy,near:idle", "--repeats", "2")
    noisy, idle = found["models"]
    assert len(set(noisy["runs"])) == len(set(idle["runs"])) == 2
    assert noisy["agreement"] < 0.5 and idle["agreement"] == 1
    (pair,) = found["pairs"]
    assert 0 < abs(pair["value"]) < found["floor"]
    assert pair["below_floor"] and pair["distinguishable"] is False and pair["runs_needed"] > 2
    text = run("compare", "--models", "near:noisy,near:idle", *WINDOW, "--repeats", "2", "--yes").out
    assert "below the noise floor" in text and "Noise floor" in text

    runs = (*noisy["runs"], *idle["runs"])
    beside = run("runs", "compare", *runs, "--json").json
    assert beside["floor"] == pytest.approx(found["floor"] * 2**0.5), "single runs are noisier than means of two"


def test_repeats_of_a_backtest_give_the_floor_of_its_lead(service: Models, run: Run) -> None:
    command = ("backtest", *WINDOW, "--model", "near:noisy", "--run", "one", "--repeats", "2", "--yes")
    found = run(*command, "--json").json
    row, (pair,) = found["repeats"], found["pairs"]
    assert (found["run"], row["runs"]) == ("one", ["one", "one-2"]) and found["floor"] > 0
    assert (pair["first"], pair["other"], pair["sessions"]) == ("buy-and-hold", "one", SESSIONS)
    held = [float(one) for one in found["baselines"]["buy-and-hold"]["equity"]]
    own = [run("report", "--run", name, "--json").json["metrics"]["total_return"] for name in row["runs"]]
    assert row["total_return"] == pytest.approx(fmean(own)) and own[1] == 0 != own[0]
    assert pair["below_floor"] is (abs(pair["value"]) <= found["floor"]) and len(held) == SESSIONS
    again = run("runs", "compare", "one", "one-2", "--json").json
    assert again["pairs"][0]["settings"] == [{"setting": "sample", "before": 0, "now": 1}]
    assert again["floor"] == pytest.approx(2 * found["floor"]), "one run beside one; a mean of two beside buy and hold"

    rules = run("backtest", *WINDOW, "--model", "offline", "--without", "news,chart", "--repeats", "3")
    assert rules.code == 0 and "not repeated" in rules.err and "Noise floor by the repeats: 0.0000%" in rules.out
    assert run("backtest", "--light", "--repeats", "2").code == 2


def test_a_budget_is_for_all_runs_and_what_is_done_by_then_is_shown(service: Models, run: Run) -> None:
    command = ("compare", "--models", "near:buyer,near:twin", *WINDOW, "--yes")
    stopped = run(*command, "--budget", "0.05")
    assert stopped.code == 75 and not stopped.out, "no run is done"
    assert "--budget of $0.05 is reached" in stopped.err and "continues" in stopped.err
    begun = len(service.asked)
    assert run("compare", "--models", "near:idle,near:twin", *WINDOW, "--yes").code == 0
    assert begun < len(service.asked)
    stopped = run("compare", "--models", "near:idle,near:buyer", *WINDOW, "--yes", "--budget", "0.02", "--json")
    assert stopped.code == 75 and stopped.json["interrupted"], stopped.err
    assert [row["name"] for row in stopped.json["models"]] == ["near:idle"] and "is reached" in stopped.err
    assert run(*command, "--json").code == 0
    assert {*Counter(service.asked).values()} == {1}


def test_a_model_that_cannot_be_had_does_not_keep_the_others(service: Models, run: Run) -> None:
    command = ("compare", "--models", "near:gone,near:buyer,near:idle", *WINDOW, "--yes")
    stopped = run(*command, "--repeats", "2", "--json")
    assert stopped.code == 78 and "gone" in stopped.err and "continues" in stopped.err, stopped.err
    assert [row["name"] for row in stopped.json["models"]] == ["near:buyer", "near:idle"] and stopped.json["pairs"]
    assert "near:idle beside near:buyer" in run(*command).out


def test_a_second_mask_that_cannot_be_had_leaves_the_first(service: Models, run: Run) -> None:
    stopped = run("backtest", *WINDOW, "--model", "near:later", "--mask", "0,4", "--run", "r", "--yes", "--json")
    assert stopped.code == 75 and "no credit is left" in stopped.err and "--resume r-mask4" in stopped.err
    assert (stopped.json["run"], stopped.json["sessions"], stopped.json["interrupted"]) == ("r-mask0", SESSIONS, False)


def test_what_has_no_data_has_no_forecast(service: Models, run: Run) -> None:
    refused = run("backtest", "--model", "near:buyer", "--symbols", "NOPE", *WINDOW[2:], "--yes")
    assert refused.code == 65 and "Forecast" not in refused.err


def test_a_model_that_says_nothing_usable_is_counted(service: Models, run: Run) -> None:
    found = compared(run, "near:buyer,near:mute", "--abstain-limit", "0")
    buyer, mute = found["models"]
    assert (buyer["abstentions"], mute["abstentions"]) == (0, SESSIONS)
    assert found["pairs"][0]["agreement"] == 0
    stopped = run("compare", "--models", "near:buyer,near:mute", *WINDOW[:-1], "2025-04-03", "--yes")
    assert stopped.code == 75 and "continues" in stopped.err and stopped.err.count("\n") < 20


def test_the_sessions_before_and_after_a_cut_off_stand_apart(
    service: Models, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", service.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    places.config_file().write_text("")
    window = (*WINDOW[:4], "--from", "2024-05-15", "--to", "2024-06-11")
    found = run("compare", "--models", "openai:gpt-5-mini,offline", *window, "--yes", "--json").json
    known, rules = found["models"]
    assert known["training_cutoff"] == "2024-05" and rules["training_cutoff"] is None is rules["before_cutoff"]
    before, after = known["before_cutoff"], known["after_cutoff"]
    assert before["sessions"] == sum(day < "2024-06" for day in known["daily"]) == 12
    assert before["sessions"] + after["sessions"] == known["sessions"]
    assert (1 + before["total_return"]) * (1 + after["total_return"]) == pytest.approx(1 + known["total_return"])
    later, sides = known["past_cutoff"], [part["over_buy_and_hold"]["mean"] for part in (before, after)]
    assert later["value"] == pytest.approx(sides[1] - sides[0])
    assert later["distinguishable"] is None and after["sessions"] < 20, "too few for an interval"

    grid = tmp_path / "grid.toml"
    days = ["03-04", "04-01"], ["05-30", "06-04"], ["06-03", "07-02"], ["06-28", "07-02"]
    windows = json.dumps([[f"2024-{day}" for day in two] for two in days])
    grid.write_text(
        '[study]\npresets = ["finvision-no-reflection"]\nmodels = ["openai:gpt-5-mini"]\n'
        f'symbols = ["ORVL"]\nwindows = {windows}\n'
    )
    study = run("study", str(grid), "--yes", "--json").json
    (row,) = study["cutoffs"]
    assert row["model"] == "openai:gpt-5-mini" and row["training_cutoff"] == "2024-05"
    assert row["before"]["sessions"] == study["rows"][0]["sessions"], "a window across the cut-off is on neither side"
    assert row["after"]["sessions"] == study["rows"][2]["sessions"], "no day counts twice"
    assert row["value"] == pytest.approx(row["after"]["mean"] - row["before"]["mean"])
    assert row["low"] < row["value"] < row["high"]
    assert "after the training cut-off" in run("study", str(grid), "--yes").out


def test_ctrl_c_keeps_the_models_that_are_done(service: Models, run: Run) -> None:
    command = ("compare", "--models", "near:buyer,near:idle", *WINDOW, "--yes", "--json")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study, "interruptible", lambda: nullcontext(lambda: service.decided["idle"] > 2))
        stopped = run(*command, "--sensitivity")
    assert (
        stopped.code == 130
        and "sensitivity" not in stopped.json
        and [row["name"] for row in stopped.json["models"]] == ["near:buyer"]
    )
    assert stopped.json["interrupted"] and stopped.json["pairs"] == []
    whole = run(*command).json
    assert whole["models"][0] == stopped.json["models"][0] and service.decided["idle"] == SESSIONS

    with places.config_file().open("a") as config:
        config.write('[models]\nreplay = "replay-only"\n')
    missing = run("compare", "--models", "near:buyer,near:mute", *WINDOW)
    assert missing.code == 65 and not service.decided["mute"], "recorded answers alone, and there are none"


def test_several_masks_are_arms_of_their_own_and_a_studys_too(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    found = compared(run, "offline", "--mask", "0,4", "--jobs", "2")
    assert [(row["name"], row["mask"]) for row in found["models"]] == [("offline, mask 0", 0), ("offline, mask 4", 4)]
    (pair,) = found["pairs"]
    assert (pair["value"], pair["agreement"], pair["distinguishable"]) == (0, 1, False), "rules recall nothing"
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[study]\npresets = ["finvision-no-reflection"]\nstrategies = ["macd"]\nmodels = ["offline"]\nmasks = [0, 4]\n'
        'symbols = ["ORVL"]\nwindows = [["2025-03-03", "2025-04-02"]]\n'
    )
    study = run("study", str(grid), "--json").json
    assert [row["mask"] for row in study["rows"]] == [None, 0, 4]
    assert [(one["first"]["mask"], one["other"]["mask"]) for one in study["pairs"]] == [(None, 0), (None, 4), (0, 4)]
    assert "(offline), mask 4" in run("study", str(grid)).out


BOOKS = """
extends = "finvision-no-reflection"
name = "duel"
combine = "books"
[owners.bull]
model = "near:buyer"
[owners.bear]
model = "near:idle"
"""


def test_the_books_of_a_desk_are_shown_by_the_same_page(service: Models, run: Run) -> None:
    preset = places.config_file().with_name("duel.toml")
    preset.write_text(BOOKS)
    config = places.config_file().read_text()
    own = config.partition("[models.agents.news]")[0] + "[endpoints" + config.partition("[endpoints")[2]
    places.config_file().write_text(f'[desk]\npreset = "{preset}"\nsymbols = ["ORVL"]\n{own}')
    for day in ("2025-03-11", "2025-03-12", "2025-03-13"):
        done = run("--daily", "--session", day, "--json")
        assert done.code == 0, done.err
    models = Counter(model for model, _ in service.asked)
    assert models.keys() == {"buyer", "idle"} and models["buyer"] == models["idle"]

    found = run("compare", "--json").json
    rows = {row["name"]: row for row in found["models"]}
    assert {name: row["model"] for name, row in rows.items()} == {"bull": "near:buyer", "bear": "near:idle"}
    assert rows["bull"]["calls"] == models["buyer"] and Decimal(rows["bull"]["cost"]) > 0
    assert rows["bear"]["cost"] is None, "its price is unknown"
    (pair,) = found["pairs"]
    assert (pair["first"], pair["other"], pair["agreement"], pair["compared"]) == ("bull", "bear", 0, 3)
    text = run("compare").out
    assert "bull" in text and "bear beside bull" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--models", "offline"), "two models or more"),
        (("--models", "offline,opnai:gpt-5.4-mini"), "did you mean openai:gpt-5.4-mini"),
        (("--models", "near:a,near:b,near:a"), "twice"),
        (("--models", "offline,replay"), "no model"),
        (("--symbols", "ORVL"), "--models"),
        (("--repeats", "2"), "--models"),
        (("--models", "offline,near:a", "--from", "2025-03-04", "--to", "2025-03-03"), "is after"),
        (("--models", "offline,near:a", "--run", "x"), "--run"),
    ],
)
def test_what_cannot_be_compared_is_one_line(service: Models, run: Run, arguments: tuple[str, ...], said: str) -> None:
    refused = run("compare", *arguments)
    assert refused.code == 2 and said in refused.err and refused.err.count("\n") == 1
    assert not service.asked and not places.runs_dir().exists()


def test_a_desk_with_one_book_has_nothing_to_compare(run: Run, desk: Path) -> None:
    refused = run("compare")
    assert refused.code == 2 and "one book" in refused.err
