"""An outage is no decision: backtests, daily runs and watches whose model cannot be had, at both vendors."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import gate
from connectors.wiring.services import services
from engine.app.desk import watch as desk_watch
from engine.execution.controls import pause
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed, RunFinished
from engine.settings import places
from engine.settings.config import load_config
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Hang, Reset, Say, Turn, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run

SYMBOLS = ("ORVL", "BXWD")
AGENTS = ("news", "chart", "decision")
RUN = "outage"
BACKTEST = ("backtest", "--symbols", ",".join(SYMBOLS), "--from", "2025-03-11", "--to", "2025-03-13", "--json")
DAY = ("--daily", "--session", "2025-03-11", "--json")


def shows_picture(body: dict[str, Any]) -> bool:
    return "image" in json.dumps(body["messages"])


class Service(FakeLLMServer):
    """Answers every question; `trouble` may reply to one in place of that, given the question's number from 1."""

    trouble: Callable[[int], Turn | None] = staticmethod(lambda number: None)
    sees = True
    vendor = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.times: list[float] = []

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        with self._lock:
            self.requests.append(body)
            self.times.append(time.monotonic())
            number = len(self.requests)
        if not self.sees and shows_picture(body):
            return Fail(400, "image input is not supported")
        return self.trouble(number) or Say(text=json.dumps(_answer(body)))


ANSWERS: dict[str, dict[str, Any]] = {
    "sentiment": {
        "summary": ["There is little news."],
        "positive": [],
        "negative": [],
        "sentiment": "neutral",
        "reason": "There is little news.",
        "unrelated": 0,
    },
    "bollinger": {
        "macd": {"trend": "up", "signal": "buy"},
        "kdj_rsi": {"trend": "up", "signal": "none"},
        "bollinger": None,
    },
    "position_size": {
        "recommendation": "BUY",
        "position_size": 5,
        "rule": "strong uptrend",
        "explanation": "Because.",
    },
}
"""An answer by the field that its schema alone has."""


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    """A good answer to a request of either vendor."""
    schema = json.dumps(body.get("response_format") or body.get("output_config"))
    if is_preflight(body):
        return {"word": "ready"}
    answer = next(answer for field, answer in ANSWERS.items() if f'"{field}"' in schema)
    if "recommendation" not in answer:
        return answer
    asked = json.dumps(body["messages"])
    return {"symbol": next(symbol for symbol in SYMBOLS if symbol in asked)} | answer


VENDORS = ("openai", "anthropic")


def in_turn(cases: Mapping[str, tuple[Any, ...]], sample: Collection[str]) -> list[Any]:
    """Every case at both vendors. All are slow but the sample, each case of it at one vendor, the vendors in turn. What
    a vendor's errors mean is tested beside its connector."""
    soon = {(name, VENDORS[number % 2]) for number, name in enumerate(sample)}
    return [
        pytest.param(vendor, *values, id=f"{vendor}-{name}", marks=() if (name, vendor) in soon else pytest.mark.slow)
        for name, values in cases.items()
        for vendor in VENDORS
    ]


@pytest.fixture(params=("openai", pytest.param("anthropic", marks=pytest.mark.slow)))
def service(request: pytest.FixtureRequest, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A vendor's service on loopback, whose model answers the desk; retries follow without waiting."""
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Service()) as running:
        vendor = str(request.param)
        assert isinstance(running, Service)
        running.vendor = vendor
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.anthropic_url)
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "sk-secret-1")
        places.config_file().write_text(
            f'[desk]\npreset = "finvision-no-reflection"\nsymbols = {json.dumps(SYMBOLS)}\n'
            f'[models]\ndefault = "{vendor}:m1"\n'
        )
        yield running


