"""Opinions and decisions on one symbol in one cycle, and their outcomes.

Advice in five levels, each with a trade value: its action and its size.

A recalled memory as an agent sees it.

A debate of several owners on one symbol: their advice round by round, and what they said of each other's.

Source: TradingGPT §4.1.3 [G6].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.domain.text import cut_between_words
from engine.errors import ConfigError

DESK = "desk"
"""The default owner, and the owner of a decision that several owners' opinions were combined into."""


class Action(StrEnum):
    """The outcome of a decision. ABSTAIN means that no valid answer came: the position stays, and it is counted
    apart from HOLD."""

    BUY = "BUY"
    SELL = "SELL"
    HOLD = "HOLD"
    ABSTAIN = "ABSTAIN"


DIRECTIONS = {Action.BUY: 1, Action.SELL: -1}
"""The direction of the price by which a trade is right."""
LEANING = "leaning"
"""Key of the side, 1 or -1, in a recorded answer of an agent of the user's own."""


class SizingRule(StrEnum):
    """The rule of the paper that a decision rests on; it sets the band of sizes. Source: FinVision table 5 [V6]."""

    STRONG_UPTREND = "strong uptrend"
    DIP_IN_UPTREND = "dip in an uptrend"
    REVERSAL = "reversal"
    GAIN_OVER_COST = "gain over 5 %"
    GAINS_IN_A_ROW = "gains three sessions running"
    UPTREND_GOES_ON = "uptrend goes on"
    UNCERTAINTY = "uncertainty"


@dataclass(frozen=True, slots=True)
class DecisionKey:
    """The identity of a decision, or of an opinion: run, last completed session whose data was read, number of the
    cycle after it (from 1), symbol, owner."""

    run: str
    session: date
    cycle: int
    symbol: Symbol
    owner: str


