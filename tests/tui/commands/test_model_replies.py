"""Replies that are no answers, prompts that are cut, and models that never decide: in every command that asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import gate
from connectors.llm.pricing import load_prices
from engine.app.bench import bench as bench_module
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.servers.fake_llm_server import Raw, Say, Turn, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_bench_resume import TABLES, write_folder
from tests.tui.commands.test_model_outages import BACKTEST, DAY, RUN, SYMBOLS, Service

COMMANDS = {
    "backtest": (*BACKTEST, "--run", RUN, "--yes"),
    "daily": DAY,
    "watch": ("--watch", "--json"),
    "arena": ("arena", "--agents", "table.toml", "--days", "3", "--run", RUN, "--json", "--yes"),
    "bench": ("bench", "finvision", "--symbols", "AMZN", "--data", "data", "--yes", "--json"),
}
TABLE = """
[[agents]]
name = "Ann"

[[agents]]
name = "Maker"
rule = "market-maker"
"""
PAGE = Raw(b"<html><title>Sign in to the network</title></html>", "text/html")
BAD_KEY = [{"error": {"code": 400, "message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}]
QUOTA = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}
REPLIES: dict[str, tuple[Turn, int, str]] = {
    "page": (PAGE, 78, "Sign in to the network at http://127.0.0.1:"),
    "key in a list": (Raw(json.dumps(BAD_KEY).encode(), status=400), 77, "API key not valid."),
    "quota with 200": (Raw(json.dumps(QUOTA).encode()), 75, "You exceeded your current quota"),
    "no choices": (Raw(b'{"choices": null, "content": null}'), 75, "an object that is no model's answer"),
}


class Answering(Service):
    """Says what the questions want, unless it only ever `says` something else; `cut` counts a part of what was sent."""

    says = ""
    cut = False

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        if not self.says or is_preflight(body):
            return super().next_turn(body, headers)
        self.requests.append(body)
        sent = len(json.dumps([body.get("system"), body["messages"]])) // 4
        return Say(text=self.says, tokens_in=min(sent, 300) if self.cut else None)


@pytest.fixture(params=["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
def service(
    request: pytest.FixtureRequest, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Answering]:
    monkeypatch.setattr(gate, "PACE", 0.001)
    monkeypatch.setattr(bench_module, "published", TABLES)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.toml").write_text(TABLE)
    write_folder(tmp_path / "data")
    with fake_llm_server(Answering()) as running:
        assert isinstance(running, Answering)
        running.vendor = str(request.param)
        configure(running)
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv(f"{running.vendor.upper()}_API_KEY", "sk-secret-1")
        yield running


def configure(service: Answering, model: str = "m1", more: str = "") -> None:
    places.config_file().write_text(
        f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n{more}'
        f'[models]\ndefault = "{service.vendor}:{model}"\n'
        + "".join(f'[models.prices."{service.vendor}:{one}"]\ninput = 2\noutput = 10\n' for one in ("m1", "m2"))
    )


SAMPLE = {
    ("openai", "backtest", "page"),
    ("openai", "daily", "key in a list"),
    ("openai", "arena", "quota with 200"),
    ("openai", "bench", "page"),
    ("anthropic", "daily", "key in a list"),
}
CASES = [
    pytest.param(vendor, command, reply, marks=() if (vendor, command, reply) in SAMPLE else pytest.mark.slow)
    for vendor in ("openai", "anthropic")
    for command in COMMANDS
    for reply in REPLIES
    if (command, REPLIES[reply][1]) != ("watch", 75)  # it tries again, for as long as it is on
]


@pytest.mark.parametrize(("service", "command", "reply"), CASES, indirect=["service"])
def test_a_reply_that_is_no_answer_ends_every_command_before_the_first_question(
    service: Answering, run: Run, command: str, reply: str
) -> None:
    turn, code, says = REPLIES[reply]
    service.plays_preflight, service.trouble = True, lambda number: turn
    failed = run(*COMMANDS[command])
    assert failed.code == code and says in failed.err, failed.err
    assert all(map(is_preflight, service.requests))


@pytest.mark.parametrize("command", ["backtest", *(pytest.param(c, marks=pytest.mark.slow) for c in [*COMMANDS][1:])])
def test_a_prompt_that_is_cut_ends_every_command_and_is_paid(service: Answering, run: Run, command: str) -> None:
    service.cut, service.says = True, PROSE
    failed = run(*COMMANDS[command])
    assert failed.code == 78 and "the service counted 300 tokens of a prompt of about " in failed.err
    assert "--ctx-size" in failed.err
    if command == "backtest":
        with JournalReader(places.run_journal(RUN)) as reader:
            assert reader.decisions() == ()
            paid = [call for call in reader.calls() if call.kind == "not configured"]
            assert paid and all(call.cost is not None and call.cost > 0 for call in paid)


PROSE = "I would rather buy a little, if you ask me."


def test_a_backtest_without_a_usable_decision_stops_and_asks_anew_when_it_goes_on(service: Answering, run: Run) -> None:
    service.trouble = lambda number: Say(text=PROSE) if number > 6 else None
    stopped = run(*COMMANDS["backtest"])
    assert stopped.code == 75 and "no usable decision in 2 sessions in a row" in stopped.err
    assert f"{service.vendor}:m1: malformed: the answer is prose" in stopped.err and f"--resume {RUN}" in stopped.err
    with JournalReader(places.run_journal(RUN)) as reader:
        made = reader.decisions()
        assert [one.abstained for one in made] == [False] * 2 + [True] * 4
        before = sum((call.cost or Decimal(0) for call in reader.calls()), Decimal(0))
    asked = [json.dumps(body, sort_keys=True) for body in service.requests]

    service.trouble = lambda number: None
    service.requests.clear()
    done = run("backtest", "--resume", RUN, "--json")
    assert done.code == 0, done.err
    assert not any(one["abstained"] for one in done.json["decisions"]) and done.json["sessions"] == 3
    again = [json.dumps(body, sort_keys=True) for body in service.requests]
    assert not set(asked[:6]) & set(again) and set(asked[6:]) & set(again)
    # What was asked in vain stays paid.
    assert Decimal(done.json["model"]["cost"]) > before
    assert done.json["model"]["failed_calls"] > 0


def test_it_goes_on_by_another_model_or_without_a_limit(service: Answering, run: Run) -> None:
    service.says = '{"word": "ready"}'
    assert run(*COMMANDS["backtest"]).code == 75
    other = run("backtest", "--resume", RUN, "--model", f"{service.vendor}:m2", "--json")
    assert other.code == 75 and f"{service.vendor}:m2" in other.err
    regardless = run(*BACKTEST, "--run", "regardless", "--yes", "--abstain-limit", "0")
    assert regardless.code == 0 and len(regardless.json["decisions"]) == 6
    assert regardless.json["model"]["abstentions"] > 6
    assert run(*BACKTEST, "--run", "one", "--yes", "--abstain-limit", "1").code == 75
    service.says = ""
    done = run("backtest", "--resume", RUN, "--model", f"{service.vendor}:m2", "--json")
    assert done.code == 0 and not any(one["abstained"] for one in done.json["decisions"])


@pytest.mark.parametrize("command", ["arena", pytest.param("bench", marks=pytest.mark.slow)])
def test_an_arena_and_a_bench_stop_and_ask_anew_too(service: Answering, run: Run, command: str) -> None:
    service.says = PROSE
    stopped = run(*COMMANDS[command])
    assert stopped.code == 75 and "no usable decision in 2 sessions in a row" in stopped.err, stopped.err
    asked = len(service.requests)
    again = stopped.err.partition("--resume ")[2].split("`")[0].split()[0]
    resume = (*COMMANDS[command][: 1 if command == "arena" else 2], "--resume", again, "--yes", "--json")
    assert run(*resume).code == 75
    assert len(service.requests) >= 2 * asked, "asked anew"
    regardless = run(*resume, "--abstain-limit", "0")
    assert regardless.code == 0, regardless.err


def test_a_daily_run_notes_it_from_the_first_day_and_notifies(service: Answering, run: Run, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    configure(service, more=f'[notify]\ncommand = ["sh", "-c", "cat >> {told}; echo >> {told}"]\n')
    service.says = PROSE
    done = run(*DAY)
    assert (done.code, done.json["outcome"]) == (0, "done")
    assert all(one["abstained"] for one in done.json["decisions"])
    assert any("no usable decision after 2025-03-11" in note["text"] for note in done.json["notes"])
    assert "no usable decision" in done.err
    (notified,) = [json.loads(line) for line in told.read_text().splitlines() if line]
    assert notified["exit_code"] == 0 and "no usable decision" in notified["error"]
    asked = len(service.requests)
    assert run(*DAY).json["outcome"] == "nothing to do" and len(service.requests) == asked


def test_a_model_that_answers_prose_fails_the_checks(service: Answering, run: Run) -> None:
    service.plays_preflight = True
    for says in (PROSE, '{"answer": "ready"}'):
        service.trouble = partial(lambda text, number: Say(text=text), says)
        checked = run("models", "--check", "--json")
        assert checked.code == 1
        assert [one["answered"] for one in checked.json["check"].values()] == [False]
        doctor = run("doctor", "--connect", "--json").json["checks"]
        assert [one["state"] for one in doctor if one["area"] == "Services"] == ["fail"]
    service.trouble = lambda number: Say(text='{"word": "ready", "symbol": "QZXW"}')
    assert run("models", "--check", "--json").code == 0


def test_what_is_not_known_of_a_model_is_said(service: Answering, run: Run) -> None:
    url = f"{service.vendor.upper()}_BASE_URL"
    listed = run("models").out
    assert "unknown" in listed and f"({url})" in listed
    rows = listed.partition("PRICE IN/OUT")[2].partition("is asked at")[0].splitlines()[1:-1]
    assert [row.split()[0] for row in rows] == ["news", "chart", "decision"], "what the preset does not ask is left out"
    agents = run("models", "--json").json["agents"]
    assert {name for name, one in agents.items() if one["active"]} == {"news", "chart", "decision"}
    assert url in run("models", "--json").json["addresses"][service.vendor]
    # What nobody has asked yet is configured, no more.
    for connect, words in (((), "configured for every agent, at "), (("--connect",), "answers every agent, at ")):
        service.trouble = lambda number: Say(text='{"word": "ready"}')
        checks = run("doctor", *connect, "--json").json["checks"]
        (said,) = [one["detail"] for one in checks if one["area"] == "Models" and one["name"].endswith(":m1")]
        assert said.startswith(words) and said.endswith(f"({url})")
    service.trouble = lambda number: None
    text = run(*BACKTEST[:-1], "--run", RUN, "--yes").out
    assert "training cut-off unknown" in " ".join(text.split())
    model = run("report", "--run", RUN, "--format", "json").json["model"]
    assert (model["training_cutoff"], model["prices_as_of"]) == ("unknown", None)
    assert "training cut-off unknown" in " ".join(run(*DAY[:-1]).out.split())
    assert "training cut-off unknown" in " ".join(run("report", "--session", "2025-03-11").out.split())


def test_prices_of_the_table_carry_its_date(service: Answering, run: Run) -> None:
    known = {"openai": "gpt-4", "anthropic": "claude-opus-5"}[service.vendor]
    configure(service, known)
    done = run(*COMMANDS["backtest"]).json["model"]
    as_of = str(load_prices().as_of)
    assert done["prices_as_of"] == as_of and done["training_cutoff"].startswith("202")
    assert f"prices of {as_of}" in " ".join(run("report", "--run", RUN).out.split())
