"""Questions of one model that go to its vendor as batches, at half price and within a day.

A batch is stored before it is sent, and its answers are recorded before it counts as collected: whoever is killed finds
it again, at the vendor where need be, and sends nothing twice. It is its run's, which pays for it: another run with the
same questions waits for the answers while that one is at work, and takes the batch over once it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

from filelock import FileLock, Timeout

from connectors.llm.capped_model import CappedModel
from connectors.llm.paid_results import AnswerStore, StoredBatch
from connectors.llm.remote_model import BatchRefused, RemoteModel
from engine.domain.model_call import ModelRequest, ModelResult
from engine.ports import Clock
from engine.services import Spent
from engine.settings import places

FIRST_LOOK, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a second look at a batch, and between two looks at most."""
_MOST_LINES = 50_000
_MOST_BYTES = 100_000_000
"""Half of what a vendor takes: pictures are counted by estimate."""
_PICTURE = 60_000
"""About the bytes of a picture in base64."""
Part = Mapping[str, tuple[ModelRequest, int]]
"""The questions of a batch by their hashes, each with the limit of its answer."""


@dataclass(eq=False)
class Batches:
    """The batches of a run's questions to one model; `record` keeps an answer, `report` gets the work at hand. A run
    that `shares` takes those of others as well."""

    model: RemoteModel
    capped: CappedModel | None
    store: AnswerStore
    clock: Clock
    run: str
    shares: bool
    record: Callable[[ModelResult], None]
    report: Callable[[str], None]
    _reserved: dict[str, Spent] = field(default_factory=dict)

    async def answers(self, questions: Mapping[str, ModelRequest]) -> dict[str, ModelResult]:
        """The vendor's replies to questions by their hash: of batches that were stored before, and of new ones. Left
        out are lines that expired or failed, answers that another run has recorded meanwhile, and what a limit has no
        room for. Raises TryAgainLater, ConfigError and CredentialsRefused; what was sent is asked for again by whoever
        goes on."""
        found, left = dict[str, ModelResult](), dict(questions)
        while left:
            own, others = self._claimed(left)
            if not own and not others:
                break
            sent = [await (self._sent(batch, part) if part else self._found(batch)) for batch, part in own]
            for batch in filter(None, sent):
                found |= await self._collected(batch, questions)
                left = {name: request for name, request in left.items() if name not in batch.questions}
            for batch in others:
                await self._left_to(batch)
                for name in left.keys() & set(batch.questions):
                    if await asyncio.to_thread(self.store.answer, name) is not None:
                        del left[name]
        return found

    def _claimed(
        self, questions: Mapping[str, ModelRequest]
    ) -> tuple[list[tuple[StoredBatch, Part]], list[StoredBatch]]:
        """The batches of some questions: this run's, each with what it is to send where it is new, and those of others
        that are at work."""
        own, others, left = list[tuple[StoredBatch, Part]](), list[StoredBatch](), dict(questions)
        with self.store.alone():
            for batch in self.store.batches(self.model.spec):
                names = tuple(name for name in batch.questions if name in left)
                if batch.collected or not names or not (self.shares or batch.run == self.run):
                    continue
                left = {name: request for name, request in left.items() if name not in names}
                if batch.run == self.run:
                    own.append((batch, {}))
                elif _at_work(batch.run):
                    others.append(batch)
                else:
                    own.append((self._taken(batch, names), {}))
            while part := self._part(left):
                now, names = self.clock.now(), tuple(part)
                batch = StoredBatch(key=uuid4().hex, run=self.run, spec=self.model.spec, sent=now, questions=names)
                self.store.keep_batch(batch)
                own.append((batch, part))
        return own, others

    def _taken(self, batch: StoredBatch, names: tuple[str, ...]) -> StoredBatch:
        """A batch of a run that has ended as one of this run; of one that is known to be with the vendor the other
        questions stay that run's."""
        if batch.id is not None and len(names) < len(batch.questions):
            rest = tuple(name for name in batch.questions if name not in names)
            self.store.keep_batch(replace(batch, questions=rest))
            batch = replace(batch, key=uuid4().hex, questions=names)
        batch = replace(batch, run=self.run)
        self.store.keep_batch(batch)
        return batch

    async def _left_to(self, other: StoredBatch) -> None:
        """Wait until another run has collected its batch, or has ended."""
        pause = FIRST_LOOK
        while _at_work(other.run):
            batches = await asyncio.to_thread(self.store.batches, other.spec)
            if any(batch.key == other.key and batch.collected for batch in batches):
                break
            self.report(f"{len(other.questions):,} questions to {other.spec} are in a batch of the run {other.run}")
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)

    async def _found(self, batch: StoredBatch) -> StoredBatch | None:
        """A stored batch with the vendor's id; None for one that never reached the vendor, which is forgotten."""
        if batch.id is not None:
            return batch
        known = {one.id for one in await asyncio.to_thread(self.store.batches, self.model.spec)}
        name = await self.model.about_batch(partial(self.model.find_batch, batch, known))
        if name is None:
            await self._kept(replace(batch, questions=(), collected=True))
            return None
        return await self._kept(replace(batch, id=name))

    def _part(self, left: dict[str, ModelRequest]) -> Part:
        """The questions of one batch, taken from those that are left."""
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

    async def _sent(self, batch: StoredBatch, part: Part) -> StoredBatch:
        lines = await self.model.batch_lines(part)
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


def _at_work(run: str) -> bool:
    """True while a process plays a run."""
    lock = places.run_lock(run)
    try:
        with FileLock(lock).acquire(timeout=0) if lock.exists() else nullcontext():
            return False
    except Timeout:
        return True
