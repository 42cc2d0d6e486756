"""Everything that can go wrong between desk and broker, on every method, over real HTTP."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.registration import BROKER
from connectors.alpaca.settings import AlpacaSettings
from connectors.sandbox import SandboxServer
from engine.domain.order import OrderState
from engine.errors import CredentialsRefused, MalformedData, NetworkError, PaperdeskError, TryAgainLater
from tests.connectors.alpaca.alpaca_accounts import KEY, ORDER, QUESTIONS, SECRET, a_buy, paper, said
from tests.servers.fake_web import FakeWeb, Page, fake_web

REPO = Path(__file__).parents[3]
Ended = dict[str, type[BaseException] | None]

PASSING = ("too_many_requests", "server_error", "gateway_timeout", "html", "reset")


async def ended(server: SandboxServer | FakeWeb, **options: Any) -> Ended:
    """How every question ends, each asked by an adapter of its own: None where it is answered."""
    keys = server.settings if isinstance(server, SandboxServer) else None

    async def one(name: str) -> type[BaseException] | None:
        key, secret = (KEY, SECRET) if keys is None else (keys.key, keys.secret)
        async with paper(server.url, key, secret, **options) as broker:
            try:
                await QUESTIONS[name](broker)
            except PaperdeskError as error:
                return type(error)
            return None

    return {name: await one(name) for name in QUESTIONS}


def every(kind: type[BaseException] | None) -> Ended:
    return dict.fromkeys(QUESTIONS, kind)


async def on(server: SandboxServer, work: Callable[[AlpacaBroker], Any], **options: Any) -> Any:
    """What one call brings, or the error that it raises."""
    async with paper(server.url, server.settings.key, server.settings.secret, **options) as broker:
        try:
            return await work(broker)
        except PaperdeskError as error:
            return error


def posts(server: SandboxServer) -> dict[str, int]:
    found: dict[str, int] = server.state()["posts"]
    return found


async def arrived(server: SandboxServer, method: str) -> None:
    """Waits until a request was read: one that was given up early may still be on its way."""
    while not any(line.startswith(method) for line in server.state()["requests"]):
        await asyncio.sleep(0.01)


def taken(server: SandboxServer) -> list[str]:
    return [one["client_order_id"] for one in server.state()["orders"]]


# Questions


@pytest.mark.parametrize("kind", PASSING)
async def test_a_question_is_asked_again_after_a_fault(opened: Callable[..., SandboxServer], kind: str) -> None:
    for name in QUESTIONS:
        server = opened()
        server.fault(kind, seconds=0)
        async with paper(server.url, server.settings.key, server.settings.secret) as broker:
            await QUESTIONS[name](broker)
        asked = server.state()["requests"]
        assert sum(asked.values()) > 1 and all(line.startswith("GET ") for line in asked), name


@pytest.mark.parametrize("kind", PASSING)
async def test_a_question_is_not_asked_for_ever(broker: SandboxServer, kind: str) -> None:
    broker.fault(kind, seconds=0, count=0)
    patience = TryAgainLater if kind == "too_many_requests" else NetworkError
    assert await ended(broker, attempts=3) == every(patience)
    counts = broker.state()["requests"]
    assert set(counts.values()) == {3} and len(counts) == len(QUESTIONS)


async def test_a_question_that_hangs_ends_after_the_timeout(broker: SandboxServer) -> None:
    broker.fault("hang", seconds=60, count=0)

    async def timed(name: str) -> float:
        begun = time.monotonic()
        found = await on(broker, QUESTIONS[name], timeout=0.3)
        assert isinstance(found, NetworkError) and "no answer" in str(found), (name, found)
        return time.monotonic() - begun

    lengths = await asyncio.gather(*(timed(name) for name in QUESTIONS))
    assert min(lengths) >= 0.6, lengths  # two attempts of each


async def test_a_broker_that_asks_for_patience_is_not_pressed(broker: SandboxServer) -> None:
    broker.fault("too_many_requests", seconds=3600, count=0)
    assert await ended(broker, attempts=5) == every(TryAgainLater)
    assert set(broker.state()["requests"].values()) == {1}
    found = await on(broker, QUESTIONS["account"])
    assert "3600 s" in str(found) and found.exit_code == 75


async def test_keys_that_are_refused_are_named_at_once(broker: SandboxServer) -> None:
    broker.fault("wrong_key", count=0)
    assert await ended(broker) == every(CredentialsRefused)
    assert set(broker.state()["requests"].values()) == {1}
    found = await on(broker, QUESTIONS["clock"])
    assert all(part in str(found) for part in ("APCA_API_KEY_ID", "APCA_API_SECRET_KEY", broker.url))
    assert found.exit_code == 77


PAGES = {
    "redirect": Page(body=b"", status=301, headers=(("location", "http://127.0.0.1:9/elsewhere"),)),
    "redirect with a page": Page(
        body=b"<html>moved</html>", status=302, headers=(("location", "/v2/other"),), content_type="text/html"
    ),
    "empty": Page(body=b""),
    "html": Page(body=b"<html>maintenance</html>", content_type="text/html"),
    "cut": Page(body=b'{"cash": "1", "equity": "1"', cut=True),
    "half": Page(body=b'{"cash": '),
    "not found": Page(body=b"<html>no such page</html>", status=404, content_type="text/html"),
    "forbidden page": Page(body=b"<html>blocked by a firewall</html>", status=403, content_type="text/html"),
    "drip": Page(drip=True),
    "teapot": Page(body=b"", status=418),
}


@pytest.mark.parametrize("name", PAGES)
async def test_an_answer_that_is_none_is_a_fault_of_the_network(name: str) -> None:
    with fake_web(lambda asked: PAGES[name]) as web:
        found = await ended(web, timeout=0.15 if name == "drip" else 60.0)
    assert found == every(NetworkError)
    assert "elsewhere" not in "".join(web.paths())


@pytest.mark.parametrize("document", [7, "text", [], [1], {}, [{}]])
async def test_json_of_another_shape_is_named(document: Any) -> None:
    with fake_web(lambda asked: said(document)) as web:
        found = await ended(web)
    nothing = dict.fromkeys(("activities", "open_orders", "session_hours")) if document == [] else {}
    assert found == every(MalformedData) | nothing


async def test_a_broker_that_is_not_there() -> None:
    with fake_web(lambda asked: Page()) as gone:
        url = gone.url
    async with paper(url) as broker:
        for question in QUESTIONS.values():
            with pytest.raises(NetworkError, match=url):
                await question(broker)
        with pytest.raises(NetworkError, match="desk-1 was not sent"):
            await broker.place(a_buy())
        with pytest.raises(NetworkError):
            await broker.cancel("desk-1")
    with pytest.raises(NetworkError, match=url):
        BROKER.now(AlpacaSettings(key=KEY, secret=SECRET, trading_url=url, data_url=url))


# Orders


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [*PASSING, "hang"])
async def test_an_order_is_sent_once_whatever_comes_back(broker: SandboxServer, kind: str, after: bool) -> None:
    seconds = 60 if kind == "hang" else 0
    broker.fault(kind, method="POST", count=0, after=after, seconds=seconds)

    found = await on(broker, lambda account: account.place(a_buy()), timeout=0.5 if kind == "hang" else 60, attempts=5)
    await arrived(broker, "POST")

    assert isinstance(found, TryAgainLater) and "desk-1: outcome not known" in str(found) and found.exit_code == 75
    assert posts(broker) == {"desk-1": 1}
    assert broker.state()["requests"] == {"POST /v2/orders": 1}, "and nothing else is asked"
    assert taken(broker) == (["desk-1"] if after else [])

    broker.clear_faults()
    standing = await on(broker, lambda account: account.lookup("desk-1"))
    assert (standing is not None) is after
    again = await on(broker, lambda account: account.place(a_buy()))
    assert (again.state, taken(broker)) == (OrderState.ACKNOWLEDGED, ["desk-1"]), "the id makes it one order"


async def test_an_order_with_refused_keys_is_sent_once(broker: SandboxServer) -> None:
    broker.fault("wrong_key", method="POST", count=0)
    found = await on(broker, lambda account: account.place(a_buy()))
    assert isinstance(found, CredentialsRefused) and posts(broker) == {"desk-1": 1} and taken(broker) == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [*PASSING, "hang"])
async def test_canceling_is_tried_once_and_looked_up(broker: SandboxServer, kind: str, after: bool) -> None:
    await on(broker, lambda account: account.place(a_buy()))
    broker.fault(kind, method="DELETE", count=0, after=after, seconds=60 if kind == "hang" else 0)

    found = await on(broker, lambda account: account.cancel("desk-1"), timeout=0.5 if kind == "hang" else 60)
    await arrived(broker, "DELETE")

    assert isinstance(found, TryAgainLater) and "canceling" in str(found)
    assert sum(n for line, n in broker.state()["requests"].items() if line.startswith("DELETE")) == 1
    broker.clear_faults()
    standing = await on(broker, lambda account: account.lookup("desk-1"))
    assert standing.state is (OrderState.CANCELED if after else OrderState.ACKNOWLEDGED)


async def test_canceling_with_refused_keys(broker: SandboxServer) -> None:
    await on(broker, lambda account: account.place(a_buy()))
    broker.fault("wrong_key", method="DELETE", count=0)
    assert isinstance(await on(broker, lambda account: account.cancel("desk-1")), CredentialsRefused)


@pytest.mark.parametrize(
    "page",
    [
        *(page for name, page in PAGES.items() if not name.startswith("redirect")),
        said({"message": "no code"}, 422),
        said({"code": 42210000}, 422),
        said({"code": 40910000, "message": "conflict"}, 409),
        said({"code": 42910000, "message": "too many requests."}, 429, ("retry-after", "0")),
        said({}),
        said([ORDER]),
        said(ORDER | {"status": None}),
        said(ORDER | {"filled_qty": "some"}),
        said(ORDER | {"client_order_id": "another"}),
    ],
)
async def test_an_answer_that_settles_nothing_leaves_the_outcome_open(page: Page) -> None:
    with fake_web(lambda asked: page) as web:
        async with paper(web.url, timeout=0.3 if page.drip else 60.0) as broker:
            with pytest.raises(TryAgainLater, match="desk-1: outcome not known"):
                await broker.place(a_buy())
    assert [one.method for one in web.asked] == ["POST"]


@pytest.mark.parametrize("name", ["redirect", "redirect with a page"])
async def test_an_order_that_is_sent_elsewhere_is_not_sent_on(name: str) -> None:
    with fake_web(lambda asked: PAGES[name]) as web:
        async with paper(web.url) as broker:
            with pytest.raises(NetworkError, match="sends elsewhere, which is not followed: order desk-1 was not sent"):
                await broker.place(a_buy())
    assert [one.method for one in web.asked] == ["POST"]


@pytest.mark.parametrize(
    "answers",
    [
        [said({"code": 40410000, "message": "order not found"}, 404)],
        [Page(body=b"<html>no</html>", status=404, content_type="text/html")] * 2,
        [Page(body=b"", status=500)] * 2,
        [said({"code": 42910000, "message": "slow"}, 429, ("retry-after", "9999"))],
    ],
)
async def test_an_id_that_is_taken_and_not_found_leaves_the_outcome_open(answers: list[Page]) -> None:
    with fake_web(lambda asked: answers[0]) as web:
        web.fail(said({"code": 40010001, "message": "client_order_id must be unique"}, 422), at="/orders")
        async with paper(web.url) as broker:
            with pytest.raises(TryAgainLater, match="desk-1: outcome not known"):
                await broker.place(a_buy())
    assert [one.method for one in web.asked].count("POST") == 1


async def test_keys_refused_in_between_are_keys_refused() -> None:
    with fake_web(lambda asked: said({"message": "forbidden."}, 403)) as web:
        web.fail(said({"code": 40010001, "message": "client_order_id must be unique"}, 422), at="/orders")
        async with paper(web.url) as broker:
            with pytest.raises(CredentialsRefused):
                await broker.place(a_buy())
            with pytest.raises(CredentialsRefused):
                await broker.place(a_buy("desk-2"))


@pytest.mark.parametrize(
    "page",
    [
        said({"code": 40110000, "message": "request is not authorized"}, 401),
        said({"code": 40110000, "message": "access key verification failed"}, 403),
        said({"message": "forbidden."}, 403),
        Page(body=b"forbidden", status=403, content_type="text/plain"),
        Page(body=b"", status=401),
    ],
)
async def test_every_way_of_refusing_keys(page: Page) -> None:
    with fake_web(lambda asked: page) as web:
        assert await ended(web) == every(CredentialsRefused)
        async with paper(web.url) as broker:
            with pytest.raises(CredentialsRefused, match="APCA_API_KEY_ID and APCA_API_SECRET_KEY"):
                await broker.place(a_buy())


async def test_a_process_does_not_wait_for_a_request_that_hangs(broker: SandboxServer) -> None:
    broker.fault("hang", method="POST", seconds=3600)
    script = (
        "import asyncio\nfrom connectors.wiring.broker import broker_of\nfrom engine.settings.config import Config\n"
        "from tests.connectors.alpaca.alpaca_accounts import a_buy\n"
        "asyncio.run(broker_of(Config(broker={'kind': 'alpaca', 'timeout': 0.5})).open().place(a_buy()))\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script],
        cwd=REPO,
        env={"PATH": "", "PYTHONPATH": str(REPO), **broker.environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "TryAgainLater" in done.stderr and done.returncode == 1


# The broker's time alone


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (said({}, 500), NetworkError),
        (said({}, 429), NetworkError),
        (said({"message": "no"}, 401), CredentialsRefused),
        (PAGES["redirect"], NetworkError),
        (PAGES["empty"], NetworkError),
        (PAGES["html"], NetworkError),
        (PAGES["cut"], NetworkError),
        (said({"timestamp": None}), MalformedData),
        (said([]), MalformedData),
        (Page(slow=True), NetworkError),
    ],
)
def test_a_clock_that_does_not_tell(page: Page, error: type[PaperdeskError]) -> None:
    timeout = 1.0 if page.slow else 60.0
    with fake_web(lambda asked: page) as web, pytest.raises(error):
        BROKER.now(AlpacaSettings(key=KEY, secret=SECRET, trading_url=web.url, data_url=web.url, timeout=timeout))
    assert web.paths() == ["/v2/clock"], "asked once"


# Keys


async def test_keys_appear_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not even where the other side repeats them in every word that it says."""
    caplog.set_level(logging.DEBUG)
    echo = f"you sent {KEY} and {SECRET}"
    pages = [
        said({"code": 40310000, "message": echo}, 403),
        said({"code": 40010001, "message": echo}, 422),
        said({"message": echo}, 401),
        said({"message": echo}, 500),
        said({"message": echo}, 418),
        Page(body=echo.encode()),
        Page(body=echo.encode(), status=403, content_type="text/html"),
        said(ORDER | {"status": echo, "reject_reason": echo, "client_order_id": "desk-1"}),
        said({"id": echo, "cash": echo}),
    ]
    told: list[str] = []
    for page in pages:
        with fake_web(lambda asked, page=page: page) as web:  # type: ignore[misc]
            async with paper(web.url) as broker:
                for question in (*QUESTIONS.values(), lambda account: account.place(a_buy())):
                    try:
                        told.append(repr(await question(broker)))
                    except PaperdeskError as error:
                        told += ["".join(traceback.format_exception(error)), repr(error)]
                told.append(repr(broker))
    text = "\n".join([*told, *(record.getMessage() for record in caplog.records)])
    assert len(told) > len(pages) * len(QUESTIONS)
    assert KEY not in text and SECRET not in text