OUTAGES = {
    "model not found": (Fail(404, "no such model: m1"), 78, "not configured: no such model: m1 (HTTP 404)"),
    "too long": (Fail(400, "prompt is too long: 300000 tokens"), 78, "too long: prompt is too long: 300000 tokens"),
    "refused key": (Fail(401, "bad key"), 77, "the key was refused (HTTP 401)"),
    "rate limited": (Fail(429, "slow down", "rate_limit_error"), 75, "rate limited: slow down (HTTP 429)"),
    "told to wait": (Fail(429, "slow down", headers=(("retry-after", "3600"),)), 75, "asked to wait 3600 s"),
    "quota": (Fail(429, "check your plan", "insufficient_quota"), 75, "no credit: the account of "),
    "payment": (Fail(402, "payment required"), 75, "no credit: the account of "),
    "broken": (Fail(500, "boom"), 75, "unavailable: boom (HTTP 500)"),
    "overloaded": (Fail(529, "overloaded"), 75, "unavailable: overloaded (HTTP 529)"),
    "gateway": (Fail(504, "gateway"), 75, "timed out: "),
    "hang": (Hang(), 75, "timed out: no answer within 1 s"),
    "reset": (Reset(), 75, "unavailable: "),
    "stream cut": (Say(text="{}", ending="missing"), 75, "unavailable: the reply ended without a stop reason"),
}


@contextmanager
def calls_that_end(seconds: int) -> Iterator[None]:
    """Let the calls of every agent end after `seconds`, within the block alone: a loaded machine needs longer."""
    file = places.config_file()
    before = file.read_text()
    file.write_text(before + "".join(f"[models.agents.{name}]\ntimeout = {seconds}\n" for name in AGENTS))
    yield
    file.write_text(before)


@pytest.mark.parametrize(
    ("service", "turn", "code", "says"),
    in_turn(OUTAGES, ("model not found", "refused key", "hang", "rate limited")),
    indirect=["service"],
)
def test_a_daily_run_without_its_model_decides_nothing_and_the_next_one_does(
    service: Service, run: Run, turn: Turn, code: int, says: str
) -> None:
    service.trouble = lambda number: turn if number > 3 else None
    with calls_that_end(1 if isinstance(turn, Hang) else 60):
        failed = run(*DAY)
    assert (failed.code, failed.result) == (code, "")
    assert says in failed.err and failed.err.count("\n") == 1
    with JournalReader(places.desk_journal("demo")) as reader:
        (entry,) = reader.runs()
        assert (entry.outcome, reader.decisions(), reader.orders()) == ("failed", (), ())
    had = [json.dumps(body, sort_keys=True) for body in service.requests[:3]]

    service.trouble = lambda number: None
    service.requests.clear()
    done = run(*DAY)
    assert (done.code, done.json["outcome"]) == (0, "done")
    assert [row["symbol"] for row in done.json["decisions"]] == list(SYMBOLS)
    # What was answered is not paid for again.
    assert not {json.dumps(body, sort_keys=True) for body in service.requests} & set(had)
    assert run(*DAY).json["outcome"] == "nothing to do"


def test_what_was_answered_before_a_pause_is_not_paid_for_again_and_a_passed_session_is_skipped(
    service: Service, run: Run
) -> None:
    def pausing(number: int) -> Turn | None:
        if number == 3:
            pause(places.desk_journal("demo"), datetime(2025, 3, 12, tzinfo=UTC))
        return None

    service.trouble = pausing
    paused = run(*DAY)
    assert (paused.code, paused.json["outcome"], paused.json["decisions"]) == (0, "paused", [])
    had = [json.dumps(body, sort_keys=True) for body in service.requests]
    assert len(had) >= 3
    assert run(*DAY).json["outcome"] == "paused" and len(service.requests) == len(had)
    service.trouble = lambda number: None
    run("resume")
    done = run(*DAY)
    assert (done.code, done.json["outcome"], len(done.json["decisions"])) == (0, "done", len(SYMBOLS))
    asked = [json.dumps(body, sort_keys=True) for body in service.requests]
    assert len(set(asked)) == len(asked) > len(had)

    run("pause")
    assert run("--daily", "--session", "2025-03-12", "--json").json["outcome"] == "paused"
    run("resume")
    assert run("--daily", "--session", "2025-03-13", "--json").json["skipped"] == ["2025-03-12"]


BACKTEST_OUTAGES = ("model not found", "refused key", "told to wait", "quota", "broken", "hang")


