"""Services: everything that use cases need from outside, as one value.

It is beside the ports instead of in engine.app: connectors.wiring fills it and must know no use case. Making it
opens nothing, asks nobody and loads no vendor's library; each factory does that when it is called. The value can be
pickled: a bench plays its runs in processes of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine import ports
from engine.broker_registration import BrokerService
from engine.domain.fetched import Fetched, FileImport, ImportResult
from engine.domain.market import Exchange, Symbol
from engine.domain.model_call import (
    Capabilities,
    ModelRequest,
    ModelResult,
    ModelSpec,
    PriceTable,
    RecordedAnswer,
    ReplayMode,
)
from engine.domain.run import DataSpec, ModelUse, RunTrigger
from engine.errors import BudgetReached
from engine.settings.config import BudgetConfig, Config

if TYPE_CHECKING:
    from memory.ports import Embedder  # it loads numpy

OnUse = Callable[[ModelUse], None]
"""Receiver of every call of a remote embedder."""


USUAL_ANSWER_TOKENS = 1024
"""Tokens that an answer may take where none of the model was seen yet; few take more."""


def dollars(amount: Decimal) -> str:
    """Dollars for a message, to the ten-thousandth below one."""
    return f"${amount:,.2f}" if amount >= 1 or amount == round(amount, 2) else f"${amount:,.4f}"


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls of models by what they took: USD, or tokens where a model's price is not known."""

    usd: Decimal = Decimal(0)
    tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.usd - other.usd, self.tokens - other.tokens)


@dataclass
class SpendingLimit:
    """Limit of the use of a desk's models in a day, shared by all models and embedders of a run, from any thread.
    `spent` is what is used, `reserved` what the calls in flight may cost; `of_flag` is True where the dollars are
    those of a command's --budget; `longest` are the tokens of the longest answer that is counted in `spent`."""

    budget: BudgetConfig
    spent: Spent
    of_flag: bool = False
    reserved: Spent = Spent()
    in_flight: int = 0
    longest: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    @classmethod
    def of_dollars(cls, budget: BudgetConfig, usd: Decimal, spent: Spent = Spent()) -> SpendingLimit:
        """The limit of one command to some dollars; tokens without a price are limited as in a day."""
        return cls(budget.model_copy(update={"usd_per_day": usd}), spent, of_flag=True)

    def reserve(self, most: Spent, least: Spent | None = None, *, first: bool = True) -> Spent | BudgetReached:
        """Reserve what a call may cost, or all that is left where that is `least` at least. A question's `first` call
        counts as in flight. The error where it does not fit beside what is spent and in flight."""
        with self._lock:
            taken = self.spent + self.reserved
            trouble, granted = self._trouble(taken, most), most
            if trouble is not None and least is not None:
                trouble = self._trouble(taken, least)
                left = Spent(self.budget.usd_per_day, self.budget.tokens_per_day) - taken
                granted = Spent(left.usd if most.usd else most.usd, left.tokens if most.tokens else most.tokens)
            if trouble is not None:
                return trouble
            self.reserved += granted
            self.in_flight += first
            return granted

    def settle(self, reserved: Spent, used: Spent) -> None:
        """Put what a question has used in the place of what was reserved for it."""
        with self._lock:
            self.reserved -= reserved
            self.spent += used
            self.in_flight -= 1

    def _trouble(self, taken: Spent, more: Spent) -> BudgetReached | None:
        usd, tokens = self.budget.usd_per_day, self.budget.tokens_per_day
        later = "; nothing is decided without it: raise the limit, or run again tomorrow (UTC)"
        if more.usd and taken.usd + more.usd > usd:
            today = "" if self.of_flag else " today"
            said = f"{dollars(taken.usd)} are spent{today}, and the next call may cost up to {dollars(more.usd)}"
            if self.of_flag:
                return BudgetReached(f"--budget of ${usd:,.2f} is reached: {said}")
            return BudgetReached(f"budget.usd_per_day of ${usd:,.2f} is reached: {said}{later}")
        if more.tokens and taken.tokens + more.tokens > tokens:
            said = f"{taken.tokens:,} are used today, and the next call may take up to {more.tokens:,}"
            return BudgetReached(f"budget.tokens_per_day of {tokens:,} is reached: {said}{later}")
        return None


class FolderCuts(Protocol):
    """Copies of a data folder's files that end at a moment."""

    @property
    def early(self) -> Sequence[str]:
        """The texts that are stamped before their release, each by file and line; they are known from that on."""

    def write(self, target: Path, now: datetime) -> None:
        """Write the files as they would be at a moment (UTC) into a folder, in the place of an earlier copy."""


