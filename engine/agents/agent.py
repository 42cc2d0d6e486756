"""The registration of an agent: its view, its answer, its prompt, its rule, and what it reads.

Everything that counts, orders or names agents is derived from these values (`engine.agents.registry`). A list of agents
elsewhere would be a second registration, and the two would differ some day.

Foreign text made safe for prompts: plain characters, bounded length, a fence that it cannot leave.

Evidence of an answer: the memories that it cites, and how agents see them.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from engine.domain.chart import ChartSpec
from engine.domain.decision import LAYERS, Outcome, Recollection
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, PriceHistory, Symbol
from engine.domain.model_call import Rule
from engine.domain.order import PositionContext
from engine.domain.text import cut_between_sentences, cut_between_words


@dataclass(frozen=True, slots=True)
class View:
    """All that an agent may see, as a frozen value. Each agent's own View adds its fields."""

    symbol: Symbol
    session: date
    owner: str

    @property
    def question(self) -> str:
        """The name of the question in events, where an agent asks several; empty: the agent's own."""
        return ""

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """Charts that a model that sees is shown as images."""
        return ()

    def summary(self) -> str:
        """A few words for the record."""
        return f"{self.symbol} after {self.session}"


@dataclass(frozen=True, slots=True)
class ChartedView(View):
    """A view with one chart; a model that does not see reads `figures` instead."""

    chart: ChartSpec

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """The chart."""
        return (self.chart,)

    def figures(self) -> str:
        """The chart's figures as text, a line per session."""
        raise NotImplementedError


class Part(BaseModel):
    """A part of an answer: frozen, and closed to fields that nobody asked for. A field's docstring (or description) is
    the instruction to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)


class Answer(Part):
    """Base of an agent's answer. The fields' docstrings are instructions; class docstrings are for programmers."""

    def check(self, view: Any) -> None:
        """Raise ValueError for an answer that its view does not allow."""

    def missing(self, view: Any) -> str:
        """The complaint about what an answer leaves out: it goes back once, and is taken as it is then. Empty where it
        is whole."""
        return ""

    def leaning(self) -> int:
        """The side that the offline rules count for one of the user's own agents: 1 bullish, -1 bearish, 0 neither."""
        return 0

    def lines(self) -> tuple[str, ...]:
        """The answer for a reader, one line per value. Fields with `repr=False` are for memory and left out."""
        shown = ((name, value) for name, value in self if type(self).model_fields[name].repr)
        return tuple(
            f"{name.replace('_', ' ').capitalize()}: {item}"
            for name, value in shown
            for item in (value if isinstance(value, list) else [value])
        )

    def quoted(self) -> tuple[str, ...]:
        """The lines as the prompts of other agents quote them."""
        return tuple(f"- {plain(line)}" for line in self.lines())


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a user's own agent as the decision reads it: `leaning` as in Answer."""

    agent: str
    lines: tuple[str, ...]
    leaning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of one agent. What its registration does not say that it reads is empty.

    now: moment of the cycle, UTC.
    bars: visible bars, oldest first.
    news, filings, macro: new since the last decision, in order of availability.
    outcomes: results of the last decisions, oldest first.
    holding: the position and the cash.
    recollections: memories, best first within a layer.
    answers: answers by agent, of those that the agent's View has a field for.
    """

    symbol: Symbol
    session: date
    owner: str
    now: datetime
    bars: PriceHistory
    news: tuple[NewsItem, ...] = ()
    filings: tuple[Filing, ...] = ()
    macro: tuple[MacroRelease, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    holding: PositionContext | None = None
    recollections: tuple[Recollection, ...] = ()
    answers: Mapping[str, Answer]

    def answer(self, kind: type[A]) -> A | None:
        """The answer of a class; None where its agent was not asked or abstained."""
        return next((answer for answer in self.answers.values() if isinstance(answer, kind)), None)


PROMPTS = Path(__file__).parent / "prompts"
"""Folder of the prompts that ship with the package."""


class Reads(StrEnum):
    """A source of what an agent reads. Calls that read the market alone do not depend on earlier sessions."""

    MARKET = "market"
    HISTORY = "history"
    """Decisions and outcomes of earlier sessions, and the position that they led to."""
    MEMORY = "memory"


DECIDING = "decision"
"""Step of the agents whose answer is the decision; a preset's `decision` chooses among them."""
MARKET_ALONE = frozenset({Reads.MARKET})