@pytest.mark.parametrize(
    ("service", "turn", "code", "says"),
    in_turn({name: OUTAGES[name] for name in BACKTEST_OUTAGES}, ("broken",)),
    indirect=["service"],
)
def test_a_backtest_without_its_model_stops_and_goes_on_when_it_is_called_again(
    service: Service, run: Run, turn: Turn, code: int, says: str
) -> None:
    service.trouble = lambda number: turn if number > 8 else None
    with calls_that_end(1 if isinstance(turn, Hang) else 60):
        failed = run(*BACKTEST, "--run", RUN)
    assert (failed.code, failed.result) == (code, "")
    assert says in failed.err
    with JournalReader(places.run_journal(RUN)) as reader:
        (entry,) = reader.runs()
        assert entry.outcome == "failed" and says in entry.detail
        sessions = {made.key.session for made in reader.decisions()}
        assert len(reader.decisions()) == len(SYMBOLS) * len(sessions)
        assert not any(made.opinion.abstained for made in reader.decisions())

    service.trouble = lambda number: None
    asked = len(service.requests)
    done = run(*BACKTEST, "--run", f"{RUN}-2")
    assert done.code == 0
    assert done.json["model"]["abstentions"] == 0
    assert done.json["model"]["cached_calls"] > 0
    assert len(service.requests) - asked == done.json["model"]["calls"] - done.json["model"]["cached_calls"]


MISSING = {
    "404-daily": (404, 78, DAY),
    "404-backtest": (404, 78, BACKTEST),
    "403-backtest": (403, 77, BACKTEST),
    "403-daily": (403, 77, DAY),
    "529-daily": (529, 75, DAY),
    "529-backtest": (529, 75, BACKTEST),
}


@pytest.mark.parametrize(
    ("service", "status", "code", "day"), in_turn(MISSING, ("404-backtest", "529-daily")), indirect=["service"]
)
def test_a_model_that_is_not_there_is_found_before_the_first_question(
    service: Service, run: Run, status: int, code: int, day: tuple[str, ...]
) -> None:
    service.plays_preflight, service.trouble = True, lambda number: Fail(status, "no such model: m1")
    failed = run(*day)
    assert (failed.code, failed.result) == (code, "")
    assert all(map(is_preflight, service.requests))
    assert len(service.requests) == (5 if code == 75 else 1)
    service.trouble = lambda number: None
    service.requests.clear()
    used = run(*day).json["model"]
    # News and chart share their settings, the chart has a picture, and the decision settings of its own.
    assert used["preflight_calls"] == sum(map(is_preflight, service.requests)) == 3
    assert len(service.requests) == 3 + used["calls"]


def test_what_the_preflight_answers_is_kept_and_nobody_is_asked_where_nothing_is_due(
    service: Service, run: Run
) -> None:
    service.plays_preflight, service.trouble = True, lambda number: Say(text="prose") if number <= 3 else None
    done = run(*DAY)
    assert done.code == 0
    assert [is_preflight(body) for body in service.requests[:4]] == [True, True, True, False]
    asked = len(service.requests)
    with JournalReader(places.desk_journal("demo")) as reader:
        rows = reader.unanswered(run=done.json["run"])
        assert [(row.call.kind, row.call.detail) for row in rows] == [("preflight", "malformed")] * 3
        tokens = sum(a.result.usage.input_tokens for made in reader.decisions() for a in reader.answers(made.key))
    assert done.json["model"]["input_tokens"] == tokens + sum(row.call.input_tokens for row in rows) > tokens
    assert "preflight for news" in run("why", rows[0].key.symbol, "2025-03-11", "--full").out
    assert run(*DAY).json["outcome"] == "nothing to do"
    assert len(service.requests) == asked
    assert run("--daily", "--session", "2025-03-12", "--json").json["model"]["preflight_calls"] == 0
    assert run(*BACKTEST).json["model"]["preflight_calls"] == 0


def test_a_setting_of_the_users_own_that_a_model_refuses_is_found_in_the_preflight(service: Service, run: Run) -> None:
    with places.config_file().open("a") as file:
        file.write("[models.agents.decision]\ntemperature = 0.5\n")
    refusal = Fail(400, "temperature is not supported", param="temperature")
    service.plays_preflight = True
    service.trouble = lambda number: refusal if "temperature" in service.requests[number - 1] else None
    failed = run(*DAY)
    assert failed.code == 78
    assert "takes no temperature (0.5 is set)" in failed.err
    assert all(map(is_preflight, service.requests))


