"""A language-model service on loopback that bills as the vendors do, and keeps a ledger of its calls.

A token is four characters, a picture `PICTURE` tokens. OpenAI: the schema stands before the messages; what a finished
question with the same `prompt_cache_key` began with is read from the cache in steps of 128 tokens, 1,024 at least, and
the flex tier costs half. Anthropic: what stands up to a marked block (`cache_control`) is written to the cache at 1.25
of the price and read at the cached one, exactly equal and of 1,024 tokens at least. A question that is under way while
another one with the same beginning is cold pays for it too.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import Result, RunSpec
from engine.journal.reader import JournalReader
from engine.offline.model import OfflineModel
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server

CHARACTERS, PICTURE = 4, 1_100
LEAST, STEP = 1_024, 128
PRICES = {"gpt-5.4": ("2.50", "0.25", "2.50", "15"), "claude-sonnet-5": ("2", "0.20", "2.50", "10")}
"""US dollars for a million tokens in, read from the cache, written to it, and out: models of the middle size."""
SPECS = {"openai": "openai:gpt-5.4", "anthropic": "anthropic:claude-sonnet-5"}
ENDS = "\nexample>>>"
"""What the part of a question that is the same for a whole run ends with."""


@dataclass(frozen=True, kw_only=True)
class Billed:
    """A call as it was billed. `list_usd` is its price without cache, tier and levers; `stable` are the tokens of the
    schema and of the system part's constant beginning, `again` is True where a question with the same has finished
    before this one came; `read` are the tokens that came from the cache."""

    model: str
    asks_for: str
    tokens: int
    stable: int
    again: bool
    read: int
    written: int
    out: int
    reasoned: int
    pictures: int
    flex: bool

    @property
    def is_miss(self) -> bool:
        """True for a beginning that could have come from the cache and did not."""
        return self.again and self.stable >= LEAST and self.read < self.stable - self.stable % STEP

    @property
    def usd(self) -> Decimal:
        """The bill."""
        counts = (self.tokens - self.read - self.written, self.read, self.written, self.out)
        parts = zip(counts, PRICES[self.model], strict=True)
        return sum(count * Decimal(price) for count, price in parts) / 1_000_000 / (2 if self.flex else 1)

    @property
    def list_usd(self) -> Decimal:
        """What it would cost at list price."""
        asked, _, _, written = map(Decimal, PRICES[self.model])
        return (self.tokens * asked + self.out * written) / 1_000_000


Answers = Mapping[tuple[str, str], str]
"""Answers by the system part and the text of a question."""


@dataclass
class BillingServer(FakeLLMServer):
    """Answers as the rules did (`answers`), after `wait` seconds, with `reasoning` tokens of thought each."""

    answers: Answers = field(default_factory=dict)
    reasoning: int = 0
    wait: float = 0.0
    ledger: list[Billed] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._warm: set[bytes] = set()

    def forget(self) -> None:
        """Empty ledger and cache, as they are after an hour."""
        with self._lock:
            self.ledger.clear()
            self._warm.clear()

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Say:
        openai = body["messages"][0]["role"] == "system"
        asked = _of_openai(body) if openai else _of_anthropic(body)
        schema, system = json.dumps(asked.schema), "".join(text for text, _ in asked.system)
        prompt = schema + system + asked.user + "".join(asked.pictures)
        stable = (schema + system)[: len(schema) + system.rfind(ENDS) + len(ENDS)]
        ends = range(STEP, len(prompt) // CHARACTERS, STEP) if openai else asked.marks(len(schema))
        ends = [at for at in ends if at >= LEAST]
        space = f"{body['model']} {body.get('prompt_cache_key', '')}"
        kept = {_digest(space, prompt[: at * CHARACTERS]): at for at in ends}
        beginning = _digest(f"{body['model']} stable", stable)
        with self._lock:
            again = beginning in self._warm
            read = max((at for name, at in kept.items() if name in self._warm), default=0)
        time.sleep(self.wait)
        text = self.answers[system.rstrip(), asked.user]
        flex = body.get("service_tier") == "flex"
        one = Billed(
            model=body["model"],
            asks_for=asked.name,
            tokens=len(prompt) // CHARACTERS,
            stable=len(stable) // CHARACTERS,
            again=again,
            read=read,
            written=0 if openai else max(ends, default=0) - read,
            out=len(text) // CHARACTERS + self.reasoning,
            reasoned=self.reasoning,
            pictures=len(asked.pictures),
            flex=flex and openai,
        )
        with self._lock:
            self._warm |= {beginning, *kept}
            self.ledger.append(one)
        return Say(
            text=text,
            tokens_in=one.tokens if openai else one.tokens - one.read - one.written,
            cached=one.read,
            written=one.written,
            tokens_out=one.out,
            reasoned=self.reasoning,
            tier=("flex" if flex else "default") if openai else "standard",
        )


@dataclass(frozen=True)
class _Question:
    """A request in parts: `system` in blocks, each with whether it is marked; pictures as so much text."""

    name: str
    schema: Mapping[str, Any]
    system: Sequence[tuple[str, bool]]
    user: str
    pictures: Sequence[str]

    def marks(self, before: int) -> Sequence[int]:
        """The tokens up to the end of each marked block, with so many characters before the first."""
        found, length = [], before
        for text, marked in self.system:
            length += len(text)
            if marked:
                found.append(length // CHARACTERS)
        return found


def _of_openai(body: Mapping[str, Any]) -> _Question:
    form = body["response_format"]["json_schema"]
    first, turn = body["messages"]
    texts, pictures = _parts(turn["content"], lambda part: part["image_url"]["url"])
    return _Question(form["name"], form["schema"], [(first["content"], False)], texts, pictures)


def _of_anthropic(body: Mapping[str, Any]) -> _Question:
    schema = body["output_config"]["format"]["schema"]
    system = [(block["text"], "cache_control" in block) for block in body["system"]]
    (turn,) = body["messages"]
    texts, pictures = _parts(turn["content"], lambda part: part["source"]["data"])
    return _Question(str(schema.get("title", "")), schema, system, texts, pictures)


def _parts(content: Any, data: Callable[[Any], str]) -> tuple[str, list[str]]:
    if isinstance(content, str):
        return content, []
    (text, *_), pictures = (
        [part for part in content if (part["type"] == "text") is wanted] for wanted in (True, False)
    )
    return text["text"], [_digest("picture", data(part)).hex() * (PICTURE * CHARACTERS // 32) for part in pictures]


def _digest(space: str, text: str) -> bytes:
    return hashlib.blake2b(f"{space}\0{text}".encode(), digest_size=16).digest()


def rules_answers(spec: RunSpec, config: Config) -> tuple[Result, Answers]:
    """The run as the offline rules play it, shown charts as a model that sees is, and what they answered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OfflineModel, "sees", True)
        run = f"{spec.run}-by-rules"
        result = run_backtest(services(config, NOON), replace(spec, run=run, model="offline")).result
    with JournalReader(places.run_journal(run)) as reader:
        records = reader.answers(run=run)
    return result, {(one.system.rstrip(), one.messages[0].text): one.result.text for one in records}


@contextmanager
def billing_server(answers: Answers, *, reasoning: int = 0, wait: float = 0.0) -> Iterator[BillingServer]:
    """The server as both vendors, by their own addresses and keys."""
    state = BillingServer(answers=answers, reasoning=reasoning, wait=wait)
    with fake_llm_server(state), pytest.MonkeyPatch.context() as patch:
        for vendor, url in (("OPENAI", state.openai_url), ("ANTHROPIC", state.anthropic_url)):
            patch.setenv(f"{vendor}_BASE_URL", url)
            patch.setenv(f"{vendor}_API_KEY", "of-no-use")
        yield state