@dataclass(frozen=True, slots=True)
class Cut:
    """One change that a rule in code made to what was asked: sizes in percent of the portfolio."""

    rule: str
    asked: Decimal
    allowed: Decimal
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A trade as an opinion asks for it, before any limit: `size` in whole percent of the portfolio, 0 where none is
    named, as by HOLD and by actions over all cash or all shares."""

    action: Action
    size: int
    rule: SizingRule | None
    explanation: str
    abstained_because: str = ""


_NOTE = "\nSized by code: "


def with_note(reason: str, note: str) -> str:
    """A model's reason with a note of code's below it."""
    return f"{reason}{_NOTE}{note}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The opinion of one owner on one symbol in one cycle, before opinions are combined and limited.

    key: its `owner` is the one who has the opinion.
    action: ABSTAIN where no valid answer came; an abstention does not vote.
    size: percent of the portfolio as asked, 0 where none is named.
    reason: the explanation, or the reason why there is none; a note of code's stands below it (`with_note`).
    rule: the sizing rule that it rests on, None where advice names none.
    evidence: ids of the memories that it cites.
    unresolved_figures: numbers that the reason quotes and that appear nowhere in its inputs; those of reports that it
        read follow, each with its agent.
    confidence: from 0 to 1; None where the owner states none.
    """

    key: DecisionKey
    action: Action
    size: Decimal
    reason: str
    rule: SizingRule | None = None
    evidence: tuple[str, ...] = ()
    unresolved_figures: tuple[str, ...] = ()
    confidence: Decimal | None = None

    @property
    def abstained(self) -> bool:
        """True where no valid answer came."""
        return self.action is Action.ABSTAIN

    @property
    def explanation(self) -> str:
        """The reason without code's note."""
        return self.reason.partition(_NOTE)[0]

    @property
    def note(self) -> str:
        """Code's note on the reason; empty where there is none."""
        return self.reason.partition(_NOTE)[2]

    @property
    def key_factors(self) -> str:
        """The rule and the begin of the reason, as outcomes keep them."""
        return cut_between_words(f"{self.rule or 'no rule'}: {self.explanation}", 240)

    @property
    def proposal(self) -> Proposal:
        """The opinion as a proposal that can be sized; percents are whole."""
        explanation, because = ("", self.reason) if self.abstained else (self.reason, "")
        return Proposal(self.action, int(self.size), self.rule, explanation, because)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision after the limits.

    key: its `owner` is the default owner where several opinions were combined.
    action: HOLD where a rule or a limit refused the trade.
    size: percent of the portfolio that is traded.
    proposal: the trade that was asked for.
    cuts: changes by rules and limits, in order, with their reasons.
    unresolved_figures: as in Opinion.
    evidence: ids of the memories that it rests on.
    book: owner whose book it trades in; empty where the desk has one book only.
    """

    key: DecisionKey
    action: Action
    size: Decimal
    proposal: Proposal
    cuts: tuple[Cut, ...] = ()
    unresolved_figures: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    book: str = ""

    @property
    def abstained(self) -> bool:
        """True where no valid answer came."""
        return self.action is Action.ABSTAIN

    @property
    def reason(self) -> str:
        """The explanation, or the reason why there is none."""
        return self.proposal.abstained_because if self.abstained else self.proposal.explanation

    @property
    def requested_size(self) -> Decimal:
        """The size that was asked for, in percent of the portfolio; where none was named, that of the trade before the
        limits."""
        if self.proposal.size:
            return Decimal(self.proposal.size)
        return self.cuts[0].asked if self.cuts else self.size

    @property
    def opinion(self) -> Opinion:
        """The opinion of its owner that it rests on, where one owner decides alone."""
        return Opinion(
            key=self.key,
            action=self.proposal.action,
            size=self.requested_size,
            reason=self.proposal.abstained_because or self.proposal.explanation,
            rule=self.proposal.rule,
            evidence=self.evidence,
            unresolved_figures=self.unresolved_figures,
        )

    def based_on(self, opinions: Sequence[Opinion]) -> Sequence[Opinion]:
        """The opinions that it rests on, among those on its symbol in its cycle: its owner's own where owners decide
        for themselves, with the size that it came to, else all that were combined."""
        return [replace(one, size=self.requested_size) for one in opinions if one.key == self.key] or opinions

    @property
    def cut(self) -> str:
        """The cuts with their reasons in one line; empty where there are none."""
        return "; ".join(f"{c.asked.normalize():f} to {c.allowed.normalize():f} %: {c.reason}" for c in self.cuts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a session's decision for a symbol, or of an opinion that was combined with others, known once the
    next session has closed: the row that later reflections read. Source: FinVision §3.4 [V7].

    decision_session: session that the decision rests on.
    session: session that closed since.
    symbol, owner: of the decision or the opinion.
    action, size: the trade, in percent of the portfolio.
    close: of `session`, in the quote currency.
    reward: change of the portfolio's value due to the symbol, as a fraction of the value before.
    cumulative: rewards compounded since the start, by symbol and owner.
    key_factors: the rule and the begin of the reason.
    cycle: number of the cycle that decided; None where it is not recorded.
    horizon: the symbol's own sessions until `session`; None where it is not recorded.
    """

    decision_session: date
    session: date
    symbol: Symbol
    owner: str
    action: Action
    size: Decimal
    close: Decimal
    reward: Decimal
    cumulative: Decimal
    key_factors: str
    cycle: int | None = None
    horizon: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOutcome(Outcome):
    """An outcome as agents read it: `close` is that of `decision_session`, `move` the asset's own from there to the
    close of `session`, as a fraction; None where the bars do not reach. `decision` is the one that it came of, None of
    an opinion that was combined with others; `note` is code's note on the opinion."""

    move: Decimal | None = None
    decision: Decision | None = None
    note: str = ""

    @classmethod
    def of(
        cls, outcome: Outcome, close: Decimal, after: Decimal, decision: Decision | None = None, note: str = ""
    ) -> ReadOutcome:
        """An outcome with the closes that lie before and after it, 0 where one is not known."""
        known = {field.name: getattr(outcome, field.name) for field in fields(Outcome)} | {"close": close}
        return cls(**known, move=after / close - 1 if close and after else None, decision=decision, note=note)