def test_a_picture_that_a_model_refuses_in_the_preflight_is_figures_from_the_first_question_on(
    service: Service, run: Run
) -> None:
    service.plays_preflight = True
    service.sees = False
    done = run(*DAY)
    assert done.code == 0
    pictures = [is_preflight(body) for body in service.requests if shows_picture(body)]
    assert pictures == [True]


STOPPING = {"75": (529, 75), "78": (404, 78), "77": (401, 77)}


@pytest.mark.parametrize(("service", "status", "code"), in_turn(STOPPING, ("75",)), indirect=["service"])
def test_a_stopped_backtest_goes_on_and_is_as_one_that_never_stopped(
    service: Service, run: Run, status: int, code: int
) -> None:
    with places.config_file().open("a") as file:
        file.write(
            '[models.prices]\n"openai:m1" = {input = 2, output = 10}\n"anthropic:m1" = {input = 2, output = 10}\n'
        )
    whole = run(*BACKTEST, "--run", "whole").json
    asked = len(service.requests)
    assert whole["model"]["calls"] == asked
    places.replay_cache().unlink()

    failure = Fail(status, "no")
    service.trouble = lambda number: failure if number > asked + 8 else None
    stopped = run(*BACKTEST, "--run", RUN)
    assert stopped.code == code
    assert f"`paperdesk backtest --resume {RUN}` continues" in stopped.err
    with JournalReader(places.run_journal(RUN)) as reader:
        failed = sum(row.call.kind != "preflight" for row in reader.unanswered())
        had = len(reader.answers(run=RUN))
        started = reader.run(RUN).started
    assert 0 < had < whole["model"]["calls"] and (failed > 0 or code == 77)
    # What was answered is not asked again, even where the recorded answers are gone.
    places.replay_cache().unlink()
    service.trouble = lambda number: None
    service.requests.clear()
    done = run("backtest", "--resume", RUN, "--json")
    assert done.code == 0
    assert done.json["fingerprint"] == whole["fingerprint"]
    assert len(service.requests) == whole["model"]["calls"] - had
    used, expected = done.json["model"], whole["model"]
    assert (used["calls"], used["cached_calls"]) == (expected["calls"], 0)
    more = Decimal("0.00004") * (used["preflight_calls"] - expected["preflight_calls"])
    assert Decimal(used["cost"]) == Decimal(expected["cost"]) + more > 0
    assert used["failed_calls"] == failed
    with JournalReader(places.run_journal(RUN)) as reader, JournalReader(places.run_journal("whole")) as other:
        assert reader.run(RUN).started == started and reader.run(RUN).outcome == "done"
        assert reader.counts(RUN)["answers"] == other.counts("whole")["answers"]
    assert run("journal", "check", "--run", RUN).code == 0
    again = run("backtest", "--resume", RUN)
    assert (again.code, "is finished" in again.err) == (2, True)
    assert run("backtest", "--resume", RUN, "--symbols", "ORVL").code == 2
    assert run("backtest", "--resume", "nobody").code == 65


def test_a_run_that_goes_on_by_another_model_names_both(service: Service, run: Run) -> None:
    service.trouble = lambda number: Fail(529, "overloaded") if number > 8 else None
    assert run(*BACKTEST, "--run", RUN).code == 75
    service.trouble = lambda number: None
    service.requests.clear()
    done = run("backtest", "--resume", RUN, "--model", "offline", "--json").json
    assert service.requests == []
    vendor = service.vendor
    assert done["model"]["spec"] == f"{vendor}:m1, offline"
    assert done["label"].startswith(f"m1 ({vendor}), then ")