class OpenEmbedder(Protocol):
    """Opener of embedders."""

    def __call__(
        self, spec: str | None, on_use: OnUse, *, limit: SpendingLimit | None = None
    ) -> AbstractContextManager[Embedder]:
        """The embedder of a spec (None: the configured one) until the block ends. `on_use` hears of every call of a
        remote one; a call that does not fit into `limit` raises BudgetReached."""


Questions = Sequence[tuple[str, ModelRequest]]
"""Questions with the specs of the models that they are for."""
Report = Callable[[str], None]


class OpenModels(Protocol):
    """Models of one run, with the connections and files that they share."""

    def model(self, spec: ModelSpec) -> ports.LanguageModel:
        """The model of a vendor or an endpoint. Raises ConfigError, and CredentialsRefused for a missing key."""

    def ask_first(self, preflight: Callable[[ModelRequest], Awaitable[None]]) -> None:
        """Await `preflight` once, before the first question that no recorded answer is there for; whoever asks
        meanwhile waits. What it raises, that question and every later one raise."""

    async def batch(self, questions: Questions, run: str, booked: Collection[str], report: Report) -> None:
        """Have questions of a run answered in batches, at half price and within a day, each by the model of its spec:
        their models have the answers from then on, and give them to the first who asks as if they had been asked then.
        Left out are questions to models without batches, recorded ones, and lines that failed. What a run before has
        sent is waited for; what it has `booked` (request hashes) costs nothing any more. `report` gets the work at
        hand. Raises TryAgainLater, ConfigError and CredentialsRefused."""

    async def aclose(self) -> None:
        """Close connections and files, inside the event loop that opened them."""


class RecordedAnswers(Protocol):
    """Recorded answers of models; nobody is asked."""

    def has(self, spec: ModelSpec) -> bool:
        """True where any answer of a model is recorded."""

    def find(self, spec: ModelSpec, request: ModelRequest) -> ModelResult | None:
        """A model's recorded answer to a question; None where there is none."""

    def reasoning(self, spec: ModelSpec) -> float | None:
        """Tokens of reasoning in a model's answer, the mean of those that are recorded; None where there is none."""

    def specs(self) -> Sequence[str]:
        """Every model of which any answer is recorded, sorted."""

    def hashes(self) -> Sequence[str]:
        """The request hash of every recorded answer, sorted."""

    def answer(self, request_hash: str) -> RecordedAnswer | None:
        """A recorded answer by its hash."""

    def record(self, answer: RecordedAnswer) -> bool:
        """Add an answer; False where there is one of its hash, which stays."""

    def remove(self, hashes: Iterable[str]) -> None:
        """Remove answers, all or none of them."""