V = TypeVar("V", bound=View)


@dataclass(frozen=True, kw_only=True)
class Agent(Generic[V, A]):
    """The registration of an agent.

    name: key of its model and settings, and its name in the journal.
    step: entry in a preset's steps that asks it, and that an ablation leaves out; its name where empty.
    view: class of what it may see.
    see: function from what the cycle has found out to the view, or to the reason why there is nothing to ask; None
    where the cycle has a step of its own for the agent.
    answer, answer_to: class of what it must answer; the second names a subclass where that depends on the view.
    prompt: its template, with a block for the system part and one for the user part; the package's of its name where
    none is given.
    rule: function of the view that answers without a model, as plain JSON.
    reads: sources of what it reads besides other agents' answers, which its view's fields name.
    questions: names of its questions in events and panes, in order; its own name where empty.
    group: name under which an ablation leaves it out together with others.
    decides: values of a preset's `decision` for which its answer is the decision.
    words_searches: True where memory is searched with its answer.
    """

    name: str
    step: str = ""
    view: type[V]
    answer: type[A]
    prompt: Path = Path()
    rule: Rule
    reads: frozenset[Reads]
    see: Callable[[Inputs], V | str] | None = None
    answer_to: Callable[[V], type[A]] | None = None
    questions: tuple[str, ...] = ()
    group: str = ""
    decides: frozenset[str] = frozenset()
    words_searches: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", self.step or self.name)
        object.__setattr__(self, "questions", self.questions or (self.name,))
        if self.prompt == Path():
            object.__setattr__(self, "prompt", PROMPTS / f"{self.name}.md")

    def is_active(self, steps: Container[str], decision: str) -> bool:
        """True where a preset with these steps, and decisions of this kind, asks it."""
        return self.step in steps or (self.step == DECIDING and decision in self.decides)

    def expects(self, view: V) -> type[A]:
        """The class of the answer to a view."""
        return self.answer if self.answer_to is None else self.answer_to(view)


_TAG = re.compile(r"<(?:!--.*?-->|[!/?]?[a-zA-Z][^<>]*>)", re.DOTALL)
_ESCAPE_SEQUENCE = re.compile(r"(?:\x1b|\x9b)\[?[0-9;?]*[ -/]*[@-~]?")
_BACKTICKS = re.compile(r"`{2,}")
# Controls, surrogates, private use, and what turns or hides text: soft hyphen, zero width, bidi, tags,
# joiners.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffc\ufffe\uffff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_MAY_NEED_WORK = re.compile("[^ !-%'-;=?-_a-~\u00a1-\u00ac\u00ae-\u033f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf]|  ")
_BLOCK = re.compile(r"^<<<(?P<name>\w+)\n(?P<body>.*?)\n(?P=name)>>>$", re.DOTALL | re.MULTILINE)
_SHORT = 120
"""Characters from which a line is long enough to be cut."""
_MARKUP = re.compile("[<&\x1b\x9b]")


@lru_cache(maxsize=8192)  # the same news, memories and outcomes come back day after day
def plain(text: str, limit: int | None = None) -> str:
    """One line of visible text: markup, entities, escape sequences and unseen characters are gone, angle
    brackets cannot occur, white space is single blanks, and what passes `limit` characters is cut between
    two words with an ellipsis."""
    if _MAY_NEED_WORK.search(text):
        if _MARKUP.search(text):
            # Twice, because an entity may spell a tag; what is left of either is disarmed below.
            for _ in range(2):
                text = html.unescape(_TAG.sub(" ", _ESCAPE_SEQUENCE.sub(" ", text)))
            text = _ESCAPE_SEQUENCE.sub(" ", text)
        text = _UNSEEN.sub("", text)
        text = _BACKTICKS.sub("'", text.replace("<", "‹").replace(">", "›"))
        text = one_line(text)
    text = text.strip()
    return text if limit is None else cut_between_words(text, limit)


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def fenced(name: str, lines: Iterable[str], left_out: int = 0) -> str:
    """Lines of foreign text between an opening and a closing mark that no line can contain, because `plain`
    leaves neither line breaks nor angle brackets; what was left out is counted inside."""
    body = [f"- {plain(line)}" for line in lines]
    if left_out:
        body.append(f"... and {left_out} more")
    return "\n".join((f"<<<{name}", *(body or ["(none)"]), f"{name}>>>"))