def test_a_question_that_is_too_long_is_shortened_once_and_the_trail_says_so(service: Service, run: Run) -> None:
    first: dict[str, str] = {}

    def trouble(number: int) -> Turn | None:
        body = service.requests[number - 1]
        text, schema = (
            json.dumps(body["messages"]),
            json.dumps([body.get("response_format"), body.get("output_config")]),
        )
        if '"position_size"' not in schema:
            return None
        asked = re.search(r"Asset: (\w+)\..*Date: ([0-9-]+)", text)
        assert asked is not None
        whole = first.setdefault(asked[1] + asked[2], text)
        return Fail(400, "prompt is too long: 300000 tokens") if whole == text else None

    service.trouble = trouble
    assert run(*DAY).code == 0
    with JournalReader(places.desk_journal("demo")) as reader:
        for made in reader.decisions():
            (decided,) = [answer for answer in reader.answers(made.key) if answer.agent == "decision"]
            assert decided.result.notes and decided.result.notes[0].startswith("quoted texts shortened from about ")
            lengths = re.findall(r"[0-9,]+ to [0-9,]+ tokens", decided.result.notes[0])[0].split()
            assert int(lengths[0].replace(",", "")) > int(lengths[2].replace(",", ""))
            failed = [row.call.kind for row in reader.unanswered(made.key) if row.call.kind != "preflight"]
            assert failed == ["too long"]
    assert "quoted texts shortened from about" in run("why", "ORVL", "2025-03-11", "--full").out
    first.clear()
    live = run(*BACKTEST).json
    asked = len(service.requests)
    assert run(*BACKTEST, "--model", "replay").json["fingerprint"] == live["fingerprint"]
    assert len(service.requests) == asked


def test_a_question_that_is_too_long_even_when_shortened_names_agent_and_tokens(service: Service, run: Run) -> None:
    service.trouble = lambda number: OUTAGES["too long"][0]
    failed = run(*DAY)
    assert failed.code == 78
    assert re.search(r"asked by \w+ about", failed.err)  # news and chart are asked beside each other
    assert "300000 tokens (HTTP 400); about " in failed.err
    assert "tokens after its quoted texts were shortened" in failed.err


def test_no_order_is_made_until_every_symbol_has_an_answer_and_a_session_is_due_until_the_next_has_closed(
    service: Service, run: Run
) -> None:
    other_is_asked = threading.Event()

    def trouble(number: int) -> Turn | None:
        body = service.requests[number - 1]
        if '"position_size"' not in json.dumps([body.get("response_format"), body.get("output_config")]):
            return None
        if "BXWD" not in json.dumps(body["messages"]):
            other_is_asked.set()
            return None
        assert other_is_asked.wait(600)
        return Fail(529, "overloaded")

    service.trouble = trouble
    assert run(*DAY).code == 75
    with JournalReader(places.desk_journal("demo")) as reader:
        (entry,) = reader.runs()
        answered = {(answer.key.symbol, answer.agent) for answer in reader.answers(run=entry.id)}
        assert {("ORVL", "decision"), ("BXWD", "chart")} <= answered and ("BXWD", "decision") not in answered
        assert (entry.outcome, reader.decisions(), reader.orders()) == ("failed", (), ())
    assert run(*DAY).code == 75
    service.trouble = lambda number: None
    # Once the next session has closed, the one that nothing was decided for is skipped.
    later = run("--daily", "--session", "2025-03-12", "--json")
    assert (later.code, later.json["skipped"]) == (0, ["2025-03-11"])
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {str(made.key.session) for made in reader.decisions()} == {"2025-03-12"}
        assert {str(order.order.session) for order in reader.orders()} == {"2025-03-12"}


TROUBLE = (Fail(500, "boom"), Reset(), Say(text="{}", ending="missing"), Fail(529, "overloaded"))


