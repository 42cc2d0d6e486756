"""Whoever wants to hear of a run: a real program gets it on standard input, a real server by POST."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from connectors.notify import CommandNotifier, WebhookNotifier
from engine.errors import ConfigError, NotificationFailed
from tests.servers.fake_web import Asked, Page, fake_web

SUMMARY = {"schema": 1, "run": "daily-demo-20240131", "outcome": "done", "value": "100000.00"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.notify.PAUSES", (0.0, 0.0))


def program(tmp_path: Path, code: str) -> list[str]:
    script = tmp_path / "told.py"
    script.write_text(code, encoding="utf-8")
    return [sys.executable, str(script), str(tmp_path / "heard.json")]


async def test_a_program_gets_the_summary_and_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APCA_API_SECRET_KEY", "not for you")
    code = (
        "import json, os, sys\n"
        "heard = {'summary': json.load(sys.stdin), 'secret': os.environ.get('APCA_API_SECRET_KEY')}\n"
        "open(sys.argv[1], 'w').write(json.dumps(heard))\n"
    )
    await CommandNotifier(program(tmp_path, code), ["APCA_API_SECRET_KEY"]).notify(SUMMARY)
    assert json.loads((tmp_path / "heard.json").read_text()) == {"summary": SUMMARY, "secret": None}


async def test_a_program_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    failing = program(tmp_path, "import sys\nsys.exit('no such\\nchannel')\n")
    with pytest.raises(NotificationFailed, match="ended with status 1: no such channel"):
        await CommandNotifier(failing).notify(SUMMARY)


async def test_a_program_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.notify.PROGRAM_SECONDS", 0.3)
    with pytest.raises(NotificationFailed, match="was killed after 0 seconds"):
        await CommandNotifier(program(tmp_path, "import time\ntime.sleep(60)\n")).notify(SUMMARY)


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotificationFailed, match=r"program nobody cannot be started .*correct notify\.command"):
        await CommandNotifier([str(tmp_path / "nobody")]).notify(SUMMARY)
    with pytest.raises(ConfigError, match="names no program"):
        CommandNotifier([" "])


async def test_a_webhook_gets_the_summary_also_after_a_fault() -> None:
    with fake_web(lambda asked: Page(body=b"ok")) as web:
        web.fail(Page(status=503))
        await WebhookNotifier(f"{web.url}/hook/secret").notify(SUMMARY)
    assert [(one.method, one.path, json.loads(one.body)) for one in web.asked] == [
        ("POST", "/hook/secret", SUMMARY)
    ] * 2
    assert web.asked[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (500, 3)])
async def test_a_webhook_that_refuses_is_named_by_its_host_alone(status: int, attempts: int) -> None:
    def refuse(asked: Asked) -> Page:
        return Page(status=status)

    with fake_web(refuse) as web:
        with pytest.raises(NotificationFailed) as refused:
            await WebhookNotifier(f"{web.url}/hook/secret").notify(SUMMARY)
        assert len(web.asked) == attempts
    assert str(refused.value) == f"the webhook at 127.0.0.1 answered with {status}: check notify.webhook"


async def test_a_webhook_that_is_silent_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotificationFailed, match="is not there"):
        await WebhookNotifier("http://127.0.0.1:9/hook").notify(SUMMARY)
    with pytest.raises(ConfigError, match="is not an address"):
        WebhookNotifier("hooks.example.com/secret")
    monkeypatch.setattr("connectors.notify.WEBHOOK_SECONDS", 0.2)
    with (
        fake_web(lambda asked: Page(slow=True)) as web,
        pytest.raises(NotificationFailed, match="gave no answer in time"),
    ):
        await WebhookNotifier(web.url).notify(SUMMARY)
