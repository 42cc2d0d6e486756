"""Remote vectors: of length 1, in the order of the texts, paid for once, and every fault a clear line."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.llm.embeddings import OpenAIEmbedder
from connectors.llm.endpoint import Endpoint, RateLimiter
from connectors.llm.paid_results import EmbeddingStore
from engine.errors import ConfigError, CredentialsRefused, MalformedData, TryAgainLater
from memory.errors import EmbedderUnavailable
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Hang, Raw, Reset, Say, vector_of

KEY = "sk-test-0123456789"
Open = Callable[..., OpenAIEmbedder]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddingStore]:
    opened = EmbeddingStore(tmp_path / "vectors.db")
    yield opened
    opened.close()


@pytest.fixture
def embedder(server: FakeLLMServer, store: EmbeddingStore) -> Iterator[Open]:
    made: list[OpenAIEmbedder] = []

    def opened(model: str = "m", **options: Any) -> OpenAIEmbedder:
        own = {"timeout": options.pop("timeout", 5.0)}
        parts = {"api_key": KEY, "base_url": server.openai_url, "provider": "local", "key_variable": "LOCAL_KEY"}
        made.append(OpenAIEmbedder(model, Endpoint(**{**parts, **options}), store, **own))
        return made[-1]

    yield opened
    for one in made:
        one.close()


def unit(text: str) -> list[float]:
    vector = vector_of(text)
    length = math.sqrt(sum(number * number for number in vector))
    return [number / length for number in vector]


def test_rows_are_unit_vectors_in_the_order_of_the_texts(embedder: Open, server: FakeLLMServer) -> None:
    texts = ["lamps rose", "glass fell", "lamps rose"]
    rows = embedder().embed(texts)
    assert rows.shape == (3, 8)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [unit(text) for text in texts], rtol=1e-6)
    assert [one["input"] for one in server.requests] == [["lamps rose", "glass fell"]]
    assert server.requests[0]["encoding_format"] == "float"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_text_is_paid_for_once(embedder: Open, server: FakeLLMServer) -> None:
    first = embedder().embed(["a", "b"])
    second = embedder().embed(["b", "c", "a"])
    assert [one["input"] for one in server.requests] == [["a", "b"], ["c"]]
    np.testing.assert_array_equal(second[[2, 0]], first)
    embedder("other").embed(["a"])
    assert server.requests[-1]["input"] == ["a"]


def test_many_texts_go_in_several_calls(embedder: Open, server: FakeLLMServer) -> None:
    texts = [f"text {at}" for at in range(600)]
    rows = embedder().embed(texts)
    np.testing.assert_allclose(rows, [unit(text) for text in texts], rtol=1e-6)
    assert sorted(len(one["input"]) for one in server.requests) == [88, 256, 256]
    server.requests.clear()
    embedder().embed([f"{at} " + "x" * 23_000 for at in range(40)])
    assert max(sum(map(len, one["input"])) for one in server.requests) <= 400_000


def test_the_gate_holds(embedder: Open, server: FakeLLMServer) -> None:
    embedder(limiter=RateLimiter(1)).embed([f"text {at}" for at in range(1000)])
    assert server.busiest == 1


def test_a_text_longer_than_a_model_takes_is_sent_by_its_beginning(embedder: Open, server: FakeLLMServer) -> None:
    embedder().embed(["word " * 20_000])
    assert len(server.requests[0]["input"][0]) == 24_000


def test_no_texts_and_empty_ones(embedder: Open, server: FakeLLMServer) -> None:
    assert embedder("text-embedding-3-small", provider="openai").embed([]).shape == (0, 1536)
    with pytest.raises(EmbedderUnavailable, match="text 1 of 2 is empty"):
        embedder().embed(["  ", "b"])
    assert not server.requests


def test_the_dimension_is_known_learned_or_remembered(embedder: Open, server: FakeLLMServer) -> None:
    assert embedder("text-embedding-3-small", provider="openai").dimension == 1536
    assert not server.requests
    one = embedder()
    assert (one.id, one.dimension) == ("local:m", 8)
    assert embedder().dimension == 8
    assert len(server.requests) == 1


async def test_it_may_be_asked_inside_an_event_loop(embedder: Open) -> None:
    one = embedder()
    assert one.embed(["here"]).shape == (1, 8)
    rows = await asyncio.gather(*(asyncio.to_thread(one.embed, [f"thread {at}"]) for at in range(4)))
    assert [row.shape for row in rows] == [(1, 8)] * 4


def body(*vectors: list[Any]) -> Raw:
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return Raw(json.dumps({"object": "list", "data": data, "model": "m", "usage": {}}).encode())


@pytest.mark.parametrize(
    ("turn", "said", "kind"),
    [
        (Fail(429, "slow down"), "rate limited: slow down", TryAgainLater),
        (Fail(500, "broken"), "unavailable: broken", TryAgainLater),
        (Fail(404, "no such model"), "not configured: no such model", EmbedderUnavailable),
        (Raw(b"<html>hello</html>", "text/html"), "malformed", EmbedderUnavailable),
        (Raw(b'{"data": [{"index": 0, "embed'), "malformed", EmbedderUnavailable),
        (Reset(), "unavailable", TryAgainLater),
        (Hang(), "timed out: no answer within 0.3 s", TryAgainLater),
        (body([1.0, 2.0], [1.0, 2.0]), "2 vectors came back for 1 texts", EmbedderUnavailable),
        (body(), "0 vectors came back", EmbedderUnavailable),
        (body([0.0, 0.0]), "is zero or holds no numbers", EmbedderUnavailable),
        (body([1.0, math.nan]), "is zero or holds no numbers", EmbedderUnavailable),
        (body([]), "vectors of [0] numbers", EmbedderUnavailable),
    ],
    ids=["429", "500", "404", "html", "cut", "reset", "hang", "too many", "none", "zero", "nan", "empty"],
)
def test_a_fault_is_one_clear_line_of_its_kind_and_nothing_is_kept(
    embedder: Open, server: FakeLLMServer, turn: Any, said: str, kind: type[Exception]
) -> None:
    server.play(turn)
    with pytest.raises(kind) as caught:
        embedder(timeout=0.3 if isinstance(turn, Hang) else 60.0).embed(["a"])
    assert said in str(caught.value)
    assert str(caught.value).startswith("embedder local:m: ")
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    server.play(Say())
    np.testing.assert_allclose(embedder().embed(["a"]), [unit("a")], rtol=1e-6)


def test_an_endpoint_that_is_not_there_is_an_outage(embedder: Open) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with pytest.raises(TryAgainLater, match=r"unavailable: .*try again later"):
            embedder(base_url=closed).embed(["a"])


def test_vectors_of_another_size_are_refused(embedder: Open, server: FakeLLMServer) -> None:
    one = embedder()
    one.embed(["a"])
    server.play(body([1.0, 2.0]))
    with pytest.raises(EmbedderUnavailable, match="not of 8"):
        one.embed(["b"])


def test_keys_and_addresses_are_checked_as_for_models(embedder: Open, server: FakeLLMServer) -> None:
    with pytest.raises(CredentialsRefused, match="LOCAL_KEY"):
        embedder(api_key=None)
    with pytest.raises(ConfigError, match="http"):
        embedder(base_url="localhost:1")
    assert embedder(api_key=None, key_variable="").embed(["a"]).shape == (1, 8)
    server.play(Fail(401, f"bad key {KEY}"))
    with pytest.raises(CredentialsRefused) as caught:
        embedder("refused").embed(["a"])
    assert KEY not in str(caught.value)


def test_a_store_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("my notes, which are no database and longer than a header of one " * 20)
    before = path.read_bytes()
    with pytest.raises(MalformedData, match="holds no vectors"):
        EmbeddingStore(path)
    assert path.read_bytes() == before
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(MalformedData, match="newer"):
        EmbeddingStore(newer)
