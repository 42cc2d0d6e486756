"""Questions of one model that go to its vendor as batches, at half price and within a day.

A batch is stored before it is sent, and its answers are recorded before it counts as collected: whoever is killed finds
it again, at the vendor where need be, and sends nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

from connectors.llm.capped_model import CappedModel
from connectors.llm.paid_results import AnswerStore, StoredBatch
from connectors.llm.remote_model import BatchRefused, RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult
from engine.ports import Clock
from engine.services import Spent

FIRST_LOOK, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a second look at a batch, and between two looks at most."""
_MOST_LINES = 50_000
_MOST_BYTES = 100_000_000
"""Half of what a vendor takes: pictures are counted by estimate."""
_PICTURE = 60_000
"""About the bytes of a picture in base64."""


@dataclass(eq=False)
class Batches:
    """The batches of a run's questions to one model; `record` keeps an answer, `report` gets the work at hand."""

    model: RemoteModel
    capped: CappedModel | None
    store: AnswerStore
    clock: Clock
    run: str
    record: Callable[[ModelResult], None]
    report: Callable[[str], None]
    _reserved: dict[str, Spent] = field(default_factory=dict)

    async def answers(self, questions: Mapping[str, ModelRequest]) -> dict[str, ModelResult]:
        """The vendor's replies to questions by their hash: of batches that were sent before, and of new ones. Left out
        are lines that expired or failed, and what a limit has no room for. Raises TryAgainLater, ConfigError and
        CredentialsRefused; what was sent is asked for again by whoever goes on."""
        waiting, left = list[StoredBatch](), dict(questions)
        for batch in await asyncio.to_thread(self.store.batches, self.model.spec):
            if not batch.collected and left.keys() & set(batch.questions) and (sent := await self._found(batch)):
                waiting.append(sent)
                left = {name: request for name, request in left.items() if name not in batch.questions}
        found: dict[str, ModelResult] = {}
        while waiting or left:
            while part := self._part(left):
                waiting.append(await self._sent(part))
            if not waiting:
                break
            for batch in waiting:
                found |= await self._collected(batch, questions)
            waiting = []
        return found

    async def _found(self, batch: StoredBatch) -> StoredBatch | None:
        """A stored batch with the vendor's id; None for one that never reached the vendor, which is forgotten, and for
        one that another run is about to send."""
        if batch.id is not None or batch.run != self.run:
            return batch if batch.id is not None else None
        known = {one.id for one in await asyncio.to_thread(self.store.batches, self.model.spec)}
        name = await self.model.about_batch(partial(self.model.find_batch, batch, known))
        if name is None:
            await self._kept(replace(batch, questions=(), collected=True))
            return None
        return await self._kept(replace(batch, id=name))

    def _part(self, left: dict[str, ModelRequest]) -> dict[str, tuple[ModelRequest, int]]:
        """Questions of one batch, each with the limit of its answer, taken from those that are left."""
        part: dict[str, tuple[ModelRequest, int]] = {}
        size = 0
        for name, request in list(left.items()):
            size += 4 * self.model.estimated_tokens(request)
            size += _PICTURE * sum(len(message.charts) for message in request.messages)
            if part and (len(part) == _MOST_LINES or size > _MOST_BYTES):
                break
            limit = self.model.output_limit(request)
            if self.capped is not None:
                if (room := self.capped.reserve_batched(request)) is None:
                    break
                self._reserved[name], limit = room
            part[name] = left.pop(name), limit
        return part

    async def _sent(self, part: Mapping[str, tuple[ModelRequest, int]]) -> StoredBatch:
        lines, names = await self.model.batch_lines(part), tuple(part)
        batch = StoredBatch(key=uuid4().hex, run=self.run, spec=self.model.spec, sent=self.clock.now(), questions=names)
        await self._kept(batch)
        name = await self.model.about_batch(partial(self.model.send_batch, batch.key, lines), once=True)
        return await self._kept(replace(batch, id=name))

    async def _collected(self, batch: StoredBatch, questions: Mapping[str, ModelRequest]) -> dict[str, ModelResult]:
        """Wait for a batch, and record its answers."""
        pause, replies = FIRST_LOOK, partial(self.model.batch_replies, batch.id or "")
        try:
            while (read := await self.model.about_batch(replies)) is None:
                lines = f"{len(batch.questions):,} questions to {batch.spec} are with the vendor as batch {batch.id}"
                self.report(f"{lines}: up to 24 hours; Ctrl-C loses nothing")
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, LONGEST_PAUSE)
        except BatchRefused:  # whoever goes on sends its questions anew
            await self._kept(replace(batch, questions=(), collected=True))
            raise
        known = {name: reply for name, reply in read.items() if name in batch.questions}
        if read and not known:  # somebody else's, of as many questions, taken for one whose id had not come
            await self._kept(replace(batch, key=uuid4().hex, questions=(), collected=True))
            own = await self._found(replace(batch, id=None))
            return {} if own is None else await self._collected(own, questions)
        found = {name: self.model.batched_result(reply, name, questions.get(name)) for name, reply in known.items()}
        for result in found.values():
            await asyncio.to_thread(self.record, result)
        await self._kept(replace(batch, collected=True))
        for name in batch.questions:
            if self.capped is not None:
                await self.capped.settle_batched(self._reserved.pop(name, None), found.get(name))
        return found

    async def _kept(self, batch: StoredBatch) -> StoredBatch:
        await asyncio.to_thread(self.store.keep_batch, batch)
        return batch
