"""The step in which owners who share a symbol debate it: each shows its case, the others comment, each reconsiders.

A round is a comment of every owner on every other's advice, and, where the debate feeds the decision, the advice of
every owner anew. It ends with agreement or without a change, as the preset says, after so many rounds, or before a
round that its budget of questions does not allow. After the trade, as in training, there is one round of comments, and
nobody reconsiders. Comments go into the receiver's memory. An owner without valid advice takes no further part.
Source: TradingGPT §4.1.3, §4.2 [G6, G8].
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.agents.agent import by_layer, cited_ids
from engine.agents.ask import Reply
from engine.agents.character import fixed_nature, manner_of, traits_of
from engine.agents.debate import COMMENT, RECONSIDER, Case, Comments, CommentView, ReconsideredAdvice, ReconsiderView
from engine.agents.immediate import FiveLevelReflection
from engine.cycle.received import lesson
from engine.cycle.step import Analysis
from engine.cycle.steps import gather_all
from engine.domain import decision as kinds
from engine.domain.decision import DESK, Comment, Debate, DebateEnd, DecisionKey, Recollection, RoundAdvice, trade_of
from engine.market.figures import price_figures
from engine.preset import Preset
from engine.settings.owners import DebateSettings
from memory.record import Item

SCALE = 4
"""Levels between the ends of the scale of advice."""


@dataclass(frozen=True, slots=True)
class HeldDebate:
    """A debate with the last reply of every owner that reconsidered, and what each remembers of it, by owner."""

    debate: Debate
    replies: Mapping[str, Reply[ReconsideredAdvice]] = field(default_factory=dict)
    lessons: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)

    def dissent(self, owner: str) -> float:
        """The mean distance of the others' last advice to an owner's, from 0 to 1."""
        last = {one.owner: one.advice for one in self.debate.advice}
        own = last.get(owner)
        others = [advice.level for name, advice in last.items() if name != owner and advice is not None]
        return 0.0 if own is None else _distance(own.level, others)


async def hold(analyses: Sequence[Analysis], *, before: bool) -> HeldDebate | None:
    """Hold the debate of the owners of one symbol; None where fewer than two have advice to show."""
    exchange = _Exchange(analyses)
    if len(exchange.cases) < 2:
        return None
    ended = await exchange.reconsidered() if before else await exchange.commented_once()
    return exchange.held(ended, before)


class _Exchange:
    """The state of one debate, from round to round."""

    def __init__(self, analyses: Sequence[Analysis]) -> None:
        self._analyses = {one.context.owner: one for one in analyses}
        first = analyses[0].context
        self._preset, self._settings = first.preset, first.preset.debate
        turn = first.turn
        self._key = DecisionKey(turn.run, turn.session, turn.number, first.symbol, DESK)
        self.cases = {owner: case for owner, one in self._analyses.items() if (case := _case(one)) is not None}
        self._advice = [_advice_of(owner, 0, self.cases.get(owner)) for owner in self._analyses]
        self._comments: list[Comment] = []
        self._replies: dict[str, Reply[ReconsideredAdvice]] = {}
        self._questions = 0

    async def commented_once(self) -> DebateEnd:
        """One round of comments."""
        if len(self.cases) > self._settings.budget:
            return DebateEnd.BUDGET
        await self._comment(1, decides=False)
        return DebateEnd.AFTER_TRADE

    async def reconsidered(self) -> DebateEnd:
        """Rounds until the debate ends."""
        for number in range(1, self._settings.rounds + 1):
            if ended := self._ended(number):
                return ended
            said = await self._comment(number, decides=True)
            before = {owner: case.advice for owner, case in self.cases.items()}
            await self._reconsider(number, said)
            if self._settings.stop == "no-change" and {o: c.advice for o, c in self.cases.items()} == before:
                return DebateEnd.NO_CHANGE
        if len(self.cases) < 2:
            return DebateEnd.ALONE
        return DebateEnd.AGREEMENT if self._agreed else DebateEnd.ROUNDS

    def held(self, ended: DebateEnd, before: bool) -> HeldDebate:
        """The debate as a value, and what memory keeps of it."""
        debate = Debate(
            key=self._key,
            decides=before,
            ended=ended,
            advice=tuple(self._advice),
            comments=tuple(self._comments),
        )
        lessons = {owner: tuple(self._lessons(owner)) for owner in self._analyses}
        return HeldDebate(debate, self._replies, lessons)

    def _ended(self, number: int) -> DebateEnd | None:
        """The reason why a round does not begin."""
        if len(self.cases) < 2:
            return DebateEnd.ALONE
        if self._settings.stop == "agreement" and self._agreed:
            return DebateEnd.AGREEMENT
        return DebateEnd.BUDGET if self._questions + 2 * len(self.cases) > self._settings.budget else None

    @property
    def _agreed(self) -> bool:
        return len({case.advice for case in self.cases.values()}) == 1

    async def _comment(self, number: int, *, decides: bool) -> Mapping[str, Comments | None]:
        """Every owner's comments on the others, in the order of the owners."""
        owners = tuple(self.cases)
        replies = await gather_all(self._ask_comments(owner, number, decides) for owner in owners)
        self._questions += len(owners)
        for author, reply in zip(owners, replies, strict=True):
            answer = reply.answer
            remarks = {} if answer is None else {one.to: one for one in answer.comments}
            for receiver in owners:
                if (remark := remarks.get(receiver)) is not None:
                    comment = Comment(
                        round=number,
                        author=author,
                        receiver=receiver,
                        stance=remark.stance,
                        text=remark.text,
                        about=cited_ids(remark.about, self.cases[receiver].memories),
                    )
                    self._comments.append(comment)
        return dict(zip(owners, (reply.answer for reply in replies), strict=True))

    def _ask_comments(self, owner: str, number: int, decides: bool) -> Coroutine[Any, Any, Reply[Comments]]:
        one = self._analyses[owner]
        view = CommentView(
            *one.context.subject,
            immediate=_reflection(one),
            own=self.cases[owner],
            others=self._others(owner),
            received=self._received(owner),
            round=number,
            decides=decides,
            traits=traits_of(one.context.traits),
        )
        return one.context.reply(COMMENT, view)

    async def _reconsider(self, number: int, said: Mapping[str, Comments | None]) -> None:
        """Every owner's advice anew. All see the others' as it was before the round."""
        owners = tuple(self.cases)
        replies = await gather_all(self._ask_advice(owner, number, said.get(owner)) for owner in owners)
        self._questions += len(owners)
        for owner, reply in zip(owners, replies, strict=True):
            self._replies[owner], answer = reply, reply.answer
            if answer is None:
                del self.cases[owner]
            else:
                self.cases[owner] = _reconsidered(self.cases[owner], answer, self._preset)
            self._advice.append(_advice_of(owner, number, self.cases.get(owner), reply.abstained_because))

    def _ask_advice(
        self, owner: str, number: int, comments: Comments | None
    ) -> Coroutine[Any, Any, Reply[ReconsideredAdvice]]:
        one, own, others = self._analyses[owner], self.cases[owner], self._others(owner)
        context = one.context
        view = ReconsiderView(
            *context.subject,
            facts=context.market_facts,
            figures=price_figures(context.bars),
            immediate=_reflection(one),
            comments=comments,
            own=own,
            others=others,
            received=self._received(owner),
            recollections=one.observed.recollections,
            earlier=_earlier(one, self._settings),
            dissent=_distance(own.advice.level, [case.advice.level for case in others]),
            shares=context.position.shares,
            round=number,
            traits=traits_of(context.traits),
        )
        return context.reply(RECONSIDER, view)

    def _others(self, owner: str) -> tuple[Case, ...]:
        return tuple(case for name, case in self.cases.items() if name != owner)

    def _received(self, owner: str) -> tuple[Comment, ...]:
        return tuple(one for one in self._comments if one.receiver == owner)

    def _lessons(self, owner: str) -> Iterator[Item]:
        """The comments that an owner received, as it remembers them."""
        one = self._analyses[owner]
        if one.context.memory is None:
            return
        shown = {memory.id: memory for memory in one.observed.recollections}
        for comment in self._received(owner):
            advice = next(a.advice for a in self._advice if (a.owner, a.round) == (owner, comment.round - 1))
            yield lesson(
                one.context.scope,
                kinds.DEBATE,
                f"{comment.author} {comment.stance} about my advice to {advice}: {comment.text}",
                rests_on=[shown[name] for name in comment.about],
            )


