"""One decision per symbol out of several owners' opinions.

The preset's `combine` says how opinions become decisions:

- `vote`: one owner, one vote, on the ordered scale from strong sell to strong buy. The middle vote wins; where there
  are two middle votes and they are not on the same side, the vote is tied, and a tie is HOLD. So a side wins with more
  than half of the votes. The size is the mean size of the winning side, weighted by the owners' weights.
- `weighted`: the weighted mean of all opinions on the scale (strong sell -2, sell -1, hold 0, buy 1, strong buy 2). The
  nearest level wins, exactly between two the one nearer to HOLD. The size is that of the winning side, each size
  counted by its owner's weight over the weight of all who voted: who disagrees makes the trade smaller.
- `books`: nothing is combined. Each owner decides for a book of its own, which begins with its share of the cash by
  weight; opposite orders of two books cross inside the desk and are never sent against each other.

An abstention does not vote. Where fewer vote than the preset's `quorum`, there is no decision, which is an abstention.
Sizes are whole percents, half a percent rounded up, and at least one for a trade. A combined decision names the rule of
the winning side with the most weight behind it, and cites what the winning side cites. One owner needs no combining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from enum import IntEnum

from engine.cycle.turn import OpenOrders, Turn
from engine.domain.decision import DESK, Action, Decision, Opinion, SizingRule
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Order, PositionContext
from engine.execution.limits import Approved, Batch, Funds, Refused, Request, limit, size
from engine.preset import Preset
from engine.settings.values import Sizing

ONE = Decimal(1)
STRONG = Decimal(5)
"""The size in percent from which a sized opinion is strong: half of the largest. Source: FinVision §3.4 [V5]."""
ACTIONS = {-1: Action.SELL, 0: Action.HOLD, 1: Action.BUY}


class Level(IntEnum):
    """The ordered scale of opinions."""

    STRONG_SELL = -2
    SELL = -1
    HOLD = 0
    BUY = 1
    STRONG_BUY = 2

    @property
    def side(self) -> int:
        """-1 for a sale, 1 for a purchase, 0 for neither."""
        return (self > 0) - (self < 0)


def combine(opinions: Sequence[Opinion], preset: Preset) -> tuple[Opinion, ...]:
    """The opinions that are decided on, in the order of the symbols: one per symbol, or each owner's own where one
    owner decides alone."""
    if len(preset.owners) == 1 or preset.combine == "books":
        return tuple(opinions)
    symbols: dict[Symbol, list[Opinion]] = {}
    for opinion in opinions:
        symbols.setdefault(opinion.key.symbol, []).append(opinion)
    return tuple(_combined(own, preset) for own in symbols.values())


def level_of(opinion: Opinion, preset: Preset) -> Level:
    """An opinion on the scale. Advice in levels is strong where it trades the significant value, a size from STRONG on;
    advice in three ways, whose trades are all alike, is never strong."""
    side = {Action.BUY: 1, Action.SELL: -1}.get(opinion.action, 0)
    if preset.decision == "three-way":
        return Level(side)
    strong = STRONG
    if preset.decision == "five-level":
        advice = preset.advice
        strong = Decimal(advice.significantly_increase if side > 0 else advice.significantly_decrease)
    return Level(2 * side if opinion.size >= strong else side)


def _combined(opinions: Sequence[Opinion], preset: Preset) -> Opinion:
    key = replace(opinions[0].key, owner=DESK)
    votes = [opinion for opinion in opinions if not opinion.abstained]
    if len(votes) < preset.quorum:
        because = f"{len(votes)} of {len(opinions)} owners have an opinion, and {preset.quorum} must"
        reasons = "; ".join(f"{one.key.owner} abstained: {one.reason}" for one in opinions if one.abstained)
        return Opinion(key=key, action=Action.ABSTAIN, size=ZERO, reason=f"{because} ({reasons})")
    levels = {vote.key.owner: level_of(vote, preset) for vote in votes}
    weights = {name: owner.weight for name, owner in preset.owners.items()}
    voted = preset.combine == "vote"
    level = _middle(tuple(levels.values())) if voted else _mean(levels, weights)
    winners = [vote for vote in votes if levels[vote.key.owner].side == level.side]
    return Opinion(
        key=key,
        action=ACTIONS[level.side],
        size=_size(winners, winners if voted else votes, weights) if level.side else ZERO,
        reason=_reason(preset.combine, level, votes, winners, levels),
        rule=_rule(winners, weights),
        evidence=tuple(dict.fromkeys(one for winner in winners for one in winner.evidence)),
        unresolved_figures=tuple(dict.fromkeys(one for winner in winners for one in winner.unresolved_figures)),
    )


def _middle(levels: Sequence[Level]) -> Level:
    """The middle vote; of two on one side the weaker, of two on different sides HOLD."""
    ordered = sorted(levels)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return min(low, high, key=abs) if low.side == high.side else Level.HOLD


def _mean(levels: Mapping[str, Level], weights: Mapping[str, Decimal]) -> Level:
    total = sum((weights[owner] for owner in levels), ZERO)
    mean = sum((weights[owner] * level for owner, level in levels.items()), ZERO) / total
    return Level(int(mean.quantize(ONE, ROUND_HALF_DOWN)))


def _size(winners: Sequence[Opinion], counted: Sequence[Opinion], weights: Mapping[str, Decimal]) -> Decimal:
    if not any(one.size for one in winners):
        return ZERO
    total = sum((weights[one.key.owner] for one in counted), ZERO)
    size = sum((weights[one.key.owner] * one.size for one in winners), ZERO) / total
    return max(ONE, size.quantize(ONE, ROUND_HALF_UP))


def _rule(winners: Sequence[Opinion], weights: Mapping[str, Decimal]) -> SizingRule | None:
    """The rule with the most weight behind it, of equals the one that is named first."""
    behind: dict[SizingRule, Decimal] = {}
    for winner in winners:
        if winner.rule is not None:
            behind[winner.rule] = behind.get(winner.rule, ZERO) + weights[winner.key.owner]
    return max(behind, key=behind.__getitem__, default=None)


def _reason(
    combine: str,
    level: Level,
    votes: Sequence[Opinion],
    winners: Sequence[Opinion],
    levels: Mapping[str, Level],
) -> str:
    cast = ", ".join(
        f"{vote.key.owner} {_name(levels[vote.key.owner])}{f' {vote.size.normalize():f} %' if vote.size else ''}"
        for vote in votes
    )
    head = f"{'Vote' if combine == 'vote' else 'Weighted mean'} of {len(votes)}: {_name(level)} ({cast})."
    return "\n".join((head, *(f"{winner.key.owner}: {_first_line(winner.reason)}" for winner in winners)))


def _first_line(reason: str) -> str:
    """The begin of a reason; the whole of it is the owner's opinion."""
    return next(iter(reason.splitlines()), "")