def halved(text: str) -> str:
    """A text with about half of what stands in its fences: of many lines the first and the last ones, of a few the
    beginning of each."""
    return _BLOCK.sub(_halved_block, text)


def _halved_block(block: re.Match[str]) -> str:
    lines = block["body"].split("\n")
    kept = len(lines) // 4
    if kept:
        left = f"... {len(lines) - 2 * kept} lines left out here"
        lines = [*lines[:kept], left, *lines[-kept:]]
    else:
        lines = [line if len(line) < _SHORT else cut_between_words(line, len(line) // 2) for line in lines]
    return "\n".join((f"<<<{block['name']}", *lines, f"{block['name']}>>>"))


def count_words(text: str) -> int:
    """The number of words: runs of non-blanks with at least one letter or digit."""
    return sum(part.isalnum() or any(c.isalnum() for c in part) for part in text.split())


def shortened(text: str, wished: int) -> str:
    """The text for a reader, cut after twice the number of words that a model was asked to keep to."""
    words = text.split()
    return text if len(words) <= 2 * wished else f"{' '.join(words[: 2 * wished])} …"


def _plain_lines(text: str) -> str:
    return "\n".join(line for line in map(plain, text.splitlines()) if line)


def _not_empty(text: str) -> str:
    if not any(c.isalnum() for c in text):
        raise ValueError("must not be empty")
    return text


Sentence = Annotated[str, StringConstraints(max_length=2000), AfterValidator(plain), AfterValidator(_not_empty)]
"""Non-empty plain text of a model, of up to 2,000 characters."""
Prose = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_plain_lines), AfterValidator(_not_empty)]
"""Non-empty plain text of a model that keeps its line breaks, of up to 20,000 characters."""


SHOWN = 8_000
"""Characters of a memory's text that an agent sees: those of a filing's summary."""


def shown_text(memory: Recollection) -> str:
    """A memory's text as an agent sees it: whole, or its first sentences and a note of how much is left out."""
    return cut_between_sentences(plain(memory.text), SHOWN)


def cut_note(memories: Iterable[Recollection]) -> str:
    """The end of a view's few words: how many memories are too long to be shown whole; empty where none is."""
    cut = len({memory.id for memory in memories if len(plain(memory.text)) > SHOWN})
    return f", {cut} cut to {SHOWN:,} characters" if cut else ""


def recollection_line(memory: Recollection) -> str:
    """A memory on one line: its handle in brackets, the session it was written in, its kind, its text."""
    return f"[{plain(memory.handle, 40)}] {earlier_line(memory)}"


CITED = 160
"""Characters of a memory that its reader has whole, or summarized, elsewhere: enough to tell it from others."""


def cited_line(memory: Recollection) -> str:
    """A memory on one line to cite it by: its handle, its session, its kind and its first words."""
    first = cut_between_words(plain(memory.text), CITED)
    return f"[{plain(memory.handle, 40)}] {memory.session} {plain(memory.kind, 40)}: {first}"


def earlier_line(memory: Recollection) -> str:
    """A memory on one line as a reference that nobody cites: without its handle."""
    return f"{memory.session} {plain(memory.kind, 40)}: {shown_text(memory)}"


def by_layer(memories: Iterable[Recollection]) -> Mapping[str, Sequence[Recollection]]:
    """Memories by layer: the known layers first and in their order, empty ones left out."""
    found: dict[str, list[Recollection]] = {layer: [] for layer in LAYERS}
    for memory in memories:
        found.setdefault(memory.layer, []).append(memory)
    return {layer: rows for layer, rows in found.items() if rows}


def cited_ids(handles: Iterable[str], memories: Iterable[Recollection]) -> tuple[str, ...]:
    """The ids of the memories that an agent cited by their handles."""
    known = {memory.handle: memory.id for memory in memories}
    return tuple(known[handle] for handle in handles)


def check_cited(cited: Iterable[str], given: Iterable[str], what: str) -> None:
    """Raise ValueError, naming them, for ids that were not given or that are named twice."""
    counted = Counter(cited)
    strangers = [plain(name, 40) for name in counted.keys() - frozenset(given)]
    if strangers:
        raise ValueError(f"{what} names ids that were not given: {', '.join(sorted(strangers)[:5])}")
    repeated = [plain(name, 40) for name, times in counted.items() if times > 1]
    if repeated:
        raise ValueError(f"{what} names ids more than once: {', '.join(sorted(repeated)[:5])}")