def _case(one: Analysis) -> Case | None:
    """The case of an owner whose immediate reflection gave advice."""
    context, reply = one.context, one.reflections.immediate.value
    answer = None if reply is None else reply.answer
    if not isinstance(answer, FiveLevelReflection):
        return None
    past, preset = context.outcomes(1), context.preset
    return Case(
        owner=context.owner,
        character=" ".join(part for part in (fixed_nature(context.traits), manner_of(context.traits)) if part),
        advice=answer.action,
        trade=trade_of(answer.action, preset.advice)[1],
        confidence=answer.stated,
        reason=answer.reason,
        memories=tuple(
            memory for rows in by_layer(one.observed.recollections).values() for memory in rows[: preset.debate.shown]
        ),
        weight=context.position.weight,
        last=past[-1] if past else None,
    )


def _reflection(one: Analysis) -> FiveLevelReflection:
    """The immediate reflection of an owner that has a case."""
    reply = one.reflections.immediate.value
    answer = None if reply is None else reply.answer
    assert isinstance(answer, FiveLevelReflection)
    return answer


def _reconsidered(case: Case, answer: ReconsideredAdvice, preset: Preset) -> Case:
    trade = trade_of(answer.action, preset.advice)[1]
    return replace(case, advice=answer.action, trade=trade, confidence=answer.stated, reason=answer.reason)


def _advice_of(owner: str, number: int, case: Case | None, because: str = "") -> RoundAdvice:
    """The advice of an owner after a round; without a case it has none."""
    if case is None:
        return RoundAdvice(round=number, owner=owner, advice=None, reason=because or "there is no advice of it")
    return RoundAdvice(
        round=number,
        owner=owner,
        advice=case.advice,
        trade=case.trade,
        confidence=case.confidence,
        reason=case.reason,
    )


def _earlier(one: Analysis, settings: DebateSettings) -> tuple[Recollection, ...]:
    """A week of the owner's reflections and of the comments that it received. Source: TradingGPT §4.2.2 [G8]."""
    memory = one.context.memory
    if memory is None or not settings.reference:
        return ()
    return memory.earlier(one.context.scope, (kinds.IMMEDIATE, kinds.DEBATE), settings.reference)


def _distance(level: int, others: Sequence[int]) -> float:
    return sum(abs(level - other) for other in others) / (SCALE * len(others)) if others else 0.0