class Advice(StrEnum):
    """Recommendation for a position. Source: TradingGPT §4.1.2 [G4]."""

    SIGNIFICANTLY_INCREASE = "significantly increase"
    SLIGHTLY_INCREASE = "slightly increase"
    HOLD = "hold"
    SLIGHTLY_DECREASE = "slightly decrease"
    SIGNIFICANTLY_DECREASE = "significantly decrease"

    @property
    def level(self) -> int:
        """Its place on the scale, from -2 to 2."""
        return 2 - tuple(Advice).index(self)

    @classmethod
    def of_level(cls, level: int) -> Advice:
        """The advice of a place on the scale; beyond its ends the last one."""
        return tuple(cls)[2 - max(-2, min(2, level))]


@dataclass(frozen=True, slots=True)
class TradeValues:
    """Trade value of each level that trades, in percent of the portfolio. The paper prints none.

    Whole numbers from 1 to 100, the significant one of a side not below the slight one. Raises ConfigError for others.
    """

    significantly_increase: int = 8
    slightly_increase: int = 3
    slightly_decrease: int = 3
    significantly_decrease: int = 8

    def __post_init__(self) -> None:
        for side in ("increase", "decrease"):
            slight, significant = getattr(self, f"slightly_{side}"), getattr(self, f"significantly_{side}")
            if not 1 <= slight <= significant <= 100:
                raise ConfigError(
                    f"trade values: slightly_{side} is {slight} and significantly_{side} {significant}; give whole "
                    "percents of the portfolio from 1 to 100, the slight one not above the significant one"
                )


def trade_of(advice: Advice, values: TradeValues) -> tuple[Action, int]:
    """Action and size in percent of the portfolio, 0 for a hold."""
    trades = {
        Advice.SIGNIFICANTLY_INCREASE: (Action.BUY, values.significantly_increase),
        Advice.SLIGHTLY_INCREASE: (Action.BUY, values.slightly_increase),
        Advice.HOLD: (Action.HOLD, 0),
        Advice.SLIGHTLY_DECREASE: (Action.SELL, values.slightly_decrease),
        Advice.SIGNIFICANTLY_DECREASE: (Action.SELL, values.significantly_decrease),
    }
    return trades[advice]


LAYERS = ("shallow", "intermediate", "deep", "reflection")
"""Layers under which evidence is cited, from the fastest decay to the agents' own reflections. Source: InvestorBench
A.2 and its test prompt [I1]."""

IMMEDIATE, EXTENDED = "reflection", "extended-reflection"
"""Kinds that tell the daily reflection, which drives the trade, from the review of a period, which is reference only;
both are in one layer. Source: TradingGPT §4.1.2 [G5]."""


PRICE = "price"
"""Kind of the moves of the price."""
INSIGHT = "-insight"
"""Behind the kind of a document: what market intelligence extracted of it. Source: TradingGPT figure 1 [G2]."""
REFLECTIONS = frozenset({IMMEDIATE, EXTENDED, "low-level-reflection", "high-level-reflection", "debate"})
"""Kinds that hold what owners thought. The others tell what came in: where a model worded that, its figures were held
against the day's items before they were remembered."""


DEBATE = "debate"
"""Kind of the comments that an owner received from others. Source: TradingGPT §4.1.3 [G2, G6]."""


FIGURE_DIGITS = 6
"""Decimal places of a memory's figures: more than are ever shown, and what a journal keeps of them."""


class RetrievalType(StrEnum):
    """A view under which past intelligence is asked for, and a label of what memory keeps.
    Source: FinAgent §4.1 [A2]."""

    SHORT_TERM = "short term"
    MEDIUM_TERM = "medium term"
    LONG_TERM = "long term"
    PRICE_UP = "price up"
    PRICE_DOWN = "price down"
    BULLISH_TREND = "bullish trend"
    BEARISH_TREND = "bearish trend"
    NEWS = "news"
    REPORTS = "reports"