def _name(level: Level) -> str:
    return level.name.replace("_", " ").lower()


def size_and_limit(
    turn: Turn,
    opinions: Sequence[Opinion],
    positions: Mapping[tuple[Symbol, str], PositionContext],
    sizing: Sizing,
) -> tuple[tuple[Decision, ...], tuple[Order, ...]]:
    """Decisions in the order of the opinions, and the orders of those that trade. `positions` by symbol and book."""
    requests = [_request(turn, opinion, positions, sizing) for opinion in opinions]
    batch = Batch(
        desk=turn.desk,
        session=turn.session,
        cycle=turn.number,
        sizing=sizing,
        whole_shares=turn.whole_shares,
        terms=turn.terms,
        power=turn.power,
        funds=Funds(turn.portfolio.cash - turn.reserved, turn.value) if turn.books else None,
    )
    limited = limit(batch, requests, turn.taken)
    results = [limited.get((request.symbol, request.book)) for request in requests]
    decisions = tuple(map(_decision, opinions, requests, results))
    orders = tuple(
        replace(result.order, reason=str(opinion.rule or ""))
        for opinion, result in zip(opinions, results, strict=True)
        if isinstance(result, Approved)
    )
    return decisions, orders


def book_of(turn: Turn, opinion: Opinion) -> str:
    """The book that an opinion is sized against: its owner's, or the empty name where the desk has one book only."""
    return opinion.key.owner if turn.books else ""


def _request(
    turn: Turn,
    opinion: Opinion,
    positions: Mapping[tuple[Symbol, str], PositionContext],
    sizing: Sizing,
) -> Request:
    symbol, book = opinion.key.symbol, book_of(turn, opinion)
    queued = turn.open_orders.get(book, OpenOrders()).shares if book else turn.queued
    position = positions[symbol, book]
    return Request(
        symbol=symbol,
        book=book,
        sized=size(opinion.proposal, position, sizing),
        position=position,
        queued=queued.get(symbol, ZERO),
    )


def _decision(opinion: Opinion, request: Request, result: Approved | Refused | None) -> Decision:
    action, allowed, cuts = request.sized.action, request.sized.size, request.sized.cuts
    if isinstance(result, Approved):
        allowed, cuts = result.size, cuts + result.cuts
    elif result is not None:
        action, allowed, cuts = Action.HOLD, ZERO, cuts + result.cuts
    return Decision(
        key=opinion.key,
        action=action,
        size=allowed,
        proposal=opinion.proposal,
        cuts=cuts,
        unresolved_figures=opinion.unresolved_figures,
        evidence=opinion.evidence,
        book=request.book,
    )