def test_a_short_outage_is_got_over(service: Service, run: Run) -> None:
    service.trouble = lambda number: TROUBLE[number // 3 % len(TROUBLE)] if number % 3 == 0 else None
    done = run(*DAY)
    assert (done.code, done.err) == (0, "")
    with JournalReader(places.desk_journal("demo")) as reader:
        made = reader.decisions()
        assert {answer.outcome for one in made for answer in reader.answers(one.key)} == {"answered"}
    assert len(service.requests) > done.json["model"]["calls"]


def test_calls_that_failed_are_rows_that_why_shows_and_cut_streams_are_counted_as_estimates(
    service: Service, run: Run
) -> None:
    cut = Say(text="half of an answer", ending="missing")
    service.trouble = lambda number: {1: Fail(500, "boom"), 3: cut}.get(number)
    done = run(*DAY)
    assert done.code == 0
    with JournalReader(places.desk_journal("demo")) as reader:
        preflight, rows = [], []
        for row in reader.unanswered(run=done.json["run"]):
            (preflight if row.call.kind == "preflight" else rows).append(row)
        assert {(row.call.kind, row.call.detail) for row in rows if not row.call.estimated} == {
            ("unavailable", "boom (HTTP 500)")
        }
        (estimated,) = [row for row in rows if row.call.estimated]
        answers = [answer for made in reader.decisions() for answer in reader.answers(made.key)]
        costs = [call.cost for call in reader.calls()]
    assert estimated.agent in AGENTS and estimated.call.detail == "the reply ended without a stop reason"
    assert estimated.call.input_tokens > 100 and estimated.call.output_tokens == len(cut.text) // 4
    used = done.json["model"]
    assert (used["failed_calls"], used["estimated_calls"]) == (2, 1)
    assert used["calls"] == len(answers) and used["cost"] is None and None in costs
    counted = [answer.result.usage for answer in answers] + [row.call for row in (*preflight, estimated)]
    assert used["input_tokens"] == sum(one.input_tokens for one in counted)
    shown = run("why", estimated.key.symbol, "2025-03-11", "--full")
    assert f"{estimated.agent}: {estimated.call.model}, call {estimated.call.attempt} failed" in shown.out
    (trail,) = run("why", estimated.key.symbol, "2025-03-11", "--json").json["decisions"]
    assert [row["estimated"] for row in trail["unanswered"] if row["estimated"]] == [True]
    report = " ".join(run("report", "--session", "2025-03-11").out.split())
    assert "2 more failed (1 of them estimated in tokens and cost)" in report


def test_a_retry_after_slows_every_caller(service: Service, run: Run) -> None:
    first = Fail(429, "slow down", headers=(("retry-after", "0.6"),))
    service.trouble = lambda number: first if number == 1 else None
    assert run(*DAY).code == 0
    # Questions of the same moment were under way already, as many as an endpoint is asked at once.
    began, *others = service.times
    assert sum(moment - began < 0.5 for moment in others) < 4 <= len(others)


def test_after_five_equal_failures_nothing_more_is_asked(service: Service, run: Run) -> None:
    service.trouble = lambda number: Fail(500, "boom")
    failed = run(*DAY)
    assert failed.code == 75
    assert "5 times in a row, nothing more is asked" in failed.err
    assert 5 <= len(service.requests) < 5 + 4, "none but those under way, as many as an endpoint is asked at once"


@pytest.mark.slow
async def test_a_watch_says_the_code_and_decides_when_the_model_is_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_watch, "RETRY", timedelta(milliseconds=50))
    service.trouble = lambda number: Fail(500, "boom")
    heard: list[Event] = []

    def hear(event: Event) -> None:
        heard.append(event)
        if isinstance(event, Noticed) and event.level == "error":
            service.trouble = lambda number: None
        if isinstance(event, RunFinished) and event.outcome == "done":
            watching.cancel()

    configured = services(load_config(places.config_file()).config)
    watching = asyncio.create_task(desk_watch.DeskWatch(configured, hear).run())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(watching, 600)
    gc.collect(1)  # a connection that is not closed is an error of this test
    (error,) = [one.text for one in heard if isinstance(one, Noticed) and one.level == "error"]
    assert "unavailable: boom (HTTP 500)" in error and error.endswith("(code 75)")
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {made.key.symbol for made in reader.decisions()} == set(SYMBOLS)
        assert not any(made.opinion.abstained for made in reader.decisions())


@pytest.mark.parametrize(("status", "code"), [(404, 78), (401, 77)])
def test_a_watch_ends_where_only_a_person_can_mend_the_model(
    service: Service, run: Run, status: int, code: int
) -> None:
    service.trouble = lambda number: Fail(status, "no")
    assert run("--watch", "--json").code == code