HORIZON_TYPES = (RetrievalType.SHORT_TERM, RetrievalType.MEDIUM_TERM, RetrievalType.LONG_TERM)
"""The retrieval types by the time for which something matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """One recalled memory. Agents cite it by its `handle`, decisions and the journal by its `id`. Its figures are
    rounded, so that those of a journal equal those of the same decision made again.

    kind: news, 10-Q, 10-K, macro, or a reflection.
    layer: one of LAYERS.
    session: when it was written.
    recency, relevancy: fractions of 1.
    importance: on the memory's scale (0 to 100).
    score: the composite of the three.
    rank: from 1 within what was recalled.
    types: the retrieval types that matched it.
    owner: whose memory it is; in a debate handles tell the owners' memories apart.
    Source: InvestorBench A.2 [I2]; FinAgent §4.2 [A2, A6]; TradingGPT §4.1.3 [G6].
    """

    id: str
    kind: str
    layer: str
    session: date
    text: str
    recency: float
    relevancy: float
    importance: float
    score: float
    rank: int
    types: tuple[str, ...] = ()
    owner: str = DESK

    def __post_init__(self) -> None:
        """Round the figures."""
        for figure in ("recency", "relevancy", "importance", "score"):
            object.__setattr__(self, figure, round(getattr(self, figure), FIGURE_DIGITS))

    @property
    def handle(self) -> str:
        """Short name within one decision's recollections: its layer's initial and its rank, as S3, with the owner where
        several decide, as S3-averse."""
        own = "" if self.owner in ("", DESK) else f"-{self.owner}"
        return f"{self.layer[:1].upper()}{self.rank}{own}"


class Stance(StrEnum):
    """The attitude of a comment towards the advice that it is about."""

    AGREES = "agrees"
    WANTS_MORE = "wants more"
    WANTS_LESS = "wants less"


class DebateEnd(StrEnum):
    """The reason why a debate ended."""

    AGREEMENT = "agreement"
    NO_CHANGE = "no change"
    ROUNDS = "rounds"
    BUDGET = "budget"
    ALONE = "alone"
    """All others have abstained."""
    AFTER_TRADE = "after the trade"
    """In training the comments follow the trade, in one round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of one owner on the advice of another.

    round: from 1.
    author, receiver: owners.
    stance: towards the receiver's advice.
    text: plain text.
    about: ids of the receiver's memories that it is about.
    """

    round: int
    author: str
    receiver: str
    stance: Stance
    text: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAdvice:
    """One owner's advice at the end of a round.

    round: 0 for the immediate reflection, before anybody commented.
    advice: None where no valid answer came.
    trade: percent of the portfolio that the preset ties to the advice, 0 for a hold.
    confidence: as stated, from 0 to 1.
    reason: plain text.
    """

    round: int
    owner: str
    advice: Advice | None
    trade: int = 0
    confidence: Decimal | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debate:
    """A debate as it was held.

    key: run, session, cycle and symbol; its owner is the default owner.
    decides: True where the advice of its last round was decided on, False where it followed the trade.
    ended: the reason why no further round began.
    advice: in the order of rounds, then owners.
    comments: in the order of rounds, then authors, then receivers.
    """

    key: DecisionKey
    decides: bool
    ended: DebateEnd
    advice: tuple[RoundAdvice, ...]
    comments: tuple[Comment, ...] = field(default=())

    @property
    def rounds(self) -> int:
        """The number of rounds in which anybody commented."""
        return max((comment.round for comment in self.comments), default=0)

    def of(self, owner: str) -> tuple[RoundAdvice, ...]:
        """An owner's advice, round by round."""
        return tuple(one for one in self.advice if one.owner == owner)

    def changed(self, owner: str) -> bool:
        """True where an owner's last advice is not its first."""
        own = [one.advice for one in self.of(owner) if one.advice is not None]
        return bool(own) and own[0] is not own[-1]