class ModelService(Protocol):
    """Configured vendors and endpoints of language models."""

    def open(
        self,
        mode: ReplayMode,
        *,
        keys_on_demand: bool = False,
        limit: SpendingLimit | None = None,
        paid_since: datetime | None = None,
    ) -> OpenModels:
        """Models that use recorded answers by a mode; with `keys_on_demand` a key is needed only for a question that
        no recorded answer is there for. A question that does not fit into `limit` raises BudgetReached. Answers that
        were recorded from `paid_since` on (UTC) are given again as they were, cost included."""

    def key_variable(self, spec: ModelSpec) -> str:
        """The environment variable that holds a model's key; empty where none is needed."""

    def address(self, spec: ModelSpec) -> str:
        """The address that an environment variable gives to a vendor's models, with the variable; empty for none."""

    def sees(self, spec: ModelSpec) -> bool:
        """True where a model is configured to be shown images."""

    def prices(self) -> PriceTable:
        """The table of prices."""

    def recorded(self) -> AbstractContextManager[RecordedAnswers]:
        """The recorded answers, open until the block ends. Raises MalformedData."""

    async def probe(self, spec: ModelSpec, at_length: bool = False) -> Capabilities:
        """Ask a model two small questions, or all that there is to find out of it. Raises CredentialsRefused without a
        key, and what the service raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """A data folder to fill. `progress` receives the item that is fetched, the count that is done and the whole count;
    `stop` is True to end early; `again` fetches what is there as well, and replaces rows that differ."""

    folder: Path
    progress: Callable[[str, int, int], None] = lambda what, done, total: None
    stop: Callable[[], bool] = lambda: False
    again: bool = False


class MarketFetch(Protocol):
    """A fetch of market data into a folder that no other process fills meanwhile. Only what is new is asked for; what
    was written before an error stays. Every fetch raises CredentialsRefused, ConfigError for another feed than the kept
    bars have, MissingData, MalformedData, NetworkError and TryAgainLater."""

    @property
    def vendor(self) -> str:
        """The vendor's name in messages."""

    @property
    def feed(self) -> str:
        """The feed of stock prices."""

    async def bars(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add the bars of all sessions that are over, and the corporate actions that adj_close is computed from.
        MissingData for symbols without a bar is raised once all others are done."""

    async def actions(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Merge splits and dividends, and compute adj_close anew."""

    async def news(self, symbols: Sequence[Symbol], since: date | None = None) -> list[Fetched]:
        """Add news up to now."""

    def late(self, symbols: Sequence[Symbol], session: date) -> list[Symbol]:
        """Symbols whose bars in the folder do not reach a session."""

    def without_filings(self, symbols: Sequence[Symbol], day: date) -> list[Symbol]:
        """Symbols whose filings not fetched on a day."""

    def note_filings(self, symbols: Sequence[Symbol], day: date) -> None:
        """Note that filings of symbols were fetched on a day."""


class FetchService(Protocol):
    """Services that data is fetched from: the broker's market data, SEC EDGAR, FRED."""

    def market(self, options: FetchOptions, clock: ports.Clock) -> AbstractAsyncContextManager[MarketFetch]:
        """A fetch of market data until the block ends; sessions are over by `clock`. Raises ConfigError and
        CredentialsRefused for addresses and keys, TryAgainLater where another fetch does not end."""

    async def filings(self, options: FetchOptions, symbols: Sequence[Symbol], since: date | None) -> list[Fetched]:
        """Add filings of symbols, a few at a time. Raises ConfigError, NetworkError, TryAgainLater."""

    async def macro(self, options: FetchOptions) -> list[Fetched]:
        """Merge the configured macro series, every vintage. Raises CredentialsRefused, MissingData, NetworkError,
        TryAgainLater."""

    def offers(self, exchange: Exchange) -> bool:
        """True where `market` has the symbols of an exchange."""

    @property
    def has_macro_key(self) -> bool:
        """True where the key of the macro series' service is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything from outside that a use case may ask for.

    config: the configuration that the factories were made of.
    clock: this machine's time, UTC.
    data: the configured market data.
    data_folder: the folder that market data is fetched to; None on the demo market.
    symbols: the desk's symbols in the order in which they are decided; the demo market's where none are configured.
    calendar_for: the trading calendar of a symbol.
    desk_calendar: the calendar that a desk of some symbols decides on.
    open_source: bars, news and filings of a data spec; the demo market reaches the given session.
    open_macro: macro series of a data spec; the demo market reaches the given session.
    profile_of: the text that describes a symbol of a data spec; empty where there is none.
    name_of: the company's name of a symbol of a data spec; empty where it is not known.
    index_fund: the fund that accounts on a data spec are compared with, which the data need not have.
    models: vendors and endpoints of language models.
    broker: the account at a broker; None on the simulated market.
    fetch: services that data is fetched from.
    import_file: brings a file into a data folder.
    open_cuts: copies of a data folder's files on some symbols that end at a moment.
    open_embedder: opens embedders.
    open_notifiers: receivers of notifications about runs.
    open_ping: the address that is called after every finished run; None where none is configured.
    open_painter: painter of charts.
    key_variables: environment variables of every service's keys, sorted.
    limit: of what the models and embedders of runs may cost; None where nothing limits them.
    abstain_limit: the number of sessions in a row without a usable decision that stop a backtest or an arena; 0: none.
    paid_since: the beginning (UTC) of a run that goes on, whose answers are its own; None for a new one.
    trigger: what starts runs of the desk; None where that is of no interest.
    """

    config: Config
    clock: ports.Clock
    data: DataSpec
    data_folder: Path | None
    symbols: tuple[Symbol, ...]
    calendar_for: Callable[[Symbol], ports.Calendar]
    desk_calendar: Callable[[Iterable[Symbol]], ports.Calendar]
    open_source: Callable[[DataSpec, date], ports.MarketSource]
    open_macro: Callable[[DataSpec, date], ports.MacroFolder]
    profile_of: Callable[[DataSpec, Symbol], str]
    name_of: Callable[[DataSpec, Symbol], str]
    index_fund: Callable[[DataSpec], Symbol]
    models: ModelService
    broker: BrokerService | None
    fetch: FetchService
    import_file: Callable[[FileImport], ImportResult]
    open_cuts: Callable[[Path, Sequence[Symbol]], FolderCuts]
    open_embedder: OpenEmbedder
    open_notifiers: Callable[[], Sequence[ports.Notifier]]
    open_ping: Callable[[], ports.Notifier | None]
    open_painter: Callable[[], ports.ChartPainter]
    key_variables: Callable[[], Sequence[str]]
    limit: SpendingLimit | None = None
    abstain_limit: int = 0
    paid_since: datetime | None = None
    trigger: RunTrigger | None = None

    @property
    def desk(self) -> str:
        """The configured desk's name."""
        return self.config.desk.name

    @property
    def goes_by_broker(self) -> bool:
        """True where the desk's time is the broker's."""
        return self.broker is not None and self.config.broker.clock == "broker"
