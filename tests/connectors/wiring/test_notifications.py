"""Whoever wants to hear of a run is told how it ended: a real program, a real server, good ends and bad ones."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.context import Finished
from engine.app.desk.notification import run_and_notify
from engine.app.records.desk_journal import desk_lock
from engine.errors import ConfigError, DataError, TryAgainLater, UsageError
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from tests.servers.fake_web import Asked, Page, fake_web
from tui.cli import main

DAY = date(2025, 3, 11)


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """Writes what it hears into a file, a line each."""
    script = tmp_path / "told.py"
    script.write_text(
        "import json, sys\n"
        "with open(sys.argv[1], 'a') as heard: heard.write(json.dumps(json.load(sys.stdin)) + '\\n')\n",
        encoding="utf-8",
    )
    return [sys.executable, str(script), str(tmp_path / "heard.jsonl")]


@pytest.fixture
def heard(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    path = tmp_path / "heard.jsonl"
    return lambda: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def config(**notify: Any) -> Config:
    return Config.model_validate({"desk": {"symbols": ["ORVL", "BXWD"], "preset": "finvision"}, "notify": notify})


def run(told: Config, asked: date | None = DAY, **more: Any) -> tuple[DeskRunResult | Finished, list[Event]]:
    events: list[Event] = []
    return asyncio.run(run_and_notify(services(told), asked, events.append, **more)), events


def test_a_program_and_a_server_hear_of_a_run_once(
    program: list[str], heard: Callable[[], list[dict[str, Any]]]
) -> None:
    with fake_web(lambda asked: Page(body=b"ok")) as web:
        done, _ = run(config(command=program, webhook=f"{web.url}/hook"))
        assert isinstance(done, DeskRunResult)
        assert isinstance(run(config(command=program, webhook=f"{web.url}/hook"))[0], Finished)
        (posted,) = [json.loads(one.body) for one in web.asked]
    (told,) = heard()
    assert told == posted
    assert (told["outcome"], told["exit_code"], told["error"]) == ("done", 0, None)
    assert (told["run"], told["session"], told["value"]) == (done.run, str(DAY), "100000.00")
    assert [made["symbol"] for made in told["decisions"]] == ["ORVL", "BXWD"]


class Unreachable:
    """A model that is not there."""

    spec = label = "unreachable"
    sees = True

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def answer(self, request: Any, on_delta: Any = None) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataError("the disk is full"), 65, "the disk is full"),
        (RuntimeError("what is this"), 70, "a bug: RuntimeError: what is this"),
    ],
)
def test_a_run_that_failed_on_its_way_is_told_with_what_its_journal_has(
    error: Exception, code: int, line: str, program: list[str], heard: Callable[[], list[dict[str, Any]]]
) -> None:
    with pytest.raises(type(error)):
        run(config(command=program), through=lambda model: Unreachable(error))
    (told,) = heard()
    assert (told["run"], told["outcome"], told["exit_code"], told["error"]) == (
        "daily-demo-20250311",
        "failed",
        code,
        line,
    )
    assert (told["value"], told["decisions"]) == ("100000.00", [])


def test_a_run_that_failed_before_it_began_is_told_once_and_a_call_without_meaning_is_not(
    program: list[str], heard: Callable[[], list[dict[str, Any]]]
) -> None:
    with desk_lock("demo"):
        with pytest.raises(TryAgainLater) as ended:
            run(config(command=program))
        with pytest.raises(TryAgainLater):
            run(config(command=program), last_error=str(ended.value))
    with pytest.raises(UsageError):
        run(config(command=program), date(2025, 3, 15))
    (told,) = heard()
    assert (told["run"], told["session"], told["outcome"]) == (None, str(DAY), "failed")
    assert (told["exit_code"], told["error"]) == (75, str(ended.value))


def test_who_cannot_be_told_is_a_warning_on_the_record_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.notify.PAUSES", (0.0, 0.0))
    done, events = run(config(command=[str(tmp_path / "nobody")], webhook="http://127.0.0.1:9/secret"))
    assert isinstance(done, DeskRunResult) and done.outcome == "done"
    said = [event.text for event in events if isinstance(event, Noticed)]
    assert ["the program nobody cannot be started" in said[0], "the webhook at 127.0.0.1" in said[1]] == [True, True]
    with JournalReader(places.desk_journal("demo")) as reader:
        assert [(note.level, note.text) for note in reader.notes(done.run)] == [("warning", text) for text in said]
        assert "secret" not in "".join(note.text for note in reader.notes())


def test_a_program_gets_no_key_of_any_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "APCA_API_SECRET_KEY", "FRED_API_KEY", "MY_SERVER_KEY", "MY_NAME")
    for name in names:
        monkeypatch.setenv(name, "not for you")
    script = tmp_path / "told.py"
    script.write_text("import os, sys\nopen(sys.argv[1], 'w').write(' '.join(os.environ))\n", encoding="utf-8")
    notify = {"command": (sys.executable, str(script), str(tmp_path / "names"))}
    told = config(**notify)
    endpoints = {"mine": {"base_url": "http://127.0.0.1:9/v1", "key_env": "MY_SERVER_KEY"}}
    run(Config.model_validate(told.model_dump() | {"endpoints": endpoints}))
    assert set(names) & set((tmp_path / "names").read_text().split()) == {"MY_NAME"}


def test_a_redirect_of_a_webhook_is_a_failure_and_not_followed() -> None:
    with fake_web(lambda asked: Page(body=b"ok")) as other:

        def moved(asked: Asked) -> Page:
            return Page(status=302, headers=(("Location", f"{other.url}/else"),))

        with fake_web(moved) as web:
            _, events = run(config(webhook=f"{web.url}/hook"))
            assert [one.method for one in web.asked] == ["POST"]
        assert other.asked == []
    said = [event.text for event in events if isinstance(event, Noticed)]
    assert said == [
        "not notified of the run: the webhook at 127.0.0.1 answered with 302 (a redirect, which is not followed): "
        "check notify.webhook"
    ]


def test_an_address_is_called_after_every_finished_run_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_web(lambda asked: Page(body=b"ok")) as web:
        calls = config(ping=f"{web.url}/alive")
        with desk_lock("demo"), pytest.raises(TryAgainLater):
            run(calls)
        assert web.asked == [], "a run that failed does not call"
        assert isinstance(run(calls)[0], DeskRunResult)
        assert isinstance(run(calls)[0], Finished), "nothing to do"
        assert [(one.method, one.path, one.body) for one in web.asked] == [("GET", "/alive", b"")] * 2
        monkeypatch.setenv("PAPERDESK_NOTIFY__PING", f"{web.url}/alive")
        monkeypatch.setenv("PAPERDESK_DESK__PRESET", "finvision")
        for _ in range(2):
            with pytest.raises(SystemExit) as ended:
                main(["--daily", "--json"])
            assert ended.value.code == 0
        assert len(web.asked) == 4, "the quick answer of a finished day calls too"


def test_a_program_that_is_none_is_said_before_anything_is_done() -> None:
    with pytest.raises(ConfigError, match="notify"):
        run(config(webhook="hooks.example.com"))
    assert not places.desk_journal("demo").exists()
